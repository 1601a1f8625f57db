//! Do delays grow? A test against a random walk without drift.

use flowstart_units::Span;

use super::upper_quantile;
use crate::Probability;

/// How much the medians of successive blocks of a series rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// From the first block's median to the last one's, seconds; negative if they fall.
    pub seconds: f64,
    /// Student's t of the rises from block to block.
    pub t: f64,
    /// The probability of such a t, or a larger one, of a random walk without drift. It is smaller
    /// still of a stationary series, whose rises cancel.
    pub p_value: f64,
}

/// Cuts `series` into `blocks` equal blocks and tests the rises of their medians: those of a random
/// walk without drift are independent with mean zero once a block is long, so that their mean over
/// its standard error has Student's distribution. `None` for fewer than three blocks or fewer
/// values than blocks.
#[must_use]
pub fn growth(series: &[Span], blocks: usize) -> Option<Growth> {
    /// Two rises have a standard deviation.
    const FEWEST: usize = 3;
    let length = series.len().checked_div(blocks).filter(|length| *length > 0 && blocks >= FEWEST)?;
    let median = |block: &[Span]| upper_quantile(&mut block.to_vec(), Probability::HALF).map(Span::as_secs_f64);
    // What does not fill a block is left out at the beginning.
    let rest = series.len() - length * blocks;
    let medians: Vec<f64> = series[rest..].chunks_exact(length).filter_map(median).collect();
    let rises: Vec<f64> = medians.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let n = rises.len() as f64;
    let seconds: f64 = rises.iter().sum();
    let mean = seconds / n;
    let variance = rises.iter().map(|rise| (rise - mean) * (rise - mean)).sum::<f64>() / (n - 1.0);
    // Rises that do not vary at all are certain.
    let t = if mean == 0.0 { 0.0 } else { mean / (variance / n).sqrt() };
    Some(Growth { seconds, t, p_value: student_above(t, rises.len() - 1) })
}

/// The probability that Student's t with `freedom` degrees of freedom (at least 1) is above `t`:
/// Abramowitz and Stegun, "Handbook of mathematical functions", 26.7.3 and 26.7.4.
fn student_above(t: f64, freedom: usize) -> f64 {
    let theta = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = (libm::sin(theta), libm::cos(theta));
    let odd = freedom % 2 == 1;
    // The terms of the sum: each is the one before times cos² and the next fraction.
    let (mut term, mut sum) = if odd { (cosine, if freedom > 1 { cosine } else { 0.0 }) } else { (1.0, 1.0) };
    let first = if odd { 2 } else { 1 };
    for above in (first..freedom.saturating_sub(2)).step_by(2) {
        term *= cosine * cosine * above as f64 / (above + 1) as f64;
        sum += term;
    }
    let within = if odd { (theta + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum };
    ((1.0 - within) / 2.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SplitMix64;

    #[test]
    fn students_distribution_is_that_of_the_tables() {
        // One-sided, from tables of Student's t.
        for (freedom, t, p) in [
            (1, 1.0, 0.25),
            (1, 6.314, 0.05),
            (2, 2.920, 0.05),
            (3, 2.353, 0.05),
            (4, 7.173, 0.001),
            (5, 5.893, 0.001),
            (7, 4.785, 0.001),
            (8, 4.501, 0.001),
            (8, 1.860, 0.05),
            (30, 3.385, 0.001),
        ] {
            let found = student_above(t, freedom);
            assert!((found / p - 1.0).abs() < 2e-3, "{freedom} {t}: {found}");
            assert!((student_above(-t, freedom) - (1.0 - p)).abs() < 1e-4, "{freedom}");
        }
        assert_eq!(student_above(f64::INFINITY, 8), 0.0);
    }

    #[test]
    fn a_random_walk_without_drift_grows_as_often_as_the_level_says_and_a_line_always() {
        let walk = |seed: u64, drift: f64| {
            let mut random = SplitMix64::new(seed);
            let mut level = 1e4;
            let steps = (0..1_000).map(|_| {
                level += random.normal() + drift;
                Span::from_secs_f64(level)
            });
            growth(&steps.collect::<Vec<_>>(), 10).unwrap().p_value
        };
        let found = (0..2_000).filter(|seed| walk(*seed, 0.0) <= 0.01).count();
        // Binomial (2000, 0.01): mean 20; blocks are averages of a walk, whose rises remember each
        // other a little.
        assert!((5..=60).contains(&found), "{found}");
        assert!((0..50).all(|seed| walk(seed, 1.0) < 0.001));
        assert!((0..50).all(|seed| walk(seed, -1.0) > 0.5));
    }

    #[test]
    fn what_cannot_be_told_is_none() {
        let line: Vec<Span> = (1..=30).map(Span::from_secs).collect();
        assert_eq!(growth(&line, 10).map(|found| (found.seconds, found.p_value)), Some((27.0, 0.0)));
        assert_eq!(growth(&[Span::from_secs(1); 30], 10).map(|found| found.p_value), Some(0.5));
        assert_eq!((growth(&line, 2), growth(&line[..5], 10), growth(&[], 10)), (None, None, None));
    }
}
