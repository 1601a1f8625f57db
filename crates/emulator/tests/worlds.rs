//! Worlds of more than two hosts, links that change, and what is left when a world ends in any way.

mod support;

use std::net::{SocketAddr, UdpSocket};
use std::process::Child;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowstart_emulator::traffic::{FlowConfig, RunConfig, Traffic, Workload, run};
use flowstart_emulator::{Fate, FlowRecording, HostConfig, Recording, RouteConfig, World, WorldConfig};
use flowstart_network::{DropTailConfig, QueueConfig, RateSchedule, RateStep};
use flowstart_units::{Bytes, Rate, Span, Time};

use support::{QUIET, has_received, link, pair, skipped, socket, turn};

/// Senders with these round-trip times (in ms) behind one link.
fn dumbbell(rtts: &[u64]) -> WorldConfig {
    let hosts =
        (0..rtts.len()).flat_map(|n| ["sender", "receiver"].map(|who| HostConfig::new(format!("{who}{n}")))).collect();
    let routes = rtts.iter().enumerate().flat_map(|(n, rtt)| {
        let half = Span::from_micros(rtt * 500);
        let (from, to) = (2 * n, 2 * n + 1);
        let there = RouteConfig { from, to, before: half, links: vec![0], after: Span::ZERO, way: None };
        [there, RouteConfig { from: to, to: from, before: Span::ZERO, links: Vec::new(), after: half, way: None }]
    });
    WorldConfig {
        hosts,
        routes: routes.collect(),
        links: vec![link(100, Span::ZERO, 1000)],
        ..pair(link(1, Span::ZERO, 1))
    }
}

#[test]
fn every_sender_of_a_dumbbell_has_its_own_delay_and_all_share_the_link() {
    let Some(_turn) = turn() else { return };
    let rtts = [10, 20, 40];
    // Time to prepare, in which the clock stands at zero. Nobody knocks twice within it.
    let lead = Span::from_millis(400);
    let mut config = WorldConfig { lead, ..dumbbell(&rtts) };
    config.links[0].overhead = 38;
    let recording = Arc::new(Mutex::new(Recording::new(&config.links, Span::from_millis(10))));
    let sink = recording.clone();
    let world = World::start_with(config, move |record| sink.lock().unwrap().add(record)).unwrap();
    let size = 200_000;
    let flows: Vec<FlowConfig> = (0..rtts.len())
        .map(|n| FlowConfig {
            from: 2 * n,
            to: 2 * n + 1,
            start: Time::ZERO,
            traffic: Traffic::Tcp { congestion: None, workload: Workload::Sized(Bytes::new(size)) },
        })
        .collect();
    let config = RunConfig {
        until: Time::ZERO + Span::from_secs(20),
        ends_world: false,
        stop_when_complete: true,
        sample: Span::from_millis(1),
        seed: 1,
        run: 0,
        stamped: None,
    };
    let outcomes = run(&world, &flows, &[], config, &|| false).unwrap().flows;
    let world = world.finish().unwrap();
    let recording = recording.lock().unwrap();
    for (outcome, rtt) in outcomes.iter().zip(rtts) {
        assert_eq!((outcome.delivered, &outcome.error), (size, &None));
        assert!(outcome.completed.is_some());
        assert!(outcome.info.unwrap().min_rtt >= Span::from_millis(rtt), "no packet is early: {outcome:?}");
        let packets = recording.flow(&outcome.key.unwrap()).unwrap();
        assert!(packets.bytes >= size && packets.data_packets >= size / 1448);
        // Whoever begins before the clock runs takes the rest of that time for the path's; so does
        // who begins when the machine stands still.
        let first = outcome.samples.first().expect("a sample").info.rtt;
        let late = world.fidelity.worst.max(world.fidelity.longest_stall);
        assert!(first < Span::from_millis(rtt) + lead / 2 + late * 2, "{first}");
    }
    assert_eq!(recording.flows().len(), rtts.len());
    let bins = &recording.links()[0].bins;
    assert_eq!(bins.iter().map(|bin| bin.bytes).sum::<u64>(), world.links[0].bytes.get());
    // Those that had not reached the link at the end have been sent, too.
    let sum = |of: fn(&FlowRecording) -> u64| recording.flows().iter().map(of).sum::<u64>();
    let on_the_way = sum(|flow| flow.stayed) - world.links[0].stored;
    assert_eq!(world.links[0].arrived + on_the_way, sum(|flow| flow.packets));
    assert_eq!((world.fidelity.unasked_drops, world.fidelity.above_mtu), (0, 0));
}

#[test]
fn drops_and_departures_over_a_changing_rate_are_those_of_the_formula() {
    let Some(_turn) = turn() else { return };
    const ROOM: usize = 20;
    let step = |millis, mbps| RateStep { at: Time::ZERO + Span::from_millis(millis), rate: Rate::from_mbps(mbps) };
    let mut config = pair(link(1, Span::from_millis(5), 1));
    config.links[0].rate =
        RateSchedule::Steps { steps: vec![step(0, 8), step(5, 16)], period: Some(Span::from_millis(10)) };
    config.links[0].queue = QueueConfig::DropTail(DropTailConfig { packets: Some(ROOM as u64), bytes: None });
    let (tell, told) = channel();
    let world = World::start_with(config, move |record| {
        let _ = tell.send((record.arrived, record.fate));
    })
    .unwrap();
    let (client, server) = (world.hosts()[0].address(), world.hosts()[1].address());
    let receiver = socket(&world, 1, server, 7000);
    let sender = socket(&world, 0, client, 7000);
    for _ in 0..400 {
        sender.send_to(&[0; 972], SocketAddr::new(server, 7000)).unwrap();
    }
    let mut packets: Vec<(Time, Fate)> = Vec::new();
    while packets.len() < 400 {
        packets.push(told.recv_timeout(QUIET).expect("each has its fate"));
    }
    has_received(&receiver, packets.iter().filter(|(_, fate)| matches!(fate, Fate::Sent { .. })).count());
    world.finish().unwrap();
    packets.extend(told.try_iter());
    packets.sort_by_key(|(arrived, _)| *arrived);
    // Work of 8000 bits: 8 bits per microsecond in the first half of every 10 ms, 16 in the second.
    let finish = |start: Time| {
        let (mut now, mut left) = (start.as_nanos(), 8_000_u64 * 1_000);
        loop {
            let phase = now % 10_000_000;
            let (speed, end) = if phase < 5_000_000 { (8, 5_000_000) } else { (16, 10_000_000) };
            let possible = (end - phase) * speed;
            if left <= possible {
                return Time::from_nanos(now + left / speed);
            }
            left -= possible;
            now += end - phase;
        }
    };
    // Packets that are taken from the ring too late, or stamped alike, arrive at one moment, and
    // perhaps at one at which another leaves the queue: then only the numbers just before and just
    // after are known.
    let stays: Vec<(Time, Time)> = packets
        .iter()
        .filter_map(|(arrived, fate)| match fate {
            Fate::Sent { began, .. } => Some((*arrived, *began)),
            _ => None,
        })
        .collect();
    let surely = |at: Time| stays.iter().filter(|(arrived, began)| *arrived < at && *began > at).count();
    let perhaps = |at: Time| stays.iter().filter(|(arrived, began)| *arrived <= at && *began >= at).count();
    let (mut free, mut sent, mut dropped) = (Time::ZERO, 0, 0);
    for (arrived, fate) in packets {
        let waiting = surely(arrived);
        match fate {
            Fate::Sent { began, done } => {
                assert!(waiting < ROOM, "a packet that found {waiting} waiting was not dropped");
                assert_eq!(began, arrived.max(free));
                // A fraction of a nanosecond is carried over from packet to packet.
                assert!(done.since(finish(began)).max(finish(began).since(done)) <= Span::from_nanos(1));
                free = done;
                sent += 1;
            }
            Fate::Dropped { at, .. } => {
                assert_eq!(at, arrived);
                let most = perhaps(arrived);
                assert!(waiting <= ROOM && ROOM <= most, "dropped although {waiting} to {most} waited");
                dropped += 1;
            }
            Fate::Lost => panic!("nothing is lost at random"),
            Fate::Stayed { .. } => panic!("all of it has passed"),
        }
    }
    // How many are dropped depends on how fast the machine sends.
    assert!(sent >= ROOM && sent + dropped == 400, "{sent} sent, {dropped} dropped");
}

/// Names in `/run/netns` of this process.
fn own_names() -> usize {
    let prefix = format!("fs-{}-", std::process::id());
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

fn wait_for_end(mut child: Child) {
    let until = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "a program outlives its world");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_world_that_is_dropped_or_unwound_leaves_neither_names_nor_programs() {
    let Some(_turn) = turn() else { return };
    let (tell, told) = channel();
    let world = World::start(pair(link(10, Span::ZERO, 10))).unwrap();
    let child = world.hosts()[0].command("sleep").arg("1000").spawn().unwrap();
    assert_eq!(own_names(), if world.hosts()[0].netns_name().is_some() { 2 } else { 0 });
    drop(world);
    wait_for_end(child);
    assert_eq!(own_names(), 0);
    let unwound = std::panic::catch_unwind(move || {
        let world = World::start(pair(link(10, Span::ZERO, 10))).unwrap();
        tell.send(world.hosts()[1].command("sleep").arg("1000").spawn().unwrap()).unwrap();
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(unwound.is_err());
    wait_for_end(told.recv().unwrap());
    assert_eq!(own_names(), 0);
}

#[test]
fn a_sink_that_panics_does_not_take_the_world_along() {
    let Some(_turn) = turn() else { return };
    let world = World::start_with(pair(link(10, Span::from_millis(1), 10)), |_| {
        std::panic::resume_unwind(Box::new("on purpose"));
    })
    .unwrap();
    let (client, server) = (world.hosts()[0].address(), world.hosts()[1].address());
    let receiver = socket(&world, 1, server, 7000);
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let sender = socket(&world, 0, client, 7000);
    for number in 0..5_u8 {
        sender.send_to(&[number], SocketAddr::new(server, 7000)).unwrap();
        let mut bytes = [0];
        receiver.recv(&mut bytes).unwrap();
        assert_eq!(bytes, [number]);
    }
    drop(world);
    assert_eq!(own_names(), 0);
}

#[test]
fn what_leaves_for_nowhere_is_counted_and_the_host_network_is_untouched() {
    let Some(_turn) = turn() else { return };
    let interfaces = || {
        let mut names: Vec<_> = std::fs::read_dir("/sys/class/net").unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = interfaces();
    let world = World::start(pair(link(10, Span::ZERO, 10))).unwrap();
    assert_eq!(interfaces(), before);
    let (client, server) = (world.hosts()[0].address(), world.hosts()[1].address());
    let (sender, receiver) = (socket(&world, 0, client, 7000), socket(&world, 1, server, 7000));
    sender.send_to(&[1], "192.0.2.1:9").unwrap();
    // What comes after it does not overtake it.
    sender.send_to(&[1], SocketAddr::new(server, 7000)).unwrap();
    has_received(&receiver, 1);
    let outcome = world.finish().unwrap();
    assert_eq!((outcome.astray, outcome.arrived), (1, 1));
    assert_eq!(interfaces(), before);
}

/// Round trips over a world, the shortest of several.
fn shortest_round_trip(world: &World) -> Duration {
    let (client, server) = (world.hosts()[0].address(), world.hosts()[1].address());
    let echo: UdpSocket = socket(world, 1, server, 7);
    let sender = socket(world, 0, client, 7000);
    sender.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let rounds = 20;
    let echoing = std::thread::spawn(move || {
        let mut bytes = [0; 16];
        for _ in 0..rounds {
            let (length, from) = echo.recv_from(&mut bytes).unwrap();
            echo.send_to(&bytes[..length], from).unwrap();
        }
    });
    let mut shortest = Duration::MAX;
    for _ in 0..rounds {
        let began = Instant::now();
        sender.send_to(&[0; 16], SocketAddr::new(server, 7)).unwrap();
        sender.recv(&mut [0; 16]).unwrap();
        shortest = shortest.min(began.elapsed());
    }
    echoing.join().unwrap();
    shortest
}

#[test]
fn where_netem_exists_its_delay_and_the_emulators_agree() {
    let Some(_turn) = turn() else { return };
    let world = World::start(pair(link(1000, Span::from_millis(5), 1000))).unwrap();
    let emulated = shortest_round_trip(&world);
    drop(world);
    assert!(emulated >= Duration::from_millis(10), "no packet is early: {emulated:?}");
    let config = WorldConfig::pair(link(1000, Span::ZERO, 1000), Span::ZERO);
    let world = World::start(config).unwrap();
    let netem = ["qdisc", "add", "dev", "fs-0", "root", "netem", "delay", "10ms"];
    match world.hosts()[0].command("tc").args(netem).output() {
        Ok(output) if output.status.success() => {
            let theirs = shortest_round_trip(&world);
            assert!(theirs >= Duration::from_millis(10), "{theirs:?}");
            // Reported, not asserted: a busy machine may delay either.
            eprintln!("10 ms of delay: netem {theirs:?}, emulator {emulated:?}");
        }
        _ => skipped("no netem in this kernel (or no tc) to compare with"),
    }
}
