//! Reading measured delays from Apache Parquet, and estimating from them, never panics: `.ci/fuzz`,
//! or `cargo fuzz run parquet` with a nightly compiler.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowstart_entries::parquet(bytes));
