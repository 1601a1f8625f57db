//! The scoreboard: one record per segment between the cumulative acknowledgement and the next new
//! byte.
//!
//! Records live in a ring in stream order. Those in flight are also linked in the order they were
//! sent, which is the order RACK judges them in; what is lost and waits for its retransmission
//! stands in a queue; what was selectively acknowledged stands in a list of ranges. So an ACK costs
//! what it changes, whatever the window holds.

#[cfg(test)]
mod check;
mod deliveries;
mod losses;
#[cfg(test)]
mod model;
mod record;

use std::collections::VecDeque;

use flowstart_units::{Span, Time};

pub(super) use deliveries::AckContext;
pub(super) use record::Departing;
use record::{APP_LIMITED, EVER_RETRANSMITTED, LINKED, LOST, PUSH, RETRANSMITTED, Record, SACKED, packed, widen};

/// The newest delivered packet (RACK's point).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Newest {
    /// Its transmission number plus one; 0 before the first delivery.
    after: u64,
    /// Age of the packet delivered last.
    pub(in crate::sender) rtt: Span,
    /// Moved since losses were looked for.
    pub(in crate::sender) advanced: bool,
}

/// A segment to be sent again.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Repair {
    pub(in crate::sender) id: u32,
    pub(in crate::sender) seq: u64,
    pub(in crate::sender) payload: u32,
    pub(in crate::sender) push: bool,
}

/// The scoreboard.
#[derive(Debug, Default)]
pub(in crate::sender) struct Scoreboard {
    /// Records by id modulo its length, a power of two (or empty).
    ring: Vec<Record>,
    /// Id of the first record.
    first: u32,
    /// Records.
    len: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// len + retransmitted - sacked - lost.
    in_flight: u32,
    /// Records that were sent more than once.
    repeated: u32,
    /// Oldest and newest by time of sending, if `linked` > 0.
    head: u32,
    tail: u32,
    linked: u32,
    /// The latest sent of those linked that left before RACK's point.
    late: Option<u32>,
    newest: Newest,
    /// A retransmission was found lost since it was last asked.
    lost_retransmission: bool,
    /// Payload of a full segment, for guessing where a byte lies.
    mss: u32,
    /// Times a packet was deemed lost.
    total_lost: u64,
    /// Lost segments to be sent again, ascending; entries that are no longer so are skipped.
    repairs: VecDeque<u32>,
    /// Ranges selectively acknowledged: ascending, disjoint, not adjacent, of whole segments.
    ranges: VecDeque<(u64, u64)>,
}

/// Records a ring begins with.
const FIRST_CAPACITY: usize = 16;

impl Scoreboard {
    pub(in crate::sender) fn new(mss: u32) -> Self {
        Self { mss: mss.max(1), ..Self::default() }
    }

    /// Packets sent and not cumulatively acknowledged.
    #[inline]
    pub(in crate::sender) fn packets_out(&self) -> u32 {
        self.len
    }

    /// Packets selectively acknowledged.
    #[inline]
    pub(in crate::sender) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Packets deemed lost (their retransmissions may be in flight).
    #[inline]
    pub(in crate::sender) fn lost(&self) -> u32 {
        self.lost
    }

    /// Retransmissions in flight.
    #[inline]
    pub(in crate::sender) fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Packets in flight (RFC 6675 calls it pipe).
    #[inline]
    pub(in crate::sender) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Must follow every change of a counter.
    fn recount(&mut self) {
        self.in_flight = (self.len + self.retransmitted).saturating_sub(self.sacked + self.lost);
    }

    /// True if every record was sent once and none is delivered or lost: then they are linked in
    /// stream order.
    #[inline]
    pub(in crate::sender) fn is_plain(&self) -> bool {
        self.sacked | self.lost | self.repeated == 0
    }

    /// False if nothing waits for its repair: all that is lost was sent again. (What is queued may
    /// have been delivered meanwhile.)
    #[inline]
    pub(in crate::sender) fn may_await_repair(&self) -> bool {
        self.lost > 0 && !self.repairs.is_empty()
    }

    /// True if something may wait for its repair.
    #[inline]
    pub(in crate::sender) fn has_repairs(&self) -> bool {
        self.lost > 0
    }

    /// Times a packet was deemed lost.
    pub(in crate::sender) fn total_lost(&self) -> u64 {
        self.total_lost
    }

    /// End of the highest range selectively acknowledged; 0 without one.
    #[inline]
    pub(in crate::sender) fn highest_sacked(&self) -> u64 {
        self.ranges.back().map_or(0, |range| range.1)
    }

    /// RACK's point.
    #[inline]
    pub(in crate::sender) fn newest(&self) -> &Newest {
        &self.newest
    }

    /// Losses must be looked for again.
    pub(in crate::sender) fn reexamine(&mut self) {
        self.newest.advanced = true;
    }

    /// True once after a retransmission was found lost.
    pub(in crate::sender) fn take_lost_retransmission(&mut self) -> bool {
        std::mem::take(&mut self.lost_retransmission)
    }

    /// When the oldest outstanding segment was last sent.
    #[inline]
    pub(in crate::sender) fn head_sent_at(&self) -> Option<Time> {
        (self.len > 0).then(|| self.record(self.first).sent_at)
    }

    /// True if a retransmission is in flight or the oldest segment was sent more than once (Linux
    /// `tcp_any_retrans_done`).
    pub(in crate::sender) fn any_retransmission(&self) -> bool {
        self.retransmitted > 0 || (self.len > 0 && self.record(self.first).has(EVER_RETRANSMITTED))
    }

    #[inline]
    fn slot(&self, id: u32) -> usize {
        id as usize & (self.ring.len() - 1)
    }

    #[inline]
    fn record(&self, id: u32) -> &Record {
        &self.ring[self.slot(id)]
    }

    #[inline]
    fn record_mut(&mut self, id: u32) -> &mut Record {
        let slot = self.slot(id);
        &mut self.ring[slot]
    }

    /// Position of an id from the oldest record.
    #[inline]
    fn position(&self, id: u32) -> u32 {
        id.wrapping_sub(self.first)
    }

    #[cold]
    fn enlarge(&mut self) {
        let capacity = (self.ring.len() * 2).max(FIRST_CAPACITY);
        let mut ring = vec![Record::default(); capacity];
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            ring[id as usize & (capacity - 1)] = *self.record(id);
        }
        self.ring = ring;
    }

    /// A new segment leaves.
    #[inline(always)]
    pub(in crate::sender) fn push(&mut self, departing: &Departing, seq: u64, payload: u16, push: bool) {
        if self.len as usize == self.ring.len() {
            self.enlarge();
        }
        let id = self.first.wrapping_add(self.len);
        let tail = self.tail;
        if self.linked > 0 {
            self.record_mut(tail).next = id;
        } else {
            self.head = id;
        }
        let app_limited = if departing.app_limited { APP_LIMITED } else { 0 };
        *self.record_mut(id) = Record {
            seq,
            sent_at: departing.now,
            send_elapsed: packed(departing.now.since(departing.first_sent_at)),
            delivered_elapsed: packed(departing.now.since(departing.delivered_at)),
            delivered: departing.delivered as u32,
            number: departing.number as u32,
            previous: tail,
            next: id,
            payload,
            flags: LINKED | app_limited | if push { PUSH } else { 0 },
        };
        self.tail = id;
        self.linked += 1;
        self.len += 1;
        self.in_flight += 1;
    }

    /// A segment leaves again. A `probe` of one that is not lost is the same packet in flight
    /// (Linux `__tcp_retransmit_skb`, which counts nothing; `tcp_retransmit_skb` does).
    pub(in crate::sender) fn resend(&mut self, departing: &Departing, id: u32, probe: bool) {
        self.unlink(id);
        let record = self.record_mut(id);
        departing.stamp(record);
        let ever = record.has(EVER_RETRANSMITTED);
        let already = record.has(RETRANSMITTED) || (probe && !record.has(LOST));
        record.flags |= if already { EVER_RETRANSMITTED } else { RETRANSMITTED | EVER_RETRANSMITTED };
        self.retransmitted += u32::from(!already);
        self.repeated += u32::from(!ever);
        if self.repairs.front() == Some(&id) {
            self.repairs.pop_front();
        }
        self.link(id);
        self.recount();
    }

    fn repair(&self, id: u32) -> Repair {
        let record = self.record(id);
        Repair { id, seq: record.seq, payload: u32::from(record.payload), push: record.has(PUSH) }
    }

    /// The lowest lost segment that was not sent again.
    #[inline]
    pub(in crate::sender) fn next_repair(&mut self) -> Option<Repair> {
        while let Some(&id) = self.repairs.front() {
            if self.position(id) < self.len && self.record(id).flags & (LOST | RETRANSMITTED) == LOST {
                return Some(self.repair(id));
            }
            self.repairs.pop_front();
        }
        None
    }

    /// The last segment that was not delivered, for a tail loss probe.
    pub(in crate::sender) fn last(&self) -> Option<Repair> {
        let ids = (0..self.len).rev().map(|position| self.first.wrapping_add(position));
        ids.into_iter().find(|id| !self.record(*id).has(SACKED)).map(|id| self.repair(id))
    }

    /// True if `id` is the oldest outstanding segment.
    pub(in crate::sender) fn is_first(&self, id: u32) -> bool {
        id == self.first
    }

    // --- order of sending ---

    #[inline]
    fn link(&mut self, id: u32) {
        let tail = self.tail;
        if self.linked > 0 {
            self.record_mut(tail).next = id;
        } else {
            self.head = id;
        }
        let record = self.record_mut(id);
        record.previous = tail;
        record.flags |= LINKED;
        self.tail = id;
        self.linked += 1;
    }

    #[inline]
    fn unlink(&mut self, id: u32) {
        let record = self.record_mut(id);
        if !record.has(LINKED) {
            return;
        }
        record.flags &= !LINKED;
        let Record { previous, next, .. } = *record;
        let (is_head, is_tail) = (id == self.head, id == self.tail);
        if self.late == Some(id) {
            self.late = (!is_head).then_some(previous);
        }
        if is_head {
            self.head = next;
        } else {
            self.record_mut(previous).next = next;
        }
        if is_tail {
            self.tail = previous;
        } else {
            self.record_mut(next).previous = previous;
        }
        self.linked -= 1;
    }

    /// The full transmission number of a record.
    #[inline]
    fn number(record: &Record, sent: u64) -> u64 {
        widen(record.number, sent)
    }

    /// The latest sent of the linked records that left before transmission `number`.
    fn find_late(&self, number: u64, sent: u64) -> Option<u32> {
        let mut id = self.tail;
        for _ in 0..self.linked {
            let record = self.record(id);
            if Self::number(record, sent) < number {
                return Some(id);
            }
            id = record.previous;
        }
        None
    }
}
