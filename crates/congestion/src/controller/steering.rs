//! What a detector of fair queuing does with a connection: it says when packets leave, and in the
//! end what the bottleneck does.

use flowstart_control::{
    CongestionAvoidance as _, CrowdRule, Departure, Exit, ExitReason, INFINITE_SSTHRESH, Isolation,
};
use flowstart_detection::Decision;
use flowstart_starts::Directed;

use super::Controller;
use super::unhurried::Unhurried;

/// A connection in the hands of a detector ([`crate::detection::PairDetector`]).
#[derive(Debug)]
pub struct Steering<'a> {
    pub(super) controller: &'a mut Controller,
}

impl<'a> Steering<'a> {
    /// The start, if it is one that is directed from outside and still in charge, or still
    /// [hears](Self::overhear) of packets.
    #[must_use]
    pub fn directed(self) -> Option<&'a mut Directed> {
        let Controller { in_charge, overhears, start, .. } = self.controller;
        if *in_charge || *overhears { start.directed() } else { None }
    }

    /// A start that is directed from outside hears of packets also when it is not in charge, or no
    /// longer.
    pub fn overhear(&mut self, hears: bool) {
        self.controller.overhears = hears && self.controller.start.is_directed();
    }

    /// The next packet leaves when the detector says so, and the window does not hold it back.
    /// Without effect on other starts and after the start, or the detector's first answer.
    pub fn direct(&mut self, departure: Departure) {
        let Controller { in_charge, start, window, .. } = &mut *self.controller;
        if *in_charge
            && let Some(directed) = start.directed()
            && !directed.is_released()
        {
            directed.direct(departure);
            window.cwnd = INFINITE_SSTHRESH;
        }
    }

    /// The detector has decided, or decided anew: the avoidance learns of it, and if the start was
    /// in charge, takes over at the detector's rate. A full packet has `mss` bytes of payload in
    /// `packet` bytes.
    pub fn on_decision(&mut self, decision: &Decision, mss: u32, packet: u32) {
        let now = decision.now;
        if let Some(aware) = self.controller.avoidance.isolation_aware() {
            aware.on_smallest_rtt(decision.smallest);
        }
        self.controller.tell_isolation(now, decision.isolation);
        if self.controller.in_charge && self.is_released() {
            // A later answer ends HyStart if the avoidance goes on by itself.
            self.controller.in_charge = !self.controller.own_recovery;
        } else if self.controller.in_charge {
            let bytes = decision.rate.bytes_in(self.controller.last.srtt).get();
            let cwnd =
                u32::try_from(bytes.div_ceil(u64::from(packet.max(1)))).unwrap_or(u32::MAX).clamp(2, INFINITE_SSTHRESH);
            let rate = decision.rate.mul_ratio(u64::from(mss), u64::from(packet.max(1)));
            // Without an answer the rate is no more than a beginning.
            let ssthresh = if decision.isolation == Isolation::Unknown { INFINITE_SSTHRESH } else { cwnd };
            // In a shared queue nobody gets more than slow start would within a round trip, two
            // packets for each that was delivered, whatever a few told of the rate: that may have
            // been a burst's.
            let twice = self.controller.last.delivered.saturating_mul(2);
            let started = u64::from(self.controller.initial_window).saturating_add(twice);
            let started = u32::try_from(started).unwrap_or(u32::MAX);
            let cwnd = match decision.isolation {
                Isolation::Isolated => cwnd,
                Isolation::Shared => cwnd.min(started),
                // Slow start would have begun with that.
                Isolation::Unknown => cwnd.min(started).max(self.controller.initial_window),
            };
            let exit = Exit { reason: ExitReason::Isolation, cwnd, ssthresh, rate: Some(rate) };
            self.controller.hand_over(now, exit);
            if decision.isolation == Isolation::Unknown {
                self.controller.release_start(|start, last| start.release(now, last));
            }
        }
    }

    fn is_released(&mut self) -> bool {
        self.controller.start.directed().is_some_and(|directed| directed.is_released())
    }

    /// The detector saw that others keep a queue where its packets passed: slow start ends, if the
    /// window grows by one that does not set it itself. A window below the rule's share of what
    /// fits the path, which the threshold that came with the answer is, grows to that first.
    pub fn on_crowd(&mut self, rule: CrowdRule) {
        let released = self.is_released();
        let Controller { in_charge, own_recovery, window, .. } = &mut *self.controller;
        if (released || !*in_charge) && !*own_recovery {
            *in_charge = false;
            // Without an answer nobody knows what fits the path.
            let known = window.ssthresh < INFINITE_SSTHRESH;
            let part = |share: f64| if known { (f64::from(window.ssthresh) * share) as u32 } else { 0 };
            let (least, from) = (part(rule.share), part(rule.unhurried));
            window.ssthresh = window.ssthresh.min(window.cwnd.max(least).max(2));
            let slower = Unhurried { from, growth: rule.growth, left: 0.0 };
            self.controller.unhurried = self.controller.window.in_slow_start().then_some(slower);
        }
    }

    /// The detector saw again that the flow has a queue of its own.
    pub fn on_isolation_confirmed(&mut self) {
        if let Some(aware) = self.controller.avoidance.isolation_aware() {
            aware.on_isolation_confirmed();
        }
    }
}
