//! Round-trip time, its smallest value, and the retransmission timeout.

use flowstart_units::{Span, Time};

use crate::{RtoRule, SenderConfig};

/// Linux keeps eight times the smoothed RTT and four times the mean deviation, so that the gains
/// 1/8 and 1/4 are exact in integers (`tcp_rtt_estimator`, after Jacobson's "Congestion avoidance
/// and control").
const SRTT_SCALE: u64 = 8;
const MDEV_SCALE: u64 = 4;

/// A timeout is never shorter, so that a path without delay does not make the timer spin.
pub(super) const SHORTEST_RTO: Span = Span::from_micros(1);

/// The estimator.
#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    /// 8 * SRTT in nanoseconds; 0 before the first sample.
    srtt8: u64,
    /// 4 * mean deviation in nanoseconds.
    mdev4: u64,
    /// Largest `mdev4` of the current window, at least `min_rto`.
    mdev4_max: u64,
    /// The variance term of the timeout in nanoseconds (rule `linux`).
    variance: u64,
    /// The window ends when this byte is acknowledged.
    window_end: u64,
    /// The timeout, backoff included.
    rto: Span,
    minimum: WindowedMin,
    latest: Span,
}

impl RttEstimator {
    pub(super) fn new(config: &SenderConfig) -> Self {
        Self {
            srtt8: 0,
            mdev4: 0,
            mdev4_max: 0,
            variance: 0,
            window_end: 0,
            rto: config.initial_rto.min(config.max_rto).max(SHORTEST_RTO),
            minimum: WindowedMin::default(),
            latest: Span::ZERO,
        }
    }

    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub(super) fn srtt(&self) -> Span {
        Span::from_nanos(self.srtt8 / SRTT_SCALE)
    }

    /// A quarter of the variance term.
    #[inline]
    pub(super) fn rttvar(&self) -> Span {
        Span::from_nanos(self.variance / MDEV_SCALE)
    }

    /// Smallest RTT; [`Span::MAX`] before the first sample.
    #[inline]
    pub(super) fn min(&self) -> Span {
        self.minimum.get()
    }

    /// The last sample; zero before the first.
    #[inline]
    pub(super) fn latest(&self) -> Span {
        self.latest
    }

    /// The timeout, backoff included.
    #[inline]
    pub(super) fn rto(&self) -> Span {
        self.rto
    }

    /// The timer expired: the timeout doubles (RFC 6298 section 5.5).
    pub(super) fn back_off(&mut self, config: &SenderConfig) {
        self.rto = (self.rto * 2).min(config.max_rto).max(SHORTEST_RTO);
    }

    /// A sample for the smallest RTT only.
    #[inline]
    pub(super) fn sample_minimum(&mut self, now: Time, config: &SenderConfig, rtt: Span) {
        self.latest = rtt;
        self.minimum.update(now, rtt, config.min_rtt_window);
    }

    /// A sample for the smoothed RTT and the timeout. `una` and `next` delimit the window: the
    /// variance term falls once per window.
    #[inline]
    pub(super) fn sample(&mut self, config: &SenderConfig, rtt: Span, una: u64, next: u64) {
        let rtt = rtt.as_nanos().clamp(1, u64::MAX / (2 * SRTT_SCALE));
        match config.rto_rule {
            RtoRule::Linux => self.sample_linux(config, rtt, una, next),
            RtoRule::Rfc6298 => self.sample_rfc(rtt),
        }
        self.set_rto(config);
    }

    fn sample_linux(&mut self, config: &SenderConfig, rtt: u64, una: u64, next: u64) {
        let floor = config.min_rto.as_nanos();
        if self.srtt8 == 0 {
            self.srtt8 = rtt * SRTT_SCALE;
            self.mdev4 = rtt * 2;
            self.variance = self.mdev4.max(floor);
            self.mdev4_max = self.variance;
            self.window_end = next;
            return;
        }
        let srtt = self.srtt8 / SRTT_SCALE;
        let error = rtt.abs_diff(srtt);
        let mdev = self.mdev4 / MDEV_SCALE;
        if rtt < srtt {
            self.srtt8 -= error;
            // A sudden fall of the RTT must not raise the timeout: it weighs an eighth (RFC 3522's
            // companion observation).
            if error > mdev {
                self.mdev4 += (error - mdev) / SRTT_SCALE;
            } else {
                self.mdev4 -= mdev - error;
            }
        } else {
            self.srtt8 += error;
            self.mdev4 = self.mdev4 + error - mdev;
        }
        self.srtt8 = self.srtt8.max(1);
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.variance = self.variance.max(self.mdev4_max);
        }
        if una > self.window_end {
            if self.mdev4_max < self.variance {
                self.variance -= (self.variance - self.mdev4_max) / MDEV_SCALE;
            }
            self.window_end = next;
            self.mdev4_max = floor;
        }
    }

    /// RFC 6298 section 2.
    fn sample_rfc(&mut self, rtt: u64) {
        if self.srtt8 == 0 {
            self.srtt8 = rtt * SRTT_SCALE;
            self.mdev4 = rtt * 2;
        } else {
            let srtt = self.srtt8 / SRTT_SCALE;
            let error = rtt.abs_diff(srtt);
            self.mdev4 = self.mdev4 - self.mdev4 / MDEV_SCALE + error;
            self.srtt8 = (self.srtt8 - srtt + rtt).max(1);
        }
        self.variance = self.mdev4;
    }

    fn set_rto(&mut self, config: &SenderConfig) {
        let srtt = self.srtt();
        let rto = match config.rto_rule {
            RtoRule::Linux => srtt + Span::from_nanos(self.variance),
            RtoRule::Rfc6298 => (srtt + Span::from_nanos(self.variance).max(config.tick)).max(config.min_rto),
        };
        self.rto = config.in_ticks(rto).min(config.max_rto).max(SHORTEST_RTO);
    }
}

/// The minimum of the last while, kept as the best three samples of successive sub-windows
/// (Nichols' windowed filter, as in Linux `lib/win_minmax`): constant memory, and exact as long as
/// the window is not over.
#[derive(Clone, Copy, Debug)]
struct WindowedMin {
    best: [(Time, Span); 3],
}

impl Default for WindowedMin {
    fn default() -> Self {
        Self { best: [(Time::ZERO, Span::MAX); 3] }
    }
}

impl WindowedMin {
    #[inline]
    fn get(&self) -> Span {
        self.best[0].1
    }

    #[inline]
    fn update(&mut self, now: Time, value: Span, window: Span) {
        if value <= self.best[0].1 || now.since(self.best[2].0) > window {
            self.best = [(now, value); 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = (now, value);
            self.best[2] = (now, value);
        } else if value <= self.best[2].1 {
            self.best[2] = (now, value);
        }
        let age = now.since(self.best[0].0);
        if age > window {
            // The best is too old: the next ones move up, and again if they are too old, too.
            self.best = [self.best[1], self.best[2], (now, value)];
            if now.since(self.best[0].0) > window {
                self.best = [self.best[1], self.best[2], (now, value)];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            self.best[1] = (now, value);
            self.best[2] = (now, value);
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = (now, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The timeout in tenths of milliseconds after each of these samples (ms), one per window.
    fn timeouts(config: &SenderConfig, samples: &[u64]) -> Vec<u64> {
        let mut estimator = RttEstimator::new(config);
        samples
            .iter()
            .zip(1_u64..)
            .map(|(ms, window)| {
                // Window k ends at byte k: one sample each, strictly beyond the end of the window
                // before.
                estimator.sample(config, Span::from_millis(*ms), window, window);
                (estimator.rto().as_nanos() + 50_000) / 100_000
            })
            .collect()
    }

    #[test]
    fn the_timeout_is_srtt_plus_a_variance_of_at_least_200_ms() {
        let config = SenderConfig::default();
        assert_eq!(timeouts(&config, &[100, 100, 100]), [3000, 3000, 3000]);
        assert_eq!(timeouts(&config, &[10; 30])[29], 2100);
    }

    #[test]
    fn the_variance_term_falls_by_a_quarter_of_the_gap_once_per_window() {
        let config = SenderConfig::default();
        assert_eq!(timeouts(&config, &[500; 7]), [15000, 15000, 13906, 12734, 11592, 10537, 9653]);
    }

    #[test]
    fn a_late_sample_raises_the_timeout_at_once() {
        let config = SenderConfig::default();
        assert_eq!(
            timeouts(&config, &[100, 100, 100, 300, 100, 100, 100, 100]),
            [3000, 3000, 3000, 4094, 3947, 3739, 3578, 3455]
        );
    }

    #[test]
    fn rfc_6298_has_a_floor_on_the_sum() {
        let config = SenderConfig { rto_rule: RtoRule::Rfc6298, ..SenderConfig::default() };
        // R = 100: RTO = 100 + 4 * 50; then RTTVAR shrinks by a quarter per sample.
        assert_eq!(timeouts(&config, &[100, 100, 100]), [3000, 2500, 2125]);
        assert_eq!(timeouts(&config, &[10; 20])[19], 2000);
    }

    #[test]
    fn the_timeout_doubles_up_to_120_s_and_a_sample_resets_it() {
        let config = SenderConfig::default();
        let mut estimator = RttEstimator::new(&config);
        assert_eq!(estimator.rto(), Span::from_secs(1));
        for _ in 0..7 {
            estimator.back_off(&config);
        }
        assert_eq!(estimator.rto(), Span::from_secs(120));
        estimator.sample(&config, Span::from_millis(100), 1, 1);
        assert_eq!(estimator.rto(), Span::from_millis(300));
    }

    #[test]
    fn a_tick_rounds_the_timeout_up() {
        let config = SenderConfig { tick: Span::from_millis(4), ..SenderConfig::default() };
        assert_eq!(timeouts(&config, &[101]), [3040]);
    }

    #[test]
    fn an_old_minimum_is_followed_by_the_best_of_the_later_sub_windows() {
        let window = Span::from_millis(100);
        let mut filter = WindowedMin::default();
        let mut after = |ms, rtt| {
            filter.update(Time::ZERO + Span::from_millis(ms), Span::from_millis(rtt), window);
            filter.get().as_nanos() / 1_000_000
        };
        // The best of the second quarter is 20 (at 26 ms), of the second half 30 (at 51 ms).
        let found =
            [(0, 10), (10, 40), (26, 20), (40, 50), (51, 30), (80, 60), (100, 60)].map(|(ms, rtt)| after(ms, rtt));
        assert_eq!(found, [10; 7]);
        // Older than the window by a millisecond: the next best moves up, and then the one after
        // that.
        assert_eq!([(101, 60), (126, 60), (127, 60)].map(|(ms, rtt)| after(ms, rtt)), [20, 20, 30]);
        // An equal sample is a newer minimum.
        assert_eq!([(140, 30), (239, 90), (240, 90), (241, 90)].map(|(ms, rtt)| after(ms, rtt)), [30, 30, 30, 90]);
        // Nothing for a window: all that is known is too old.
        assert_eq!([(500, 70), (600, 95), (801, 99)].map(|(ms, rtt)| after(ms, rtt)), [70, 70, 99]);
    }

    #[test]
    fn sub_windows_of_the_minimum_end_after_a_quarter_and_after_half_of_the_window() {
        let run = |samples: &[(u64, u64)]| {
            let mut filter = WindowedMin::default();
            for (ms, rtt) in samples {
                let rtt = Span::from_millis(*rtt);
                filter.update(Time::ZERO + Span::from_millis(*ms), rtt, Span::from_millis(100));
            }
            filter.get().as_nanos() / 1_000_000
        };
        // At exactly a quarter, and at exactly half, a sample still belongs to what is over.
        assert_eq!(run(&[(0, 10), (25, 20), (26, 30), (101, 95)]), 30);
        assert_eq!(run(&[(0, 10), (30, 20), (50, 40), (51, 60), (101, 99), (131, 99)]), 60);
        // Two of the three best are too old.
        assert_eq!(run(&[(0, 10), (30, 20), (60, 30), (150, 99)]), 30);
        assert_eq!(run(&[(0, 10), (30, 20), (60, 30), (130, 99)]), 20);
    }

    proptest::proptest! {
        #[test]
        fn the_windowed_minimum_is_between_the_minima_of_one_window_and_of_all(
            samples in proptest::collection::vec((0_u64..30, 1_u64..100), 1..100)
        ) {
            let window = Span::from_nanos(100);
            let mut filter = WindowedMin::default();
            let mut now = Time::ZERO;
            let mut seen: Vec<(Time, Span)> = Vec::new();
            for (gap, value) in samples {
                now += Span::from_nanos(gap);
                filter.update(now, Span::from_nanos(value), window);
                seen.push((now, Span::from_nanos(value)));
                let all = seen.iter().map(|s| s.1).min().unwrap();
                proptest::prop_assert!(filter.get() >= all);
                proptest::prop_assert!(filter.get() <= Span::from_nanos(100));
                // What is given was seen, and not longer ago than the window.
                proptest::prop_assert!(seen.iter().any(|s| s.1 == filter.get() && now.since(s.0) <= window));
            }
        }

        #[test]
        fn the_timeout_is_that_of_rfc_6298(samples in proptest::collection::vec(1_u64..5_000_000_000, 1..60)) {
            let config = SenderConfig { rto_rule: RtoRule::Rfc6298, ..SenderConfig::default() };
            let mut estimator = RttEstimator::new(&config);
            // Sections 2.2 and 2.3, in seconds.
            let (mut srtt, mut rttvar) = (0.0, 0.0);
            for (n, nanos) in samples.into_iter().enumerate() {
                let r = nanos as f64 / 1e9;
                if n == 0 {
                    (srtt, rttvar) = (r, r / 2.0);
                } else {
                    rttvar = 0.75 * rttvar + 0.25 * f64::abs(srtt - r);
                    srtt = 0.875 * srtt + 0.125 * r;
                }
                estimator.sample(&config, Span::from_nanos(nanos), 0, 0);
                let rto = (srtt + 4.0 * rttvar).clamp(0.2, 120.0);
                let found = [estimator.srtt(), estimator.rttvar(), estimator.rto()].map(Span::as_secs_f64);
                for (found, expected) in found.into_iter().zip([srtt, rttvar, rto]) {
                    // Integers lose less than a nanosecond's few per sample.
                    proptest::prop_assert!((found - expected).abs() < 1e-6, "{} is not {}", found, expected);
                }
            }
        }

        #[test]
        fn the_variance_term_is_the_largest_deviation_of_a_window_and_falls_slowly(
            samples in proptest::collection::vec((1_000_u64..5_000_000_000, proptest::bool::weighted(0.3)), 1..60)
        ) {
            let config = SenderConfig::default();
            let mut estimator = RttEstimator::new(&config);
            let floor = 0.2;
            let (mut srtt, mut deviation, mut largest, mut variance) = (0.0, 0.0, 0.0, 0.0_f64);
            let mut una = 0;
            for (n, (nanos, new_window)) in samples.into_iter().enumerate() {
                let r = nanos as f64 / 1e9;
                una += u64::from(new_window);
                estimator.sample(&config, Span::from_nanos(nanos), una, una);
                if n == 0 {
                    (srtt, deviation, variance) = (r, r / 2.0, (2.0 * r).max(floor));
                    largest = variance;
                } else {
                    let error: f64 = r - srtt;
                    let mut excess = error.abs() - deviation;
                    if error < 0.0 && excess > 0.0 {
                        excess /= 8.0;
                    }
                    (srtt, deviation) = (srtt + error / 8.0, deviation + excess / 4.0);
                    largest = f64::max(largest, 4.0 * deviation);
                    variance = variance.max(largest);
                    if new_window {
                        variance -= (variance - largest) / 4.0;
                        largest = floor;
                    }
                }
                let found = [estimator.srtt(), estimator.rttvar(), estimator.rto()].map(Span::as_secs_f64);
                for (found, expected) in found.into_iter().zip([srtt, variance / 4.0, srtt + variance]) {
                    proptest::prop_assert!((found - expected).abs() < 1e-6, "{} is not {}", found, expected);
                }
            }
        }

        #[test]
        fn within_one_window_the_minimum_is_exact(
            samples in proptest::collection::vec((0_u64..2, 1_u64..100), 1..60)
        ) {
            let mut filter = WindowedMin::default();
            let (mut now, mut least) = (Time::ZERO, Span::MAX);
            for (gap, value) in samples {
                now += Span::from_nanos(gap);
                least = least.min(Span::from_nanos(value));
                filter.update(now, Span::from_nanos(value), Span::from_nanos(120));
                proptest::prop_assert_eq!(filter.get(), least);
            }
        }

        #[test]
        fn no_sample_upsets_the_estimator(samples in proptest::collection::vec(proptest::num::u64::ANY, 1..50)) {
            for rule in [RtoRule::Linux, RtoRule::Rfc6298] {
                let config = SenderConfig { rto_rule: rule, ..SenderConfig::default() };
                let mut estimator = RttEstimator::new(&config);
                for (i, sample) in samples.iter().enumerate() {
                    estimator.sample(&config, Span::from_nanos(*sample), i as u64, i as u64);
                    proptest::prop_assert!(estimator.rto() <= config.max_rto);
                    proptest::prop_assert!(estimator.rto() >= config.min_rto.min(config.max_rto));
                }
            }
        }
    }
}
