//! The probing procedure from beginning to end.

use flowstart_service_curve::stats::{SplitMix64, upper_quantile};
use flowstart_service_curve::{
    Accepted, AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, End, Estimate, Growth, OnUnitRoot, Probability,
    ProbeConfig, ProbeVerdict, RateProbe, Undecided, probe_rate,
};
use flowstart_units::{Rate, Span};

/// So many packets of 1500 bytes per second.
fn packets(per_second: u64) -> Rate {
    Rate::from_bps(per_second * 12_000)
}

fn probe_loop(per_second: u64, config: &ProbeConfig, count: usize) -> RateProbe {
    let of = AdaptiveLoopConfig { growth: Growth::WhenLimited, ..AdaptiveLoopConfig::default() };
    let rate = packets(per_second);
    let train = AdaptiveLoop::new(of, ConstantRate::new(rate, config.packet), 99 + per_second).unwrap();
    probe_rate(rate, train.delays().take(count), config).unwrap()
}

/// Long-run 0.99 quantiles in seconds of the loop with window validation, by packets per second, in
/// runs of 6e6 to 4e8 packets.
const LONG_RUN: [(u64, f64); 4] = [(1_000, 0.011), (2_000, 0.0615), (3_000, 0.252), (3_500, 0.594)];

#[test]
fn quantiles_of_750_thinned_samples_are_those_of_long_runs_within_their_interval() {
    let config = ProbeConfig { epsilon: Probability::ONE_PERCENT, ..ProbeConfig::default() };
    for (rate, expected) in LONG_RUN {
        let probe = probe_loop(rate, &config, 60_000_000);
        assert_eq!(probe.verdict, ProbeVerdict::Accepted(Accepted::Tested), "{rate}: {:?}", probe.independence);
        assert_eq!(probe.samples.len(), 750);
        assert!(probe.thinning > 1, "samples 10 ms apart are dependent");
        // One interval in a thousand misses: four rates.
        let miss = flowstart_service_curve::Probability::ONE_PERMILLE;
        let (low, high) = probe.quantile_interval(config.epsilon, miss);
        let expected = Span::from_secs_f64(expected);
        assert!(low.is_none_or(|low| low <= expected), "{rate}: {low:?} > {expected}");
        assert!(high.is_none_or(|high| high >= expected), "{rate}: {high:?} < {expected}");
    }
}

#[test]
fn a_rate_above_the_long_term_rate_is_not_stationary_and_ends_the_estimate() {
    let config = ProbeConfig { max_thinning: 256, ..ProbeConfig::default() };
    let estimate = Estimate::measure(packets(1_500), packets(9_000), &config, |rate| {
        let count = 20_000_000;
        Ok::<_, flowstart_service_curve::Error>(probe_loop(rate.as_bps() / 12_000, &config, count))
    })
    .unwrap();
    assert_eq!(estimate.end, End::NonStationary(packets(4_500)));
    assert_eq!(estimate.accepted().len(), 2);
    assert_eq!(estimate.curve.long_term_rate(), packets(3_000));
    assert!((estimate.curve.epsilon().get() - 0.02).abs() < 1e-12);
}

#[test]
fn what_the_measurement_does_not_decide_is_undecided_and_not_too_high() {
    let dependent = probe_loop(2_000, &ProbeConfig { max_thinning: 4, ..ProbeConfig::paper() }, 10_000_000);
    assert!(matches!(dependent.verdict, ProbeVerdict::Undecided(Undecided::Dependent)), "{:?}", dependent.verdict);
    let short = probe_loop(2_000, &ProbeConfig::paper(), 20_100);
    let ProbeVerdict::Undecided(Undecided::TooFew { have, need: 750 }) = short.verdict else {
        panic!("{:?}", short.verdict)
    };
    assert!(have < 20 && short.samples.len() as u64 == have, "{have}");
    let none = probe_rate(packets(1), std::iter::empty(), &ProbeConfig::paper()).unwrap();
    assert_eq!(none.verdict, ProbeVerdict::Undecided(Undecided::TooFew { have: 0, need: 750 }));
    let estimate = Estimate::new(vec![none, short, dependent], &ProbeConfig::paper());
    assert_eq!((estimate.end, estimate.accepted().len()), (End::Undecided(packets(1)), 0));
    assert_eq!(estimate.curve.long_term_rate(), Rate::ZERO);
}

#[test]
fn constant_delays_are_accepted_without_a_test() {
    let config = ProbeConfig::paper();
    let flat = probe_rate(packets(100), std::iter::repeat(Span::from_millis(5)), &config).unwrap();
    assert_eq!((flat.verdict, flat.thinning), (ProbeVerdict::Accepted(Accepted::Constant), 1));
    assert_eq!(flat.line(config.epsilon).unwrap().delay, Span::from_millis(5));
    // As are those of which a handful differ.
    let mut n = 0;
    let few = std::iter::from_fn(|| {
        n += 1;
        Some(Span::from_millis(if n % 200 == 0 { 9 } else { 5 }))
    });
    assert_eq!(probe_rate(packets(100), few, &config).unwrap().verdict, ProbeVerdict::Accepted(Accepted::Constant));
    assert_eq!(Estimate::new(vec![flat], &config).end, End::AllAccepted);
    assert_eq!(Estimate::new(vec![], &config).end, End::AllAccepted);
}

#[test]
fn dependent_samples_that_were_enough_are_not_once_the_whole_train_is_worth_less() {
    let config = ProbeConfig { samples: 200, warm_up: Span::ZERO, ..ProbeConfig::default() };
    // Delays that change every 30 packets, for almost a minute; towards its end 100 ms more for so
    // many packets: the slowest hundredth are a single event, and say little about the quantile.
    let with_event = |length: u64| {
        let mut random = SplitMix64::new(5);
        let mut base = 0.0;
        let delays = (0..5_800_u64).map(move |n| {
            if n.is_multiple_of(30) {
                base = random.unit();
            }
            let event = if (5_000..5_000 + length).contains(&n) { 0.1 } else { 0.0 };
            Span::from_secs_f64(0.01 + 0.005 * base + 0.001 * random.unit() + event)
        });
        probe_rate(packets(100), delays, &config).unwrap()
    };
    let none = with_event(0);
    assert_eq!(none.verdict, ProbeVerdict::Accepted(Accepted::Dependent), "worth {}", none.effective);
    for length in [100, 150, 200, 300] {
        let one = with_event(length);
        let undecided = matches!(one.verdict, ProbeVerdict::Undecided(Undecided::Dependent | Undecided::UnitRoot));
        assert!(undecided, "{:?}, worth {}", one.verdict, one.effective);
    }
}

/// It was worth all of its samples, five times as many as rates next to it that were accepted.
#[test]
fn a_train_that_stays_dependent_is_worth_less_than_its_samples_and_one_that_is_too_high_says_nothing() {
    let dependent = probe_loop(2_000, &ProbeConfig { max_thinning: 4, ..ProbeConfig::paper() }, 10_000_000);
    assert_eq!(dependent.verdict, ProbeVerdict::Undecided(Undecided::Dependent));
    let (worth, samples) = (dependent.effective, dependent.samples.len() as f64);
    assert!(worth > 0.0 && worth < samples / 2.0, "{worth} of {samples}");
    assert!(dependent.tells_a_quantile());
    let growing = probe_loop(9_000, &ProbeConfig::default(), 20_000_000);
    assert_eq!(growing.verdict, ProbeVerdict::NonStationary);
    assert_eq!(growing.quantile_interval(Probability::ONE_PERCENT, Probability::FIVE_PERCENT), (None, None));
}

#[test]
fn samples_that_passed_do_not_speak_for_a_train_that_stood_still_after_them() {
    // 12 s of 200 packets a second, and 50 samples: they pass within a second. Then a host stands
    // still for so long, and what has waited arrives at one moment.
    let config = ProbeConfig {
        samples: 50,
        epsilon: Probability::new(0.05).unwrap(),
        warm_up: Span::ZERO,
        ..ProbeConfig::default()
    };
    let with_pause = |seed, waiting: u64| {
        let mut random = SplitMix64::new(seed);
        let delays = (0..2_400_u64).map(move |n| {
            let waits = if (1_200..1_200 + waiting).contains(&n) { 5 * (1_200 + waiting - n) } else { 0 };
            Span::from_secs_f64(0.001 + 0.0005 * random.unit()) + Span::from_millis(waits)
        });
        probe_rate(packets(200), delays, &config).unwrap()
    };
    let mut accepted = 0;
    for seed in 0..40 {
        // Nothing happens: what passed speaks for all of it.
        accepted += usize::from(with_pause(seed, 0).verdict == ProbeVerdict::Accepted(Accepted::Tested));
        let stood = with_pause(seed, 600);
        if let Some(line) = stood.line(config.epsilon) {
            assert!(line.delay >= Span::from_millis(1_000), "seed {seed}: {line:?} {:?}", stood.verdict);
        }
    }
    // One in twenty does not pass the test at the end, but what passed before still counts.
    assert_eq!(accepted, 40);
}

#[test]
fn of_few_samples_the_same_share_is_tested_as_of_750() {
    // Delays off the lowest come together, three packets of fifty: 6 % of all, of which 9 are among
    // 150 samples.
    let clusters = || (0_u64..).map(|n| Span::from_millis(if n % 50 < 3 { 9 } else { 5 }));
    let with = |samples| ProbeConfig { samples, max_thinning: 1, ..ProbeConfig::paper() };
    for samples in [100, 150, 750] {
        let config = with(samples);
        let probe = probe_rate(packets(100), clusters(), &config).unwrap();
        assert!(!matches!(probe.verdict, ProbeVerdict::Accepted(_)), "{samples}: {:?}", probe.verdict);
        let runs = probe.independence.unwrap();
        assert!(!runs.is_independent(config.independence_level, config.sides), "{samples}: {runs:?}");
    }
    // A single one is no cluster, and less than the quantile leaves out.
    let once = (0_u64..).map(|n| Span::from_millis(if n == 1_050 { 9 } else { 5 }));
    let probe = probe_rate(packets(100), once, &with(150)).unwrap();
    assert_eq!(probe.verdict, ProbeVerdict::Accepted(Accepted::Constant));
}

/// `slow` of `count` samples are 9 ms, evenly spread, the others 5 ms; every packet is a sample.
fn with_slow_ones(slow: u64, count: u64, config: &ProbeConfig) -> RateProbe {
    let delay = |n: u64| Span::from_millis(if (n + 1) * slow / count > n * slow / count { 9 } else { 5 });
    let config = ProbeConfig { samples: count as usize, warm_up: Span::ZERO, max_thinning: 1, ..config.clone() };
    probe_rate(packets(1), (0..count).map(delay), &config).unwrap()
}

#[test]
fn the_smallest_class_that_is_tested_has_ten_of_750_samples_and_the_same_share_of_fewer() {
    let constant = |slow, count| {
        with_slow_ones(slow, count, &ProbeConfig::paper()).verdict == ProbeVerdict::Accepted(Accepted::Constant)
    };
    assert_eq!([9, 10, 11].map(|slow| constant(slow, 750)), [true, false, false]);
    // Of 100 samples 1.33, so 2; of 2000 samples 10.
    assert_eq!([1, 2].map(|slow| constant(slow, 100)), [true, false]);
    assert_eq!([9, 10].map(|slow| constant(slow, 2_000)), [true, false]);
}

#[test]
fn delays_that_vary_by_less_than_the_resolution_are_constant_and_by_as_much_are_not() {
    // Half of the samples 4 ms above the others: a standard deviation of 2 ms.
    let verdict = |micros| {
        let config = ProbeConfig { resolution: Span::from_micros(micros), ..ProbeConfig::paper() };
        with_slow_ones(50, 100, &config).verdict
    };
    assert_ne!(verdict(1_999), ProbeVerdict::Accepted(Accepted::Constant));
    assert_eq!(verdict(2_001), ProbeVerdict::Accepted(Accepted::Constant));
    // Exactly: half a second and a second and a half are numbers without rounding.
    let seconds = (0..100).map(|n| Span::from_millis(if n % 2 == 0 { 500 } else { 1_500 }));
    let config = ProbeConfig { samples: 100, warm_up: Span::ZERO, max_thinning: 1, ..ProbeConfig::paper() };
    let coarse = ProbeConfig { resolution: Span::from_millis(500), ..config };
    let probe = probe_rate(packets(1), seconds, &coarse).unwrap();
    assert_ne!(probe.verdict, ProbeVerdict::Accepted(Accepted::Constant), "as much as the resolution");
}

#[test]
fn medians_that_are_equal_are_no_overload() {
    // Ten blocks of 75 samples: each median 1 ms above the last, but for one that stays.
    let verdict = |stays: u64| {
        let level = move |block: u64| if block >= stays { block - 1 } else { block };
        let delays = (0..750_u64).map(move |n| Span::from_millis(10 + level(n / 75)) + Span::from_micros(n % 7));
        let config = ProbeConfig { warm_up: Span::ZERO, overload_after: Span::ZERO, ..ProbeConfig::paper() };
        probe_rate(packets(1), delays, &config).unwrap()
    };
    // Overload is seen with the first samples; otherwise more are asked for than there are.
    assert_eq!((verdict(99).verdict, verdict(99).samples.len()), (ProbeVerdict::NonStationary, 750));
    assert_eq!((verdict(5).verdict, verdict(5).samples.len()), (ProbeVerdict::NonStationary, 375));
}

#[test]
fn overload_is_seen_at_once_if_asked() {
    let growing = || (0_u64..).map(|n| Span::from_micros(10 * n + n % 7));
    let at_once = ProbeConfig { on_unit_root: OnUnitRoot::Stop, ..ProbeConfig::paper() };
    let probe = probe_rate(packets(100), growing(), &at_once).unwrap();
    assert_eq!((probe.verdict, probe.thinning), (ProbeVerdict::NonStationary, 1));
    let patient = ProbeConfig { max_thinning: 8, ..ProbeConfig::paper() };
    let probe = probe_rate(packets(100), growing(), &patient).unwrap();
    assert_eq!((probe.verdict, probe.thinning), (ProbeVerdict::NonStationary, 8));
    // Unless they have grown for ten minutes: 750 samples of 100 packets per second are 7.5 s, 128
    // times as many sixteen minutes.
    let mut taken = 0_u64;
    let mut random = SplitMix64::new(3);
    let noisy = (0_u64..).map(|n| Span::from_micros(10 * n + random.below(1_000) as u64));
    let counted = noisy.inspect(|_| taken += 1);
    let probe = probe_rate(packets(100), counted, &ProbeConfig::paper()).unwrap();
    assert_eq!((probe.verdict, probe.thinning), (ProbeVerdict::NonStationary, 128));
    assert!(taken < 110_000, "{taken}");
    let never = ProbeConfig { overload_blocks: 0, max_thinning: 256, ..ProbeConfig::paper() };
    assert_eq!(probe_rate(packets(100), growing(), &never).unwrap().thinning, 256);
    // Nor does the end of the train make it undecided.
    let probe = probe_rate(packets(100), growing().take(3_000), &ProbeConfig::paper()).unwrap();
    assert_eq!(probe.verdict, ProbeVerdict::NonStationary);
}

#[test]
fn kept_samples_are_every_so_manyth_of_all_from_the_first_on() {
    // Every packet is a sample at a rate whose packets are further apart than the sampling gap.
    let mut random = SplitMix64::new(5);
    let mut level = 0.0;
    let delays: Vec<Span> = (0..20_000)
        .map(|_| {
            level = 0.9 * level + random.normal();
            Span::from_secs_f64(1.0 + 0.01 * level)
        })
        .collect();
    let config = ProbeConfig { samples: 200, warm_up: Span::from_secs(1), ..ProbeConfig::paper() };
    let probe = probe_rate(packets(50), delays.iter().copied(), &config).unwrap();
    assert!(matches!(probe.verdict, ProbeVerdict::Accepted(Accepted::Tested)));
    assert!(probe.thinning >= 8);
    let kept: Vec<Span> = delays[50..].iter().copied().step_by(probe.thinning as usize).take(200).collect();
    assert_eq!(probe.samples, kept);
    assert_eq!(probe.packets, 50 + 199 * probe.thinning + 1);
    assert_eq!(probe.delays.count(), 199 * probe.thinning + 1);
    let expected = upper_quantile(&mut kept.clone(), config.epsilon);
    assert_eq!(probe.line(config.epsilon).map(|line| line.delay), expected);
}

#[test]
fn impossible_configurations_and_rates_are_refused() {
    let refused = |config: ProbeConfig| probe_rate(packets(1), std::iter::empty(), &config).is_err();
    assert!(refused(ProbeConfig { samples: 9, ..ProbeConfig::default() }));
    assert!(refused(ProbeConfig { growth: 1, ..ProbeConfig::default() }));
    assert!(refused(ProbeConfig { max_thinning: 0, ..ProbeConfig::default() }));
    let message = |samples, epsilon: f64| {
        let epsilon = Probability::new(epsilon).unwrap();
        let config = ProbeConfig { samples, epsilon, ..ProbeConfig::default() };
        probe_rate(packets(1), std::iter::empty(), &config).unwrap_err().to_string()
    };
    assert_eq!(message(20, 0.0), "epsilon must be above 0 %: no number of samples shows what never happens");
    assert_eq!(message(20, 1.0), "epsilon must be below 100 %: no delay is exceeded more often");
    assert_eq!(message(50, 0.01), "an epsilon of 1 % needs at least 100 samples, not 50");
    assert_eq!(message(10, 0.07), "an epsilon of 7 % needs at least 15 samples, not 10");
    assert_eq!(message(20, 1e-6), "an epsilon of 0.0001 % needs at least 1000000 samples, not 20");
    assert_eq!(message(20, 5e-9), "an epsilon of 5.00e-7 % needs at least 200000000 samples, not 20");
    let tiny = message(20, 1e-300);
    assert!(tiny.ends_with("1.00e-298 % needs more samples than can be counted") && tiny.len() < 80, "{tiny}");
    // However many are taken while they are thinned, so many are kept, and of 20 the largest is the
    // 95 % quantile at most.
    assert!(refused(ProbeConfig { samples: 20, ..ProbeConfig::default() }));
    assert!(!refused(ProbeConfig { samples: 20, epsilon: Probability::FIVE_PERCENT, ..ProbeConfig::default() }));
    let deterministic = ProbeConfig { deterministic: true, epsilon: Probability::ZERO, ..ProbeConfig::default() };
    assert!(!refused(deterministic.clone()));
    assert!(refused(ProbeConfig { epsilon: Probability::new(1e-9).unwrap(), ..deterministic }));
    let rate = |rate| probe_rate(rate, std::iter::empty(), &ProbeConfig::default());
    assert!(rate(Rate::ZERO).is_err() && rate(Rate::UNLIMITED).is_err());
}

#[test]
fn delays_of_twice_the_rate_that_is_served_have_grown_for_as_long_as_they_were_watched() {
    // 100 packets a second, of which 50 are served: after 700 s those of the first 350 s are read.
    let mut random = SplitMix64::new(8);
    let mut verdict = |packets_read: u64| {
        let delays = (0..packets_read).map(|n| Span::from_millis(10 * n + random.below(300) as u64));
        probe_rate(packets(100), delays, &ProbeConfig { samples: 150, warm_up: Span::ZERO, ..ProbeConfig::default() })
    };
    assert_eq!(verdict(35_000).unwrap().verdict, ProbeVerdict::NonStationary);
    assert_eq!(verdict(25_000).unwrap().verdict, ProbeVerdict::Undecided(Undecided::UnitRoot), "after 500 s");
}
