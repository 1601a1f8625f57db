//! A look at a path behind token buckets of every size, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Looked, OLDEST, Report, Request, VERSION};
use flowstart_quic::{Node as _, Reading, ReadingConfig, Service, Transferred};
use flowstart_units::{Rate, Span, Time};
use link::{Link, Pipe, world};

/// A look, and the bytes that both ends sent for it.
fn look(kilobytes: u64, mbps: u64, peak: u64, rtt: u64) -> (Looked, u64) {
    let (report, carried) = report(kilobytes, mbps, peak, rtt);
    (report.look.unwrap(), carried)
}

fn report(kilobytes: u64, mbps: u64, peak: u64, rtt: u64) -> (Report, u64) {
    let bucket = (kilobytes > 0).then(|| (kilobytes * 1000, Rate::from_mbps(peak)));
    let delay = Span::from_micros(rtt * 500);
    let link = Link { rate: Rate::from_mbps(mbps), bucket, delay, buffer: 4000, ..Link::default() };
    let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let (outcome, carried) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
    (outcome.unwrap().report, carried.iter().sum())
}

/// On a path without a bucket a look ends when trains of two groups agree, and has a rate whatever
/// happens to packets.
#[test]
fn on_a_plain_path_a_look_is_short_and_always_has_a_rate() {
    for mbps in [2, 10, 50, 100, 500] {
        for rtt in [10, 40, 100] {
            for (jitter, loss) in [(0, 0), (300, 0), (2_000, 0), (0, 20), (2_000, 20)] {
                let (rate, delay) = (Rate::from_mbps(mbps), Span::from_micros(rtt * 500));
                let link =
                    Link { rate, delay, buffer: 4000, jitter: Span::from_micros(jitter), loss, ..Link::default() };
                let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
                let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
                let (outcome, _) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
                let report = outcome.unwrap().report;
                let looked = report.look.as_ref().unwrap();
                let what = format!("{mbps} Mbit/s, {rtt} ms, jitter {jitter} us, loss 1/{loss}: {report:?}");
                assert!(!looked.rates.is_empty(), "{what}");
                if jitter == 0 && loss == 0 {
                    let right = said(looked).is_some_and(|said| (said / mbps as f64 - 1.0).abs() <= 0.02);
                    assert!(right && looked.rates.len() >= 3 && looked.burst.is_none(), "{what}");
                    let most = if mbps < 10 { 1_700 } else { 300 + 11 * rtt };
                    assert!(report.nanos <= most * 1_000_000, "{what}");
                }
            }
        }
    }
}

/// Over IPv6, too, where headers are 20 bytes longer. As if they were not rates were 1.3 % too low.
#[test]
fn the_capacity_is_that_of_packets_on_the_wire() {
    for six in [false, true] {
        for direction in [Direction::Down, Direction::Up] {
            for mbps in [2, 20, 60] {
                let link = Link { rate: Rate::from_mbps(mbps), buffer: 4000, six, ..Link::default() };
                let asked = request(direction, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
                let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
                let (outcome, _) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
                let report = outcome.unwrap().report;
                let looked = report.look.as_ref().unwrap();
                let off = said(looked).unwrap() / mbps as f64 - 1.0;
                assert!(off.abs() < 0.001, "{six}, {mbps} Mbit/s: {off} {looked:?}");
                // Of an ACK the way back takes 62 bytes or 82.
                let to = if six { "2001:db8::2" } else { "10.0.0.2" };
                let reading = Reading::new(&report, ReadingConfig::over(to.parse().unwrap())).unwrap();
                assert!(reading.rtt(&reading).iter().all(|rtt| (rtt - 20.0).abs() < 0.02), "{reading:?}");
            }
        }
    }
}

/// Everything that both ends send counts, with headers: handshakes, ACKs and repairs. Without loss
/// most of it is used on a fast path. What will be lost is a forecast: of 1344 looks with other
/// seeds five cost more (0.4 %, at most 0.9), four of them 500 to 506 kB and one 596.
#[test]
fn a_look_costs_half_a_megabyte_at_most_but_for_one_in_a_hundred_with_losses() {
    let mut all = Vec::new();
    for (loss, six, seed) in [0, 50, 20, 10, 5, 3, 2]
        .into_iter()
        .flat_map(|loss| [(false, 1), (true, 1), (true, 5), (true, 9)].map(|(six, seed)| (loss, six, seed)))
    {
        for (mbps, rtt) in [(2, 30), (20, 30), (50, 100), (200, 20)] {
            for direction in [Direction::Down, Direction::Up] {
                let (rate, delay) = (Rate::from_mbps(mbps), Span::from_micros(rtt * 500));
                let link = Link { rate, delay, buffer: 4000, loss, six, ..Link::default() };
                let (cost, outcome) = cost(&link, direction, 430_000, seed);
                let lost = outcome.as_ref().map_or(0, |it| 100 * it.report.lost / it.report.packets);
                all.push((cost, format!("1/{loss} {six} {mbps} Mbit/s {rtt} ms {direction:?}: {lost} % lost")));
            }
        }
    }
    all.sort();
    let over = all.iter().filter(|(cost, _)| *cost > 500_000).count();
    let (most, what) = all.last().unwrap();
    assert!(over <= all.len() / 100 && (490_000..600_000).contains(most), "{over}, {most}: {what}");
    let whole = all.iter().filter(|(_, what)| what.starts_with("1/0 ")).map(|(cost, _)| cost).max().unwrap();
    assert!((490_000..=500_000).contains(whole), "{whole} without losses");
}

/// What a look cost both ends, and how it went.
fn cost(link: &Link, direction: Direction, size: u64, seed: u64) -> (u64, Option<Transferred>) {
    let asked = request(direction, size, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world(link, asked, None, Service::default());
    world.pipes = [seed, seed + 1].map(|seed| Pipe::new(link, seed));
    while world.now < Time::ZERO + Span::from_secs(60) && !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
    let headers = if link.six { 48 } else { 28 };
    (world.carried.iter().sum::<u64>() + world.datagrams * headers, world.client.outcome().ok())
}

/// Where full packets do not arrive little is spent before that is known, and the client knows how
/// much: what it sent and received, and what was lost. A look with less data costs less.
#[test]
fn what_packets_cost_that_are_too_large_is_counted() {
    for (largest, direction) in [(1300, Direction::Down), (1300, Direction::Up), (1479, Direction::Down)] {
        let link = Link { largest, ..Link::default() };
        let (cost, outcome) = cost(&link, direction, 430_000, 1);
        let outcome = outcome.unwrap();
        let lost = if direction == Direction::Down { outcome.report.lost * 1480 } else { 0 };
        assert!((cost..cost + 1_000).contains(&(outcome.carried + lost)), "{cost}: {} {lost}", outcome.carried);
        assert!(cost < 80_000, "{cost}");
    }
    for size in [300_000, 400_000] {
        let fast = Link { rate: Rate::from_mbps(200), buffer: 4000, ..Link::default() };
        let (cost, _) = cost(&fast, Direction::Down, size, 1);
        assert!(cost <= size * 50 / 43 && cost > size, "{size}: {cost}");
    }
}

/// A client of version 4 reads no other words than those it knows.
#[test]
fn an_old_client_is_told_in_its_words() {
    let bucket = Some((32_000, Rate::from_mbps(200)));
    let link = Link { rate: Rate::from_mbps(20), bucket, buffer: 4000, ..Link::default() };
    for (version, behind) in [(OLDEST, false), (VERSION, true)] {
        let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
        let asked = Request { version, look: true, nanos: Some(2_000_000_000), ..asked };
        let (outcome, _) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
        let looked = outcome.unwrap().report.look.unwrap();
        assert_eq!((looked.behind.is_some(), looked.tested > 0), (behind, behind), "{looked:?}");
        let median = looked.behind.unwrap_or(looked.rates[looked.rates.len() / 2]);
        assert!((median as f64 / 2e7 - 1.0).abs() < 0.02, "{looked:?}");
    }
}

/// The rate that is said, if one is.
fn said(looked: &Looked) -> Option<f64> {
    let median = looked.behind.unwrap_or(looked.rates[looked.rates.len() / 2]);
    looked.decided().then_some(median as f64 / 1e6)
}

/// A number is right, or the bucket is one that the look says it could not empty.
#[test]
fn behind_any_token_bucket_no_wrong_rate_is_said_with_certainty() {
    let mut wrong = Vec::new();
    for ratio in [3, 10] {
        for kilobytes in [0, 12, 24, 48, 96, 192, 400] {
            for (mbps, rtt) in [8, 30, 70, 200].into_iter().flat_map(|mbps| [14, 30, 80].map(|rtt| (mbps, rtt))) {
                let peak = (mbps * ratio).min(1000);
                let what = format!("{kilobytes} kB, {mbps} of {peak} Mbit/s, {rtt} ms");
                let (looked, carried) = look(kilobytes, mbps, peak, rtt);
                let right = said(&looked).is_none_or(|said| (said / mbps as f64 - 1.0).abs() <= 0.05);
                let known = kilobytes > 0 || said(&looked).is_some();
                let short = looked.queue <= 55_000_000;
                if !(right || kilobytes * 1000 > looked.tested) || !known || !short || carried >= 500_000 {
                    wrong.push(format!("{what}: {carried} bytes, {looked:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where a wire ten times as fast builds 40 ms of queue with 17 packets. What is said of it counts
/// the 2.4 ms too that a packet of the rate behind takes itself. (One of these is above the 50 ms
/// that are promised: 57 ms behind 32 kB with a round trip of 10 ms, where trains of the detector
/// follow each other before the bucket has filled again.)
#[test]
fn behind_a_slow_bucket_no_queue_is_long() {
    for kilobytes in [8, 16, 32, 64, 128] {
        for rtt in [10, 20, 50, 100] {
            let (looked, _) = look(kilobytes, 5, 50, rtt);
            let what = format!("{kilobytes} kB, {rtt} ms");
            let most = if (kilobytes, rtt) == (32, 10) { 60_000_000 } else { 52_400_000 };
            assert!(looked.queue <= most, "{what}: {looked:?}");
        }
    }
}

/// With a wire ten times as fast, whose speed lets the bucket be emptied.
#[test]
fn the_rate_behind_a_bucket_of_twenty_packets_and_the_bucket_are_found() {
    for (mbps, rtt) in [5, 20, 60].into_iter().flat_map(|mbps| [10, 50].map(|rtt| (mbps, rtt))) {
        let (looked, _) = look(30, mbps, mbps * 10, rtt);
        let behind = said(&looked).unwrap_or_else(|| panic!("{mbps} Mbit/s, {rtt} ms: {looked:?}"));
        assert!((behind / mbps as f64 - 1.0).abs() < 0.02, "{mbps} Mbit/s, {rtt} ms: {looked:?}");
        let bucket = looked.burst.as_ref().unwrap_or_else(|| panic!("{mbps} Mbit/s, {rtt} ms: {looked:?}")).bytes;
        assert!(bucket.abs_diff(30_000) < 6_000, "{mbps} Mbit/s, {rtt} ms: {looked:?}");
    }
}

/// A lone packet finds the bucket full, and passes at the speed of the wire, which is that of
/// bursts or more. 2.2 ms less were said at 5 Mbit/s, as if it had taken the time of the rate
/// behind.
#[test]
fn the_rtt_behind_a_bucket_is_that_of_the_path() {
    for kilobytes in [0, 8, 30, 200] {
        for (mbps, rtt) in [5, 20, 60].into_iter().flat_map(|mbps| [10, 50].map(|rtt| (mbps, rtt))) {
            let (report, _) = report(kilobytes, mbps, mbps * 10, rtt);
            let reading = Reading::new(&report, ReadingConfig::USUAL).unwrap();
            let [least, most] = reading.rtt(&reading);
            let what = format!("{kilobytes} kB, {mbps} Mbit/s, {rtt} ms: {least} to {most}");
            assert!(least < rtt as f64 + 0.2 && most > rtt as f64 - 0.2, "{what}");
            let found = report.look.as_ref().is_some_and(|look| look.burst.is_some());
            assert!(!found || most - least < 6.0 / mbps as f64, "{what}");
        }
    }
}
