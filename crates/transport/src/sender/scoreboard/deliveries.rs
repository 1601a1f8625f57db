//! What an ACK delivers.

use flowstart_congestion::Acked;
use flowstart_units::{Span, Time};

use super::Scoreboard;
use super::record::{APP_LIMITED, EVER_RETRANSMITTED, LINKED, LOST, PUSH, RETRANSMITTED, SACKED};
use crate::sender::delivery::{Delivery, Flight};

/// What an ACK's processing needs to know.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct AckContext {
    pub(in crate::sender) now: Time,
    /// Transmissions so far.
    pub(in crate::sender) sent: u64,
    /// Packets delivered before this ACK.
    pub(in crate::sender) delivered: u64,
    pub(in crate::sender) min_rtt: Span,
    /// The timestamp the ACK echoes.
    pub(in crate::sender) echo: Time,
    /// The controller wants to hear of every packet.
    pub(in crate::sender) collect: bool,
    /// F-RTO's and recovery's end.
    pub(in crate::sender) high_seq: u64,
    /// Highest selectively acknowledged byte before this ACK.
    pub(in crate::sender) highest_sacked: u64,
}

/// What [`Scoreboard::acknowledge_plain`] found.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Plain {
    pub(in crate::sender) packets: u32,
    pub(in crate::sender) bytes: u64,
    /// When the oldest of them left.
    pub(in crate::sender) earliest: Time,
    /// How the newest left.
    pub(in crate::sender) newest: Flight,
}

impl Scoreboard {
    /// Cumulative acknowledgement of everything below `ack`.
    #[inline]
    pub(in crate::sender) fn acknowledge(
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

    /// [`acknowledge`](Self::acknowledge) for the usual case: the scoreboard [is
    /// plain](Self::is_plain). `None` if no segment is covered.
    #[inline]
    pub(in crate::sender) fn acknowledge_plain(
        &mut self,
        now: Time,
        ack: u64,
        sent: u64,
        delivered: u64,
    ) -> Option<Plain> {
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
        // What was delivered may be the original of a retransmission: then it tells nothing about
        // time (RFC 8985 section 6.2 step 2). An ACK that does not advance echoes an older
        // segment's timestamp, so it is judged by the round-trip time alone.
        let original =
            record.has(EVER_RETRANSMITTED) && (age < context.min_rtt || (!by_sack && context.echo < record.sent_at));
        if !original {
            // Linux `tcp_ack` takes SACKs first: the age that stays is that of a packet
            // acknowledged cumulatively, if there is one.
            if !(by_sack && delivery.aged_by_ack) {
                self.newest.rtt = age;
            }
            delivery.aged_by_ack |= !by_sack;
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

    /// Selective acknowledgement of `start..end`, which lies between the cumulative acknowledgement
    /// and the next new byte.
    pub(in crate::sender) fn sack(
        &mut self,
        start: u64,
        end: u64,
        context: &AckContext,
        delivery: &mut Delivery,
        packets: &mut Vec<Acked>,
    ) {
        // Ranges come again and again; only what is new costs anything.
        let at = match self.ranges.back() {
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
        // Mostly a single segment is new.
        let single = position < self.len && self.record(self.first.wrapping_add(position)).end() == end;
        let mut limit = if single { position + 1 } else { self.below(end) };
        if limit > 0 && self.record(self.first.wrapping_add(limit - 1)).end() > end {
            limit -= 1;
        }
        if position >= limit {
            return;
        }
        let mut merged =
            (self.record(self.first.wrapping_add(position)).seq, self.record(self.first.wrapping_add(limit - 1)).end());
        // No range ends between `start` and the first segment that begins there or later.
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
}
