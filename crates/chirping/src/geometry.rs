//! The shape of a chirp: packets whose gaps shrink in equal steps. Pure functions on integer
//! nanoseconds.
//!
//! Source: Misund and Briscoe, "Rapid flow start with very low queuing delay" (IEEE GI 2019), and
//! the authors' kernel modules: first gap γ·a for an average gap a, step 2·a·(γ-1)/N. As that
//! divides by N where N-2 would be exact, the realised mean is a little larger than a, and the last
//! gap is never zero. A kernel implementation with the same integers must give the same gaps bit
//! for bit.

/// Ratios such as the geometry are integers in units of 1/1024.
pub const RATIO_ONE: u64 = 1024;

/// `ratio` in units of 1/1024, rounded, at most 2^32-1; zero for a negative ratio or NaN.
#[must_use]
pub fn ratio_from_f64(ratio: f64) -> u64 {
    let scaled = libm::round(ratio * RATIO_ONE as f64);
    // `as` saturates and maps NaN to zero.
    u64::from(scaled as u32)
}

/// A chirp to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Packets, at least 1.
    pub packets: u32,
    /// Gap between the first two packets in ns.
    pub first_gap: u64,
    /// How much smaller every gap is than the one before, in ns.
    pub step: u64,
}

impl Geometry {
    /// A chirp of `packets` packets around the average gap `average` (ns) whose first gap is
    /// `geometry`/1024 times the average. The geometry is moved into the published range of 1 (all
    /// gaps equal) to 3.
    #[must_use]
    pub fn new(packets: u32, average: u64, geometry: u64) -> Self {
        let packets = packets.max(1);
        let geometry = geometry.clamp(RATIO_ONE, 3 * RATIO_ONE);
        let first_gap = narrow(u128::from(average) * u128::from(geometry) / u128::from(RATIO_ONE));
        let spread = 2 * u128::from(average) * u128::from(geometry - RATIO_ONE);
        let step = narrow(spread.div_ceil(u128::from(RATIO_ONE) * u128::from(packets)));
        Self { packets, first_gap, step }
    }

    /// The same with steps of 2·a·(γ-1)/(N-1): a smaller last gap and a mean nearer to the average
    /// (the authors' later code).
    #[must_use]
    pub fn with_wide_steps(packets: u32, average: u64, geometry: u64) -> Self {
        let shape = Self::new(packets, average, geometry);
        let steps = Self::new(packets.saturating_sub(1), average, geometry);
        Self { step: steps.step, ..shape }
    }

    /// Gap in ns between packet `k - 1` and packet `k`; packets count from 0, so `k` is 1 ..=
    /// packets - 1. Never negative.
    #[must_use]
    pub fn gap(&self, k: u32) -> u64 {
        self.first_gap.saturating_sub(self.step.saturating_mul(u64::from(k.saturating_sub(1))))
    }

    /// Time in ns from the first to the last packet.
    #[must_use]
    pub fn length(&self) -> u64 {
        (1..self.packets).fold(0, |sum: u64, k| sum.saturating_add(self.gap(k)))
    }
}

/// Pause in ns between the last packet of a chirp and the first of the next: what is left of an
/// equal share of the round-trip time, at least the average gap. `rounds_share` is the number of
/// chirps per round trip in units of 1/1024; an `rtt` of 0 means unknown.
#[must_use]
pub fn guard(average: u64, length: u64, rtt: u64, rounds_share: u64) -> u64 {
    let share = u128::from(rtt) * u128::from(RATIO_ONE) / u128::from(rounds_share.max(1));
    average.max(narrow(share).saturating_sub(length))
}

/// The moving average after an `estimate`: `average + weight * (estimate - average)`, `weight` in
/// units of 1/1024, at most 1.
#[must_use]
pub fn smooth(average: u64, estimate: u64, weight: u64) -> u64 {
    let weight = u128::from(weight.min(RATIO_ONE));
    let kept = u128::from(average) * (u128::from(RATIO_ONE) - weight);
    narrow((kept + u128::from(estimate) * weight) / u128::from(RATIO_ONE))
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: u64 = 100_000;

    fn gaps(geometry: Geometry) -> Vec<u64> {
        (1..geometry.packets).map(|k| geometry.gap(k)).collect()
    }

    #[test]
    fn a_chirp_of_16_around_200_us_has_gaps_from_400_down_to_50() {
        let micros =
            |n| gaps(Geometry::new(n, 200_000, 2 * RATIO_ONE)).iter().map(|gap| gap / 1000).collect::<Vec<_>>();
        assert_eq!(micros(16), [400, 375, 350, 325, 300, 275, 250, 225, 200, 175, 150, 125, 100, 75, 50]);
        assert_eq!(micros(8), [400, 350, 300, 250, 200, 150, 100]);
        assert_eq!(micros(5), [400, 320, 240, 160]);
    }

    #[test]
    fn first_last_mean_and_length_are_those_of_the_published_rule() {
        // N, γ, first/a, last/a, mean/a, length/a
        let table = [
            (5, 2.0, 2.0, 0.80, 1.40, 5.60),
            (8, 2.0, 2.0, 0.50, 1.25, 8.75),
            (16, 2.0, 2.0, 0.25, 1.125, 16.875),
            (16, 1.5, 1.5, 0.625, 1.0625, 15.94),
            (16, 1.2, 1.2, 0.85, 1.025, 15.38),
        ];
        for (n, ratio, first, last, mean, length) in table {
            let chirp = Geometry::new(n, A, ratio_from_f64(ratio));
            let near = |ns: u64, of_a: f64, tolerance: f64| {
                let got = ns as f64 / A as f64;
                assert!((got - of_a).abs() <= tolerance, "N {n} γ {ratio}: {got} against {of_a}");
            };
            // 1.2 is 1229/1024 = 1.2002 in fixed point; the table rounds lengths to two digits.
            near(chirp.first_gap, first, 0.0003);
            near(chirp.gap(n - 1), last, 0.0006);
            near(chirp.length() / u64::from(n - 1), mean, 0.0006);
            near(chirp.length(), length, 0.006);
        }
    }

    #[test]
    fn the_guard_fills_up_the_share_of_the_round_trip_and_is_never_below_the_average_gap() {
        let length = Geometry::new(16, A, 2 * RATIO_ONE).length();
        for (chirps, micros) in [(2, 8312), (4, 3312), (8, 812), (16, 100)] {
            assert_eq!(guard(A, length, 20_000_000, chirps * RATIO_ONE) / 1000, micros, "{chirps} chirps per RTT");
        }
        assert_eq!(guard(A, length, 0, 2 * RATIO_ONE), A, "unknown RTT");
    }

    #[test]
    fn back_to_back_chirps_send_at_0_895_of_the_rate() {
        let length = Geometry::new(16, A, 2 * RATIO_ONE).length();
        let rate = 16.0 * A as f64 / (length + guard(A, length, 0, RATIO_ONE)) as f64;
        assert!((rate - 0.895).abs() < 0.0005, "{rate}");
    }

    #[test]
    fn the_moving_average_halves_the_distance() {
        let chain = [225_000, 225_000, 225_000].iter().scan(200_000, |average, estimate| {
            *average = smooth(*average, *estimate, RATIO_ONE / 2);
            Some(*average)
        });
        assert_eq!(chain.collect::<Vec<_>>(), [212_500, 218_750, 221_875]);
        assert_eq!(smooth(200_000, 50_000, RATIO_ONE / 2), 125_000);
        assert_eq!(smooth(200_000, 400_000, RATIO_ONE / 2), 300_000);
    }

    #[test]
    fn a_gap_above_two_milliseconds_does_not_wrap_32_bits() {
        let chirp = Geometry::new(16, 10_000_000, 2 * RATIO_ONE);
        assert_eq!((chirp.first_gap, chirp.step), (20_000_000, 1_250_000));
    }

    #[test]
    fn ratios_that_are_not_numbers_are_zero() {
        assert_eq!([f64::NAN, -1.0, 0.0].map(ratio_from_f64), [0, 0, 0]);
        assert_eq!(ratio_from_f64(f64::INFINITY), u64::from(u32::MAX));
    }

    proptest! {
        #[test]
        fn gaps_shrink_steadily_and_length_is_their_sum(n in 1u32..=64, a in 0u64..10_000_000_000, ratio in 1024u64..=3072) {
            let chirp = Geometry::new(n, a, ratio);
            let gaps = gaps(chirp);
            prop_assert!(gaps.is_sorted_by(|x, y| x >= y));
            prop_assert_eq!(gaps.iter().sum::<u64>(), chirp.length());
            if gaps.last().is_some_and(|last| *last > 0) {
                let (n, d) = (u64::from(n), chirp.step);
                prop_assert_eq!(chirp.length(), (n - 1) * chirp.first_gap - d * (n.saturating_sub(2) * (n - 1) / 2));
            }
        }

        #[test]
        fn nothing_overflows(n: u32, a: u64, ratio: u64, rtt: u64, share: u64, weight: u64) {
            let chirp = Geometry::new(n % 65, a, ratio);
            prop_assert!(guard(a, chirp.length(), rtt, share) >= a);
            let smoothed = smooth(a, rtt, weight);
            prop_assert!(smoothed >= a.min(rtt) && smoothed <= a.max(rtt));
        }
    }
}
