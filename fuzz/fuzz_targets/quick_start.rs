//! Reading and changing Quick-Start options never panics, and what was read is written the same: `cargo +nightly fuzz run quick_start`.

#![no_main]

#[path = "../entries/quick_start.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::quick_start(bytes));
