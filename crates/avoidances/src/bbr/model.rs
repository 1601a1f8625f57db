//! What BBR knows of the path: bandwidth, smallest RTT, how much ACKs come in bunches.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::config::{BbrConfig, MOST_ROUNDS};
use flowstart_control::Ack;

/// The largest bandwidth of the last rounds, exactly; Linux approximates it with three slots
/// (`minmax_running_max`).
#[derive(Clone, Copy, Debug)]
struct Bandwidth {
    /// The largest of each round, by number of the round modulo the window.
    rounds: [Rate; MOST_ROUNDS as usize],
}

impl Bandwidth {
    fn largest(&self) -> Rate {
        self.rounds.iter().copied().max().unwrap_or(Rate::ZERO)
    }

    fn slot(&mut self, round: u64, window: u32) -> Option<&mut Rate> {
        self.rounds.get_mut((round % u64::from(window)) as usize)
    }
}

/// ACKs that came sooner than the bandwidth explains (`bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Since when ACKs are counted; `None` before the first.
    epoch: Option<Time>,
    acked: u64,
    /// The largest excess of this and of the last slot of rounds, packets.
    extra: [u32; 2],
    slot: usize,
    rounds: u32,
}

/// Packets after which an epoch begins anew (`bbr_ack_epoch_acked_reset_thresh`).
const LONGEST_EPOCH: u64 = 1 << 20;

/// What an ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// A packet that was sent after the last round had ended was delivered.
    pub(super) round: bool,
    /// The smallest RTT was not seen again for the length of its window.
    pub(super) rtt_expired: bool,
}

/// The model of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    mss: u64,
    bandwidth: Bandwidth,
    round: u64,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    round_end: u64,
    /// [`Span::MAX`] before the first sample.
    pub(super) min_rtt: Span,
    min_rtt_at: Time,
    aggregation: Aggregation,
}

impl Model {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            bandwidth: Bandwidth { rounds: [Rate::ZERO; MOST_ROUNDS as usize] },
            round: 0,
            round_end: 0,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            aggregation: Aggregation::default(),
        }
    }

    /// The bandwidth, payload; `None` before the first sample.
    pub(super) fn bandwidth(&self) -> Option<Rate> {
        Some(self.bandwidth.largest()).filter(|rate| *rate > Rate::ZERO)
    }

    /// A multiple of the bandwidth-delay product in packets, rounded up; `None` while it is not
    /// known.
    pub(super) fn bdp(&self, gain: f64) -> Option<u32> {
        let bandwidth = self.bandwidth().filter(|_| self.min_rtt != Span::MAX)?;
        let bytes = bandwidth.mul_f64(gain).bytes_in(self.min_rtt).get();
        Some(u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX))
    }

    /// A round begins with the packets that leave from now on.
    pub(super) fn begin_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// The smallest RTT was measured on purpose now.
    pub(super) fn refresh_rtt(&mut self, now: Time) {
        self.min_rtt_at = now;
    }

    /// The flow was idle: an epoch of ACKs ends.
    pub(super) fn forget_epoch(&mut self) {
        self.aggregation.epoch = None;
    }

    /// Takes an ACK in (`bbr_update_bw`, `bbr_update_min_rtt`).
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: u32, config: &BbrConfig) -> News {
        let mut news = News::default();
        if let Some(sample) = ack.rate {
            if sample.prior_delivered >= self.round_end {
                news.round = true;
                self.round_end = ack.delivered;
                self.round += 1;
                if let Some(slot) = self.bandwidth.slot(self.round, config.bandwidth_rounds) {
                    *slot = Rate::ZERO;
                }
            }
            let rate = Rate::of(Bytes::new(u64::from(sample.delivered).saturating_mul(self.mss)), sample.interval);
            // An application that sends less says nothing about the path, unless it got more
            // through than ever.
            if (!sample.app_limited || rate >= self.bandwidth.largest())
                && let Some(slot) = self.bandwidth.slot(self.round, config.bandwidth_rounds)
            {
                *slot = rate.max(*slot);
            }
            self.aggregate(ack, news.round, cwnd, config);
        }
        if let Some(rtt) = ack.rtt {
            news.rtt_expired = self.min_rtt != Span::MAX && ack.now.since(self.min_rtt_at) > config.min_rtt_window;
            if rtt <= self.min_rtt || news.rtt_expired {
                self.min_rtt = rtt;
                self.min_rtt_at = ack.now;
            }
        }
        news
    }

    fn aggregate(&mut self, ack: &Ack, round: bool, cwnd: u32, config: &BbrConfig) {
        let bandwidth = self.bandwidth.largest();
        let aggregation = &mut self.aggregation;
        if round {
            aggregation.rounds += 1;
            if aggregation.rounds >= config.aggregation_rounds {
                aggregation.rounds = 0;
                aggregation.slot = 1 - aggregation.slot;
                aggregation.extra[aggregation.slot] = 0;
            }
        }
        let expected = |since: Time| bandwidth.bytes_in(ack.now.since(since)).get() / self.mss;
        let epoch = match aggregation.epoch {
            Some(epoch) if aggregation.acked > expected(epoch) && aggregation.acked < LONGEST_EPOCH => epoch,
            _ => {
                aggregation.acked = 0;
                ack.now
            }
        };
        aggregation.epoch = Some(epoch);
        aggregation.acked += u64::from(ack.acked);
        let extra = aggregation.acked.saturating_sub(expected(epoch)).min(u64::from(cwnd)) as u32;
        let largest = &mut aggregation.extra[aggregation.slot];
        *largest = extra.max(*largest);
    }

    /// Packets that the window has because ACKs come in bunches (`bbr_ack_aggregation_cwnd`).
    pub(super) fn aggregated(&self, config: &BbrConfig) -> u32 {
        let most = self.bandwidth.largest().bytes_in(config.aggregation_most).get() / self.mss;
        let extra = self.aggregation.extra[0].max(self.aggregation.extra[1]);
        extra.min(u32::try_from(most).unwrap_or(u32::MAX))
    }
}
