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
mod flight;
mod model;

use flowstart_control::random::Random;
use flowstart_control::{Ack, Acked, ExitReason, Sent, Signal, Window};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::CongestionAvoidance;
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
    /// A recovery lasts until this byte is acknowledged.
    recovery: Option<u64>,
    undo: Undo,
    saved_cwnd: u32,
    idle_restart: bool,
    first_window: u32,
    pacing_rate: Option<Rate>,
    next: u64,
    delivered: u64,
    now: Time,
    random: Random,
}

impl Bbr3 {
    /// BBR for a flow with segments of `mss` payload bytes; `seed` decides when it probes.
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
            recovery: None,
            undo: Undo::default(),
            saved_cwnd: 0,
            idle_restart: false,
            first_window: 0,
            pacing_rate: None,
            next: 0,
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

    fn start_down(&mut self, now: Time) {
        self.model.reset_signals();
        self.up_acked_per_packet = u32::MAX;
        self.rounds_since_up = u64::from(self.random.coin());
        self.wait = self.config.probe_wait + self.config.probe_wait_random.mul_f64(self.random.unit());
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.model.begin_round(self.delivered);
        self.mode = Bbr3Mode::ProbeDown;
    }

    fn start_refill(&mut self) {
        self.model.reset_shortterm();
        (self.up_rounds, self.up_acked) = (0, 0);
        self.precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.model.begin_round(self.delivered);
        self.mode = Bbr3Mode::ProbeRefill;
    }

    fn start_up(&mut self, cwnd: u32) {
        self.ack_phase = AckPhase::Starting;
        self.model.begin_round(self.delivered);
        self.reset_full(self.model.rate);
        self.mode = Bbr3Mode::ProbeUp;
        self.raise_slope(cwnd);
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, cwnd: u32) {
        let growth = 1_u32 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MOST_DOUBLINGS);
        self.up_acked_per_packet = (cwnd / growth).max(1);
    }

    /// `IsInflightTooHigh`.
    fn is_too_high(&self, told: Told) -> bool {
        told.lost as f64 > f64::from(told.in_flight) * self.config.loss_share
    }

    /// `HandleInflightTooHigh`.
    fn on_too_high(&mut self, in_flight: u32, cwnd: u32) {
        self.too_high = true;
        self.probe_sample = false;
        if !self.model.app_limited {
            let least = (f64::from(self.target(cwnd)) * self.config.beta) as u32;
            self.model.bounds.longterm = Some(in_flight.max(least));
        }
        if self.mode == Bbr3Mode::ProbeUp {
            self.undo.mode = Some(Bbr3Mode::ProbeUp);
            self.start_down(self.now);
        }
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
        let undisturbed = self.recovery.is_none() && self.mode != Bbr3Mode::ProbeRtt;
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
        self.loss_events += u32::from(ack.lost > 0);
        if self.mode == Bbr3Mode::Startup {
            let many = self.loss_events >= self.config.loss_events && told.is_some_and(|told| self.is_too_high(told));
            if !self.full_reached && self.model.loss_round_start && self.recovery.is_some() && many {
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

    /// `AdaptLongTermModel`; true if it decided what comes next.
    fn adapt_longterm(&mut self, ack: &Ack, told: Option<Told>, cwnd: u32) -> bool {
        if self.ack_phase == AckPhase::Starting && self.model.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.model.round_start {
            self.probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_cycling() && !self.model.app_limited {
                self.model.next_cycle();
            }
            if self.is_cycling() && self.precautionary && !self.too_high {
                self.start_refill();
                return true;
            }
        }
        let Some(told) = told.filter(|told| !self.is_too_high(*told)) else { return false };
        let Some(bound) = self.model.bounds.longterm else { return false };
        self.model.bounds.longterm = Some(bound.max(told.in_flight));
        if self.mode == Bbr3Mode::ProbeUp {
            self.probe_upward(ack, cwnd);
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, ack: &Ack, cwnd: u32) {
        let Some(bound) = self.model.bounds.longterm.filter(|bound| ack.cwnd_limited && cwnd >= *bound) else { return };
        self.up_acked = self.up_acked.saturating_add(ack.acked);
        let more = self.up_acked / self.up_acked_per_packet;
        self.up_acked -= more * self.up_acked_per_packet;
        self.model.bounds.longterm = Some(bound.saturating_add(more));
        if self.model.round_start {
            self.raise_slope(cwnd);
        }
    }

    /// `UpdateProbeBWCyclePhase`.
    fn cycle(&mut self, ack: &Ack, told: Option<Told>, cwnd: u32) {
        if !self.full_reached || self.adapt_longterm(ack, told, cwnd) {
            return;
        }
        let go_down = self.mode == Bbr3Mode::ProbeUp && self.is_time_to_go_down(ack, cwnd);
        match self.mode {
            Bbr3Mode::ProbeDown | Bbr3Mode::ProbeCruise => {
                let rounds = u64::from(self.target(cwnd).min(self.config.probe_rounds));
                if ack.now.since(self.cycle_at) > self.wait || self.rounds_since_up >= rounds {
                    self.start_refill();
                } else if self.mode == Bbr3Mode::ProbeDown
                    && self.with_headroom().is_none_or(|most| ack.in_flight <= most)
                    && self.inflight(1.0).is_none_or(|bdp| ack.in_flight <= bdp)
                {
                    self.mode = Bbr3Mode::ProbeCruise;
                }
            }
            Bbr3Mode::ProbeRefill if self.model.round_start => {
                self.probe_sample = true;
                self.start_up(cwnd);
            }
            Bbr3Mode::ProbeUp if go_down => {
                self.too_high = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, ack: &Ack, cwnd: u32) -> bool {
        if let Some(bound) = self.model.bounds.longterm {
            if self.too_high && ack.in_flight >= bound {
                self.precautionary = true;
                return true;
            }
            if ack.cwnd_limited && cwnd >= bound {
                self.reset_full(self.model.rate);
                return false;
            }
        }
        self.full_now
    }

    /// `CheckProbeRTT`.
    fn probe_rtt(&mut self, ack: &Ack, window: &mut Window) {
        if self.mode != Bbr3Mode::ProbeRtt && self.model.rtt_expired && !self.idle_restart {
            self.save_cwnd(window.cwnd);
            self.mode = Bbr3Mode::ProbeRtt;
            self.probe_until = None;
            self.ack_phase = AckPhase::Stopping;
            self.model.begin_round(self.delivered);
            self.model.hold_back(ack, true);
        }
        if self.mode == Bbr3Mode::ProbeRtt {
            self.model.hold_back(ack, false);
            if self.probe_until.is_some() {
                self.probe_round |= self.model.round_start;
                if self.probe_round {
                    self.end_probe_rtt(ack.now, Some(window));
                }
            } else if ack.in_flight <= self.probe_rtt_cwnd() {
                self.probe_until = Some(ack.now + self.config.probe_rtt);
                self.probe_round = false;
                self.model.begin_round(self.delivered);
            }
        }
        self.idle_restart &= ack.rate.is_none();
    }

    fn probe_rtt_cwnd(&self) -> u32 {
        let bdp = self.model.bdp(self.model.bandwidth(), self.config.probe_rtt_gain);
        bdp.unwrap_or(0).max(self.config.min_cwnd)
    }

    /// `CheckProbeRTTDone`, `ExitProbeRTT`.
    fn end_probe_rtt(&mut self, now: Time, window: Option<&mut Window>) {
        if self.probe_until.is_none_or(|until| now <= until) {
            return;
        }
        self.model.refresh_rtt(now);
        if let Some(window) = window {
            window.cwnd = window.cwnd.max(self.saved_cwnd);
        }
        self.model.reset_shortterm();
        if self.full_reached {
            self.start_down(now);
            self.mode = Bbr3Mode::ProbeCruise;
        } else {
            self.mode = Bbr3Mode::Startup;
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
        (self.next, self.delivered, self.now) = (ack.next, ack.delivered, ack.now);
        for _ in 0..ack.lost {
            self.on_lost(cwnd);
        }
        self.model.take_rate(ack);
        let rounds = self.model.round - std::mem::replace(&mut self.counted_round, self.model.round);
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

impl CongestionAvoidance for Bbr3 {
    fn begin_flow(&mut self, window: &Window) -> bool {
        self.mode = Bbr3Mode::Startup;
        self.first_window = window.cwnd;
        true
    }

    fn own_exit(&self) -> Option<ExitReason> {
        self.full_reached.then_some(self.exit)
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.flight.on_sent(sent.number, sent.in_flight);
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.flight.on_acked(acked.number);
    }

    fn on_ack(&mut self, ack: &Ack, window: &Window) {
        self.learned = self.mode == Bbr3Mode::Waiting;
        if self.learned {
            self.learn(ack, window.cwnd);
            self.model.take_rtt(ack, &self.config);
            self.model.advance_signals(ack);
        }
    }

    fn grow(&mut self, ack: &Ack, _acked: u32, window: &mut Window) {
        if !std::mem::take(&mut self.learned) {
            self.learn(ack, window.cwnd);
        }
        let told = self.flight.take_newest();
        self.look_for_plateau();
        self.leave_startup(ack, told, window);
        self.cycle(ack, told, window.cwnd);
        self.model.take_rtt(ack, &self.config);
        if self.recovery.is_some_and(|end| ack.una >= end) {
            self.recovery = None;
            window.cwnd = window.cwnd.max(self.saved_cwnd);
        }
        self.probe_rtt(ack, window);
        self.model.advance_signals(ack);
        self.set_pacing_rate(self.gain());
        self.set_window(ack, window);
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        if self.mode == Bbr3Mode::Waiting {
            self.take_over(now);
        }
        if signal != Signal::Marks {
            self.save(window.cwnd);
            self.recovery = Some(self.next);
        }
        if signal == Signal::Timeout {
            self.flight.forget();
        }
        window.cwnd
    }

    fn on_takeover(&mut self, now: Time, _window: &Window, _rate: Option<Rate>) {
        self.take_over(now);
    }

    /// `HandleSpuriousLossDetection`.
    fn undo(&mut self, _prior_cwnd: u32, window: &Window) -> u32 {
        self.recovery = None;
        self.model.loss_in_round = false;
        self.reset_full(Rate::ZERO);
        let larger = |now: Option<u32>, before: Option<u32>| now.zip(before).map(|(now, before)| now.max(before));
        let (now, before) = (self.model.bounds, self.undo.bounds);
        self.model.bounds = Bounds {
            longterm: larger(now.longterm, before.longterm),
            bandwidth: now.bandwidth.zip(before.bandwidth).map(|(now, before)| now.max(before)),
            shortterm: larger(now.shortterm, before.shortterm),
        };
        match self.undo.mode.take() {
            Some(Bbr3Mode::Startup) if self.mode != Bbr3Mode::Startup => {
                self.full_reached = false;
                if self.mode != Bbr3Mode::ProbeRtt {
                    self.mode = Bbr3Mode::Startup;
                }
            }
            Some(Bbr3Mode::ProbeUp) if !matches!(self.mode, Bbr3Mode::ProbeUp | Bbr3Mode::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
        window.cwnd.max(self.saved_cwnd)
    }

    fn on_idle(&mut self, idle: Span) {
        self.idle_restart = true;
        self.model.forget_epoch();
        if self.is_cycling() {
            self.set_pacing_rate(1.0);
        } else if self.mode == Bbr3Mode::ProbeRtt {
            self.end_probe_rtt(self.now + idle, None);
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn controls_recovery(&self) -> bool {
        true
    }
}
