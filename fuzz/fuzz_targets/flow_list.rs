//! Reading lists of flows never panics: `.ci/fuzz`, or `cargo fuzz run flow_list` with a nightly
//! compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::flow_list(bytes));
