//! Reading and changing Quick-Start options never panics, and what was read is written the same:
//! `.ci/fuzz`, or `cargo fuzz run quick_start` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::quick_start(bytes));
