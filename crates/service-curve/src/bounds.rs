//! What a service curve guarantees to arrivals of any kind.

use std::collections::VecDeque;

use flowstart_units::{Bytes, Span, Time};

use crate::curve::ceil;
use crate::{Error, ServiceCurve};

/// Data handed to a flow control over time: packets or bursts, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    times: Vec<Time>,
    /// Bits up to and including each arrival.
    bits: Vec<u64>,
}

impl Arrivals {
    /// The arrivals of this many bytes at these times.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] with the position of an arrival that is earlier than the one before
    /// it.
    pub fn new(arrivals: impl IntoIterator<Item = (Time, Bytes)>) -> Result<Self, Error> {
        let (mut times, mut bits, mut sum) = (Vec::new(), Vec::new(), 0_u64);
        for (index, (time, size)) in arrivals.into_iter().enumerate() {
            if times.last().is_some_and(|last| time < *last) {
                return Err(Error::OutOfOrder(index));
            }
            sum = sum.saturating_add(size.bits());
            times.push(time);
            bits.push(sum);
        }
        Ok(Self { times, bits })
    }

    /// How many arrivals there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// No arrivals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Bits before arrival `index`.
    fn before(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |last| self.bits[last])
    }

    /// The empirical envelope E(t) (Wrege, Knightly, Zhang and Liebeherr, "Deterministic delay
    /// bounds for VBR video in packet-switching networks", ToN 4(3), 1996): the most bits that
    /// arrive in any closed interval of length `window`.
    #[must_use]
    pub fn envelope(&self, window: Span) -> u64 {
        let (mut first, mut largest) = (0, 0);
        for (last, time) in self.times.iter().enumerate() {
            while time.since(self.times[first]) > window {
                first += 1;
            }
            largest = largest.max(self.bits[last] - self.before(first));
        }
        largest
    }

    /// The shortest time in which `count` consecutive arrivals come: the envelope of equal packets,
    /// seen from the other side. `None` if there are not so many.
    #[must_use]
    pub fn shortest_span(&self, count: usize) -> Option<Span> {
        let steps = count.saturating_sub(1);
        self.times.iter().zip(self.times.get(steps..)?).map(|(first, last)| last.since(*first)).min()
    }
}

/// Time of an arrival since the first, so that nanoseconds of today's clocks survive in an `f64`.
fn seconds(arrivals: &Arrivals, index: usize) -> f64 {
    arrivals.times[index].since(arrivals.times[0]).as_secs_f64()
}

impl ServiceCurve {
    /// For every arrival the delay that its last bit exceeds with probability
    /// [`ServiceCurve::epsilon`] at most (equation 6):
    /// W_n = max over m <= n of S^-1(A(n) - A(m-1)) - (t_n - t_m).
    /// [`Span::MAX`] if no rate could be probed.
    ///
    /// Valid only if the arrivals begin with an empty system: include what came before. Takes n log
    /// n steps for n arrivals.
    #[must_use]
    pub fn delay_bounds(&self, arrivals: &Arrivals) -> Vec<Span> {
        largest_deviations(arrivals, |bits, span| self.inverse_secs(bits) - span).into_iter().map(ceil).collect()
    }

    /// The largest of [`Self::delay_bounds`]: the horizontal deviation between the envelope of the
    /// arrivals and the curve. Zero of no arrivals.
    #[must_use]
    pub fn delay_bound(&self, arrivals: &Arrivals) -> Span {
        self.delay_bounds(arrivals).into_iter().max().unwrap_or(Span::ZERO)
    }

    /// For every arrival the backlog in bits just after it, exceeded with probability
    /// [`ServiceCurve::epsilon`] at most (equation 6): B_n = max over m <= n of A(n) - A(m-1) -
    /// S(t_n - t_m). As for delays the arrivals must begin with an empty system.
    #[must_use]
    pub fn backlog_bounds(&self, arrivals: &Arrivals) -> Vec<f64> {
        largest_deviations(arrivals, |bits, span| bits - self.service_secs(span))
    }

    /// The largest of [`Self::backlog_bounds`]: the vertical deviation. Zero of no arrivals.
    #[must_use]
    pub fn backlog_bound(&self, arrivals: &Arrivals) -> f64 {
        self.backlog_bounds(arrivals).into_iter().fold(0.0, f64::max)
    }
}

/// For every arrival n the largest `deviation` (bits, seconds) over all intervals from an arrival m
/// <= n to n, and 0.
///
/// The curve is convex and its inverse concave. Hence, as n grows, an interval that begins earlier
/// loses against one that begins later: once overtaken it never leads again. Those that may still
/// lead wait in order; each knows from which arrival on the next one leads.
fn largest_deviations(arrivals: &Arrivals, deviation: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let of = |m: usize, n: usize| {
        let bits = arrivals.bits[n] - arrivals.before(m);
        deviation(bits as f64, seconds(arrivals, n) - seconds(arrivals, m))
    };
    let count = arrivals.len();
    // The first arrival at which `late` is not behind `early`; `count` if there is none.
    let overtakes = |early: usize, late: usize| {
        let (mut behind, mut ahead) = (late, count);
        while behind < ahead {
            let middle = behind.midpoint(ahead);
            if of(late, middle) >= of(early, middle) { ahead = middle } else { behind = middle + 1 }
        }
        ahead
    };
    // First arrival of the interval, and when it takes over from the one before it.
    let mut waiting: VecDeque<(usize, usize)> = VecDeque::new();
    let lead = |n: usize| {
        while let Some((last, since)) = waiting.back().copied() {
            let takes_over = overtakes(last, n);
            if waiting.len() > 1 && takes_over <= since {
                // The last one would be overtaken before it leads.
                waiting.pop_back();
                continue;
            }
            if takes_over < count {
                waiting.push_back((n, takes_over));
            }
            break;
        }
        if waiting.is_empty() {
            waiting.push_back((n, n));
        }
        while waiting.get(1).is_some_and(|(_, since)| *since <= n) {
            waiting.pop_front();
        }
        waiting.front().map_or(0.0, |(m, _)| of(*m, n).max(0.0))
    };
    (0..count).map(lead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, Probability};
    use flowstart_units::Rate;
    use proptest::prelude::*;

    fn curve(lines: &[(u64, u64)]) -> ServiceCurve {
        let line = |&(bps, ms): &(u64, u64)| Line { rate: Rate::from_bps(bps), delay: Span::from_millis(ms) };
        ServiceCurve::new(&lines.iter().map(line).collect::<Vec<_>>(), Probability::ZERO)
    }

    fn arrivals(of: &[(u64, u64)]) -> Arrivals {
        Arrivals::new(of.iter().map(|&(ms, size)| (Time::from_nanos(ms * 1_000_000), Bytes::new(size)))).unwrap()
    }

    proptest! {
        #[test]
        fn bounds_are_the_largest_deviations_over_all_intervals(
            lines in proptest::collection::vec((1_u64..100_000, 0_u64..2_000), 1..5),
            steps in proptest::collection::vec((0_u64..200, 0_u64..500), 1..60),
        ) {
            let curve = curve(&lines);
            let mut at = 0;
            let steps: Vec<_> = steps.into_iter().map(|(gap, size)| { at += gap; (at, size) }).collect();
            let arrivals = arrivals(&steps);
            let (delays, backlogs) = (curve.delay_bounds(&arrivals), curve.backlog_bounds(&arrivals));
            for n in 0..arrivals.len() {
                let pair = |m: usize| {
                    let bits = (arrivals.bits[n] - arrivals.before(m)) as f64;
                    (bits, seconds(&arrivals, n) - seconds(&arrivals, m))
                };
                let delay = (0..=n).map(|m| { let (x, t) = pair(m); curve.inverse_secs(x) - t }).fold(0.0, f64::max);
                let backlog = (0..=n).map(|m| { let (x, t) = pair(m); x - curve.service_secs(t) }).fold(0.0, f64::max);
                prop_assert!((delays[n].as_secs_f64() - delay).abs() < 2e-9);
                prop_assert!((backlogs[n] - backlog).abs() <= 1e-9 * backlog);
            }
        }
    }

    #[test]
    fn a_constant_rate_below_the_probed_rate_is_delayed_by_the_latency_and_its_own_packets() {
        let paced: Vec<(u64, u64)> = (0..100).map(|n| (n * 10, 100)).collect();
        // 800 bit every 10 ms through 160 kbit/s with 50 ms: 5 ms for the packet itself.
        let bounds = curve(&[(160_000, 50)]).delay_bounds(&arrivals(&paced));
        assert!(bounds.iter().all(|bound| *bound == Span::from_millis(55)), "{bounds:?}");
    }

    #[test]
    fn without_service_there_is_no_bound_and_without_arrivals_no_delay() {
        let none = ServiceCurve::default();
        assert_eq!(none.delay_bounds(&arrivals(&[(0, 1)])), vec![Span::MAX]);
        assert_eq!(none.backlog_bounds(&arrivals(&[(0, 1), (5, 2)])), vec![8.0, 24.0]);
        assert_eq!(none.delay_bound(&Arrivals::default()), Span::ZERO);
        assert_eq!(none.backlog_bound(&Arrivals::default()), 0.0);
    }

    #[test]
    fn an_envelope_counts_both_ends_of_the_interval() {
        let bursts = arrivals(&[(0, 1), (10, 2), (20, 4), (100, 8)]);
        let bits = |ms| bursts.envelope(Span::from_millis(ms));
        assert_eq!((bits(0), bits(9), bits(10), bits(20), bits(99), bits(100)), (64, 64, 64, 64, 112, 120));
        assert_eq!(bursts.shortest_span(3), Some(Span::from_millis(20)));
        assert_eq!(bursts.shortest_span(1), Some(Span::ZERO));
        assert_eq!(bursts.shortest_span(5), None);
        assert_eq!(Arrivals::default().shortest_span(1), None);
    }

    #[test]
    fn arrivals_out_of_order_are_refused() {
        let back = [(5_u64, 1_u64), (4, 1)].map(|(ns, size)| (Time::from_nanos(ns), Bytes::new(size)));
        assert_eq!(Arrivals::new(back), Err(Error::OutOfOrder(1)));
    }
}
