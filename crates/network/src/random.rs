//! Random decisions that come out the same on every machine: integers and comparisons only.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// Random bits behind a decision or a fraction: as many as a double holds exactly.
const BITS: u32 = 53;

/// A probability as a threshold on 53 random bits, exact for 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probability(u64);

impl Probability {
    /// Values outside 0 ..= 1 count as the nearer end, NaN as 0.
    pub(crate) fn new(probability: f64) -> Self {
        // `as` saturates at 0 and maps NaN to 0.
        Self((probability.min(1.0) * (1_u64 << BITS) as f64) as u64)
    }

    /// True with this probability.
    #[inline]
    pub(crate) fn draw(self, random: &mut Pcg64Mcg) -> bool {
        random.next_u64() >> (64 - BITS) < self.0
    }
}

/// Mixes 64 bits (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
#[inline]
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
