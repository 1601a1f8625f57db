//! What the procedure must not be deceived by.

use flowstart_service_curve::stats::SplitMix64;
use flowstart_service_curve::{Accepted, Probability, ProbeConfig, ProbeVerdict, RateProbe, probe_rate};
use flowstart_units::{Rate, Span};

const SEEDS: u64 = 20;

/// So many packets of 1500 bytes per second.
fn packets(per_second: u64) -> Rate {
    Rate::from_bps(per_second * 12_000)
}

fn few(seed: u64) -> ProbeConfig {
    ProbeConfig { samples: 150, seed, ..ProbeConfig::default() }
}

/// Probes with delays in seconds, by the number of the packet.
fn probe(per_second: u64, seconds: u64, seed: u64, delay: impl FnMut(u64) -> f64) -> RateProbe {
    let delays = (0..per_second * seconds).map(delay).map(Span::from_secs_f64);
    probe_rate(packets(per_second), delays, &few(seed)).unwrap()
}

/// Work of a queue that packets find who come `gap` apart, if between them comes what `brings`
/// says.
fn queue(gap: f64, mut brings: impl FnMut() -> f64) -> impl FnMut(u64) -> f64 {
    let mut work = 0.0_f64;
    move |_| {
        work = (work + brings() - gap).max(0.0);
        0.005 + work
    }
}

#[test]
fn clocks_that_drift_are_no_overload() {
    // Half a millisecond of jitter, and clocks that are 0, 20 and 150 ppm apart: after 1200 s by 0,
    // 24 and 180 ms.
    for (ppm, seed) in [0.0, 20.0, 150.0].into_iter().flat_map(|ppm| (0..5).map(move |seed| (ppm, seed))) {
        let mut random = SplitMix64::new(seed);
        let found = probe(100, 1_200, seed, |n| 0.005 + 0.000_5 * random.unit() + n as f64 / 100.0 * ppm * 1e-6);
        assert_ne!(found.verdict, ProbeVerdict::NonStationary, "{ppm} ppm, seed {seed}: {:?}", found.growth);
        // One part in a thousand that stays behind is more than clocks do.
        let mut random = SplitMix64::new(seed);
        let over = probe(100, 1_200, seed, |n| 0.005 + 0.000_5 * random.unit() + n as f64 / 100.0 * 1e-3);
        assert_eq!(over.verdict, ProbeVerdict::NonStationary, "seed {seed}: {:?}", over.growth);
    }
}

#[test]
fn one_message_per_second_is_judged_like_a_thousand() {
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed);
        let found = probe(1, 3_000, seed, |_| 0.005 - 0.01 * (1.0 - random.unit()).ln());
        assert!(matches!(found.verdict, ProbeVerdict::Accepted(_)), "{seed}: {:?}", found.verdict);
        let mut random = SplitMix64::new(seed);
        let over = probe(1, 3_000, seed, |n| 0.005 + 0.1 * n as f64 + 0.05 * random.unit());
        assert_eq!(over.verdict, ProbeVerdict::NonStationary, "{seed}");
    }
}

#[test]
fn delays_with_a_heavy_tail_are_accepted_and_their_interval_holds_the_truth() {
    // Pareto with shape 1.1: the variance is infinite, and a few delays are longer than all others
    // together. 1 % exceed 5 ms * 100^(1/1.1).
    let truth = 0.005 * 100.0_f64.powf(1.0 / 1.1);
    let (mut accepted, mut held) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed);
        let found = probe(200, 600, seed, |_| 0.005 * (1.0 - random.unit()).powf(-1.0 / 1.1));
        if let ProbeVerdict::Accepted(_) = found.verdict {
            let (low, high) = found.quantile_interval(Probability::ONE_PERCENT, Probability::FIVE_PERCENT);
            accepted += 1;
            held += usize::from(
                low.is_none_or(|low| low.as_secs_f64() <= truth) && high.is_none_or(|high| high.as_secs_f64() >= truth),
            );
        }
        assert_ne!(found.verdict, ProbeVerdict::NonStationary, "{seed}");
    }
    // Binomial (20, 0.95): fewer than 16 has probability 0.3 %.
    assert!(accepted >= 18 && held + 4 >= accepted, "{held} of {accepted}");
}

#[test]
fn work_with_a_heavy_tail_is_stationary_and_never_too_high() {
    // Between packets comes work that is Pareto with shape 1.4 now and then: 60 % of the time, with
    // memory of minutes.
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed);
        let mean = 0.1 * 1.4 / 0.4;
        let mut brings =
            move || if random.unit() < 0.006 / mean { 0.1 * (1.0 - random.unit()).powf(-1.0 / 1.4) } else { 0.0 };
        let found = probe(100, 2_000, seed, queue(0.01, &mut brings));
        assert_ne!(found.verdict, ProbeVerdict::NonStationary, "{seed}: {:?}", found.growth);
    }
}

#[test]
fn loads_that_repeat_are_no_overload_whatever_their_period() {
    // Delays that rise and fall once a period, from half a second to longer than the measurement
    // takes to be evidence; half a period of the longest only rises.
    for period in [0.5, 1.0, 10.0, 100.0, 300.0] {
        for seed in 0..5 {
            let mut random = SplitMix64::new(seed);
            let phase = random.unit();
            let wave = move |n: u64| {
                let at = (n as f64 / 100.0 / period + phase).fract();
                0.005 + 0.1 * (1.0 - (2.0 * at - 1.0).abs())
            };
            let found = probe(100, 1_500, seed, |n| wave(n) + 0.001 * random.unit());
            assert_ne!(found.verdict, ProbeVerdict::NonStationary, "{period} s, seed {seed}: {:?}", found.growth);
            if let ProbeVerdict::Accepted(_) = found.verdict {
                let quantile = found.line(Probability::ONE_PERCENT).unwrap().delay.as_secs_f64();
                assert!((0.095..=0.107).contains(&quantile), "{period} s, seed {seed}: {quantile}");
            }
        }
    }
}

#[test]
fn a_rate_exactly_at_the_capacity_is_hardly_ever_accepted() {
    let mut accepted = 0;
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed);
        let found = probe(100, 1_500, seed, queue(0.01, || -0.01 * (1.0 - random.unit()).ln()));
        accepted += usize::from(matches!(found.verdict, ProbeVerdict::Accepted(_)));
    }
    // The test for stationarity errs once in twenty times.
    assert!(accepted <= 3, "{accepted}");
}

#[test]
fn a_train_that_is_late_once_is_accepted_as_what_it_is_otherwise() {
    // A single message of 2000 s is late by a minute.
    let found = probe(10, 2_000, 1, |n| if n == 12_345 { 60.0 } else { 0.02 });
    assert_eq!(found.verdict, ProbeVerdict::Accepted(Accepted::Constant));
    assert_eq!(found.line(Probability::ONE_PERCENT).unwrap().delay, Span::from_millis(20));
}

#[test]
fn more_samples_than_fit_into_memory_are_too_few_of_a_train_that_ends() {
    let config = ProbeConfig { samples: usize::MAX, warm_up: Span::ZERO, ..ProbeConfig::default() };
    let found = probe_rate(packets(100), (0..1000).map(Span::from_micros), &config).unwrap();
    assert!(matches!(found.verdict, ProbeVerdict::Undecided(_)), "{:?}", found.verdict);
}
