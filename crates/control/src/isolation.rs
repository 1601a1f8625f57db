//! Whether a flow has a queue of its own.

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
