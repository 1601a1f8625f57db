//! Where the long-term rate lies, from trains that are too fast, where the truth is known.

#[path = "common/servers.rs"]
#[allow(dead_code)] // Not all of it is for these tests.
mod servers;

use flowstart_service_curve::stats::SplitMix64;
use flowstart_service_curve::{
    End, Estimate, LongRun, Probability, ProbeConfig, ProbeVerdict, RateProbe, Served, Undecided, probe_rate,
};
use flowstart_units::{Rate, Span};
use servers::Server;

const SEEDS: u64 = 20;

/// Those that serve nobody but the train.
const ALONE: [Server; 5] =
    [Server::LatencyRate, Server::Exponential, Server::OnOff, Server::RandomOnOff, Server::Window];

fn few() -> ProbeConfig {
    ProbeConfig { samples: 150, ..ProbeConfig::default() }
}

/// Probes a server for so many seconds at most.
fn probe(server: Server, load: f64, seconds: f64, seed: u64) -> RateProbe {
    let config = ProbeConfig { seed, packet: server.packet(), ..few() };
    let rate = server.rate(load);
    let packets = (rate.as_bps() as f64 / config.packet.bits() as f64 * seconds) as usize;
    probe_rate(rate, server.delays(load, seed).take(packets), &config).unwrap()
}

#[test]
fn what_a_train_that_is_too_fast_was_served_is_the_capacity_as_often_as_its_interval_says() {
    let (mut held, mut all) = (0, 0);
    for server in ALONE {
        let truth = server.rate(1.0).as_bps() as f64;
        let mut of_case = 0;
        for seed in 0..SEEDS {
            let load = 1.1 + 0.3 * SplitMix64::for_part(seed, 6).unit();
            let found = probe(server, load, 900.0, seed);
            assert_eq!(found.verdict, ProbeVerdict::NonStationary, "{server:?} {load} {seed}");
            let served = found.served.unwrap();
            let (low, high) = served.interval(Probability::FIVE_PERCENT).unwrap();
            assert!((served.rate().unwrap() / truth - 1.0).abs() < 0.15, "{server:?} {load} {seed}: {served:?}");
            // Delays are a nanosecond coarse, which is all that a constant server varies.
            of_case += usize::from(low * (1.0 - 1e-6) <= truth && truth <= high * (1.0 + 1e-6));
        }
        // Binomial (20, 0.95): fewer than 16 has probability 0.3 %.
        assert!(of_case >= 16, "{server:?}: {of_case}");
        (held, all) = (held + of_case, all + SEEDS as usize);
    }
    // Binomial (100, 0.95): fewer than 88 has probability 0.4 %.
    assert!(held >= 88, "{held} of {all}");
}

#[test]
fn a_rate_that_is_not_too_high_says_nothing_of_what_it_might_be_served() {
    for seed in 0..3 {
        assert_eq!(probe(Server::RandomOnOff, 0.5, 900.0, seed).served, None);
    }
}

/// Rates in tenths of the capacity of a link that is on and off at random.
fn at(tenths: u64, seed: u64) -> RateProbe {
    probe(Server::RandomOnOff, tenths as f64 / 10.0, 900.0, seed)
}

#[test]
fn an_estimate_that_ends_undecided_knows_the_long_run_if_a_higher_rate_was_too_high() {
    let config = few();
    let (mut within, mut decided) = (0, 0);
    for seed in 0..SEEDS {
        let undecided = |tenths| RateProbe {
            verdict: ProbeVerdict::Undecided(Undecided::Dependent),
            served: None,
            ..at(tenths, seed)
        };
        let estimate =
            Estimate::new(vec![at(3, seed), undecided(9), undecided(10), at(12, seed), at(13, seed)], &config);
        assert_eq!(estimate.end, End::Undecided(Rate::from_mbps(9)), "{seed}");
        let LongRun { low, high, served, .. } = estimate.long_run(Probability::FIVE_PERCENT);
        let high = high.unwrap();
        assert!(low >= Rate::from_mbps(3) && high <= Rate::from_mbps(12) && low < high, "{seed}: {low} {high}");
        within += usize::from(low <= Rate::from_mbps(10) && Rate::from_mbps(10) <= high);
        decided += usize::from(estimate.is_decided());
        assert!(served.is_some_and(|served| low <= served && served <= high), "{seed}");
    }
    assert!(within >= 16, "{within}");
    // Within a step, 1 Mbit/s here: the interval is about as wide.
    assert!((1..=SEEDS as usize).contains(&decided), "{decided}");
}

#[test]
fn accepted_rates_and_refused_ones_bound_the_long_run_whatever_was_served() {
    let config = few();
    let run = |probes: Vec<RateProbe>| {
        let estimate = Estimate::new(probes, &config);
        (estimate.long_run(Probability::FIVE_PERCENT), estimate.is_decided())
    };
    let (three, four) = (at(3, 1), at(4, 1));
    let all = run(vec![three.clone(), four.clone()]);
    assert_eq!(all, (LongRun { low: Rate::from_mbps(4), high: None, served: None, disagrees: false }, false));
    let undecided = RateProbe { verdict: ProbeVerdict::Undecided(Undecided::Dependent), ..four.clone() };
    let none_above = run(vec![three.clone(), undecided.clone()]);
    assert_eq!(none_above, (LongRun { low: Rate::from_mbps(3), high: None, served: None, disagrees: false }, false));
    // Refused without having waited for half of the time.
    let refused = |mbps| RateProbe {
        verdict: ProbeVerdict::NonStationary,
        rate: Rate::from_mbps(mbps),
        served: None,
        ..four.clone()
    };
    let next = run(vec![three.clone(), refused(4)]);
    assert_eq!(
        next,
        (LongRun { low: Rate::from_mbps(3), high: Some(Rate::from_mbps(4)), served: None, disagrees: false }, true)
    );
    let above = run(vec![three.clone(), undecided.clone(), refused(5)]);
    assert_eq!(
        above,
        (LongRun { low: Rate::from_mbps(3), high: Some(Rate::from_mbps(5)), served: None, disagrees: false }, false)
    );
    // The next that was asked for is not known to be too high if one far above it is.
    let far = |last| Estimate::new(vec![three.clone(), refused(12)], &config).asked_up_to(Rate::from_mbps(last));
    assert_eq!([3, 11, 12].map(|last| far(last).is_decided()), [false, false, true]);
    assert!(Estimate::new(vec![three.clone(), refused(12)], &config).next_is_too_high());
    // Served less than what was accepted, or more than what was refused: it lies somewhere between.
    let served = |tenths| at(tenths, 1).served;
    let less = run(vec![
        RateProbe { rate: Rate::from_mbps(13), ..four.clone() },
        RateProbe { rate: Rate::from_mbps(14), ..undecided.clone() },
        RateProbe { served: served(12), ..refused(16) },
    ]);
    assert_eq!((less.0.low, less.0.high), (Rate::from_mbps(13), Some(Rate::from_mbps(16))));
    assert!(less.0.disagrees && less.0.served.unwrap() < less.0.low && !less.1, "not decided by what disagrees");
    let more = run(vec![three.clone(), undecided, RateProbe { served: served(12), ..refused(5) }]);
    assert_eq!((more.0.low, more.0.high, more.1), (Rate::from_mbps(3), Some(Rate::from_mbps(5)), false));
    assert!(more.0.disagrees);
    // In parts it agrees, and that part counts.
    let (low, high) = served(12).unwrap().interval(Probability::FIVE_PERCENT).unwrap();
    let between = Rate::from_bps(low.midpoint(high) as u64);
    let part = run(vec![RateProbe { rate: between, ..four.clone() }, RateProbe { served: served(12), ..refused(14) }]);
    assert_eq!((part.0.disagrees, part.0.low, part.0.high), (false, between, Some(Rate::from_bps(high as u64))));
    assert_eq!(Estimate::new(Vec::new(), &config).long_run(Probability::FIVE_PERCENT).low, Rate::ZERO);
    assert_eq!(Served::join([]), Served::default());
}

#[test]
fn a_pause_of_the_whole_path_is_no_capacity() {
    // A train that is served all it offers, but for one minute in which nothing moves: it is never
    // called too high, so it has nothing to say of the capacity.
    let delays = (0..300_000_u64).map(|n| {
        let waiting = (150_000..155_000).contains(&n);
        Span::from_micros(10_000 + n * 7_919 % 997)
            + if waiting { Span::from_millis((155_000 - n) * 3) } else { Span::ZERO }
    });
    let found = probe_rate(Rate::from_mbps(4), delays, &few()).unwrap();
    assert!(found.verdict != ProbeVerdict::NonStationary && found.served.is_none(), "{:?}", found.verdict);
}
