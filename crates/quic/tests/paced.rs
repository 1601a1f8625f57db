//! Applications that write a message now and then, and receivers that tell when they read it.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Paced, Request};
use flowstart_quic::{Node as _, OneWay, Service};
use flowstart_units::{Rate, Span, Time};
use link::{Link, World, transfer, world};

#[test]
fn a_paced_application_sends_what_it_has_and_catches_up_when_it_may() {
    // 1000 bytes every 10 ms for 2 s, over a link that carries 25 times as much.
    let paced = Some(Paced { message: 1000, gap: 10_000_000, tell: false });
    for direction in [Direction::Down, Direction::Up] {
        let asked =
            Request { size: None, nanos: Some(2_000_000_000), paced, ..request(direction, 0, ("slow_start", "cubic")) };
        let outcome = transfer(&Link::default(), asked);
        assert!(outcome.received.intact, "{outcome:?}");
        assert_eq!(outcome.received.bytes, 200_000, "{direction:?}");
        // The last message is written after 1.99 s, and takes half a round trip.
        assert!(outcome.received.nanos.abs_diff(1_990_000_000) < 5_000_000, "{outcome:?}");
        assert!(outcome.report.packets < 230, "a packet for each message: {outcome:?}");
    }
    // A tenth of the application's rate passes: what it cannot write yet waits for it.
    let slow = Link { rate: Rate::from_bps(80_000), ..Link::default() };
    let asked = Request {
        size: Some(100_000),
        paced,
        nanos: Some(50_000_000_000),
        ..request(Direction::Up, 0, ("slow_start", "cubic"))
    };
    let outcome = transfer(&slow, asked);
    assert!(outcome.received.intact && outcome.received.bytes == 100_000, "{outcome:?}");
    assert!(outcome.report.nanos > 9_000_000_000, "{outcome:?}");
}

/// Receivers take only few pieces that are shorter; either end refuses an application that has them
/// (unit tests of the client and the server).
#[test]
fn messages_have_512_bytes_over_one_connection_and_over_two() {
    for contestant in [("slow_start", "cubic"), ("fair_queuing_probe", "delay_or_cubic")] {
        for direction in [Direction::Down, Direction::Up] {
            let with = |message| {
                let paced = Some(Paced { message, gap: 2_000_000, tell: false });
                let nanos = Some(2_000_000_000);
                let asked = Request { size: None, nanos, paced, ..request(direction, 0, contestant) };
                world(&Link::default(), asked, None, Service::default()).run(Span::from_secs(10)).0
            };
            for message in [512, 600, 1_100, 1_500, 3_000] {
                let outcome = with(message).unwrap();
                assert!(outcome.received.intact, "{outcome:?}");
                assert_eq!(outcome.received.bytes, 1000 * message, "{direction:?} {contestant:?}");
            }
        }
    }
}

/// Of two connections one may have nothing to say for longer than a silent one lives, and so may
/// the only one of an application that hardly ever writes.
#[test]
fn a_connection_with_nothing_to_say_is_not_taken_for_a_dead_one() {
    let probe = ("fair_queuing_probe", "delay_or_cubic");
    for direction in [Direction::Down, Direction::Up] {
        for (contestant, gap, fair) in [
            (probe, Span::from_millis(10), false),
            (probe, Span::from_millis(100), true),
            (probe, Span::from_secs(12), false),
            (("slow_start", "cubic"), Span::from_secs(12), false),
            (("paced_chirping", "cubic"), Span::from_secs(12), false),
        ] {
            let paced = Some(Paced { message: 1500, gap: gap.as_nanos(), tell: false });
            let nanos = Some(40_000_000_000);
            let asked = Request { size: None, nanos, paced, ..request(direction, 0, contestant) };
            let link = Link { fair, jitter: Span::from_millis(1), ..Link::default() };
            let outcome = world(&link, asked, None, Service::default()).run(Span::from_secs(100)).0.unwrap();
            assert!(outcome.received.intact, "{outcome:?}");
            let messages = Span::from_secs(40).as_nanos().div_ceil(gap.as_nanos());
            assert_eq!(outcome.received.bytes, 1500 * messages, "{direction:?} {contestant:?} {gap}");
        }
    }
}

/// Nanoseconds that the server's clock is said to be ahead.
const AHEAD: u64 = 7_000_000_000;

/// Delays of the messages, by clocks that differ, and how far the clocks are apart to an end.
fn delays(world: &mut World, gap: Span) -> (Vec<Span>, OneWay) {
    let (mut clocks, mut delays) = (OneWay::default(), Vec::new());
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
        let rtt = world.client.sending().unwrap().min_rtt();
        let began = world.client.sending().unwrap().began();
        for (heard, readings) in world.client.take_readings() {
            assert_eq!(readings.first, delays.len() as u64);
            clocks.hear(heard, readings.told + AHEAD);
            for age in readings.ages {
                let read = clocks.here(readings.told + AHEAD - age, rtt).unwrap();
                delays.push(read.since(began.unwrap() + gap * delays.len() as u64));
            }
        }
    }
    (delays, clocks)
}

fn told(message: u64, gap: Span, seconds: u64, contestant: (&str, &str)) -> Request {
    let paced = Some(Paced { message, gap: gap.as_nanos(), tell: true });
    let nanos = Some(seconds * 1_000_000_000);
    Request { size: None, nanos, paced, ..request(Direction::Up, 0, contestant) }
}

#[test]
fn the_delay_of_every_message_is_known_by_clocks_that_differ() {
    let gap = Span::from_millis(10);
    for contestant in [("slow_start", "cubic"), ("paced_chirping", "delay_target")] {
        let asked = told(1448, gap, 20, contestant);
        let mut world = world(&Link::default(), asked, None, Service::default());
        let (delays, clocks) = delays(&mut world, gap);
        let outcome = world.client.outcome().unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 2000 * 1448, "{contestant:?}: {outcome:?}");
        // The last messages are told before the end.
        assert_eq!(delays.len(), 2000, "{contestant:?}");
        // 10 ms and two packets of 1.5 kB in all at 20 Mbit/s, with headers: 10.6 ms. A message
        // takes 0.6 ms one way, an ACK nothing to speak of: half of that is counted on the way
        // back.
        let mut sorted = delays.clone();
        sorted.sort_unstable();
        let [least, median] = [0, 1000].map(|place| sorted[place].as_millis_f64());
        assert!((10.2..10.8).contains(&least), "{contestant:?}: {least} ms");
        assert!((10.2..10.9).contains(&median), "{contestant:?}: {median} ms");
        // Virtual clocks do not drift.
        assert!(clocks.drift().unwrap().abs() < 10.0, "{:?}", clocks.drift());
    }
}

#[test]
fn above_the_capacity_delays_grow_by_what_does_not_pass() {
    // 1448 bytes every 5 ms are 2.3 Mbit/s, of which 1 Mbit/s passes, for 20 s.
    let gap = Span::from_millis(5);
    let link = Link { rate: Rate::from_mbps(1), ..Link::default() };
    let service = Service::default();
    let mut world = world(&link, told(1448, gap, 20, ("slow_start", "cubic")), None, service);
    let (delays, _) = delays(&mut world, gap);
    world.client.outcome().unwrap();
    // A second takes 2.45 or more with headers and repairs: what is read at 20 s was due at 8.2.
    assert!((1_000..2_000).contains(&delays.len()), "{}", delays.len());
    let last = delays.last().unwrap().as_secs_f64();
    assert!((9.0..16.0).contains(&last), "{last}");
    // The mean of each tenth: single messages wait for repairs.
    let mean = |part: &[Span]| part.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / part.len() as f64;
    let tenths: Vec<f64> = delays.chunks_exact(delays.len() / 10).map(mean).collect();
    assert!(tenths.windows(2).all(|pair| pair[0] < pair[1]), "{tenths:?}");
}

#[test]
fn what_a_server_does_not_tell_it_says() {
    for (wrong, word) in [
        (
            Request { direction: Direction::Down, ..told(1448, Span::from_millis(1), 1, ("slow_start", "cubic")) },
            "here",
        ),
        (told(1448, Span::from_millis(1), 61, ("slow_start", "cubic")), "at most 60 s here"),
    ] {
        let (refused, _) = world(&Link::default(), wrong, None, Service::default()).run(Span::from_secs(10));
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("refuses") && said.contains(word), "{said}");
    }
}

/// What is known of a message: when it left with its last byte first, when the first datagram with
/// that arrived, and when it was read.
#[derive(Clone, Copy, Default)]
struct Way {
    left: Option<Time>,
    arrived: Option<Time>,
    datagrams: usize,
    read: Option<Time>,
    /// When it arrived, as the server says.
    said: Option<Time>,
}

/// The ways of all messages; clocks are one here.
fn ways(world: &mut World) -> Vec<Way> {
    let (mut ways, mut read) = (vec![Way::default(); 10_000], 0);
    let mut departures = Vec::new();
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
        departures.extend(world.client.take_departures());
        for (_, readings) in world.client.take_readings() {
            for (age, wait) in readings.ages.iter().zip(&readings.waits) {
                ways[read].read = Some(Time::from_nanos(readings.told - age));
                ways[read].said = Some(Time::from_nanos(readings.told - age - wait));
                read += 1;
            }
        }
    }
    let arrived: std::collections::HashMap<u128, Time> = world.arrived.iter().rev().copied().collect();
    for departure in departures {
        let way: &mut Way = &mut ways[usize::try_from(departure.message).unwrap()];
        assert!(way.left.is_none_or(|left| left < departure.at), "in the order of leaving");
        way.left = way.left.or(Some(departure.at));
        way.datagrams += 1;
        let at = arrived.get(&departure.sample.unwrap()).copied();
        way.arrived = [way.arrived, at].into_iter().flatten().min();
    }
    ways.truncate(read);
    ways
}

/// A train that the application cannot fill would hold back what it writes.
#[test]
fn what_an_application_writes_does_not_wait_for_trains() {
    let gap = Span::from_millis(8);
    let asked = told(1448, gap, 3, ("fair_queuing_probe", "delay_or_cubic"));
    let (delays, _) = delays(&mut world(&Link::default(), asked, None, Service::default()), gap);
    // 10.6 ms each, but the first ones, which wait for a round trip at most.
    let longest = delays.iter().max().unwrap().as_millis_f64();
    assert!(longest < 35.0, "{longest} ms");
}

/// The datagram that a message ends in is found by what the sender says of it, whether messages
/// have datagrams of their own or share them, over one connection or two.
#[test]
fn a_message_leaves_with_its_last_byte_and_is_read_when_nothing_before_it_is_missing() {
    let gap = Span::from_millis(5);
    let slow = Rate::from_mbps(2);
    for (contestant, message, rate, loss) in [
        (("slow_start", "cubic"), 1448, Rate::from_mbps(20), 0),
        (("slow_start", "cubic"), 600, Rate::from_mbps(20), 0),
        (("paced_chirping", "delay_target"), 4_000, Rate::from_mbps(20), 0),
        (("fair_queuing_probe", "delay_or_cubic"), 1448, Rate::from_mbps(20), 0),
        // It cannot keep up, so messages wait for the window and share datagrams.
        (("slow_start", "cubic"), 1448, slow, 0),
        (("slow_start", "cubic"), 1448, Rate::from_mbps(20), 30),
        (("slow_start", "cubic"), 600, slow, 30),
    ] {
        let link = Link { rate, loss, ..Link::default() };
        let mut world = world(&link, told(message, gap, 10, contestant), None, Service::default());
        let ways = ways(&mut world);
        let began = world.client.sending().unwrap().began().unwrap();
        let case = format!("{contestant:?} {message} {rate} {loss}");
        assert!(ways.len() > 1000, "{case}: {}", ways.len());
        let (mut least, mut at_once, mut again, mut exact) = (Time::ZERO, 0, 0, 0);
        for (number, way) in ways.iter().enumerate() {
            let due = began + gap * number as u64;
            let (Some(left), Some(arrived), Some(read)) = (way.left, way.arrived, way.read) else {
                panic!("{case}: {number} was read and never left");
            };
            assert!(due <= left && left + link.delay <= arrived && arrived <= read, "{case}: {number}");
            let said = way.said.unwrap();
            assert!(arrived <= said && said <= read, "{case}: {number}");
            exact += usize::from(said == arrived);
            least = least.max(arrived);
            assert!(read >= least, "{case}: {number} was read before one that came before it arrived");
            at_once += usize::from(read == least);
            again += usize::from(way.datagrams > 1);
        }
        if loss == 0 && rate > slow && contestant.0 != "fair_queuing_probe" {
            assert_eq!((at_once, again), (ways.len(), 0), "{case}: nothing is in the way of reading");
        }
        // Where a stream misses something before it, a message counts as arrived with that.
        let least = if loss == 0 && rate > slow { ways.len() } else { ways.len() * 8 / 10 };
        assert!(exact >= least, "{case}: {exact} of {}", ways.len());
        // Of a message the beginning may have been lost, and not its end.
        assert!(at_once * 10 > ways.len() * 7, "{case}: {at_once} of {}", ways.len());
        assert_eq!(again > 0, loss > 0 || rate == slow, "{case}: {again} were sent again");
    }
}

#[test]
fn nobody_is_told_of_departures_who_does_not_ask() {
    let asked = request(Direction::Up, 100_000, ("slow_start", "cubic"));
    let mut world = world(&Link::default(), asked, None, Service::default());
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
    assert!(world.client.take_departures().is_empty());
}
