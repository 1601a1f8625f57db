//! SplitMix64: a small generator, and the mixing of bits behind it.

/// 2^64 divided by the golden ratio, odd: what the state of SplitMix64 grows by.
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
/// The multipliers of the finalizer.
pub(crate) const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;

/// Mixes 64 bits: the finalizer of SplitMix64 (Stafford's variant 13). Different bits give
/// different ones.
#[must_use]
#[inline]
pub const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(FIRST);
    bits = (bits ^ (bits >> 27)).wrapping_mul(SECOND);
    bits ^ (bits >> 31)
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014): the state is the seed and grows by the golden gamma per draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

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
        let base = Self::nth(seed, 1);
        Self(Self::nth(base ^ part.wrapping_mul(GAMMA), 1))
    }

    /// Draw number `n` of this seed's generator, counted from 1.
    #[must_use]
    #[inline]
    pub const fn nth(seed: u64, n: u64) -> u64 {
        mix(seed.wrapping_add(n.wrapping_mul(GAMMA)))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A fair coin.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
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
        libm::sqrt(-2.0 * libm::log(1.0 - u1)) * libm::cos(2.0 * core::f64::consts::PI * u2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for this seed.
    #[test]
    fn the_published_numbers_of_seed_1234567() {
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        let mut random = SplitMix64::new(1_234_567);
        for (n, expected) in (1..).zip(expected) {
            assert_eq!(random.next_u64(), expected);
            assert_eq!(SplitMix64::nth(1_234_567, n), expected);
        }
    }

    #[test]
    fn the_first_fractions_of_seed_one() {
        let mut random = SplitMix64::new(1);
        let expected =
            [0.566_561_575_172_280_9, 0.745_781_757_262_701_1, 0.971_002_753_586_796_2, 0.444_359_217_055_772_1];
        for value in expected {
            assert!(random.unit().to_bits() == f64::to_bits(value));
        }
    }

    #[test]
    fn parts_have_generators_of_their_own() {
        let first = |part| SplitMix64::for_part(1, part).next_u64();
        assert_eq!(first(0), first(0));
        assert!((1..1000).all(|part| first(part) != first(0)));
    }

    #[test]
    fn coins_are_fair_counts_stay_below_and_normals_have_their_moments() {
        let mut random = SplitMix64::new(3);
        let heads = (0..10_000).filter(|_| random.coin()).count();
        assert!(heads.abs_diff(5000) < 250, "{heads}");
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            seen[random.below(7)] += 1;
        }
        assert!(seen.iter().all(|n| n.abs_diff(1000) < 150), "{seen:?}");
        assert_eq!(random.below(0), 0);
        let normals: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let mean = normals.iter().sum::<f64>() / 1e4;
        let variance = normals.iter().map(|x| x * x).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.07, "{mean} {variance}");
    }
}
