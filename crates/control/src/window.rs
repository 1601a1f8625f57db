//! The window that start and avoidance share.

/// "No threshold yet": the value of ssthresh before the first reduction (Linux
/// `TCP_INFINITE_SSTHRESH`).
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
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Standard slow start: RFC 5681 section 3.1 with growth counted in packets as Linux does
    /// (`tcp_slow_start`). Adds one packet per acknowledged packet up to ssthresh; returns what is
    /// left for congestion avoidance.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let room = self.ssthresh.saturating_sub(self.cwnd);
        let used = acked.min(room);
        self.cwnd += used;
        acked - used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cwnd at the beginning of each of `rounds` rounds, in which `b` packets share an ACK.
    fn rounds(rounds: usize, b: u32) -> Vec<u32> {
        let mut window = Window::new(10);
        (0..rounds)
            .map(|_| {
                let before = window.cwnd;
                for _ in 0..before / b {
                    window.slow_start(b);
                }
                before
            })
            .collect()
    }

    #[test]
    fn the_window_doubles_every_round_trip() {
        let cwnd = rounds(7, 1);
        assert_eq!(cwnd, [10, 20, 40, 80, 160, 320, 640]);
        let sent: Vec<u32> = cwnd.iter().scan(0, |sum, w| Some((*sum += w, *sum).1)).collect();
        assert_eq!(sent, [10, 30, 70, 150, 310, 630, 1270]);
    }

    #[test]
    fn delayed_acks_do_not_slow_growth_that_counts_packets() {
        // Growth that counts ACKs (RFC 3465 with L = 1) would give 10, 15, 23, 35, 53, 80, 120.
        assert_eq!(rounds(7, 2), [10, 20, 40, 80, 160, 320, 640]);
    }

    #[test]
    fn growth_stops_at_ssthresh_and_leaves_the_rest_for_avoidance() {
        let mut window = Window { cwnd: 60, ssthresh: 64 };
        assert_eq!(window.slow_start(10), 6);
        assert_eq!(window.cwnd, 64);
    }

    #[test]
    fn a_window_above_the_threshold_does_not_shrink_and_hands_everything_on() {
        let mut window = Window { cwnd: 10, ssthresh: 5 };
        assert_eq!(window.slow_start(3), 3);
        assert_eq!(window.cwnd, 10);
    }

    #[test]
    fn growth_never_passes_the_infinite_threshold() {
        let mut window = Window::new(INFINITE_SSTHRESH - 1);
        assert_eq!(window.slow_start(u32::MAX), u32::MAX - 1);
        assert_eq!(window.cwnd, INFINITE_SSTHRESH);
    }
}
