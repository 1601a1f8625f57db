//! What a detector finds out about the queue at the bottleneck.

pub use flowstart_control::Isolation;
use flowstart_units::{Rate, Span, Time};

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
