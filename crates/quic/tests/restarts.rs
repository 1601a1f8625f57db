//! A server that is killed and started anew, in virtual time: its clients hear of it, from nobody
//! else.

mod common;
#[path = "common/link.rs"]
mod link;

use std::time::Duration;

use common::request;
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::tls::Identity;
use flowstart_quic::{Arrival, Client, Limits, Node as _, Server, Service, Sink, Stack, controller};
use flowstart_units::{Rate, Span, Time};
use link::{Link, World, client, server_address, world, world_over};

const ONE: (&str, &str) = ("slow_start", "cubic");
const TWO: (&str, &str) = ("fair_queuing_probe", "delay_or_cubic");

/// A transfer that will last for long, 700 ms after its beginning.
fn midway(direction: Direction, contestant: (&str, &str)) -> World {
    let link = Link { rate: Rate::from_mbps(5), ..Link::default() };
    let mut world = world(&link, request(direction, 50_000_000, contestant), None, Service::default());
    world.run_until(Time::ZERO + Span::from_millis(700));
    assert!(!world.client.is_over(world.now));
    world
}

fn at(place: &str) -> Limits {
    Limits { place: place.to_owned(), ..Limits::default() }
}

/// How long after this moment the client is over, and what it says.
fn ends(mut world: World) -> (Span, String) {
    let since = world.now;
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
    (world.now.since(since), world.client.outcome().unwrap_err().to_string())
}

fn copy(identity: &Identity) -> Identity {
    Identity::from_bytes(&identity.to_bytes()).unwrap()
}

#[test]
fn clients_of_a_server_that_was_started_anew_hear_of_it_in_little_more_than_a_second() {
    for (direction, contestant) in [Direction::Down, Direction::Up].into_iter().flat_map(|way| [(way, ONE), (way, TWO)])
    {
        // Nobody is there for so long.
        for away in [0, 300, 2500, 6000] {
            let mut world = midway(direction, contestant);
            if away > 0 {
                world.cut(true);
                world.run_until(world.now + Span::from_millis(away));
                world.cut(false);
            }
            let identity = copy(&world.identity);
            world.restart(&identity, &Limits::default());
            let (after, said) = ends(world);
            assert!(said.contains("reset the connection"), "{direction:?} {contestant:?} {away}: {said}");
            assert!(after < Span::from_millis(1300), "{direction:?} {contestant:?} {away}: {after}");
        }
    }
}

/// ... also of a server that is killed before the handshake is over: whatever it had said by then,
/// they begin anew with the next, or hear that it knows nothing of them.
#[test]
fn clients_in_a_handshake_begin_anew() {
    let ways = [Direction::Down, Direction::Up].into_iter().flat_map(|way| [(way, ONE), (way, TWO)]);
    for (stack, (direction, contestant)) in
        Stack::ALL.into_iter().flat_map(|stack| ways.clone().map(move |it| (stack, it)))
    {
        let (mut completed, mut reset) = (0, 0);
        // It takes 60 ms: three round trips, one of them to show an address.
        for killed in 0..80 {
            let link = Link { rate: Rate::from_mbps(5), ..Link::default() };
            let mut world = world_over(&link, request(direction, 100_000, contestant), [stack; 2]);
            world.run_until(Time::ZERO + Span::from_millis(killed));
            let identity = copy(&world.identity);
            world.restart(&identity, &Limits { stack, ..Limits::default() });
            while !world.client.is_over(world.now) {
                world.step(Time::NEVER);
            }
            let after = world.now.since(Time::ZERO);
            match world.client.outcome() {
                Ok(transferred) => {
                    assert!(transferred.received.intact && transferred.received.bytes == 100_000, "{killed}");
                    completed += 1;
                }
                Err(failed) if failed.to_string().contains("reset the connection") => reset += 1,
                Err(failed) => panic!("{stack:?} {direction:?} {contestant:?} {killed}: {failed} after {after}"),
            }
            assert!(after < Span::from_secs(5), "{direction:?} {contestant:?} {killed}: {after}");
        }
        assert!(completed > 20 && reset > 5, "{direction:?} {contestant:?}: {completed} and {reset}");
    }
}

/// What the server says gets lost from so many milliseconds on until the client has begun anew.
/// Then all goes on to its end.
fn be_deaf(world: &mut World, from: u64) {
    world.run_until(Time::ZERO + Span::from_millis(from));
    world.pipes[1].link.loss = 1;
    world.run_until(Time::ZERO + Span::from_millis(3_030));
    world.pipes[1].link.loss = 0;
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
}

/// A server that is there all the time, and has heard what is wanted; what it says gets lost for as
/// long as a client waits. It has a session of that client's, in which nothing will happen.
#[test]
fn a_handshake_that_begins_anew_disturbs_no_server_that_knew_of_the_first() {
    let ways = [Direction::Down, Direction::Up].into_iter().flat_map(|way| [(way, ONE), (way, TWO)]);
    for (stack, (direction, contestant)) in
        Stack::ALL.into_iter().flat_map(|stack| ways.clone().map(move |it| (stack, it)))
    {
        for deaf in [25, 43, 51] {
            let mut world = world_over(&Link::default(), request(direction, 100_000, contestant), [stack; 2]);
            be_deaf(&mut world, deaf);
            let (after, outcome) = (world.now, world.client.outcome());
            let transferred =
                outcome.unwrap_or_else(|said| panic!("{stack:?} {direction:?} {contestant:?} {deaf}: {said}"));
            assert!(transferred.received.intact && transferred.received.bytes == 100_000);
            assert!(
                after < Time::ZERO + Span::from_secs(5),
                "{stack:?} {direction:?} {contestant:?} {deaf}: {after:?}"
            );
        }
    }
}

/// Neither if all places are taken, by its own first attempt: that of a client whose address is
/// known, and whose handshake is not over, is free for its second.
#[test]
fn a_client_that_begins_anew_takes_the_place_of_its_first_attempt() {
    let ways = [(Stack::ALL[0], true), (Stack::ALL[0], false), (Stack::ALL[1], true), (Stack::ALL[1], false)];
    for (stack, few) in ways {
        let mut world = world_over(&Link::default(), request(Direction::Down, 100_000, ONE), [stack; 2]);
        let (all, of_one) = if few { (1, 8) } else { (64, 1) };
        let identity = copy(&world.identity);
        let service = Service { per_peer: of_one, ..Service::default() };
        world.restart_with(&identity, &Limits { stack, connections: all, ..Limits::default() }, service);
        be_deaf(&mut world, 25);
        let (after, outcome) = (world.now, world.client.outcome());
        let transferred = outcome.unwrap_or_else(|said| panic!("{stack:?} {few}: {said}"));
        assert!(transferred.received.intact && after < Time::ZERO + Span::from_secs(5), "{stack:?} {few}: {after:?}");
    }
}

/// Whoever forges a client's address does not get its place: his packet has no token. Nor does who
/// is at another port.
#[test]
fn nobody_else_takes_the_place_of_a_handshake() {
    for stack in Stack::ALL {
        let mut world = world_over(&Link::default(), request(Direction::Down, 100_000, ONE), [stack; 2]);
        let identity = copy(&world.identity);
        world.restart(&identity, &Limits { stack, connections: 1, ..Limits::default() });
        world.run_until(Time::ZERO + Span::from_millis(35));
        let mut other = client(world.clock, world.now, Request { session: 8, ..request(Direction::Down, 1000, ONE) });
        let mut first = Vec::new();
        assert!(other.poll_transmit(world.now, 0, &mut first).is_some());
        for from in [world.ports[0], world.ports[1]] {
            let arrival = Arrival { at: world.now, from, ecn: None };
            world.server.handle(world.now, 0, &arrival, &first);
        }
        let outcome = world.run(Span::from_secs(30)).0.unwrap_or_else(|said| panic!("{stack:?}: {said}"));
        assert!(outcome.received.intact, "{stack:?}");
    }
}

/// The stack still answers what arrives of a connection that is closed, for three timeouts; the
/// next client does not wait for that.
#[test]
fn a_connection_that_is_closed_takes_no_place() {
    for stack in Stack::ALL {
        let mut world = world_over(&Link::default(), request(Direction::Down, 1000, ONE), [stack; 2]);
        let identity = copy(&world.identity);
        world.restart(&identity, &Limits { stack, connections: 1, ..Limits::default() });
        let of = |world: &World, session| {
            client(world.clock, world.now, Request { session, ..request(Direction::Down, 1000, ONE) })
        };
        let next = |world: &mut World, session| {
            world.client = of(world, session);
            while !world.client.is_over(world.now) {
                world.step(Time::NEVER);
            }
            // Its last word arrives.
            world.run_until(world.now + Span::from_millis(20));
            let spare = of(world, 99);
            std::mem::replace(&mut world.client, spare).outcome().is_ok_and(|transferred| transferred.received.intact)
        };
        for session in 11..30 {
            assert!(next(&mut world, session), "{stack:?}: {session}");
        }
    }
}

/// It left the others without a word when the first of them was served.
#[test]
fn a_server_for_one_transfer_waits_for_those_beside_it_and_takes_no_more() {
    let mut world = world(&Link::default(), request(Direction::Down, 50_000_000, ONE), None, Service::default());
    let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
    let (limits, identity) = (Limits::default(), copy(&world.identity));
    world.server = Server::new(world.clock, &limits, &identity, Service::default(), make, true).unwrap();
    world.run_until(Time::ZERO + Span::from_millis(300));
    // Others, from other ports, while it goes on.
    let other = |world: &mut World, session: u64| {
        let request = Request { session, ..request(Direction::Down, 1000, ONE) };
        let before = std::mem::replace(&mut world.client, client(world.clock, world.now, request));
        world.ports = ["10.0.0.3", "10.0.0.4"].map(|ip| format!("{ip}:{}", 5000 + session).parse().unwrap());
        while !world.client.is_over(world.now) {
            world.step(Time::NEVER);
        }
        // Its last word arrives.
        world.run_until(world.now + Span::from_millis(30));
        std::mem::replace(&mut world.client, before)
    };
    let second = other(&mut world, 21).outcome();
    assert!(second.unwrap().received.intact && !world.server.is_over(world.now), "the first goes on");
    let third = other(&mut world, 22).outcome().unwrap_err().to_string();
    assert!(third.contains("it ends after one transfer"), "{third}");
    assert!(!world.server.is_over(world.now));
    // The first, whom nobody hears of any more, is given up.
    world.cut(true);
    world.run_until(world.now + Span::from_secs(15));
    assert!(world.server.is_over(world.now));
}

/// It stayed for ever.
#[test]
fn a_server_for_one_transfer_ends_when_that_breaks_off() {
    for silent in [true, false] {
        let mut world = world(&Link::default(), request(Direction::Down, 50_000_000, ONE), None, Service::default());
        let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
        let (limits, identity) = (Limits::default(), copy(&world.identity));
        world.server = Server::new(world.clock, &limits, &identity, Service::default(), make, true).unwrap();
        world.run_until(Time::ZERO + Span::from_millis(300));
        if silent {
            world.cut(true);
        } else {
            world.client.stop(world.now, "interrupted");
        }
        world.run_until(world.now + Span::from_secs(20));
        assert!(world.server.is_over(world.now), "silent: {silent}");
    }
}

#[test]
fn a_server_that_asks_for_an_address_and_falls_silent_is_given_up() {
    for contestant in [ONE, TWO] {
        let mut world =
            world(&Link::default(), request(Direction::Down, 100_000, contestant), None, Service::default());
        world.run_until(Time::ZERO + Span::from_millis(25));
        world.cut(true);
        let (after, said) = ends(world);
        assert!(said.contains("no connection comes about"), "{contestant:?}: {said}");
        assert!(after > Span::from_secs(14) && after < Span::from_secs(16), "{contestant:?}: {after}");
    }
}

/// In an emulation of one's own the other end is there: what is silent is a queue.
#[test]
fn a_server_that_is_reached_late_is_waited_for_by_who_is_told_to() {
    let patient = |seed| Limits {
        seed: Some([seed; 32]),
        idle: Duration::from_secs(100),
        silence: Span::from_secs(100),
        ..Limits::default()
    };
    for (delay, contestant) in [(2, ONE), (2, TWO), (6, ONE), (6, TWO)] {
        let link = Link { delay: Span::from_secs(delay), ..Link::default() };
        let asked = request(Direction::Up, 100_000, contestant);
        let hasty = world(&link, asked.clone(), None, Service::default());
        assert!(hasty.run(Span::from_secs(100)).0.unwrap_err().to_string().starts_with("nothing came back from"));
        let mut world = world(&link, asked.clone(), None, Service::default());
        let identity = Identity::generate().unwrap();
        let service = Service { most_time: Span::from_secs(1000), ..Service::default() };
        world.restart_with(&identity, &patient(1), service);
        let ends = (controller(&asked.start, &asked.avoidance, 1452).unwrap(), Sink::Check);
        world.client = Client::new(world.clock, Time::ZERO, &patient(9), server_address(), None, asked, ends).unwrap();
        let outcome = world.run(Span::from_secs(1000)).0.unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 100_000, "{delay} s, {contestant:?}");
    }
}

/// It might come back between two attempts; only that it did not is told.
#[test]
fn a_server_that_asks_for_an_address_and_is_gone_is_said_to_be() {
    let mut world = world(&Link::default(), request(Direction::Down, 100_000, ONE), None, Service::default());
    world.run_until(Time::ZERO + Span::from_millis(25));
    world.cut(true);
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
        world.client.refused(world.now);
    }
    let said = world.client.outcome().unwrap_err().to_string();
    assert!(said.contains("nobody listens there any more"), "{said}");
    assert!(world.now > Time::ZERO + Span::from_secs(14), "{}", world.now);
}

/// Not even a server of the same identity at another place: whoever sends it a client's packet
/// would get the word that ends the connection (RFC 9000 section 21.11).
#[test]
fn nobody_but_the_same_server_can_say_that_a_connection_is_over() {
    for (other, place) in [(true, ""), (false, "elsewhere")] {
        for direction in [Direction::Down, Direction::Up] {
            let mut world = midway(direction, ONE);
            let identity = if other { Identity::generate().unwrap() } else { copy(&world.identity) };
            world.restart(&identity, &at(place));
            let (after, said) = ends(world);
            assert!(said.contains("went silent"), "{other} {place}: {said}");
            assert!(after > Span::from_secs(9), "{other} {place}: {after}");
        }
    }
}

/// What looks like a reset, but has another token than the server's: of any length, from the
/// server's address, by the thousand.
#[test]
fn a_forged_reset_ends_nothing() {
    let mut random = flowstart_random::SplitMix64::new(7);
    for direction in [Direction::Down, Direction::Up] {
        let link = Link { rate: Rate::from_mbps(5), ..Link::default() };
        let mut world = world(&link, request(direction, 1_000_000, ONE), None, Service::default());
        world.run_until(Time::ZERO + Span::from_millis(700));
        for round in 0..5000 {
            let length = 21 + random.next_u64() as usize % 1200;
            let mut forged: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            // With a short header, or a long one.
            forged[0] = if round % 4 > 0 { 0x40 | (forged[0] >> 2) } else { forged[0] };
            let arrival = Arrival { at: world.now, from: server_address(), ecn: None };
            world.client.handle(world.now, 0, &arrival, &forged);
            let arrival = Arrival { at: world.now, from: world.ports[0], ecn: None };
            world.server.handle(world.now, 0, &arrival, &forged);
        }
        assert!(!world.client.is_over(world.now));
        let outcome = world.run(Span::from_secs(30)).0.unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 1_000_000, "{outcome:?}");
    }
}
