//! Queueing delay: M4, and the summary every table shows.

use flowstart_units::{Span, Time};

use super::wait::Wait;

/// The `p`-quantile (0 ..= 1) by nearest rank: the smallest value that is at least as large as a
/// share `p` of all. Reorders `values`: none before it is larger. `None` without values.
#[must_use]
pub fn quantile(values: &mut [Span], p: f64) -> Option<Span> {
    let place = place(values.len(), p)?;
    Some(*values.select_nth_unstable(place).1)
}

/// Where the `p`-quantile of so many sorted values stands.
fn place(values: usize, p: f64) -> Option<usize> {
    let rank = (p.clamp(0.0, 1.0) * values as f64).ceil() as usize;
    (values > 0).then(|| rank.max(1) - 1)
}

/// Mean wait of the samples that arrived in [from, to), zero if none did. With the ten RTT0 before
/// t = 0 this is M4's q̄0.
#[must_use]
pub fn mean_wait(samples: &[Wait], from: Time, to: Time) -> Span {
    let inside = samples.iter().filter(|s| (from..to).contains(&s.arrived));
    let (sum, count) = inside.fold((0_u128, 0_u128), |(sum, n), s| (sum + u128::from(s.waited.as_nanos()), n + 1));
    Span::from_nanos(sum.checked_div(count).unwrap_or(0) as u64)
}

/// Queueing delay of packets: what a table shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelaySummary {
    /// Arithmetic mean.
    pub mean: Span,
    /// Median.
    pub p50: Span,
    /// 95 % of packets waited at most this long.
    pub p95: Span,
    /// 99 % of packets waited at most this long.
    pub p99: Span,
    /// The largest.
    pub max: Span,
}

impl DelaySummary {
    /// Of the samples that arrived in [from, to); `None` without any.
    #[must_use]
    pub fn of(samples: &[Wait], from: Time, to: Time, which: impl Fn(&Wait) -> bool) -> Option<Self> {
        let mut waits: Vec<Span> =
            samples.iter().filter(|s| (from..to).contains(&s.arrived) && which(s)).map(|s| s.waited).collect();
        let sum: u128 = waits.iter().map(|wait| u128::from(wait.as_nanos())).sum();
        let mean = Span::from_nanos(sum.checked_div(waits.len() as u128)? as u64);
        let max = *waits.iter().max()?;
        // The lower ones are among what stands before the higher ones.
        let places = [0.99, 0.95, 0.5].map(|p| place(waits.len(), p));
        let mut left = &mut waits[..];
        let mut lower = |place: Option<usize>| {
            let place = place?;
            let all = std::mem::take(&mut left);
            let found = *all.select_nth_unstable(place).1;
            left = &mut all[..=place];
            Some(found)
        };
        let [p99, p95, p50] = places.map(&mut lower);
        Some(Self { mean, p50: p50?, p95: p95?, p99: p99?, max })
    }
}

/// M4, queue overshoot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overshoot {
    /// q̄0: mean queueing delay over the 10 RTT0 before t = 0, zero on an idle link.
    pub before: Span,
    /// O_pk = max over [0, H] of q(t) − q̄0.
    pub peak: Span,
    /// O_pk / RTT0.
    pub peak_rtts: f64,
    /// O_ar = ∫₀ᴴ max(0, q(t) − q̄0) dt / RTT0².
    pub area: f64,
}

/// Round trips before t = 0 over which q̄0 is taken (M4).
pub(crate) const BEFORE_RTTS: u64 = 10;

/// M4: how much queue the newcomer adds. `start` is t = 0, `service` the transmission time of one
/// full packet, `stride` how many packets a sample stands for.
///
/// q(t) is known where a packet arrives. Between two arrivals that find the transmitter busy it is
/// taken as a straight line; a queue that empties in between drains at one second per second.
#[must_use]
pub fn overshoot(
    samples: &[Wait],
    start: Time,
    base_rtt: Span,
    horizon: Span,
    service: Span,
    stride: u64,
) -> Overshoot {
    let end = start + horizon;
    let before = mean_wait(samples, start - base_rtt * BEFORE_RTTS, start);
    let floor = before.as_nanos() as f64;
    let mut inside: Vec<Wait> = samples.iter().filter(|s| (start..=end).contains(&s.arrived)).copied().collect();
    // Fair queues do not serve in order of arrival.
    inside.sort_by_key(|s| s.arrived);
    let peak = inside.iter().map(|s| s.waited).max().unwrap_or(Span::ZERO) - before;
    let left_behind = (service * stride).as_nanos() as f64;
    let mut area = 0.0;
    for (index, sample) in inside.iter().enumerate() {
        let next = inside.get(index + 1);
        let gap = next.map_or(end, |n| n.arrived).since(sample.arrived).as_nanos() as f64;
        let wait = sample.waited.as_nanos() as f64;
        match next {
            Some(next) if gap <= wait + left_behind => {
                area += area_above(floor, wait, next.waited.as_nanos() as f64, gap);
            }
            _ => {
                let drain = gap.min(wait + left_behind);
                area += area_above(floor, wait + left_behind, wait + left_behind - drain, drain);
            }
        }
    }
    let rtt = base_rtt.as_nanos().max(1) as f64;
    Overshoot { before, peak, peak_rtts: peak.ratio(base_rtt), area: area / (rtt * rtt) }
}

/// Area between the straight line from `a` to `b` over `width` and the level `floor`, where it lies
/// above.
fn area_above(floor: f64, a: f64, b: f64, width: f64) -> f64 {
    let (a, b) = (a - floor, b - floor);
    if a <= 0.0 && b <= 0.0 {
        0.0
    } else if a >= 0.0 && b >= 0.0 {
        (a + b) / 2.0 * width
    } else {
        let high = a.max(b);
        high / 2.0 * width * high / (a - b).abs()
    }
}

/// Time within [0, H] during which q > q̄0 + `margin` (M8: `margin` 1 ms), by the packets' waits:
/// each counts from its arrival to the next.
#[must_use]
pub fn busy_time(samples: &[Wait], start: Time, horizon: Span, level: Span) -> Span {
    let end = start + horizon;
    let mut inside: Vec<Wait> = samples.iter().filter(|s| (start..=end).contains(&s.arrived)).copied().collect();
    inside.sort_by_key(|s| s.arrived);
    let mut busy = Span::ZERO;
    for (index, sample) in inside.iter().enumerate() {
        if sample.waited > level {
            let until = inside.get(index + 1).map_or(end, |next| next.arrived);
            // Without another arrival the queue falls by one second per second.
            busy += until.since(sample.arrived).min(sample.waited - level);
        }
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Span = Span::from_micros(120);

    fn sample(at_us: u64, waited: Span) -> Wait {
        Wait { arrived: Time::from_nanos(at_us * 1000), waited, flow: 1, transmission: 0 }
    }

    #[test]
    fn a_burst_of_ten_on_an_idle_link_has_the_area_of_a_triangle() {
        let samples: Vec<_> = (0..10).map(|i| sample(0, S * i)).collect();
        let rtt = Span::from_millis(20);
        let o = overshoot(&samples, Time::ZERO, rtt, rtt * 40, S, 1);
        assert_eq!(o.peak, S * 9);
        assert_eq!(o.before, Span::ZERO);
        let expected = (1.2_f64 / 20.0).powi(2) / 2.0;
        assert!((o.area - expected).abs() < 1e-12, "{} {expected}", o.area);
    }

    #[test]
    fn a_standing_queue_before_the_start_does_not_count() {
        // 1 ms of queue for 200 ms, then 3 ms for 100 ms, then 1 ms again.
        let wait = |t: u64| Span::from_millis(if (200..300).contains(&t) { 3 } else { 1 });
        let samples: Vec<_> = (0..1000).map(|t| sample(t * 1000, wait(t))).collect();
        let rtt = Span::from_millis(20);
        let o = overshoot(&samples, Time::from_nanos(200_000_000), rtt, rtt * 40, S, 1);
        assert_eq!(o.before, Span::from_millis(1));
        assert_eq!(o.peak, Span::from_millis(2));
        // 99 ms at 2 ms above, 1 ms of slope, and the last packet, which leaves its own 0.12 ms of
        // queue behind.
        let expected = (2.0 * 99.0 + 1.0 + 0.12 * 0.12 / 2.0) / 400.0;
        assert!((o.area - expected).abs() < 1e-9, "{}", o.area);
        assert!((o.peak_rtts - 0.1).abs() < 1e-12);
        let busy = busy_time(&samples, Time::from_nanos(200_000_000), rtt * 40, Span::from_millis(2));
        assert_eq!(busy, Span::from_millis(100));
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut values: Vec<Span> = (1..=100).map(Span::from_millis).collect();
        assert_eq!(quantile(&mut values, 0.99), Some(Span::from_millis(99)));
        assert_eq!(quantile(&mut values, 0.5), Some(Span::from_millis(50)));
        assert_eq!(quantile(&mut values, 1.0), Some(Span::from_millis(100)));
        assert_eq!(quantile(&mut values, 0.0), Some(Span::from_millis(1)));
        assert_eq!(quantile(&mut [], 0.5), None);
    }

    #[test]
    fn a_summary_looks_only_at_its_window_and_its_packets() {
        let mut samples: Vec<_> = (0..10).map(|t| sample(t, Span::from_nanos(t))).collect();
        samples[3].flow = 0;
        let all = DelaySummary::of(&samples, Time::from_nanos(2000), Time::from_nanos(6000), |_| true).unwrap();
        assert_eq!((all.mean, all.max), (Span::from_nanos(3), Span::from_nanos(5)));
        let others = DelaySummary::of(&samples, Time::ZERO, Time::NEVER, |s| s.flow == 0).unwrap();
        assert_eq!(others.max, Span::from_nanos(3));
        assert_eq!(DelaySummary::of(&samples, Time::NEVER, Time::NEVER, |_| true), None);
    }

    proptest::proptest! {
        #[test]
        fn quantiles_are_those_of_sorted_values_in_whatever_order_they_are_asked(
            waits in proptest::collection::vec(0_u64..200, 1..400), percentiles in proptest::collection::vec(0_u8..=100, 1..6),
        ) {
            let mut sorted: Vec<Span> = waits.iter().map(|wait| Span::from_nanos(*wait)).collect();
            let mut values = sorted.clone();
            sorted.sort_unstable();
            // The smallest value that is at least as large as so many of a hundred.
            let nearest = |percentile: u8| sorted[(usize::from(percentile) * sorted.len()).div_ceil(100).max(1) - 1];
            for percentile in percentiles {
                let found = quantile(&mut values, f64::from(percentile) / 100.0);
                // 0.07 * 100 is more than 7 by rounding.
                let above = sorted.iter().find(|value| **value > nearest(percentile)).copied();
                proptest::prop_assert!(found == Some(nearest(percentile)) || found == above);
            }
            let samples: Vec<_> = (0..).zip(&waits).map(|(t, wait)| sample(t, Span::from_nanos(*wait))).collect();
            let summary = DelaySummary::of(&samples, Time::ZERO, Time::NEVER, |_| true).unwrap();
            let of = |p| quantile(&mut sorted.clone(), p).unwrap();
            proptest::prop_assert_eq!(
                [summary.p50, summary.p95, summary.p99, summary.max], [of(0.5), of(0.95), of(0.99), of(1.0)]
            );
        }
    }
}
