//! Randomness of the few algorithms that need some.

/// splitmix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A fair coin.
    #[inline]
    pub fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    /// A number from 0 to 1, 1 excluded.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
