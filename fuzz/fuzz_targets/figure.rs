//! Reading figures of papers never panics: `.ci/fuzz`, or `cargo fuzz run figure` with a nightly
//! compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::figure(bytes));
