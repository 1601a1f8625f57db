//! Reading scenarios never panics, and what was read prints back to the same: `.ci/fuzz`, or
//! `cargo fuzz run scenario` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::scenario(bytes));
