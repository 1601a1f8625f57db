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
                // Products such as 100 * 0.07 are off by roundings that nobody wants to read.
                let percent = epsilon.get() * 100.0;
                let percent = if percent < 1e-6 {
                    format!("{percent:.2e}")
                } else {
                    (libm::round(percent * 1e9) / 1e9).to_string()
                };
                match (epsilon.get(), fewest_samples(*epsilon)) {
                    (0.0, _) => f.write_str("epsilon must be above 0 %: no number of samples shows what never happens"),
                    (0.5.., _) => f.write_str("epsilon must be below 100 %: no delay is exceeded more often"),
                    (_, Some(need)) => {
                        write!(f, "an epsilon of {percent} % needs at least {need} samples, not {samples}")
                    }
                    (_, None) => write!(f, "an epsilon of {percent} % needs more samples than can be counted"),
                }
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
