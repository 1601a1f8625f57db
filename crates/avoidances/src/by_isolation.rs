//! Two avoidances, and which of them is in charge depends on whether the flow has a queue of its
//! own.

use flowstart_control::InvalidConfig;
use flowstart_control::Isolation;
use flowstart_control::{Ack, Acked, CongestionAvoidance, IsolationAware, NewMss, Repair, Sent, Signal, Window};
use flowstart_units::{Rate, Span, Time};

use super::bbr::BbrConfig;
use super::cubic::CubicConfig;
use super::delay_target::DelayTargetConfig;
use super::vegas_like::VegasLikeConfig;
use super::vivace::VivaceConfig;
use crate::AvoidanceConstants;

/// Constants of the published pair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct VegasOrVivaceConfig {
    /// The delay-based rule, in a queue of one's own.
    pub isolated: VegasLikeConfig,
    /// PCC Vivace with a utility of rate and loss alone, in a shared queue or an unknown one.
    pub shared: VivaceConfig,
}

impl AvoidanceConstants for VegasOrVivaceConfig {
    fn draws(&self) -> bool {
        true
    }

    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate")
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.isolated.validate()?;
        self.shared.validate()
    }
}

/// Constants of the published rule and of BBR, which the authors name as another way for shared
/// queues.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct VegasOrBbrConfig {
    /// The delay-based rule, in a queue of one's own.
    pub isolated: VegasLikeConfig,
    /// BBR version 1, in a shared queue or an unknown one.
    pub shared: BbrConfig,
}

impl AvoidanceConstants for VegasOrBbrConfig {
    fn draws(&self) -> bool {
        true
    }

    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate")
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.isolated.validate()?;
        self.shared.validate()
    }
}

/// Constants of the delay target and of CUBIC.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct DelayOrCubicConfig {
    /// The delay target, in a queue of one's own.
    pub isolated: DelayTargetConfig,
    /// CUBIC, in a shared queue or an unknown one.
    pub shared: CubicConfig,
}

impl AvoidanceConstants for DelayOrCubicConfig {
    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate (if its queue is its own)")
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.isolated.validate()?;
        self.shared.validate()
    }
}

/// An avoidance for a queue of one's own and one for all others. Both see every ACK until they are
/// needed.
#[derive(Clone, Debug)]
pub struct ByIsolation<A, B> {
    isolated: A,
    shared: B,
    isolation: Isolation,
    /// The one in charge has taken over.
    begun: bool,
    /// The one for a queue of one's own could not keep its rate: the other one stays in charge.
    gave_up: bool,
    /// The window that the start handed over.
    handed_over: u32,
    /// Nobody has looked: the queue is taken for the flow's own until it turns out not to be.
    assumed: bool,
}

macro_rules! active {
    ($self:ident, $avoidance:ident => $call:expr) => {
        if $self.is_isolated() {
            let $avoidance = &mut $self.isolated;
            $call
        } else {
            let $avoidance = &mut $self.shared;
            $call
        }
    };
}

impl<A: CongestionAvoidance + IsolationAware, B: CongestionAvoidance> ByIsolation<A, B> {
    /// The second is in charge until the queue is known to be the flow's own.
    #[must_use]
    pub fn new(isolated: A, shared: B) -> Self {
        let isolation = Isolation::Unknown;
        Self { isolated, shared, isolation, begun: false, gave_up: false, handed_over: 0, assumed: false }
    }

    /// The first is in charge until it gives up or doubts that the queue is its own; there is
    /// nobody to be asked, and no answer is listened to.
    #[must_use]
    pub fn assumed(isolated: A, shared: B) -> Self {
        Self { isolation: Isolation::Isolated, assumed: true, ..Self::new(isolated, shared) }
    }

    /// What is known of the queue.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// True if the one for a queue of one's own is in charge.
    fn is_isolated(&self) -> bool {
        self.isolation == Isolation::Isolated && !self.gave_up
    }

    /// The one for a queue of one's own hands over to the other one, or the other way round,
    /// according to what `change` does.
    fn hand_over(&mut self, now: Time, window: &mut Window, change: impl FnOnce(&mut Self)) {
        let before = self.is_isolated();
        // What it sends in a round trip; a rate-based one holds a multiple of it as its window.
        if active!(self, a => a.controls_recovery()) {
            window.cwnd = active!(self, a => a.reduce(now, Signal::Loss, window)).max(2);
            window.ssthresh = window.cwnd;
        }
        if before {
            self.isolated.on_dismissal();
        }
        change(self);
        active!(self, a => a.on_takeover(now, window, None));
    }
}

impl<A: CongestionAvoidance + IsolationAware, B: CongestionAvoidance> CongestionAvoidance for ByIsolation<A, B> {
    fn on_ack(&mut self, ack: &Ack, window: &Window) {
        self.isolated.on_ack(ack, window);
        self.shared.on_ack(ack, window);
    }

    fn on_booked(&mut self, next: Time) {
        active!(self, a => a.on_booked(next));
    }

    fn wants_packets(&self) -> bool {
        if self.is_isolated() { self.isolated.wants_packets() } else { self.shared.wants_packets() }
    }

    fn on_sent(&mut self, sent: &Sent) {
        active!(self, a => a.on_sent(sent));
    }

    fn on_acked(&mut self, acked: &Acked) {
        active!(self, a => a.on_acked(acked));
    }

    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        // Who controls recovery is told of every ACK, also of one that brings only losses.
        if acked == 0 && !self.controls_recovery() {
            return;
        }
        // In a recovery the transport would not walk to the window that is handed over.
        let settled = ack.repair == Repair::Nothing;
        if settled && self.begun && self.is_isolated() {
            if self.isolated.gives_up() {
                self.hand_over(ack.now, window, |pair| pair.gave_up = true);
                // Noise hides how much the path holds; the queue is the flow's own. Up to what the
                // start found there is no need to feel one's way.
                window.ssthresh = window.cwnd.saturating_mul(2).max(self.handed_over);
                return;
            }
            if self.assumed && self.isolated.doubts_isolation() {
                self.hand_over(ack.now, window, |pair| pair.gave_up = true);
                return;
            }
        }
        active!(self, a => a.grow(ack, acked, window));
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        if !self.begun {
            self.handed_over = window.cwnd;
        }
        self.begun = true;
        active!(self, a => a.reduce(now, signal, window))
    }

    fn on_takeover(&mut self, now: Time, window: &Window, rate: Option<Rate>) {
        if !self.begun {
            self.handed_over = window.cwnd;
        }
        self.begun = true;
        active!(self, a => a.on_takeover(now, window, rate));
    }

    fn on_expiry(&mut self, now: Time, total_lost: u64) {
        active!(self, a => a.on_expiry(now, total_lost));
    }

    fn undo(&mut self, prior_cwnd: u32, window: &Window) -> u32 {
        active!(self, a => a.undo(prior_cwnd, window))
    }

    fn on_idle(&mut self, idle: Span, window: &mut Window) {
        active!(self, a => a.on_idle(idle, window));
    }

    fn isolation_aware(&mut self) -> Option<&mut dyn IsolationAware> {
        Some(self)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if self.is_isolated() { self.isolated.pacing_rate() } else { self.shared.pacing_rate() }
    }

    #[inline]
    fn paces(&self) -> bool {
        if self.is_isolated() { self.isolated.paces() } else { self.shared.paces() }
    }

    fn counts_packets(&self) -> bool {
        if self.is_isolated() { self.isolated.counts_packets() } else { self.shared.counts_packets() }
    }

    fn least_burst(&self) -> Option<u32> {
        if self.is_isolated() { self.isolated.least_burst() } else { self.shared.least_burst() }
    }

    fn controls_recovery(&self) -> bool {
        if self.is_isolated() { self.isolated.controls_recovery() } else { self.shared.controls_recovery() }
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.isolated.on_mss(mss);
        self.shared.on_mss(mss);
    }
}

/// Only the one for a queue of one's own hears more than which of them is in charge.
impl<A: CongestionAvoidance + IsolationAware, B: CongestionAvoidance> IsolationAware for ByIsolation<A, B> {
    fn on_isolation(&mut self, now: Time, isolation: Isolation, window: &mut Window) {
        if self.assumed {
            return;
        }
        let next = isolation == Isolation::Isolated && !self.gave_up;
        if self.begun && self.is_isolated() != next {
            self.hand_over(now, window, |pair| pair.isolation = isolation);
        }
        self.isolation = isolation;
    }

    fn doubts_isolation(&self) -> bool {
        self.begun && self.is_isolated() && self.isolated.doubts_isolation()
    }

    fn on_isolation_confirmed(&mut self) {
        if self.is_isolated() {
            self.isolated.on_isolation_confirmed();
        }
    }

    fn on_smallest_rtt(&mut self, rtt: Span) {
        self.isolated.on_smallest_rtt(rtt);
    }
}

#[cfg(test)]
mod tests;
