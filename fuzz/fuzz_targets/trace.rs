//! Reading Mahimahi traces, and sending by them, never panics: `.ci/fuzz`, or
//! `cargo fuzz run trace` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::trace(bytes));
