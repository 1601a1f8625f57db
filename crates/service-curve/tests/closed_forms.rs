//! The procedure where the truth is known: servers whose delays have a closed form, at 20 seeds
//! each. Refusals need evidence, and intervals cover as often as they say.

#[path = "common/servers.rs"]
mod servers;

use flowstart_service_curve::stats::SplitMix64;
use flowstart_service_curve::{
    Accepted, End, Estimate, Probability, ProbeConfig, ProbeVerdict, RateProbe, Undecided, last_wanted, probe_rate,
};
use flowstart_units::{Rate, Span};
use servers::Server;

const SEEDS: u64 = 20;

/// Probes a server for so many seconds at most.
fn probe(server: Server, load: f64, seconds: f64, config: &ProbeConfig, seed: u64) -> RateProbe {
    let config = ProbeConfig { seed, packet: server.packet(), ..config.clone() };
    let rate = server.rate(load);
    let packets = (rate.as_bps() as f64 / config.packet.bits() as f64 * seconds) as usize;
    probe_rate(rate, server.delays(load, seed).take(packets), &config).unwrap()
}

fn few() -> ProbeConfig {
    ProbeConfig { samples: 150, ..ProbeConfig::default() }
}

#[test]
fn intervals_of_quantiles_hold_the_closed_form_as_often_as_they_say() {
    let (mut held, mut all) = (0, 0);
    let cases = [
        (Server::LatencyRate, 0.9),
        (Server::Exponential, 0.5),
        (Server::Exponential, 0.8),
        (Server::AmongExponential, 0.5),
        (Server::AmongExponential, 0.8),
        (Server::AmongEqual, 0.5),
        (Server::AmongEqual, 0.8),
        (Server::OnOff, 0.51),
    ];
    for (server, load) in cases {
        let truth = server.quantile(load, 0.01).unwrap();
        let mut of_case = 0;
        for seed in 0..SEEDS {
            let found = probe(server, load, 600.0, &ProbeConfig::default(), seed);
            assert!(
                matches!(found.verdict, ProbeVerdict::Accepted(_)),
                "{server:?} {load} {seed}: {:?}",
                found.verdict
            );
            let (low, high) = found.quantile_interval(Probability::ONE_PERCENT, Probability::FIVE_PERCENT);
            // The clock is a nanosecond coarse.
            let low = low.map_or(0.0, |low| low.as_secs_f64() - 1e-9);
            let high = high.map_or(f64::INFINITY, |high| high.as_secs_f64() + 1e-9);
            of_case += usize::from(low <= truth && truth <= high);
        }
        // Binomial (20, 0.95): fewer than 16 has probability 0.3 %.
        assert!(of_case >= 16, "{server:?} {load}: {of_case}");
        if server != Server::LatencyRate {
            (held, all) = (held + of_case, all + SEEDS as usize);
        }
    }
    // Binomial (140, 0.95): fewer than 125 has probability 0.4 %.
    assert!(held >= 125, "{held} of {all}");
}

#[test]
fn a_rate_below_the_capacity_is_never_too_high_whatever_the_load_and_the_length() {
    for server in Server::ALL {
        for seed in 0..SEEDS {
            let mut random = SplitMix64::for_part(seed, 5);
            let (load, seconds) = (0.3 + 0.65 * random.unit(), 70.0 + 900.0 * random.unit());
            let found = probe(server, load, seconds, &few(), seed);
            assert_ne!(found.verdict, ProbeVerdict::NonStationary, "{server:?} {load} {seconds} {seed}");
        }
    }
}

#[test]
fn a_rate_above_the_capacity_is_too_high_once_it_has_grown_for_long_and_undecided_before() {
    for server in Server::ALL {
        for seed in 0..3 {
            let found = probe(server, 1.2, 1_500.0, &few(), seed);
            assert_eq!(found.verdict, ProbeVerdict::NonStationary, "{server:?} {seed}");
            // Of what is offered a sixth stays behind, of which the first block has seen nothing.
            assert!((found.arrived() - 1.0 / 1.2).abs() < 0.06, "{server:?} {seed}: {}", found.arrived());
            let short = probe(server, 1.2, 100.0, &few(), seed).verdict;
            assert!(matches!(short, ProbeVerdict::Undecided(_)), "{server:?} {seed}: {short:?}");
        }
    }
}

/// Exponential delays of 10 ms in the mean above 5 ms, the first of which is that unusual.
fn first_is_unusual(seed: u64) -> impl Iterator<Item = Span> {
    let mut random = SplitMix64::for_part(seed, 3);
    let mut first = Some(0.995_f64);
    std::iter::from_fn(move || {
        let u = first.take().unwrap_or_else(|| random.unit());
        Some(Span::from_secs_f64(0.005 - 0.01 * (1.0 - u).ln()))
    })
}

#[test]
fn a_first_sample_that_is_unusual_makes_no_rate_too_high() {
    let slow = Rate::from_mbps(1);
    let now = ProbeConfig { warm_up: Span::ZERO, sampling_gap: Span::ZERO, sampling_packets: 1, ..few() };
    for seed in 0..50 {
        let found =
            probe_rate(slow, first_is_unusual(seed).take(20_000), &ProbeConfig { seed, ..now.clone() }).unwrap();
        assert!(matches!(found.verdict, ProbeVerdict::Accepted(_)), "{seed}: {:?}", found.verdict);
    }
    // As the paper reads, with as many packets as samples: some are.
    let letter = ProbeConfig { warm_up: Span::ZERO, samples: 150, ..ProbeConfig::paper() };
    let refused = (0..50).filter(|seed| {
        let found = probe_rate(slow, first_is_unusual(*seed).take(150), &letter).unwrap();
        found.verdict == ProbeVerdict::NonStationary
    });
    assert!(refused.count() > 0);
}

#[test]
fn slow_trains_are_sampled_at_random_too() {
    // 1 Mbit/s through a link that is on and off for 100 ms each: twelve milliseconds between
    // packets, so that a mean gap of ten would take every one.
    let mut quantiles = Vec::new();
    for seed in 0..SEEDS {
        let config = ProbeConfig { seed, ..ProbeConfig::default() };
        let delays = || Server::OnOff.delays(0.1, seed).step_by(12);
        let found = probe_rate(Rate::from_mbps(1), delays(), &config).unwrap();
        assert!(matches!(found.verdict, ProbeVerdict::Accepted(_)), "{seed}: {:?}", found.verdict);
        quantiles.push(found.line(config.epsilon).unwrap().delay.as_millis_f64());
        let other = probe_rate(Rate::from_mbps(1), delays(), &ProbeConfig { seed: seed + 100, ..config }).unwrap();
        assert_ne!(found.samples, other.samples, "another seed takes other packets");
    }
    assert!(quantiles.iter().all(|ms| (90.0..101.0).contains(ms)), "{quantiles:?}");
}

#[test]
fn rare_losses_are_seen_because_every_train_is_watched_for_a_minute() {
    // A loss every ten seconds, in the mean, that holds up all messages for half a second: 5 % of
    // the time. 150 samples 10 ms apart cover 1.5 s.
    let delays = |seed: u64| {
        let mut random = SplitMix64::for_part(seed, 9);
        let (mut now, mut held_until) = (0.0_f64, 0.0_f64);
        std::iter::from_fn(move || {
            now += 0.001_2;
            if random.unit() < 0.001_2 / 10.0 {
                held_until = now + 0.5;
            }
            Some(Span::from_secs_f64(0.01 + (held_until - now).max(0.0)))
        })
    };
    let rate = Rate::from_mbps(10);
    let bare = |config: &ProbeConfig| {
        let is_bare = |seed: &u64| {
            let found = probe_rate(rate, delays(*seed), &ProbeConfig { seed: *seed, ..config.clone() }).unwrap();
            assert!(found.measured >= config.least_time);
            found.line(config.epsilon).is_some_and(|line| line.delay <= Span::from_millis(10))
        };
        (0..SEEDS).filter(is_bare).count()
    };
    assert_eq!(bare(&few()), 0);
    assert!(bare(&ProbeConfig { least_time: Span::ZERO, ..few() }) > 10);
}

#[test]
fn delays_that_alternate_are_not_independent() {
    let delays = || (0_u64..).map(|n| Span::from_millis(5 + 10 * (n % 2)) + Span::from_micros(n * 7_919 % 997));
    let every =
        ProbeConfig { sampling_gap: Span::ZERO, sampling_packets: 1, max_thinning: 1, ..ProbeConfig::default() };
    let found = probe_rate(Rate::from_mbps(1), delays(), &every).unwrap();
    assert!(found.independence.unwrap().z > 10.0, "{:?}", found.independence);
    assert!(!matches!(found.verdict, ProbeVerdict::Accepted(Accepted::Tested)), "{:?}", found.verdict);
}

#[test]
fn near_saturation_dependent_samples_end_with_an_interval() {
    // At 95 % samples are dependent for long; a cautious count of those that are worth one must
    // hold the truth as often as it says.
    let (server, load) = (Server::AmongExponential, 0.95);
    let truth = server.quantile(load, 0.01).unwrap();
    let config = ProbeConfig { max_thinning: 64, ..ProbeConfig::default() };
    let (mut dependent, mut held) = (0, 0);
    for seed in 0..SEEDS {
        let found = probe(server, load, 1_000.0, &config, seed);
        if found.verdict == ProbeVerdict::Accepted(Accepted::Dependent) {
            assert!(found.effective >= 368.0, "both ends are bounded");
            let (low, high) = found.quantile_interval(Probability::ONE_PERCENT, Probability::FIVE_PERCENT);
            let within = low.unwrap().as_secs_f64() <= truth && truth <= high.unwrap().as_secs_f64();
            (dependent, held) = (dependent + 1, held + usize::from(within));
        }
    }
    assert!(dependent > 3, "{dependent}");
    assert!(held * 10 >= dependent * 8, "{held} of {dependent}");
    // Without them, as in the paper, such rates are undecided.
    let strict = ProbeConfig { dependent: false, ..config };
    let found = (0..SEEDS).map(|seed| probe(server, load, 1_000.0, &strict, seed).verdict);
    assert!(found.into_iter().filter(|verdict| matches!(verdict, ProbeVerdict::Undecided(_))).count() >= dependent);
}

#[test]
fn a_rate_below_an_accepted_one_is_never_too_high() {
    let config = few();
    let at = |mbps: u64, load: f64| {
        let mut found = probe(Server::Exponential, load, 900.0, &config, mbps);
        found.rate = Rate::from_mbps(mbps);
        found
    };
    let (fine, over) = (|mbps| at(mbps, 0.5), |mbps| at(mbps, 1.3));
    let estimate = Estimate::new(vec![fine(1), over(2), fine(3), over(4)], &config);
    assert_eq!(estimate.probes[1].verdict, ProbeVerdict::Undecided(Undecided::Contradicted));
    assert_eq!((estimate.accepted().len(), estimate.end), (2, End::NonStationary(Rate::from_mbps(4))));
    assert_eq!(estimate.curve.long_term_rate(), Rate::from_mbps(3));
    assert_eq!(estimate.curve.epsilon().get(), 0.02, "two rates");
    // However many there are: they were measured, and so was the one above them.
    let estimate = Estimate::new(vec![over(1), over(2), over(3), fine(4)], &config);
    let contradicted = |probe: &RateProbe| probe.verdict == ProbeVerdict::Undecided(Undecided::Contradicted);
    assert!(estimate.probes[..3].iter().all(contradicted));
    assert_eq!((estimate.end, estimate.curve.long_term_rate()), (End::AllAccepted, Rate::from_mbps(4)));
    // What is undecided hides nothing above it, and the next that is too high bounds the rate.
    let short = |mbps| RateProbe { verdict: ProbeVerdict::Undecided(Undecided::Dependent), ..fine(mbps) };
    let estimate = Estimate::new(vec![fine(1), short(2), fine(3), short(4), over(5), over(6)], &config);
    assert_eq!((estimate.end, estimate.too_high()), (End::Undecided(Rate::from_mbps(4)), Some(Rate::from_mbps(5))));
    assert_eq!(estimate.curve.long_term_rate(), Rate::from_mbps(3));
    // As in the paper the first that is not accepted ends it.
    let paper = ProbeConfig { first_ends: true, ..config.clone() };
    let estimate = Estimate::new(vec![fine(1), short(2), fine(3)], &paper);
    assert_eq!((estimate.end, estimate.accepted().len()), (End::Undecided(Rate::from_mbps(2)), 1));
    let verdicts = [1, 2, 3].map(|n| (Rate::from_mbps(n), ProbeVerdict::NonStationary));
    assert_eq!(last_wanted(verdicts, &config), Some(Rate::from_mbps(2)));
    assert_eq!(last_wanted(verdicts, &paper), Some(Rate::from_mbps(1)));
    assert_eq!(last_wanted(verdicts.into_iter().take(1), &config), None);
}
