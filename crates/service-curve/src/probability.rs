//! Probabilities that are probabilities.

use crate::Error;

/// A probability: a finite number in 0 ..= 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// One in a hundred; the default of every violation probability here (the paper's value is not
    /// legible in the copy that was used).
    pub const ONE_PERCENT: Self = Self(0.01);
    /// One in a thousand.
    pub const ONE_PERMILLE: Self = Self(0.001);
    /// Two in ten thousand: how fast two clocks may drift apart.
    pub(crate) const DRIFT: Self = Self(0.000_2);
    /// One in twenty; the default level of tests and of what a 95 % interval leaves out.
    pub const FIVE_PERCENT: Self = Self(0.05);
    /// One in five: what speaks against nothing.
    pub(crate) const TWENTY_PERCENT: Self = Self(0.2);

    /// One in two.
    pub const HALF: Self = Self(0.5);

    /// `p`, if it is in 0 ..= 1.
    ///
    /// # Errors
    /// [`Error::NotAProbability`] otherwise, also for NaN.
    pub fn new(p: f64) -> Result<Self, Error> {
        if (0.0..=1.0).contains(&p) { Ok(Self(p)) } else { Err(Error::NotAProbability(p)) }
    }

    /// The number, 0 ..= 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// A ratio of counts, at most 1; zero of zero is 0.
    #[must_use]
    pub fn of(part: usize, whole: usize) -> Self {
        if whole == 0 { Self::ZERO } else { Self((part as f64 / whole as f64).min(1.0)) }
    }

    /// The union bound of `count` events of this probability, at most 1.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        Self((self.0 * count as f64).min(1.0))
    }

    /// This probability shared equally by `parts`; nothing to share is 0.
    #[must_use]
    pub fn divided_by(self, parts: usize) -> Self {
        if parts == 0 { Self::ZERO } else { Self(self.0 / parts as f64) }
    }

    /// The nearest probability; NaN gives 0.
    #[must_use]
    pub(crate) fn clamped(p: f64) -> Self {
        if p > 0.0 { Self(p.min(1.0)) } else { Self::ZERO }
    }
}

impl TryFrom<f64> for Probability {
    type Error = Error;
    fn try_from(p: f64) -> Result<Self, Error> {
        Self::new(p)
    }
}

impl From<Probability> for f64 {
    fn from(p: Probability) -> Self {
        p.0
    }
}

impl std::fmt::Display for Probability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_shares_and_unions_are_what_arithmetic_says() {
        let p = |x| Probability::new(x).unwrap();
        assert_eq!(Probability::try_from(0.25), Ok(p(0.25)));
        assert_eq!(f64::from(p(0.25)), 0.25);
        assert_eq!(p(0.25).to_string(), "0.25");
        assert_eq!([(0, 0), (1, 4), (4, 4), (5, 4)].map(|(part, whole)| Probability::of(part, whole)), {
            [p(0.0), p(0.25), p(1.0), p(1.0)]
        });
        assert_eq!((p(0.25).times(3), p(0.25).times(5), p(0.25).times(0)), (p(0.75), p(1.0), p(0.0)));
        assert_eq!((p(0.5).divided_by(4), p(0.5).divided_by(0)), (p(0.125), p(0.0)));
        assert_eq!([-0.5, f64::NAN, 0.0, 0.5, 1.5].map(Probability::clamped), [0.0, 0.0, 0.0, 0.5, 1.0].map(p));
    }

    #[test]
    fn only_numbers_from_zero_to_one_are_probabilities() {
        assert_eq!(Probability::new(0.0), Ok(Probability::ZERO));
        assert!(Probability::new(1.0).is_ok());
        for p in [-1e-9, 1.0 + 1e-9, f64::NAN, f64::INFINITY] {
            assert!(matches!(Probability::new(p), Err(Error::NotAProbability(_))), "{p}");
        }
    }
}
