//! One segment on the scoreboard.

use flowstart_units::{Span, Time};

use crate::sender::delivery::Flight;

/// Delivered out of order (selectively acknowledged).
pub(super) const SACKED: u8 = 1;
/// Deemed lost; the last transmission if `RETRANSMITTED` is not set, else the one before it.
pub(super) const LOST: u8 = 2;
/// A retransmission is in flight.
pub(super) const RETRANSMITTED: u8 = 4;
/// Sent more than once.
pub(super) const EVER_RETRANSMITTED: u8 = 8;
/// Ends a write.
pub(super) const PUSH: u8 = 16;
/// Sent while the application, not the network, was the limit.
pub(super) const APP_LIMITED: u8 = 32;
/// In the list of packets in flight by time of sending.
pub(super) const LINKED: u8 = 64;

/// In the 32 bits of an interval: the others count microseconds, not nanoseconds.
const IN_MICROSECONDS: u32 = 1 << 31;
/// An interval that is too long for a record (35 minutes).
const TOO_LONG: u32 = u32::MAX;

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// First byte.
    pub(super) seq: u64,
    /// When the last transmission left.
    pub(super) sent_at: Time,
    /// From the first packet of its flight to this one, [in 32 bits](packed) (delivery rate).
    pub(super) send_elapsed: u32,
    /// From the last delivery before it was sent, in 32 bits (delivery rate).
    pub(super) delivered_elapsed: u32,
    /// Packets delivered when it was sent, lower 32 bits.
    pub(super) delivered: u32,
    /// Transmission number, lower 32 bits.
    pub(super) number: u32,
    /// Neighbours in the order of sending (ids).
    pub(super) previous: u32,
    pub(super) next: u32,
    pub(super) payload: u16,
    pub(super) flags: u8,
}

impl Record {
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.seq + u64::from(self.payload)
    }

    #[inline]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// What the delivery rate needs, given the packets delivered by now.
    #[inline]
    pub(super) fn flight(&self, delivered: u64) -> Flight {
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
pub(in crate::sender) struct Departing {
    pub(in crate::sender) now: Time,
    /// Transmission number.
    pub(in crate::sender) number: u64,
    /// When the first packet of this flight left.
    pub(in crate::sender) first_sent_at: Time,
    /// When a packet was delivered last.
    pub(in crate::sender) delivered_at: Time,
    /// Packets delivered so far.
    pub(in crate::sender) delivered: u64,
    pub(in crate::sender) app_limited: bool,
}

impl Departing {
    pub(super) fn stamp(&self, record: &mut Record) {
        record.sent_at = self.now;
        record.number = self.number as u32;
        record.send_elapsed = packed(self.now.since(self.first_sent_at));
        record.delivered_elapsed = packed(self.now.since(self.delivered_at));
        record.delivered = self.delivered as u32;
        record.flags = (record.flags & !APP_LIMITED) | if self.app_limited { APP_LIMITED } else { 0 };
    }
}

/// The number at most `reference` whose lower 32 bits are `low`.
#[inline]
pub(super) fn widen(low: u32, reference: u64) -> u64 {
    reference - u64::from((reference as u32).wrapping_sub(low))
}

/// In 32 bits: to the nanosecond below 2.1 s, to the microsecond below 35 minutes (Linux
/// has 32 bits of microseconds).
#[inline(always)]
pub(super) fn packed(span: Span) -> u32 {
    let nanos = span.as_nanos();
    if nanos < u64::from(IN_MICROSECONDS) { nanos as u32 } else { packed_in_microseconds(span) }
}

#[cold]
fn packed_in_microseconds(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1000).map_or(TOO_LONG, |micros| micros.saturating_add(IN_MICROSECONDS))
}

/// The interval that was packed; `None` if it was too long.
#[inline]
pub(super) fn interval(packed: u32) -> Option<Span> {
    if packed < IN_MICROSECONDS {
        Some(Span::from_nanos(u64::from(packed)))
    } else {
        (packed != TOO_LONG).then(|| Span::from_micros(u64::from(packed - IN_MICROSECONDS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_seconds_and_of_minutes_fit() {
        let exact = [0, 1, 999_999_999, (1 << 31) - 1];
        for nanos in exact {
            assert_eq!(interval(packed(Span::from_nanos(nanos))), Some(Span::from_nanos(nanos)));
        }
        for seconds in [3, 5, 600, 2147] {
            assert_eq!(interval(packed(Span::from_secs(seconds))), Some(Span::from_secs(seconds)));
        }
        assert_eq!(interval(packed(Span::from_nanos((1 << 31) + 1999))), Some(Span::from_micros(2_147_485)));
        for nanos in [2_147_483_647_000, 1 << 43, u64::MAX] {
            assert_eq!(interval(packed(Span::from_nanos(nanos))), None, "{nanos} ns");
        }
    }
}
