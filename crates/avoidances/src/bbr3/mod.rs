//! BBR version 3 (draft-ietf-ccwg-bbr-06). Names in parentheses are the draft's.
//!
//! **Start.** The flow paces at 2.77 times the largest delivery rate, so that the rate doubles
//! every round trip, until it has not grown by a quarter in three of them or until more than 2 % of
//! the packets of a round trip were lost (Startup); then at half of the rate until no more is in
//! flight than the bandwidth-delay product, at most for three round trips (Drain). A flow that
//! another start began (`slow_start+bbr3`) has neither.
//!
//! **Cycles.** Every two to three seconds, or every 63 round trips if these are shorter, or as many
//! as the bandwidth-delay product has packets, it fills the path for a round trip (ProbeBW_REFILL),
//! sends a quarter faster until the rate no longer grows or too much is lost (ProbeBW_UP), lets the
//! queue drain (ProbeBW_DOWN) and keeps its rate until the next time (ProbeBW_CRUISE). What was in
//! flight when too much was lost is the long-term bound, of which it leaves 15 % to others and
//! which it raises in later probes, slowly at first. Losses at other times set short-term bounds,
//! 0.7 of what was or what is delivered now, that hold until the next probe.
//!
//! **Smallest RTT.** After five seconds without a smaller one the window is half of the
//! bandwidth-delay product for 200 ms and a round trip (ProbeRTT).
//!
//! The draft has no answer to congestion marks, and neither has this. Left out: rounds and ranges
//! of transports without SACK. ACKs that report losses stand for ranges lost. The transport says
//! how many packets were lost and not which: the oldest, which is right without reordering.

mod config;
mod control;
mod cycle;
mod flight;
mod model;
mod probe_rtt;

use flowstart_control::random::Random;
use flowstart_control::{Ack, ExitReason, InRange as _, Window};
use flowstart_units::{Bytes, Rate, Span, Time};

pub use config::Bbr3Config;
use flight::{Flight, Told};
use model::{Bounds, Model};

/// Most bytes of a burst (section 5.6.3).
const MOST_BURST_BYTES: u64 = 64 << 10;
/// Doublings of the long-term bound's growth at most (`RaiseInflightLongtermSlope`).
const MOST_DOUBLINGS: u32 = 30;

/// What BBR does (section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bbr3Mode {
    /// Another start is in charge; the model learns.
    Waiting,
    /// The rate doubles every round trip.
    Startup,
    /// The queue of that drains.
    Drain,
    /// Slower than the bandwidth.
    ProbeDown,
    /// At the bandwidth.
    ProbeCruise,
    /// At the bandwidth for a round trip, without short-term bounds.
    ProbeRefill,
    /// Faster than the bandwidth.
    ProbeUp,
    /// A small window, to see the smallest RTT.
    ProbeRtt,
}

/// Which packets the ACKs are about (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    /// None of a probe.
    Init,
    /// Those of before a probe.
    Refilling,
    /// Those that left just before it.
    Starting,
    /// Those of the probe.
    Feedback,
    /// The last of them.
    Stopping,
}

/// What a spurious loss gives back (section 5.5.11).
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    mode: Option<Bbr3Mode>,
    bounds: Bounds,
}

/// BBR version 3 in operation.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Bbr3Config,
    model: Model,
    flight: Flight,
    mode: Bbr3Mode,
    ack_phase: AckPhase,
    /// The ACK that another start heard of first was taken in.
    learned: bool,
    full_rate: Rate,
    full_rounds: u32,
    full_now: bool,
    full_reached: bool,
    exit: ExitReason,
    loss_events: u32,
    drain_round: u64,
    /// ACKs are about packets of a probe that was not yet too much (`is_bw_probe_sample`).
    probe_sample: bool,
    too_high: bool,
    precautionary: bool,
    rounds_since_up: u64,
    counted_round: u64,
    wait: Span,
    cycle_at: Time,
    up_rounds: u32,
    up_acked: u32,
    up_acked_per_packet: u32,
    probe_until: Option<Time>,
    probe_round: bool,
    /// A recovery lasts, as the transport says.
    recovering: bool,
    undo: Undo,
    saved_cwnd: u32,
    idle_restart: bool,
    first_window: u32,
    pacing_rate: Option<Rate>,
    delivered: u64,
    now: Time,
    random: Random,
}

impl Bbr3 {
    /// BBR for a flow with segments of `mss` payload bytes; `seed` decides when it probes.
    /// Constants out of range are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &Bbr3Config, mss: u32, seed: u64) -> Self {
        Self {
            config: config.in_range(),
            model: Model::new(mss),
            flight: Flight::default(),
            mode: Bbr3Mode::Waiting,
            ack_phase: AckPhase::Init,
            learned: false,
            full_rate: Rate::ZERO,
            full_rounds: 0,
            full_now: false,
            full_reached: false,
            exit: ExitReason::RatePlateau,
            loss_events: 0,
            drain_round: 0,
            probe_sample: false,
            too_high: false,
            precautionary: false,
            rounds_since_up: 0,
            counted_round: 0,
            wait: Span::ZERO,
            cycle_at: Time::ZERO,
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_packet: u32::MAX,
            probe_until: None,
            probe_round: false,
            recovering: false,
            undo: Undo::default(),
            saved_cwnd: 0,
            idle_restart: false,
            first_window: 0,
            pacing_rate: None,
            delivered: 0,
            now: Time::ZERO,
            random: Random::new(seed),
        }
    }

    /// What it does now.
    #[must_use]
    pub fn mode(&self) -> Bbr3Mode {
        self.mode
    }

    /// The bandwidth it reckons with, payload; `None` before the first sample.
    #[must_use]
    pub fn bandwidth(&self) -> Option<Rate> {
        self.model.bandwidth()
    }

    /// Packets in flight that a probe showed to be too many, if one did (`inflight_longterm`).
    #[must_use]
    pub fn longterm_bound(&self) -> Option<u32> {
        self.model.bounds.longterm
    }

    fn gain(&self) -> f64 {
        match self.mode {
            Bbr3Mode::Startup => self.config.startup_gain,
            Bbr3Mode::Drain => self.config.startup_drain_gain,
            Bbr3Mode::ProbeDown => self.config.down_gain,
            Bbr3Mode::ProbeUp => self.config.up_gain,
            Bbr3Mode::Waiting | Bbr3Mode::ProbeCruise | Bbr3Mode::ProbeRefill | Bbr3Mode::ProbeRtt => 1.0,
        }
    }

    fn is_cycling(&self) -> bool {
        use Bbr3Mode::{ProbeCruise, ProbeDown, ProbeRefill, ProbeUp};
        matches!(self.mode, ProbeDown | ProbeCruise | ProbeRefill | ProbeUp)
    }

    fn burst(&self) -> u32 {
        let rate = self.pacing_rate.unwrap_or(Rate::ZERO);
        let bytes = rate.bytes_in(self.config.burst_time).get().min(MOST_BURST_BYTES);
        (bytes / self.model.mss).max(2) as u32
    }

    /// `QuantizationBudget`.
    fn with_bursts(&self, packets: u32) -> u32 {
        let most = packets.max(self.config.bursts.saturating_mul(self.burst())).max(self.config.min_cwnd);
        most.saturating_add(if self.mode == Bbr3Mode::ProbeUp { self.config.probe_packets } else { 0 })
    }

    /// `Inflight`.
    fn inflight(&self, gain: f64) -> Option<u32> {
        Some(self.with_bursts(self.model.bdp(self.model.largest(), gain)?))
    }

    /// `TargetInflight`.
    fn target(&self, cwnd: u32) -> u32 {
        self.model.bdp(self.model.bandwidth(), 1.0).map_or(cwnd, |bdp| bdp.min(cwnd))
    }

    /// The long-term bound without what is left to others; `None` for infinite
    /// (`InflightWithHeadroom`).
    fn with_headroom(&self) -> Option<u32> {
        let bound = self.model.bounds.longterm?;
        let headroom = ((self.config.headroom * f64::from(bound)) as u32).max(1);
        Some(bound.saturating_sub(headroom).max(self.config.min_cwnd))
    }

    fn reset_full(&mut self, rate: Rate) {
        (self.full_rate, self.full_rounds, self.full_now) = (rate, 0, false);
    }

    /// `HandleLostPacket`, with `InflightAtLoss`.
    fn on_lost(&mut self, cwnd: u32) {
        if self.model.note_loss(self.delivered) {
            self.save(cwnd);
        }
        let told = self.flight.lose_one();
        let Some(told) = told.filter(|_| self.probe_sample) else { return };
        if self.is_too_high(told) {
            let share = self.config.loss_share;
            let before = f64::from(told.in_flight.saturating_sub(1));
            let prefix = (share * before - (told.lost.saturating_sub(1)) as f64) / (1.0 - share);
            self.on_too_high((before + prefix.max(0.0)) as u32, cwnd);
        }
    }

    /// `SaveStateUponLoss`.
    fn save(&mut self, cwnd: u32) {
        self.save_cwnd(cwnd);
        self.undo = Undo { mode: None, bounds: self.model.bounds };
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let undisturbed = !self.recovering && self.mode != Bbr3Mode::ProbeRtt;
        self.saved_cwnd = if undisturbed { cwnd } else { self.saved_cwnd.max(cwnd) };
    }

    /// `CheckFullBWReached`.
    fn look_for_plateau(&mut self) {
        if self.full_now || !self.model.round_start || self.model.app_limited {
            return;
        }
        if self.model.rate >= self.full_rate.mul_f64(self.config.plateau_growth) {
            self.reset_full(self.model.rate);
            return;
        }
        self.full_rounds += 1;
        self.full_now = self.full_rounds >= self.config.plateau_rounds;
        self.full_reached |= self.full_now;
    }

    /// `CheckStartupDone`, `CheckStartupHighLoss`, `CheckDrainDone`.
    fn leave_startup(&mut self, ack: &Ack, told: Option<Told>, window: &mut Window) {
        self.loss_events += u32::from(ack.newly_lost() > 0);
        if self.mode == Bbr3Mode::Startup {
            let many = self.loss_events >= self.config.loss_events && told.is_some_and(|told| self.is_too_high(told));
            if !self.full_reached && self.model.loss_round_start && self.recovering && many {
                self.undo.mode = Some(Bbr3Mode::Startup);
                self.full_reached = true;
                self.exit = ExitReason::Loss;
                let bdp = self.model.bdp(self.model.bandwidth(), 1.0).unwrap_or(0);
                self.model.bounds.longterm = Some(bdp.max(self.model.latest_packets));
            }
            if self.full_reached {
                self.mode = Bbr3Mode::Drain;
                self.drain_round = self.model.round;
                window.ssthresh = self.inflight(1.0).unwrap_or(window.ssthresh).max(2);
            }
        }
        if self.model.loss_round_start {
            self.loss_events = 0;
        }
        if self.mode == Bbr3Mode::Drain
            && (self.inflight(1.0).is_some_and(|bdp| ack.in_flight <= bdp)
                || self.model.round > self.drain_round + u64::from(self.config.drain_rounds))
        {
            self.start_down(ack.now);
        }
    }

    /// `SetPacingRateWithGain`, `InitPacingRate`.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rtt = self.model.min_rtt;
        if self.pacing_rate.is_none() && self.mode == Bbr3Mode::Startup && rtt != Span::MAX {
            let window = Bytes::new(self.model.mss.saturating_mul(u64::from(self.first_window)));
            let rate = Rate::of(window, rtt.max(Span::from_micros(1)));
            self.pacing_rate = Some(rate.mul_f64(self.config.startup_gain));
        }
        let Some(bandwidth) = self.model.bandwidth() else { return };
        let rate = bandwidth.mul_f64(gain * (1.0 - self.config.margin));
        if self.full_reached || self.pacing_rate.is_none_or(|before| rate > before) {
            self.pacing_rate = Some(rate);
        }
    }

    /// `SetCwnd`.
    fn set_window(&self, ack: &Ack, window: &mut Window) {
        let gain = match self.mode {
            Bbr3Mode::ProbeUp => self.config.up_cwnd_gain,
            Bbr3Mode::ProbeRtt => self.config.probe_rtt_gain,
            _ => self.config.cwnd_gain,
        };
        if let Some(bdp) = self.model.bdp(self.model.bandwidth(), gain) {
            let most = self.with_bursts(bdp.saturating_add(self.model.extra()));
            let grown = window.cwnd.saturating_add(ack.acked);
            if self.full_reached {
                window.cwnd = grown.min(most);
            } else if window.cwnd < most || ack.delivered < u64::from(self.first_window) {
                window.cwnd = grown;
            }
        }
        window.cwnd = window.cwnd.max(self.config.min_cwnd);
        if self.mode == Bbr3Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        // `BoundCwndForModel`.
        let longterm = match self.mode {
            Bbr3Mode::ProbeCruise | Bbr3Mode::ProbeRtt => self.with_headroom(),
            _ if self.is_cycling() => self.model.bounds.longterm,
            _ => None,
        };
        for bound in [longterm, self.model.bounds.shortterm].into_iter().flatten() {
            window.cwnd = window.cwnd.min(bound.max(self.config.min_cwnd));
        }
    }

    /// The model takes an ACK in.
    fn learn(&mut self, ack: &Ack, cwnd: u32) {
        (self.delivered, self.now) = (ack.delivered, ack.now);
        for _ in 0..ack.newly_lost() {
            self.on_lost(cwnd);
        }
        self.model.take_rate(ack);
        let rounds = self.model.round - core::mem::replace(&mut self.counted_round, self.model.round);
        self.rounds_since_up = self.rounds_since_up.saturating_add(rounds);
        if self.model.loss_round_start {
            let probing = matches!(self.mode, Bbr3Mode::Startup | Bbr3Mode::ProbeRefill | Bbr3Mode::ProbeUp);
            if self.model.loss_in_round && !probing {
                self.model.adapt_shortterm(cwnd, self.config.beta);
            }
            self.model.loss_in_round = false;
        }
        let rounds = if self.full_reached { self.config.aggregation_rounds } else { 1 };
        self.model.aggregate(ack, cwnd, rounds);
    }

    /// Another start is over: the path is full, as far as it has found out.
    fn take_over(&mut self, now: Time) {
        self.full_reached = true;
        self.start_down(now);
        self.set_pacing_rate(self.gain());
    }
}

#[cfg(test)]
mod tests;
