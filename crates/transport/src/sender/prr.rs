//! Proportional rate reduction (RFC 6937, RFC 9937; Linux `tcp_cwnd_reduction`): how many packets
//! may leave for each ACK while the window walks down to the threshold.

/// The state of one reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// What the threshold is divided by: the window before, or RecoverFS.
    prior: u32,
    /// Packets delivered since the reduction began.
    delivered: u32,
    /// Packets sent since the reduction began.
    out: u32,
}

impl Prr {
    /// A reduction begins. `prior` is the window before it (Linux) or the data in flight (RFC 9937,
    /// RecoverFS), in packets.
    pub fn new(prior: u32) -> Self {
        Self { prior: prior.max(1), delivered: 0, out: 0 }
    }

    /// A packet left.
    #[inline]
    pub fn on_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }

    /// An ACK delivered `delivered` packets. `safe` is true if it moved the cumulative
    /// acknowledgement and no further loss was found. Returns the packets that may leave now.
    pub fn on_delivered(&mut self, delivered: u32, in_flight: u32, ssthresh: u32, safe: bool) -> u32 {
        if delivered == 0 {
            return 0;
        }
        self.delivered = self.delivered.saturating_add(delivered);
        let send = if in_flight > ssthresh {
            let share = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior));
            u32::try_from(share).unwrap_or(u32::MAX).saturating_sub(self.out)
        } else {
            let catch_up = self.delivered.saturating_sub(self.out).max(delivered).saturating_add(u32::from(safe));
            catch_up.min(ssthresh - in_flight)
        };
        // The first retransmission must not wait.
        send.max(u32::from(self.out == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a reduction from 100 to 70 with `lost` packets lost and two SACKs before the one that
    /// finds it out.
    fn run(lost: u32, acks: u32, safe_after_first: bool) -> Vec<(u32, u32)> {
        let mut prr = Prr::new(100);
        let mut in_flight = 100 - lost - 2;
        let mut sent = 0;
        (0..acks)
            .map(|ack| {
                in_flight -= 1;
                let send = prr.on_delivered(1, in_flight, 70, safe_after_first && ack > 0);
                (0..send).for_each(|_| prr.on_sent());
                sent += send;
                in_flight += send;
                (sent, in_flight)
            })
            .collect()
    }

    #[test]
    fn one_loss_of_100_is_answered_in_proportion_down_to_70() {
        let steps = run(1, 97, false);
        let sent: Vec<u32> = [1, 2, 3, 4, 5, 10, 20, 50, 97].iter().map(|n| steps[n - 1].0).collect();
        assert_eq!(sent, [1, 2, 3, 3, 4, 7, 14, 35, 70]);
        assert_eq!(steps[96].1, 70);
    }

    #[test]
    fn with_half_the_window_lost_every_delivery_releases_one_packet() {
        assert!(run(50, 40, false).iter().all(|(_, in_flight)| *in_flight == 48));
    }

    #[test]
    fn safe_acks_release_two_packets_until_the_threshold() {
        let steps = run(50, 40, true);
        assert_eq!(steps[10].1, 58);
        assert_eq!(steps[20].1, 68);
        assert_eq!(steps[39].1, 70);
    }

    /// Differential: RFC 6937 section 3.1 and RFC 9937 section 6.2 in packets, with exact
    /// fractions.
    fn by_the_rfc(state: &mut (i64, i64), prior: i64, ack: (u32, u32, bool), ssthresh: i64) -> i64 {
        let (delivered_data, pipe, safe) = (i64::from(ack.0), i64::from(ack.1), ack.2);
        let (prr_delivered, prr_out) = state;
        *prr_delivered += delivered_data;
        let sndcnt = if pipe > ssthresh {
            (*prr_delivered as f64 * ssthresh as f64 / prior as f64).ceil() as i64 - *prr_out
        } else {
            let sndcnt = (*prr_delivered - *prr_out).max(delivered_data) + i64::from(safe);
            sndcnt.min(ssthresh - pipe)
        };
        // "Force a fast retransmit upon entering recovery."
        let sndcnt = if *prr_out == 0 { sndcnt.max(1) } else { sndcnt.max(0) };
        *prr_out += sndcnt;
        sndcnt
    }

    proptest::proptest! {
        #[test]
        fn every_ack_releases_what_the_rfc_says(
            prior in 3_u32..200, percent in 10_u32..100,
            acks in proptest::collection::vec((1_u32..4, 0_u32..200, proptest::bool::ANY), 1..60)
        ) {
            let ssthresh = (prior * percent / 100).max(2);
            let (mut prr, mut state) = (Prr::new(prior), (0, 0));
            for ack in acks {
                let send = prr.on_delivered(ack.0, ack.1, ssthresh, ack.2);
                let expected = by_the_rfc(&mut state, i64::from(prior), ack, i64::from(ssthresh));
                proptest::prop_assert_eq!(i64::from(send), expected);
                (0..send).for_each(|_| prr.on_sent());
                proptest::prop_assert_eq!(prr.on_delivered(0, ack.1, ssthresh, true), 0);
            }
        }

        #[test]
        fn above_the_threshold_no_more_leaves_than_its_share(
            prior in 3_u32..200, percent in 10_u32..100, acks in proptest::collection::vec(1_u32..4, 1..60)
        ) {
            let ssthresh = (prior * percent / 100).max(2);
            let mut prr = Prr::new(prior);
            let (mut delivered, mut out) = (0, 0);
            for d in acks {
                delivered += d;
                let send = prr.on_delivered(d, ssthresh + 1, ssthresh, false);
                (0..send).for_each(|_| prr.on_sent());
                out += send;
                proptest::prop_assert!(out <= (ssthresh * delivered).div_ceil(prior).max(1));
            }
        }
    }
}
