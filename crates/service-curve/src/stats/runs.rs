//! Are values in time order independent? The runs test of Wald and Wolfowitz ("On a test whether
//! two samples are from the same population", 1940): values above and below a cut must change
//! places as often as coin tosses do.

use super::{Degenerate, Series, normal};
use crate::Probability;

/// Where the series is cut in two classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// At the median, as the paper does. If half of the values or more are equal to the smallest,
    /// as delays of a path without queue are, "at the median or above" would be all of them; then
    /// the upper class is "above the median".
    #[default]
    Median,
    /// At the mean.
    Mean,
}

/// Which deviations count against independence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// Too few runs and too many.
    #[default]
    Two,
    /// Too few runs only, which is how queueing delays depend on one another.
    TooFew,
}

/// What [`runs_test`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// Maximal blocks of equal class.
    pub runs: usize,
    /// Values in the upper class.
    pub upper: usize,
    /// Values in the lower class.
    pub lower: usize,
    /// Expected number of runs of independent values.
    pub mean: f64,
    /// Variance of the number of runs of independent values.
    pub variance: f64,
    /// (runs - mean) / standard deviation. No continuity correction.
    pub z: f64,
    /// Probability of a larger |z| of independent values; if a class is small, of as few runs or of
    /// as many, whichever is less, twice.
    pub p_value: f64,
    /// Probability of so few runs, or fewer, of independent values: that of the normal
    /// distribution, or the exact one if a class is small.
    pub p_too_few: f64,
}

/// With fewer values than this in a class the number of runs is far from normal, and its exact
/// distribution is taken (Swed and Eisenhart, "Tables for testing randomness of grouping in a
/// sequence of alternatives", 1943, tabulate it up to twenty; at 10 the error is a few per cent of
/// probability, and the tests of ten and more remain those of statistical packages).
const SMALL_CLASS: usize = 10;

impl Runs {
    /// Independence is not rejected at `level`.
    #[must_use]
    pub fn is_independent(&self, level: Probability, sides: Sides) -> bool {
        let p = match sides {
            Sides::Two => self.p_value,
            Sides::TooFew => self.p_too_few,
        };
        p > level.get()
    }
}

/// Counts runs of `series` about `cut`.
///
/// # Errors
/// [`Degenerate::TooFew`] below 3 values, [`Degenerate::Constant`] if all values are in one class.
pub fn runs_test(series: &Series, cut: Cut) -> Result<Runs, Degenerate> {
    /// With one value in each class the variance is zero.
    const NEED: usize = 3;
    let values = series.values();
    if values.len() < NEED {
        return Err(Degenerate::TooFew(values.len(), NEED));
    }
    let threshold = match cut {
        Cut::Median => series.median(),
        Cut::Mean => series.mean(),
    };
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let strict = cut == Cut::Median && threshold <= smallest;
    let is_upper = |x: f64| if strict { x > threshold } else { x >= threshold };
    let upper = values.iter().filter(|x| is_upper(**x)).count();
    let lower = values.len() - upper;
    if upper == 0 || lower == 0 {
        return Err(Degenerate::Constant);
    }
    let runs = 1 + values.windows(2).filter(|pair| is_upper(pair[0]) != is_upper(pair[1])).count();
    let (n, product) = (values.len() as f64, 2.0 * upper as f64 * lower as f64);
    let mean = product / n + 1.0;
    let variance = product * (product - n) / (n * n * (n - 1.0));
    let z = (runs as f64 - mean) / variance.sqrt();
    let (p_value, p_too_few) = if upper.min(lower) < SMALL_CLASS {
        let exact = |runs| exact_cumulative(runs, upper.min(lower), upper.max(lower));
        let (few, many) = (exact(runs), 1.0 - exact(runs - 1));
        ((2.0 * few.min(many)).min(1.0), few)
    } else {
        (normal::two_sided(z), normal::cumulative(z))
    };
    Ok(Runs { runs, upper, lower, mean, variance, z, p_value, p_too_few })
}

/// The probability that `few` values of one class and `many` of the other, in random order, make no
/// more than `runs` runs.
///
/// k blocks of the few can be cut in C(few - 1, k - 1) ways and put into k of the many + 1 gaps
/// that the many leave, of the C(few + many, few) orders in all; gaps at neither end make 2k + 1
/// runs, at one end 2k, at both 2k - 1.
fn exact_cumulative(runs: usize, few: usize, many: usize) -> f64 {
    let orders = choose(few + many, few);
    let blocks = (1..=few).map(|k| {
        let inner = |used: usize| if k >= used { choose(many - 1, k - used) } else { 0.0 };
        let ways = [(2 * k + 1, inner(0)), (2 * k, 2.0 * inner(1)), (2 * k - 1, inner(2))];
        choose(few - 1, k - 1) * ways.iter().filter(|(made, _)| *made <= runs).map(|(_, ways)| ways).sum::<f64>()
    });
    (blocks.sum::<f64>() / orders).min(1.0)
}

/// Binomial coefficient as a number; exact as long as it is below 2^53.
fn choose(n: usize, k: usize) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(values: Vec<f64>) -> Result<Runs, Degenerate> {
        runs_test(&Series::new(values).unwrap(), Cut::Median)
    }

    #[test]
    fn of_750_values_350_to_402_runs_are_accepted() {
        let with_runs = |runs: usize| {
            // Alternate as often as wanted, then one block of each class.
            let (mut values, mut left) = (Vec::new(), [375, 375]);
            for run in 0..runs - 2 {
                values.push((run % 2) as f64);
                left[run % 2] -= 1;
            }
            let next = runs % 2;
            values.extend(std::iter::repeat_n(next as f64, left[next]));
            values.extend(std::iter::repeat_n(1.0 - next as f64, left[1 - next]));
            // The median of zeros and ones in equal number is 0.5.
            test(values).unwrap()
        };
        let independent = |runs| {
            let found = with_runs(runs);
            assert_eq!(found.runs, runs);
            found.is_independent(Probability::FIVE_PERCENT, Sides::Two)
        };
        assert!((with_runs(376).variance.sqrt() - 13.684).abs() < 1e-3);
        assert!(!independent(349) && independent(350) && independent(402) && !independent(403));
        assert!(with_runs(403).is_independent(Probability::FIVE_PERCENT, Sides::TooFew));
    }

    #[test]
    fn an_atom_at_the_smallest_delay_is_a_class_of_its_own() {
        let found = test(vec![5.0, 5.0, 9.0, 5.0, 5.0, 5.0, 7.0, 7.0, 5.0]).unwrap();
        assert_eq!((found.upper, found.lower, found.runs), (3, 6, 5));
    }

    #[test]
    fn of_a_small_class_the_distribution_of_runs_is_exact() {
        // All orders of 3 and 5 values, counted.
        let (few, many) = (3_u32, 5_u32);
        let orders: Vec<u32> = (0..1_u32 << (few + many)).filter(|order| order.count_ones() == few).collect();
        let changes = |order: u32| ((order ^ (order >> 1)) & ((1 << (few + many - 1)) - 1)).count_ones() as usize;
        for most in 1..=8_usize {
            let within = orders.iter().filter(|order| changes(**order) < most).count();
            let exact = exact_cumulative(most, few as usize, many as usize);
            assert!((exact - within as f64 / orders.len() as f64).abs() < 1e-12, "{most}: {exact}");
        }
        // Five of 150 in one block are dependent; all apart they are not, whichever side is asked.
        let with = |places: [usize; 5]| {
            let value = |n: usize| if places.contains(&n) { 9.0 } else { 5.0 };
            test((0..150).map(value).collect()).unwrap()
        };
        let (together, apart) = (with([70, 71, 72, 73, 74]), with([10, 40, 70, 100, 130]));
        for sides in [Sides::Two, Sides::TooFew] {
            assert!(!together.is_independent(Probability::FIVE_PERCENT, sides));
            assert!(apart.is_independent(Probability::FIVE_PERCENT, sides));
        }
        // One pair among five happens to one series of eight, which the normal distribution would
        // call dependent.
        let pair = with([10, 11, 70, 100, 130]);
        assert!(normal::cumulative(pair.z) < 0.05 && pair.p_too_few > 0.1, "{pair:?}");
    }

    #[test]
    fn constant_and_short_series_are_not_judged() {
        assert_eq!(test(vec![5.0; 100]), Err(Degenerate::Constant));
        assert_eq!(test(vec![1.0, 2.0]), Err(Degenerate::TooFew(2, 3)));
    }
}
