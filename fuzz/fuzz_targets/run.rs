//! Simulating scenarios never panics and breaks no invariant: `.ci/fuzz`, or `cargo fuzz run run`
//! with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::run(bytes));
