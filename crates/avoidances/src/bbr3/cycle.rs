//! The cycles of probing for bandwidth (ProbeBW, sections 5.3.3 and 5.5.10).

use flowstart_control::Ack;
use flowstart_units::Time;

use super::flight::Told;
use super::{AckPhase, Bbr3, Bbr3Mode, MOST_DOUBLINGS};

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Time) {
        self.model.reset_signals();
        self.up_acked_per_packet = u32::MAX;
        self.rounds_since_up = u64::from(self.random.coin());
        self.wait = self.config.probe_wait + self.config.probe_wait_random.mul_f64(self.random.unit());
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.model.begin_round(self.delivered);
        self.mode = Bbr3Mode::ProbeDown;
    }

    pub(super) fn start_refill(&mut self) {
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
    pub(super) fn is_too_high(&self, told: Told) -> bool {
        told.lost as f64 > f64::from(told.in_flight) * self.config.loss_share
    }

    /// `HandleInflightTooHigh`.
    pub(super) fn on_too_high(&mut self, in_flight: u32, cwnd: u32) {
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
    pub(super) fn cycle(&mut self, ack: &Ack, told: Option<Told>, cwnd: u32) {
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
}
