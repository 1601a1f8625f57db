//! CoDel (Nichols and Jacobson 2012, RFC 8289; Linux `sch_codel`): drops or marks at the head when
//! packets have waited too long for too long.

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
    /// How long packets may wait longer than the target before the first is dropped; default 100 ms
    /// (RFC 8289 section 4.3).
    pub interval: Span,
    /// Most packets stored; default 1000 (`limit`).
    pub limit: u64,
    /// Mark ECN-capable packets instead of dropping them; default false (`ecn`).
    pub ecn: bool,
    /// Packets that waited longer are marked whatever the law says; none by default
    /// (`ce_threshold`).
    pub mark_threshold: Option<Span>,
    /// No drops while the backlog is at most this many bytes; default 1514, an Ethernet frame.
    pub floor: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
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

    fn overhead(&self) -> u32 {
        self.overhead
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
mod tests;
