//! A detector over two connections to the same place that carry one stream: when packets of either
//! leave, what became of them, and in the end what the bottleneck does.
//!
//! Whoever holds the two connections asks [`PairDetector::departure`] before every packet, tells of
//! every packet sent and delivered, and looks for a [`Decision`]. Connection 0 goes on afterwards;
//! connection 1 is closed, unless the detector goes on to look at the queue
//! ([`PairDetector::watches`]).

use alloc::boxed::Box;

use flowstart_units::Time;

use crate::{Acked, CrowdRule, Departure, Sent};

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

    /// When the next packet of a connection (0 or 1) leaves; at once, if that is a time that has
    /// come already. The first question says that the connection is open.
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

    /// Connection 0 has nothing to send, as the application has not written it yet. Whoever holds
    /// the connections says so whenever it finds that.
    pub fn on_exhausted(&mut self, now: Time) {
        if let Self::Trains(detector) = self {
            detector.on_exhausted(now);
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

    /// The avoidance that went on does not use any more that the queue is the flow's own.
    pub fn on_given_up(&mut self) {
        if let Self::Trains(detector) = self {
            detector.on_given_up();
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

    /// If it has decided, and others keep a queue where its packets passed: how far slow start may
    /// still go. May come within a round trip after the decision, and stays.
    #[must_use]
    pub fn crowd(&self) -> Option<CrowdRule> {
        if let Self::Trains(detector) = self { detector.crowd() } else { None }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DetectorConfig, TrainProbeConfig};

    use flowstart_units::Span;

    fn detectors() -> [PairDetector; 2] {
        let two_flows = TwoFlows::new(&DetectorConfig::default(), 52, 1);
        let trains = Trains::new(&TrainProbeConfig::default(), 1500, 1);
        [PairDetector::TwoFlows(Box::new(two_flows)), PairDetector::Trains(Box::new(trains))]
    }

    #[test]
    fn only_trains_need_both_connections_at_once() {
        assert_eq!(detectors().map(|detector| detector.opens_both()), [false, true]);
    }

    #[test]
    fn a_packet_may_leave_when_its_connection_opens_if_the_detector_wants_one() {
        let now = Time::ZERO + Span::from_millis(3);
        let [mut two_flows, mut trains] = detectors();
        let departures = |detector: &mut PairDetector| [0, 1, 2].map(|connection| detector.departure(connection, now));
        assert_eq!(departures(&mut two_flows), [Departure::At(now), Departure::At(now), Departure::Hold]);
        // Lone packets follow later.
        assert_eq!(departures(&mut trains), [Departure::At(now), Departure::Hold, Departure::Hold]);
    }

    #[test]
    fn before_the_answer_there_is_nothing_to_tell() {
        for mut detector in detectors() {
            detector.on_revoked(Time::ZERO);
            assert!(detector.decision().is_none() && !detector.watches() && !detector.is_looking());
            assert_eq!(detector.confirmed(), Time::ZERO);
        }
    }

    #[test]
    fn both_hear_of_packets_until_they_know() {
        let [mut two_flows, mut trains] = detectors();
        for (detector, packets) in [(&mut two_flows, 1), (&mut trains, 8)] {
            detector.departure(0, Time::ZERO);
            for number in 0..packets {
                let sent = Sent { now: Time::ZERO, number, seq: 0, bytes: 1448, in_flight: 1, retransmission: false };
                detector.on_sent(0, &sent);
            }
            // They send no more by themselves at once.
            assert_ne!(detector.departure(0, Time::ZERO), Departure::At(Time::ZERO));
        }
        // After eleven seconds both give up.
        let now = Time::ZERO + Span::from_secs(11);
        let acked = Acked { now, number: 0, bytes: 1448, sent_at: Time::ZERO, rtt: None, retransmitted: false };
        two_flows.on_acked(0, &acked);
        assert_eq!(two_flows.decision().map(|decision| decision.now), Some(now));
        assert!(trains.decision().is_none());
        trains.on_acked(0, &acked);
        assert_eq!(trains.decision().map(|decision| decision.now), Some(now));
    }
}
