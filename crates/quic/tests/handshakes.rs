//! How long it takes to connect where many packets are lost, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::Direction;
use flowstart_quic::{Node as _, Service};
use flowstart_units::{Span, Time};
use link::{Link, Pipe, world};

/// Seconds until 60 transfers of a few bytes over paths of this loss (one in so many) are complete,
/// least first, and why the others failed.
fn transfers(loss: u64, connections: u8) -> (Vec<f64>, Vec<String>) {
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    for seed in 0..60 {
        let link = Link { loss, ..Link::default() };
        let mut asked = request(Direction::Up, 100, ("slow_start", "cubic"));
        asked.connections = connections;
        let mut world = world(&link, asked, None, Service::default());
        world.pipes = [2 * seed, 2 * seed + 1].map(|seed| Pipe::new(&link, 1000 * seed + loss));
        while world.now < Time::ZERO + Span::from_secs(100) && !world.client.is_over(world.now) {
            world.step(Time::NEVER);
        }
        match world.client.outcome() {
            Ok(_) => times.push(world.now.as_secs_f64()),
            Err(why) => failed.push(format!("1/{loss}, {connections}, {seed}: {why}")),
        }
    }
    times.sort_by(f64::total_cmp);
    (times, failed)
}

/// When the stack took a path for 333 ms long until it knew better, two packets were all that left
/// before a server counted as out of reach: 2 of 60 clients gave up where a fifth of the packets
/// was lost, and 13 where a third was. Half of the others had waited for 1.2 and 3.4 s.
#[test]
fn clients_find_a_server_behind_a_path_that_loses_a_third_of_the_packets() {
    for (loss, connections, fail, median) in [(5, 1, 0, 1.0), (5, 2, 0, 1.3), (3, 1, 4, 2.5), (3, 2, 1, 4.0)] {
        let (times, failed) = transfers(loss, connections);
        assert!(failed.len() <= fail, "{}", failed.join("\n"));
        assert!(times[times.len() / 2] <= median, "1/{loss}, {connections}: {times:?}");
    }
}

/// Nothing is sent twice that was not lost where round trips take no longer than 750 ms.
#[test]
fn over_a_usual_path_nothing_of_a_handshake_is_sent_again() {
    let datagrams = |rtt: u64| {
        let link = Link { delay: Span::from_millis(rtt / 2), ..Link::default() };
        let asked = request(Direction::Up, 100, ("slow_start", "cubic"));
        let mut world = world(&link, asked, None, Service::default());
        while !world.client.is_over(world.now) {
            world.step(Time::NEVER);
        }
        world.client.outcome().unwrap();
        world.datagrams
    };
    assert_eq!(datagrams(20), datagrams(700));
}
