//! Judging what was recorded of claims never panics: `.ci/fuzz`, or
//! `cargo fuzz run record` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::record(bytes));
