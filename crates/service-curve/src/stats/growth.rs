//! Do delays grow? A test against a random walk without drift.

use flowstart_units::Span;

use super::student::student_above;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SplitMix64;

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
