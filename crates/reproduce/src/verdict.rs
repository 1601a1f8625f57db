//! From measured values to verdicts.

use serde_json::{Value, json};

use super::evidence::{Case, Evidence, Looks, Values};
use super::figure::{Claim, Figure};
use flowstart_measure::{Bound, Measured};

/// What came out of checking a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours is as expected: the intervals of all cases are.
    Reproduced,
    /// Ours is not as expected: the interval of a case lies outside, whichever way the paper is
    /// read.
    Differs,
    /// The budget is spent, and an interval straddles the bound.
    Undecided,
    /// The answer depends on what the paper leaves open, or something had to be assumed.
    UnderSpecified,
}

/// A claim is called under-specified, not different, if at least one of so many readings of the
/// paper holds.
const READINGS_PER_HOLDING: usize = 4;

impl Verdict {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Reproduced, Self::Differs, Self::Undecided, Self::UnderSpecified];

    /// The word in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::UnderSpecified => "under-specified",
        }
    }

    /// The word in files.
    #[must_use]
    pub fn key(self) -> &'static str {
        if self == Self::UnderSpecified { "under_specified" } else { self.name() }
    }
}

/// A checked claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// The claim.
    pub claim: Claim,
    /// Its variants.
    pub cases: Vec<Case>,
    /// Whether it is as expected, all in all; `None` as for a case.
    pub holds: Option<bool>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Whether all of them are as expected; `None` if that is not known.
fn all_hold<'a>(cases: impl Iterator<Item = &'a Case> + Clone) -> Option<bool> {
    if cases.clone().any(|case| case.holds == Some(false)) {
        Some(false)
    } else {
        cases.into_iter().all(|case| case.holds == Some(true)).then_some(true)
    }
}

impl ClaimResult {
    /// From what the runs gave for each case: its name and the evidence.
    pub(super) fn new(claim: Claim, looks: Looks, evidence: Vec<(String, Evidence)>) -> Self {
        let mut readings: Vec<&[String]> = claim.readings.iter().map(Vec::as_slice).collect();
        readings.sort_unstable();
        readings.dedup();
        let cases_of_reading = evidence.len().div_ceil(readings.len().max(1));
        let values = Values::of(&claim);
        let case = |(variant, evidence): (String, Evidence)| {
            let expectation = claim.expectation.as_ref();
            let holds =
                expectation.and_then(|expectation| evidence.holds(expectation, looks, values, cases_of_reading));
            Case { variant, interval: evidence.interval_of_all(looks, values), evidence, holds }
        };
        let cases: Vec<Case> = evidence.into_iter().map(case).collect();
        let holds = all_hold(cases.iter());
        let mut result = Self { claim, cases, holds, verdict: Verdict::Undecided };
        let (held, failed, open) = result.counts();
        let needed = (held + failed + open).div_ceil(READINGS_PER_HOLDING).max(1);
        result.verdict = match (result.claim.spec.assumed.is_some(), held, failed, open) {
            (true, ..) => Verdict::UnderSpecified,
            (false, _, 0, 0) => Verdict::Reproduced,
            (false, held, 1.., _) if held >= needed => Verdict::UnderSpecified,
            (false, held, 1.., open) if held + open < needed => Verdict::Differs,
            _ => Verdict::Undecided,
        };
        result
    }

    /// Numbers of the cases of which more runs could decide the verdict.
    pub(super) fn wanting(&self) -> Vec<usize> {
        let settled = match self.verdict {
            Verdict::UnderSpecified => self.claim.spec.assumed.is_none() || self.claim.expectation.is_none(),
            Verdict::Undecided => false,
            Verdict::Reproduced | Verdict::Differs => true,
        };
        let open = |case: &Case| case.holds.is_none() && case.evidence.without == 0;
        let numbers = || (0..self.cases.len()).filter(|number| open(&self.cases[*number]));
        if settled { Vec::new() } else { numbers().collect() }
    }

    /// Readings of the paper in which it holds, does not, and is undecided.
    fn counts(&self) -> (usize, usize, usize) {
        let readings = self.readings();
        let count = |wanted| readings.iter().filter(|(_, holds)| *holds == wanted).count();
        (count(Some(true)), count(Some(false)), count(None))
    }

    /// Each reading of the paper, and whether all of its cases are as expected.
    fn readings(&self) -> Vec<(&[String], Option<bool>)> {
        let mut titles: Vec<&[String]> = Vec::new();
        for reading in &self.claim.readings {
            if !titles.contains(&reading.as_slice()) {
                titles.push(reading);
            }
        }
        let of = |wanted: &[String]| {
            let pairs = self.claim.readings.iter().zip(&self.cases);
            let cases: Vec<&Case> = pairs.filter(|(reading, _)| *reading == wanted).map(|(_, case)| case).collect();
            all_hold(cases.into_iter())
        };
        titles.into_iter().map(|titles| (titles, of(titles))).collect()
    }

    /// In how many readings it holds, and in which: by the open factor that makes the greatest
    /// difference.
    fn in_readings(&self) -> String {
        let readings = self.readings();
        let held = |readings: &[Option<bool>]| readings.iter().filter(|holds| **holds == Some(true)).count();
        let all: Vec<Option<bool>> = readings.iter().map(|(_, holds)| *holds).collect();
        let mut greatest: Option<(f64, String)> = None;
        for factor in 0..readings.first().map_or(0, |(titles, _)| titles.len()) {
            let mut levels: Vec<(&str, Vec<Option<bool>>)> = Vec::new();
            for (titles, holds) in &readings {
                let title = titles[factor].as_str();
                match levels.iter_mut().find(|(known, _)| *known == title) {
                    Some((_, of_level)) => of_level.push(*holds),
                    None => levels.push((title, vec![*holds])),
                }
            }
            let shares = levels.iter().map(|(_, of_level)| held(of_level) as f64 / of_level.len() as f64);
            let (least, most) = shares.fold((1.0_f64, 0.0_f64), |(low, high), share| (low.min(share), high.max(share)));
            if greatest.as_ref().is_none_or(|(spread, _)| most - least > *spread) {
                let counts: Vec<String> = if levels.iter().all(|(_, of_level)| of_level.len() == 1) {
                    let failed = levels.iter().filter(|(_, of_level)| held(of_level) == 0);
                    failed.map(|(title, _)| format!("not {title}")).collect()
                } else {
                    let count = |of_level: &[Option<bool>]| format!("{} of {}", held(of_level), of_level.len());
                    levels.iter().map(|(title, of_level)| format!("{title}: {}", count(of_level))).collect()
                };
                greatest = Some((most - least, counts.join(", ")));
            }
        }
        let which = greatest.map(|(_, counts)| format!(" ({counts})")).unwrap_or_default();
        let open = all.iter().filter(|holds| holds.is_none()).count();
        let open = if open > 0 { format!(", open in {open}") } else { String::new() };
        format!("holds in {} of {} readings{open}{which}", held(&all), all.len())
    }

    /// What the paper says, as a value.
    #[must_use]
    pub fn expected(&self) -> &str {
        self.claim.spec.expect.as_deref().unwrap_or("not said")
    }

    /// What was measured: a value with its interval and number of runs, or the range of several.
    #[must_use]
    pub fn ours(&self) -> String {
        let dimension = self.claim.dimension;
        let runs = |runs: usize| if runs > 1 { format!(" (n = {runs})") } else { String::new() };
        match self.cases.as_slice() {
            [one] => {
                let Some(value) = one.evidence.value() else { return "nothing to measure".to_owned() };
                let interval = match (one.interval, Values::of(&self.claim)) {
                    (Some((low, high)), Values::Answers(_)) => {
                        format!(" [{} .. {}]", dimension.show(low), dimension.show(high))
                    }
                    (Some((low, high)), Values::Numbers) if low < high => {
                        format!(" ± {}", dimension.show((high - low) / 2.0))
                    }
                    _ => String::new(),
                };
                format!("{}{interval}{}", value.show(dimension), runs(one.evidence.runs))
            }
            several => {
                let mut values: Vec<Measured> = several.iter().filter_map(|case| case.evidence.value()).collect();
                values.sort_by(|a, b| a.value.total_cmp(&b.value));
                let (Some(first), Some(last)) = (values.first(), values.last()) else {
                    return "nothing to measure".to_owned();
                };
                let range = format!("{} … {}", first.show(dimension), last.show(dimension));
                let missing = several.len() - values.len();
                let missing = if missing > 0 { format!(", {missing} without") } else { String::new() };
                let counts = several.iter().map(|case| case.evidence.runs);
                let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
                let n = match (least, most) {
                    (_, 0 | 1) => String::new(),
                    (least, most) if least == most => format!(", n = {most}"),
                    (least, most) => format!(", n = {least} to {most}"),
                };
                format!("{range} ({} cases{missing}{n})", several.len())
            }
        }
    }

    /// The verdict with what belongs to it: by how much it differs, how many cases.
    #[must_use]
    pub fn conclusion(&self) -> String {
        let word = self.verdict.name();
        let readings = self.readings().len();
        match (self.verdict, self.holds) {
            (Verdict::Reproduced, _) if readings > 1 => format!("{word} in all {readings} readings"),
            (Verdict::Reproduced, _) => word.to_owned(),
            (Verdict::UnderSpecified, _) if self.claim.spec.assumed.is_none() => {
                format!("{word}: {}", self.in_readings())
            }
            (Verdict::UnderSpecified, None) => word.to_owned(),
            (Verdict::UnderSpecified, Some(true)) => format!("{word}; holds under the assumption"),
            (Verdict::UnderSpecified, Some(false)) => {
                format!("{word}; does not hold under the assumption: {}", self.by())
            }
            (Verdict::Differs, _) if readings > 1 => format!("{word}: {}", self.in_readings()),
            (Verdict::Differs, _) => format!("{word}: {}", self.by()),
            (Verdict::Undecided, _) if readings > 1 => format!("{word}: {}", self.in_readings()),
            (Verdict::Undecided, _) => format!("{word}: {}", self.open()),
        }
    }

    /// What keeps it undecided.
    fn open(&self) -> String {
        let open: Vec<&Case> = self.cases.iter().filter(|case| case.holds.is_none()).collect();
        let without: usize = open.iter().map(|case| case.evidence.without).sum();
        let mut text = match (without, open.iter().any(|case| case.evidence.mean.is_none())) {
            (0, true) => "nothing to measure".to_owned(),
            (0, false) => self.all_alike().unwrap_or_else(|| self.straddles(&open)),
            (1, _) => "one run has no value".to_owned(),
            (without, _) => format!("{without} runs have no value"),
        };
        if self.cases.len() > 1 {
            text = format!("in {} of {} cases {text}", open.len(), self.cases.len());
        }
        text
    }

    /// That intervals straddle the bound, and how many runs would be needed if they went on to
    /// spread like this.
    fn straddles(&self, open: &[&Case]) -> String {
        /// Nobody makes more runs than this.
        const MOST: f64 = 10_000.0;
        if open.iter().all(|case| case.evidence.value().is_some_and(|value| value.bound != Bound::Exact)) {
            return "it is known from one side only".to_owned();
        }
        let needed = |case: &&Case| {
            let (low, high) = case.interval?;
            let margin = self.claim.expectation.as_ref()?.margin(case.evidence.mean?)?;
            let times = (high - low) / 2.0 / margin;
            Some((case.evidence.runs as f64 * times * times).ceil())
        };
        let words = match open.iter().filter_map(needed).reduce(f64::max) {
            Some(runs) if runs > MOST => ", so near that more than 10000 runs would be needed".to_owned(),
            Some(runs) if runs > 1.0 => format!("; some {runs:.0} runs of this spread would be needed"),
            _ => String::new(),
        };
        format!("the interval straddles the bound{words}")
    }

    /// That all answers were the same, and what so many do not exclude.
    fn all_alike(&self) -> Option<String> {
        let ([one], Values::Answers(each)) = (self.cases.as_slice(), Values::of(&self.claim)) else { return None };
        let (answers, (low, high)) = (one.evidence.answers(each), one.interval?);
        let show = |share| self.claim.dimension.show(share);
        let mean = one.evidence.mean?;
        if mean == 0.0 {
            Some(format!("none of {answers} answers, which leaves up to {}", show(high)))
        } else if mean == 1.0 {
            Some(format!("all of {answers} answers, which leaves up to {} others", show(1.0 - low)))
        } else {
            None
        }
    }

    /// By how much the value (of several the one furthest off) misses what was expected.
    fn by(&self) -> String {
        let Some(expectation) = &self.claim.expectation else { return String::new() };
        let failed = || self.cases.iter().filter(|case| case.holds == Some(false));
        let values = failed().filter_map(|case| case.evidence.mean);
        let furthest = values.max_by(|a, b| expectation.miss(*a).abs().total_cmp(&expectation.miss(*b).abs()));
        let Some(value) = furthest else { return String::new() };
        let (miss, end) = (expectation.miss(value), expectation.nearest(value));
        let side = if miss > 0.0 { "above" } else { "below" };
        let mut text = if miss == 0.0 {
            // On the end itself, which did not count.
            "no more than the limit".to_owned()
        } else if end != 0.0 && (miss / end).abs() < 10.0 {
            format!("{:.0} % {side}", (miss / end).abs() * 100.0)
        } else {
            format!("{} {side}", self.claim.dimension.show(miss.abs()))
        };
        if self.cases.len() > 1 {
            text = format!("in {} of {} cases, at most {text}", failed().count(), self.cases.len());
        }
        text
    }

    /// The explanation that belongs to the verdict. A difference has a cause that another claim
    /// shows, or none that is known; what the file says without showing it is a guess.
    #[must_use]
    pub fn explanation(&self) -> Vec<(&'static str, String)> {
        let spec = &self.claim.spec;
        let mut lines = Vec::new();
        lines.extend(spec.reading.as_ref().map(|reading| ("reading", reading.clone())));
        lines.extend(spec.assumed.as_ref().map(|assumed| ("assumed", assumed.clone())));
        let why = spec.why.as_deref().unwrap_or_default();
        match (&spec.shown_by, self.verdict) {
            (_, Verdict::Reproduced) => {}
            (Some(shown), _) => lines.push(("cause", format!("{why} Shown by: {shown}.").trim().to_owned())),
            (None, Verdict::Differs) if why.is_empty() => lines.push(("cause", "not found.".to_owned())),
            (None, Verdict::Differs) => lines.push(("cause", format!("not found. A guess: {why}"))),
            (None, _) if why.is_empty() => {}
            (None, _) => lines.push(("a guess", why.to_owned())),
        }
        lines
    }

    /// For machines. Values are in seconds, bit/s, packets, RTTs or plain numbers.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let spec = &self.claim.spec;
        let pairs = self.cases.iter().zip(&self.claim.readings);
        let cases: Vec<Value> = pairs
            .map(|(case, reading)| {
                let evidence = &case.evidence;
                json!({
                    "variant": case.variant, "reading": reading, "value": evidence.mean,
                    "bound": evidence.mean.map(|_| &evidence.bound),
                    "half_width": case.interval.map(|(low, high)| (high - low) / 2.0),
                    "interval": case.interval.map(|(low, high)| [low, high]),
                    "n": evidence.runs, "without_value": evidence.without, "holds": case.holds,
                })
            })
            .collect();
        let (held, failed, open) = self.counts();
        json!({
            "id": spec.id, "origin": self.claim.origin.key(), "source": spec.source, "says": spec.says,
            "expected": spec.expect, "ours": self.ours(), "verdict": self.verdict.key(),
            "conclusion": self.conclusion(), "holds": self.holds,
            "readings": { "hold": held, "do_not": failed, "open": open },
            "reading": spec.reading, "assumed": spec.assumed, "shown_by": spec.shown_by,
            "why": spec.why.as_ref().filter(|_| self.holds != Some(true)), "cases": cases,
        })
    }
}

/// A figure after its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureResult {
    /// The figure.
    pub figure: Figure,
    /// Its claims, checked.
    pub claims: Vec<ClaimResult>,
    /// Its pictures, if asked for.
    pub pictures: Vec<super::Picture>,
    /// Those that are tables as well: shares of answers.
    pub tables: Vec<super::ShareTable>,
    /// What one of its runs measured, alone.
    pub first: super::FirstRun,
    /// How often results were looked at.
    pub looks: Looks,
    /// Runs made, of all variants.
    pub simulations: usize,
    /// Data packets simulated.
    pub data_packets: u64,
    /// Virtual seconds simulated.
    pub simulated_seconds: f64,
}

impl FigureResult {
    /// For machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let figure = &self.figure;
        json!({
            "figure": figure.name, "title": figure.title, "shows": figure.shows, "notes": figure.notes,
            "hash": figure.hash, "simulations": self.simulations, "data_packets": self.data_packets,
            "claims": self.claims.iter().map(ClaimResult::to_json).collect::<Vec<_>>(),
        })
    }
}
