//! Rates that are given up before their time is over.

#[path = "common/servers.rs"]
#[allow(dead_code, reason = "closed forms are for other tests")]
mod servers;

use flowstart_service_curve::stats::SplitMix64;
use flowstart_service_curve::{Accepted, GiveUp, OnUnitRoot, ProbeConfig, ProbeVerdict, RateProbe, probe_rate};
use flowstart_units::{Rate, Span};
use servers::Server;

/// A hundred packets a second.
const RATE: Rate = Rate::from_bps(1_200_000);
const SECONDS: u64 = 3_000;

/// Delays of 10 s in the mean that forget exponentially in `memory` seconds, in units of 1 s, and
/// what `more` adds at each packet's second.
fn delays(memory: f64, seed: u64, mut more: impl FnMut(f64, &mut SplitMix64) -> f64) -> Vec<Span> {
    let mut random = SplitMix64::new(seed);
    let kept = (-0.01 / memory).exp();
    let mut x = random.normal();
    (0..(SECONDS + 10) * 100)
        .map(|n| {
            x = kept * x + (1.0 - kept * kept).sqrt() * random.normal();
            Span::from_secs_f64((10.0 + x + more(n as f64 / 100.0, &mut random)).max(0.0))
        })
        .collect()
}

/// What is said of the whole train, and of one that may be given up.
fn both(delays: &[Span], config: &ProbeConfig) -> [RateProbe; 2] {
    [None, Some(GiveUp::within(Span::from_secs(SECONDS)))].map(|give_up| {
        let config = ProbeConfig { give_up, ..config.clone() };
        probe_rate(RATE, delays.iter().copied(), &config).unwrap()
    })
}

fn seconds(probe: &RateProbe) -> f64 {
    probe.measured.as_secs_f64()
}

fn is_undecided(probe: &RateProbe) -> bool {
    matches!(probe.verdict, ProbeVerdict::Undecided(_))
}

#[test]
fn delays_that_remember_for_minutes_are_given_up_with_a_third_of_their_time_left() {
    for seed in 1..=5 {
        let [whole, short] = both(&delays(100.0, seed, |_, _| 0.0), &ProbeConfig::default());
        assert!(is_undecided(&whole) && is_undecided(&short), "{seed}: {:?} {:?}", whole.verdict, short.verdict);
        assert!(seconds(&whole) > 2_990.0, "{seed}");
        assert!((600.0..=2_000.0).contains(&seconds(&short)), "{seed}: {}", seconds(&short));
    }
}

#[test]
fn what_is_said_of_a_rate_that_is_given_up_is_what_is_said_of_a_train_that_ends_there() {
    let all = delays(100.0, 1, |_, _| 0.0);
    let [_, short] = both(&all, &ProbeConfig::default());
    let ended = &all[..short.packets as usize];
    let of_it = probe_rate(RATE, ended.iter().copied(), &ProbeConfig::default()).unwrap();
    assert_eq!((of_it.verdict, of_it.samples, of_it.measured), (short.verdict, short.samples, short.measured));
    assert_eq!((of_it.stationarity, of_it.independence), (short.stationarity, short.independence));
}

#[test]
fn delays_that_forget_in_seconds_are_watched_until_they_are_decided() {
    for seed in 1..=5 {
        let [whole, short] = both(&delays(4.0, seed, |_, _| 0.0), &ProbeConfig::default());
        assert!(matches!(whole.verdict, ProbeVerdict::Accepted(_)) && seconds(&whole) > 1_500.0, "{seed}: {whole:?}");
        assert_eq!((short.verdict, short.measured), (whole.verdict, whole.measured), "{seed}");
    }
}

/// The median remembers for minutes, and the delays beyond the quantile come for two seconds each:
/// those are worth enough, however dependent the median is.
#[test]
fn a_median_that_remembers_is_no_reason_to_give_up_if_the_quantile_does_not() {
    for seed in 1..=5 {
        let (mut until, mut spike) = (0.0, 0.0);
        let spikes = |t: f64, random: &mut SplitMix64| {
            if t >= until {
                until = t + 2.0;
                spike = if random.unit() < 0.02 { 10.0 + 10.0 * random.unit() } else { 0.0 };
            }
            spike
        };
        let [whole, short] = both(&delays(100.0, seed, spikes), &ProbeConfig::default());
        assert_eq!(whole.verdict, ProbeVerdict::Accepted(Accepted::Dependent), "{seed}");
        assert_eq!((short.verdict, short.measured), (whole.verdict, whole.measured), "{seed}");
    }
}

/// The median forgets in seconds, and will have forgotten when samples are as far apart as those of
/// the whole time; what is beyond the quantile comes in 20 s each and is worth little.
#[test]
fn a_quantile_that_remembers_is_no_reason_to_give_up_if_the_median_does_not() {
    let mut late = 0;
    for (memory, seed) in [1.5, 2.5].into_iter().flat_map(|memory| (1..=8).map(move |seed| (memory, seed))) {
        let (mut until, mut spike) = (0.0, 0.0);
        let spikes = |t: f64, random: &mut SplitMix64| {
            if t >= until {
                until = t + 20.0;
                spike = if random.unit() < 0.03 { 10.0 } else { 0.0 };
            }
            spike
        };
        let [whole, short] = both(&delays(memory, seed, spikes), &ProbeConfig::default());
        let tested = whole.verdict == ProbeVerdict::Accepted(Accepted::Tested);
        late += usize::from(tested && whole.effective < 368.0 && seconds(&whole) > 1_500.0);
        assert_eq!((short.verdict, short.measured), (whole.verdict, whole.measured), "{memory} {seed}");
    }
    assert!(late >= 3, "{late}");
}

#[test]
fn nothing_is_given_up_before_growth_would_be_seen_nor_when_little_is_left() {
    let all = delays(100.0, 2, |_, _| 0.0);
    let given_up = |overload_after, budget| {
        let give_up = Some(GiveUp::within(Span::from_secs(budget)));
        let config = ProbeConfig { give_up, overload_after: Span::from_secs(overload_after), ..ProbeConfig::default() };
        seconds(&probe_rate(RATE, all.iter().copied(), &config).unwrap())
    };
    assert!(given_up(600, SECONDS) < 1_000.0);
    assert!((1_000.0..2_000.0).contains(&given_up(1_000, SECONDS)));
    // At the looks after 960 and 1920 s less than a third is left.
    assert!(given_up(600, 1_400) > 2_990.0);
}

/// The first minute passes, and what comes after it does not: whether the first speaks for all is
/// asked at the end.
#[test]
fn a_rate_that_has_passed_for_a_short_time_is_not_given_up() {
    let mut random = SplitMix64::new(9);
    let mut all = delays(100.0, 2, |_, _| 0.0);
    all[..6_500].iter_mut().for_each(|delay| *delay = Span::from_secs_f64(10.0 + random.unit()));
    let [whole, short] = both(&all, &ProbeConfig::default());
    assert!(is_undecided(&whole), "{:?}", whole.verdict);
    assert_eq!((short.verdict, short.measured), (whole.verdict, whole.measured));
}

/// So slowly that it is not evident after a third of the time.
#[test]
fn delays_that_seem_to_grow_are_not_given_up() {
    for seed in 1..=5 {
        let [whole, short] = both(&delays(50.0, seed, |t, _| 0.005 * t), &ProbeConfig::default());
        assert!(whole.verdict == ProbeVerdict::NonStationary && seconds(&whole) > 1_500.0, "{seed}: {whole:?}");
        assert_eq!((short.verdict, short.measured), (whole.verdict, whole.measured), "{seed}");
    }
}

#[test]
fn by_the_papers_procedure_nothing_is_given_up() {
    let config = ProbeConfig { on_unit_root: OnUnitRoot::Extend, ..ProbeConfig::default() };
    let [whole, short] = both(&delays(100.0, 1, |_, _| 0.0), &config);
    assert_eq!((short.verdict, short.measured), (whole.verdict, whole.measured));
}

/// Every server of known capacity, in a tenth of the time: nothing is accepted or refused that the
/// whole train is not, and hardly anything is missed.
#[test]
fn nothing_is_decided_otherwise_than_by_the_whole_train_and_nearly_nothing_missed() {
    let (mut decided, mut missed, mut saved) = (0, 0, 0.0);
    for server in Server::ALL {
        for load in [0.6, 0.9, 0.97, 1.02] {
            for seed in 1..=4 {
                let rate = server.rate(load);
                let config = ProbeConfig {
                    seed,
                    packet: server.packet(),
                    samples: 150,
                    overload_after: Span::from_secs(60),
                    ..ProbeConfig::default()
                };
                let probe = |give_up| {
                    let packets = (rate.as_bps() as f64 / config.packet.bits() as f64 * 310.0) as usize;
                    let config = ProbeConfig { give_up, ..config.clone() };
                    probe_rate(rate, server.delays(load, seed).take(packets), &config).unwrap()
                };
                let (whole, short) = (probe(None), probe(Some(GiveUp::within(Span::from_secs(300)))));
                if !is_undecided(&short) {
                    assert_eq!((short.verdict, &short.samples), (whole.verdict, &whole.samples), "{server:?} {load}");
                }
                let is_decided = !is_undecided(&whole);
                decided += usize::from(is_decided);
                missed += usize::from(is_decided && is_undecided(&short));
                saved += whole.measured.as_secs_f64() - short.measured.as_secs_f64();
            }
        }
    }
    assert!(decided >= 80 && missed <= 1 && saved > 300.0, "{decided} {missed} {saved}");
}
