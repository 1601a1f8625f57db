//! What can be seen of a sender from outside.

use flowstart_units::Span;

/// Counters and current values of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderStats {
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Data packets sent again.
    pub packets_retransmitted: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Times a packet was declared lost.
    pub packets_lost: u64,
    /// Needless retransmissions the receiver told of (D-SACK).
    pub spurious_retransmissions: u64,
    /// Reductions taken back because they were needless.
    pub undone: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Loss recoveries entered (not those by timeout).
    pub recoveries: u64,
    /// Reductions because of congestion marks.
    pub mark_reductions: u64,
    /// Packets delivered under a congestion mark as told by the receiver.
    pub packets_marked: u64,
    /// Packets delivered: acknowledged cumulatively or selectively.
    pub delivered: u64,
    /// SYNs sent again.
    pub syn_retries: u32,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// RTT variation: a quarter of the timeout's variance term (RFC 6298's RTTVAR).
    pub rttvar: Span,
    /// Smallest RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// The last RTT sample; zero before the first.
    pub latest_rtt: Span,
    /// Packets in flight: sent, not delivered, not deemed lost.
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// First byte not cumulatively acknowledged.
    pub una: u64,
    /// Next new byte to be sent.
    pub next: u64,
    /// Bytes written by the application and not sent; `u64::MAX` for an endless stream.
    pub unsent: u64,
}

impl Default for SenderStats {
    fn default() -> Self {
        Self {
            packets_sent: 0,
            bytes_sent: 0,
            packets_retransmitted: 0,
            bytes_retransmitted: 0,
            packets_lost: 0,
            spurious_retransmissions: 0,
            undone: 0,
            timeouts: 0,
            tail_loss_probes: 0,
            recoveries: 0,
            mark_reductions: 0,
            packets_marked: 0,
            delivered: 0,
            syn_retries: 0,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            min_rtt: Span::MAX,
            latest_rtt: Span::ZERO,
            in_flight: 0,
            packets_out: 0,
            una: 0,
            next: 0,
            unsent: 0,
        }
    }
}
