//! Random decisions that come out the same on every machine: integers and comparisons only.

use crate::{Rng, Stream};

/// Random bits behind a decision: as many as a double holds exactly.
const BITS: u32 = 53;

/// A probability as a threshold on 53 random bits, exact for 0 and 1.
#[derive(Clone, Copy, Debug)]
pub struct Probability(u64);

impl Probability {
    /// Values outside 0 ..= 1 count as the nearer end, NaN as 0.
    #[must_use]
    pub fn new(probability: f64) -> Self {
        // `as` saturates at 0 and maps NaN to 0.
        Self((probability.min(1.0) * (1_u64 << BITS) as f64) as u64)
    }

    /// True with this probability.
    #[inline]
    pub fn draw(self, random: &mut Stream) -> bool {
        random.next_u64() >> (64 - BITS) < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_the_share_of_the_53_bit_numbers_below_it() {
        let thresholds = [(0.0, 0), (-1.0, 0), (0.25, 1 << 51), (0.5, 1 << 52), (1.0, 1 << 53), (7.0, 1 << 53)];
        for (probability, threshold) in thresholds {
            assert_eq!(Probability::new(probability).0, threshold, "{probability}");
        }
        assert_eq!(Probability::new(f64::MIN_POSITIVE).0, 0);
        assert_eq!(Probability::new(f64::INFINITY).0, 1 << 53);
    }

    #[test]
    fn a_quarter_of_all_draws_says_yes() {
        let random = &mut crate::stream(1);
        let (never, quarter, always) = (Probability::new(0.0), Probability::new(0.25), Probability::new(1.0));
        let hits = (0..100_000).filter(|_| quarter.draw(random)).count();
        // Five standard deviations.
        assert!(hits.abs_diff(25_000) < 685, "{hits}");
        assert!((0..1000).all(|_| !never.draw(random) && always.draw(random)));
    }
}
