//! Looks of ends with either stack, in virtual time: what is said of a path does not depend on
//! whose packets were sent.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Report, Request};
use flowstart_quic::{Capacity, Reading, ReadingConfig, Stack};
use flowstart_units::{Rate, Span};
use link::{Link, world_over};

fn look(link: &Link, direction: Direction, stacks: [Stack; 2]) -> Report {
    let asked = request(direction, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    world_over(link, asked, stacks).run(Span::from_secs(60)).0.unwrap().report
}

/// Packets of quinn's second connection are smaller than full ones, and small ones are written by
/// its own rules. Behind a bucket of a few packets the small packet that leaves ahead of a lone
/// full one tells that the full one passes on tokens: without it rates and RTTs are wrong there.
#[test]
fn small_packets_leave_over_either_stack_and_say_the_same() {
    let mut wrong = Vec::new();
    for (kbps, bytes) in [1_000, 5_000].into_iter().flat_map(|kbps| [0, 1600, 4000, 8000].map(|bytes| (kbps, bytes))) {
        for (rtt, direction) in
            [10, 60].into_iter().flat_map(|rtt| [Direction::Down, Direction::Up].map(|way| (rtt, way)))
        {
            let link = Link {
                rate: Rate::from_bps(kbps * 1000),
                delay: Span::from_micros(rtt * 500),
                bucket: (bytes > 0).then_some((bytes, Rate::from_mbps(1000))),
                buffer: 4000,
                ..Link::default()
            };
            for (client, server) in Stack::ALL.into_iter().flat_map(|one| Stack::ALL.map(|other| (one, other))) {
                let report = look(&link, direction, [client, server]);
                let reading = Reading::new(&report, ReadingConfig::USUAL).unwrap();
                let capacity = reading.capacity(&reading);
                let right = matches!(capacity, Capacity::Known(mbps) if (mbps * 1e3 / kbps as f64 - 1.0).abs() < 0.01);
                let [least, most] = reading.rtt(&reading);
                let near = least > rtt as f64 - 0.2 && most < rtt as f64 + 0.2;
                // One packet of 5 Mbit/s or slower takes longer than hosts stand still.
                let told = reading.looked().alone.is_some() == (bytes > 0);
                if !right || !near || !told {
                    wrong.push(format!(
                        "{kbps} kbit/s, {bytes} bytes, {rtt} ms, {direction:?}, {client:?} and {server:?}: {least} to {most} ms, {:?}",
                        report.look
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} {}", wrong.len(), wrong.join("\n"));
}
