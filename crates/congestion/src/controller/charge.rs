//! Who is in charge: how a start ends, or begins anew, and what the avoidance is then told.

use flowstart_control::{CongestionAvoidance as _, Exit, ExitReason, FlowStart as _, Isolation, LastRtt, Restart};
use flowstart_starts::Directed;
use flowstart_units::{Rate, Time};

use super::{Controller, LastSeen, StartExit};

impl Controller {
    /// The end of the avoidance's own start is recorded as that of any other: with the window
    /// `before` the ACK that ended it, if that cut it (Linux `bbr_set_cwnd`, down to the target).
    pub(super) fn watch_own_start(&mut self, now: Time, before: u32) {
        if let Some(reason) = self.avoidance.own_exit() {
            self.own_start = false;
            self.record_exit(now, reason, self.window.cwnd.max(before), self.window.ssthresh);
        }
    }

    pub(super) fn tell_isolation(&mut self, now: Time, isolation: Isolation) {
        if let Some(aware) = self.avoidance.isolation_aware() {
            aware.on_isolation(now, isolation, &mut self.window);
        }
        self.follow_avoidance();
    }

    /// One that is made of two may have changed which of them is in charge.
    pub(super) fn follow_avoidance(&mut self) {
        self.tells_packets = self.avoidance.wants_packets();
        self.own_recovery = self.avoidance.controls_recovery();
    }

    /// If the window is below the threshold again after the start was over, the start may want to
    /// be in charge once more.
    pub(super) fn restart(&mut self, now: Time, restart: Restart) {
        if !self.in_charge && !self.own_recovery && self.window.in_slow_start() {
            self.in_charge = self.take_charge(now, restart);
        }
    }

    pub(super) fn take_charge(&mut self, now: Time, restart: Restart) -> bool {
        let LastSeen { srtt, min_rtt, .. } = self.last;
        self.start.on_restart(now, restart, &self.window, LastRtt { srtt, min_rtt })
    }

    /// Without anything to go by the window grows as it does by default, and HyStart looks when
    /// that is enough: where a buffer holds seconds, slow start alone would fill it. `release` lets
    /// go of the start.
    pub(super) fn release_start(&mut self, release: impl FnOnce(&mut Directed, LastRtt)) {
        let LastSeen { srtt, min_rtt, .. } = self.last;
        if !self.own_recovery
            && self.window.in_slow_start()
            && let Some(start) = self.start.directed()
        {
            release(start, LastRtt { srtt, min_rtt });
            self.in_charge = true;
        }
    }

    pub(super) fn remember_three_quarters(&mut self) {
        let kept = (self.window.cwnd >> 1) + (self.window.cwnd >> 2);
        self.window.ssthresh = self.window.ssthresh.max(kept);
    }

    pub(super) fn hand_over(&mut self, now: Time, exit: Exit) {
        self.window.cwnd = exit.cwnd.max(1);
        self.window.ssthresh = exit.ssthresh.max(2);
        if let Some(rate) = exit.rate.filter(|rate| *rate > Rate::ZERO) {
            self.pacer.set_rate(rate, now + self.last.srtt * u64::from(self.left_behind_rtts));
        }
        self.in_charge = false;
        self.record_exit(now, exit.reason, self.window.cwnd, self.window.ssthresh);
        self.avoidance.on_takeover(now, &self.window, exit.rate);
        // An avoidance that sets its window itself finds out by itself.
        self.open = !self.own_recovery;
    }

    pub(super) fn record_exit(&mut self, now: Time, reason: ExitReason, cwnd: u32, ssthresh: u32) {
        if self.exit.is_none() {
            let LastSeen { in_flight, srtt, min_rtt, .. } = self.last;
            self.exit = Some(StartExit { now, reason, cwnd, ssthresh, in_flight, srtt, min_rtt });
        }
    }
}
