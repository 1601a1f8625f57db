//! Looks at fast paths behind small token buckets, in virtual time: a train is longer than what the
//! bucket lets pass, but not by much.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Report, Request};
use flowstart_quic::{Capacity, Reading, ReadingConfig, Service};
use flowstart_random::SplitMix64;
use flowstart_units::{Rate, Span};
use link::{Busy, Link, Pipe, world};

/// What else is there: nothing, hosts that stand still on average after so many milliseconds, or
/// jitter of up to 0.05 to 0.3 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Noise {
    None,
    Stalls(u64),
    Jitter,
}

/// What became of what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// A figure within 5 %.
    Right,
    /// ... or not: behind a bucket larger than what the look says it emptied.
    OfBursts,
    Wrong,
    /// A range of a factor of four at most that holds the capacity, or a wider one.
    Holds,
    Wide,
    /// A range above the capacity, behind a bucket larger than what the look says it emptied.
    RangeOfBursts,
    Misses,
}

const SAID: [Said; 7] =
    [Said::Right, Said::OfBursts, Said::Wrong, Said::Holds, Said::Wide, Said::RangeOfBursts, Said::Misses];

fn look(link: &Link, stalls: u64, seed: u64) -> Report {
    let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world(link, asked, None, Service::default());
    world.pipes = [seed, seed + 1].map(|seed| Pipe::new(link, seed));
    world.hosts = [2, 3].map(|host| Busy::new(Span::from_millis(stalls), false, seed + host));
    world.run(Span::from_secs(60)).0.unwrap().report
}

fn judge(truth: f64, bucket: u64, reading: &Reading) -> Said {
    let looked = reading.looked();
    let hidden = looked.burst.is_none() && bucket > looked.tested;
    match reading.capacity(reading) {
        Capacity::Known(said) if (said / truth - 1.0).abs() <= 0.05 => Said::Right,
        Capacity::Known(_) if hidden => Said::OfBursts,
        Capacity::Known(_) => Said::Wrong,
        Capacity::Between { least, most, .. } if least <= truth * 1.05 && most >= truth * 0.95 => {
            if most <= least * 4.0 { Said::Holds } else { Said::Wide }
        }
        Capacity::Between { .. } if hidden => Said::RangeOfBursts,
        Capacity::Between { .. } => Said::Misses,
        Capacity::AtLeast(_) | Capacity::Unknown => Said::Wide,
    }
}

/// What became of looks at paths of these seeds, and what those say that do not hold.
fn looks(seeds: std::ops::Range<u64>) -> (Vec<(u64, Noise, Said)>, Vec<String>) {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for seed in seeds {
        for (mbps, kilobytes) in
            [50, 100, 250].into_iter().flat_map(|mbps| [8, 10, 12, 14, 15, 16, 20, 24].map(|size| (mbps, size)))
        {
            let mut random = SplitMix64::for_part(seed, mbps * 1000 + kilobytes);
            let times = [3, 4, 10][random.below(3)];
            let rtt = [5, 12, 20, 40, 60][random.below(5)];
            let jitter = 50 + random.below(250) as u64;
            for noise in [Noise::None, Noise::Stalls(3), Noise::Stalls(20), Noise::Jitter] {
                let link = Link {
                    rate: Rate::from_mbps(mbps),
                    bucket: Some((kilobytes * 1000, Rate::from_mbps(mbps * times))),
                    delay: Span::from_micros(rtt * 500),
                    buffer: 4000,
                    jitter: Span::from_micros(if noise == Noise::Jitter { jitter } else { 0 }),
                    ..Link::default()
                };
                let stalls = if let Noise::Stalls(every) = noise { every } else { 0 };
                let report = look(&link, stalls, 1000 * seed + mbps + kilobytes);
                let reading = Reading::new(&report, ReadingConfig::USUAL).unwrap();
                let said = judge(mbps as f64, kilobytes * 1000, &reading);
                all.push((mbps, noise, said));
                if matches!(said, Said::Misses | Said::Wrong) {
                    let (capacity, looked) = (reading.capacity(&reading), reading.looked());
                    wrong.push(format!(
                        "{seed}: {mbps} Mbit/s, {kilobytes} kB, wire {times} times as fast, {rtt} ms, {noise:?} {jitter}: {capacity:?} {looked:?}"
                    ));
                }
            }
        }
    }
    (all, wrong)
}

/// How often each, by rate and noise: `FLOWSTART_LOOKS=SEED cargo test -p flowstart-quic --test
/// small_buckets -- --ignored --nocapture`.
#[test]
#[ignore = "a table of many looks, for the page"]
fn table_of_looks_behind_small_buckets() {
    let first = std::env::var("FLOWSTART_LOOKS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (all, wrong) = looks(first..first + 12);
    let mut groups: Vec<(u64, Noise)> = all.iter().map(|(mbps, noise, _)| (*mbps, *noise)).collect();
    groups.sort_unstable();
    groups.dedup();
    let count = |of: &dyn Fn(u64, Noise) -> bool| {
        SAID.map(|said| all.iter().filter(|(mbps, noise, it)| of(*mbps, *noise) && *it == said).count())
    };
    println!("{SAID:?}");
    for group in groups {
        println!("{group:?}: {:?}", count(&|mbps, noise| (mbps, noise) == group));
    }
    println!("all: {:?}\n{}", count(&|_, _| true), wrong.join("\n"));
}

/// Rates of trains of which the bucket let a half pass, and the other half not, were 1.1 to 1.6
/// times the capacity, and a range of them missed it in 2 % of these looks. Half of them had a
/// right figure when only a burst that was 1 ms ahead counted. With noise a figure is wrong now and
/// then.
#[test]
fn no_range_misses_a_capacity_that_no_larger_bucket_hides() {
    let (all, wrong) = looks(100..104);
    let count = |said: Said| all.iter().filter(|(.., it)| *it == said).count();
    assert_eq!(count(Said::Misses), 0, "{}", wrong.join("\n"));
    assert!(count(Said::Wrong) * 150 <= all.len(), "{}", wrong.join("\n"));
    assert!(count(Said::Right) * 9 >= all.len() * 5, "{} of {}", count(Said::Right), all.len());
    assert!(count(Said::RangeOfBursts) * 25 <= all.len(), "{} of {}", count(Said::RangeOfBursts), all.len());
}
