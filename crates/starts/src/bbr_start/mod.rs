//! The start of BBR (draft-ietf-ccwg-bbr; Linux `tcp_bbr`), STARTUP and DRAIN, in front of any
//! congestion avoidance.
//!
//! Packets are paced at a multiple of the largest delivery rate seen, so that the rate doubles
//! every round trip. When it no longer grows for three rounds, or when many packets were lost in a
//! round, the path is full: the flow then sends at less than the rate found until no more is in
//! flight than the bandwidth-delay product, and hands over with that as window and threshold and
//! the bandwidth as pace.
//!
//! A loss by itself does not reduce anything, nor does a congestion mark unless
//! [`BbrStartConfig::obey_marks`] says so; a timeout ends the start. What BBR does to its window in
//! the first round of a recovery (packet conservation) is left out. The bandwidth is the maximum
//! since the beginning: BBR forgets after ten rounds, which only a start that the application holds
//! back would reach.

mod config;

use flowstart_control::{
    Ack, AfterAck, Departure, Exit, ExitReason, FlowStart, InRange as _, NewMss, Next, Response, Sent, Signal, Window,
};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::spacing::{MILLION, Spacing, millionths, scale};
pub use config::BbrStartConfig;

/// Assumed round-trip time before the first sample (`BBRInitPacingRate`).
const UNKNOWN_RTT: Span = Span::from_millis(1);

/// Looks for the round trip from which on the bandwidth no longer grows.
#[derive(Clone, Copy, Debug, Default)]
struct Plateau {
    baseline: Option<Rate>,
    rounds: u32,
}

impl Plateau {
    /// A round began with this bandwidth; true if it has been flat for `rounds` rounds.
    fn on_round(&mut self, bandwidth: Rate, growth: u64, rounds: u32) -> bool {
        if self.baseline.is_none_or(|baseline| bandwidth >= scale(baseline, growth)) {
            *self = Self { baseline: Some(bandwidth), rounds: 0 };
        } else {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.rounds >= rounds
    }
}

/// What happened to the packets of a round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundLosses {
    delivered: u64,
    lost: u64,
    events: u32,
    /// A recovery had begun before the round did.
    in_recovery: bool,
}

/// The part of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrPhase {
    /// Doubling.
    Startup,
    /// Emptying the queue.
    Drain,
}

/// BBR's start in operation. [`BbrStartConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct BbrStart {
    config: BbrStartConfig,
    mss: u64,
    initial_window: u32,
    phase: BbrPhase,
    reason: ExitReason,
    spacing: Spacing,
    pacing_rate: Option<Rate>,
    bandwidth: Option<Rate>,
    plateau: Plateau,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    round_end: u64,
    drained_rounds: u32,
    losses: RoundLosses,
    recovering: bool,
    min_rtt: Span,
}

impl BbrStart {
    /// BBR's start for a flow with segments of `mss` payload bytes that begins with
    /// `initial_window` packets.
    #[must_use]
    pub fn new(config: &BbrStartConfig, initial_window: u32, mss: u32) -> Self {
        Self {
            config: config.in_range(),
            mss: u64::from(mss.max(1)),
            initial_window: initial_window.max(1),
            phase: BbrPhase::Startup,
            reason: ExitReason::RatePlateau,
            spacing: Spacing::new(),
            pacing_rate: None,
            bandwidth: None,
            plateau: Plateau::default(),
            round_end: 0,
            drained_rounds: 0,
            losses: RoundLosses::default(),
            recovering: false,
            min_rtt: Span::MAX,
        }
    }

    /// What it does now.
    #[must_use]
    pub fn phase(&self) -> BbrPhase {
        self.phase
    }

    /// The bandwidth found so far.
    #[must_use]
    pub fn bandwidth(&self) -> Option<Rate> {
        self.bandwidth
    }

    fn with_margin(&self, rate: Rate) -> Rate {
        scale(rate, MILLION - millionths(self.config.margin).min(MILLION))
    }

    /// The pacing rate while nothing is known but the RTT, if that.
    fn initial_rate(&self, srtt: Span) -> Rate {
        let rtt = if srtt.is_zero() { UNKNOWN_RTT } else { srtt };
        let rate = Rate::of(Bytes::new(self.mss * u64::from(self.initial_window)), rtt);
        let rate = scale(rate, millionths(self.config.pacing_gain));
        if self.config.initial_margin { self.with_margin(rate) } else { rate }
    }

    /// A multiple of the bandwidth-delay product in packets, rounded up; `None` while it is not
    /// known.
    fn inflight(&self, gain: u64) -> Option<u32> {
        let bandwidth = self.bandwidth.filter(|_| self.min_rtt != Span::MAX)?;
        let bytes = scale(bandwidth, gain).bytes_in(self.min_rtt).get();
        let packets = u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX);
        Some(packets.saturating_add(self.config.extra_packets).max(self.config.min_cwnd))
    }

    /// Takes the delivery-rate sample; true if a round began.
    fn take_rate(&mut self, ack: &Ack) -> bool {
        let Some(sample) = ack.rate else { return false };
        let rate = Rate::of(Bytes::new(u64::from(sample.delivered).saturating_mul(self.mss)), sample.interval);
        if !sample.app_limited || self.bandwidth.is_none_or(|bandwidth| rate > bandwidth) {
            self.bandwidth = Some(self.bandwidth.map_or(rate, |bandwidth| bandwidth.max(rate)));
        }
        let begins = sample.prior_delivered >= self.round_end;
        if begins {
            self.round_end = ack.delivered;
            let bandwidth = if self.config.plateau_of_maximum { self.bandwidth.unwrap_or(rate) } else { rate };
            let growth = millionths(self.config.plateau_growth);
            if self.phase == BbrPhase::Startup
                && !sample.app_limited
                && self.plateau.on_round(bandwidth, growth, self.config.plateau_rounds)
            {
                self.phase = BbrPhase::Drain;
            }
        }
        begins
    }

    /// A round is over: were too many of its packets lost?
    fn judge_losses(&mut self, in_flight: u32) {
        let RoundLosses { delivered, lost, events, in_recovery } = self.losses;
        let share = self.config.loss_share;
        let many = share < 1.0 && lost as f64 > share * (delivered + lost) as f64;
        if self.phase == BbrPhase::Startup && in_recovery && many && events >= self.config.loss_events {
            self.phase = BbrPhase::Drain;
            self.reason = ExitReason::Loss;
        }
        self.recovering &= lost > 0 || in_flight == 0;
        self.losses = RoundLosses { in_recovery: self.recovering, ..RoundLosses::default() };
    }

    fn set_pacing_rate(&mut self) {
        let Some(bandwidth) = self.bandwidth else { return };
        let gain = match self.phase {
            BbrPhase::Startup => self.config.pacing_gain,
            BbrPhase::Drain => self.config.drain_gain,
        };
        let rate = self.with_margin(scale(bandwidth, millionths(gain)));
        // Start-up never slows down.
        if self.phase == BbrPhase::Drain || self.pacing_rate.is_none_or(|before| rate > before) {
            self.pacing_rate = Some(rate);
        }
    }

    fn set_window(&self, ack: &Ack, window: &mut Window) {
        let target = self.inflight(millionths(self.config.cwnd_gain)).unwrap_or(u32::MAX);
        let grown = window.cwnd.saturating_add(ack.acked);
        window.cwnd = match self.phase {
            BbrPhase::Drain => grown.min(target),
            BbrPhase::Startup if window.cwnd < target || ack.delivered < u64::from(self.initial_window) => grown,
            BbrPhase::Startup => window.cwnd,
        }
        .max(self.config.min_cwnd);
    }
}

impl FlowStart for BbrStart {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.min_rtt = ack.min_rtt;
        self.losses.delivered += u64::from(ack.acked);
        self.losses.lost += u64::from(ack.newly_lost());
        self.losses.events += u32::from(ack.newly_lost() > 0);
        let draining = self.phase == BbrPhase::Drain;
        if self.take_rate(ack) {
            self.judge_losses(ack.in_flight);
            self.drained_rounds += u32::from(draining);
        }
        self.set_pacing_rate();
        self.set_window(ack, window);
        if self.phase == BbrPhase::Drain
            && let Some(bdp) = self.inflight(MILLION)
            && (ack.in_flight <= bdp || self.drained_rounds >= self.config.drain_rounds)
        {
            return AfterAck::Done(Exit { reason: self.reason, cwnd: bdp, ssthresh: bdp, rate: self.bandwidth });
        }
        AfterAck::Continue
    }

    fn grow(&mut self, _ack: &Ack, _window: &mut Window) -> u32 {
        0
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, _window: &mut Window) -> Response {
        match signal {
            Signal::Loss => {
                self.recovering = true;
                Response::Ignore
            }
            Signal::Marks if !self.config.obey_marks => Response::Ignore,
            Signal::Marks | Signal::Timeout => Response::Leave,
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if let Some(rate) = self.pacing_rate {
            self.spacing.book(sent, rate);
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        if self.bandwidth.is_none() {
            self.pacing_rate = Some(self.initial_rate(next.srtt));
        }
        Some(self.spacing.departure(now))
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn departure_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.initial_window = mss.packets(self.initial_window);
    }
}

#[cfg(test)]
mod tests;
