//! Named random numbers: the same seed gives the same numbers everywhere and for ever.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014): the state is the seed and grows by the golden gamma per draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

/// 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

impl SplitMix64 {
    /// The generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of one part of a calculation: streams of different `part` do not overlap in
    /// practice.
    #[must_use]
    pub fn for_part(seed: u64, part: u64) -> Self {
        let mut mixer = Self(seed);
        let base = mixer.next_u64();
        let mut mixer = Self(base ^ part.wrapping_mul(GAMMA));
        Self(mixer.next_u64())
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A number in 0 .. `below`; 0 if `below` is 0. Multiply-and-shift, with a bias below 2^-32 for
    /// any count that fits into memory.
    pub fn below(&mut self, below: usize) -> usize {
        ((u128::from(self.next_u64()) * below as u128) >> 64) as usize
    }

    /// A standard normal number: the cosine branch of Box and Muller, two draws.
    pub fn normal(&mut self) -> f64 {
        let (u1, u2) = (self.unit(), self.unit());
        libm::sqrt(-2.0 * libm::log(1.0 - u1)) * libm::cos(2.0 * std::f64::consts::PI * u2)
    }
}

/// How many packets further the next delay is sampled: geometric with the given mean, at least 1.
///
/// Samples at random packets see time averages (Poisson arrivals see time averages; the paper
/// samples "random packets" without saying how). Endless.
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
