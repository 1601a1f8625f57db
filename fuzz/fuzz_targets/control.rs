//! Reading the control stream of QUIC transfers never panics: `.ci/fuzz`, or `cargo fuzz run
//! control` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::control(bytes));
