//! BBR version 1 after its start (Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, "BBR:
//! congestion-based congestion control", ACM Queue 14(5), 2016; Linux 6.1 `tcp_bbr`). The start
//! itself is `BbrStart` in the crate of starts.
//!
//! The flow paces at the largest delivery rate of the last ten round trips, in cycles of eight
//! phases: one faster, to see whether there is more; one slower, to drain what that queued; six at
//! the rate. Its window is twice the bandwidth-delay product of that rate and the smallest RTT of
//! the last ten seconds. When ten seconds did not see that RTT again, the window is four packets
//! for 200 ms and a round trip, so that the queue drains and it can be measured. Losses do not
//! change the model: the first round of a recovery sends what is delivered, and afterwards the
//! window is what it was. Congestion marks are ignored.
//!
//! Left out: the detection of policers (`lt_bw`). Packets leave one by one here, so that what is in
//! flight needs no correction for packets that are scheduled and have not left. Without a bandwidth
//! sample (a start that was lost altogether) the window stays as it is.

mod config;
mod model;

use flowstart_units::{Rate, Span, Time};

use super::CongestionAvoidance;
use flowstart_control::random::Random;
use flowstart_control::{Ack, Signal, Window};

pub use config::BbrConfig;
use model::{Model, News};

/// What BBR does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrMode {
    /// A start is in charge; the model learns.
    Waiting,
    /// Cycles of pacing gains; this phase since this time.
    ProbeBandwidth {
        /// Number of the phase: 0 looks for more, 1 drains.
        phase: u32,
        /// Since when.
        since: Time,
    },
    /// The smallest window, to see the smallest RTT.
    ProbeRtt {
        /// Until when at least; `None` while more than the smallest window is in flight.
        until: Option<Time>,
        /// A round trip has passed since then.
        round: bool,
    },
}

/// A recovery (`bbr_set_cwnd_to_recover_or_restore`).
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// It is over when this byte is acknowledged.
    end: u64,
    /// It has just begun.
    fresh: bool,
    /// As many packets leave as are delivered, in its first round.
    conserve: bool,
}

/// BBR in operation.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: BbrConfig,
    model: Model,
    mode: BbrMode,
    recovery: Option<Recovery>,
    /// The window before a recovery or a probe of the RTT.
    saved_cwnd: u32,
    /// The flow sends again after an idle time.
    idle_restart: bool,
    pacing_rate: Option<Rate>,
    /// Next byte to be sent, and packets delivered, as the last ACK said.
    next: u64,
    delivered: u64,
    random: Random,
}

impl Bbr {
    /// BBR for a flow with segments of `mss` payload bytes; `seed` decides with which phases cycles
    /// begin.
    #[must_use]
    pub fn new(config: &BbrConfig, mss: u32, seed: u64) -> Self {
        Self {
            config: config.in_range(),
            model: Model::new(mss),
            mode: BbrMode::Waiting,
            recovery: None,
            saved_cwnd: 0,
            idle_restart: false,
            pacing_rate: None,
            next: 0,
            delivered: 0,
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

    /// The pacing gain of the mode.
    fn gain(&self) -> f64 {
        match self.mode {
            BbrMode::ProbeBandwidth { phase: 0, .. } => self.config.probe_gain,
            BbrMode::ProbeBandwidth { phase: 1, .. } => self.config.drain_gain,
            _ => 1.0,
        }
    }

    /// Begins cycles with any phase but the draining one (`bbr_reset_probe_bw_mode`).
    fn probe_bandwidth(&mut self, now: Time) {
        let drawn = (self.random.unit() * f64::from(self.config.cycle_phases - 1)) as u32;
        let phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.mode = BbrMode::ProbeBandwidth { phase, since: now };
    }

    /// A multiple of the bandwidth-delay product with room for bursts, packets (`bbr_inflight`,
    /// `bbr_quantization_budget`).
    fn inflight(&self, gain: f64) -> Option<u32> {
        Some(self.with_bursts(self.model.bdp(gain)?))
    }

    fn with_bursts(&self, packets: u32) -> u32 {
        let even = packets.saturating_add(self.config.burst_packets).saturating_add(1) & !1;
        let probing = matches!(self.mode, BbrMode::ProbeBandwidth { phase: 0, .. });
        even.saturating_add(if probing { self.config.probe_packets } else { 0 })
    }

    /// Goes on to the next phase if this one is over (`bbr_is_next_cycle_phase`).
    fn cycle(&mut self, ack: &Ack) {
        let BbrMode::ProbeBandwidth { phase, since } = self.mode else { return };
        let long = ack.now.since(since) > self.model.min_rtt;
        // As it was before this ACK.
        let in_flight = ack.in_flight.saturating_add(ack.acked).saturating_add(ack.lost);
        let fills = |gain: f64| self.inflight(gain).is_some_and(|most| in_flight >= most);
        let gain = self.gain();
        let over = if gain > 1.0 {
            long && (ack.lost > 0 || fills(gain))
        } else if gain < 1.0 {
            long || self.inflight(1.0).is_some_and(|bdp| in_flight <= bdp)
        } else {
            long
        };
        if over {
            self.mode = BbrMode::ProbeBandwidth { phase: (phase + 1) % self.config.cycle_phases, since: ack.now };
        }
    }

    /// Begins and ends probes of the RTT (`bbr_update_min_rtt`).
    fn probe_rtt(&mut self, ack: &Ack, news: News, window: &Window) {
        match self.mode {
            BbrMode::ProbeBandwidth { .. } if news.rtt_expired && !self.idle_restart => {
                self.save_cwnd(window);
                self.mode = BbrMode::ProbeRtt { until: None, round: false };
            }
            BbrMode::ProbeRtt { until: None, .. } if ack.in_flight <= self.config.min_cwnd => {
                self.mode = BbrMode::ProbeRtt { until: Some(ack.now + self.config.probe_rtt), round: false };
                self.model.begin_round(ack.delivered);
            }
            BbrMode::ProbeRtt { until: Some(until), round } => {
                let round = round || news.round;
                self.mode = BbrMode::ProbeRtt { until: Some(until), round };
            }
            _ => {}
        }
    }

    /// True if a probe of the RTT has lasted long enough.
    fn rtt_is_probed(&self, now: Time) -> bool {
        matches!(self.mode, BbrMode::ProbeRtt { until: Some(until), round: true } if now > until)
    }

    fn save_cwnd(&mut self, window: &Window) {
        let undisturbed = self.recovery.is_none() && !matches!(self.mode, BbrMode::ProbeRtt { .. });
        self.saved_cwnd = if undisturbed { window.cwnd } else { self.saved_cwnd.max(window.cwnd) };
    }

    fn set_pacing_rate(&mut self) {
        if let Some(bandwidth) = self.model.bandwidth() {
            // After idle time packets leave at the bandwidth, whatever the phase
            // (`bbr_cwnd_event`).
            let gain = if self.idle_restart { 1.0 } else { self.gain() };
            self.pacing_rate = Some(bandwidth.mul_f64(gain * (1.0 - self.config.margin)));
        }
    }

    /// The window in recovery; true if it was set (`bbr_set_cwnd_to_recover_or_restore`).
    fn recover(&mut self, ack: &Ack, window: &mut Window) -> bool {
        window.cwnd = window.cwnd.saturating_sub(ack.lost).max(1);
        let Some(recovery) = &mut self.recovery else { return false };
        if ack.una >= recovery.end {
            self.recovery = None;
            window.cwnd = window.cwnd.max(self.saved_cwnd);
            return false;
        }
        let sendable = ack.in_flight.saturating_add(ack.acked);
        if std::mem::take(&mut recovery.fresh) {
            window.cwnd = sendable;
        }
        if recovery.conserve {
            window.cwnd = window.cwnd.max(sendable);
        }
        recovery.conserve
    }
}

impl CongestionAvoidance for Bbr {
    fn on_ack(&mut self, ack: &Ack, window: &Window) {
        (self.next, self.delivered) = (ack.next, ack.delivered);
        let news = self.model.on_ack(ack, window.cwnd, &self.config);
        if self.mode == BbrMode::Waiting {
            return;
        }
        if news.round
            && let Some(recovery) = &mut self.recovery
        {
            recovery.conserve = false;
        }
        self.cycle(ack);
        self.probe_rtt(ack, news, window);
        self.idle_restart &= ack.acked == 0;
        self.set_pacing_rate();
    }

    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        if acked > 0 && !self.recover(ack, window) {
            let target = self.model.bdp(self.config.cwnd_gain);
            if let Some(target) = target {
                let target = self.with_bursts(target.saturating_add(self.model.aggregated(&self.config)));
                window.cwnd = window.cwnd.saturating_add(acked).min(target);
            }
            window.cwnd = window.cwnd.max(self.config.min_cwnd);
        }
        if self.rtt_is_probed(ack.now) {
            self.model.refresh_rtt(ack.now);
            window.cwnd = window.cwnd.max(self.saved_cwnd);
            self.probe_bandwidth(ack.now);
            self.set_pacing_rate();
        } else if matches!(self.mode, BbrMode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(self.config.min_cwnd);
        }
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        if self.mode == BbrMode::Waiting {
            self.probe_bandwidth(now);
        }
        if signal != Signal::Marks {
            self.save_cwnd(window);
            // After a timeout the window grows from what the transport leaves.
            let fresh = signal == Signal::Loss;
            self.recovery = Some(Recovery { end: self.next, fresh, conserve: fresh });
            self.model.begin_round(self.delivered);
        }
        // The window is no matter of thresholds: it stays where it is.
        window.cwnd
    }

    fn on_takeover(&mut self, now: Time, _window: &Window, _rate: Option<Rate>) {
        self.probe_bandwidth(now);
        self.set_pacing_rate();
    }

    fn undo(&mut self, prior_cwnd: u32, window: &Window) -> u32 {
        self.recovery = None;
        prior_cwnd.max(window.cwnd).max(self.saved_cwnd)
    }

    fn on_idle(&mut self, _idle: Span) {
        self.idle_restart = true;
        self.model.forget_epoch();
        self.set_pacing_rate();
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn controls_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
