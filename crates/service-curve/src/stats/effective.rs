//! What a quantile of dependent samples is worth.

use flowstart_units::Span;

use super::upper_quantile;
use crate::Probability;

/// Numbers of batches that are tried, and how much larger than estimated the variance of so many
/// may be (the upper end of its one-sided 90 % interval, degrees of freedom over the lower tenth of
/// chi-square). The one with which the samples are worth least counts: few long batches see long
/// memory, many short ones know their variance better.
const BATCHES: [(usize, f64); 3] = [(16, 1.755), (32, 1.446), (64, 1.283)];

/// How many independent samples the (1 - `epsilon`)-quantile of a dependent series is worth: batch
/// means of the exceedances. The number of samples above the quantile varies from batch to batch by
/// so many times more than a binomial number would; that is how many samples make one (Heidelberger
/// and Lewis, "Quantile estimation in dependent sequences", Operations Research 32(1), 1984, take
/// the variance of the same indicator). At most the number of samples; 0 of none.
#[must_use]
pub fn effective_samples(series: &[Span], epsilon: Probability) -> f64 {
    let n = series.len() as f64;
    let Some(quantile) = upper_quantile(&mut series.to_vec(), epsilon) else { return 0.0 };
    let above = |samples: &[Span]| samples.iter().filter(|x| **x > quantile).count() as f64;
    let share = above(series) / n;
    if share == 0.0 {
        return n;
    }
    let inflation = |(batches, uncertain): (usize, f64)| {
        let length = series.len() / batches;
        if length == 0 {
            return 1.0;
        }
        let counts: Vec<f64> = series.chunks_exact(length).take(batches).map(above).collect();
        let mean = counts.iter().sum::<f64>() / batches as f64;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / (batches - 1) as f64;
        uncertain * variance / (length as f64 * share * (1.0 - share))
    };
    n / BATCHES.into_iter().map(inflation).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SplitMix64;

    /// Every value `times` times: so many samples are one.
    fn repeated(seed: u64, count: usize, times: usize) -> Vec<Span> {
        let mut random = SplitMix64::new(seed);
        (0..count).flat_map(|_| std::iter::repeat_n(Span::from_secs_f64(random.unit()), times)).collect()
    }

    /// Of 1600 samples 16 lie beyond the quantile, all in the first of 16 batches of 100. Their
    /// mean is 1 per batch, their variance (15 * 15 + 15 * 1) / 15 = 16, that of independent ones
    /// 0.99.
    #[test]
    fn a_single_event_is_worth_what_the_variance_of_its_batches_says() {
        let series: Vec<Span> = (0..1600).map(|n| Span::from_millis(if n < 16 { 9 } else { 1 })).collect();
        let worth = effective_samples(&series, Probability::ONE_PERCENT);
        assert!((worth - 1600.0 / (1.755 * 16.0 / 0.99)).abs() < 1e-9, "{worth}");
    }

    #[test]
    fn independent_samples_are_worth_their_number_and_repeated_ones_are_not() {
        let mean = |times: usize| {
            let of = |seed| effective_samples(&repeated(seed, 8_192 / times, times), Probability::ONE_PERCENT);
            (0..50).map(of).sum::<f64>() / 50.0
        };
        // The least of three cautious estimates is about half.
        for times in [1, 4, 16] {
            let independent = (8_192 / times) as f64;
            let found = mean(times) / independent;
            assert!((0.35..=0.8).contains(&found), "{times}: {found}");
        }
    }

    #[test]
    fn what_nothing_exceeds_is_worth_its_number() {
        assert_eq!(effective_samples(&[Span::from_secs(1); 100], Probability::ONE_PERCENT), 100.0);
        assert_eq!(effective_samples(&[], Probability::ONE_PERCENT), 0.0);
    }
}
