//! The probing procedure at one rate.

mod checks;
mod config;
mod hope;
mod sampler;

use flowstart_units::{Rate, Span};

use self::checks::{Finding, Tests, grow};
use self::sampler::{Phases, Sampler};
use crate::stats::{
    DelayHistogram, DfGls, Growth, NextSamples, Runs, effective_samples, growth, quantile_interval, upper_quantile,
};
use crate::{Error, Line, Probability, Served};

pub use self::config::{OnUnitRoot, PAPER_SAMPLES, ProbeConfig};
pub use self::hope::GiveUp;

/// Why samples were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Both tests passed.
    Tested,
    /// The delays hardly vary, so that there is nothing to test: stationary and independent.
    Constant,
    /// Stationary, and although samples depend on one another there are enough of them: the
    /// quantile's interval is as certain as that of independent ones.
    Dependent,
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
    /// Not to be told from a random walk, or from one that grows a little, but not seen to grow.
    UnitRoot,
    /// Refused, but a higher rate was accepted.
    Contradicted,
    /// It would be accepted, but of the train's messages only so many per cent are there, and
    /// delays of those say nothing of the others.
    Missing {
        /// Per cent that are there.
        percent: u64,
    },
}

/// What a probe says about its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeVerdict {
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
    pub verdict: ProbeVerdict,
    /// Every so-many-th sample was kept.
    pub thinning: u64,
    /// Packets of the train that were watched, with the warm-up.
    pub packets: u64,
    /// How long it was watched, without the warm-up.
    pub measured: Span,
    /// The last test for stationarity; `None` if there was nothing to test.
    pub stationarity: Option<DfGls>,
    /// The last test for independence; `None` if there was nothing to test.
    pub independence: Option<Runs>,
    /// Whether delays grew over all that was measured; `None` if that was too little.
    pub growth: Option<Growth>,
    /// What the train was served while it waited all the time, if it is too high; `None` otherwise,
    /// or if that was too short.
    pub served: Option<Served>,
    /// How many independent samples the quantile of these is worth: at most their number, and
    /// unless delays are [`Accepted::Constant`], or samples count as independent once they pass the
    /// test ([`ProbeConfig::dependent`]), at most as many as all that was measured. Of a rate that
    /// is too high it says nothing: its quantile is that of a train of this length.
    pub effective: f64,
    /// The samples kept, in time order. Fewer than wanted only if the verdict is
    /// [`Undecided::TooFew`]; more if they are dependent.
    pub samples: Vec<Span>,
    /// All delays after the warm-up (every packet, not only samples), 0.1 % fine.
    pub delays: DelayHistogram,
}

impl RateProbe {
    /// The line of the service curve that this probe gives, if it was accepted: the (1 -
    /// `epsilon`)-quantile of its samples.
    #[must_use]
    pub fn line(&self, epsilon: Probability) -> Option<Line> {
        let ProbeVerdict::Accepted(_) = self.verdict else { return None };
        let delay = upper_quantile(&mut self.samples.clone(), epsilon)?;
        Some(Line { rate: self.rate, delay })
    }

    /// False for a rate that is too high: its delays grow, and have no quantile.
    #[must_use]
    pub fn tells_a_quantile(&self) -> bool {
        self.verdict != ProbeVerdict::NonStationary
    }

    /// Between which samples the true quantile lies, except with probability `miss`; `None` at an
    /// end that the samples do not bound. Ranks are those of as many independent samples as these
    /// are worth ([`Self::effective`]). None of a rate that is too high, whose delays have no
    /// quantile.
    #[must_use]
    pub fn quantile_interval(&self, epsilon: Probability, miss: Probability) -> (Option<Span>, Option<Span>) {
        if !self.tells_a_quantile() {
            return (None, None);
        }
        let independent = (self.effective as usize).min(self.samples.len());
        let ranks = quantile_interval(independent, epsilon, miss);
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        // A rank of the independent samples as one of those that there are.
        let scale = sorted.len() as f64 / independent.max(1) as f64;
        let place = |rank: f64| (rank as usize).clamp(1, sorted.len());
        let lower = ranks.lower.map(|rank| place(libm::floor((rank - 1) as f64 * scale) + 1.0));
        let upper = ranks.upper.map(|rank| place(libm::ceil(rank as f64 * scale)));
        let at = |rank: Option<usize>| rank.and_then(|rank| sorted.get(rank - 1).copied());
        (at(lower), at(upper))
    }

    /// The share of what was offered that arrived, as far as the growth of the delay says: a train
    /// whose delay grows by a second in ten has had one part in eleven stay behind. 1 if it does
    /// not grow, or nobody knows.
    #[must_use]
    pub fn arrived(&self) -> f64 {
        let grown = self.growth.map_or(0.0, |growth| growth.seconds).max(0.0);
        let seconds = self.measured.as_secs_f64();
        if grown > 0.0 && seconds > 0.0 { seconds / (seconds + grown) } else { 1.0 }
    }
}

/// Probes one rate: `delays` are those of all packets of one constant-rate train, in the order of
/// sending.
///
/// N samples at random packets are tested; while they are dependent, the same train is continued
/// until `growth` times as many have been taken, of which every `growth`-th is kept, and so on.
/// Only some thousand delays and a histogram are kept in memory, however long this takes.
///
/// # Errors
/// [`Error::InvalidConfig`] and [`Error::NotShown`] for a configuration or a rate (zero, unlimited)
/// that makes no sense. Bad delays are not an error: constant, overloaded or too short trains have
/// their own [`ProbeVerdict`].
pub fn probe_rate(
    rate: Rate,
    delays: impl IntoIterator<Item = Span>,
    config: &ProbeConfig,
) -> Result<RateProbe, Error> {
    config.validate()?;
    if rate.as_bps() == 0 || rate.is_unlimited() {
        return Err(Error::InvalidConfig("rate", "above zero and finite"));
    }
    let sampler = Sampler::new(rate, delays.into_iter(), config)?;
    let kept = Kept { samples: Vec::new(), thinning: 1, first: 0 };
    Ok(Probing { rate, config, sampler, kept, tests: Tests::default(), passed: None }.run())
}

/// Every so-many-th sample of those taken.
#[derive(Clone)]
struct Kept {
    samples: Vec<Span>,
    thinning: u64,
    /// How many were taken before the first that is kept.
    first: u64,
}

/// A probe at work.
struct Probing<'a, I> {
    rate: Rate,
    config: &'a ProbeConfig,
    sampler: Sampler<I>,
    kept: Kept,
    tests: Tests,
    /// What would have been accepted if it had been watched for long enough.
    passed: Option<Passed>,
}

/// Samples that passed before the train had been watched for long enough.
struct Passed {
    accepted: Accepted,
    kept: Kept,
    tests: Tests,
    /// Samples that had been taken until then.
    taken: u64,
}

impl<I: Iterator<Item = Span>> Probing<'_, I> {
    fn run(mut self) -> RateProbe {
        let mut phases = Phases::new(self.config);
        while self.fill() {
            let found = self.tests.test(&self.kept.samples, self.config);
            if let Some(verdict) = self.verdict(found) {
                return self.probe(verdict);
            }
            let next = self.kept.thinning.saturating_mul(self.config.growth);
            if next > self.config.max_thinning {
                return self.exhausted(found);
            }
            if self.is_hopeless() {
                return self.ended();
            }
            let shift = phases.of(self.config.growth);
            self.kept.first = self.kept.first.saturating_add(shift.saturating_mul(self.kept.thinning));
            self.kept.thinning = next;
            let every = usize::try_from(self.config.growth).unwrap_or(usize::MAX);
            let from = usize::try_from(shift).unwrap_or(usize::MAX).min(self.kept.samples.len());
            self.kept.samples = crate::stats::every_nth(&self.kept.samples[from..], every);
        }
        self.ended()
    }

    /// Takes what is missing of N samples: exactly every thinning-th of all. False if the train
    /// ends before.
    fn fill(&mut self) -> bool {
        let Kept { samples, thinning, first } = &mut self.kept;
        while samples.len() < self.config.samples {
            let wanted = thinning.saturating_mul(samples.len() as u64).saturating_add(*first).saturating_add(1);
            let Some(delay) = self.sampler.take_up_to(wanted) else { return false };
            samples.push(delay);
        }
        true
    }

    /// The verdict, if there is one already.
    fn verdict(&mut self, found: Finding) -> Option<ProbeVerdict> {
        let config = self.config;
        if found == Finding::UnitRoot {
            return match config.on_unit_root {
                OnUnitRoot::Stop => true,
                OnUnitRoot::Extend => self.long_enough() && grow(&self.kept.samples, config.overload_blocks),
                OnUnitRoot::Evidence => self.grows(),
            }
            .then_some(ProbeVerdict::NonStationary);
        }
        let accepted = match found {
            Finding::Constant => Accepted::Constant,
            Finding::Independent => Accepted::Tested,
            Finding::Dependent if config.dependent && self.worth() >= config.samples as f64 => Accepted::Dependent,
            Finding::Dependent | Finding::UnitRoot => return None,
        };
        if !self.steady() {
            return None;
        }
        if self.sampler.measured() >= config.least_time {
            return Some(ProbeVerdict::Accepted(accepted));
        }
        let (kept, tests) = (self.kept.clone(), self.tests.clone());
        self.passed = Some(Passed { accepted, kept, tests, taken: self.sampler.taken });
        None
    }

    fn long_enough(&self) -> bool {
        self.sampler.measured() >= self.config.overload_after
    }

    /// How probable it is that delays without drift grow so much over all that was measured.
    fn chance(&self) -> f64 {
        self.growth().map_or(1.0, |growth| growth.p_value)
    }

    fn growth(&self) -> Option<Growth> {
        growth(self.sampler.trace.values(), self.config.overload_blocks)
    }

    /// True if delays are seen to grow. What counts is how long they were watched, until the last
    /// sample was read: of twice the rate that is served half is read in any time.
    fn grows(&self) -> bool {
        let read = self.sampler.measured() + self.sampler.trace.values().last().copied().unwrap_or_default();
        let least = self.config.drift.get() * self.sampler.measured().as_secs_f64();
        let evident = |growth: Growth| growth.p_value <= self.config.growth_level.get() && growth.seconds >= least;
        read >= self.config.overload_after && self.growth().is_some_and(evident)
    }

    /// True if they do not even seem to.
    fn steady(&self) -> bool {
        self.chance() >= self.config.steady_level.get()
    }

    /// How many independent samples the whole train is worth.
    fn worth(&self) -> f64 {
        effective_samples(self.sampler.trace.values(), self.config.epsilon)
    }

    /// True if the whole train is worth as many samples as are asked for, or enough for both ends
    /// of the quantile's interval.
    fn enough(&self) -> bool {
        self.suffices(self.worth())
    }

    fn suffices(&self, worth: f64) -> bool {
        let ranks = quantile_interval(worth as usize, self.config.epsilon, Probability::FIVE_PERCENT);
        worth >= self.config.samples as f64 || ranks.lower.is_some() && ranks.upper.is_some()
    }

    /// True if what came after these samples looks like more of the same, beyond their quantile: it
    /// would have as many delays there at least once in twenty times. Of dependent ones the
    /// quantile is that of the whole train, and nothing is left to ask but its worth.
    fn speak_for_all(&self, passed: &Passed) -> bool {
        if passed.accepted == Accepted::Dependent {
            return self.enough();
        }
        let Some(quantile) = upper_quantile(&mut passed.kept.samples.clone(), self.config.epsilon) else {
            return false;
        };
        let trace = self.sampler.trace.values();
        let share = passed.taken as f64 / self.sampler.taken as f64;
        let after = &trace[((trace.len() as f64 * share) as usize).min(trace.len())..];
        let beyond = after.iter().filter(|delay| **delay > quantile).count() as f64 / after.len().max(1) as f64;
        let worth = effective_samples(after, self.config.epsilon) as usize;
        let expected = NextSamples::new(passed.kept.samples.len(), self.config.epsilon, worth);
        expected.at_least((beyond * worth as f64) as usize) > Probability::FIVE_PERCENT.get()
    }

    /// The train has ended before there were so many samples as were wanted next.
    fn ended(mut self) -> RateProbe {
        let need = self.kept.thinning.saturating_mul(self.config.samples as u64);
        let too_few = ProbeVerdict::Undecided(Undecided::TooFew { have: self.sampler.taken, need });
        let Some(last) = self.tests.last else { return self.probe(too_few) };
        if self.config.on_unit_root != OnUnitRoot::Evidence {
            return self.exhausted(last);
        }
        // What was taken after the last test counts, too: N samples spread over all of it.
        let trace = self.sampler.trace.values();
        let every = trace.len() / self.config.samples;
        let mut found = last;
        if every > 0 {
            let samples: Vec<Span> = trace.iter().step_by(every).take(self.config.samples).copied().collect();
            found = self.tests.test(&samples, self.config);
            let thinning = self.sampler.taken.div_ceil(trace.len() as u64).saturating_mul(every as u64);
            self.kept = Kept { samples, thinning, first: 0 };
        }
        match (found, self.passed.take()) {
            (Finding::Constant | Finding::Independent, _) => self.exhausted(found),
            // Samples that were enough when they passed may be too few of all that came after them,
            // or of another kind.
            (_, Some(passed)) if self.steady() && self.speak_for_all(&passed) => {
                (self.kept, self.tests) = (passed.kept, passed.tests);
                self.probe(ProbeVerdict::Accepted(passed.accepted))
            }
            _ => self.exhausted(found),
        }
    }

    /// Nothing more can be taken, and the last test found this.
    fn exhausted(self, found: Finding) -> RateProbe {
        let config = self.config;
        let verdict = match found {
            Finding::UnitRoot if config.on_unit_root != OnUnitRoot::Evidence || self.grows() => {
                ProbeVerdict::NonStationary
            }
            Finding::UnitRoot => ProbeVerdict::Undecided(Undecided::UnitRoot),
            _ if !self.steady() => ProbeVerdict::Undecided(Undecided::UnitRoot),
            Finding::Constant => ProbeVerdict::Accepted(Accepted::Constant),
            Finding::Independent => ProbeVerdict::Accepted(Accepted::Tested),
            Finding::Dependent if config.dependent && self.enough() => ProbeVerdict::Accepted(Accepted::Dependent),
            Finding::Dependent => ProbeVerdict::Undecided(Undecided::Dependent),
        };
        self.probe(verdict)
    }

    fn probe(self, verdict: ProbeVerdict) -> RateProbe {
        let Self { rate, config, sampler, kept: Kept { mut samples, mut thinning, .. }, tests, .. } = self;
        let measured = sampler.measured();
        let trace = sampler.trace.values();
        let (kept, worth) = (samples.len() as f64, || effective_samples(trace, config.epsilon));
        let effective = match verdict {
            ProbeVerdict::Accepted(Accepted::Constant) => kept,
            ProbeVerdict::Accepted(Accepted::Tested) if !config.dependent => kept,
            ProbeVerdict::Accepted(Accepted::Dependent) => worth(),
            // Thinned until they passed a test at the median, or were too many to be thinned
            // further: beyond the quantile they may depend on one another all the same.
            _ => kept.min(worth()),
        };
        if verdict == ProbeVerdict::Accepted(Accepted::Dependent) {
            samples = trace.to_vec();
            thinning = sampler.taken.div_ceil(trace.len().max(1) as u64);
        }
        let served = (verdict == ProbeVerdict::NonStationary)
            .then(|| Served::of(sampler.trace.numbered(), sampler.gap(), config.packet.bits() as f64))
            .flatten();
        RateProbe {
            rate,
            verdict,
            served,
            thinning,
            packets: sampler.packets,
            measured,
            stationarity: tests.stationarity,
            independence: tests.independence,
            growth: growth(trace, config.overload_blocks),
            effective,
            samples,
            delays: sampler.histogram,
        }
    }
}
