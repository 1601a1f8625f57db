//! Looking for the smallest RTT (ProbeRTT, section 5.3.4).

use flowstart_control::{Ack, Window};
use flowstart_units::Time;

use super::{AckPhase, Bbr3, Bbr3Mode};

impl Bbr3 {
    /// `CheckProbeRTT`.
    pub(super) fn probe_rtt(&mut self, ack: &Ack, window: &mut Window) {
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
                    self.end_probe_rtt(ack.now, window);
                }
            } else if ack.in_flight <= self.probe_rtt_cwnd() {
                self.probe_until = Some(ack.now + self.config.probe_rtt);
                self.probe_round = false;
                self.model.begin_round(self.delivered);
            }
        }
        self.idle_restart &= ack.rate.is_none();
    }

    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        let bdp = self.model.bdp(self.model.bandwidth(), self.config.probe_rtt_gain);
        bdp.unwrap_or(0).max(self.config.min_cwnd)
    }

    /// `CheckProbeRTTDone`, `ExitProbeRTT`.
    pub(super) fn end_probe_rtt(&mut self, now: Time, window: &mut Window) {
        if self.probe_until.is_none_or(|until| now <= until) {
            return;
        }
        self.model.refresh_rtt(now);
        window.cwnd = window.cwnd.max(self.saved_cwnd);
        self.model.reset_shortterm();
        if self.full_reached {
            self.start_down(now);
            self.mode = Bbr3Mode::ProbeCruise;
        } else {
            self.mode = Bbr3Mode::Startup;
        }
    }
}
