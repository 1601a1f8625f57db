//! Scalable TCP (Kelly, "Scalable TCP: improving performance in highspeed wide area networks",
//! 2003) as in Linux `tcp_scalable.c`.

use flowstart_control::{Ack, CongestionAvoidance, InRange, InvalidConfig, NewMss, Ranges, Signal, Window};
use flowstart_units::Time;

use super::reno::Counter;
use crate::AvoidanceConstants;

/// Constants of Scalable TCP; the defaults are those of Linux 6.1.192.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct ScalableConfig {
    /// The window grows by one packet per this many packets acknowledged, or per window if that is
    /// less; default 100 (`TCP_SCALABLE_AI_CNT`; older kernels 50). At least 1.
    pub packets_per_increase: u32,
    /// A reduction takes away 1/2^n of the window; default 3, an eighth (`TCP_SCALABLE_MD_SCALE`).
    /// 1 ..= 31.
    pub reduction_shift: u32,
}

impl Default for ScalableConfig {
    fn default() -> Self {
        Self { packets_per_increase: 100, reduction_shift: 3 }
    }
}

impl AvoidanceConstants for ScalableConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for ScalableConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("packets_per_increase", &mut self.packets_per_increase, 1.., "at least 1");
        ranges.of("reduction_shift", &mut self.reduction_shift, 1..=31, "between 1 and 31");
    }
}

/// Scalable TCP in operation.
#[derive(Clone, Copy, Debug)]
pub struct Scalable {
    config: ScalableConfig,
    counter: Counter,
}

impl Scalable {
    /// Scalable TCP with these constants. Out of range, they are moved to the nearest value in
    /// range.
    #[must_use]
    pub fn new(config: &ScalableConfig) -> Self {
        Self { config: config.in_range(), counter: Counter::default() }
    }
}

impl CongestionAvoidance for Scalable {
    #[inline]
    fn grow(&mut self, _ack: &Ack, acked: u32, window: &mut Window) {
        self.counter.grow(window, window.cwnd.min(self.config.packets_per_increase), acked);
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        self.counter.reset();
        (window.cwnd - (window.cwnd >> self.config.reduction_shift)).max(2)
    }

    fn is_scalable(&self) -> bool {
        true
    }

    #[inline(always)]
    fn paces(&self) -> bool {
        false
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.counter.on_mss(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    fn scalable() -> Scalable {
        Scalable::new(&ScalableConfig::default())
    }

    #[test]
    fn a_window_below_100_grows_like_reno_and_above_by_one_percent() {
        for (cwnd, after_a_round) in [(10, 11), (99, 100), (100, 101), (1000, 1010), (10_000, 10_100)] {
            let mut window = Window { cwnd, ssthresh: 2 };
            let mut avoidance = scalable();
            for _ in 0..cwnd {
                avoidance.grow(&ack(1), 1, &mut window);
            }
            assert_eq!(window.cwnd, after_a_round);
        }
    }

    #[test]
    fn a_reduction_takes_an_eighth() {
        for (cwnd, ssthresh) in [(1000, 875), (100, 88), (8, 7), (7, 7), (1, 2)] {
            assert_eq!(scalable().reduce(Time::ZERO, Signal::Loss, &Window { cwnd, ssthresh: 2 }), ssthresh);
        }
    }

    #[test]
    fn constants_out_of_range_are_refused_and_moved_to_the_nearest_in_range() {
        assert_eq!(ScalableConfig::default().validate(), Ok(()));
        let reduced = |reduction_shift| {
            let config = ScalableConfig { reduction_shift, packets_per_increase: 0 };
            assert_eq!(config.validate().map_err(|error| error.field), Err("packets_per_increase"));
            Scalable::new(&config).reduce(Time::ZERO, Signal::Loss, &Window { cwnd: 1000, ssthresh: 2 })
        };
        // With 0 nothing would be left, and from 32 on there would be nothing to shift by.
        assert_eq!([0, 1, 31, 40].map(reduced), [500, 500, 1000, 1000]);
    }

    #[test]
    fn the_time_between_losses_is_about_13_rounds_at_any_rate() {
        for peak in [1000, 10_000, 100_000] {
            let mut avoidance = scalable();
            let mut window =
                Window { cwnd: avoidance.reduce(Time::ZERO, Signal::Loss, &Window::new(peak)), ssthresh: 2 };
            let mut rounds = 0;
            while window.cwnd < peak {
                for _ in 0..window.cwnd {
                    avoidance.grow(&ack(1), 1, &mut window);
                }
                rounds += 1;
            }
            // ln(8/7) / ln(1.01) = 13.4
            assert_eq!(rounds, 14);
        }
    }
}
