//! A detector over two connections to the same place that carry one stream: when packets of either
//! leave, what became of them, and in the end what the bottleneck does.
//!
//! Whoever holds the two connections asks [`PairDetector::departure`] before every packet, tells of
//! every packet sent and delivered, and looks for a [`Decision`]. Connection 0 goes on afterwards;
//! connection 1 is closed, unless the detector goes on to look at the queue
//! ([`PairDetector::watches`]).

use flowstart_units::Time;

use crate::{Acked, Departure, Sent};

use super::answer::Decision;
use super::trains::Trains;
use super::two_flows::TwoFlows;

/// A detector in operation.
#[derive(Clone, Debug)]
pub enum PairDetector {
    /// The published one.
    TwoFlows(Box<TwoFlows>),
    /// That of this project.
    Trains(Box<Trains>),
}

impl PairDetector {
    /// True if both connections open at the same time, false if the second waits for the first.
    #[must_use]
    pub fn opens_both(&self) -> bool {
        // A SYN behind the first train would meet a full buffer.
        matches!(self, Self::Trains(_))
    }

    /// When the next packet of a connection (0 or 1) leaves. The first question says that the
    /// connection is open.
    pub fn departure(&mut self, connection: usize, now: Time) -> Departure {
        match self {
            Self::TwoFlows(detector) => detector.departure(connection, now),
            Self::Trains(detector) => detector.departure(connection, now),
        }
    }

    /// A packet of a connection left.
    pub fn on_sent(&mut self, connection: usize, sent: &Sent) {
        match self {
            Self::TwoFlows(detector) => detector.on_sent(connection, sent),
            Self::Trains(detector) => detector.on_sent(connection, sent),
        }
    }

    /// A packet of a connection was delivered.
    pub fn on_acked(&mut self, connection: usize, acked: &Acked) {
        match self {
            Self::TwoFlows(detector) => detector.on_acked(connection, acked),
            Self::Trains(detector) => detector.on_acked(connection, acked),
        }
    }

    /// The avoidance that went on found out by itself that the queue is shared.
    pub fn on_revoked(&mut self, now: Time) {
        if let Self::Trains(detector) = self {
            detector.on_revoked(now);
        }
    }

    /// When it last saw after its decision that the queue is the flow's own; [`Time::ZERO`] if it
    /// did not.
    #[must_use]
    pub fn confirmed(&self) -> Time {
        match self {
            Self::TwoFlows(_) => Time::ZERO,
            Self::Trains(detector) => detector.confirmed(),
        }
    }

    /// True if it goes on to look at the queue after its decision: connection 1 stays open, and it
    /// wants to hear of the packets of both. What connection 1 could not deliver when a look is
    /// over ([`PairDetector::is_looking`]) is for connection 0 to send.
    #[must_use]
    pub fn watches(&self) -> bool {
        matches!(self, Self::Trains(detector) if detector.watches())
    }

    /// True while it awaits what becomes of packets of connection 1 that it asked for after its
    /// decision.
    #[must_use]
    pub fn is_looking(&self) -> bool {
        matches!(self, Self::Trains(detector) if detector.is_looking())
    }

    /// What it found, once it has; may change if it watches.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::TwoFlows(detector) => detector.decision(),
            Self::Trains(detector) => detector.decision(),
        }
    }
}
