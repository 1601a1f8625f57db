//! Named random numbers: the same seed gives the same numbers everywhere and for ever.

pub use flowstart_random::SplitMix64;

/// How many packets further the next delay is sampled: geometric with the given mean, at least 1.
///
/// Samples at random packets see time averages (Poisson arrivals see time averages; the paper samples "random packets" without saying
/// how). Endless.
#[derive(Clone, Debug)]
pub struct Gaps {
    random: SplitMix64,
    /// ln(1 - 1/mean); zero if every packet is taken.
    log_miss: f64,
}

impl Gaps {
    /// Gaps with this mean in packets. A mean of 1 or less (or NaN) takes every packet.
    #[must_use]
    pub fn new(mean: f64, seed: u64) -> Self {
        let log_miss = if mean > 1.0 { libm::log1p(-1.0 / mean) } else { 0.0 };
        Self { random: SplitMix64::new(seed), log_miss }
    }
}

impl Iterator for Gaps {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        if self.log_miss == 0.0 {
            return Some(1);
        }
        let gap = libm::log(1.0 - self.random.unit()) / self.log_miss;
        // `as` saturates.
        Some((gap as u64).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_seed_one_are_the_published_ones() {
        let mut random = SplitMix64::new(1);
        let expected =
            [0.566_561_575_172_280_9, 0.745_781_757_262_701_1, 0.971_002_753_586_796_2, 0.444_359_217_055_772_1];
        for value in expected {
            assert_eq!(random.unit(), value);
        }
    }

    #[test]
    fn gaps_have_their_mean_and_are_memoryless() {
        let gaps: Vec<u64> = Gaps::new(10.0, 3).take(100_000).collect();
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        // Standard error sqrt(90 / 100 000) = 0.03.
        assert!((mean - 10.0).abs() < 0.12, "{mean}");
        let ones = gaps.iter().filter(|gap| **gap == 1).count() as f64 / gaps.len() as f64;
        assert!((ones - 0.1).abs() < 0.004, "{ones}");
        assert!(Gaps::new(0.5, 1).take(10).all(|gap| gap == 1));
        assert!(Gaps::new(f64::NAN, 1).take(10).all(|gap| gap == 1));
    }
}
