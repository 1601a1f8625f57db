//! What the transport tells BBR and asks of it.

use flowstart_control::{Ack, Acked, ExitReason, NewMss, Repair, Sent, Signal, Window};
use flowstart_units::{Rate, Span, Time};

use super::model::Bounds;
use super::{Bbr3, Bbr3Mode};
use crate::CongestionAvoidance;

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
        if !core::mem::take(&mut self.learned) {
            self.learn(ack, window.cwnd);
        }
        let told = self.flight.take_newest();
        self.look_for_plateau();
        self.leave_startup(ack, told, window);
        self.cycle(ack, told, window.cwnd);
        self.model.take_rtt(ack, &self.config);
        if self.recovering && ack.repair == Repair::Nothing {
            self.recovering = false;
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
            self.recovering = true;
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
        self.recovering = false;
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

    fn on_idle(&mut self, idle: Span, window: &mut Window) {
        self.idle_restart = true;
        self.model.forget_epoch();
        if self.is_cycling() {
            self.set_pacing_rate(1.0);
        } else if self.mode == Bbr3Mode::ProbeRtt {
            self.end_probe_rtt(self.now + idle, window);
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn controls_recovery(&self) -> bool {
        true
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.model.on_mss(mss);
        self.undo.bounds.on_mss(mss);
        self.first_window = mss.packets(self.first_window);
        self.saved_cwnd = mss.packets(self.saved_cwnd);
    }
}
