//! Reading and marking frames never panics and changes nothing but the mark: `.ci/fuzz`, or
//! `cargo fuzz run frame` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::frame(bytes));
