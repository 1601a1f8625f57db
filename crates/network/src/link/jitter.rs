//! Random extra delay.

use flowstart_random::{Rng, Stream, stream};
use flowstart_units::{Span, Time};

/// Extra delay per packet, uniform on 0 ..= `spread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct JitterConfig {
    /// The largest extra delay.
    pub spread: Span,
    /// True if a packet may overtake another; otherwise it waits for the one before it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reorder: bool,
}

/// A jitter process in operation.
#[derive(Clone, Debug)]
pub struct Jitter {
    config: JitterConfig,
    random: Stream,
    latest: Time,
}

impl Jitter {
    /// A process with its own random stream.
    #[must_use]
    pub fn new(config: &JitterConfig, seed: u64) -> Self {
        Self { config: *config, random: stream(seed), latest: Time::ZERO }
    }

    /// When a packet arrives that would arrive at `time` without jitter.
    #[inline]
    pub fn delay(&mut self, time: Time) -> Time {
        // A 64-bit draw scaled by multiplication: the bias is below 2^-32 for spreads of seconds.
        let wide = u128::from(self.random.next_u64()) * (u128::from(self.config.spread.as_nanos()) + 1);
        let arrival = time + Span::from_nanos((wide >> 64) as u64);
        if self.config.reorder {
            return arrival;
        }
        self.latest = self.latest.max(arrival);
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn jitter_only_delays_by_at_most_its_spread_and_keeps_order_unless_asked(seed: u64, reorder: bool) {
            let spread = Span::from_millis(5);
            let mut jitter = Jitter::new(&JitterConfig { spread, reorder }, seed);
            let mut last = Time::ZERO;
            for n in 0..200 {
                let time = Time::from_nanos(n * 100_000);
                let arrival = jitter.delay(time);
                proptest::prop_assert!(arrival >= time && arrival <= time + spread);
                proptest::prop_assert!(reorder || arrival >= last);
                last = arrival;
            }
        }
    }
}
