//! BBR version 1 (Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, "BBR: congestion-based
//! congestion control", ACM Queue 14(5), 2016), as Linux 6.x runs it (`tcp_bbr`).
//!
//! **Start.** The flow paces at 2.89 times the largest delivery rate seen, so that the rate doubles
//! every round trip, until it has grown by less than a quarter in three of them (STARTUP); then it
//! sends at less than that rate until no more is in flight than the bandwidth-delay product
//! (DRAIN). A flow that another start began (`slow_start+bbr`) has neither; the model learns from
//! its ACKs.
//!
//! **Cycles.** It paces at the largest delivery rate of the last ten round trips, in cycles of
//! eight phases: one faster, to see whether there is more; one slower, to drain what that queued;
//! six at the rate (PROBE_BW). Its window is twice the bandwidth-delay product of that rate and the
//! smallest RTT of the last ten seconds, with room for three bursts and for ACKs that come in
//! bunches. When ten seconds did not see a smaller RTT, the window is four packets for 200 ms and a
//! round trip, so that the queue drains and it can be measured (PROBE_RTT).
//!
//! **Losses** do not change the model, unless they look like those of a policer: then the
//! throughput between two of them is the bandwidth for 48 round trips. In the first round of a
//! recovery as many packets leave as are delivered, and afterwards the window is what it was.
//! Congestion marks are ignored.
//!
//! Left out: ticks of the kernel's clock (times are exact, so that a probe of the RTT is up to a
//! tick shorter), and the mark of a delayed ACK of less than a segment. Without a bandwidth sample
//! (a start that was lost altogether) the window stays as it is.

mod aggregation;
mod config;
pub(crate) mod filter;
mod model;
mod modes;
mod policer;

use flowstart_units::{Bytes, Rate, Span, Time};

use super::CongestionAvoidance;
use flowstart_control::random::Random;
use flowstart_control::{Ack, ExitReason, InRange as _, NewMss, Repair, Signal, Window};

pub use config::BbrConfig;
use model::{Model, News};
pub use modes::BbrMode;
use modes::Plateau;

/// Most bytes of a burst (`bbr_tso_segs_goal`: what a packet of 64 KiB has beside headers).
const MOST_BURST_BYTES: u64 = 65_215;
/// Most packets of a burst (`bbr_tso_segs_goal`).
const MOST_BURST: u64 = 127;
/// Deliveries up to which the window grows whatever it is (`TCP_INIT_CWND` in `bbr_set_cwnd`).
const FIRST_DELIVERIES: u64 = 10;

/// BBR in operation.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: BbrConfig,
    mss: u64,
    model: Model,
    mode: BbrMode,
    plateau: Plateau,
    /// What was being repaired after the last ACK, or since a timeout (`prev_ca_state`).
    repair: Repair,
    /// As many packets leave as are delivered: the first round of a recovery
    /// (`packet_conservation`).
    conserve: bool,
    /// What the ACK told that another start heard of first.
    learned: Option<News>,
    /// Packets that the first window had.
    first_window: u32,
    /// The window before a recovery or a probe of the RTT.
    saved_cwnd: u32,
    /// The flow sends again after an idle time.
    idle_restart: bool,
    pacing_rate: Option<Rate>,
    /// Earliest departure of the next packet.
    booked: Time,
    /// Packets delivered and the time, as the last ACK said.
    delivered: u64,
    now: Time,
    random: Random,
}

impl Bbr {
    /// BBR for a flow with segments of `mss` payload bytes; `seed` decides with which phases cycles
    /// begin. Constants out of range are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &BbrConfig, mss: u32, seed: u64) -> Self {
        Self {
            config: config.in_range(),
            mss: u64::from(mss.max(1)),
            model: Model::new(mss),
            mode: BbrMode::Waiting,
            plateau: Plateau::default(),
            repair: Repair::Nothing,
            conserve: false,
            learned: None,
            first_window: 0,
            saved_cwnd: 0,
            idle_restart: false,
            pacing_rate: None,
            booked: Time::ZERO,
            delivered: 0,
            now: Time::ZERO,
            random: Random::new(seed),
        }
    }

    /// What it does now.
    #[must_use]
    pub fn mode(&self) -> BbrMode {
        self.mode
    }

    /// The bandwidth it reckons with, payload; `None` before the first sample.
    #[must_use]
    pub fn bandwidth(&self) -> Option<Rate> {
        self.model.bandwidth()
    }

    /// Packets of a burst at the pacing rate (`bbr_tso_segs_goal`).
    fn burst(&self) -> u32 {
        let rate = self.pacing_rate.unwrap_or(Rate::ZERO);
        let bytes = rate.bytes_in(self.config.burst_time).get().min(MOST_BURST_BYTES);
        (bytes / self.mss).max(self.least_burst_at(rate).into()).min(MOST_BURST) as u32
    }

    /// Packets that a burst has at least (`bbr_min_tso_segs`).
    fn least_burst_at(&self, rate: Rate) -> u32 {
        if rate < self.config.single_packets_below { 1 } else { 2 }
    }

    /// A multiple of the bandwidth-delay product with room for bursts, packets (`bbr_inflight`).
    fn inflight(&self, gain: f64) -> Option<u32> {
        Some(self.with_bursts(self.model.bdp(self.model.largest_bandwidth(), gain)?))
    }

    /// `bbr_quantization_budget`.
    fn with_bursts(&self, packets: u32) -> u32 {
        let room = self.config.bursts.saturating_mul(self.burst());
        let even = packets.saturating_add(room).saturating_add(1) & !1;
        let probing = matches!(self.mode, BbrMode::ProbeBandwidth { phase: 0, .. });
        even.saturating_add(if probing { self.config.probe_packets } else { 0 })
    }

    /// Of this many packets in flight, those that will be when the next one may leave
    /// (`bbr_packets_in_net_at_edt`).
    fn at_departure(&self, in_flight: u32, gain: f64) -> u32 {
        let more = if gain > 1.0 { self.burst() } else { 0 };
        let wait = self.booked.since(self.now);
        let delivered = self.model.bandwidth().map_or(0, |bandwidth| self.model.packets_in(bandwidth, wait));
        in_flight.saturating_add(more).saturating_sub(delivered)
    }

    fn save_cwnd(&mut self, window: &Window) {
        let undisturbed = self.repair == Repair::Nothing && !matches!(self.mode, BbrMode::ProbeRtt { .. });
        self.saved_cwnd = if undisturbed { window.cwnd } else { self.saved_cwnd.max(window.cwnd) };
    }

    /// A rate times a gain, below it by the margin (`bbr_rate_bytes_per_sec`).
    fn paced(&self, rate: Rate, gain: f64) -> Rate {
        rate.mul_f64(gain * (1.0 - self.config.margin))
    }

    /// `bbr_set_pacing_rate`, with `bbr_init_pacing_rate_from_rtt`.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rtt = self.model.min_rtt;
        if self.pacing_rate.is_none() && self.mode == BbrMode::Startup && rtt != Span::MAX {
            let window = Bytes::new(self.mss.saturating_mul(u64::from(self.first_window)));
            let rate = Rate::of(window, rtt.max(Span::from_micros(1)));
            self.pacing_rate = Some(self.paced(rate, self.config.startup_gain));
        }
        let Some(bandwidth) = self.model.bandwidth() else { return };
        let rate = self.paced(bandwidth, gain);
        // Start-up never slows down.
        if self.plateau.reached || self.pacing_rate.is_none_or(|before| rate > before) {
            self.pacing_rate = Some(rate);
        }
    }

    /// The window in recovery; true if it was set (`bbr_set_cwnd_to_recover_or_restore`).
    fn recover(&mut self, ack: &Ack, window: &mut Window) -> bool {
        window.cwnd = window.cwnd.saturating_sub(ack.lost).max(1);
        let before = core::mem::replace(&mut self.repair, ack.repair);
        let sendable = ack.in_flight.saturating_add(ack.acked);
        // A recovery that begins with the ACK that ended another one goes on with that.
        if ack.repair == Repair::Losses && before != Repair::Losses {
            window.cwnd = sendable;
            self.conserve = true;
            self.model.begin_round(ack.delivered);
        } else if ack.repair == Repair::Nothing && before != Repair::Nothing {
            window.cwnd = window.cwnd.max(self.saved_cwnd);
            self.conserve = false;
        }
        if self.conserve {
            window.cwnd = window.cwnd.max(sendable);
        }
        self.conserve
    }

    /// `bbr_set_cwnd`.
    fn set_window(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        if acked > 0 && !self.recover(ack, window) {
            if let Some(bdp) = self.model.bdp(self.model.bandwidth(), self.window_gain()) {
                let bunches = if self.plateau.reached { self.model.aggregated(&self.config) } else { 0 };
                let target = self.with_bursts(bdp.saturating_add(bunches));
                let grown = window.cwnd.saturating_add(acked);
                if self.plateau.reached {
                    window.cwnd = grown.min(target);
                } else if window.cwnd < target || ack.delivered < FIRST_DELIVERIES {
                    window.cwnd = grown;
                }
            }
            window.cwnd = window.cwnd.max(self.config.min_cwnd);
        }
        if matches!(self.mode, BbrMode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(self.config.min_cwnd);
        }
    }

    fn learn(&mut self, ack: &Ack, window: &Window) -> News {
        (self.delivered, self.now) = (ack.delivered, ack.now);
        let cycling = matches!(self.mode, BbrMode::ProbeBandwidth { .. });
        self.model.on_ack(ack, window.cwnd, cycling, &self.config)
    }
}

impl CongestionAvoidance for Bbr {
    fn begin_flow(&mut self, window: &Window) -> bool {
        self.mode = BbrMode::Startup;
        self.first_window = window.cwnd;
        true
    }

    fn own_exit(&self) -> Option<ExitReason> {
        self.plateau.reached.then_some(ExitReason::RatePlateau)
    }

    fn on_booked(&mut self, next: Time) {
        self.booked = next;
    }

    fn on_ack(&mut self, ack: &Ack, window: &Window) {
        self.learned = (self.mode == BbrMode::Waiting).then(|| self.learn(ack, window));
    }

    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        let news = match self.learned.take() {
            Some(news) => news,
            None => self.learn(ack, window),
        };
        self.conserve &= !news.round;
        if news.policer_over {
            self.probe_bandwidth(ack.now);
        }
        self.cycle(ack);
        self.look_for_plateau(news);
        self.drain(ack, window);
        self.probe_rtt(ack, news, window);
        self.idle_restart &= ack.rate.is_none();
        self.set_pacing_rate(self.gain());
        self.set_window(ack, acked, window);
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        if self.mode == BbrMode::Waiting {
            self.take_over(now);
        }
        if signal != Signal::Marks {
            self.save_cwnd(window);
        }
        // The window is no matter of thresholds: it stays where it is.
        window.cwnd
    }

    /// `bbr_set_state`: also in a recovery that has not ended.
    fn on_expiry(&mut self, now: Time, total_lost: u64) {
        self.repair = Repair::Timeout;
        self.plateau.baseline = None;
        let cycling = matches!(self.mode, BbrMode::ProbeBandwidth { .. });
        self.model.on_timeout(now, self.delivered, total_lost, cycling, &self.config);
    }

    fn on_takeover(&mut self, now: Time, _window: &Window, _rate: Option<Rate>) {
        self.take_over(now);
    }

    fn undo(&mut self, _prior_cwnd: u32, window: &Window) -> u32 {
        (self.plateau.baseline, self.plateau.rounds) = (None, 0);
        self.model.forget_policer();
        // The next ACK restores the window.
        window.cwnd
    }

    fn on_idle(&mut self, idle: Span, window: &mut Window) {
        self.idle_restart = true;
        self.model.forget_epoch();
        match self.mode {
            // Packets leave at the bandwidth, whatever the phase (`bbr_cwnd_event`).
            BbrMode::ProbeBandwidth { .. } => self.set_pacing_rate(1.0),
            BbrMode::ProbeRtt { .. } => self.end_probe_rtt(self.now + idle, window),
            BbrMode::Waiting | BbrMode::Startup | BbrMode::Drain => {}
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn least_burst(&self) -> Option<u32> {
        self.pacing_rate.map(|rate| self.least_burst_at(rate))
    }

    fn controls_recovery(&self) -> bool {
        true
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.model.on_mss(mss);
        self.first_window = mss.packets(self.first_window);
        self.saved_cwnd = mss.packets(self.saved_cwnd);
    }
}

impl Bbr {
    /// Another start is over: the path is full, as far as it has found out.
    fn take_over(&mut self, now: Time) {
        self.plateau.reached = true;
        self.probe_bandwidth(now);
        self.set_pacing_rate(self.gain());
    }
}

#[cfg(test)]
mod tests;
