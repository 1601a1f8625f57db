//! Reading contestants never panics, and their names are read as the same: `.ci/fuzz`, or
//! `cargo fuzz run contestant` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::contestant(bytes));
