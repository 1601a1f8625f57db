//! A look at a path behind token buckets of every size, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::Service;
use flowstart_quic::message::{Direction, Looked, Request};
use flowstart_units::{Rate, Span};
use link::{Link, world};

/// A look, and the bytes that both ends sent for it.
fn look(kilobytes: u64, mbps: u64, peak: u64, rtt: u64) -> (Looked, u64) {
    let bucket = (kilobytes > 0).then(|| (kilobytes * 1000, Rate::from_mbps(peak)));
    let delay = Span::from_micros(rtt * 500);
    let link = Link { rate: Rate::from_mbps(mbps), bucket, delay, buffer: 4000, ..Link::default() };
    let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let (outcome, carried) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
    (outcome.unwrap().report.look.unwrap(), carried.iter().sum())
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
/// the 2.4 ms too that a packet of the rate behind takes itself.
#[test]
fn behind_a_slow_bucket_no_queue_is_long() {
    for kilobytes in [8, 16, 32, 64, 128] {
        for rtt in [10, 20, 50, 100] {
            let (looked, _) = look(kilobytes, 5, 50, rtt);
            let what = format!("{kilobytes} kB, {rtt} ms");
            assert!(looked.queue <= 52_400_000, "{what}: {looked:?}");
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
