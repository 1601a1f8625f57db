//! Service curves: how much is served at least, how soon.

use flowstart_units::{Rate, Span};

use crate::Probability;

/// What one probing rate tells: a constant-rate flow of `rate` is delayed by more than `delay` with
/// probability epsilon' at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The probing rate r.
    pub rate: Rate,
    /// The delay quantile W'(r).
    pub delay: Span,
}

impl Line {
    fn bps(self) -> f64 {
        self.rate.as_bps() as f64
    }

    /// r (t - W), bits; negative before W.
    fn at(self, seconds: f64) -> f64 {
        self.bps() * (seconds - self.delay.as_secs_f64())
    }

    /// The backlog quantile B'(r) = r W'(r) of a constant-rate flow, bits.
    #[must_use]
    pub fn backlog(self) -> f64 {
        self.bps() * self.delay.as_secs_f64()
    }
}

/// An epsilon-effective service curve (Luebben and Fidler, "A benchmark for the performance of
/// time-varying closed-loop flow control with application to TCP", equation 7): S(t) = max over the
/// probing rates r of r (t - W'(r)), and 0.
///
/// This is the inverse Legendre transform of the backlog quantiles, so it is convex: of a service
/// with bursts or steps it is the largest convex curve below. In any interval that ends at a given
/// time, and in all of them together, the flow control serves at least S of the interval's length,
/// except with probability [`ServiceCurve::epsilon`].
///
/// Data are bits as `f64`; a rate is exact up to 2^53 bit/s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceCurve {
    /// The lines that are the largest somewhere, by rate.
    lines: Vec<Line>,
    epsilon: Probability,
}

impl ServiceCurve {
    /// The curve of the `lines` of all probing rates, in any order, each of which fails with
    /// probability `epsilon_per_rate`. Lines of rate zero say nothing and are left out; of no lines
    /// the curve is zero.
    #[must_use]
    pub fn new(lines: &[Line], epsilon_per_rate: Probability) -> Self {
        let mut sorted: Vec<Line> = lines.iter().copied().filter(|line| line.rate.as_bps() > 0).collect();
        let epsilon = epsilon_per_rate.times(sorted.len());
        sorted.sort_by_key(|line| (line.rate, line.delay));
        sorted.dedup_by_key(|line| line.rate);
        Self { lines: lower_hull(&sorted), epsilon }
    }

    /// The same curve with another violation probability, for one that was calibrated jointly.
    #[must_use]
    pub fn with_epsilon(self, epsilon: Probability) -> Self {
        Self { epsilon, ..self }
    }

    /// The lines that are the largest somewhere, by increasing rate (and delay). Other probing
    /// rates do not matter to the curve.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How probably the whole curve is violated at most: the union bound, number of probing rates
    /// times epsilon', unless it was set.
    #[must_use]
    pub fn epsilon(&self) -> Probability {
        self.epsilon
    }

    /// S(t), bits served at least in an interval of length `t`.
    #[must_use]
    pub fn service(&self, t: Span) -> f64 {
        self.service_secs(t.as_secs_f64())
    }

    pub(crate) fn service_secs(&self, seconds: f64) -> f64 {
        self.lines.iter().map(|line| line.at(seconds)).fold(0.0, f64::max)
    }

    /// The attainable rate a(t) = S(t) / t in bit/s (equation 8): the mean rate that an interval of
    /// length `t` has at least; 0 for `t` = 0. It grows with `t`, from 0 up to [`Self::origin`],
    /// towards [`Self::long_term_rate`].
    #[must_use]
    pub fn attainable_rate(&self, t: Span) -> f64 {
        let seconds = t.as_secs_f64();
        if seconds > 0.0 { self.service_secs(seconds) / seconds } else { 0.0 }
    }

    /// The time after which `bits` are served, min over r of W'(r) + bits / r, rounded up;
    /// [`Span::MAX`] if no rate could be probed.
    #[must_use]
    pub fn inverse(&self, bits: f64) -> Span {
        ceil(self.inverse_secs(bits))
    }

    pub(crate) fn inverse_secs(&self, bits: f64) -> f64 {
        let time = |line: &Line| line.delay.as_secs_f64() + bits.max(0.0) / line.bps();
        self.lines.iter().map(time).fold(f64::INFINITY, f64::min)
    }

    /// Up to this length of an interval nothing is guaranteed: the smallest delay quantile. `None`
    /// if no rate could be probed.
    #[must_use]
    pub fn origin(&self) -> Option<Span> {
        self.lines.first().map(|line| line.delay)
    }

    /// The attainable rate of infinitely long intervals: the largest probed rate; zero if there is
    /// none.
    #[must_use]
    pub fn long_term_rate(&self) -> Rate {
        self.lines.last().map_or(Rate::from_bps(0), |line| line.rate)
    }

    /// Lengths of intervals at which one line takes over from the next slower one, after the
    /// origin; increasing.
    #[must_use]
    pub fn breakpoints(&self) -> Vec<Span> {
        let meet = |pair: &[Line]| (pair[1].backlog() - pair[0].backlog()) / (pair[1].bps() - pair[0].bps());
        self.lines.windows(2).map(|pair| Span::from_secs_f64(meet(pair))).collect()
    }

    /// The shortest length of interval from which on the attainable rate is at least `fraction` (0
    /// ..= 1) of the long-term rate, to the nanosecond; `None` if it never is.
    #[must_use]
    pub fn time_to_fraction(&self, fraction: f64) -> Option<Span> {
        let goal = fraction * self.long_term_rate().as_bps() as f64;
        // r (1 - W / t) >= goal from t = r W / (r - goal) on.
        let reach = |line: &Line| line.backlog() / (line.bps() - goal).max(0.0);
        let first = self.lines.iter().map(reach).filter(|t| t.is_finite()).fold(f64::INFINITY, f64::min);
        first.is_finite().then(|| ceil(first))
    }
}

/// Seconds as a span that is not shorter, saturating.
pub(crate) fn ceil(seconds: f64) -> Span {
    const NANOS: f64 = 1e9;
    // A product such as 0.03 * 1e9 may exceed the whole number it means by its last bits only.
    const ROUNDING: f64 = 1e-6;
    if seconds > 0.0 { Span::from_nanos(libm::ceil(seconds * NANOS - ROUNDING) as u64) } else { Span::ZERO }
}

/// The lines whose points (rate, backlog) are on the lower convex hull together with (0, 0): the
/// others are nowhere the largest.
fn lower_hull(sorted: &[Line]) -> Vec<Line> {
    let mut hull: Vec<Line> = Vec::with_capacity(sorted.len());
    for &line in sorted {
        while let Some(&last) = hull.last() {
            let (r0, b0) =
                hull.len().checked_sub(2).map_or((0.0, 0.0), |before| (hull[before].bps(), hull[before].backlog()));
            let (r1, b1, r2, b2) = (last.bps(), last.backlog(), line.bps(), line.backlog());
            // `last` is above or on the straight line from the point before it to the new one.
            if (b1 - b0) * (r2 - r0) >= (b2 - b0) * (r1 - r0) {
                hull.pop();
            } else {
                break;
            }
        }
        hull.push(line);
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(bps: u64, ms: u64) -> Line {
        Line { rate: Rate::from_bps(bps), delay: Span::from_millis(ms) }
    }

    fn any_lines() -> impl Strategy<Value = Vec<Line>> {
        let one = (0_u64..1_000_000, 0_u64..10_000);
        proptest::collection::vec(one.prop_map(|(bps, ms)| line(bps, ms)), 0..20)
    }

    proptest! {
        #[test]
        fn the_hull_is_the_largest_of_all_lines_at_every_time(lines in any_lines(), ms in 0_u64..100_000) {
            let curve = ServiceCurve::new(&lines, Probability::ZERO);
            let t = Span::from_millis(ms);
            let all = lines.iter().map(|line| line.at(t.as_secs_f64())).fold(0.0, f64::max);
            prop_assert!((curve.service(t) - all).abs() <= 1e-9 * all);
        }

        #[test]
        fn the_inverse_undoes_the_curve(lines in any_lines(), bits in 1_u64..1_000_000_000) {
            let curve = ServiceCurve::new(&lines, Probability::ZERO);
            let t = curve.inverse(bits as f64);
            if curve.lines().is_empty() {
                prop_assert_eq!(t, Span::MAX);
            } else {
                // Within a nanosecond of the largest rate, and not sooner.
                let slack = 1e-9 * curve.long_term_rate().as_bps() as f64 + 1e-6 * bits as f64;
                prop_assert!((curve.service(t) - bits as f64).abs() <= slack);
            }
        }

        #[test]
        fn the_attainable_rate_never_falls_with_the_length_of_the_interval(lines in any_lines(), ms in 1_u64..100_000) {
            let curve = ServiceCurve::new(&lines, Probability::ZERO);
            let (short, long) = (Span::from_millis(ms), Span::from_millis(2 * ms));
            prop_assert!(curve.attainable_rate(long) >= curve.attainable_rate(short));
            prop_assert!(curve.attainable_rate(long) <= curve.long_term_rate().as_bps() as f64);
        }

        #[test]
        fn breakpoints_increase_and_the_lines_are_equal_there(lines in any_lines()) {
            let curve = ServiceCurve::new(&lines, Probability::ZERO);
            let at = curve.breakpoints();
            prop_assert!(at.is_sorted());
            prop_assert!(curve.origin().is_none_or(|origin| at.iter().all(|t| *t >= origin)));
            for (pair, t) in curve.lines().windows(2).zip(at) {
                let gap = pair[0].at(t.as_secs_f64()) - pair[1].at(t.as_secs_f64());
                prop_assert!(gap.abs() <= 1e-6 * pair[1].bps() + 1e-3, "{gap}");
            }
        }
    }

    #[test]
    fn a_curve_of_nothing_promises_nothing() {
        let nothing = ServiceCurve::new(&[line(0, 5)], Probability::ONE_PERCENT);
        assert_eq!(nothing, ServiceCurve::default());
        assert_eq!(nothing.service(Span::from_secs(9)), 0.0);
        assert_eq!(nothing.attainable_rate(Span::ZERO), 0.0);
        assert_eq!(nothing.inverse(1.0), Span::MAX);
        assert_eq!((nothing.origin(), nothing.time_to_fraction(0.5)), (None, None));
        assert_eq!(nothing.long_term_rate().as_bps(), 0);
    }

    #[test]
    fn every_rate_costs_its_violation_probability_even_if_its_line_does_not_matter() {
        let lines = [line(100, 10), line(200, 900), line(300, 10)];
        let curve = ServiceCurve::new(&lines, Probability::ONE_PERCENT);
        assert_eq!(curve.lines(), &lines[2..]);
        assert_eq!(curve.epsilon().get(), 0.03);
        let many = vec![line(100, 1); 200];
        assert_eq!(ServiceCurve::new(&many, Probability::ONE_PERCENT).epsilon().get(), 1.0);
    }

    #[test]
    fn of_two_lines_of_one_rate_the_smaller_delay_counts() {
        for lines in [[line(100, 30), line(100, 10)], [line(100, 10), line(100, 30)]] {
            let curve = ServiceCurve::new(&lines, Probability::ONE_PERCENT);
            assert_eq!(curve.lines(), &[line(100, 10)]);
            assert_eq!(curve.epsilon().get(), 0.02);
        }
    }

    #[test]
    fn a_line_on_the_straight_line_between_its_neighbours_is_left_out() {
        // Backlogs of 1, 2 and 3 bit: the points (rate, backlog) and the origin are on one line.
        let lines = [line(100, 10), line(200, 10), line(300, 10)];
        assert_eq!(ServiceCurve::new(&lines, Probability::ZERO).lines(), &lines[2..]);
        // 1, 3 and 6 bit: all count, and take over from each other after 20 and 30 ms.
        let lines = [line(100, 10), line(200, 15), line(300, 20)];
        let curve = ServiceCurve::new(&lines, Probability::ZERO);
        assert_eq!(curve.lines(), &lines);
        assert_eq!(curve.breakpoints(), [Span::from_millis(20), Span::from_millis(30)]);
    }

    #[test]
    fn nine_tenths_of_a_rate_with_latency_are_attained_after_ten_latencies() {
        let curve = ServiceCurve::new(&[line(1_000, 5)], Probability::ZERO);
        assert_eq!(curve.time_to_fraction(0.9), Some(Span::from_millis(50)));
        assert_eq!(curve.time_to_fraction(1.0), None);
        assert_eq!(curve.time_to_fraction(0.0), Some(Span::from_millis(5)));
    }
}
