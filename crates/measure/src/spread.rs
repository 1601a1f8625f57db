//! Spread over independent runs: M12.

use flowstart_random::{below, stream};

/// A mean with its 95 % confidence interval over independent runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % interval by Student's t distribution; `None` with a single run.
    pub half_width: Option<f64>,
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of values.
    pub runs: usize,
}

impl Estimate {
    /// From one value per run; `None` without values or if one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let runs = values.len();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (sorted[0], sorted[runs - 1]);
        // Equal values have this mean exactly, whatever rounding does to their sum.
        let mean = if min == max { min } else { sorted.iter().sum::<f64>() / runs as f64 };
        let half_width = (runs > 1).then(|| {
            let variance = sorted.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (runs - 1) as f64;
            student_t_975(runs - 1) * (variance / runs as f64).sqrt()
        });
        Some(Self { mean, half_width, median: median(&sorted), min, max, runs })
    }

    /// Of the differences between two lists of values, run by run (the same run has the same random
    /// numbers): the right way to compare two contestants. `None` if the lists differ in length.
    #[must_use]
    pub fn of_paired(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len() != b.len() {
            return None;
        }
        Self::of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// True if the interval of differences does not contain zero.
    #[must_use]
    pub fn differs_from_zero(&self) -> bool {
        self.half_width.is_some_and(|half| self.mean.abs() > half)
    }
}

/// The median of sorted values; the mean of the middle two if their number is even.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// Resamples of [`bootstrap_median`].
const RESAMPLES: usize = 2000;
/// Seed of the resampling, which must not depend on anything so that reports do not change from one
/// reading to the next.
const BOOTSTRAP_SEED: u64 = 0x6d31_3262_6f6f_7473;

/// M12: the median and its 95 % interval by the percentile bootstrap (Efron 1979; 2000 resamples,
/// always the same ones). Wants 30 runs or more. `None` without values or if one is not finite.
#[must_use]
pub fn bootstrap_median(values: &[f64]) -> Option<(f64, f64, f64)> {
    let estimate = Estimate::of(values)?;
    let mut random = stream(BOOTSTRAP_SEED);
    let mut resample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for slot in &mut resample {
                *slot = values[below(&mut random, values.len() as u64) as usize];
            }
            resample.sort_by(f64::total_cmp);
            median(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Some((estimate.median, medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40]))
}

/// 97.5 % quantiles of Student's t distribution with 1 ..= 30 degrees of freedom.
const STUDENT_T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The 97.5 % quantile of Student's t distribution; beyond the table by the first two terms of its
/// expansion around the normal quantile (Abramowitz and Stegun 26.7.5; off by less than 0.001
/// there).
fn student_t_975(degrees: usize) -> f64 {
    if let Some(t) = degrees.checked_sub(1).and_then(|index| STUDENT_T_975.get(index)) {
        return *t;
    }
    let (z, n) = (1.959_964_f64, degrees as f64);
    let square = z * z;
    let (third, fifth) = (square * z, square * square * z);
    z + (third + z) / (4.0 * n) + (5.0 * fifth + 16.0 * third + 3.0 * z) / (96.0 * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_five_values_uses_students_t_with_four_degrees_of_freedom() {
        let e = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((e.mean, e.median, e.min, e.max, e.runs), (3.0, 3.0, 1.0, 5.0, 5));
        // sd = sqrt(2.5); 2.776 * sqrt(2.5 / 5).
        assert!((e.half_width.unwrap() - 1.963).abs() < 1e-3);
    }

    #[test]
    fn one_run_has_no_interval_and_equal_runs_have_an_interval_of_zero() {
        assert_eq!(Estimate::of(&[7.0]).unwrap().half_width, None);
        let e = Estimate::of(&[0.1, 0.1, 0.1]).unwrap();
        assert_eq!((e.mean, e.half_width), (0.1, Some(0.0)));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[f64::NAN]), None);
    }

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (degrees, t) in
            [(1, 12.706), (10, 2.228), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980), (10_000, 1.960)]
        {
            assert!((student_t_975(degrees) - t).abs() < 1e-3, "{degrees}: {}", student_t_975(degrees));
        }
    }

    #[test]
    fn the_bootstrap_interval_of_a_median_contains_it_and_is_the_same_every_time() {
        let values: Vec<f64> = (0..31).map(|i| f64::from((i * 7) % 31)).collect();
        let (median, low, high) = bootstrap_median(&values).unwrap();
        assert_eq!(median, 15.0);
        assert!(low < median && median < high, "{low} {high}");
        // Binomial theory for n = 31: ranks 10 and 22, that is 9 and 21.
        assert!((7.0..=11.0).contains(&low) && (19.0..=23.0).contains(&high), "{low} {high}");
        assert_eq!(bootstrap_median(&values), bootstrap_median(&values));
    }

    #[test]
    fn paired_differences_are_taken_run_by_run() {
        let e = Estimate::of_paired(&[1.0, 12.0, 103.0], &[0.0, 11.0, 102.0]).unwrap();
        assert_eq!((e.mean, e.half_width), (1.0, Some(0.0)));
        assert!(e.differs_from_zero());
        assert!(!Estimate::of_paired(&[1.0, 2.0], &[2.0, 1.0]).unwrap().differs_from_zero());
        assert_eq!(Estimate::of_paired(&[1.0], &[]), None);
    }
}
