//! Whether a flow has a queue of its own.

/// How far slow start goes on where others keep a queue, in shares of what fits the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrowdRule {
    /// It ends there, 0 ..= 1.
    pub share: f64,
    /// From here on it is slower, 0 ..= 1.
    pub unhurried: f64,
    /// How it grows then: packets for each that is acknowledged, 0 ..= 1.
    pub growth: f64,
}

/// What a flow knows of the queue at its bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing certain.
    #[default]
    Unknown,
    /// It has a queue of its own: fair queuing.
    Isolated,
    /// It shares the queue with others.
    Shared,
}

impl Isolation {
    /// The word in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Isolated => "isolated",
            Self::Shared => "shared",
        }
    }
}
