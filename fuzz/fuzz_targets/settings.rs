//! Setting parameters of programs for the kernel never panics, and what is shown can be set:
//! `.ci/fuzz`, or `cargo fuzz run settings` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::settings(bytes));
