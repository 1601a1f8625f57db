//! How long a series remembers.

use super::Series;

/// Autocorrelation at lags 0 ..= `max_lag` (equation 9 of the paper, there of the congestion
/// window): products of deviations from the mean of the whole series, divided by their sum at
/// lag 0. It is 1 at lag 0; all are zero for a constant or empty series. Lags past the end are
/// zero.
#[must_use]
pub fn autocorrelation(series: &Series, max_lag: usize) -> Vec<f64> {
    let deviations = deviations(series);
    let total = product(&deviations, 0);
    let scaled = |lag: usize| if total > 0.0 { product(&deviations, lag) / total } else { 0.0 };
    (0..=max_lag).map(scaled).collect()
}

fn deviations(series: &Series) -> Vec<f64> {
    let mean = series.mean();
    series.values().iter().map(|x| x - mean).collect()
}

fn product(deviations: &[f64], lag: usize) -> f64 {
    let later = deviations.get(lag..).unwrap_or_default();
    super::cholesky::dot(deviations, later)
}

/// The integrated correlation time of a series, in samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrelationTime {
    /// 1 + 2 · sum of autocorrelations up to the window: how many samples are worth one independent
    /// one; 1 for independent values, 0 for a constant series.
    pub samples: f64,
    /// The lag at which the sum ended.
    pub window: usize,
    /// False if the series ended before the window closed: then the time is too small.
    pub closed: bool,
}

/// The integrated correlation time with Sokal's automatic window ("Monte Carlo methods in
/// statistical mechanics", 1989): the sum ends at the first lag that is not below `window_factor`
/// times the sum so far; 5 is usual.
#[must_use]
pub fn correlation_time(series: &Series, window_factor: f64) -> CorrelationTime {
    let deviations = deviations(series);
    let total = product(&deviations, 0);
    if total <= 0.0 {
        return CorrelationTime { samples: 0.0, window: 0, closed: true };
    }
    let (mut sum, mut lag) = (1.0, 1);
    while lag < deviations.len() {
        if lag as f64 >= window_factor * sum {
            return CorrelationTime { samples: sum, window: lag, closed: true };
        }
        sum += 2.0 * product(&deviations, lag) / total;
        lag += 1;
    }
    CorrelationTime { samples: sum, window: lag, closed: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SplitMix64;

    #[test]
    fn the_correlation_time_of_an_autoregression_is_the_closed_form() {
        // AR(1) with coefficient a: (1 + a) / (1 - a) = 9 for 0.8.
        let mut random = SplitMix64::new(11);
        let mut x = 0.0;
        let values = (0..200_000)
            .map(|_| {
                x = 0.8 * x + random.normal();
                x
            })
            .collect();
        let found = correlation_time(&Series::new(values).unwrap(), 5.0);
        assert!(found.closed);
        // Sokal: relative error sqrt(2 (2 window + 1) / n) = 3 %.
        assert!((found.samples / 9.0 - 1.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn a_constant_series_has_no_correlation() {
        let flat = Series::new(vec![2.0; 10]).unwrap();
        assert_eq!(autocorrelation(&flat, 3), vec![0.0; 4]);
        assert_eq!(correlation_time(&flat, 5.0).samples, 0.0);
        assert_eq!(autocorrelation(&Series::default(), 1), vec![0.0; 2]);
        assert_eq!(autocorrelation(&Series::new(vec![0.0, 1.0]).unwrap(), 5)[2..], [0.0; 4]);
    }
}
