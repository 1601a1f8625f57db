//! From probes of several rates to a service curve.

use flowstart_units::Rate;

use crate::{Line, Probability, ProbeConfig, ProbeVerdict, RateProbe, Served, ServiceCurve, Undecided};

/// Why the estimate ends where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All probed rates were accepted: the long-term rate may be higher than the curve's.
    AllAccepted,
    /// This rate is too high. The curve's long-term rate is the largest below it.
    NonStationary(Rate),
    /// At this rate the measurement does not decide. The curve is right but may end too low.
    Undecided(Rate),
}

/// Where the rate lies that is attained in the long run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongRun {
    /// This is attained: the highest accepted rate, or what trains that were too fast were served
    /// at least, whichever is more.
    pub low: Rate,
    /// This is not: the lowest rate above that is too high, or what such trains were served at
    /// most, whichever is less. `None` if no rate was too high.
    pub high: Option<Rate>,
    /// What such trains were served; `None` if there are none that waited for long enough.
    pub served: Option<Rate>,
    /// All that it may be, given how it varied, is less than was accepted or more than is too high:
    /// then `low` and `high` are those rates.
    pub disagrees: bool,
}

/// A service curve with all that it was made from.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Every probe, by rate, also those that do not count.
    pub probes: Vec<RateProbe>,
    /// The curve of the accepted rates.
    pub curve: ServiceCurve,
    /// What came after the highest of them.
    pub end: End,
    /// The violation probability of each rate.
    pub epsilon: Probability,
    /// The first that was not accepted ended it.
    first_ends: bool,
    /// Rates above this one were not asked for.
    asked: Option<Rate>,
}

/// So many rates that are too high end a search for the highest that is not.
const REFUSALS: usize = 2;

fn is_accepted(probe: &RateProbe) -> bool {
    matches!(probe.verdict, ProbeVerdict::Accepted(_))
}

/// The rate above which no other need be probed, if probes of these verdicts are all that is known:
/// with [`ProbeConfig::first_ends`] that of the first that was not accepted, as in the paper,
/// otherwise that of the second that is too high (one may err, and then a higher one is accepted).
/// `None`: higher rates are wanted.
#[must_use]
pub fn last_wanted(verdicts: impl IntoIterator<Item = (Rate, ProbeVerdict)>, config: &ProbeConfig) -> Option<Rate> {
    let ends = |verdict: ProbeVerdict| {
        if config.first_ends {
            !matches!(verdict, ProbeVerdict::Accepted(_))
        } else {
            verdict == ProbeVerdict::NonStationary
        }
    };
    let mut ending: Vec<Rate> =
        verdicts.into_iter().filter(|(_, verdict)| ends(*verdict)).map(|(rate, _)| rate).collect();
    ending.sort_unstable();
    ending.get(if config.first_ends { 0 } else { REFUSALS - 1 }).copied()
}

impl Estimate {
    /// Joins probes of different rates, in any order. The curve is made of all accepted rates: each
    /// is a bound by itself, whatever became of lower ones. Those below them that were too high are
    /// undecided instead ([`Undecided::Contradicted`]): what is attained at a rate is attained at
    /// every lower one. With [`ProbeConfig::first_ends`] the curve ends before
    /// the first that was not accepted, and what lies above it does not count even if it was
    /// probed.
    #[must_use]
    pub fn new(mut probes: Vec<RateProbe>, config: &ProbeConfig) -> Self {
        probes.sort_by_key(|probe| probe.rate);
        let end = if config.first_ends {
            probes.iter().take_while(|probe| is_accepted(probe)).count()
        } else {
            probes.iter().rposition(is_accepted).map_or(0, |highest| highest + 1)
        };
        for below in probes[..end].iter_mut().filter(|probe| probe.verdict == ProbeVerdict::NonStationary) {
            below.verdict = ProbeVerdict::Undecided(Undecided::Contradicted);
        }
        let accepted: Vec<Line> = probes[..end].iter().filter_map(|probe| probe.line(config.epsilon)).collect();
        let curve = ServiceCurve::new(&accepted, config.epsilon);
        let end = match probes.get(end) {
            None => End::AllAccepted,
            Some(probe) if probe.verdict == ProbeVerdict::NonStationary => End::NonStationary(probe.rate),
            Some(probe) => End::Undecided(probe.rate),
        };
        Self { probes, curve, end, epsilon: config.epsilon, first_ends: config.first_ends, asked: None }
    }

    /// The same if rates above this one were not asked for, but probed for what they were served.
    #[must_use]
    pub fn asked_up_to(self, rate: Rate) -> Self {
        Self { asked: Some(rate), ..self }
    }

    /// The same if these rates were to be probed and some were not, because somebody interrupted:
    /// where all that were probed are accepted, the next of them is undecided.
    #[must_use]
    pub fn unfinished(mut self, wanted: &[Rate]) -> Self {
        let highest = self.probes.last().map_or(Rate::ZERO, |probe| probe.rate);
        if let (End::AllAccepted, Some(next)) = (self.end, wanted.iter().filter(|rate| **rate > highest).min()) {
            self.end = End::Undecided(*next);
        }
        self
    }

    /// The probes that the curve is made of.
    #[must_use]
    pub fn accepted(&self) -> Vec<&RateProbe> {
        let last = self.curve_ends();
        self.probes[..last].iter().filter(|probe| is_accepted(probe)).collect()
    }

    /// How many probes are below the end.
    fn curve_ends(&self) -> usize {
        match self.end {
            End::AllAccepted => self.probes.len(),
            End::NonStationary(rate) | End::Undecided(rate) => self.probes.partition_point(|probe| probe.rate < rate),
        }
    }

    /// The lowest rate above the curve that is too high: what is attained in the long run is below
    /// it. `None` if there is none.
    #[must_use]
    pub fn too_high(&self) -> Option<Rate> {
        let above = self.probes[self.curve_ends()..].iter();
        let wanted = above.take(if self.first_ends { 1 } else { usize::MAX });
        wanted.filter(|probe| probe.verdict == ProbeVerdict::NonStationary).map(|probe| probe.rate).next()
    }

    /// Where the long-term rate lies, except with probability `miss` as far as it follows from what
    /// too fast trains were served ([`Served`]). An accepted rate is attained whatever those say,
    /// and one that is too high is not: if all that they were served lies beyond these, the two
    /// disagree, and the rate lies anywhere between the accepted one and the one that is too high.
    #[must_use]
    pub fn long_run(&self, miss: Probability) -> LongRun {
        let above = &self.probes[self.curve_ends()..];
        let served = Served::join(above.iter().filter_map(|probe| probe.served.as_ref()));
        let accepted = self.curve.long_term_rate();
        let too_high = self.too_high();
        let whole = |bps: f64| Rate::from_bps(bps.min(1e18) as u64);
        let interval = served.interval(miss).map(|(low, high)| (whole(low), whole(high)));
        let agrees = |(low, high): &(Rate, Rate)| *high >= accepted && too_high.is_none_or(|rate| *low <= rate);
        let disagrees = interval.is_some_and(|interval| !agrees(&interval));
        let (low, high) = match interval.filter(agrees) {
            Some((low, high)) => (low.max(accepted), Some(too_high.map_or(high, |rate| rate.min(high)))),
            None => (accepted, too_high),
        };
        LongRun { low, high, served: served.rate().map(whole), disagrees }
    }

    /// True if what comes after the highest accepted rate is too high, and is one of the rates that
    /// were asked for.
    #[must_use]
    pub fn next_is_too_high(&self) -> bool {
        matches!(self.end, End::NonStationary(rate) if self.asked.is_none_or(|last| rate <= last))
    }

    /// True if it is known where the curve ends: the next rate is too high, or the [long
    /// run](Self::long_run) lies within one step of the probed rates, in an interval of 95 %. Where
    /// all were accepted, more may be attained.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        if self.next_is_too_high() {
            return true;
        }
        let rates = || std::iter::once(Rate::ZERO).chain(self.probes.iter().map(|probe| probe.rate));
        let step = rates().zip(rates().skip(1)).map(|(below, above)| above.as_bps() - below.as_bps()).min();
        let LongRun { low, high, .. } = self.long_run(Probability::FIVE_PERCENT);
        high.zip(step).is_some_and(|(high, step)| high.as_bps() - low.as_bps() <= step)
    }

    /// Probes the rates `step`, 2 `step`, … up to `last` one after the other, as long as they count
    /// ([`last_wanted`]).
    ///
    /// # Errors
    /// The first error of `probe`.
    pub fn measure<E>(
        step: Rate,
        last: Rate,
        config: &ProbeConfig,
        mut probe: impl FnMut(Rate) -> Result<RateProbe, E>,
    ) -> Result<Self, E> {
        let mut probes: Vec<RateProbe> = Vec::new();
        for rate in rates(step, last) {
            probes.push(probe(rate)?);
            if last_wanted(probes.iter().map(|probe| (probe.rate, probe.verdict)), config).is_some() {
                break;
            }
        }
        Ok(Self::new(probes, config))
    }
}

/// The rates `step`, 2 `step`, … up to `last`; none if `step` is zero.
fn rates(step: Rate, last: Rate) -> impl Iterator<Item = Rate> {
    let count = last.as_bps().checked_div(step.as_bps()).unwrap_or(0);
    (1..=count).map(move |n| Rate::from_bps(step.as_bps() * n))
}
