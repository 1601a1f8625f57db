//! What is refused, and why.

use std::fmt;

use crate::Probability;
use crate::stats::fewest_samples;

/// Why an input or a configuration is refused. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A number that is no probability: outside 0 ..= 1 or not a number.
    NotAProbability(f64),
    /// A value of a series is not finite or too large to be squared; its position from 0.
    NotFinite(usize),
    /// An epsilon whose quantile so many samples cannot show, because none of them may lie beyond
    /// it (or all may): epsilon, samples.
    NotShown(Probability, usize),
    /// A field of a configuration has a value that makes no sense: field, what it must be.
    InvalidConfig(&'static str, &'static str),
    /// Something has an earlier time than what comes before it; its position from 0.
    OutOfOrder(usize),
    /// A replica or connection has another number of values than it must: which one (from 0), how
    /// many it has, how many it must have.
    UnequalReplicas(usize, usize, usize),
    /// Fewer values than the calculation needs: have, need.
    TooFew(usize, usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAProbability(value) => write!(f, "{value} is not a probability between 0 and 1"),
            Self::NotFinite(index) => write!(f, "value {index} (from 0) is not a finite number of moderate size"),
            Self::NotShown(epsilon, samples) => {
                match epsilon.get() {
                    0.0 => {
                        f.write_str("epsilon must be above 0, since no number of samples shows what never happens")?
                    }
                    1.0 => f.write_str(
                        "epsilon must be below 1, since every delay is exceeded with probability 1 at most",
                    )?,
                    few => match fewest_samples(*epsilon) {
                        Some(need) => write!(f, "epsilon {few} needs at least {need} samples")?,
                        None => write!(f, "epsilon {few} needs more samples than can be taken")?,
                    },
                }
                write!(
                    f,
                    ", and the {samples} that may be taken can show an epsilon of {} or more",
                    1.0 / *samples as f64
                )
            }
            Self::InvalidConfig(field, must) => write!(f, "{field} must be {must}"),
            Self::UnequalReplicas(which, has, must) => {
                write!(f, "replica {which} (from 0) has {has} values instead of {must}")
            }
            Self::TooFew(have, need) => write!(f, "{have} values are too few, at least {need} are needed"),
            Self::OutOfOrder(index) => write!(f, "entry {index} (from 0) is earlier than the one before it"),
        }
    }
}

impl std::error::Error for Error {}
