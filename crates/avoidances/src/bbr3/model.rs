//! What BBR version 3 knows of the path, and how far it dares to go (draft-ietf-ccwg-bbr-06,
//! section 5.5).

use flowstart_control::{Ack, DeliveryRate, NewMss};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::config::Bbr3Config;
use crate::bbr::filter::RunningMax;

/// The long-term and the short-term bounds; `None` for infinite.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// Packets in flight that a probe showed to be too many (`inflight_longterm`).
    pub(super) longterm: Option<u32>,
    /// Bandwidth and packets in flight that recent losses suggest (`bw_shortterm`,
    /// `inflight_shortterm`).
    pub(super) bandwidth: Option<Rate>,
    pub(super) shortterm: Option<u32>,
}

/// The model of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) mss: u64,
    /// The largest rate of the cycle before this one and of this one (`max_bw_filter`).
    bandwidths: [Rate; 2],
    pub(super) bounds: Bounds,
    pub(super) round: u64,
    pub(super) round_start: bool,
    round_end: u64,
    /// The sample of this ACK, payload; zero if there is none.
    pub(super) rate: Rate,
    pub(super) app_limited: bool,
    /// In microseconds; [`Span::MAX`] before the first sample.
    pub(super) min_rtt: Span,
    min_rtt_at: Time,
    recent_rtt: Span,
    recent_rtt_at: Time,
    /// The smallest RTT of the last interval is due to be probed (`probe_rtt_expired`).
    pub(super) rtt_expired: bool,
    /// The largest of this round trip (`bw_latest`, `inflight_latest`).
    latest: Rate,
    pub(super) latest_packets: u32,
    loss_round_end: u64,
    pub(super) loss_round_start: bool,
    pub(super) loss_in_round: bool,
    extra: RunningMax<u32>,
    epoch: Option<Time>,
    epoch_acked: u64,
    /// Packets that left when so many had been delivered: a probe of the RTT held them back.
    held_back: Option<(u64, u64)>,
}

impl Bounds {
    /// Packets have another size.
    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.longterm = self.longterm.map(|packets| mss.packets(packets));
        self.shortterm = self.shortterm.map(|packets| mss.packets(packets));
    }
}

impl Model {
    /// Rates are in bytes and stay.
    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.bounds.on_mss(mss);
        self.latest_packets = mss.packets(self.latest_packets);
        self.extra = self.extra.map(|extra| mss.packets(extra));
        self.epoch = None;
    }

    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            bandwidths: [Rate::ZERO; 2],
            bounds: Bounds::default(),
            round: 0,
            round_start: false,
            round_end: 0,
            rate: Rate::ZERO,
            app_limited: false,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            recent_rtt: Span::MAX,
            recent_rtt_at: Time::ZERO,
            rtt_expired: false,
            latest: Rate::ZERO,
            latest_packets: 0,
            loss_round_end: 0,
            loss_round_start: false,
            loss_in_round: false,
            extra: RunningMax::default(),
            epoch: None,
            epoch_acked: 0,
            held_back: None,
        }
    }

    /// The largest rate of two cycles; `None` before the first sample.
    pub(super) fn largest(&self) -> Option<Rate> {
        let [before, now] = self.bandwidths;
        Some(before.max(now)).filter(|rate| *rate > Rate::ZERO)
    }

    /// The bandwidth to go by (`BoundBWForModel`).
    pub(super) fn bandwidth(&self) -> Option<Rate> {
        let largest = self.largest()?;
        Some(self.bounds.bandwidth.map_or(largest, |bound| bound.min(largest)))
    }

    /// A multiple of the bandwidth-delay product in packets, rounded up; `None` while it is not
    /// known (`BDPMultiple`).
    pub(super) fn bdp(&self, bandwidth: Option<Rate>, gain: f64) -> Option<u32> {
        let bandwidth = bandwidth.filter(|_| self.min_rtt != Span::MAX)?;
        let bytes = bandwidth.mul_f64(gain).bytes_in(self.min_rtt).get();
        Some(u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX))
    }

    /// Packets that aggregated ACKs call for.
    pub(super) fn extra(&self) -> u32 {
        self.extra.get()
    }

    /// `StartRound`.
    pub(super) fn begin_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// The cycle is over (`AdvanceMaxBwFilter`).
    pub(super) fn next_cycle(&mut self) {
        // If nothing was measured, what is known stays.
        if self.bandwidths[1] > Rate::ZERO {
            self.bandwidths = [self.bandwidths[1], Rate::ZERO];
        }
    }

    pub(super) fn forget_epoch(&mut self) {
        self.epoch = None;
    }

    /// The RTT was probed now.
    pub(super) fn refresh_rtt(&mut self, now: Time) {
        self.recent_rtt_at = now;
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_signals(&mut self) {
        self.loss_in_round = false;
        (self.latest, self.latest_packets) = (Rate::ZERO, 0);
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bounds.bandwidth, self.bounds.shortterm) = (None, None);
    }

    /// A packet was lost; true if it is the first of a round trip (`NoteLoss`).
    pub(super) fn note_loss(&mut self, delivered: u64) -> bool {
        if !self.loss_in_round {
            self.loss_round_end = delivered;
        }
        !core::mem::replace(&mut self.loss_in_round, true)
    }

    /// A probe of the RTT holds the packets back that leave from now on until all in flight are
    /// delivered (`MarkConnectionAppLimited`).
    pub(super) fn hold_back(&mut self, ack: &Ack, first: bool) {
        let until = ack.delivered.saturating_add(u64::from(ack.in_flight));
        let from = self.held_back.filter(|_| !first).map_or(ack.delivered, |(from, _)| from);
        self.held_back = Some((from, until));
    }

    /// `UpdateLatestDeliverySignals`, `UpdateMaxBw`.
    pub(super) fn take_rate(&mut self, ack: &Ack) {
        (self.round_start, self.loss_round_start) = (false, false);
        let Some(sample) = ack.rate else {
            self.rate = Rate::ZERO;
            return;
        };
        let DeliveryRate { delivered, interval, prior_delivered, app_limited } = sample;
        self.rate = Rate::of(Bytes::new(u64::from(delivered).saturating_mul(self.mss)), interval);
        self.latest = self.latest.max(self.rate);
        self.latest_packets = self.latest_packets.max(delivered);
        if prior_delivered >= self.loss_round_end {
            self.loss_round_end = ack.delivered;
            self.loss_round_start = true;
        }
        if prior_delivered >= self.round_end {
            self.round_end = ack.delivered;
            self.round += 1;
            self.round_start = true;
        }
        let held = |(from, until)| (from..=until).contains(&prior_delivered);
        self.app_limited = app_limited || self.held_back.is_some_and(held);
        if !self.app_limited || self.largest().is_none_or(|largest| self.rate >= largest) {
            self.bandwidths[1] = self.bandwidths[1].max(self.rate);
        }
    }

    /// Once per round trip with losses, while not probing (`AdaptLowerBoundsFromCongestion`).
    pub(super) fn adapt_shortterm(&mut self, cwnd: u32, beta: f64) {
        let Some(largest) = self.largest() else { return };
        let bandwidth = self.bounds.bandwidth.unwrap_or(largest);
        let shortterm = self.bounds.shortterm.unwrap_or(cwnd);
        self.bounds.bandwidth = Some(self.latest.max(bandwidth.mul_f64(beta)));
        self.bounds.shortterm = Some(self.latest_packets.max((f64::from(shortterm) * beta) as u32));
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_signals(&mut self, ack: &Ack) {
        if self.loss_round_start {
            self.latest = self.rate;
            self.latest_packets = ack.rate.map_or(0, |sample| sample.delivered);
        }
    }

    /// `UpdateACKAggregation`.
    pub(super) fn aggregate(&mut self, ack: &Ack, cwnd: u32, rounds: u32) {
        let Some(bandwidth) = self.bandwidth().filter(|_| ack.acked > 0) else { return };
        let expected = |since: Time| bandwidth.bytes_in(ack.now.since(since)).get() / self.mss;
        let epoch = match self.epoch {
            Some(epoch) if self.epoch_acked > expected(epoch) => epoch,
            _ => {
                self.epoch_acked = 0;
                ack.now
            }
        };
        self.epoch = Some(epoch);
        self.epoch_acked += u64::from(ack.acked);
        let extra = self.epoch_acked.saturating_sub(expected(epoch)).min(u64::from(cwnd)) as u32;
        self.extra.update(self.round, extra, u64::from(rounds));
    }

    /// `UpdateMinRTT`.
    pub(super) fn take_rtt(&mut self, ack: &Ack, config: &Bbr3Config) {
        let micros = |span: Span| if span == Span::MAX { span } else { Span::from_micros(span.as_micros()) };
        if self.min_rtt == Span::MAX {
            (self.min_rtt, self.min_rtt_at) = (micros(ack.min_rtt), ack.now);
            (self.recent_rtt, self.recent_rtt_at) = (self.min_rtt, ack.now);
        }
        let expired = |at: Time, after: Span| ack.now.since(at) > after;
        self.rtt_expired = self.recent_rtt != Span::MAX && expired(self.recent_rtt_at, config.probe_rtt_interval);
        if let Some(rtt) = ack.rtt.map(micros)
            && (rtt < self.recent_rtt || self.rtt_expired)
        {
            (self.recent_rtt, self.recent_rtt_at) = (rtt, ack.now);
        }
        if self.recent_rtt < self.min_rtt || expired(self.min_rtt_at, config.min_rtt_window) {
            (self.min_rtt, self.min_rtt_at) = (self.recent_rtt, self.recent_rtt_at);
        }
    }
}
