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
