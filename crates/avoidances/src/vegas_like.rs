//! The delay-based rule of Bachl, Fabini and Zseby, "Detecting Fair Queuing for Better Congestion
//! Control" (2020), as published: if the mean RTT of a monitor interval is more than 5 ms above the
//! smallest, the rate falls by 5 %, else it rises by 1 %. Meant for flows that have a queue of
//! their own.
//!
//! It has faults that are kept here: losses do not count, the smallest RTT never expires, the rate
//! has no lower end, and it decides once per interval of 1.5 RTTs and another RTT of waiting.
//! [`DelayTarget`](super::DelayTarget) mends them.

use flowstart_control::{InRange, InvalidConfig, IsolationAware, Ranges, above};
use flowstart_units::{Rate, Span};

use super::intervals::Length;
use super::trials::{Limits, Outcomes, Trials, TriesRates, try_rates};
use crate::AvoidanceConstants;

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
    /// Largest rate; default 1 Gbit/s. The implementation has no limit but its processor: where
    /// losses keep the queue short, the rule accelerates for ever.
    pub max_rate: Rate,
    /// The window is this many times what the rate sends in a smoothed RTT, 1 ..= 100; default 2:
    /// it never holds packets back while ACKs come.
    pub window_rtts: u32,
    /// Smallest window in packets, at least 1; default 2.
    pub min_window: u32,
    /// An interval is given up when this many smoothed RTTs have passed since its last packet left,
    /// 1 ..= 100; default 4 (this project's).
    pub give_up_rtts: u32,
    /// Packets that were sent later and must be delivered before one counts as lost, at least 1;
    /// default 3 (RFC 5681 section 3.2).
    pub reordering: u32,
}

impl Default for VegasLikeConfig {
    fn default() -> Self {
        Self {
            threshold: Span::from_millis(5),
            decrease: 1.05,
            increase: 0.99,
            interval_rtts: 1.5,
            max_rate: Rate::from_mbps(1000),
            window_rtts: 2,
            min_window: 2,
            give_up_rtts: 4,
            reordering: 3,
        }
    }
}

impl VegasLikeConfig {
    fn limits(&self) -> Limits {
        let Self { window_rtts, min_window, give_up_rtts, reordering, .. } = *self;
        Limits { window_rtts, min_window, give_up_rtts, reordering }
    }
}

impl AvoidanceConstants for VegasLikeConfig {
    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate")
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for VegasLikeConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("decrease", &mut self.decrease, 1.0.., "at least 1");
        ranges.of("max_rate", &mut self.max_rate, above(Rate::ZERO), "above 0");
        ranges.of("increase", &mut self.increase, above(0.0).up_to(1.0), "above 0 and at most 1");
        ranges.of("interval_rtts", &mut self.interval_rtts, above(0.0).up_to(100.0), "above 0 and at most 100");
        let give_up = &mut self.give_up_rtts;
        Limits::ranges(ranges, &mut self.window_rtts, &mut self.min_window, give_up, &mut self.reordering);
    }
}

/// The rule in operation.
#[derive(Clone, Debug)]
pub struct VegasLike {
    config: VegasLikeConfig,
    trials: Trials,
    rate: Option<Rate>,
}

impl VegasLike {
    /// The rule for a flow with segments of `mss` payload bytes. Constants out of range are moved
    /// to the nearest value in range.
    #[must_use]
    pub fn new(config: &VegasLikeConfig, mss: u32) -> Self {
        let config = config.in_range();
        Self { trials: Trials::new(mss, config.limits()), config, rate: None }
    }

    /// The rate; `None` before it has taken over.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

try_rates!(VegasLike);

impl IsolationAware for VegasLike {}

impl TriesRates for VegasLike {
    fn trials(&self) -> &Trials {
        &self.trials
    }

    fn trials_mut(&mut self) -> &mut Trials {
        &mut self.trials
    }

    fn interval(&self) -> Length {
        Length::of(self.trials.path.srtt.mul_f64(self.config.interval_rtts))
    }

    fn base_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn begin(&mut self, rate: Rate) {
        let rate = rate.min(self.config.max_rate);
        self.rate = Some(rate);
        self.trials.move_to(rate);
    }

    /// An interval is over; it has no mean RTT if all its packets were lost.
    fn decide(&mut self, outcomes: &Outcomes) {
        let slowest = self.trials.path.min_rtt + self.config.threshold;
        let slow = outcomes[0].and_then(|outcome| outcome.rtt).is_some_and(|rtt| rtt > slowest);
        let divisor = if slow { self.config.decrease } else { self.config.increase };
        self.begin(self.rate.unwrap_or(Rate::ZERO).mul_f64(1.0 / divisor));
    }

    fn timeout_factor(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Time;

    use super::*;
    use crate::intervals::IntervalOutcome;
    use flowstart_control::{CongestionAvoidance as _, Signal, Window};

    const RATE: Rate = Rate::from_mbps(100);

    fn over(rtt: Option<Span>) -> Outcomes {
        let loss = if rtt.is_some() { 0.0 } else { 1.0 };
        [Some(IntervalOutcome { rate: RATE, sent: RATE, loss, rtt, gradient: 0.0 }), None, None, None]
    }

    /// The rate after an interval with this RTT over a path of 20 ms.
    fn after(rtt: Option<Span>) -> f64 {
        let mut rule = VegasLike::new(&VegasLikeConfig::default(), 1448);
        rule.trials.path.min_rtt = Span::from_millis(20);
        rule.begin(RATE);
        rule.decide(&over(rtt));
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
        rule.begin(RATE);
        rule.decide(&over(None));
        assert_eq!(rule.rate(), Some(RATE));
    }

    #[test]
    fn losses_do_not_change_the_rate() {
        let mut rule = VegasLike::new(&VegasLikeConfig::default(), 1448);
        rule.begin(RATE);
        rule.reduce(Time::ZERO, Signal::Loss, &Window::new(10));
        rule.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
        assert_eq!(rule.rate(), Some(RATE));
    }

    #[test]
    fn constants_out_of_range_are_refused_and_moved_to_the_nearest_in_range() {
        assert_eq!(VegasLikeConfig::default().validate(), Ok(()));
        let given = VegasLikeConfig { decrease: 0.5, threshold: Span::from_millis(7), ..VegasLikeConfig::default() };
        assert_eq!(given.validate().map_err(|error| error.field), Err("decrease"));
        assert_eq!(VegasLike::new(&given, 0).config, VegasLikeConfig { decrease: 1.0, ..given });
        for (window_rtts, min_window, give_up_rtts, field, moved) in [
            (0, 1, 1, "window_rtts", (1, 1, 1)),
            (101, 1, 1, "window_rtts", (100, 1, 1)),
            (1, 0, 1, "min_window", (1, 1, 1)),
            (1, 1, 0, "give_up_rtts", (1, 1, 1)),
            (1, 1, 101, "give_up_rtts", (1, 1, 100)),
        ] {
            let given = VegasLikeConfig { window_rtts, min_window, give_up_rtts, ..VegasLikeConfig::default() };
            assert_eq!(given.validate().map_err(|error| error.field), Err(field));
            let limits = VegasLike::new(&given, 0).config.limits();
            assert_eq!((limits.window_rtts, limits.min_window, limits.give_up_rtts), moved);
        }
    }
}
