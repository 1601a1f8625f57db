//! Reading and explaining chirps never panics: `.ci/fuzz`, or `cargo fuzz run chirp` with a nightly
//! compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::chirp(bytes));
