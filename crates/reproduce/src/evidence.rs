//! What runs say about one variant: a mean with its interval, and whether the interval is clear of
//! the bound.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use flowstart_measure::{Bound, Estimate, Measured, Statistic};

use super::expectation::Expectation;
use super::figure::Claim;

/// How certain a verdict is: 95 % for all looks at a case together (Bonferroni), and, before one
/// case of many refutes a claim, for all of its cases together.
pub(super) const ERROR: f64 = 0.05;

/// Runs with the same value in all of them that count as "always this" where runs are random.
const SAME_RUNS: usize = 6;

/// The relative error of a number that was written and read.
const LAST_DIGITS: f64 = 1e-9;

/// How runs were made, as far as an interval depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// Times that results are looked at, at most: each may err.
    pub most: usize,
    /// Nothing differs from run to run: one run says all.
    pub certain: bool,
}

/// One variant of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of the variant; empty if nothing is varied.
    pub variant: String,
    /// What the runs gave.
    pub evidence: Evidence,
    /// Half the interval that holds at 95 % for all looks together; `None` with one run.
    pub half_width: Option<f64>,
    /// Whether it is as expected; `None` without an expectation or value, or if the interval
    /// straddles the bound.
    pub holds: Option<bool>,
}

/// What the runs of a case gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Mean over the runs; `None` if there was nothing to measure.
    pub mean: Option<f64>,
    /// From which side the mean is known: "exact", "at_least" or "at_most".
    pub bound: String,
    /// Standard deviation over the runs; `None` with one.
    pub deviation: Option<f64>,
    /// Runs with a value.
    pub runs: usize,
    /// Runs (of variants, if a claim is over several) without one.
    pub without: usize,
}

/// Name of a bound in files.
fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::Exact => "exact",
        Bound::AtLeast => "at_least",
        Bound::AtMost => "at_most",
    }
}

impl Evidence {
    /// From the values of a case's runs and of those it is compared with; runs whose value is
    /// missing although they were made count.
    pub(super) fn of(claim: &Claim, own: &[Option<Measured>], other: Option<&[Option<Measured>]>) -> Self {
        let mut without = 0;
        let mut known: Vec<Measured> = Vec::new();
        for (run, own) in own.iter().enumerate() {
            let Some(other) = other else {
                known.extend(*own);
                without += usize::from(own.is_none());
                continue;
            };
            // Runs are paired; one of them may have been made more often for another claim.
            let Some(other) = other.get(run) else { break };
            let both = own.zip(*other);
            let ratio = claim.spec.ratio_to.is_some();
            let value = both.and_then(|(own, other)| if ratio { own.over(other) } else { own.minus(other) });
            known.extend(value);
            without += usize::from(value.is_none());
        }
        let values: Vec<f64> = known.iter().map(|measured| measured.value).collect();
        let has = |bound| known.iter().any(|measured| measured.bound == bound);
        let bound = match (has(Bound::AtLeast), has(Bound::AtMost)) {
            (false, false) => Bound::Exact,
            (true, false) => Bound::AtLeast,
            (false, true) => Bound::AtMost,
            // Known from neither side.
            (true, true) => return Self { without: without + known.len(), ..Self::default() },
        };
        let Some(estimate) = Estimate::of(&values) else {
            return Self { without: without.max(values.len()), ..Self::default() };
        };
        let runs = values.len();
        let squares = values.iter().map(|value| (value - estimate.mean) * (value - estimate.mean)).sum::<f64>();
        let deviation =
            (runs > 1).then(|| if estimate.min == estimate.max { 0.0 } else { (squares / (runs - 1) as f64).sqrt() });
        Self { mean: Some(estimate.mean), bound: bound_name(bound).to_owned(), deviation, runs, without }
    }

    /// The mean, and from which side it is known.
    #[must_use]
    pub fn value(&self) -> Option<Measured> {
        let bound = match self.bound.as_str() {
            "at_least" => Bound::AtLeast,
            "at_most" => Bound::AtMost,
            _ => Bound::Exact,
        };
        self.mean.map(|value| Measured { value, bound })
    }

    /// True if it is the same but for the last digits, which a text file may lose.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= LAST_DIGITS * a.abs().max(b.abs()).max(f64::MIN_POSITIVE),
            (a, b) => a.is_none() && b.is_none(),
        };
        let counts = |one: &Self| (one.runs, one.without, one.bound.clone());
        close(self.mean, other.mean) && close(self.deviation, other.deviation) && counts(self) == counts(other)
    }

    /// Half of the interval that errs this seldom, by Student's t distribution.
    fn half_width(&self, error: f64) -> Option<f64> {
        let deviation = self.deviation.filter(|_| self.runs > 1)?;
        if deviation == 0.0 {
            return Some(0.0);
        }
        let t = StudentsT::new(0.0, 1.0, (self.runs - 1) as f64).ok()?.inverse_cdf(1.0 - error / 2.0);
        Some(t * deviation / (self.runs as f64).sqrt())
    }

    /// Whether all of the interval that errs this seldom is as expected, or none of it.
    fn clear(&self, expectation: &Expectation, looks: Looks, error: f64) -> Option<bool> {
        let value = self.value()?;
        // Those that say nothing might have said the opposite.
        if self.without > 0 {
            return None;
        }
        if looks.certain {
            return expectation.holds(value);
        }
        if self.deviation == Some(0.0) && self.runs < SAME_RUNS {
            return None;
        }
        let half = self.half_width(error)?;
        let at = |end: f64| Measured { value: end, bound: value.bound };
        expectation.of_interval(at(value.value - half), at(value.value + half))
    }

    /// Whether it is as expected, for one of `cases` that must all be.
    pub(super) fn holds(&self, expectation: &Expectation, looks: Looks, cases: usize) -> Option<bool> {
        let error = ERROR / looks.most.max(1) as f64;
        match self.clear(expectation, looks, error) {
            Some(false) => self.clear(expectation, looks, error / cases.max(1) as f64),
            other => other,
        }
    }

    /// Half of the interval that holds at 95 % for all looks together.
    pub(super) fn half_of_all(&self, looks: Looks) -> Option<f64> {
        if looks.certain { None } else { self.half_width(ERROR / looks.most.max(1) as f64) }
    }
}

/// One value per run for many variants: the claim's statistic over those that have one, and how
/// many had none. Runs that not every variant has made are left out.
pub(super) fn together(statistic: Statistic, variants: &[Vec<Option<Measured>>]) -> (Vec<Option<Measured>>, usize) {
    let runs = variants.iter().map(Vec::len).min().unwrap_or(0);
    let mut without = 0;
    let of_run = |run: usize| {
        let known = variants.iter().filter_map(|runs| runs.get(run).copied().flatten());
        let mut values: Vec<f64> = known.map(|measured| measured.value).collect();
        without += variants.len() - values.len();
        statistic.of(&mut values).map(Measured::exact)
    };
    ((0..runs).map(of_run).collect(), without)
}
