//! The window that start and avoidance share.

/// "No threshold yet": the value of ssthresh before the first reduction (Linux `TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Congestion window and slow-start threshold in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in packets, at least 1.
    pub cwnd: u32,
    /// Slow-start threshold in packets; [`INFINITE_SSTHRESH`] before the first reduction.
    pub ssthresh: u32,
}

impl Window {
    /// A window of `cwnd` packets without a threshold.
    #[must_use]
    pub const fn new(cwnd: u32) -> Self {
        Self { cwnd, ssthresh: INFINITE_SSTHRESH }
    }

    /// True below the threshold (Linux `tcp_in_slow_start`: strictly below).
    #[must_use]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}
