//! NewReno congestion avoidance (RFC 5681 section 3.1, RFC 6582), counted in packets as Linux does.

use flowstart_control::{Ack, CongestionAvoidance, NewMss, Signal, Window};
use flowstart_units::Time;

/// Grows a window by one packet for every `w` packets acknowledged (Linux `tcp_cong_avoid_ai`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    counted: u32,
}

impl Counter {
    /// Counts `acked` packets towards the next packet of window.
    #[inline]
    pub(super) fn grow(&mut self, window: &mut Window, w: u32, acked: u32) {
        let w = w.max(1);
        // What was counted towards a larger w gives one packet only, so that a falling w does not
        // release a burst.
        if self.counted >= w {
            self.counted = 0;
            window.cwnd = window.cwnd.saturating_add(1);
        }
        self.counted = self.counted.saturating_add(acked);
        if self.counted >= w {
            window.cwnd = window.cwnd.saturating_add(self.counted / w);
            self.counted %= w;
        }
    }

    /// Packets have another size.
    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.counted = mss.packets(self.counted);
    }

    /// Forgets what was counted: a reduction begins.
    pub(super) fn reset(&mut self) {
        self.counted = 0;
    }
}

/// Half the window, at least 2 packets (RFC 5681 equation 4 with cwnd for FlightSize, as Linux has
/// it).
pub(super) fn half(window: &Window) -> u32 {
    (window.cwnd / 2).max(2)
}

/// NewReno.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno {
    counter: Counter,
}

impl CongestionAvoidance for Reno {
    #[inline]
    fn grow(&mut self, _ack: &Ack, acked: u32, window: &mut Window) {
        self.counter.grow(window, window.cwnd, acked);
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        self.counter.reset();
        half(window)
    }

    #[inline(always)]
    fn paces(&self) -> bool {
        false
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.counter.on_mss(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    #[test]
    fn acks_of_two_packets_grow_a_window_of_ten_by_one_per_window() {
        let mut reno = Reno::default();
        let mut window = Window { cwnd: 10, ssthresh: 5 };
        let mut seen = Vec::new();
        for _ in 0..11 {
            reno.grow(&ack(2), 2, &mut window);
            seen.push((window.cwnd, reno.counter.counted));
        }
        let expected =
            [(10, 2), (10, 4), (10, 6), (10, 8), (11, 0), (11, 2), (11, 4), (11, 6), (11, 8), (11, 10), (12, 1)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn every_reduction_halves_but_leaves_two_packets() {
        for signal in [Signal::Loss, Signal::Marks, Signal::Timeout] {
            for (cwnd, ssthresh) in [(100, 50), (5, 2), (3, 2), (1, 2)] {
                let window = Window { cwnd, ssthresh: 1000 };
                assert_eq!(Reno::default().reduce(Time::ZERO, signal, &window), ssthresh);
            }
        }
    }

    #[test]
    fn a_count_towards_a_larger_window_gives_one_packet_only() {
        let mut counter = Counter { counted: 90 };
        let mut window = Window::new(10);
        counter.grow(&mut window, 10, 3);
        assert_eq!((window.cwnd, counter.counted), (11, 3));
    }

    #[test]
    fn one_ack_of_many_windows_grows_by_as_many_packets() {
        let mut counter = Counter::default();
        let mut window = Window::new(10);
        counter.grow(&mut window, 10, 35);
        assert_eq!((window.cwnd, counter.counted), (13, 5));
    }

    #[test]
    fn the_deterministic_cycle_sends_three_eighths_of_the_squared_peak() {
        // From 50 to 100 packets, one loss: 3/8 * 100^2 = 3750 packets, 3725 as an exact sum over
        // whole packets.
        let mut reno = Reno::default();
        let mut window = Window { cwnd: 50, ssthresh: 50 };
        let mut sent = 0;
        while window.cwnd < 100 {
            reno.grow(&ack(1), 1, &mut window);
            sent += 1;
        }
        assert_eq!(sent, 3725);
    }
}
