//! The scoreboard: one record per segment between the cumulative acknowledgement and the next new byte.
//!
//! Records live in a ring in stream order. Those in flight are also linked in the order they were sent, which is the order RACK judges them
//! in; what is lost and waits for its retransmission stands in a queue; what was selectively acknowledged stands in a list of ranges. So
//! an ACK costs what it changes, whatever the window holds.

use std::collections::VecDeque;

use flowstart_congestion::Acked;
use flowstart_units::{Span, Time};

use super::delivery::{Delivery, Flight};

/// Delivered out of order (selectively acknowledged).
const SACKED: u8 = 1;
/// Deemed lost; the last transmission if `RETRANSMITTED` is not set, else the one before it.
const LOST: u8 = 2;
/// A retransmission is in flight.
const RETRANSMITTED: u8 = 4;
/// Sent more than once.
const EVER_RETRANSMITTED: u8 = 8;
/// Ends a write.
const PUSH: u8 = 16;
/// Sent while the application, not the network, was the limit.
const APP_LIMITED: u8 = 32;
/// In the list of packets in flight by time of sending.
const LINKED: u8 = 64;

/// An interval too long for a record's 32 bits of nanoseconds (4.3 s).
const TOO_LONG: u32 = u32::MAX;

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// First byte.
    seq: u64,
    /// When the last transmission left.
    sent_at: Time,
    /// From the first packet of its flight to this one, in nanoseconds (delivery rate).
    send_elapsed: u32,
    /// From the last delivery before it was sent, in nanoseconds (delivery rate).
    delivered_elapsed: u32,
    /// Packets delivered when it was sent, lower 32 bits.
    delivered: u32,
    /// Transmission number, lower 32 bits.
    number: u32,
    /// Neighbours in the order of sending (ids).
    previous: u32,
    next: u32,
    payload: u16,
    flags: u8,
}

impl Record {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.payload)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// What the delivery rate needs, given the packets delivered by now.
    #[inline]
    fn flight(&self, delivered: u64) -> Flight {
        Flight {
            sent_at: self.sent_at,
            send_elapsed: interval(self.send_elapsed),
            delivered_elapsed: interval(self.delivered_elapsed),
            prior_delivered: widen(self.delivered, delivered),
            app_limited: self.has(APP_LIMITED),
        }
    }
}

/// What the scoreboard is told of a packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departing {
    pub(super) now: Time,
    /// Transmission number.
    pub(super) number: u64,
    /// When the first packet of this flight left.
    pub(super) first_sent_at: Time,
    /// When a packet was delivered last.
    pub(super) delivered_at: Time,
    /// Packets delivered so far.
    pub(super) delivered: u64,
    pub(super) app_limited: bool,
}

impl Departing {
    fn stamp(&self, record: &mut Record) {
        let short = |span: Span| u32::try_from(span.as_nanos()).unwrap_or(TOO_LONG);
        record.sent_at = self.now;
        record.number = self.number as u32;
        record.send_elapsed = short(self.now.since(self.first_sent_at));
        record.delivered_elapsed = short(self.now.since(self.delivered_at));
        record.delivered = self.delivered as u32;
        record.flags = (record.flags & !APP_LIMITED) | if self.app_limited { APP_LIMITED } else { 0 };
    }
}

/// What an ACK's processing needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    pub(super) now: Time,
    /// Transmissions so far.
    pub(super) sent: u64,
    /// Packets delivered before this ACK.
    pub(super) delivered: u64,
    pub(super) min_rtt: Span,
    /// The timestamp the ACK echoes.
    pub(super) echo: Time,
    /// The controller wants to hear of every packet.
    pub(super) collect: bool,
    /// F-RTO's and recovery's end.
    pub(super) high_seq: u64,
    /// Highest selectively acknowledged byte before this ACK.
    pub(super) highest_sacked: u64,
}

/// The newest delivered packet (RACK's point).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newest {
    /// Its transmission number plus one; 0 before the first delivery.
    after: u64,
    /// Age of the packet delivered last.
    pub(super) rtt: Span,
    /// Moved since losses were looked for.
    pub(super) advanced: bool,
}

/// A segment to be sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub(super) id: u32,
    pub(super) seq: u64,
    pub(super) payload: u32,
    pub(super) push: bool,
}

/// What [`Scoreboard::acknowledge_plain`] found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub(super) packets: u32,
    pub(super) bytes: u64,
    /// When the oldest of them left.
    pub(super) earliest: Time,
    /// How the newest left.
    pub(super) newest: Flight,
}

/// What the search for losses found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// Packets newly deemed lost.
    pub(super) packets: u32,
    /// Longest time until a packet that is only late so far would be lost; `None` if there is none.
    pub(super) wait: Option<Span>,
}

/// The scoreboard.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
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
    pub(super) fn new(mss: u32) -> Self {
        Self { mss: mss.max(1), ..Self::default() }
    }

    /// Packets sent and not cumulatively acknowledged.
    #[inline]
    pub(super) fn packets_out(&self) -> u32 {
        self.len
    }

    /// Packets selectively acknowledged.
    #[inline]
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Packets deemed lost (their retransmissions may be in flight).
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Retransmissions in flight.
    #[inline]
    pub(super) fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Packets in flight (RFC 6675 calls it pipe).
    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Must follow every change of a counter.
    fn recount(&mut self) {
        self.in_flight = (self.len + self.retransmitted).saturating_sub(self.sacked + self.lost);
    }

    /// True if every record was sent once and none is delivered or lost: then they are linked in stream order.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.sacked | self.lost | self.repeated == 0
    }

    /// True if something may wait for its repair.
    #[inline]
    pub(super) fn has_repairs(&self) -> bool {
        self.lost > 0
    }

    /// Times a packet was deemed lost.
    pub(super) fn total_lost(&self) -> u64 {
        self.total_lost
    }

    /// End of the highest range selectively acknowledged; 0 without one.
    #[inline]
    pub(super) fn highest_sacked(&self) -> u64 {
        self.ranges.back().map_or(0, |range| range.1)
    }

    /// RACK's point.
    #[inline]
    pub(super) fn newest(&self) -> &Newest {
        &self.newest
    }

    /// Losses must be looked for again.
    pub(super) fn reexamine(&mut self) {
        self.newest.advanced = true;
    }

    /// True once after a retransmission was found lost.
    pub(super) fn take_lost_retransmission(&mut self) -> bool {
        std::mem::take(&mut self.lost_retransmission)
    }

    /// When the oldest outstanding segment was last sent.
    #[inline]
    pub(super) fn head_sent_at(&self) -> Option<Time> {
        (self.len > 0).then(|| self.record(self.first).sent_at)
    }

    /// True if a retransmission is in flight or the oldest segment was sent more than once (Linux `tcp_any_retrans_done`).
    pub(super) fn any_retransmission(&self) -> bool {
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
    pub(super) fn push(&mut self, departing: &Departing, seq: u64, payload: u16, push: bool) {
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
        let short = |span: Span| u32::try_from(span.as_nanos()).unwrap_or(TOO_LONG);
        let app_limited = if departing.app_limited { APP_LIMITED } else { 0 };
        *self.record_mut(id) = Record {
            seq,
            sent_at: departing.now,
            send_elapsed: short(departing.now.since(departing.first_sent_at)),
            delivered_elapsed: short(departing.now.since(departing.delivered_at)),
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

    /// A segment leaves again.
    pub(super) fn resend(&mut self, departing: &Departing, id: u32) {
        self.unlink(id);
        let record = self.record_mut(id);
        departing.stamp(record);
        let (already, ever) = (record.has(RETRANSMITTED), record.has(EVER_RETRANSMITTED));
        record.flags |= RETRANSMITTED | EVER_RETRANSMITTED;
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
    pub(super) fn next_repair(&mut self) -> Option<Repair> {
        while let Some(&id) = self.repairs.front() {
            if self.position(id) < self.len && self.record(id).flags & (LOST | RETRANSMITTED) == LOST {
                return Some(self.repair(id));
            }
            self.repairs.pop_front();
        }
        None
    }

    /// The last segment that was not delivered, for a tail loss probe.
    pub(super) fn last(&self) -> Option<Repair> {
        let ids = (0..self.len).rev().map(|position| self.first.wrapping_add(position));
        ids.into_iter().find(|id| !self.record(*id).has(SACKED)).map(|id| self.repair(id))
    }

    /// True if `id` is the oldest outstanding segment.
    pub(super) fn is_first(&self, id: u32) -> bool {
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

    // --- delivery ---

    /// Cumulative acknowledgement of everything below `ack`.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        ack: u64,
        context: &AckContext,
        delivery: &mut Delivery,
        packets: &mut Vec<Acked>,
    ) {
        while self.len > 0 {
            let id = self.first;
            let record = *self.record(id);
            if record.end() > ack {
                break;
            }
            if record.has(SACKED) {
                self.sacked -= 1;
            } else {
                self.deliver(id, false, context, delivery, packets);
            }
            delivery.cumulative += 1;
            self.repeated -= u32::from(record.has(EVER_RETRANSMITTED));
            self.first = self.first.wrapping_add(1);
            self.len -= 1;
        }
        self.recount();
        while let Some(range) = self.ranges.front_mut() {
            if range.1 > ack {
                range.0 = range.0.max(ack);
                break;
            }
            self.ranges.pop_front();
        }
    }

    /// [`acknowledge`](Self::acknowledge) for the usual case: the scoreboard [is plain](Self::is_plain). `None` if no segment is covered.
    #[inline]
    pub(super) fn acknowledge_plain(&mut self, now: Time, ack: u64, sent: u64, delivered: u64) -> Option<Plain> {
        let mask = self.ring.len().wrapping_sub(1);
        let (mut id, mut left, mut bytes) = (self.first, self.len, 0);
        let mut earliest = Time::ZERO;
        let mut last = None;
        while left > 0 {
            let record = &self.ring[id as usize & mask];
            if record.end() > ack {
                break;
            }
            if left == self.len {
                earliest = record.sent_at;
            }
            bytes += u64::from(record.payload);
            last = Some(record);
            id = id.wrapping_add(1);
            left -= 1;
        }
        let record = last?;
        let number = Self::number(record, sent);
        let plain = Plain { packets: self.len - left, bytes, earliest, newest: record.flight(delivered) };
        self.newest.rtt = now.since(record.sent_at);
        self.newest.advanced = true;
        if number >= self.newest.after {
            self.newest.after = number + 1;
            self.late = None;
        } else if self.late.is_some_and(|late| self.position(late) < plain.packets) {
            self.late = None;
        }
        (self.first, self.len, self.linked, self.in_flight, self.head) = (id, left, left, left, id);
        Some(plain)
    }

    /// A record was delivered for the first time.
    fn deliver(
        &mut self,
        id: u32,
        by_sack: bool,
        context: &AckContext,
        delivery: &mut Delivery,
        packets: &mut Vec<Acked>,
    ) {
        let record = *self.record(id);
        let number = Self::number(&record, context.sent);
        let age = context.now.since(record.sent_at);
        // What was delivered may be the original of a retransmission: then it tells nothing about time (RFC 8985 section 6.2 step 2). An ACK
        // that does not advance echoes an older segment's timestamp, so it is judged by the round-trip time alone.
        let original =
            record.has(EVER_RETRANSMITTED) && (age < context.min_rtt || (!by_sack && context.echo < record.sent_at));
        if !original {
            self.newest.rtt = age;
            self.newest.advanced = true;
            if number >= self.newest.after {
                self.newest.after = number + 1;
                self.late = if record.has(LINKED) {
                    (id != self.head).then_some(record.previous)
                } else {
                    self.find_late(number, context.sent)
                };
            }
        }
        self.unlink(id);
        self.lost -= u32::from(record.has(LOST));
        self.retransmitted -= u32::from(record.has(RETRANSMITTED));
        if by_sack {
            let kept = record.flags & (EVER_RETRANSMITTED | PUSH | APP_LIMITED);
            self.record_mut(id).flags = kept | SACKED;
            self.sacked += 1;
        }
        delivery.packets += 1;
        delivery.bytes += u64::from(record.payload);
        let ever = record.has(EVER_RETRANSMITTED);
        if ever {
            delivery.retransmitted_acked |= !by_sack;
        } else {
            delivery.sample(record.sent_at, by_sack);
            delivery.original_below_high |= record.end() <= context.high_seq;
            let highest = if by_sack { self.highest_sacked() } else { context.highest_sacked };
            if record.seq < highest {
                delivery.reordered_from = delivery.reordered_from.min(record.seq);
            }
        }
        delivery.take_newest(number, ever, &record.flight(context.delivered));
        if context.collect {
            packets.push(Acked {
                now: context.now,
                number,
                bytes: u32::from(record.payload),
                sent_at: record.sent_at,
                rtt: None,
                retransmitted: ever,
            });
        }
    }

    /// Records that begin below `seq`.
    fn below(&self, seq: u64) -> u32 {
        if self.len == 0 {
            return 0;
        }
        let offset = seq.saturating_sub(self.record(self.first).seq);
        // Nearly all segments are full ones: divide, and search only if that was wrong.
        let guess = match u32::try_from(offset) {
            Ok(offset) => offset / self.mss,
            Err(_) => u32::try_from(offset / u64::from(self.mss)).unwrap_or(u32::MAX),
        };
        if guess < self.len && self.record(self.first.wrapping_add(guess)).seq == seq {
            return guess;
        }
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.record(self.first.wrapping_add(middle)).seq < seq {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Selective acknowledgement of `start..end`, which lies between the cumulative acknowledgement and the next new byte.
    pub(super) fn sack(
        &mut self,
        start: u64,
        end: u64,
        context: &AckContext,
        delivery: &mut Delivery,
        packets: &mut Vec<Acked>,
    ) {
        // Ranges come again and again; only what is new costs anything.
        let mut at = match self.ranges.back() {
            None => 0,
            Some(last) if start > last.1 => self.ranges.len(),
            Some(last) if start >= last.0 => self.ranges.len() - 1,
            Some(_) => self.ranges.partition_point(|range| range.1 < start),
        };
        if let Some(range) = self.ranges.get(at)
            && range.0 <= start
            && end <= range.1
        {
            return;
        }
        // Whole segments only.
        let mut position = self.below(start);
        let mut limit = self.below(end);
        if limit > 0 && self.record(self.first.wrapping_add(limit - 1)).end() > end {
            limit -= 1;
        }
        if position >= limit {
            return;
        }
        let mut merged =
            (self.record(self.first.wrapping_add(position)).seq, self.record(self.first.wrapping_add(limit - 1)).end());
        while self.ranges.get(at).is_some_and(|range| range.1 < merged.0) {
            at += 1;
        }
        let mut after = at;
        while let Some(&range) = self.ranges.get(after)
            && range.0 <= merged.1
        {
            let upto = if range.0 <= merged.0 { position } else { self.below(range.0).min(limit) };
            self.deliver_span(position, upto, context, delivery, packets);
            position = position.max(if range.1 <= merged.0 { position } else { self.below(range.1).min(limit) });
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            after += 1;
        }
        self.deliver_span(position, limit, context, delivery, packets);
        self.recount();
        match after - at {
            0 => self.ranges.insert(at, merged),
            1 => self.ranges[at] = merged,
            _ => {
                self.ranges[at] = merged;
                self.ranges.drain(at + 1..after);
            }
        }
    }

    fn deliver_span(
        &mut self,
        from: u32,
        to: u32,
        context: &AckContext,
        delivery: &mut Delivery,
        packets: &mut Vec<Acked>,
    ) {
        for position in from..to {
            let id = self.first.wrapping_add(position);
            if !self.record(id).has(SACKED) {
                self.deliver(id, true, context, delivery, packets);
                delivery.sacked += 1;
            }
        }
    }

    // --- losses ---

    /// Deems a record lost. Returns false if it was delivered, or lost before and not sent again.
    fn mark_lost(&mut self, id: u32) -> bool {
        let record = self.record_mut(id);
        if record.has(SACKED) || record.flags & (LOST | RETRANSMITTED) == LOST {
            return false;
        }
        let first_time = !record.has(LOST);
        let again = record.has(RETRANSMITTED);
        record.flags = (record.flags | LOST) & !RETRANSMITTED;
        self.lost += u32::from(first_time);
        self.retransmitted -= u32::from(again);
        self.lost_retransmission |= again;
        self.total_lost += 1;
        self.unlink(id);
        self.queue_repair(id);
        true
    }

    /// Puts a lost record into the queue of repairs, which is in stream order. Losses are found nearly in that order.
    fn queue_repair(&mut self, id: u32) {
        let first = self.first;
        let live = |queued: u32| queued.wrapping_sub(first);
        // Entries below the oldest record are done with; they must not confuse the order.
        while self.repairs.front().is_some_and(|front| live(*front) >= self.len) {
            self.repairs.pop_front();
        }
        match self.repairs.back() {
            Some(back) if live(*back) >= live(id) => {
                let at = self.repairs.partition_point(|queued| live(*queued) < live(id));
                if self.repairs.get(at) != Some(&id) {
                    self.repairs.insert(at, id);
                }
            }
            _ => self.repairs.push_back(id),
        }
    }

    /// RACK: every packet that left before the newest delivered one and is older than its round trip plus `window` is lost
    /// (RFC 8985 section 6.2 step 5).
    #[inline]
    pub(super) fn detect(&mut self, now: Time, window: Span) -> Losses {
        self.newest.advanced = false;
        let mut losses = Losses::default();
        let limit = self.newest.rtt + window;
        while self.late.is_some() {
            let id = self.head;
            if now.since(self.record(id).sent_at) < limit {
                break;
            }
            losses.packets += u32::from(self.mark_lost(id));
        }
        self.recount();
        losses.wait = self.late.map(|id| limit - now.since(self.record(id).sent_at));
        losses
    }

    /// Deems the oldest outstanding segment lost if it is not yet (NewReno). Returns the packets newly lost.
    pub(super) fn lose_first(&mut self) -> u32 {
        if self.len == 0 || self.record(self.first).has(LOST) {
            return 0;
        }
        let lost = u32::from(self.mark_lost(self.first));
        self.recount();
        lost
    }

    /// The retransmission timer expired: the oldest segment is lost, others if they are older than a round trip (Linux
    /// `tcp_timeout_mark_lost`). If the oldest had been selectively acknowledged the receiver threw it away, and all such
    /// acknowledgements are void (RFC 2018 section 8).
    pub(super) fn lose_on_timeout(&mut self, now: Time) -> u32 {
        if self.len == 0 {
            return 0;
        }
        let reneged = self.record(self.first).has(SACKED);
        if reneged {
            self.forget_sacks();
        }
        let mut packets = 0;
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            if position == 0 || reneged || now.since(self.record(id).sent_at) >= self.newest.rtt {
                packets += u32::from(self.mark_lost(id));
            }
        }
        self.recount();
        packets
    }

    fn forget_sacks(&mut self) {
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            self.record_mut(id).flags &= !SACKED;
        }
        self.sacked = 0;
        self.ranges.clear();
    }

    /// The losses were none: what is marked lost counts as in flight again.
    pub(super) fn unmark_lost(&mut self) {
        if self.lost == 0 {
            return;
        }
        self.repairs.clear();
        self.lost = 0;
        let mut linked: Vec<u32> = Vec::with_capacity(self.len as usize);
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            let record = self.record_mut(id);
            record.flags &= !(LOST | LINKED);
            if !record.has(SACKED) {
                linked.push(id);
            }
        }
        // Numbers count transmissions, so their order is the order of sending; relative to the newest, wrapping does no harm.
        let newest = self.newest.after as u32;
        linked.sort_unstable_by_key(|id| self.record(*id).number.wrapping_sub(newest) as i32);
        self.linked = 0;
        self.late = None;
        for id in linked {
            self.link(id);
            if (self.record(id).number.wrapping_sub(newest) as i32) < -1 {
                self.late = Some(id);
            }
        }
        self.recount();
    }

    // --- counting duplicate ACKs instead of ranges (RFC 6582; Linux calls it emulated SACK) ---

    /// A duplicate ACK: some packet was delivered. Returns the packets counted as delivered.
    pub(super) fn count_duplicate_ack(&mut self) -> u32 {
        let holes = self.lost.max(1).min(self.len);
        let room = self.len.saturating_sub(holes).saturating_sub(self.sacked);
        let counted = room.min(1);
        self.sacked += counted;
        self.recount();
        counted
    }

    /// A cumulative acknowledgement of `acked` packets takes back the duplicates counted for them. Returns the packets it newly delivered.
    pub(super) fn uncount_duplicate_acks(&mut self, acked: u32) -> u32 {
        let delivered = acked.saturating_sub(self.sacked).max(1);
        self.sacked = self.sacked.saturating_sub(acked.saturating_sub(1)).min(self.len.saturating_sub(self.lost));
        self.recount();
        delivered
    }

    /// Forgets counted duplicates.
    pub(super) fn reset_duplicate_acks(&mut self) {
        self.sacked = 0;
        self.recount();
    }
}

/// The number at most `reference` whose lower 32 bits are `low`.
#[inline]
fn widen(low: u32, reference: u64) -> u64 {
    reference - u64::from((reference as u32).wrapping_sub(low))
}

#[inline]
fn interval(nanos: u32) -> Option<Span> {
    (nanos != TOO_LONG).then(|| Span::from_nanos(u64::from(nanos)))
}

#[cfg(test)]
impl Scoreboard {
    /// Recounts everything from the records. `una` and `next` delimit the stream outstanding, `sent` counts transmissions.
    pub(super) fn check(&self, una: u64, next: u64, sent: u64, with_sacks: bool) {
        let ids: Vec<u32> = (0..self.len).map(|position| self.first.wrapping_add(position)).collect();
        let count = |test: &dyn Fn(&Record) -> bool| ids.iter().filter(|id| test(self.record(**id))).count() as u32;
        assert_eq!(self.lost, count(&|r| r.has(LOST)), "lost");
        assert_eq!(self.retransmitted, count(&|r| r.has(RETRANSMITTED)), "retransmitted");
        assert_eq!(self.repeated, count(&|r| r.has(EVER_RETRANSMITTED)), "repeated");
        assert_eq!(self.in_flight + self.sacked + self.lost, self.len + self.retransmitted, "in flight");
        // Segments join up without gap or overlap, from una (which may lie inside the first one) to next.
        let mut at = ids.first().map_or(una, |id| self.record(*id).seq);
        assert!(at <= una, "una");
        for id in &ids {
            assert_eq!(self.record(*id).seq, at);
            at = self.record(*id).end();
        }
        assert_eq!(at, next, "next");
        if with_sacks {
            assert_eq!(self.sacked, count(&|r| r.has(SACKED)), "sacked");
            let mut ranges: Vec<(u64, u64)> = Vec::new();
            for id in &ids {
                let record = self.record(*id);
                if record.has(SACKED) {
                    match ranges.last_mut() {
                        Some(last) if last.1 == record.seq => last.1 = record.end(),
                        _ => ranges.push((record.seq, record.end())),
                    }
                }
            }
            if let Some(first) = ranges.first_mut() {
                first.0 = first.0.max(una);
            }
            assert_eq!(Vec::from(self.ranges.clone()), ranges, "ranges");
        }
        // In flight once or twice: neither delivered nor lost, or sent again. Those are linked, in the order they left.
        let linked = |r: &Record| !r.has(SACKED) && (!r.has(LOST) || r.has(RETRANSMITTED));
        assert_eq!(self.linked, count(&linked), "linked");
        let mut id = self.head;
        let mut before = None;
        let mut late = None;
        for step in 0..self.linked {
            let record = self.record(id);
            assert!(record.has(LINKED) && linked(record));
            let number = Self::number(record, sent);
            assert!(before.is_none_or(|b| b < number), "order of sending");
            if number + 1 < self.newest.after {
                late = Some(id);
            }
            before = Some(number);
            if step + 1 < self.linked {
                id = record.next;
            }
        }
        if self.linked > 0 {
            assert_eq!(id, self.tail);
        }
        assert_eq!(self.late, late, "latest of those sent before RACK's point");
        // Everything that waits for its repair is queued, once and in stream order.
        let waiting: Vec<u32> =
            ids.iter().copied().filter(|id| self.record(*id).flags & (LOST | RETRANSMITTED) == LOST).collect();
        let queued: Vec<u32> = self
            .repairs
            .iter()
            .copied()
            .filter(|id| self.position(*id) < self.len && self.record(*id).flags & (LOST | RETRANSMITTED) == LOST)
            .collect();
        assert_eq!(queued, waiting, "repairs");
    }
}
