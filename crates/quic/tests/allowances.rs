//! What one peer may have of a server in an hour, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::{Node as _, Service};
use flowstart_units::{Span, Time};
use link::{Link, World, world};

/// Runs the client to its end: the bytes that arrived, or why not.
fn end(world: &mut World, request: Request) -> Result<u64, String> {
    let next = link::client(world.clock, world.now, request);
    world.client = next;
    let until = world.now + Span::from_secs(100);
    while !world.client.is_over(world.now) && world.now < until {
        world.step(until);
    }
    // Its last words reach the server.
    world.run_until(world.now + Span::from_secs(1));
    let spare = asks(Direction::Down, Some(1), None, 1);
    let spare = link::client(world.clock, world.now, spare);
    let client = std::mem::replace(&mut world.client, spare);
    client.outcome().map(|outcome| outcome.received.bytes).map_err(|error| error.to_string())
}

fn asks(direction: Direction, size: Option<u64>, seconds: Option<u64>, session: u64) -> Request {
    let nanos = seconds.map(|seconds| seconds * 1_000_000_000);
    Request { size, nanos, session, ..request(direction, 0, ("slow_start", "cubic")) }
}

/// A world in which nothing has happened yet.
fn limited(service: Service) -> World {
    world(&Link::default(), asks(Direction::Down, Some(1), None, 1), None, service)
}

#[test]
fn a_peer_has_so_many_bytes_in_an_hour_however_many_transfers_it_takes() {
    for direction in [Direction::Down, Direction::Up] {
        let mut world = limited(Service { peer_bytes: 5_000_000, ..Service::default() });
        for session in [2, 3] {
            assert_eq!(end(&mut world, asks(direction, Some(2_000_000), None, session)), Ok(2_000_000));
        }
        let why = end(&mut world, asks(direction, Some(2_000_000), None, 4)).unwrap_err();
        assert!(
            why.contains("refuses: one address may have 5 MB of transfers in 3600 s here, of which 1 MB are left"),
            "{why}"
        );
        assert!(why.contains(" are left: come again in 359"), "{why}");
        if direction == Direction::Down {
            // Data for a time ends where the bytes do.
            assert_eq!(end(&mut world, asks(direction, None, Some(20), 5)), Ok(1_000_000));
        }
        world.now = Time::ZERO + Span::from_secs(3_610);
        assert_eq!(end(&mut world, asks(direction, Some(5_000_000), None, 6)), Ok(5_000_000));
    }
}

#[test]
fn a_peer_has_so_much_time_in_an_hour() {
    let mut world = limited(Service { peer_time: Span::from_secs(10), ..Service::default() });
    assert!(end(&mut world, asks(Direction::Down, None, Some(6), 2)).unwrap() > 10_000_000);
    let why = end(&mut world, asks(Direction::Down, None, Some(6), 3)).unwrap_err();
    assert!(why.contains("10 s of transfers in 3600 s here, of which 3 s are left: come again in 3599 s"), "{why}");
    assert!(end(&mut world, asks(Direction::Down, None, Some(3), 4)).is_ok());
}
