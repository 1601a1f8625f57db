//! The probing procedure at one rate.

use flowstart_units::{Bytes, Rate, Span};

use crate::stats::{
    Cut, Degenerate, DelayHistogram, DfGls, DfGlsConfig, Gaps, LagChoice, Level, Runs, Series, Sides, can_show, dfgls,
    quantile_interval, runs_test, upper_quantile,
};
use crate::{Error, Line, Probability};

/// What follows if the test does not reject a unit root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnitRoot {
    /// The series is made longer and thinned further, as for dependent samples; only if it still
    /// looks so in the end the rate is too high. The default: a few seconds of delays whose memory
    /// is seconds look like a random walk whatever the rate.
    #[default]
    Extend,
    /// The rate is too high at once, which is how the paper's procedure reads to the letter.
    Stop,
}

/// The paper's number of samples per rate.
pub const PAPER_SAMPLES: usize = 750;

/// How one rate is probed. Values that the paper does not give are marked as chosen here; all of
/// them belong into a report of results.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeConfig {
    /// Samples N that are kept; default 750 (paper).
    pub samples: usize,
    /// The probability epsilon' with which one rate's quantile may be exceeded; default 1 %
    /// (chosen: the paper's value is illegible in the copies used). It takes 1 / epsilon samples to
    /// show it; fewer are refused.
    pub epsilon: Probability,
    /// True if the flow control is known not to be random, so that the largest delay is never
    /// exceeded and epsilon may be 0; default false.
    pub deterministic: bool,
    /// Size of the probe's packets; default 1500 bytes (paper).
    pub packet: Bytes,
    /// How long a new train runs before the first sample; default 10 s (chosen: the paper waits
    /// "for steady state").
    pub warm_up: Span,
    /// Mean time between sampled packets, in packets geometrically distributed; default 10 ms
    /// (chosen: the paper samples at random).
    pub sampling_gap: Span,
    /// After an extension `thinning * growth` times N samples have been taken and each `thinning *
    /// growth`-th is kept. Default 2, which looks at the tests less often than larger steps and
    /// measures twice as long as needed at most (chosen: the multiple is illegible).
    pub growth: u64,
    /// With this thinning the procedure gives up; default 4096 (chosen).
    pub max_thinning: u64,
    /// The test for stationarity.
    pub stationarity: DfGlsConfig,
    /// Its level; default 5 % (chosen).
    pub stationarity_level: Level,
    /// What follows if it fails; default [`OnUnitRoot::Extend`].
    pub on_unit_root: OnUnitRoot,
    /// If the test for stationarity fails, the train has been measured for `overload_after`, and
    /// the medians of so many successive blocks of the samples all increase, the rate is too high
    /// without further extensions, which would take as long as the measurement may. Default 10: a
    /// random walk without drift does so once in five hundred times (chosen; the statistic itself
    /// does not tell, since a straight line is explained by lagged differences). Fewer than two:
    /// never.
    pub overload_blocks: usize,
    /// See [`Self::overload_blocks`]; default 600 s (chosen: a connection near its share recovers
    /// from losses for minutes, and meanwhile its delays grow, too).
    pub overload_after: Span,
    /// The level of the runs test; default 5 % (chosen).
    pub independence_level: Probability,
    /// Its sides; default two.
    pub sides: Sides,
    /// Delays that vary less than this are all equal; default 1 us.
    pub resolution: Span,
    /// Fewer of [`PAPER_SAMPLES`] samples than this above the median (or below) leave nothing to be
    /// tested, and of fewer samples the same share of them: default 10 of 750, 1.3 %, about as many
    /// as may lie beyond the quantile. (A fixed number would accept 150 samples untested of which 6
    /// % queue.) Of more samples it is this number, since more of them can be tested.
    pub min_class: usize,
    /// Seed of the random choice of sampled packets; default 1.
    pub seed: u64,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            samples: PAPER_SAMPLES,
            epsilon: Probability::ONE_PERCENT,
            deterministic: false,
            packet: Bytes::new(1_500),
            warm_up: Span::from_secs(10),
            sampling_gap: Span::from_millis(10),
            growth: 2,
            max_thinning: 4_096,
            stationarity: DfGlsConfig::default(),
            stationarity_level: Level::Five,
            on_unit_root: OnUnitRoot::Extend,
            overload_blocks: 10,
            overload_after: Span::from_secs(600),
            independence_level: Probability::FIVE_PERCENT,
            sides: Sides::Two,
            resolution: Span::from_micros(1),
            min_class: 10,
            seed: 1,
        }
    }
}

impl ProbeConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] naming the field; [`Error::NotShown`] if epsilon is 0 or 1, or so
    /// small that [`Self::samples`] cannot show it. Thinning takes more, but keeps so many, and the
    /// quantile is one of those that are kept.
    pub fn validate(&self) -> Result<(), Error> {
        let rules = [
            (self.samples >= crate::stats::MIN_SAMPLES, "samples", "at least 10"),
            (self.packet.get() > 0, "packet", "at least one byte"),
            (self.growth >= 2, "growth", "at least 2"),
            (self.max_thinning >= 1, "max_thinning", "at least 1"),
        ];
        if let Some((_, field, must)) = rules.into_iter().find(|(holds, ..)| !holds) {
            return Err(Error::InvalidConfig(field, must));
        }
        let largest = self.deterministic && self.epsilon == Probability::ZERO;
        if largest || can_show(self.samples, self.epsilon) {
            Ok(())
        } else {
            Err(Error::NotShown(self.epsilon, self.samples))
        }
    }

    /// The smallest class that is tested: [`Self::min_class`] for the number of samples at hand.
    /// One sample off all others has nothing to be dependent on, so it is two at least.
    fn smallest_class(&self) -> usize {
        /// Two can be neighbours.
        const PAIR: usize = 2;
        let share = self.min_class.saturating_mul(self.samples).div_ceil(PAPER_SAMPLES);
        share.clamp(PAIR.min(self.min_class), self.min_class)
    }

    /// Packets per second of a probe at `rate`.
    fn packets_per_second(&self, rate: Rate) -> f64 {
        rate.as_bps() as f64 / self.packet.bits() as f64
    }
}

/// Why samples were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Both tests passed.
    Tested,
    /// The delays hardly vary, so that there is nothing to test: stationary and independent.
    Constant,
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The train ended before so many samples as needed had been taken.
    TooFew {
        /// Samples taken.
        have: u64,
        /// Samples needed.
        need: u64,
    },
    /// Stationary, but still dependent with the largest thinning allowed, or when the train ended.
    Dependent,
}

/// What a probe says about its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rate is sustained; its delay quantile counts.
    Accepted(Accepted),
    /// The delays are not stationary: the rate is above what is attainable in the long run.
    NonStationary,
    /// The measurement does not decide; not the same as too high.
    Undecided(Undecided),
}

/// The result of probing one rate.
#[derive(Clone, Debug)]
pub struct RateProbe {
    /// The rate.
    pub rate: Rate,
    /// What it came to.
    pub verdict: Verdict,
    /// Every so-many-th sample was kept.
    pub thinning: u64,
    /// Packets of the train that were watched, with the warm-up.
    pub packets: u64,
    /// The last test for stationarity; `None` if there was nothing to test.
    pub stationarity: Option<DfGls>,
    /// The last test for independence; `None` if there was nothing to test.
    pub independence: Option<Runs>,
    /// The samples kept, in time order. Fewer than wanted only if the verdict is
    /// [`Undecided::TooFew`].
    pub samples: Vec<Span>,
    /// All delays after the warm-up (every packet, not only samples), 0.1 % fine.
    pub delays: DelayHistogram,
}

impl RateProbe {
    /// The line of the service curve that this probe gives, if it was accepted: the (1 -
    /// `epsilon`)-quantile of its samples.
    #[must_use]
    pub fn line(&self, epsilon: Probability) -> Option<Line> {
        let Verdict::Accepted(_) = self.verdict else { return None };
        let delay = upper_quantile(&mut self.samples.clone(), epsilon)?;
        Some(Line { rate: self.rate, delay })
    }

    /// Between which samples the true quantile lies, except with probability `miss`; `None` at an
    /// end that the samples do not bound. Assumes independence, so it means something only for an
    /// accepted probe.
    #[must_use]
    pub fn quantile_interval(&self, epsilon: Probability, miss: Probability) -> (Option<Span>, Option<Span>) {
        let ranks = quantile_interval(self.samples.len(), epsilon, miss);
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let at = |rank: Option<usize>| rank.and_then(|rank| sorted.get(rank - 1).copied());
        (at(ranks.lower), at(ranks.upper))
    }
}

/// Probes one rate: `delays` are those of all packets of one constant-rate train, in the order of
/// sending.
///
/// N samples at random packets are tested; while they are dependent, the same train is continued
/// until `growth` times as many have been taken, of which every `growth`-th is kept, and so on.
/// Only N delays and a histogram are kept in memory, however long this takes.
///
/// # Errors
/// [`Error::InvalidConfig`] and [`Error::NotShown`] for a configuration or a rate (zero, unlimited)
/// that makes no sense. Bad delays are not an error: constant, overloaded or too short trains have
/// their own [`Verdict`].
pub fn probe_rate(
    rate: Rate,
    delays: impl IntoIterator<Item = Span>,
    config: &ProbeConfig,
) -> Result<RateProbe, Error> {
    config.validate()?;
    if rate.as_bps() == 0 || rate.is_unlimited() {
        return Err(Error::InvalidConfig("rate", "above zero and finite"));
    }
    let mut sampler = Sampler::new(rate, delays.into_iter(), config)?;
    let mut samples: Vec<Span> = Vec::with_capacity(config.samples);
    let mut thinning = 1_u64;
    let mut tests = Tests::default();
    loop {
        while samples.len() < config.samples {
            // Exactly every thinning-th of all samples, from the first on.
            let wanted = thinning.saturating_mul(samples.len() as u64).saturating_add(1);
            let Some(delay) = sampler.take_up_to(wanted) else {
                let need = thinning.saturating_mul(config.samples as u64);
                let verdict =
                    tests.verdict.unwrap_or(Verdict::Undecided(Undecided::TooFew { have: sampler.taken, need }));
                return Ok(tests.probe(rate, verdict, thinning, samples, sampler));
            };
            samples.push(delay);
        }
        let verdict = tests.judge(&samples, config);
        let overload =
            || sampler.measured(rate, config) >= config.overload_after && grow(&samples, config.overload_blocks);
        let stop = verdict == Verdict::NonStationary && (config.on_unit_root == OnUnitRoot::Stop || overload());
        let next = thinning.saturating_mul(config.growth);
        if matches!(verdict, Verdict::Accepted(_)) || stop || next > config.max_thinning {
            return Ok(tests.probe(rate, verdict, thinning, samples, sampler));
        }
        thinning = next;
        samples = crate::stats::every_nth(&samples, usize::try_from(config.growth).unwrap_or(usize::MAX));
    }
}

/// True if the medians of so many successive blocks of the samples all increase.
fn grow(samples: &[Span], blocks: usize) -> bool {
    let length = samples.len() / blocks.max(1);
    if blocks < 2 || length == 0 {
        return false;
    }
    let median = |block: &[Span]| upper_quantile(&mut block.to_vec(), Probability::HALF);
    let medians: Vec<Option<Span>> = samples.chunks_exact(length).take(blocks).map(median).collect();
    medians.windows(2).all(|pair| pair[0] < pair[1])
}

/// The tests and what they said last.
#[derive(Default)]
struct Tests {
    verdict: Option<Verdict>,
    stationarity: Option<DfGls>,
    independence: Option<Runs>,
}

impl Tests {
    fn judge(&mut self, samples: &[Span], config: &ProbeConfig) -> Verdict {
        let verdict = self.test(samples, config);
        self.verdict = Some(verdict);
        verdict
    }

    fn test(&mut self, samples: &[Span], config: &ProbeConfig) -> Verdict {
        (self.stationarity, self.independence) = (None, None);
        let series = Series::from_spans(samples);
        let constant = Verdict::Accepted(Accepted::Constant);
        let resolution = config.resolution.as_secs_f64();
        if series.variance() < resolution * resolution {
            return constant;
        }
        self.independence = runs_test(&series, Cut::Median).ok();
        if self.independence.is_none_or(|runs| runs.upper.min(runs.lower) < config.smallest_class()) {
            return constant;
        }
        let without_lags = DfGlsConfig { lags: LagChoice::Fixed(0), ..config.stationarity };
        let stationarity = match dfgls(&series, &config.stationarity) {
            Err(Degenerate::Singular(_)) => dfgls(&series, &without_lags),
            other => other,
        };
        self.stationarity = stationarity.ok();
        if self.stationarity.is_some_and(|test| !test.is_stationary(config.stationarity_level)) {
            return Verdict::NonStationary;
        }
        if self.independence.is_some_and(|runs| !runs.is_independent(config.independence_level, config.sides)) {
            return Verdict::Undecided(Undecided::Dependent);
        }
        Verdict::Accepted(Accepted::Tested)
    }

    fn probe<I>(
        self,
        rate: Rate,
        verdict: Verdict,
        thinning: u64,
        samples: Vec<Span>,
        sampler: Sampler<I>,
    ) -> RateProbe {
        let Self { stationarity, independence, .. } = self;
        let Sampler { packets, histogram: delays, .. } = sampler;
        RateProbe { rate, verdict, thinning, packets, stationarity, independence, samples, delays }
    }
}

/// Delays at random packets.
struct Sampler<I> {
    delays: I,
    gaps: Gaps,
    packets: u64,
    taken: u64,
    histogram: DelayHistogram,
}

impl<I: Iterator<Item = Span>> Sampler<I> {
    fn new(rate: Rate, mut delays: I, config: &ProbeConfig) -> Result<Self, Error> {
        /// Decimal digits of the histogram.
        const DIGITS: u8 = 3;
        let per_second = config.packets_per_second(rate);
        let gaps = Gaps::new(config.sampling_gap.as_secs_f64() * per_second, config.seed);
        let warm_up = (config.warm_up.as_secs_f64() * per_second) as u64;
        let packets = delays.by_ref().take(usize::try_from(warm_up).unwrap_or(usize::MAX)).count() as u64;
        Ok(Self { delays, gaps, packets, taken: 0, histogram: DelayHistogram::new(DIGITS)? })
    }

    /// How long the train has been measured, after the warm-up.
    fn measured(&self, rate: Rate, config: &ProbeConfig) -> Span {
        Span::from_secs_f64(self.histogram.count() as f64 / config.packets_per_second(rate))
    }

    /// Takes samples until there are `count`; the last of them.
    fn take_up_to(&mut self, count: u64) -> Option<Span> {
        let mut last = None;
        while self.taken < count {
            let gap = self.gaps.next()?;
            for _ in 0..gap {
                let delay = self.delays.next()?;
                self.packets += 1;
                self.histogram.record(delay);
                last = Some(delay);
            }
            self.taken += 1;
        }
        last
    }
}
