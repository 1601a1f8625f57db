//! Quantiles as the paper takes them: a value that was measured, never an interpolation.

use flowstart_units::Span;

use crate::Probability;

/// Products such as 0.99 · 100 fall short of whole numbers by rounding; so much is forgiven.
const ROUNDING: f64 = 1e-9;

/// How many of `n` samples may lie beyond the quantile: floor(epsilon n).
fn allowed(n: usize, epsilon: Probability) -> usize {
    ((epsilon.get() * n as f64 + ROUNDING) as usize).min(n)
}

/// True if `n` samples can show the (1 - `epsilon`)-quantile: at least one of them lies beyond it,
/// and not all do.
pub(crate) fn can_show(n: usize, epsilon: Probability) -> bool {
    (1..n).contains(&allowed(n, epsilon))
}

/// The fewest samples of which one may lie beyond the (1 - `epsilon`)-quantile, 1 / epsilon; `None`
/// if that is no number.
pub(crate) fn fewest_samples(epsilon: Probability) -> Option<usize> {
    let fewest = libm::ceil((1.0 - ROUNDING) / epsilon.get());
    (fewest < usize::MAX as f64).then_some(fewest as usize)
}

/// The rank, 1 ..= n from the smallest, of the (1 - `epsilon`)-quantile of `n` samples: ceil((1 -
/// epsilon) n). `epsilon` 0 is the largest sample. `None` of no samples.
#[must_use]
pub fn upper_rank(n: usize, epsilon: Probability) -> Option<usize> {
    (n > 0).then(|| (n - allowed(n, epsilon)).max(1))
}

/// The rank of the `epsilon`-quantile from below, the mirror image of [`upper_rank`]: floor(epsilon
/// n) + 1, so that at most a fraction `epsilon` of the samples is smaller.
#[must_use]
pub fn lower_rank(n: usize, epsilon: Probability) -> Option<usize> {
    upper_rank(n, epsilon).map(|rank| n + 1 - rank)
}

/// The (1 - `epsilon`)-quantile of `samples` in any order; reorders them. `None` of no samples.
pub fn upper_quantile(samples: &mut [Span], epsilon: Probability) -> Option<Span> {
    let rank = upper_rank(samples.len(), epsilon)?;
    Some(*samples.select_nth_unstable(rank - 1).1)
}

/// Ranks of samples between which the true quantile lies; independent samples are assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileInterval {
    /// Rank (from 1) of the lower end; `None`: no sample is surely below the quantile.
    pub lower: Option<usize>,
    /// Rank of the upper end; `None`: even the largest sample may be below the quantile.
    pub upper: Option<usize>,
}

/// The interval that misses the true (1 - `epsilon`)-quantile of independent samples with
/// probability `miss` at most, half on either side.
///
/// The number of samples at or below the quantile is binomial (n, 1 - epsilon), whatever the
/// distribution: the lower rank l is the largest with `P[X < l] <= miss/2`, the upper rank u the
/// smallest with `P[X >= u] <= miss/2`.
#[must_use]
pub fn quantile_interval(n: usize, epsilon: Probability, miss: Probability) -> QuantileInterval {
    let half = miss.get() / 2.0;
    // Counted in samples above the quantile, of which there are few: Y = n - X is binomial (n,
    // epsilon).
    let probabilities = Binomial::new(n, epsilon.get());
    // P[X >= u] = P[Y <= n - u]; P[X < l] = P[Y > n - l].
    let (mut below, mut upper) = (0.0, None);
    let mut lower = None;
    for (above, p) in probabilities.enumerate() {
        below += p;
        let rank = n - above;
        if below <= half && rank >= 1 {
            upper = Some(rank);
        }
        if 1.0 - below <= half {
            lower = (rank >= 1).then_some(rank);
            break;
        }
    }
    QuantileInterval { lower, upper }
}

/// How many of the next `n` samples lie beyond the (1 - `epsilon`)-quantile of `of` samples, if all
/// are independent and of one kind.
///
/// Whatever their distribution: what lies beyond the r-th smallest of m samples has a probability
/// that is itself Beta(m - r + 1, r), and so the number is beta-binomial (the precedence test; N.
/// Balakrishnan and H. K. T. Ng, *Precedence-Type Tests and Applications*, 2006).
pub(crate) struct NextSamples {
    n: f64,
    beyond: f64,
    below: f64,
}

impl NextSamples {
    pub(crate) fn new(of: usize, epsilon: Probability, n: usize) -> Self {
        let rank = upper_rank(of, epsilon).unwrap_or(0);
        Self { n: n as f64, beyond: (of - rank + 1) as f64, below: rank as f64 }
    }

    /// The probability of so many or more.
    pub(crate) fn at_least(&self, count: usize) -> f64 {
        let Self { n, beyond, below } = *self;
        if below == 0.0 {
            return 1.0; // A quantile of nothing.
        }
        let mut log_p = libm::lgamma(n + below) + libm::lgamma(beyond + below)
            - libm::lgamma(below)
            - libm::lgamma(n + beyond + below);
        let mut fewer = 0.0;
        for k in (0..count).map(|k| k as f64).take_while(|k| *k <= n) {
            fewer += libm::exp(log_p);
            let next = (n - k) * (k + beyond) / ((k + 1.0) * (n - k - 1.0 + below));
            log_p += libm::log(next.max(f64::MIN_POSITIVE));
        }
        (1.0 - fewer).clamp(0.0, 1.0)
    }
}

/// Probabilities of 0, 1, 2 … successes.
struct Binomial {
    n: f64,
    log_odds: f64,
    log_p: f64,
    k: f64,
}

impl Binomial {
    fn new(n: usize, p: f64) -> Self {
        // Far away from 0 and 1 only in the last bit, so that logarithms exist.
        let p = p.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        let n = n as f64;
        Self { n, log_odds: libm::log(p) - libm::log1p(-p), log_p: n * libm::log1p(-p), k: 0.0 }
    }
}

impl Iterator for Binomial {
    type Item = f64;
    fn next(&mut self) -> Option<f64> {
        if self.k > self.n {
            return None;
        }
        let probability = libm::exp(self.log_p);
        self.log_p += libm::log((self.n - self.k).max(f64::MIN_POSITIVE) / (self.k + 1.0)) + self.log_odds;
        self.k += 1.0;
        Some(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(value: f64) -> Probability {
        Probability::new(value).unwrap()
    }

    #[test]
    fn the_quantile_is_the_order_statistic_of_the_paper() {
        assert_eq!(upper_rank(750, p(0.01)), Some(743));
        assert_eq!(upper_rank(100, p(0.01)), Some(99));
        assert_eq!(upper_rank(10, p(0.1)), Some(9));
        assert_eq!(upper_rank(750, p(0.0)), Some(750));
        assert_eq!(upper_rank(750, p(1.0)), Some(1));
        assert_eq!(upper_rank(0, p(0.5)), None);
        assert_eq!(lower_rank(100, p(0.01)), Some(2));
        assert_eq!(lower_rank(100, p(0.0)), Some(1));
        assert_eq!(upper_quantile(&mut [], p(0.1)), None);
    }

    #[test]
    fn the_fewest_samples_for_an_epsilon_can_show_it_and_one_less_cannot() {
        for (epsilon, samples) in [(0.5, 2), (0.1, 10), (0.05, 20), (0.01, 100), (0.003, 334), (0.001, 1000)] {
            assert_eq!(fewest_samples(p(epsilon)), Some(samples));
            assert!(can_show(samples, p(epsilon)) && !can_show(samples - 1, p(epsilon)), "{epsilon}");
        }
        assert!(!can_show(20, p(0.0)) && !can_show(20, p(1.0)) && !can_show(usize::MAX, p(1e-300)));
    }

    #[test]
    fn intervals_of_750_samples_are_those_of_the_binomial_distribution() {
        let interval = |epsilon| quantile_interval(750, p(epsilon), Probability::FIVE_PERCENT);
        assert_eq!(interval(0.01), QuantileInterval { lower: Some(737), upper: Some(748) });
        assert_eq!(interval(0.05), QuantileInterval { lower: Some(700), upper: Some(725) });
        assert_eq!(interval(0.001).upper, None);
    }

    #[test]
    fn the_largest_of_2995_samples_covers_the_thousandth_from_above() {
        // One-sided 95 %: 0.999^2995 <= 0.05.
        let one_sided = p(0.1);
        assert_eq!(quantile_interval(2994, p(0.001), one_sided).upper, None);
        assert_eq!(quantile_interval(2995, p(0.001), one_sided).upper, Some(2995));
    }

    #[test]
    fn the_next_samples_beyond_a_quantile_are_as_many_as_orders_of_all_have() {
        // Of m + n samples in random order each has the same chance to be the largest: beyond the
        // largest of m lies one of the next n with n / (m + n).
        let beyond_the_largest = |m, n, count| NextSamples::new(m, p(0.0), n).at_least(count);
        assert!((beyond_the_largest(9, 1, 1) - 0.1).abs() < 1e-12);
        assert!((beyond_the_largest(50, 150, 1) - 0.75).abs() < 1e-9);
        // All five of five beyond the largest of five: 5! 5! / 10!.
        assert!((beyond_the_largest(5, 5, 5) - 1.0 / 252.0).abs() < 1e-12);
        // Both beyond the second smallest of three: of the ten orders of AAABB the three that begin
        // with AA.
        assert!((NextSamples::new(3, p(0.4), 2).at_least(2) - 0.3).abs() < 1e-12);
        assert_eq!(beyond_the_largest(5, 5, 0), 1.0);
        assert!(beyond_the_largest(5, 5, 6) < 1e-12);
        assert_eq!(NextSamples::new(0, p(0.1), 5).at_least(3), 1.0);
    }

    proptest! {
        #[test]
        fn at_most_a_fraction_epsilon_lies_beyond_a_quantile(
            mut samples in proptest::collection::vec(0_u64..50, 1..200),
            epsilon in 0.0..=1.0_f64,
        ) {
            let mut spans: Vec<Span> = samples.iter().map(|n| Span::from_nanos(*n)).collect();
            let found = upper_quantile(&mut spans, p(epsilon)).unwrap().as_nanos();
            let beyond = samples.iter().filter(|x| **x > found).count() as f64;
            prop_assert!(beyond <= epsilon * samples.len() as f64 + 1e-6);
            samples.sort_unstable();
            let low = samples[lower_rank(samples.len(), p(epsilon)).unwrap() - 1];
            let below = samples.iter().filter(|x| **x < low).count() as f64;
            prop_assert!(below <= epsilon * samples.len() as f64 + 1e-6);
        }

        #[test]
        fn intervals_exist_or_not_but_are_ordered(n in 0_usize..5000, epsilon in 0.0..=1.0_f64, miss in 0.0..=1.0_f64) {
            let found = quantile_interval(n, p(epsilon), p(miss));
            if let (Some(lower), Some(upper)) = (found.lower, found.upper) {
                prop_assert!(lower >= 1 && upper <= n);
                // With miss near 1 the halves meet.
                prop_assert!(lower <= upper + 1);
            }
        }
    }
}
