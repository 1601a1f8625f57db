//! What idleness, and an application with little to send, do to the window.

use flowstart_control::{CongestionAvoidance as _, FlowStart as _, Restart};
use flowstart_units::{Span, Time};

use super::Controller;

impl Controller {
    /// The flow sends again after an idle time longer than `rto` (RFC 5681 section 4.1; Linux
    /// `tcp_cwnd_restart`): the threshold keeps three quarters of the window, which halves once per
    /// idle `rto` down to the initial window. The avoidance learns of the idle time.
    ///
    /// An avoidance that [controls recovery](Self::controls_recovery) learns of it and keeps its
    /// window, as Linux has it of who has `cong_control` (`tcp_slow_start_after_idle_check`); then
    /// this is false.
    pub fn restart_after_idle(&mut self, now: Time, idle: Span, rto: Span) -> bool {
        self.on_idle(idle);
        if self.controls_recovery() {
            return false;
        }
        if self.in_charge && self.start.owns_window() {
            return true;
        }
        // Who kept a queue then is not known to keep one now.
        self.unhurried = None;
        let floor = self.initial_window.min(self.window.cwnd);
        self.remember_window();
        self.remember_three_quarters();
        let mut left = idle;
        while left > rto && self.window.cwnd > floor && !rto.is_zero() {
            self.window.cwnd >>= 1;
            left -= rto;
        }
        self.window.cwnd = self.window.cwnd.max(floor);
        self.restart(now, Restart::Idle);
        true
    }

    /// The flow sends again after `idle` with nothing in flight, however short (Linux
    /// `CA_EVENT_TX_START`). Windows stay; [`restart_after_idle`](Self::restart_after_idle)
    /// includes this.
    pub fn on_idle(&mut self, idle: Span) {
        self.avoidance.on_idle(idle, &mut self.window);
    }

    /// The application used only `used` packets of the window for a whole RTO (RFC 7661 in spirit;
    /// Linux `tcp_cwnd_application_limited`).
    pub fn validate_window(&mut self, used: u32) {
        if self.in_charge && self.start.owns_window() {
            return;
        }
        let used = used.max(self.initial_window);
        if used < self.window.cwnd {
            self.remember_window();
            self.remember_three_quarters();
            self.window.cwnd = self.window.cwnd.midpoint(used);
        }
    }
}
