//! Opening a frontier's journal never panics and loses nothing: `.ci/fuzz`, or
//! `cargo fuzz run journal` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::journal(bytes));
