//! What BBR does, and when it goes on to something else: start-up, draining, cycles of gains,
//! probes of the RTT.

use flowstart_control::{Ack, Window};
use flowstart_units::{Rate, Time};

use super::Bbr;
use super::model::News;

/// What BBR does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrMode {
    /// A start is in charge; the model learns.
    Waiting,
    /// The rate doubles every round trip.
    Startup,
    /// The queue of that drains.
    Drain,
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

/// Looks for the round trip from which on the bandwidth no longer grows
/// (`bbr_check_full_bw_reached`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plateau {
    pub(super) baseline: Option<Rate>,
    pub(super) rounds: u32,
    /// The bandwidth was flat for as many rounds as it takes.
    pub(super) reached: bool,
}

impl Bbr {
    /// The pacing gain of the mode.
    pub(super) fn gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup => self.config.startup_gain,
            BbrMode::Drain => self.config.startup_drain_gain,
            BbrMode::ProbeBandwidth { .. } if self.model.is_policed() => 1.0,
            BbrMode::ProbeBandwidth { phase: 0, .. } => self.config.probe_gain,
            BbrMode::ProbeBandwidth { phase: 1, .. } => self.config.drain_gain,
            _ => 1.0,
        }
    }

    /// The window's gain of the mode.
    pub(super) fn window_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup | BbrMode::Drain => self.config.startup_gain,
            BbrMode::ProbeRtt { .. } => 1.0,
            BbrMode::Waiting | BbrMode::ProbeBandwidth { .. } => self.config.cwnd_gain,
        }
    }

    /// Begins cycles with any phase but the draining one (`bbr_reset_probe_bw_mode`).
    pub(super) fn probe_bandwidth(&mut self, now: Time) {
        let drawn = (self.random.unit() * f64::from(self.config.cycle_phases - 1)) as u32;
        let phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.mode = BbrMode::ProbeBandwidth { phase, since: now };
    }

    /// Goes on to the next phase if this one is over (`bbr_is_next_cycle_phase`).
    pub(super) fn cycle(&mut self, ack: &Ack) {
        let BbrMode::ProbeBandwidth { phase, since } = self.mode else { return };
        let long = ack.now.since(since) > self.model.min_rtt;
        // As it was before this ACK. Asked only where it decides: most ACKs need no product.
        let gain = self.gain();
        let before = ack.in_flight.saturating_add(ack.acked).saturating_add(ack.lost);
        let in_flight = || self.at_departure(before, gain);
        let over = if gain > 1.0 {
            long && (ack.lost > 0 || self.inflight(gain).is_some_and(|most| in_flight() >= most))
        } else if gain < 1.0 {
            long || self.inflight(1.0).is_some_and(|bdp| in_flight() <= bdp)
        } else {
            long
        };
        if over {
            self.mode = BbrMode::ProbeBandwidth { phase: (phase + 1) % self.config.cycle_phases, since: ack.now };
        }
    }

    /// Has the bandwidth stopped growing? (`bbr_check_full_bw_reached`)
    pub(super) fn look_for_plateau(&mut self, news: News) {
        if self.plateau.reached || !news.round || news.app_limited {
            return;
        }
        let bandwidth = self.model.largest_bandwidth().unwrap_or(Rate::ZERO);
        let growth = self.config.plateau_growth;
        if self.plateau.baseline.is_none_or(|baseline| bandwidth >= baseline.mul_f64(growth)) {
            (self.plateau.baseline, self.plateau.rounds) = (Some(bandwidth), 0);
            return;
        }
        self.plateau.rounds += 1;
        self.plateau.reached = self.plateau.rounds >= self.config.plateau_rounds;
    }

    /// From start-up over draining into the cycles (`bbr_check_drain`).
    pub(super) fn drain(&mut self, ack: &Ack, window: &mut Window) {
        // That of before: gains follow the mode at the end of the ACK (`bbr_update_gains`).
        let gain = self.gain();
        if self.mode == BbrMode::Startup && self.plateau.reached {
            self.mode = BbrMode::Drain;
            window.ssthresh = self.inflight(1.0).unwrap_or(window.ssthresh).max(2);
        }
        if self.mode == BbrMode::Drain
            && self.inflight(1.0).is_some_and(|bdp| self.at_departure(ack.in_flight, gain) <= bdp)
        {
            self.probe_bandwidth(ack.now);
        }
    }

    /// Begins and ends probes of the RTT (`bbr_update_min_rtt`).
    pub(super) fn probe_rtt(&mut self, ack: &Ack, news: News, window: &mut Window) {
        let probing = matches!(self.mode, BbrMode::ProbeRtt { .. });
        if news.rtt_expired && !self.idle_restart && !probing && !self.config.probe_rtt.is_zero() {
            self.mode = BbrMode::ProbeRtt { until: None, round: false };
            self.save_cwnd(window);
            self.model.hold_back(ack, true);
        }
        let BbrMode::ProbeRtt { until, round } = self.mode else { return };
        self.model.hold_back(ack, false);
        match until {
            None if ack.in_flight <= self.config.min_cwnd => {
                self.mode = BbrMode::ProbeRtt { until: Some(ack.now + self.config.probe_rtt), round: false };
                self.model.begin_round(ack.delivered);
            }
            None => {}
            Some(_) => {
                let round = round || news.round;
                self.mode = BbrMode::ProbeRtt { until, round };
                if round {
                    self.end_probe_rtt(ack.now, window);
                }
            }
        }
    }

    /// Ends a probe of the RTT that was long enough (`bbr_check_probe_rtt_done`).
    pub(super) fn end_probe_rtt(&mut self, now: Time, window: &mut Window) {
        if !matches!(self.mode, BbrMode::ProbeRtt { until: Some(until), .. } if now > until) {
            return;
        }
        self.model.refresh_rtt(now);
        window.cwnd = window.cwnd.max(self.saved_cwnd);
        if self.plateau.reached {
            self.probe_bandwidth(now);
        } else {
            self.mode = BbrMode::Startup;
        }
    }
}
