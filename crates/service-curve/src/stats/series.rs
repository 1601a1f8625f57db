//! Finite numbers in time order.

use flowstart_units::Span;

use crate::Error;

/// The largest magnitude accepted: its fourth power times any length of series is still a number.
const LARGEST: f64 = 1e60;

/// Values in time order, all finite, so that no calculation on them meets a NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(Vec<f64>);

impl Series {
    /// A series of `values`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the position of the first value that is NaN, infinite or beyond
    /// ±10^60.
    pub fn new(values: Vec<f64>) -> Result<Self, Error> {
        match values.iter().position(|x| !x.is_finite() || x.abs() > LARGEST) {
            Some(index) => Err(Error::NotFinite(index)),
            None => Ok(Self(values)),
        }
    }

    /// Spans of time, in seconds.
    #[must_use]
    pub fn from_spans(spans: &[Span]) -> Self {
        Self(spans.iter().map(|span| span.as_secs_f64()).collect())
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// Arithmetic mean; 0 of nothing.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    /// The median: the middle value, or the mean of the two in the middle; 0 of nothing.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        let middle = sorted.len() / 2;
        if sorted.is_empty() {
            return 0.0;
        }
        let (below, &mut at, _) = sorted.select_nth_unstable_by(middle, f64::total_cmp);
        if self.0.len() % 2 == 1 {
            return at;
        }
        let before = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        f64::midpoint(before, at)
    }

    /// Variance with divisor n; 0 of nothing.
    #[must_use]
    pub fn variance(&self) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let mean = self.mean();
        self.0.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / self.0.len() as f64
    }
}
