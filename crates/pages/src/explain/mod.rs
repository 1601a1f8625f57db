//! `flowstart explain-chirp`: a chirp in tables, pictures and sentences.

mod pictures;
pub mod words;

use flowstart_explain::{Chirp, Explanation, Observed, Simulated};
use flowstart_report::Figure;
use flowstart_units::{Bytes, Rate};

/// One chirp, and where it comes from.
pub struct Case {
    /// In a few words.
    pub title: String,
    /// When its packets left and came.
    pub chirp: Chirp,
    /// What each rule says of it.
    pub explanation: Explanation,
    /// Bytes of a packet on the wire.
    pub packet: Bytes,
    /// The simulation, if it is one.
    pub truth: Option<Truth>,
}

/// What a simulation knows beside the chirp.
pub struct Truth {
    /// The path.
    pub simulated: Simulated,
    /// The chirp, and what the simulated start made of it.
    pub observed: Observed,
}

impl Case {
    fn rate(&self, gap: u64) -> Rate {
        flowstart_explain::rate(self.packet, gap)
    }
}

/// The picture that says most.
pub const DELAYS: &str = "delays";

/// The pictures of a chirp, each with its name.
#[must_use]
pub fn figures(case: &Case, command: &str) -> [(&'static str, Figure); 3] {
    let figures =
        [("departures", pictures::departures(case)), (DELAYS, pictures::delays(case)), ("gaps", pictures::gaps(case))];
    figures.map(|(name, figure)| (name, Figure { command: command.to_owned(), ..figure }))
}
