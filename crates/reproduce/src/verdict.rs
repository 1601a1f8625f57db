//! From measured values to verdicts.

use serde_json::{Value, json};

use super::figure::{Claim, Figure};
use flowstart_measure::{Bound, Estimate, Measured, Statistic};

/// What came out of checking a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours is as the paper says.
    Reproduced,
    /// Ours is not as the paper says.
    Differs,
    /// The paper leaves something open that had to be assumed.
    UnderSpecified,
}

impl Verdict {
    /// The word in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::UnderSpecified => "under-specified",
        }
    }
}

/// One variant of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of the variant; empty if nothing is varied.
    pub variant: String,
    /// Mean over the runs; `None` if there was nothing to measure.
    pub value: Option<Measured>,
    /// Half the 95 % interval over the runs; `None` with one run.
    pub half_width: Option<f64>,
    /// Runs with a value.
    pub runs: usize,
    /// Whether it is as expected; `None` without an expectation or value, or if too little is known
    /// of it.
    pub holds: Option<bool>,
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

/// The value of a case from the values of its runs and of those it is compared with.
pub(super) fn case(claim: &Claim, variant: &str, own: &[Option<Measured>], other: Option<&[Option<Measured>]>) -> Case {
    let combined: Vec<Measured> = own
        .iter()
        .enumerate()
        .filter_map(|(run, own)| {
            let own = (*own)?;
            match other {
                None => Some(own),
                Some(other) => {
                    let other = other.get(run).copied().flatten()?;
                    if claim.spec.ratio_to.is_some() { own.over(other) } else { own.minus(other) }
                }
            }
        })
        .collect();
    let values: Vec<f64> = combined.iter().map(|measured| measured.value).collect();
    let estimate = Estimate::of(&values);
    let bound = |bound| combined.iter().any(|measured| measured.bound == bound);
    let value = estimate.and_then(|estimate| {
        let bound = match (bound(Bound::AtLeast), bound(Bound::AtMost)) {
            (false, false) => Bound::Exact,
            (true, false) => Bound::AtLeast,
            (false, true) => Bound::AtMost,
            (true, true) => return None,
        };
        Some(Measured { value: estimate.mean, bound })
    });
    let holds = claim.expectation.as_ref().zip(value).and_then(|(expectation, value)| expectation.holds(value));
    let half_width = estimate.and_then(|estimate| estimate.half_width);
    Case { variant: variant.to_owned(), value, half_width, runs: values.len(), holds }
}

/// One value per run for many variants: the claim's statistic over those that have one.
pub(super) fn together(statistic: Statistic, variants: &[Vec<Option<Measured>>]) -> Vec<Option<Measured>> {
    let runs = variants.iter().map(Vec::len).max().unwrap_or(0);
    let of_run = |run: usize| {
        let mut values: Vec<f64> = variants
            .iter()
            .filter_map(|runs| runs.get(run).copied().flatten())
            .map(|measured| measured.value)
            .collect();
        statistic.of(&mut values).map(Measured::exact)
    };
    (0..runs).map(of_run).collect()
}

/// Whether all of them are as expected; `None` if that is not known.
fn all_hold(cases: &[Case]) -> Option<bool> {
    if cases.iter().any(|case| case.holds == Some(false)) {
        Some(false)
    } else {
        cases.iter().all(|case| case.holds == Some(true)).then_some(true)
    }
}

impl ClaimResult {
    pub(super) fn new(claim: Claim, cases: Vec<Case>) -> Self {
        let holds = all_hold(&cases);
        let mut result = Self { claim, cases, holds, verdict: Verdict::Differs };
        if result.claim.spec.assumed.is_some() {
            result.verdict = Verdict::UnderSpecified;
        } else if holds == Some(true) {
            result.verdict = Verdict::Reproduced;
        } else if result.readings().iter().any(|(_, holds)| *holds) {
            result.verdict = Verdict::UnderSpecified;
        }
        result
    }

    /// Each reading of the paper, and whether all of its cases are as expected.
    fn readings(&self) -> Vec<(&[String], bool)> {
        let mut readings: Vec<(&[String], bool)> = Vec::new();
        for (reading, case) in self.claim.readings.iter().zip(&self.cases) {
            let holds = case.holds == Some(true);
            match readings.iter_mut().find(|(known, _)| *known == reading.as_slice()) {
                Some((_, all)) => *all &= holds,
                None => readings.push((reading, holds)),
            }
        }
        readings
    }

    /// In how many readings it holds, and in which: by the open factor that makes the greatest
    /// difference.
    fn in_readings(&self) -> String {
        let readings = self.readings();
        let held = |readings: &[bool]| readings.iter().filter(|holds| **holds).count();
        let all: Vec<bool> = readings.iter().map(|(_, holds)| *holds).collect();
        let mut greatest: Option<(f64, String)> = None;
        for factor in 0..readings.first().map_or(0, |(titles, _)| titles.len()) {
            let mut levels: Vec<(&str, Vec<bool>)> = Vec::new();
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
                    let count = |of_level: &[bool]| format!("{} of {}", held(of_level), of_level.len());
                    levels.iter().map(|(title, of_level)| format!("{title}: {}", count(of_level))).collect()
                };
                greatest = Some((most - least, counts.join(", ")));
            }
        }
        let which = greatest.map(|(_, counts)| format!(" ({counts})")).unwrap_or_default();
        format!("holds in {} of {} readings{which}", held(&all), all.len())
    }

    /// What the paper says, as a value.
    #[must_use]
    pub fn expected(&self) -> &str {
        self.claim.spec.expect.as_deref().unwrap_or("not said")
    }

    /// What was measured: a value with its interval, or the range of several.
    #[must_use]
    pub fn ours(&self) -> String {
        let dimension = self.claim.dimension;
        match self.cases.as_slice() {
            [one] => match (one.value, one.half_width) {
                (None, _) => "nothing to measure".to_owned(),
                (Some(value), Some(half)) if half > 0.0 => {
                    format!("{} ± {}", value.show(dimension), dimension.show(half))
                }
                (Some(value), _) => value.show(dimension),
            },
            several => {
                let mut values: Vec<Measured> = several.iter().filter_map(|case| case.value).collect();
                values.sort_by(|a, b| a.value.total_cmp(&b.value));
                let (Some(first), Some(last)) = (values.first(), values.last()) else {
                    return "nothing to measure".to_owned();
                };
                let range = format!("{} … {}", first.show(dimension), last.show(dimension));
                let missing = several.len() - values.len();
                let missing = if missing > 0 { format!(", {missing} without") } else { String::new() };
                format!("{range} ({} cases{missing})", several.len())
            }
        }
    }

    /// The verdict with what belongs to it: by how much it differs, how many cases.
    #[must_use]
    pub fn conclusion(&self) -> String {
        let word = self.verdict.name();
        match (self.verdict, self.holds) {
            (Verdict::Reproduced, _) => match self.readings().len() {
                0 | 1 => word.to_owned(),
                readings => format!("{word} in all {readings} readings"),
            },
            (Verdict::UnderSpecified, _) if self.claim.spec.assumed.is_none() => {
                format!("{word}: {}", self.in_readings())
            }
            (Verdict::UnderSpecified, None) => word.to_owned(),
            (Verdict::UnderSpecified, Some(true)) => format!("{word}; holds under the assumption"),
            (Verdict::UnderSpecified, Some(false)) => {
                format!("{word}; does not hold under the assumption: {}", self.by())
            }
            (Verdict::Differs, None) => format!("{word}: too little is known"),
            (Verdict::Differs, Some(_)) => format!("{word}: {}", self.by()),
        }
    }

    /// By how much the value (of several the one furthest off) misses what was expected.
    fn by(&self) -> String {
        let Some(expectation) = &self.claim.expectation else { return String::new() };
        let values = self.cases.iter().filter_map(|case| case.value).map(|measured| measured.value);
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
            let failed = self.cases.iter().filter(|case| case.holds == Some(false)).count();
            text = format!("in {failed} of {} cases, at most {text}", self.cases.len());
        }
        text
    }

    /// The explanation that belongs to the verdict, if the file has one.
    #[must_use]
    pub fn explanation(&self) -> Vec<(&'static str, &str)> {
        let spec = &self.claim.spec;
        let mut lines = Vec::new();
        if let Some(reading) = &spec.reading {
            lines.push(("reading", reading.as_str()));
        }
        if let Some(assumed) = &spec.assumed {
            lines.push(("assumed", assumed.as_str()));
        }
        if let Some(why) = spec.why.as_ref().filter(|_| self.holds != Some(true)) {
            lines.push(("why", why.as_str()));
        }
        lines
    }

    /// For machines. Values are in seconds, bit/s, packets, RTTs or plain numbers.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let spec = &self.claim.spec;
        let bound = |measured: Measured| match measured.bound {
            Bound::Exact => "exact",
            Bound::AtLeast => "at_least",
            Bound::AtMost => "at_most",
        };
        let cases: Vec<Value> = self
            .cases
            .iter()
            .zip(&self.claim.readings)
            .map(|(case, reading)| {
                json!({
                    "variant": case.variant,
                    "reading": reading,
                    "value": case.value.map(|measured| measured.value),
                    "bound": case.value.map(bound),
                    "half_width": case.half_width,
                    "runs": case.runs,
                    "holds": case.holds,
                })
            })
            .collect();
        json!({
            "id": spec.id, "source": spec.source, "says": spec.says, "expected": spec.expect,
            "ours": self.ours(), "verdict": self.verdict.name(), "conclusion": self.conclusion(), "holds": self.holds,
            "reading": spec.reading, "assumed": spec.assumed,
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
            "hash": figure.hash, "simulations": figure.simulations(), "data_packets": self.data_packets,
            "claims": self.claims.iter().map(ClaimResult::to_json).collect::<Vec<_>>(),
        })
    }
}
