//! What the fair share of a path could have carried, if its capacity changes.

use flowstart_units::{Rate, Span, Time};

/// The rate at every moment, and what it carries between two of them. Times are after t = 0 of the
/// measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    steps: Vec<Step>,
    /// Length of a repetition in ns, and the bytes of one.
    period: Option<(u64, f64)>,
    /// t = 0 of the measures.
    origin: Time,
}

/// From a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// In ns from the start of the run or of a repetition.
    at: u64,
    /// Bytes per ns.
    rate: f64,
    /// Bytes of the steps before.
    before: f64,
}

impl Moments {
    /// Of a rate in steps, in order of time, the first at time 0; after `period` (if any) they
    /// start again. `share` of it counts. `origin` is t = 0 of the measures. `None` if the rate is
    /// always the same.
    #[must_use]
    pub fn new(steps: &[(Time, Rate)], period: Option<Span>, share: f64, origin: Time) -> Option<Self> {
        let (_, first) = steps.first()?;
        if steps.iter().all(|(_, rate)| rate == first) {
            return None;
        }
        let mut known: Vec<Step> = Vec::with_capacity(steps.len());
        for (at, rate) in steps {
            let at = at.since(Time::ZERO).as_nanos();
            let before = known.last().map_or(0.0, |last| last.by(at));
            known.push(Step { at, rate: rate.as_bps() as f64 / 8e9 * share, before });
        }
        let period = period.map(Span::as_nanos).filter(|period| *period > 0);
        let period = period.zip(known.last().copied()).map(|(period, last)| (period, last.by(period)));
        Some(Self { steps: known, period, origin })
    }

    /// Bytes from the start of the run on.
    fn by(&self, at: u64) -> f64 {
        let (whole, at) = match self.period {
            Some((period, bytes)) => ((at / period) as f64 * bytes, at % period),
            None => (0.0, at),
        };
        let step = self.steps[self.steps.partition_point(|step| step.at <= at).max(1) - 1];
        whole + step.by(at)
    }

    /// Bytes between two times.
    #[must_use]
    pub fn between(&self, from: Span, to: Span) -> f64 {
        let at = |t: Span| (self.origin + t).since(Time::ZERO).as_nanos();
        self.by(at(to)) - self.by(at(from))
    }

    /// Bytes in the time `width` before `t`, which may begin before t = 0. What would lie before
    /// the run counts as what came first in it.
    #[must_use]
    pub fn before(&self, t: Span, width: Span) -> f64 {
        let end = (self.origin + t).since(Time::ZERO).as_nanos();
        let missing = width.as_nanos().saturating_sub(end);
        self.by(end) - self.by(end.saturating_sub(width.as_nanos())) + self.steps[0].rate * missing as f64
    }
}

impl Step {
    fn by(&self, at: u64) -> f64 {
        self.before + self.rate * at.saturating_sub(self.at) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(ms: u64) -> Time {
        Time::ZERO + MS(ms)
    }

    /// 8 Mbit/s are 1000 bytes in a millisecond.
    fn moments(period: Option<Span>, origin: u64) -> Moments {
        let steps = [(at(0), Rate::from_mbps(8)), (at(10), Rate::ZERO), (at(30), Rate::from_mbps(16))];
        Moments::new(&steps, period, 0.5, at(origin)).unwrap()
    }

    fn about(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value}, expected {expected}");
    }

    #[test]
    fn bytes_are_those_of_the_steps_that_lie_between() {
        let once = moments(None, 5);
        about(once.between(Span::ZERO, MS(5)), 2_500.0);
        about(once.between(MS(5), MS(25)), 0.0);
        about(once.between(MS(15), MS(95)), 70.0 * 1_000.0);
        let repeating = moments(Some(MS(40)), 0);
        about(repeating.between(MS(35), MS(55)), 5_000.0 + 5_000.0);
        about(repeating.between(Span::ZERO, MS(4000)), 100.0 * 15_000.0);
    }

    #[test]
    fn what_lies_before_the_measures_counts_and_before_the_run_as_at_its_start() {
        about(moments(None, 35).before(Span::ZERO, MS(10)), 5_000.0);
        about(moments(None, 5).before(Span::ZERO, MS(20)), 10_000.0);
    }

    #[test]
    fn a_rate_that_is_always_the_same_has_no_moments() {
        let same = [(at(0), Rate::from_mbps(8)), (at(10), Rate::from_mbps(8))];
        assert_eq!(Moments::new(&same, None, 1.0, Time::ZERO), None);
        assert_eq!(Moments::new(&[], None, 1.0, Time::ZERO), None);
    }
}
