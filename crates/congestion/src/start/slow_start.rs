//! Standard slow start: RFC 5681 section 3.1 with growth counted in packets as Linux does (`tcp_slow_start`).

use crate::{Ack, FlowStart, Window};

/// Adds one packet per acknowledged packet up to ssthresh; returns what is left for congestion avoidance.
#[inline]
pub(crate) fn grow(window: &mut Window, acked: u32) -> u32 {
    let room = window.ssthresh.saturating_sub(window.cwnd);
    let used = acked.min(room);
    window.cwnd += used;
    acked - used
}

/// Standard slow start: the window doubles every round trip until a loss, a mark or ssthresh.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowStart;

impl FlowStart for SlowStart {
    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        grow(window, ack.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, config};
    use crate::{Controller, INFINITE_SSTHRESH, StartConfig};

    /// cwnd at the beginning of each of `rounds` rounds, in which `b` packets share an ACK.
    fn rounds(rounds: usize, b: u32) -> Vec<u32> {
        let mut window = Window::new(10);
        (0..rounds)
            .map(|_| {
                let before = window.cwnd;
                for _ in 0..before / b {
                    grow(&mut window, b);
                }
                before
            })
            .collect()
    }

    #[test]
    fn v1_1_the_window_doubles_every_round_trip() {
        let cwnd = rounds(7, 1);
        assert_eq!(cwnd, [10, 20, 40, 80, 160, 320, 640]);
        let sent: Vec<u32> = cwnd.iter().scan(0, |sum, w| Some((*sum += w, *sum).1)).collect();
        assert_eq!(sent, [10, 30, 70, 150, 310, 630, 1270]);
    }

    #[test]
    fn v1_2_delayed_acks_do_not_slow_growth_that_counts_packets() {
        // Growth that counts ACKs (RFC 3465 with L = 1) would give 10, 15, 23, 35, 53, 80, 120.
        assert_eq!(rounds(7, 2), [10, 20, 40, 80, 160, 320, 640]);
    }

    #[test]
    fn v1_3_growth_stops_at_ssthresh_and_leaves_the_rest_for_avoidance() {
        let mut window = Window { cwnd: 60, ssthresh: 64 };
        assert_eq!(grow(&mut window, 10), 6);
        assert_eq!(window.cwnd, 64);
    }

    #[test]
    fn v1_4_an_unused_window_grows_only_below_twice_of_what_was_used() {
        for (max_packets_out, after) in [(10, 20), (11, 21)] {
            let mut config = config(StartConfig::SlowStart);
            config.initial_window = 20;
            let mut controller = Controller::new(&config);
            controller.grow(&crate::Ack { cwnd_limited: false, max_packets_out, ..ack(1) });
            assert_eq!(controller.cwnd(), after, "max packets out {max_packets_out}");
        }
    }

    #[test]
    fn a_window_above_the_threshold_does_not_shrink_and_hands_everything_on() {
        let mut window = Window { cwnd: 10, ssthresh: 5 };
        assert_eq!(grow(&mut window, 3), 3);
        assert_eq!(window.cwnd, 10);
    }

    #[test]
    fn growth_never_passes_the_infinite_threshold() {
        let mut window = Window::new(INFINITE_SSTHRESH - 1);
        assert_eq!(grow(&mut window, u32::MAX), u32::MAX - 1);
        assert_eq!(window.cwnd, INFINITE_SSTHRESH);
    }
}
