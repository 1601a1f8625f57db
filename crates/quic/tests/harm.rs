//! A look at paths that are not what it takes them for, in virtual time: what it says is right, or
//! it says that it does not know.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::Service;
use flowstart_quic::message::{Direction, Looked, Report, Request};
use flowstart_units::{Rate, Span};
use link::{Link, Pipe, world};

/// A look downwards over links whose losses and jitter follow from a seed.
fn look(down: &Link, up: &Link, seed: u64) -> Report {
    let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world(down, asked, None, Service::default());
    world.pipes = [Pipe::new(up, 2 * seed + 1), Pipe::new(down, 2 * seed + 2)];
    world.run(Span::from_secs(60)).0.unwrap().report
}

fn link(kbps: u64, rtt: u64, buffer: usize) -> Link {
    Link { rate: Rate::from_bps(kbps * 1000), delay: Span::from_micros(rtt * 500), buffer, ..Link::default() }
}

/// The rate that is said, in kbit/s, if one is.
fn said(looked: &Looked) -> Option<f64> {
    let median = looked.behind.or(looked.rates.get(looked.rates.len() / 2).copied());
    median.filter(|_| looked.decided()).map(|rate| rate as f64 / 1e3)
}

fn is_right(looked: &Looked, kbps: u64) -> bool {
    said(looked).is_none_or(|said| (said / kbps as f64 - 1.0).abs() <= 0.08)
}

/// What passes at once is little; what does not is lost, repaired, and taken for nothing else.
#[test]
fn behind_a_buffer_of_a_few_packets_rate_and_rtt_are_right_and_little_is_lost() {
    for kbps in [5_000, 20_000, 60_000] {
        for buffer in [1, 2, 3, 4, 5, 7, 10] {
            let path = link(kbps, 30, buffer);
            let report = look(&path, &path, 0);
            let looked = report.look.as_ref().unwrap();
            let what = format!("{kbps} kbit/s, {buffer} packets: {report:?}");
            assert_eq!(said(looked).is_some(), buffer > 1, "{what}");
            assert!(is_right(looked, kbps) && looked.burst.is_none(), "{what}");
            let whole = 30.0 + 11_840.0 / kbps as f64;
            assert!((looked.rtt as f64 / 1e6 - whole).abs() < 0.2, "{what}");
            let lost = if buffer > 1 { 20 } else { 10 };
            assert!(report.lost <= lost && report.nanos < 800_000_000, "{what}");
        }
    }
}

/// Links that serve in slots, and packets that overtake each other.
#[test]
fn where_packets_come_in_clumps_or_out_of_order_no_wrong_rate_is_said() {
    let mut wrong = Vec::new();
    for (kbps, rtt) in [(6_000, 30), (20_000, 30), (50_000, 15), (150_000, 8)] {
        for seed in 0..5 {
            for (slots, jitter, loss) in [(2, 0, 0), (5, 0, 0), (20, 0, 0), (0, 1, 0), (0, 2, 0), (0, 5, 0), (0, 1, 20)]
            {
                let (slots, jitter) = (Span::from_millis(slots), Span::from_millis(jitter));
                let path = Link { slots, jitter, loss, ..link(kbps, rtt, 60) };
                let report = look(&path, &path, seed);
                let looked = report.look.as_ref().unwrap();
                if !is_right(looked, kbps) || looked.burst.is_some() || looked.behind.is_some() {
                    wrong.push(format!("{kbps} kbit/s, {rtt} ms, {slots}, {jitter}, {loss}, {seed}: {looked:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is lost behind the bottleneck took its time there: what arrives is slower than the path. Of
/// 600 looks two say 10 and 14 % less.
#[test]
fn where_packets_get_lost_behind_the_bottleneck_no_wrong_rate_is_said() {
    let mut wrong = Vec::new();
    for (kbps, rtt) in [(5_000, 30), (20_000, 30), (80_000, 20)] {
        for (lost_behind, seed) in [2, 3, 5, 8, 12].into_iter().flat_map(|lost| (0..20).map(move |seed| (lost, seed))) {
            let path = Link { lost_behind, ..link(kbps, rtt, 1000) };
            let looked = look(&path, &link(kbps, rtt, 1000), seed).look.unwrap();
            if !is_right(&looked, kbps) {
                wrong.push(format!("{kbps} kbit/s, 1/{lost_behind}, {seed}: {looked:?}"));
            }
        }
    }
    assert!(wrong.len() * 100 <= 300, "{}", wrong.join("\n"));
}

/// An ACK that is lost makes a packet late in the news, and not in a queue; of 540 looks in all but
/// three in a hundred.
#[test]
fn with_losses_no_queue_is_said_that_is_longer_than_the_buffer() {
    let mut wrong = Vec::new();
    for (kbps, rtt) in [(5_000, 30), (20_000, 30), (80_000, 20)] {
        for (loss, seed) in [10, 20, 50].into_iter().flat_map(|loss| (0..60).map(move |seed| (loss, seed))) {
            let buffer = (kbps as usize * 30).div_ceil(11_840);
            let path = Link { loss, ..link(kbps, rtt, buffer) };
            let report = look(&path, &path, seed);
            let looked = report.look.as_ref().unwrap();
            let most = (buffer as u64 + 1) * 11_840_000_000 / kbps / 1000 * 1000;
            let right = is_right(looked, kbps) && looked.burst.is_none() && looked.queue <= most;
            if !right || looked.jitter > 1_000_000 {
                wrong.push(format!("{kbps} kbit/s, 1/{loss}, {seed}: {looked:?}"));
            }
        }
    }
    assert!(wrong.len() * 100 <= 540 * 3, "{}", wrong.join("\n"));
}

/// How long a look takes one way, as the page says, and what queues meanwhile.
#[test]
fn slow_paths_and_long_ones_take_as_long_as_is_said() {
    for (kbps, rtt, most, queue) in [
        (64, 50, 5_000, 220),
        (300, 50, 2_200, 80),
        (1_000, 50, 1_000, 50),
        (20_000, 100, 1_000, 50),
        (20_000, 300, 2_500, 50),
        (20_000, 600, 3_200, 50),
    ] {
        let path = link(kbps, rtt, 1000);
        let report = look(&path, &path, 0);
        let looked = report.look.as_ref().unwrap();
        let what = format!("{kbps} kbit/s, {rtt} ms: {report:?}");
        assert!(is_right(looked, kbps), "{what}");
        assert!(report.nanos <= most * 1_000_000 && looked.queue <= queue * 1_000_000, "{what}");
    }
}
