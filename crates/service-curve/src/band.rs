//! How certain an estimate is: bootstrap bands.

use flowstart_units::Span;

use crate::stats::{Series, SplitMix64, correlation_time, lower_rank, upper_quantile, upper_rank};
use crate::{Error, Estimate, Line, Probability, ServiceCurve};

/// How a band is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandConfig {
    /// Replicates; default 200 (95 % intervals need a hundred at least: Efron and Tibshirani, "An
    /// introduction to the bootstrap", 1993).
    pub replicates: usize,
    /// What the band leaves out, half on either side; default 5 %.
    pub miss: Probability,
    /// Length of a block in integrated correlation times of the samples, at least one sample;
    /// default 5.
    pub block_correlation_times: f64,
    /// Default 1.
    pub seed: u64,
}

impl Default for BandConfig {
    fn default() -> Self {
        Self { replicates: 200, miss: Probability::FIVE_PERCENT, block_correlation_times: 5.0, seed: 1 }
    }
}

/// A confidence band of the attainable rate at one length of interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandPoint {
    /// Length of the interval.
    pub t: Span,
    /// Lower end, bit/s.
    pub low: f64,
    /// The estimate itself, bit/s.
    pub rate: f64,
    /// Upper end, bit/s.
    pub high: f64,
}

/// The window of [`correlation_time`] (Sokal).
const WINDOW_FACTOR: f64 = 5.0;

impl Estimate {
    /// Confidence intervals of the attainable rate at each of `times`, for every time by itself:
    /// each accepted rate's samples are drawn again in blocks (circular block bootstrap: Politis
    /// and Romano, in "Exploring the limits of bootstrap", 1992), their quantile is taken and the
    /// curve made anew. The interval holds both the percentiles of the replicates and their mirror
    /// image about the estimate (Davison and Hinkley, "Bootstrap methods and their application",
    /// 1997, section 5.2: percentile and basic intervals). For the curve is a maximum over rates,
    /// so a replicate is too high about as often as the estimate itself, and percentiles alone lie
    /// above the truth in up to a third of all cases where several rates are nearly as good.
    ///
    /// What is not in the band: whether the right rates were accepted, and quantiles that so few
    /// samples cannot see (of 750 samples the thousandth is the largest, and no replicate has a
    /// larger one).
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] without replicates or with a block length that is not a number.
    pub fn band(&self, times: &[Span], config: &BandConfig) -> Result<Vec<BandPoint>, Error> {
        let (Some(low), Some(high)) = (
            lower_rank(config.replicates, config.miss.divided_by(2)),
            upper_rank(config.replicates, config.miss.divided_by(2)),
        ) else {
            return Err(Error::InvalidConfig("replicates", "at least 1"));
        };
        if !(config.block_correlation_times >= 0.0 && config.block_correlation_times.is_finite()) {
            return Err(Error::InvalidConfig("block_correlation_times", "a number of at least 0"));
        }
        let accepted = self.accepted();
        let blocks: Vec<usize> =
            accepted.iter().map(|probe| block(&probe.samples, config.block_correlation_times)).collect();
        let mut rates = vec![Vec::with_capacity(config.replicates); times.len()];
        for replicate in 0..config.replicates {
            let mut random = SplitMix64::for_part(config.seed, replicate as u64);
            let line = |(probe, block): (&&crate::RateProbe, &usize)| {
                let mut again = resample(&probe.samples, *block, &mut random);
                Some(Line { rate: probe.rate, delay: upper_quantile(&mut again, self.epsilon)? })
            };
            let lines: Vec<Line> = accepted.iter().zip(&blocks).filter_map(line).collect();
            let curve = ServiceCurve::new(&lines, self.epsilon);
            for (at, t) in rates.iter_mut().zip(times) {
                at.push(curve.attainable_rate(*t));
            }
        }
        let most = self.curve.long_term_rate().as_bps() as f64;
        let point = |(t, mut at): (&Span, Vec<f64>)| {
            at.sort_by(f64::total_cmp);
            let (rate, low, high) = (self.curve.attainable_rate(*t), at[low - 1], at[high - 1]);
            let mirrored = |end: f64| (2.0 * rate - end).clamp(0.0, most);
            BandPoint { t: *t, low: low.min(mirrored(high)), rate, high: high.max(mirrored(low)) }
        };
        Ok(times.iter().zip(rates).map(point).collect())
    }
}

/// Length of the blocks of a series.
fn block(samples: &[Span], factor: f64) -> usize {
    let time = correlation_time(&Series::from_spans(samples), WINDOW_FACTOR).samples;
    (libm::ceil(factor * time) as usize).clamp(1, samples.len().max(1))
}

/// As many samples again, in blocks of neighbours from random places; the end is followed by the
/// beginning.
fn resample(samples: &[Span], block: usize, random: &mut SplitMix64) -> Vec<Span> {
    let mut again = Vec::with_capacity(samples.len());
    while again.len() < samples.len() {
        let from = random.below(samples.len());
        let length = block.min(samples.len() - again.len());
        again.extend((from..from + length).map(|at| samples[at % samples.len()]));
    }
    again
}
