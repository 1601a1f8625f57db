//! How long looks queue behind token buckets, on paths drawn at random, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_network::{JitterConfig, LinkConfig, MediumConfig, QueueConfig, RateSchedule, ShaperConfig};
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::{Capacity, LookConfig, Node as _, Reading, ReadingConfig, Service};
use flowstart_random::SplitMix64;
use flowstart_units::{Bytes, Rate, Span, Time};
use link::described::{Described, Others};
use link::{Busy, Link, Pipe, world_with};

/// What a look did.
struct Seen {
    /// The longest time in milliseconds that one of its packets waited.
    queue: f64,
    right: bool,
    isolated: &'static str,
    what: String,
}

/// A look downwards over a path of this number.
fn look(seed: u64, number: u64) -> Option<Seen> {
    let mut random = SplitMix64::for_part(seed, number);
    let mut between = |least: f64, most: f64| least * libm::pow(most / least, random.unit());
    let (mbps, kilobytes, times, rtt) =
        (between(2.0, 100.0), between(4.0, 256.0), between(1.5, 20.0), between(5.0, 150.0));
    let spread = between(0.1, 3.0);
    let every = between(5.0, 50.0);
    let jitter = (random.below(3) == 0).then(|| JitterConfig { spread: ms(spread), reorder: false });
    let stalls = if random.below(2) == 0 { Span::ZERO } else { ms(every) };
    let line = Some(Rate::from_bps((mbps * times * 1e6) as u64));
    let shaper = Some(ShaperConfig { line, ..ShaperConfig::new(Bytes::new((kilobytes * 1e3) as u64)) });
    let rate = RateSchedule::Constant(Rate::from_bps((mbps * 1e6) as u64));
    let medium = MediumConfig { shaper, ..MediumConfig::default() };
    let link = LinkConfig { jitter, medium, ..LinkConfig::new(rate, ms(rtt / 2.0), QueueConfig::drop_tail(4000)) };
    let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world_with(&Link::default(), asked, None, Service::default(), LookConfig::default());
    world.pipes = [0, 8].map(|way| Pipe::of(Described::new(&link, Others::Nobody, ms(rtt), 16 * number + way)));
    if !stalls.is_zero() {
        world.hosts = [7, 8].map(|host| Busy::new(stalls, true, host + number));
        world.hosts.iter_mut().for_each(|host| host.most = Span::from_millis(20));
    }
    while world.now < Time::ZERO + Span::from_secs(60) && !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
    let described = world.pipes[1].described.as_ref().unwrap();
    let queue = described.longest.as_secs_f64() * 1e3;
    let at = described.waits.iter().max_by_key(|(_, wait)| *wait).map_or(0.0, |(at, _)| at.as_secs_f64());
    let report = world.client.outcome().ok()?.report;
    let reading = Reading::new(&report, ReadingConfig::USUAL)?;
    let capacity = reading.capacity(&reading);
    let right = matches!(capacity, Capacity::Known(said) if (said / mbps - 1.0).abs() <= 0.05);
    let isolated = match reading.isolation(&reading) {
        "shared" => "right",
        "isolated" => "wrong",
        _ => "unknown",
    };
    let what = format!(
        "{number}: {mbps:.2} Mbit/s, {kilobytes:.0} kB, wire {times:.1} times, {rtt:.0} ms, jitter {}, stalls {:.0}: {queue:.0} ms at {at:.3} s, {capacity:?}",
        if jitter.is_some() { spread } else { 0.0 },
        stalls.as_secs_f64() * 1e3,
    );
    Some(Seen { queue, right, isolated, what })
}

fn ms(milliseconds: f64) -> Span {
    Span::from_nanos((milliseconds * 1e6) as u64)
}

/// `FLOWSTART_LOOKS=SEED cargo test -p flowstart-quic --test queues -- --ignored --nocapture`.
#[test]
#[ignore = "a table of many looks, for the page"]
fn table_of_queues_behind_buckets() {
    let seed = std::env::var("FLOWSTART_LOOKS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let all: Vec<Seen> = (0..450).filter_map(|number| look(seed, number)).collect();
    let long: Vec<&Seen> = all.iter().filter(|seen| seen.queue > 50.0).collect();
    long.iter().for_each(|seen| println!("{}", seen.what));
    let count = |of: &dyn Fn(&&Seen) -> bool| all.iter().filter(of).count();
    let longest = all.iter().map(|seen| seen.queue).fold(0.0, f64::max);
    println!(
        "{} looks, {} above 50 ms, {longest:.0} ms at most, {} above 60; {} figures right; isolation right {}, wrong {}",
        all.len(),
        long.len(),
        count(&|seen| seen.queue > 60.0),
        count(&|seen| seen.right),
        count(&|seen| seen.isolated == "right"),
        count(&|seen| seen.isolated == "wrong"),
    );
}

/// Of 900 looks at paths of this draw and another 40 queue for longer, and 69 did when a detector
/// took what a bucket had saved for the path's rate.
#[test]
fn few_looks_queue_for_more_than_fifty_milliseconds_behind_a_bucket() {
    let all: Vec<Seen> = (0..300).filter_map(|number| look(3, number)).collect();
    let long: Vec<&str> = all.iter().filter(|seen| seen.queue > 50.0).map(|seen| seen.what.as_str()).collect();
    let right = all.iter().filter(|seen| seen.right).count();
    let isolated = all.iter().filter(|seen| seen.isolated == "right").count();
    assert!(all.iter().all(|seen| seen.isolated != "wrong"));
    assert!(long.len() * 50 <= all.len() * 3, "{} of {}: {}", long.len(), all.len(), long.join("\n"));
    assert!(right * 5 >= all.len() * 2 && isolated * 10 >= all.len() * 9, "{right}, {isolated} of {}", all.len());
}
