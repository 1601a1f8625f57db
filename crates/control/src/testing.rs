//! Events with plain values, for tests that care about one or two fields.

use flowstart_units::{Span, Time};

use crate::{Ack, Next, Repair, Sent};

/// An ACK of `acked` packets of 1448 bytes in a flow that uses its window, with no RTT sample.
#[must_use]
pub fn ack(acked: u32) -> Ack {
    Ack {
        now: Time::ZERO,
        acked,
        acked_bytes: u64::from(acked) * 1448,
        marked: 0,
        lost: 0,
        lost_meanwhile: 0,
        rtt: None,
        srtt: Span::ZERO,
        min_rtt: Span::MAX,
        una: 0,
        next: 0,
        advanced: true,
        in_flight: 0,
        packets_out: 0,
        cwnd_limited: true,
        max_packets_out: 0,
        app_limited: false,
        delivered: 0,
        rate: None,
        total_lost: 0,
        repair: Repair::Nothing,
    }
}

/// A full packet about to leave for the first time, the application having more.
#[must_use]
pub fn next(number: u64) -> Next {
    Next {
        number,
        bytes: 1448,
        wire_bytes: 1500,
        in_flight: 0,
        packets_out: 0,
        queued: u64::MAX,
        retransmission: false,
        srtt: Span::ZERO,
        min_rtt: Span::MAX,
    }
}

/// A full packet that left for the first time.
#[must_use]
pub fn sent(now: Time, number: u64) -> Sent {
    Sent { now, number, seq: number.saturating_mul(1448), bytes: 1448, in_flight: 1, retransmission: false }
}
