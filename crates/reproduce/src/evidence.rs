//! What runs say about one variant: a mean with its interval, and whether the interval is clear of
//! the bound.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF, StudentsT};

use flowstart_measure::{Bound, Estimate, Measured, Statistic};

use super::expectation::Expectation;
use super::figure::Claim;
use super::replication::MOST_RUNS;

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
    /// Ends of the interval that holds at 95 % for all looks together; `None` with one run.
    pub interval: Option<(f64, f64)>,
    /// Whether it is as expected; `None` without an expectation or value, or if the interval
    /// straddles the bound.
    pub holds: Option<bool>,
}

/// What the values of a case's runs are, as far as an interval depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Any numbers.
    Numbers,
    /// Shares of so many answers in every run, each yes or no.
    Answers(usize),
}

impl Values {
    /// Of a claim's cases.
    pub(super) fn of(claim: &Claim) -> Self {
        let spec = &claim.spec;
        let compared = spec.ratio_to.is_some() || spec.minus.is_some();
        match spec.over_variants {
            _ if compared || !spec.measure.is_share_of_answers() => Self::Numbers,
            None => Self::Answers(1),
            Some(Statistic::Mean) => Self::Answers(claim.cases.len()),
            Some(_) => Self::Numbers,
        }
    }
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

/// True if two numbers are the same but for the last digits, which a text file may lose.
pub(super) fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= LAST_DIGITS * a.abs().max(b.abs()).max(f64::MIN_POSITIVE)
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

    /// False for what no runs give, as a file that was changed by hand may say.
    pub(super) fn is_possible(&self) -> bool {
        let Some(mean) = self.mean else { return self.runs == 0 && self.deviation.is_none() };
        let known = [Bound::Exact, Bound::AtLeast, Bound::AtMost].map(bound_name).contains(&self.bound.as_str());
        let spread = match self.deviation {
            Some(deviation) => self.runs > 1 && deviation.is_finite() && deviation >= 0.0,
            None => self.runs == 1,
        };
        mean.is_finite() && known && spread && self.runs as u64 <= MOST_RUNS
    }

    /// In words: mean, deviation and runs.
    pub(super) fn words(&self) -> String {
        let number = |value: Option<f64>| value.map_or("nothing".to_owned(), |value| value.to_string());
        let without = if self.without > 0 { format!(", {} without", self.without) } else { String::new() };
        let (mean, deviation) = (number(self.mean), number(self.deviation));
        format!("{mean} {} (deviation {deviation}, {} runs{without})", self.bound, self.runs)
    }

    /// True if it is the same but for the last digits, which a text file may lose.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => is_close(a, b),
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

    /// Ends of the interval that errs this seldom; `None` with one run.
    ///
    /// That of numbers is over runs. Answers that are the same in all runs have no spread and yet
    /// are few: theirs reaches as far as the exact interval over all answers does, too.
    fn interval(&self, values: Values, error: f64) -> Option<(f64, f64)> {
        let (mean, half) = (self.mean?, self.half_width(error)?);
        let (low, high) = (mean - half, mean + half);
        let Values::Answers(each) = values else { return Some((low, high)) };
        let (exact_low, exact_high) = exact_interval(mean, self.answers(each), error)?;
        Some((low.max(0.0).min(exact_low), high.min(1.0).max(exact_high)))
    }

    /// Answers in all runs, so many in each.
    pub(super) fn answers(&self, each: usize) -> usize {
        self.runs * each
    }

    /// Whether all of the interval that errs this seldom is as expected, or none of it.
    fn clear(&self, expectation: &Expectation, looks: Looks, values: Values, error: f64) -> Option<bool> {
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
        let (low, high) = self.interval(values, error)?;
        let at = |end: f64| Measured { value: end, bound: value.bound };
        expectation.of_interval(at(low), at(high))
    }

    /// Whether it is as expected, for one of `cases` that must all be.
    pub(super) fn holds(&self, expectation: &Expectation, looks: Looks, values: Values, cases: usize) -> Option<bool> {
        let error = ERROR / looks.most.max(1) as f64;
        match self.clear(expectation, looks, values, error) {
            Some(false) => self.clear(expectation, looks, values, error / cases.max(1) as f64),
            other => other,
        }
    }

    /// Ends of the interval that holds at 95 % for all looks together.
    pub(super) fn interval_of_all(&self, looks: Looks, values: Values) -> Option<(f64, f64)> {
        if looks.certain { None } else { self.interval(values, ERROR / looks.most.max(1) as f64) }
    }
}

/// Ends of the interval of a share of `of` answers, each yes or no, that errs this seldom whatever
/// the share is: that of Clopper and Pearson, "The use of confidence or fiducial limits illustrated
/// in the case of the binomial", Biometrika 26 (1934). Where answers are not all equally likely
/// yes it errs less (Hoeffding, "On the distribution of the number of successes in independent
/// trials", Ann. Math. Stat. 27 (1956)).
pub(super) fn exact_interval(share: f64, of: usize, error: f64) -> Option<(f64, f64)> {
    let of = of as f64;
    let yes = share * of;
    let end = |a: f64, b: f64, below: f64| Some(Beta::new(a, b).ok()?.inverse_cdf(below));
    // A share that was summed up misses 0 and 1 by less than a part of an answer.
    let low = if yes < LAST_DIGITS * of { 0.0 } else { end(yes, of - yes + 1.0, error / 2.0)? };
    let high = if of - yes < LAST_DIGITS * of { 1.0 } else { end(yes + 1.0, of - yes, 1.0 - error / 2.0)? };
    Some((low, high))
}

/// One value per run for many variants: the claim's statistic over those that have one, and how
/// many had none. Runs that not every variant has made are left out.
pub(super) fn together(statistic: Statistic, variants: &[Vec<Option<Measured>>]) -> (Vec<Option<Measured>>, usize) {
    let runs = variants.iter().map(Vec::len).min().unwrap_or(0);
    let mut without = 0;
    let of_run = |run: usize| {
        let values: Vec<Measured> = variants.iter().filter_map(|runs| runs.get(run).copied().flatten()).collect();
        without += variants.len() - values.len();
        statistic.of_measured(&values)
    };
    ((0..runs).map(of_run).collect(), without)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_measure::Dimension;

    fn evidence(mean: f64, deviation: f64, runs: usize) -> Evidence {
        Evidence { mean: Some(mean), bound: "exact".to_owned(), deviation: Some(deviation), runs, without: 0 }
    }

    const ONCE: Looks = Looks { most: 1, certain: false };

    #[test]
    fn exact_intervals_are_those_of_the_binomial_distribution() {
        // None of n: the upper end is what n failures in a row have half of the error left for.
        for n in [1, 12, 162, 1728, 30_000] {
            let (low, high) = exact_interval(0.0, n, 0.05).unwrap();
            let expected = 1.0 - 0.025_f64.powf(1.0 / n as f64);
            assert!(low == 0.0 && (high / expected - 1.0).abs() < 1e-7, "{n}: {high} {expected}");
            let (low, high) = exact_interval(1.0, n, 0.05).unwrap();
            assert!(high == 1.0 && (low / (1.0 - expected) - 1.0).abs() < 1e-7, "{n}: {low}");
        }
        // At either end, so many answers or more, or so many or fewer, have half of the error.
        for (yes, n) in [(1, 10), (3, 864), (38, 1296), (15, 288), (5, 10)] {
            let (low, high) = exact_interval(f64::from(yes) / f64::from(n), n as usize, 0.05).unwrap();
            let at_most = |k: i32, p: f64| {
                let mut term = (1.0 - p).powi(n);
                let mut sum = term;
                for j in 1..=k {
                    term *= f64::from(n - j + 1) / f64::from(j) * p / (1.0 - p);
                    sum += term;
                }
                sum
            };
            assert!((at_most(yes, high) - 0.025).abs() < 1e-7, "{yes} of {n}: {high}");
            assert!((1.0 - at_most(yes - 1, low) - 0.025).abs() < 1e-7, "{yes} of {n}: {low}");
        }
    }

    /// A mean with a part that is only known to be late was exact.
    #[test]
    fn what_variants_give_together_is_known_from_the_side_that_they_are() {
        let late = Measured { value: 3.0, bound: Bound::AtLeast };
        let variants = [vec![Some(Measured::exact(1.0)); 2], vec![Some(late), None]];
        let (values, without) = together(Statistic::Mean, &variants);
        assert_eq!(values, [Some(Measured { value: 2.0, bound: Bound::AtLeast }), Some(Measured::exact(1.0))]);
        assert_eq!(without, 1);
        assert_eq!(together(Statistic::Quantile(0.0), &variants).0[0], Some(Measured::exact(1.0)));
    }

    #[test]
    fn the_same_answers_in_all_runs_are_no_more_than_so_many_answers() {
        let seldom = Expectation::parse("<= 0.1 %", Dimension::Share).unwrap();
        let never = evidence(0.0, 0.0, 12);
        // 1728 answers leave up to 0.21 %, 36 864 up to 0.01 %.
        assert_eq!(never.holds(&seldom, ONCE, Values::Answers(144), 1), None);
        assert_eq!(never.holds(&seldom, ONCE, Values::Answers(3072), 1), Some(true));
        // Numbers that are always the same are a rule, not a count.
        assert_eq!(never.holds(&seldom, ONCE, Values::Numbers, 1), Some(true));
        // "Always" can be refuted and never be shown.
        let always = Expectation::parse(">= 100 %", Dimension::Share).unwrap();
        assert_eq!(evidence(1.0, 0.0, 1000).holds(&always, ONCE, Values::Answers(1000), 1), None);
        assert_eq!(evidence(0.99, 0.01, 100).holds(&always, ONCE, Values::Answers(10), 1), Some(false));
        // Half of answers that differ much from run to run: their spread counts.
        let half = evidence(0.5, 0.5, 12).interval(Values::Answers(1000), 0.05).unwrap();
        assert!(half.0 < 0.2 && half.1 > 0.8, "{half:?}");
        // No share is less than none or more than all.
        let wide = evidence(0.001, 0.01, 3).interval(Values::Answers(1000), 0.05).unwrap();
        assert_eq!(wide.0, 0.0);
    }
}
