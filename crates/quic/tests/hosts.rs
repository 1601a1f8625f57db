//! Hosts and paths that do what they should not: stand still, change their address, take less.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Paced, Report, Request, VERSION};
use flowstart_quic::{Client, Limits, Memory, News, Node as _, Service, Sink, Stack, controller};
use flowstart_units::{Rate, Span, Time};
use link::{Busy, Link, server_address, world, world_over};

/// A packet every 5 ms, which never meets another, from a host to one that stands still again and
/// again.
fn to_a_busy_host(direction: Direction, stamps: bool) -> Report {
    let paced = Some(Paced { message: 1400, gap: 5_000_000, tell: false });
    let asked =
        Request { size: None, nanos: Some(4_000_000_000), paced, ..request(direction, 0, ("slow_start", "cubic")) };
    let mut world = world(&Link::default(), asked, None, Service::default());
    let receiver = usize::from(direction == Direction::Up);
    world.hosts[receiver] = Busy::new(Span::from_millis(2), stamps, 6);
    world.run(Span::from_secs(60)).0.unwrap().report
}

#[test]
fn what_the_receiver_waits_is_no_part_of_an_rtt() {
    for direction in [Direction::Down, Direction::Up] {
        // 20 ms, up to a packet of 1500 bytes at 20 Mbit/s and its ACK, which the way back
        // transmits.
        let report = to_a_busy_host(direction, true);
        // What was waited before the first ACK is not known.
        assert!(report.mean_rtt < 20_590_000, "{direction:?}: {report:?}");
        assert!(report.min_rtt > 20_160_000 && report.max_rtt < 21_000_000, "{direction:?}: {report:?}");
        // Without times of arrival nobody knows that it waited: it stands still for up to 6 ms.
        let report = to_a_busy_host(direction, false);
        assert!(report.max_rtt > 22_000_000 && report.mean_rtt > 20_640_000, "{direction:?}: {report:?}");
    }
}

#[test]
fn a_path_that_takes_less_in_the_middle_of_a_transfer_does_not_end_it() {
    for contestant in [("slow_start", "cubic"), ("adaptive_chirping", "cubic"), ("bbr_start", "bbr")] {
        let asked = request(Direction::Down, 3_000_000, contestant);
        let mut world = world(&Link::default(), asked, None, Service::default());
        world.run_until(Time::ZERO + Span::from_millis(600));
        assert!(!world.client.is_over(world.now));
        world.pipes.iter_mut().for_each(|pipe| pipe.link.largest = 1300);
        let outcome = world.run(Span::from_secs(60)).0.unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 3_000_000, "{contestant:?}: {outcome:?}");
    }
}

/// A tunnel takes a part of each packet. A look with usual ones has no rate, and says that it lost
/// some; a client that asks for smaller ones gets them in both directions.
#[test]
fn a_look_over_a_path_that_takes_smaller_packets_has_a_rate_with_smaller_ones() {
    let link = Link { largest: 1300, buffer: 400, ..Link::default() };
    for (stack, direction) in Stack::ALL.into_iter().flat_map(|it| [(it, Direction::Down), (it, Direction::Up)]) {
        let look = |mtu: u16| {
            let asked = Request {
                version: VERSION,
                look: true,
                nanos: Some(2_000_000_000),
                ..request(direction, 430_000, ("fair_queuing_probe", "delay_or_cubic"))
            };
            let mut world = world_over(&link, asked.clone(), [stack; 2]);
            let limits = Limits { mtu, seed: Some([3; 32]), stack, ..Limits::default() };
            let ends = (controller(&asked.start, &asked.avoidance, mtu).unwrap(), Sink::Check);
            let at = server_address();
            world.client = Client::new(world.clock, world.now, &limits, at, None, asked, ends).unwrap();
            let report = world.run(Span::from_secs(30)).0.unwrap().report;
            (report.look.unwrap(), report.lost)
        };
        let (usual, lost) = look(1452);
        assert!(usual.rates.is_empty() && lost > 0, "{stack:?} {direction:?}: {usual:?}");
        let (small, lost) = look(1200);
        let middle = small.rates.get(small.rates.len() / 2).copied().unwrap_or(0) as f64;
        let right = (middle / Link::default().rate.as_bps() as f64 - 1.0).abs() < 0.05;
        assert!(right && lost == 0 && small.rtt > 0, "{stack:?} {direction:?}: {small:?}");
    }
}

/// The token of a Retry has no room for a zone; nothing worked over link-local addresses.
#[test]
fn a_client_with_a_link_local_address_is_served_and_answered_on_its_link() {
    for stack in Stack::ALL {
        let mut world =
            world_over(&Link::default(), request(Direction::Down, 1_000_000, ("bbr_start", "bbr")), [stack; 2]);
        world.ports = ["[fe80::1%3]:5001", "[fe80::1%3]:5002"].map(|port| port.parse().unwrap());
        let outcome = world.run(Span::from_secs(60)).0.unwrap_or_else(|said| panic!("{stack:?}: {said}"));
        assert!(outcome.received.intact && outcome.received.bytes == 1_000_000, "{stack:?}: {outcome:?}");
    }
}

/// Another port over IPv6, another address, the other family: with every start and both ways. With
/// another address nothing is known of the path, so the start begins anew.
#[test]
fn a_client_whose_address_changes_gets_everything() {
    let starts =
        [("slow_start", "cubic"), ("adaptive_chirping", "cubic"), ("bbr_start", "bbr"), ("careful_resume", "cubic")];
    let two = ("fair_queuing_probe", "delay_or_cubic");
    let port: [&[&str]; 2] = [&["[fd00::1]:6"], &["[fd00::1]:6", "[fd00::1]:7", "[fd00::1]:6", "[fd00::1]:8"]];
    let address: [&[&str]; 4] =
        [&["10.9.9.9:5"], &["[fd00:9::9]:5"], &["10.9.9.9:5", "10.9.9.8:5"], &["10.9.9.9:5", "10.0.0.1:500"]];
    for (direction, contestant) in [Direction::Down, Direction::Up]
        .into_iter()
        .flat_map(|way| starts.into_iter().chain([two]).map(move |one| (way, one)))
    {
        let transfer = |home: &str, places: &[&str]| {
            let ports = |base: &str| ["1", "2"].map(|last| format!("{base}{last}").parse().unwrap());
            let link = Link { rate: Rate::from_mbps(20), ..Link::default() };
            let mut world = world(&link, request(direction, 2_500_000, contestant), None, Service::default());
            world.ports = ports(home);
            for (change, place) in places.iter().enumerate() {
                world.run_until(Time::ZERO + Span::from_millis(130 + 220 * change as u64));
                assert!(!world.client.is_over(world.now), "{direction:?} {contestant:?} {change}");
                world.ports = ports(place);
            }
            let outcome = world.run(Span::from_secs(60)).0;
            let outcome = outcome.unwrap_or_else(|error| panic!("{direction:?} {contestant:?} {places:?}: {error}"));
            assert!(outcome.received.intact && outcome.received.bytes == 2_500_000, "{contestant:?}: {outcome:?}");
            outcome.received.nanos as f64 / 1e9
        };
        let stays = transfer("10.0.0.1:500", &[]);
        for (home, all) in [("[fd00::1]:5", &port[..]), ("10.0.0.1:500", &address)] {
            for places in all {
                let takes = transfer(home, places);
                assert!(takes < 2.0 * stays, "{direction:?} {contestant:?} {places:?}: {takes} {stays}");
            }
        }
    }
}

/// Of another path nothing is known; of another port nothing else is believed (RFC 9000 section
/// 9.4).
#[test]
fn a_start_begins_anew_with_another_address_and_not_with_another_port() {
    let takes = |home: &str, place: &str| {
        let ports = |base: &str| ["1", "2"].map(|last| format!("{base}{last}").parse().unwrap());
        let link = Link { delay: Span::from_millis(20), ..Link::default() };
        let mut world =
            world(&link, request(Direction::Down, 6_000_000, ("slow_start", "reno")), None, Service::default());
        world.server.remember(Memory::default(), Box::new(|| 5));
        world.ports = ports(home);
        world.run_until(Time::ZERO + Span::from_millis(1000));
        world.ports = ports(place);
        world
            .pipes
            .iter_mut()
            .for_each(|pipe| (pipe.link.rate, pipe.link.delay) = (Rate::from_mbps(100), Span::from_millis(30)));
        while !world.client.is_over(world.now) {
            world.step(Time::NEVER);
        }
        let over = world.now;
        world.run_until(over + Span::from_secs(1));
        let learnt = world.server.take_news().iter().any(|news| matches!(news, News::Learnt(..)));
        let outcome = world.client.outcome().unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 6_000_000, "{outcome:?}");
        (over.as_nanos() as f64 / 1e9, learnt)
    };
    let [(port, learnt), (address, of_both)] = ["10.0.0.1:7", "10.0.0.9:5"].map(|place| takes("10.0.0.1:5", place));
    assert!(address < 0.8 * port, "{address} {port}");
    assert!(learnt && !of_both, "what two paths carry is nothing to remember");
    let six = takes("[fd00::1]:5", "[fd00::1]:7").0;
    assert!((six - port).abs() < 0.2 * port, "{six} {port}");
}

/// It needs both paths from their beginning, and what it found is of the old one.
#[test]
fn a_detector_gives_up_where_an_address_changes() {
    let two = ("fair_queuing_probe", "delay_or_cubic");
    // Before it has decided, and after that.
    for (millis, moving) in [(100, [true, true]), (100, [true, false]), (100, [false, true]), (1500, [true, true])] {
        let link = Link { fair: true, ..Link::default() };
        let mut world = world(&link, request(Direction::Down, 5_000_000, two), None, Service::default());
        world.run_until(Time::ZERO + Span::from_millis(millis));
        for (port, _) in world.ports.iter_mut().zip(moving).filter(|(_, moving)| *moving) {
            port.set_ip("10.9.9.9".parse().unwrap());
        }
        let outcome = world.run(Span::from_secs(60)).0.unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 5_000_000, "{outcome:?}");
        assert_eq!(outcome.report.queue.unwrap().isolation, "unknown", "{millis} {moving:?}");
        assert!(outcome.received.nanos < 4_000_000_000, "{millis} {moving:?}: {}", outcome.received.nanos);
    }
}

/// An address that somebody forged gets no more than three times what he sent, and the transfer
/// goes on where it was.
#[test]
fn who_forges_an_address_has_little_sent_there() {
    for (home, other) in
        [("10.0.0.1:500", "10.9.9.9:7"), ("[fd00::1]:500", "[fd00::1]:7"), ("10.0.0.1:500", "10.0.0.1:9")]
    {
        let ports = |base: &str| ["1", "2"].map(|last| format!("{base}{last}").parse().unwrap());
        let link = Link { rate: Rate::from_mbps(20), ..Link::default() };
        let mut world =
            world(&link, request(Direction::Down, 9_000_000, ("slow_start", "cubic")), None, Service::default());
        world.ports = ports(home);
        world.run_until(Time::ZERO + Span::from_millis(700));
        // What the client sends within these milliseconds comes from there; nobody answers.
        let offered = world.server.offered();
        let (before, sent) = (world.carried, world.stray);
        world.ports = ports(other);
        world.forged = true;
        world.run_until(Time::ZERO + Span::from_millis(720));
        world.ports = ports(home);
        world.forged = false;
        let there = world.stray - sent;
        // Nor is more than that prepared to be sent.
        assert!(world.server.offered() - offered < 400_000, "{other}: {}", world.server.offered() - offered);
        world.run_until(world.now + Span::from_millis(100));
        let received = world.carried[0] - before[0];
        // The stack lets a whole packet go as long as one byte is allowed.
        assert!(there <= 3 * received + 1452, "{other}: {there} of {received}");
        let outcome = world.run(Span::from_secs(60)).0.unwrap();
        assert!(outcome.received.intact && outcome.received.nanos < 12_000_000_000, "{other}: {outcome:?}");
    }
}

/// ... not even if it is another one with every packet: a challenge has 1200 bytes, an ACK 42.
#[test]
fn who_forges_many_addresses_has_little_sent_to_them() {
    let mut world =
        world(&Link::default(), request(Direction::Down, 9_000_000, ("slow_start", "cubic")), None, Service::default());
    world.run_until(Time::ZERO + Span::from_millis(700));
    let before = (world.carried[0], world.stray);
    world.forged = true;
    for number in 0..400_u16 {
        world.ports =
            [[1, 1], [2, 2]].map(|[net, host]| format!("10.{net}.{}.{host}:9", number % 250).parse().unwrap());
        world.run_until(world.now + Span::from_micros(500));
    }
    let (sent, there) = (world.carried[0] - before.0, world.stray - before.1);
    assert!(sent > 2_000, "the client goes on: {sent}");
    // What was saved up is the eight challenges of a connection.
    assert!(there <= 3 * sent + 8 * 1200 + 1452, "{there} of {sent}");
}

/// Who looks at a path that becomes another one finds nothing, and says so.
#[test]
fn a_look_at_a_path_that_changes_says_so() {
    let asked = request(Direction::Down, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world(&Link::default(), asked, None, Service::default());
    world.run_until(Time::ZERO + Span::from_millis(200));
    world.ports = ["10.9.9.9:51".parse().unwrap(), "10.9.9.9:52".parse().unwrap()];
    let failed = world.run(Span::from_secs(60)).0.unwrap_err();
    assert!(failed.to_string().contains("changed during the look"), "{failed}");
}

/// Packets of a client that somebody sends on from another address, or over IPv6 from another port,
/// move nothing: the transfer goes on.
#[test]
fn packets_from_another_address_do_not_take_a_transfer_away() {
    for (home, other) in
        [("10.0.0.1:500", "10.9.9.9:7"), ("[fd00::1]:500", "[fd00::1]:7"), ("10.0.0.1:500", "[fd00::1]:7")]
    {
        let ports = |base: &str| ["1", "2"].map(|last| format!("{base}{last}").parse().unwrap());
        let link = Link { rate: Rate::from_mbps(5), ..Link::default() };
        let mut world =
            world(&link, request(Direction::Down, 1_000_000, ("slow_start", "cubic")), None, Service::default());
        world.ports = ports(home);
        world.run_until(Time::ZERO + Span::from_millis(700));
        world.ports = ports(other);
        world.run_until(Time::ZERO + Span::from_millis(720));
        world.ports = ports(home);
        let outcome = world.run(Span::from_secs(30)).0.unwrap();
        assert!(outcome.received.intact && outcome.received.bytes == 1_000_000, "{other}: {outcome:?}");
    }
}

/// A router gives a client other ports again and again (NAT rebinding).
#[test]
fn a_client_whose_port_changes_gets_everything_and_little_later() {
    let starts = [("slow_start", "cubic"), ("adaptive_chirping", "cubic"), ("bbr_start", "bbr")];
    let two = ("fair_queuing_probe", "delay_or_cubic");
    for (direction, contestant) in [Direction::Down, Direction::Up]
        .into_iter()
        .flat_map(|way| starts.into_iter().chain([two]).map(move |one| (way, one)))
    {
        let transfer = |ports: u16| {
            let link = Link { rate: Rate::from_mbps(20), ..Link::default() };
            let mut world = world(&link, request(direction, 5_000_000, contestant), None, Service::default());
            for change in 0..ports {
                // The first is in the middle of the start.
                world.run_until(Time::ZERO + Span::from_millis(130 + 450 * u64::from(change)));
                assert!(!world.client.is_over(world.now), "{direction:?} {contestant:?} {change}");
                world.ports = [6000, 7000].map(|port| format!("10.0.0.1:{}", port + change).parse().unwrap());
            }
            let outcome = world.run(Span::from_secs(60)).0.unwrap();
            assert!(outcome.received.intact && outcome.received.bytes == 5_000_000, "{contestant:?}: {outcome:?}");
            outcome.received.nanos as f64 / 1e9
        };
        let (stays, moves) = (transfer(0), transfer(4));
        assert!(moves < 1.3 * stays, "{direction:?} {contestant:?}: {moves} {stays}");
    }
}

/// The network goes when the address changes, which is when networks go: of what the client sends
/// from there the first packets arrive, and no answer for longer than the stack challenges it.
#[test]
fn a_client_whose_address_changes_as_its_network_goes_for_a_moment_gets_everything() {
    let homes = [("10.0.0.1:500", "10.0.0.1:7"), ("10.0.0.1:500", "10.9.9.9:7"), ("[fd00::1]:500", "[fd00::1]:7")];
    for direction in [Direction::Down, Direction::Up] {
        for (millis, outage) in [(1, 100), (1, 700), (10, 300), (10, 3_000), (10, 5_000)] {
            for (home, other) in homes {
                let ports = |base: &str| ["1", "2"].map(|last| format!("{base}{last}").parse().unwrap());
                let link = Link { delay: Span::from_millis(millis), ..Link::default() };
                let asked = request(direction, 3_000_000, ("slow_start", "cubic"));
                let mut world = world(&link, asked, None, Service::default());
                world.ports = ports(home);
                world.run_until(Time::ZERO + Span::from_millis(430));
                world.ports = ports(other);
                world.run_until(world.now + Span::from_millis(2 * millis));
                world.cut(true);
                world.run_until(world.now + Span::from_millis(outage));
                world.cut(false);
                let what = format!("{direction:?} {millis} ms, {outage} ms without a network: {home} {other}");
                let outcome = world.run(Span::from_secs(60)).0.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(outcome.received.intact && outcome.received.bytes == 3_000_000, "{what}: {outcome:?}");
                let lost = outcome.received.nanos as f64 / 1e9 - 1.25 - outage as f64 / 1e3;
                assert!(lost < 4.0, "{what}: {lost} s later");
            }
        }
    }
}

#[test]
fn who_has_more_to_send_is_never_limited_by_the_application() {
    for contestant in [("slow_start", "cubic"), ("bbr_start", "bbr"), ("adaptive_chirping", "cubic")] {
        let link = Link { rate: Rate::from_mbps(50), ..Link::default() };
        let asked = request(Direction::Up, 4_000_000, contestant);
        let mut world = world(&link, asked, None, Service::default());
        let mut looked = 0;
        while world.client.sending().is_none_or(|sending| sending.offered() < 4_000_000) {
            world.step(Time::NEVER);
            if let Some(ledger) = world.client.ledger(0).filter(|ledger| ledger.counts().sent > 0) {
                looked += 1;
                assert!(!ledger.is_app_limited(), "{contestant:?}: {:?} at {}", ledger.counts(), world.now);
            }
        }
        assert!(looked > 1_000);
    }
}

#[test]
fn what_a_sender_that_stands_still_sends_late_counts_as_late_and_nothing_else_does() {
    for direction in [Direction::Down, Direction::Up] {
        for contestant in [("paced_chirping", "cubic"), ("bbr_start", "bbr")] {
            let late = |busy: bool| {
                let asked = request(direction, 1_000_000, contestant);
                let mut world = world(&Link::default(), asked, None, Service::default());
                if busy {
                    world.hosts[usize::from(direction == Direction::Down)] = Busy::new(Span::from_millis(10), true, 6);
                }
                world.run(Span::from_secs(60)).0.unwrap().report.late
            };
            assert_eq!(late(false), [0, 0], "{direction:?} {contestant:?}");
            // For 0.1 to 6 ms, now and then.
            let [median, most] = late(true);
            assert!(median < 100_000 && (100_000..6_400_000).contains(&most), "{direction:?}: {median}, {most}");
        }
    }
}
