//! The statistics behind the estimate: is a series of delays stationary, are its values
//! independent, which quantile do they give.

mod autocorrelation;
mod cholesky;
mod dfgls;
mod effective;
mod growth;
mod histogram;
mod normal;
mod quantile;
mod random;
mod runs;
mod series;
mod student;

pub use autocorrelation::{CorrelationTime, autocorrelation, correlation_time};
pub use dfgls::{CriticalValues, DfGls, DfGlsConfig, LagChoice, Level, MIN_SAMPLES, Trend, dfgls};
pub use effective::effective_samples;
pub use growth::{Growth, growth};
pub use histogram::DelayHistogram;
pub(crate) use quantile::{NextSamples, can_show, fewest_samples};
pub use quantile::{QuantileInterval, lower_rank, quantile_interval, upper_quantile, upper_rank};
pub use random::{Gaps, SplitMix64};
pub use runs::{Cut, Runs, Sides, runs_test};
pub use series::Series;
pub(crate) use student::student_quantile;

/// Why a test has no answer. All of these are properties of the data, not mistakes of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degenerate {
    /// Fewer values than the test needs: have, need.
    TooFew(usize, usize),
    /// All values are equal, or on the same side of the cut.
    Constant,
    /// Lagged differences are linear functions of one another, so that no regression on this many
    /// lags exists.
    Singular(usize),
}

impl std::fmt::Display for Degenerate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFew(have, need) => write!(f, "{have} values, the test needs {need}"),
            Self::Constant => f.write_str("the values do not vary enough to be tested"),
            Self::Singular(lags) => write!(f, "the differences of {lags} lags depend on one another"),
        }
    }
}

/// Thins a series: every `every`-th value, beginning with the first. `every` = 0 counts as 1.
///
/// The paper's extension rule keeps each k-th of k·N values, so that N nearly independent ones
/// remain.
pub fn every_nth<T: Copy>(values: &[T], every: usize) -> Vec<T> {
    values.iter().step_by(every.max(1)).copied().collect()
}
