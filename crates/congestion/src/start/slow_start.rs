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

    /// cwnd after each of `rounds` rounds, in which `b` packets share an ACK and an ACK counts at most `limit` packets.
    fn rounds(rounds: usize, b: u32, limit: u32) -> Vec<u32> {
        let mut window = Window::new(10);
        let mut left = 0;
        (0..rounds)
            .map(|_| {
                let before = window.cwnd;
                left += before;
                // A receiver that delays ACKs holds the odd packet back until the next round.
                while left >= b {
                    grow(&mut window, b.min(limit));
                    left -= b;
                }
                before
            })
            .collect()
    }

    #[test]
    fn v1_1_the_window_doubles_every_round_trip() {
        let cwnd = rounds(7, 1, u32::MAX);
        assert_eq!(cwnd, [10, 20, 40, 80, 160, 320, 640]);
        let sent: Vec<u32> = cwnd.iter().scan(0, |sum, w| Some((*sum += w, *sum).1)).collect();
        assert_eq!(sent, [10, 30, 70, 150, 310, 630, 1270]);
    }

    #[test]
    fn v1_2_delayed_acks_do_not_slow_growth_that_counts_packets() {
        assert_eq!(rounds(6, 2, u32::MAX), [10, 20, 40, 80, 160, 320]);
        // Growth that counts ACKs (RFC 3465 with L = 1) would give 10, 15, 23, 35, 53, 80, 120 where the last, odd packet of a round is
        // acknowledged by the timer within the round, as the vector has it.
        let mut cwnd: u32 = 10;
        let mut counted_acks = vec![cwnd];
        for _ in 0..6 {
            cwnd += cwnd.div_ceil(2);
            counted_acks.push(cwnd);
        }
        assert_eq!(counted_acks, [10, 15, 23, 35, 53, 80, 120]);
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
    fn v1_5_ten_segments_of_a_common_mss_are_the_initial_window_in_bytes() {
        // RFC 6928: min(10 * MSS, max(2 * MSS, 14600)). Ten packets are that window up to an MSS of 1460 bytes.
        let rfc6928 = |mss: u32| (10 * mss).min((2 * mss).max(14_600));
        for (mss, bytes) in [(536, 5360), (1448, 14_480), (1460, 14_600), (8960, 17_920)] {
            assert_eq!(rfc6928(mss), bytes);
            assert_eq!(mss <= 1460, rfc6928(mss) == 10 * mss);
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
