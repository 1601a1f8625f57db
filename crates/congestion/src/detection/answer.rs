//! What a detector finds out about the queue at the bottleneck.

use flowstart_units::{Rate, Span, Time};

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

/// What a detector found, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When.
    pub now: Time,
    /// The answer.
    pub isolation: Isolation,
    /// The number it was read from: for the published detector the ratio of the parts of both flows
    /// that arrived; 0 without one.
    pub ratio: f64,
    /// The rate that connection 0 goes on with, in bits of IP packets.
    pub rate: Rate,
    /// Probability that the answer is right, if the detector reckons with one.
    pub confidence: Option<f64>,
    /// The smallest RTT it knows; [`Span::MAX`] if none.
    pub smallest: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_called_as_in_tables() {
        let all = [Isolation::Unknown, Isolation::Isolated, Isolation::Shared];
        assert_eq!(all.map(Isolation::name), ["unknown", "isolated", "shared"]);
        assert_eq!(Isolation::default(), Isolation::Unknown);
    }
}
