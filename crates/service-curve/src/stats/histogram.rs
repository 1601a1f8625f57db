//! Delays in a memory that does not grow with their number.

use flowstart_units::Span;
use hdrhistogram::Histogram;

use super::upper_rank;
use crate::{Error, Probability};

/// A streaming histogram of delays with a constant relative resolution (log-linear classes, crate
/// `hdrhistogram`).
///
/// Quantiles are upper ends of classes, never below the exact value: a service curve made from them
/// is on the safe side.
#[derive(Clone, Debug)]
pub struct DelayHistogram(Histogram<u64>);

/// The longest delay told apart from longer ones: an hour.
const LONGEST: Span = Span::from_secs(3_600);

impl DelayHistogram {
    /// An empty histogram whose classes are `digits` decimal digits fine (1 ..= 5): 3 digits keep
    /// 0.1 % and take about 0.5 MB. Delays of more than an hour count as one hour.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] for other numbers of digits.
    pub fn new(digits: u8) -> Result<Self, Error> {
        Histogram::new_with_bounds(1, LONGEST.as_nanos(), digits)
            .map(Self)
            .map_err(|_| Error::InvalidConfig("digits of a histogram", "1 to 5"))
    }

    /// Counts one delay.
    pub fn record(&mut self, delay: Span) {
        self.0.saturating_record(delay.as_nanos());
    }

    /// Adds what `other` has counted.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if `other` counts in classes that this one does not have.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.0.add(&other.0).map_err(|_| Error::InvalidConfig("a merged histogram", "of the same resolution"))
    }

    /// How many delays were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Mean delay in seconds, within the resolution; `None` of no delays.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        const NANOS: f64 = 1e9;
        (self.count() > 0).then(|| self.0.mean() / NANOS)
    }

    /// The (1 - `epsilon`)-quantile as the upper end of its class; `None` of no delays.
    #[must_use]
    pub fn upper_quantile(&self, epsilon: Probability) -> Option<Span> {
        let rank = upper_rank(usize::try_from(self.count()).unwrap_or(usize::MAX), epsilon)? as u64;
        let mut seen = 0_u64;
        for class in self.0.iter_recorded() {
            seen = seen.saturating_add(class.count_since_last_iteration());
            if seen >= rank {
                return Some(Span::from_nanos(class.value_iterated_to()));
            }
        }
        None
    }

    /// The fraction of delays longer than `threshold`, within the resolution: with the propagation
    /// delay as threshold, the probability of queueing (Figure 10 of the paper, there of the
    /// sender's stack).
    #[must_use]
    pub fn fraction_above(&self, threshold: Span) -> Probability {
        let above: u64 = self
            .0
            .iter_recorded()
            .filter(|class| self.0.lowest_equivalent(class.value_iterated_to()) > threshold.as_nanos())
            .map(|class| class.count_since_last_iteration())
            .fold(0, u64::saturating_add);
        if self.count() == 0 { Probability::ZERO } else { Probability::clamped(above as f64 / self.count() as f64) }
    }

    /// The complementary distribution: upper end of every class that holds delays, and the fraction
    /// of delays above it.
    #[must_use]
    pub fn ccdf(&self) -> Vec<(Span, Probability)> {
        let mut left = self.count();
        let total = self.count().max(1) as f64;
        self.0
            .iter_recorded()
            .map(|class| {
                left = left.saturating_sub(class.count_since_last_iteration());
                (Span::from_nanos(class.value_iterated_to()), Probability::clamped(left as f64 / total))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::upper_quantile;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_never_below_the_exact_ones_and_a_thousandth_above_at_most(
            delays in proptest::collection::vec(0_u64..3_600_000_000_000, 1..300),
            epsilon in 0.0..=1.0_f64,
        ) {
            let epsilon = Probability::new(epsilon).unwrap();
            let mut spans: Vec<Span> = delays.into_iter().map(Span::from_nanos).collect();
            let mut histogram = DelayHistogram::new(3).unwrap();
            spans.iter().for_each(|delay| histogram.record(*delay));
            let exact = upper_quantile(&mut spans, epsilon).unwrap().as_nanos();
            let found = histogram.upper_quantile(epsilon).unwrap().as_nanos();
            prop_assert!(found >= exact);
            prop_assert!(found - exact <= exact / 1000 + 1, "{found} {exact}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_a_delay_of_years_is_an_hour() {
        let mut histogram = DelayHistogram::new(2).unwrap();
        assert_eq!(histogram.upper_quantile(Probability::ZERO), None);
        assert_eq!(histogram.fraction_above(Span::ZERO), Probability::ZERO);
        histogram.record(Span::MAX);
        assert!(histogram.upper_quantile(Probability::ZERO).unwrap() >= LONGEST);
        assert!(DelayHistogram::new(9).is_err());
    }

    #[test]
    fn the_ccdf_falls_to_zero() {
        let mut histogram = DelayHistogram::new(3).unwrap();
        for ms in [5, 5, 5, 9] {
            histogram.record(Span::from_millis(ms));
        }
        let ccdf = histogram.ccdf();
        assert_eq!(ccdf.len(), 2);
        assert!((histogram.mean().unwrap() - 0.006).abs() < 1e-5);
        assert_eq!((ccdf[0].1.get(), ccdf[1].1.get()), (0.25, 0.0));
        assert_eq!(histogram.fraction_above(Span::from_millis(6)).get(), 0.25);
    }
}
