//! Every random stream of flowstart: what it is for and how it is seeded.
//!
//! A stream belongs to one [`Purpose`] of one part in one run. It is seeded from these and the
//! user's seed, so that adding a part leaves the draws of all others alone, and the same seed gives
//! the same numbers on every machine and in every version.
//!
//! ```
//! use flowstart_random::{Purpose, Rng};
//!
//! // The losses of link 2 in run 0 of seed 1, and the same stream again.
//! let mut losses = Purpose::Loss.stream(1, 0, 2);
//! let mut again = Purpose::Loss.stream(1, 0, 2);
//! assert_eq!(losses.next_u64(), again.next_u64());
//! ```

#![cfg_attr(not(test), no_std)]

mod probability;
mod purpose;
mod splitmix;

pub use probability::Probability;
pub use purpose::Purpose;
pub use rand_core::Rng;
pub use splitmix::{SplitMix64, mix};

/// A stream of random numbers: PCG64 MCG (XSL-RR; O'Neill 2014), which is fast and never changes.
pub type Stream = rand_pcg::Pcg64Mcg;

/// The stream of a seed that is one already, such as one from [`Purpose::seed`].
#[must_use]
pub fn stream(seed: u64) -> Stream {
    rand_core::SeedableRng::seed_from_u64(seed)
}

/// A number in (0, 1], with 53 random bits.
#[inline]
pub fn unit(random: &mut Stream) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// A number in 0 .. `below`, or 0 if `below` is 0, by multiplying and shifting. The bias is below
/// `below` / 2^64.
#[inline]
pub fn below(random: &mut Stream, below: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(below)) >> 64) as u64
}
