//! What is done with bytes that come from outside: one function for everything that is read.
//!
//! The fuzz targets (`fuzz/fuzz_targets`) call these functions with bytes that a fuzzer makes up;
//! the test `corpora` calls them with all bytes that are kept in `fuzz/corpus`. None may panic,
//! whatever the bytes are. Where what was read can be written, it must read back to the same.

#![forbid(unsafe_code)]

mod scenarios;
mod tables;
mod words;

#[path = "../../../fuzz/entries/quick_start.rs"]
mod quick_start;

pub use scenarios::{figure, flow_list, profile, run, scenario, trace};
pub use tables::{chirp, delays, journal, parquet, record};
#[cfg(target_os = "linux")]
pub use words::frame;
pub use words::{contestant, settings};

/// Options of Quick-Start wherever they are in the bytes, and a router that forwards them.
pub fn quick_start(bytes: &[u8]) {
    quick_start::quick_start(bytes);
}

/// Messages of the control stream over QUIC, cut in two, and what is known of paths: what is read
/// is written and read the same.
pub fn control(bytes: &[u8]) {
    flowstart_quic::message::read_control(bytes);
    let mut memory = flowstart_quic::Memory::default();
    if text(bytes).is_some_and(|text| memory.merge(text).is_ok()) {
        let written = memory.to_json(NOW);
        let mut again = flowstart_quic::Memory::default();
        again.merge(&written).expect("what was written can be read");
        assert_eq!(written, again.to_json(NOW));
    }
}

/// Some moment in seconds of Unix time.
const NOW: u64 = 1_800_000_000;

/// A function that reads bytes, and the name of its fuzz target and of its corpus.
pub type Entry = (&'static str, fn(&[u8]));

/// All of them.
pub const ENTRIES: &[Entry] = &[
    ("scenario", scenario),
    ("run", run),
    ("profile", profile),
    ("flow_list", flow_list),
    ("trace", trace),
    ("figure", figure),
    ("journal", journal),
    ("record", record),
    ("delays", delays),
    ("parquet", parquet),
    ("chirp", chirp),
    ("contestant", contestant),
    ("settings", settings),
    #[cfg(target_os = "linux")]
    ("frame", frame),
    ("quick_start", quick_start),
    ("control", control),
];

/// The bytes as text, if they are.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
