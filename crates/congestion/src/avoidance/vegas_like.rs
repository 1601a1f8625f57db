//! The delay-based rule of Bachl, Fabini and Zseby, "Detecting Fair Queuing for Better Congestion Control" (2020), as published: if the mean RTT
//! of a monitor interval is more than 5 ms above the smallest, the rate falls by 5 %, else it rises by 1 %. Meant for flows that have a queue of their own.
//!
//! It has faults that are kept here: losses do not count, the smallest RTT never expires, the rate has no lower end, and it decides once per
//! interval of 1.5 RTTs and another RTT of waiting. [`DelayTarget`](super::DelayTarget) mends them.

use flowstart_units::{Rate, Span, Time};

use crate::names::InvalidConfig;
use crate::{Ack, Acked, CongestionAvoidance, Sent, Signal, Window};

use super::intervals::{Length, Monitor, PathView};
use super::vivace::scaled;

/// The window is this many times what the rate sends in a smoothed RTT: it never holds packets back while ACKs come.
const WINDOW_RTTS: u32 = 2;
const MIN_WINDOW: u32 = 2;

/// Constants of the delay-based rule; the defaults are those of the paper's implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct VegasLikeConfig {
    /// Mean RTT above the smallest that calls for a slower rate; default 5 ms.
    pub threshold: Span,
    /// What the rate is divided by above the threshold, at least 1; default 1.05.
    pub decrease: f64,
    /// What the rate is divided by otherwise, above 0 up to 1; default 0.99.
    pub increase: f64,
    /// Length of a monitor interval in smoothed RTTs, above 0 up to 100; default 1.5.
    pub interval_rtts: f64,
    /// Largest rate; default 1 Gbit/s. The implementation has no limit but its processor: where losses keep the queue short, the rule accelerates for ever.
    pub max_rate: Rate,
}

impl Default for VegasLikeConfig {
    fn default() -> Self {
        Self {
            threshold: Span::from_millis(5),
            decrease: 1.05,
            increase: 0.99,
            interval_rtts: 1.5,
            max_rate: Rate::from_mbps(1000),
        }
    }
}

impl VegasLikeConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check(self.decrease >= 1.0 && self.decrease.is_finite(), "decrease", "at least 1")?;
        check(self.max_rate > Rate::ZERO, "max_rate", "above 0")?;
        check(self.increase > 0.0 && self.increase <= 1.0, "increase", "above 0 and at most 1")?;
        check(self.interval_rtts > 0.0 && self.interval_rtts <= 100.0, "interval_rtts", "above 0 and at most 100")
    }
}

/// The rule in operation.
#[derive(Clone, Debug)]
pub struct VegasLike {
    config: VegasLikeConfig,
    path: PathView,
    monitor: Monitor,
    rate: Option<Rate>,
}

impl VegasLike {
    /// The rule for a flow with segments of `mss` payload bytes.
    #[must_use]
    pub fn new(config: &VegasLikeConfig, mss: u32) -> Self {
        let config = if config.validate().is_ok() { *config } else { VegasLikeConfig::default() };
        Self { config, path: PathView::new(mss), monitor: Monitor::new(), rate: None }
    }

    /// The rate; `None` before it has taken over.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    fn interval(&self) -> Length {
        Length::of(self.path.srtt.mul_f64(self.config.interval_rtts))
    }

    fn set_rate(&mut self, rate: Rate) {
        let rate = rate.min(self.config.max_rate);
        self.rate = Some(rate);
        self.monitor.plan(&[rate]);
    }

    /// An interval with this mean RTT is over; `None` if all its packets were lost.
    fn decide(&mut self, rate: Rate, rtt: Option<Span>) {
        let slow = rtt.is_some_and(|rtt| rtt > self.path.min_rtt + self.config.threshold);
        self.set_rate(scaled(rate, 1.0 / if slow { self.config.decrease } else { self.config.increase }));
    }
}

impl CongestionAvoidance for VegasLike {
    fn wants_packets(&self) -> bool {
        true
    }

    fn on_sent(&mut self, sent: &Sent) {
        let length = self.interval();
        self.monitor.on_sent(sent, length);
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.monitor.on_acked(acked);
    }

    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        self.path.on_ack(ack);
        if let Some(rate) = self.rate
            && let Some((outcomes, _)) = self.monitor.outcomes(ack.now, self.interval(), self.path.srtt)
        {
            self.decide(rate, outcomes[0].and_then(|outcome| outcome.rtt));
        }
    }

    fn grow(&mut self, _ack: &Ack, _acked: u32, window: &mut Window) {
        if let Some(rate) = self.rate {
            window.cwnd = self.path.window(rate, WINDOW_RTTS, MIN_WINDOW);
        }
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        if self.rate.is_none() {
            self.set_rate(self.path.delivered_rate(window));
        }
        self.path.window(self.rate.unwrap_or(Rate::ZERO), 1, MIN_WINDOW)
    }

    fn on_takeover(&mut self, _now: Time, window: &Window) {
        self.set_rate(self.path.window_rate(window));
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn controls_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbps(100);

    /// The rate after an interval with this RTT over a path of 20 ms.
    fn after(rtt: Option<Span>) -> f64 {
        let mut rule = VegasLike::new(&VegasLikeConfig::default(), 1448);
        rule.path.min_rtt = Span::from_millis(20);
        rule.decide(RATE, rtt);
        rule.rate().unwrap().as_mbps_f64()
    }

    #[test]
    fn above_five_milliseconds_of_queue_the_rate_falls_by_4_8_percent_else_it_rises_by_1_percent() {
        assert!((after(Some(Span::from_micros(25_001))) - 100.0 / 1.05).abs() < 1e-3);
        assert!((after(Some(Span::from_micros(25_000))) - 100.0 / 0.99).abs() < 1e-3);
    }

    #[test]
    fn an_interval_of_which_everything_was_lost_lets_the_rate_rise() {
        assert!((after(None) - 100.0 / 0.99).abs() < 1e-3);
    }

    #[test]
    fn the_rate_rises_no_further_than_the_processor_goes() {
        let config = VegasLikeConfig { max_rate: Rate::from_mbps(100), ..VegasLikeConfig::default() };
        let mut rule = VegasLike::new(&config, 1448);
        rule.decide(RATE, None);
        assert_eq!(rule.rate(), Some(RATE));
    }

    #[test]
    fn losses_do_not_change_the_rate() {
        let mut rule = VegasLike::new(&VegasLikeConfig::default(), 1448);
        rule.set_rate(RATE);
        rule.reduce(Time::ZERO, Signal::Loss, &Window::new(10));
        rule.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
        assert_eq!(rule.rate(), Some(RATE));
    }

    #[test]
    fn constants_out_of_range_are_refused_and_replaced() {
        assert_eq!(VegasLikeConfig::default().validate(), Ok(()));
        let config = VegasLikeConfig { increase: 0.0, ..VegasLikeConfig::default() };
        assert!(config.validate().is_err());
        assert_eq!(VegasLike::new(&config, 0).config, VegasLikeConfig::default());
    }
}
