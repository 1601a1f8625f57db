//! What every simulation reports, observers or not.

use flowstart_congestion::StartExit;
use flowstart_congestion::detection::Decision;
use flowstart_network::{Ecn, Packet, packet::Body};
use flowstart_quick_start::router::RouterCounts;
use flowstart_units::{Bytes, Span, Time};

use crate::{FlowId, SessionOutcome};

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Virtual time at the end.
    pub ended: Time,
    /// Events processed.
    pub events: u64,
    /// Data packets and datagrams that left their senders.
    pub data_packets: u64,
    /// One entry per flow, by flow number.
    pub flows: Vec<FlowOutcome>,
    /// One entry per link.
    pub links: Vec<LinkOutcome>,
    /// One entry per session.
    pub sessions: Vec<SessionOutcome>,
}

/// Smoothed round trips after a start's end whose packets are still its doing: the first sends the
/// window that it handed over, the second is the last that hears nothing of what this lost.
const AFTER_START: u64 = 2;

/// What became of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// The group of its config.
    pub group: u32,
    /// When it started (SYN or first datagram).
    pub started: Time,
    /// When its first data packet left; [`Time::NEVER`] if none did.
    pub first_data: Time,
    /// When the receiver had all of a sized transfer; `None` if it did not, or for endless flows.
    pub completed: Option<Time>,
    /// Size of a sized transfer.
    pub size: Option<Bytes>,
    /// Stream bytes the receiving application has read (for datagrams: IP bytes received).
    pub delivered: Bytes,
    /// Data packets that left the sender, retransmissions included.
    pub packets_sent: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Its data packets dropped by links.
    pub dropped: u64,
    /// Those dropped that were sent before the start ended, or within two round trips after that.
    pub dropped_in_start: u64,
    /// Its data packets that reached the receiver with CE.
    pub marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// How its start ended, if it did.
    pub start_exit: Option<StartExit>,
    /// Smoothed RTT at the end; zero if unknown.
    pub srtt: Span,
    /// Smallest RTT; [`Span::MAX`] if unknown.
    pub min_rtt: Span,
    /// cwnd at the end, in packets; 0 for datagrams.
    pub cwnd: u32,
    /// What its detector of fair queuing decided at first, if it has one and it did.
    pub decision: Option<Decision>,
    /// Its latest answer, if that is a later one.
    pub revised: Option<Decision>,
    /// When its avoidance took back for the last time that it has a queue of its own, if it did.
    pub isolation_revoked: Option<Time>,
    /// The flow whose second connection this is.
    pub companion_of: Option<FlowId>,
}

impl FlowOutcome {
    /// A flow of which nothing is known yet but when it starts; [`Time::NEVER`] if it did not.
    #[must_use]
    pub const fn new(group: u32, started: Time, size: Option<Bytes>) -> Self {
        Self {
            group,
            started,
            first_data: Time::NEVER,
            completed: None,
            size,
            delivered: Bytes::ZERO,
            packets_sent: 0,
            retransmitted: 0,
            dropped: 0,
            dropped_in_start: 0,
            marked: 0,
            timeouts: 0,
            recoveries: 0,
            start_exit: None,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            cwnd: 0,
            decision: None,
            revised: None,
            isolation_revoked: None,
            companion_of: None,
        }
    }

    /// The receiver got this packet. One with CE counts if it carries data, so neither ACKs nor
    /// SYNs nor window probes do.
    pub fn count_mark(&mut self, packet: &Packet) {
        let data = match &packet.body {
            Body::Datagram(_) => true,
            Body::Segment(segment) => segment.payload > 0,
            Body::Ack(_) => false,
        };
        self.marked += u64::from(data && packet.ecn == Ecn::Ce);
    }

    /// A link dropped this packet. Only data counts, so neither ACKs nor SYNs nor window probes do;
    /// a segment belongs to the start if it was sent before that ended or within two smoothed round
    /// trips after it.
    pub fn count_drop(&mut self, packet: &Packet) {
        match &packet.body {
            Body::Datagram(_) => self.dropped += 1,
            Body::Segment(segment) if segment.payload > 0 => {
                self.dropped += 1;
                let in_start = self.start_exit.is_none_or(|exit| segment.sent_at <= exit.now + exit.srtt * AFTER_START);
                self.dropped_in_start += u64::from(in_start);
            }
            Body::Segment(_) | Body::Ack(_) => {}
        }
    }
}

/// What a link did.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    /// Packets whose transmission began.
    pub packets: u64,
    /// Their bytes on the wire, link overhead included.
    pub bytes: Bytes,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets lost by the link's loss process.
    pub lost: u64,
    /// Packets that left the queue with CE.
    pub marked: u64,
    /// Longest time a packet waited until its transmission began.
    pub max_sojourn: Span,
    /// Sum of those times over all packets, for the mean.
    pub total_sojourn: Span,
    /// Time the transmitter was busy.
    pub busy: Span,
    /// What its router did with Quick-Start requests; nothing if it does not know them or nobody
    /// could make any.
    pub quick_start: RouterCounts,
    /// Packets still stored at the end.
    pub stored: u64,
}

#[cfg(test)]
mod tests {
    use flowstart_congestion::ExitReason;
    use flowstart_network::packet::{Datagram, Segment};

    use super::*;

    fn segment(sent_at: Time, payload: u32) -> Packet {
        let segment = Segment {
            seq: 0,
            number: 0,
            sent_at,
            unacknowledged: 0,
            payload,
            retransmission: false,
            push: false,
            fin: false,
            cwr: false,
            syn: payload == 0,
            quick_start: Default::default(),
        };
        Packet { flow: 0, bytes: 1500, ecn: Ecn::NotEct, body: Body::Segment(segment) }
    }

    #[test]
    fn a_dropped_syn_is_no_dropped_data_packet() {
        let mut outcome = FlowOutcome::new(0, Time::ZERO, None);
        outcome.count_drop(&segment(Time::ZERO, 0));
        assert_eq!((outcome.dropped, outcome.dropped_in_start), (0, 0));
        outcome.count_drop(&segment(Time::ZERO, 1));
        assert_eq!((outcome.dropped, outcome.dropped_in_start), (1, 1));
    }

    #[test]
    fn a_marked_syn_is_no_marked_data_packet() {
        let mut outcome = FlowOutcome::new(0, Time::ZERO, None);
        let marked = |payload| Packet { ecn: Ecn::Ce, ..segment(Time::ZERO, payload) };
        outcome.count_mark(&marked(0));
        assert_eq!(outcome.marked, 0);
        outcome.count_mark(&marked(1));
        outcome.count_mark(&Packet { ecn: Ecn::Ect0, ..marked(1) });
        assert_eq!(outcome.marked, 1);
    }

    #[test]
    fn a_dropped_segment_belongs_to_the_start_until_two_round_trips_after_it_by_when_it_was_sent() {
        let millis = |n| Time::ZERO + Span::from_millis(n);
        let datagram = Body::Datagram(Datagram { number: 0, sent_at: millis(1) });
        let mut outcome = FlowOutcome::new(0, Time::ZERO, None);
        outcome.count_drop(&segment(millis(5), 1448));
        outcome.start_exit = Some(StartExit {
            now: millis(10),
            reason: ExitReason::Loss,
            cwnd: 10,
            ssthresh: 5,
            in_flight: 10,
            srtt: Span::from_millis(4),
            min_rtt: Span::ZERO,
        });
        // What the window that was handed over sends in two round trips is the start's doing.
        outcome.count_drop(&segment(millis(18), 1448));
        outcome.count_drop(&segment(millis(19), 1448));
        outcome.count_drop(&Packet { body: datagram, ..segment(Time::ZERO, 0) });
        assert_eq!((outcome.dropped, outcome.dropped_in_start), (4, 2));
    }
}
