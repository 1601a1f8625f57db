//! What is recorded of one flow.

use std::collections::BTreeSet;

use flowstart_units::{Span, Time};

use super::BIN_LIMIT;
use super::asked::{Asked, Flows, Parts};
use crate::changes::note;
use crate::egress::Egress;

/// What is recorded of one flow. Times are relative to t = 0, bytes counted on the wire unless
/// stated. Bytes and packets are empty unless [`Flows::Everything`] is asked for.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// Bytes that left the sender's stack (IP packets).
    pub sent: Egress,
    /// Bytes that left the bottleneck, each byte of the stream the first time it does.
    pub egress: Egress,
    /// Stream bytes that the receiving application read.
    pub delivered: Egress,
    /// Congestion window in packets, at changes (at most one per bin).
    pub cwnd: Vec<(Span, u32)>,
    /// Smoothed RTT in microseconds, likewise, with [`Flows::Windows`].
    pub srtt: Vec<(Span, u32)>,
    /// Bytes that left the bottleneck again, within the horizon.
    pub duplicate_bytes: u64,
    /// Data packets sent within the horizon.
    pub packets_sent: u64,
    /// True if it was seen which of them are retransmissions.
    pub repairs_seen: bool,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Payload bytes sent within the horizon.
    pub payload_sent: u64,
    /// Payload bytes sent again within the horizon.
    pub payload_retransmitted: u64,
    /// Stream bytes delivered within the horizon.
    pub payload_delivered: u64,
    /// Packets dropped within the horizon that were sent before the start ended.
    pub dropped_in_start: u64,
    /// Packets dropped within the horizon that were sent later.
    pub dropped_later: u64,
    /// Packets that left the bottleneck marked, within the horizon.
    pub marked: u64,
    /// When the start ended.
    pub(super) exited: Option<Time>,
    /// First bytes of segments dropped at the bottleneck that have not left it since.
    pub(super) missing: BTreeSet<u64>,
    pub(super) read: u64,
}

impl FlowRecord {
    pub(super) fn new<P: Parts>(asked: &Asked) -> Self {
        let end = if P::FLOWS == Flows::Everything { asked.record } else { Span::ZERO };
        let bins = Egress::new(asked.bin, end, BIN_LIMIT);
        Self {
            sent: bins.clone(),
            egress: bins.clone(),
            delivered: bins,
            cwnd: Vec::new(),
            srtt: Vec::new(),
            duplicate_bytes: 0,
            packets_sent: 0,
            repairs_seen: true,
            retransmitted: 0,
            payload_sent: 0,
            payload_retransmitted: 0,
            payload_delivered: 0,
            dropped_in_start: 0,
            dropped_later: 0,
            marked: 0,
            exited: None,
            missing: BTreeSet::new(),
            read: 0,
        }
    }

    /// Packets dropped within the horizon.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_in_start + self.dropped_later
    }

    /// Notes the window that holds at `t`, and whether the start has ended.
    #[inline]
    pub(super) fn window(&mut self, t: Span, cwnd: u32, exited: Option<Time>, bin: Span) {
        self.exited = self.exited.or(exited);
        note(&mut self.cwnd, t, cwnd, bin);
    }
}
