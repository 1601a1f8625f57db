//! Randomness of the few algorithms that need some.

use flowstart_random::SplitMix64;

/// SplitMix64, seeded by the flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A fair coin.
    pub(crate) fn coin(&mut self) -> bool {
        self.0.coin()
    }

    /// A number from 0 to 1, 1 excluded.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}
