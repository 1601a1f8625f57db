//! Random choices for scenarios.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How far from the usual values may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wildness {
    /// What people simulate.
    Usual,
    /// Constants varied, odd combinations.
    Varied,
    /// Everything that is accepted.
    Extreme,
}

/// A stream of choices.
#[derive(Debug)]
pub(crate) struct Chance {
    random: Pcg64Mcg,
    pub(crate) wild: Wildness,
}

impl Chance {
    /// The choices of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let wild = match random.next_u64() % 10 {
            0..4 => Wildness::Usual,
            4..8 => Wildness::Varied,
            _ => Wildness::Extreme,
        };
        Self { random, wild }
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// From 0 to below `below`, which is at least 1.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// True in so many of a hundred cases of extreme scenarios, never in others.
    pub(crate) fn extreme(&mut self, percent: u64) -> bool {
        self.percent(percent) && self.wild == Wildness::Extreme
    }

    /// One of several.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// From `from` to `to`, every power of ten as likely as the others. Both are at least 1.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        let (low, high) = (libm::log(from as f64), libm::log(to as f64));
        let exponent = low + (high - low) * self.share();
        (libm::exp(exponent) as u64).clamp(from, to)
    }

    /// From 0 to below 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
