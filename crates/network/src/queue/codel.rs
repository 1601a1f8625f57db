//! CoDel (Nichols and Jacobson 2012, RFC 8289; Linux `sch_codel`): drops or marks at the head when packets have waited too long for too long.

use flowstart_units::{Span, Time};

use super::codel_law::{CodelArithmetic, Control, Law, Source};
use super::fifo::Fifo;
use super::{Constants, Dequeue, Discipline, DropReason, Limit, QueueError, Tally};
use crate::Frame;

/// Constants of CoDel; names in parentheses are those of tc-codel(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct CodelConfig {
    /// Sojourn time that is acceptable for ever; default 5 ms (RFC 8289 section 4.3).
    pub target: Span,
    /// How long packets may wait longer than the target before the first is dropped; default 100 ms (RFC 8289 section 4.3).
    pub interval: Span,
    /// Most packets stored; default 1000 (`limit`).
    pub limit: u64,
    /// Mark ECN-capable packets instead of dropping them; default false (`ecn`).
    pub ecn: bool,
    /// Packets that waited longer are marked whatever the law says; none by default (`ce_threshold`).
    pub mark_threshold: Option<Span>,
    /// No drops while the backlog is at most this many bytes; default 1514, an Ethernet frame.
    pub floor: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux queues count.
    pub overhead: u32,
    /// Whose arithmetic; default Linux's.
    pub arithmetic: CodelArithmetic,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            limit: 1000,
            ecn: false,
            mark_threshold: None,
            floor: 1514,
            overhead: 14,
            arithmetic: CodelArithmetic::default(),
        }
    }
}

impl Constants for CodelConfig {
    type Queue<P: Frame> = Codel<P>;

    fn build<P: Frame>(self, _seed: u64) -> Codel<P> {
        Codel::new(self)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless(self.limit > 0, "CoDel needs room for at least 1 packet")?;
        QueueError::unless(self.interval >= Span::from_micros(2), "CoDel needs an interval, such as \"100 ms\"")
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Packets(&mut self.limit)
    }
}

/// CoDel in operation.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    fifo: Fifo<P>,
    law: Law,
    control: Control,
    limit: u64,
    overhead: u32,
    marked: u64,
}

struct Whole<'a, P>(&'a mut Fifo<P>, u32);

impl<P: Frame> Source<P> for Whole<'_, P> {
    fn pop(&mut self) -> Option<(P, Time)> {
        self.0.pop()
    }

    fn backlog(&self) -> u64 {
        self.0.counted(self.1)
    }
}

impl<P: Frame> Codel<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: CodelConfig) -> Self {
        let CodelConfig { target, interval, limit, ecn, mark_threshold, floor, overhead, arithmetic } = config;
        let law = Law::new(arithmetic, target, interval, floor, ecn, mark_threshold);
        Self { fifo: Fifo::new(), law, control: Control::default(), limit, overhead, marked: 0 }
    }
}

impl<P: Frame> Discipline<P> for Codel<P> {
    // Stores the packet or drops it.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        if self.fifo.packets() < self.limit {
            self.fifo.push(packet, now);
        } else {
            dropped(packet, DropReason::Full);
        }
    }

    // The oldest packet that the law spares.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        let mut source = Whole(&mut self.fifo, self.overhead);
        self.control.dequeue(&self.law, now, &mut source, &mut self.marked, dropped).into()
    }

    #[inline]
    fn tally(&self) -> Tally {
        self.fifo.tally(self.marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use crate::queue::testing::Box1;

    /// Runs a link of one packet per 1.2 ms under arrivals every millisecond (120 % load) and tells when packets are dropped.
    fn overload(config: CodelConfig, packet: Box1, lasting_ms: u64) -> (Vec<u64>, u64) {
        let mut queue = Codel::new(config);
        let mut drops = Vec::new();
        for tick in 0..lasting_ms * 5 {
            let now = Time::from_nanos(tick * 200_000);
            if tick % 5 == 0 {
                queue.enqueue(now, packet, &mut |_, _| panic!("limit"));
            }
            if tick % 6 == 0 {
                queue.dequeue(now, &mut |_, reason| {
                    assert_eq!(reason, DropReason::Early);
                    drops.push(now.as_nanos());
                });
            }
        }
        (drops, queue.marked())
    }

    #[test]
    fn under_120_percent_load_the_drops_follow_the_law_to_the_next_dequeue() {
        let config = CodelConfig { limit: 100_000, arithmetic: CodelArithmetic::Rfc8289, ..CodelConfig::default() };
        let (drops, _) = overload(config, Box1::new(0, 1500), 600);
        let expected_ms = [100.0, 170.71, 228.45, 278.45, 323.17, 363.99, 401.79];
        for (drop, expected) in drops[1..].iter().zip(expected_ms) {
            let after = (drop - drops[0]) as f64 / 1e6;
            assert!(after >= expected && after < expected + 1.2, "{after} {expected}");
        }
    }

    #[test]
    fn capable_packets_are_marked_when_others_would_be_dropped() {
        let config = CodelConfig { limit: 100_000, ecn: true, ..CodelConfig::default() };
        let (drops, marks) = overload(config, Box1::ect(0, 1500), 600);
        let (drops_of_others, no_marks) = overload(config, Box1::new(0, 1500), 600);
        assert_eq!((drops.len(), no_marks), (0, 0));
        assert!(marks >= drops_of_others.len() as u64 && marks > 5);
    }

    #[test]
    fn a_burst_shorter_than_an_interval_is_never_dropped() {
        let mut queue = Codel::new(CodelConfig::default());
        for _ in 0..90 {
            queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| panic!());
        }
        for tick in 0..90 {
            let next = queue.dequeue(Time::from_nanos(tick * 1_000_000), &mut |_, _| panic!());
            assert!(matches!(next, Dequeue::Packet(..)));
        }
    }

    #[test]
    fn a_queue_of_one_packet_is_never_dropped_however_long_it_waits() {
        let mut queue = Codel::new(CodelConfig::default());
        for second in 0..100 {
            let now = |n| Time::ZERO + Span::from_secs(n);
            queue.enqueue(now(second), Box1::new(0, 1500), &mut |_, _| panic!());
            assert!(matches!(queue.dequeue(now(second + 1), &mut |_, _| panic!()), Dequeue::Packet(..)));
        }
    }

    #[test]
    fn the_mark_threshold_marks_what_waited_strictly_longer_in_ticks() {
        let config = CodelConfig { mark_threshold: Some(Span::from_nanos(1024 * 1000)), ..CodelConfig::default() };
        for (ticks, ecn) in [(1000, Ecn::Ect0), (1001, Ecn::Ce)] {
            let mut queue = Codel::new(config);
            queue.enqueue(Time::ZERO, Box1::ect(0, 1500), &mut |_, _| panic!());
            let next = queue.dequeue(Time::from_nanos(ticks * 1024), &mut |_, _| panic!());
            assert!(matches!(next, Dequeue::Packet(packet, _) if packet.ecn() == ecn));
        }
    }
}
