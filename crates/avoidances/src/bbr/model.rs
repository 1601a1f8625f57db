//! What BBR knows of the path: bandwidth, smallest RTT, how much ACKs come in bunches.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::aggregation::Aggregation;
use super::config::BbrConfig;
use super::filter::RunningMax;
use super::policer::{Policer, Report};
use flowstart_control::{Ack, NewMss};

/// What an ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// A packet that was sent after the last round had ended was delivered.
    pub(super) round: bool,
    /// The application, or a probe of the RTT, limited the sample.
    pub(super) app_limited: bool,
    /// The smallest RTT was not seen again for the length of its window.
    pub(super) rtt_expired: bool,
    /// A policer's rate was used for long enough.
    pub(super) policer_over: bool,
}

/// The model of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    mss: u64,
    bandwidth: RunningMax<Rate>,
    round: u64,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    round_end: u64,
    /// In microseconds; [`Span::MAX`] before the first sample.
    pub(super) min_rtt: Span,
    min_rtt_at: Time,
    aggregation: Aggregation,
    policer: Policer,
    /// Packets that left when so many had been delivered say nothing about the path: a probe of the
    /// RTT held them back.
    held_back: Option<(u64, u64)>,
}

impl Model {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            bandwidth: RunningMax::default(),
            round: 0,
            round_end: 0,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            held_back: None,
        }
    }

    /// Rates are in bytes and stay.
    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.aggregation.on_mss(mss);
    }

    /// The largest bandwidth of the last rounds, payload; `None` before the first sample.
    #[inline]
    pub(super) fn largest_bandwidth(&self) -> Option<Rate> {
        Some(self.bandwidth.get()).filter(|rate| *rate > Rate::ZERO)
    }

    /// The bandwidth to go by: the largest, or a policer's.
    #[inline]
    pub(super) fn bandwidth(&self) -> Option<Rate> {
        self.policer.rate().or(self.largest_bandwidth())
    }

    /// True while there seems to be a policer.
    #[inline]
    pub(super) fn is_policed(&self) -> bool {
        self.policer.rate().is_some()
    }

    pub(super) fn forget_policer(&mut self) {
        self.policer.forget();
    }

    /// A multiple of the bandwidth-delay product in packets, rounded up; `None` while it is not
    /// known.
    #[inline]
    pub(super) fn bdp(&self, bandwidth: Option<Rate>, gain: f64) -> Option<u32> {
        let bandwidth = bandwidth.filter(|_| self.min_rtt != Span::MAX)?;
        let bytes = bandwidth.mul_f64(gain).bytes_in(self.min_rtt).get();
        Some(u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX))
    }

    /// Packets that a rate delivers in this time.
    #[inline]
    pub(super) fn packets_in(&self, rate: Rate, span: Span) -> u32 {
        u32::try_from(rate.bytes_in(span).get() / self.mss).unwrap_or(u32::MAX)
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
        self.aggregation.forget_epoch();
    }

    /// A probe of the RTT holds the packets back that leave from now on until all in flight are
    /// delivered.
    pub(super) fn hold_back(&mut self, ack: &Ack, first: bool) {
        let until = ack.delivered.saturating_add(u64::from(ack.in_flight));
        let from = self.held_back.filter(|_| !first).map_or(ack.delivered, |(from, _)| from);
        self.held_back = Some((from, until));
    }

    /// A timeout: it counts as a round with a loss where policers are looked for
    /// (`bbr_set_state`).
    pub(super) fn on_timeout(&mut self, now: Time, delivered: u64, lost: u64, cycling: bool, config: &BbrConfig) {
        let mss = self.mss;
        let report = Report { now, delivered, lost, losses: true, round: true, app_limited: false, cycling };
        self.policer.on_ack(&report, mss, config);
    }

    /// Takes an ACK in (`bbr_update_bw`, `bbr_update_ack_aggregation`, the filter of
    /// `bbr_update_min_rtt`). `cycling` if the flow is in its cycles.
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: u32, cycling: bool, config: &BbrConfig) -> News {
        let mut news = News::default();
        if let Some(sample) = ack.rate {
            if sample.prior_delivered >= self.round_end {
                news.round = true;
                self.round_end = ack.delivered;
                self.round += 1;
            }
            let held = |(from, until)| (from..=until).contains(&sample.prior_delivered);
            news.app_limited = sample.app_limited || self.held_back.is_some_and(held);
            let report = Report {
                now: ack.now,
                delivered: ack.delivered,
                lost: ack.total_lost,
                losses: ack.lost > 0,
                round: news.round,
                app_limited: news.app_limited,
                cycling,
            };
            news.policer_over = self.policer.on_ack(&report, self.mss, config);
            let rate = Rate::of(Bytes::new(u64::from(sample.delivered).saturating_mul(self.mss)), sample.interval);
            // An application that sends less says nothing about the path, unless it got more
            // through than ever.
            if !news.app_limited || rate >= self.bandwidth.get() {
                self.bandwidth.update(self.round, rate, u64::from(config.bandwidth_rounds));
            }
            if news.round {
                self.aggregation.on_round(config.aggregation_rounds);
            }
            if ack.acked > 0
                && let Some(bandwidth) = self.bandwidth()
            {
                self.aggregation.on_ack(ack.now, ack.acked, bandwidth, self.mss, cwnd);
            }
        }
        self.take_rtt(ack, &mut news, config);
        news
    }

    fn take_rtt(&mut self, ack: &Ack, news: &mut News, config: &BbrConfig) {
        if self.min_rtt == Span::MAX && ack.min_rtt != Span::MAX {
            // The handshake's, or that of an earlier ACK.
            (self.min_rtt, self.min_rtt_at) = (in_micros(ack.min_rtt), ack.now);
        }
        news.rtt_expired = self.min_rtt != Span::MAX && ack.now.since(self.min_rtt_at) > config.min_rtt_window;
        if let Some(rtt) = ack.rtt.map(in_micros)
            && (rtt < self.min_rtt || news.rtt_expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, ack.now);
        }
    }

    /// Packets that the window has because ACKs come in bunches (`bbr_ack_aggregation_cwnd`).
    #[inline]
    pub(super) fn aggregated(&self, config: &BbrConfig) -> u32 {
        let largest = self.aggregation.largest();
        if largest == 0 {
            return 0;
        }
        let most = self.bandwidth().map_or(0, |bandwidth| self.packets_in(bandwidth, config.aggregation_most));
        largest.min(most)
    }
}

/// The kernel's clock of round-trip times counts microseconds: times that differ by less are the
/// same, and a time that is the same is not a smaller one.
fn in_micros(span: Span) -> Span {
    Span::from_micros(span.as_micros())
}
