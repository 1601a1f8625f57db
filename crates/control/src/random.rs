//! Randomness of the few algorithms that need some.

use flowstart_random::SplitMix64;

/// SplitMix64, seeded by the flow.
#[derive(Clone, Copy, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// 64 bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A fair coin.
    #[inline]
    pub fn coin(&mut self) -> bool {
        self.0.coin()
    }

    /// A number from 0 to 1, 1 excluded.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_own_stream_whose_coins_are_fair_and_whose_shares_fill_0_to_1() {
        let four = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.next())
        };
        assert_eq!(four(1), four(1));
        assert_ne!(four(1), four(2));
        let mut random = Random::new(7);
        let heads = (0..10_000).filter(|_| random.coin()).count();
        assert!((4_800..5_200).contains(&heads), "{heads}");
        let shares: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(shares.iter().all(|share| (0.0..1.0).contains(share)));
        let mean = shares.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
