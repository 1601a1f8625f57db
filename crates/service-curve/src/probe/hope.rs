//! When the rest of a train will not decide its rate.

use flowstart_units::Span;

use super::{OnUnitRoot, Probing};
use crate::Probability;
use crate::stats::Runs;

/// When a rate is given up before its time is over.
///
/// A rate is given up if all of this holds at a look after
/// [`overload_after`](super::ProbeConfig::overload_after), and enough of the budget is left:
///
/// - its delays do not seem to grow, so that it is not about to be too high;
/// - samples as far apart as those of the whole budget will be dependent still. Of all mixtures of
///   exponential memories with the same correlation now, a single one has forgotten most by then
///   (Jensen's inequality), so that the correlation is at least a power of that of now;
/// - all that is measured by then will not be worth enough dependent samples either.
///
/// Then the train ends there, and what is said of it is what is said of any train that ends. So
/// nothing is accepted, nor too high, that would not be so of a train of that length; what may be
/// missed is a rate that would have been decided after all. Only with
/// [`OnUnitRoot::Evidence`](super::OnUnitRoot::Evidence): otherwise what looks like a random walk
/// when it ends is too high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GiveUp {
    /// How long the train can be measured at most.
    pub budget: Span,
    /// How many standard deviations the runs of samples spread over all of the budget will be too
    /// few at least; default 3 (chosen: 1.96 are refused, and one more is chance; with the two of
    /// [`Self::unsure`] a rate in fifty at most would have been decided).
    pub dependence: f64,
    /// What the whole budget will be worth in proportion is taken so many times, since it is known
    /// badly; default 1.5 (chosen).
    pub worth: f64,
    /// Delays that grow so much by chance with at most this probability may be about to be too
    /// high; default 20 % (chosen).
    pub growth: Probability,
    /// The budget must be so many times what was measured, else the rest is measured, too; default
    /// 1.5 (chosen: a third of it is left).
    pub left: f64,
    /// So many standard deviations the correlation of now may be overestimated; default 2 (chosen).
    pub unsure: f64,
}

impl GiveUp {
    /// The defaults, for trains that can be measured for so long.
    #[must_use]
    pub fn within(budget: Span) -> Self {
        let growth = Probability::TWENTY_PERCENT;
        Self { budget, dependence: 3.0, worth: 1.5, growth, left: 1.5, unsure: 2.0 }
    }

    pub(super) fn makes_sense(&self) -> bool {
        [self.dependence, self.worth, self.left, self.unsure].iter().all(|number| *number >= 0.0)
    }

    /// True if a train of which growth is seen after so long can be given up at all.
    #[must_use]
    pub fn can_be(&self, overload_after: Span) -> bool {
        self.budget.as_secs_f64() >= overload_after.as_secs_f64() * self.left
    }
}

impl<I: Iterator<Item = Span>> Probing<'_, I> {
    /// True if the rest of the budget will not decide.
    pub(super) fn is_hopeless(&self) -> bool {
        let (Some(give_up), Some(runs)) = (self.config.give_up, self.tests.independence) else { return false };
        let measured = self.sampler.measured();
        let ratio = give_up.budget.as_secs_f64() / measured.as_secs_f64();
        let evidence = self.config.on_unit_root == OnUnitRoot::Evidence;
        if !evidence || measured < self.config.overload_after || ratio < give_up.left || self.passed.is_some() {
            return false;
        }
        still_dependent(&runs, ratio, give_up.unsure) >= give_up.dependence
            && self.chance() > give_up.growth.get()
            && !(self.config.dependent && self.suffices(self.worth() * ratio * give_up.worth))
    }
}

/// By how many standard deviations runs will be too few, at least, of as many samples that are so
/// many times further apart.
/// `unsure` as in [`GiveUp::unsure`].
fn still_dependent(runs: &Runs, further: f64, unsure: f64) -> f64 {
    let samples = (runs.upper + runs.lower) as f64;
    // Of the classes of two neighbours: 0 if they are independent, 1 if they are always the same.
    let correlation = 1.0 - runs.runs as f64 / runs.mean - unsure / samples.sqrt();
    samples.sqrt() * libm::pow(correlation.max(0.0), further)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Cut, Series, runs_test};

    #[test]
    fn numbers_that_are_none_or_negative_are_refused() {
        let right = GiveUp::within(Span::from_secs(9));
        let refused = |give_up| {
            let config = crate::ProbeConfig { give_up: Some(give_up), ..crate::ProbeConfig::default() };
            matches!(config.validate(), Err(crate::Error::InvalidConfig("give_up", _)))
        };
        assert!(!refused(right));
        for wrong in [-0.1, f64::NAN] {
            assert!(refused(GiveUp { dependence: wrong, ..right }) && refused(GiveUp { worth: wrong, ..right }));
            assert!(refused(GiveUp { left: wrong, ..right }) && refused(GiveUp { unsure: wrong, ..right }));
        }
    }

    #[test]
    fn whether_any_train_can_be_given_up_is_a_matter_of_what_is_left_when_growth_would_be_seen() {
        let give_up = GiveUp::within(Span::from_secs(900));
        assert!(give_up.can_be(Span::from_secs(600)) && !give_up.can_be(Span::from_secs(601)));
        assert!(!GiveUp { left: 2.0, ..give_up }.can_be(Span::from_secs(600)));
    }

    #[test]
    fn what_is_correlated_now_will_be_by_a_power_of_it() {
        // 400 samples in 50 blocks of eight: neighbours differ in 49 of 399 places.
        let values = (0..400).map(|n| f64::from(n / 8 % 2)).collect();
        let runs = runs_test(&Series::new(values).unwrap(), Cut::Median).unwrap();
        assert_eq!((runs.runs, runs.mean), (50, 201.0));
        let correlation: f64 = 1.0 - 50.0 / 201.0 - 0.1;
        for (further, expected) in [(1.0, 20.0 * correlation), (3.0, 20.0 * correlation * correlation * correlation)] {
            assert!((still_dependent(&runs, further, 2.0) - expected).abs() < 1e-9, "{further}");
        }
        // As many runs as there can be: nothing is left of it.
        let values = (0..400).map(|n| f64::from(n % 2)).collect();
        let runs = runs_test(&Series::new(values).unwrap(), Cut::Median).unwrap();
        assert_eq!(still_dependent(&runs, 3.0, 2.0), 0.0);
    }
}
