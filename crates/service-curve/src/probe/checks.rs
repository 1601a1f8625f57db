//! The tests that samples must pass.

use flowstart_units::Span;

use super::ProbeConfig;
use crate::Probability;
use crate::stats::{Cut, Degenerate, DfGls, DfGlsConfig, LagChoice, Runs, Series, dfgls, runs_test, upper_quantile};

/// True if the medians of so many successive blocks of the samples all increase.
pub(super) fn grow(samples: &[Span], blocks: usize) -> bool {
    let length = samples.len() / blocks.max(1);
    if blocks < 2 || length == 0 {
        return false;
    }
    let median = |block: &[Span]| upper_quantile(&mut block.to_vec(), Probability::HALF);
    let medians: Vec<Option<Span>> = samples.chunks_exact(length).take(blocks).map(median).collect();
    medians.windows(2).all(|pair| pair[0] < pair[1])
}

/// What samples look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// They hardly vary.
    Constant,
    /// A random walk is not rejected.
    UnitRoot,
    /// Stationary, and dependent.
    Dependent,
    /// Stationary and independent.
    Independent,
}

/// The tests and what they said last.
#[derive(Clone, Default)]
pub(super) struct Tests {
    pub(super) last: Option<Finding>,
    pub(super) stationarity: Option<DfGls>,
    pub(super) independence: Option<Runs>,
}

impl Tests {
    /// Makes them.
    pub(super) fn test(&mut self, samples: &[Span], config: &ProbeConfig) -> Finding {
        let found = self.find(samples, config);
        self.last = Some(found);
        found
    }

    fn find(&mut self, samples: &[Span], config: &ProbeConfig) -> Finding {
        (self.stationarity, self.independence) = (None, None);
        let series = Series::from_spans(samples);
        let resolution = config.resolution.as_secs_f64();
        if series.variance() < resolution * resolution {
            return Finding::Constant;
        }
        self.independence = runs_test(&series, Cut::Median).ok();
        if self.independence.is_none_or(|runs| runs.upper.min(runs.lower) < config.smallest_class()) {
            return Finding::Constant;
        }
        let without_lags = DfGlsConfig { lags: LagChoice::Fixed(0), ..config.stationarity };
        let stationarity = match dfgls(&series, &config.stationarity) {
            Err(Degenerate::Singular(_)) => dfgls(&series, &without_lags),
            other => other,
        };
        self.stationarity = stationarity.ok();
        if self.stationarity.is_some_and(|test| !test.is_stationary(config.stationarity_level)) {
            return Finding::UnitRoot;
        }
        if self.independence.is_some_and(|runs| !runs.is_independent(config.independence_level, config.sides)) {
            return Finding::Dependent;
        }
        Finding::Independent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(micros: impl IntoIterator<Item = u64>) -> Vec<Span> {
        micros.into_iter().map(Span::from_micros).collect()
    }

    #[test]
    fn medians_of_blocks_grow_if_each_is_above_the_one_before_and_not_if_two_are_equal() {
        let growing = spans((0..30).map(|n| 100 + n / 10));
        assert!(grow(&growing, 3));
        let level = spans((0..30).map(|n| 100 + n / 20));
        assert!(!grow(&level, 3), "100, 100, 101");
        assert!(!grow(&growing, 1) && !grow(&growing[..2], 3), "nothing to compare");
    }

    #[test]
    fn samples_vary_as_soon_as_the_smaller_class_has_as_many_as_the_config_wants() {
        let config = ProbeConfig { samples: 750, ..ProbeConfig::default() };
        let least = config.smallest_class();
        assert!(least > 2);
        // So many of the samples are a millisecond longer, evenly between the others.
        let finding = |longer: usize| {
            let every = 750 / longer;
            let long = |n: usize| n.is_multiple_of(every) && n / every < longer;
            let samples = spans((0..750).map(|n| if long(n) { 2000 } else { 1000 }));
            let mut tests = Tests::default();
            let found = tests.test(&samples, &config);
            let runs = tests.independence.unwrap();
            assert_eq!(runs.upper.min(runs.lower), longer);
            found
        };
        assert_eq!(finding(least - 1), Finding::Constant);
        assert_ne!(finding(least), Finding::Constant);
    }
}
