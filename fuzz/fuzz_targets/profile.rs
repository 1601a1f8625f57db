//! Reading a profile of a path never panics: `.ci/fuzz`, or
//! `cargo fuzz run profile` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::profile(bytes));
