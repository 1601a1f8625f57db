//! Paced Chirping on the running kernel: what must hold on any path. Needs root; says `skipped: …`
//! otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Pair, Registered, alone, connect, in_time, ip, limit_rate, listen, receive, send, skipped, transfer};
use flowstart_emulator::traffic::TcpInfo;
use flowstart_emulator::{World, WorldConfig};
use flowstart_kernel::{Algorithm, Ended, Watch, WatchEvent, What, unload};
use flowstart_network::{
    DropTailConfig, Ecn, JitterConfig, LinkConfig, LossConfig, QueueConfig, RateSchedule, RateStep, SlotsConfig,
    StepMarkConfig, Threshold,
};
use flowstart_units::{Rate, Span, Time};
use nix::sys::socket::{setsockopt, sockopt};

const CHIRP: &str = "fs_chirp";

/// 50 Mbit/s and 20 ms, with a buffer of 500 packets.
fn path(marks: bool) -> WorldConfig {
    let limit = DropTailConfig { packets: Some(500), bytes: None };
    let queue = if marks {
        QueueConfig::StepMark(StepMarkConfig {
            threshold: Threshold::Sojourn(Span::from_millis(1)),
            limit,
            ..Default::default()
        })
    } else {
        QueueConfig::DropTail(limit)
    };
    let half = Span::from_millis(10);
    WorldConfig::pair(LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(50)), half, queue), half)
}

/// Transfers `bytes` through a world and returns what arrived.
fn through(world: &World, control: &'static str, bytes: u64) -> Result<u64, String> {
    through_to(world, world.hosts()[1].address(), control, bytes)
}

/// The same to this address of the server's.
fn through_to(world: &World, server: IpAddr, control: &'static str, bytes: u64) -> Result<u64, String> {
    let listener = world.hosts()[1].run(move || std::net::TcpListener::bind((server, 0)).unwrap()).unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &control.into()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0].spawn(move || send(connect(to, control), bytes)).unwrap();
    let received = receive(listener.accept().unwrap().0);
    sender.join().unwrap().unwrap().unwrap();
    received
}

#[test]
fn it_passes_the_verifier_and_carries_thirty_megabytes_intact_with_every_avoidance() {
    let Some(_alone) = alone() else { return };
    let pair = Pair::new();
    for parameters in
        [&[][..], &["ecn=off"], &["ecn=off", "avoidance=reno"], &["again=off", "packets=64", "geometry=3"]]
    {
        let _registered = Registered::new(Algorithm::PacedChirping, parameters);
        assert_eq!(transfer(&pair, CHIRP, 30_000_000), Ok(30_000_000), "{parameters:?}");
    }
}

#[test]
fn a_start_is_told_from_its_beginning_over_its_chirps_to_its_end() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let events = Mutex::new(Vec::<WatchEvent>::new());
    let watch = Watch::new(|event| events.lock().unwrap().push(event)).unwrap();
    let world = World::start(path(true)).unwrap();
    assert_eq!(through(&world, CHIRP, 3_000_000), Ok(3_000_000));
    world.finish().unwrap();
    watch.poll(Duration::from_millis(200)).unwrap();
    drop(watch);
    let all = events.into_inner().unwrap();
    // The server's end begins too, but has nothing to send.
    let of = all.iter().find(|event| matches!(event.what, What::Chirp { .. })).expect("a chirp").connection;
    let mine: Vec<&WatchEvent> = all.iter().filter(|event| event.connection == of).collect();
    assert!(matches!(mine[0].what, What::Begin));
    assert!(mine.iter().any(|event| matches!(event.what, What::End { .. })), "{mine:#?}");
    let mut next = 0;
    for event in &mine {
        if let What::Chirp { number, packets, first_gap, step, points, .. } = event.what {
            assert_eq!(number, next, "chirps are numbered in their order");
            next += 1;
            assert!((1..=64).contains(&packets) && points <= packets);
            assert!(step * u64::from(packets) <= first_gap * 2, "gaps never shrink below zero");
        }
    }
}

#[test]
fn nobody_is_told_anything_unless_somebody_watches() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let pair = Pair::new();
    assert_eq!(transfer(&pair, CHIRP, 1_000_000), Ok(1_000_000));
    let told = AtomicU32::new(0);
    let watch = Watch::new(|_| {
        told.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    watch.poll(Duration::from_millis(50)).unwrap();
    assert_eq!(told.load(Ordering::Relaxed), 0);
}

#[test]
fn packets_are_ecn_capable_unless_that_is_switched_off() {
    let Some(_alone) = alone() else { return };
    for (parameter, capable) in [("ecn=on", true), ("ecn=off", false)] {
        let _registered = Registered::new(Algorithm::PacedChirping, &[parameter]);
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let world = World::start_with(path(false), move |record| {
            let data = record.tcp().is_some_and(|tcp| tcp.payload > 0);
            counted.fetch_add(u32::from(data && record.ecn != Ecn::NotEct), Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(through(&world, CHIRP, 200_000), Ok(200_000));
        world.finish().unwrap();
        assert_eq!(count.load(Ordering::Relaxed) > 0, capable, "{parameter}");
    }
}

#[test]
fn it_chirps_over_ipv6_and_obeys_marks_there() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let watch_events = Mutex::new(Vec::<WatchEvent>::new());
    let watch = Watch::new(|event| watch_events.lock().unwrap().push(event)).unwrap();
    let [capable, marked] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let counted = [capable.clone(), marked.clone()];
    let world = World::start_with(path(true), move |record| {
        let data = record.tcp().is_some_and(|tcp| tcp.payload > 0) && record.flow.source.is_ipv6();
        counted[0].fetch_add(u32::from(data && record.ecn != Ecn::NotEct), Ordering::Relaxed);
        counted[1].fetch_add(u32::from(data && record.marked_here), Ordering::Relaxed);
    })
    .unwrap();
    let Some(server) = world.hosts()[1].address_v6() else {
        skipped("this kernel has no IPv6");
        return;
    };
    assert_eq!(through_to(&world, server, CHIRP, 3_000_000), Ok(3_000_000));
    let outcome = world.finish().unwrap();
    watch.poll(Duration::from_millis(200)).unwrap();
    drop(watch);
    // Without marks DCTCP would fill the buffer of 500 packets and lose some.
    assert_eq!((outcome.links[0].dropped, outcome.fidelity.above_mtu), (0, 0));
    assert!(marked.load(Ordering::Relaxed) > 0);
    assert!(capable.load(Ordering::Relaxed) >= 3_000_000 / 1440, "all data can be marked");
    let events = watch_events.into_inner().unwrap();
    assert!(events.iter().any(|event| matches!(event.what, What::Chirp { .. }) && event.remote.is_ipv6()));
}

#[test]
fn when_marks_vanish_because_capacity_came_free_chirps_find_it() {
    let Some(_alone) = alone() else { return };
    // The kernel holds single segments back in a full window unless it may be large
    // (docs/kernel.md).
    const DIVISOR: &str = "/proc/sys/net/ipv4/tcp_tso_win_divisor";
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let mut config = path(true);
    let (slow, fast, change) = (Rate::from_mbps(10), Rate::from_mbps(40), Time::ZERO + Span::from_millis(1500));
    let steps = vec![RateStep { at: Time::ZERO, rate: slow }, RateStep { at: change, rate: fast }];
    config.links[0].rate = RateSchedule::Steps { steps, period: None };
    let widen = |world: &World| world.hosts()[0].run(|| std::fs::write(DIVISOR, "255")).unwrap().unwrap();
    let all = all_told(&config, &widen, 9_000_000);
    let of = all.iter().find(|event| matches!(event.what, What::Chirp { .. })).expect("a chirp").connection;
    let windows: Vec<u32> = all
        .iter()
        .filter(|event| event.connection == of && matches!(event.what, What::End { .. }))
        .map(|event| event.packets)
        .collect();
    // 10 Mbit/s and 20 ms hold 17 packets, which is what the start found; 40 Mbit/s hold 68.
    let [start, searches @ ..] = windows.as_slice() else { panic!("{all:#?}") };
    assert!(searches.iter().any(|window| *window > 2 * start), "{windows:?}");
}

/// All events of a transfer of `bytes` through a world that is prepared like this.
fn all_told(config: &WorldConfig, prepare: &dyn Fn(&World), bytes: u64) -> Vec<WatchEvent> {
    in_time(|| {
        let events = Mutex::new(Vec::<WatchEvent>::new());
        let watch = Watch::new(|event| events.lock().unwrap().push(event)).unwrap();
        let world = World::start(config.clone()).unwrap();
        prepare(&world);
        assert_eq!(through(&world, CHIRP, bytes), Ok(bytes));
        let fidelity = world.finish().unwrap().fidelity;
        watch.poll(Duration::from_millis(200)).unwrap();
        drop(watch);
        (events.into_inner().unwrap(), fidelity)
    })
}

/// The events of the connection that sends `bytes` through this world.
fn told(config: WorldConfig, bytes: u64) -> Vec<WatchEvent> {
    let all = all_told(&config, &|_| (), bytes);
    let of = all.iter().find(|event| matches!(event.what, What::Chirp { .. })).expect("a chirp").connection;
    all.into_iter().filter(|event| event.connection == of).collect()
}

/// How many chirps were sent. Each takes a round trip, or longer where the machine stands still.
fn chirps_of(events: &[WatchEvent]) -> usize {
    events.iter().filter(|event| matches!(event.what, What::Chirp { .. })).count()
}

/// Packets arrive in bunches, every 20 ms. Until such starts were left to slow start they read a
/// full pipe, and 2 MB took two to four times as long as with CUBIC.
#[test]
fn a_path_that_serves_in_slots_is_left_to_slow_start_after_few_round_trips() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let mut config = path(false);
    config.links[0].medium.slots = Some(SlotsConfig::new(Span::from_millis(20)));
    let mine = told(config, 1_000_000);
    let end = mine.iter().find(|event| matches!(event.what, What::End { .. })).expect("the start ended");
    assert!(matches!(end.what, What::End { reason: Ended::Unreadable, .. }), "{mine:#?}");
    assert!(chirps_of(&mine) <= 6 && end.packets >= 20, "{mine:#?}");
}

/// The first burst comes out of order: nothing of it can be read.
#[test]
fn a_path_that_changes_the_order_of_packets_is_left_to_slow_start() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let mut config = path(false);
    config.links[0].jitter = Some(JitterConfig { spread: Span::from_millis(3), reorder: true });
    let mine = told(config, 1_000_000);
    let end = mine.iter().find(|event| matches!(event.what, What::End { .. })).expect("the start ended");
    // What comes three packets late counts as lost, if that happens first.
    assert!(matches!(end.what, What::End { reason: Ended::Unreadable | Ended::Loss, .. }), "{mine:#?}");
    assert!(chirps_of(&mine) <= 6, "{mine:#?}");
}

/// The handshake takes three seconds, and so does the smoothed RTT for long; that of packets is 20
/// ms then. Until loads followed it 1 MB took eight times as long as with CUBIC.
#[test]
fn after_a_silence_packets_leave_by_the_rtt_of_now() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let mut config = path(false);
    let (silent, change) = (Rate::from_bps(8), Time::ZERO + Span::from_millis(2900));
    let steps = vec![RateStep { at: Time::ZERO, rate: silent }, RateStep { at: change, rate: Rate::from_mbps(50) }];
    config.links[0].rate = RateSchedule::Steps { steps, period: None };
    let all = all_told(&config, &|_| (), 1_000_000);
    let chirps: Vec<&WatchEvent> = all.iter().filter(|event| matches!(event.what, What::Chirp { .. })).collect();
    assert!(!chirps.is_empty(), "{all:#?}");
    // The initial window per round trip at least, which is 2 ms a packet; the host may be late.
    assert!(chirps.iter().all(|event| event.load <= Span::from_millis(10)), "{chirps:#?}");
    // The first burst does not leave at a rate that the stack has from the handshake: the next
    // chirp was complete after five seconds.
    let (first, last) = (chirps[0].since_begin, chirps[chirps.len() - 1].since_begin);
    assert!(chirps.len() > 1 && last - first < Span::from_secs(3), "{chirps:#?}");
}

#[test]
fn the_highest_rate_that_an_application_allows_ends_a_start_and_the_window_does_not_lower_it() {
    /// A busy machine may delay packets so much that a start sees a queue before.
    const TRIES: usize = 3;
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &["ecn=off"]);
    let mut ends = Vec::new();
    for _ in 0..TRIES {
        let end = end_of_a_limited_start();
        if matches!(end.what, What::End { reason: Ended::RateLimit, .. }) {
            // A megabyte per second and 20 ms hold 14 packets.
            assert!(end.packets > 20, "{end:?}");
            return;
        }
        ends.push(end);
    }
    panic!("{ends:#?}");
}

/// How the start of 1 MB ended that an application lets leave at 1 MB/s at most.
fn end_of_a_limited_start() -> WatchEvent {
    let events = Mutex::new(Vec::<WatchEvent>::new());
    let watch = Watch::new(|event| events.lock().unwrap().push(event)).unwrap();
    let world = World::start(path(false)).unwrap();
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || std::net::TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0]
        .spawn(move || {
            let stream = connect(to, CHIRP);
            limit_rate(&stream, 1_000_000);
            send(stream, 1_000_000)
        })
        .unwrap();
    assert_eq!(receive(listener.accept().unwrap().0), Ok(1_000_000));
    sender.join().unwrap().unwrap().unwrap();
    world.finish().unwrap();
    watch.poll(Duration::from_millis(200)).unwrap();
    drop(watch);
    let all = events.into_inner().unwrap();
    let end = all.into_iter().find(|event| matches!(event.what, What::End { .. }));
    end.expect("the start ended")
}

/// Sends `first` bytes with Reno, waits for their ACKs, and sends 3 MB with `fs_chirp`. The events
/// of the connection.
fn switched(parameters: &[&str], first: usize) -> Vec<WatchEvent> {
    let _registered = Registered::new(Algorithm::PacedChirping, parameters);
    let events = Mutex::new(Vec::<WatchEvent>::new());
    let watch = Watch::new(|event| events.lock().unwrap().push(event)).unwrap();
    let world = World::start(path(false)).unwrap();
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || std::net::TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0]
        .spawn(move || {
            let mut stream = connect(to, "reno");
            stream.write_all(&vec![7; first]).unwrap();
            while TcpInfo::of(stream.as_fd()).unwrap().unacked > 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            setsockopt(&stream, sockopt::TcpCongestion, &CHIRP.into()).unwrap();
            stream.write_all(&[7; 3_000_000]).unwrap();
        })
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() == first + 3_000_000 && bytes.iter().all(|byte| *byte == 7));
    sender.join().unwrap().unwrap();
    world.finish().unwrap();
    watch.poll(Duration::from_millis(200)).unwrap();
    drop(watch);
    events.into_inner().unwrap()
}

#[test]
fn a_socket_that_is_switched_to_it_after_its_first_bytes_chirps_from_there() {
    let Some(_alone) = alone() else { return };
    // As iperf3 does: a cookie of 37 bytes goes first.
    for first in [37, 40_000] {
        let all = switched(&["ecn=off"], first);
        let read = all.iter().filter(|event| matches!(event.what, What::Chirp { .. })).count();
        assert!(matches!(all.first().map(|event| event.what), Some(What::Begin)), "{all:#?}");
        assert!(read >= 1, "{first} bytes before: {read} chirps");
        assert!(all.iter().any(|event| matches!(event.what, What::End { .. })), "the start ended");
    }
}

#[test]
fn iperf3_chirps_as_the_page_of_the_kernel_says() {
    let Some(_alone) = alone() else { return };
    let known = std::process::Command::new("iperf3").arg("--version").output();
    if known.is_err() {
        println!("skipped: iperf3 is not installed");
        return;
    }
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let events = Mutex::new(Vec::<WatchEvent>::new());
    let watch = Watch::new(|event| events.lock().unwrap().push(event)).unwrap();
    let world = World::start(path(false)).unwrap();
    let (client, server) = (&world.hosts()[0], &world.hosts()[1]);
    let mut serving = server.command("iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while !server.listens().unwrap() {
        assert!(Instant::now() < until, "iperf3 -s does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let to = server.address().to_string();
    let output = client.command("iperf3").args(["-c", &to, "-C", CHIRP, "-n", "3M"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let _ = serving.wait();
    world.finish().unwrap();
    watch.poll(Duration::from_millis(200)).unwrap();
    drop(watch);
    let all = events.into_inner().unwrap();
    let read = all.iter().filter(|event| matches!(event.what, What::Chirp { .. })).count();
    assert!(read >= 2, "{read} chirps: {all:#?}");
}

#[test]
fn losses_reordering_and_both_leave_the_bytes_as_they_were() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let loss = LossConfig::Bernoulli { probability: 0.05 };
    let jitter = Some(JitterConfig { spread: Span::from_millis(3), reorder: true });
    for (loss, jitter) in [(loss, None), (LossConfig::None, jitter), (loss, jitter)] {
        for marks in [false, true] {
            let mut config = path(marks);
            (config.links[0].loss, config.links[0].jitter) = (loss, jitter);
            let world = World::start(config).unwrap();
            assert_eq!(through(&world, CHIRP, 500_000), Ok(500_000), "{loss:?} {jitter:?}");
            world.finish().unwrap();
        }
    }
}

#[test]
fn a_connection_survives_a_path_that_is_dead_for_longer_than_a_timeout() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let pair = Pair::new();
    let (to, listener) = listen(&pair, CHIRP);
    let stream = pair.on(0, move || connect(to, CHIRP)).join().unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let receiver = std::thread::spawn(move || receive(accepted));
    // What is sent while nothing comes back times out.
    ip(&format!("-n {} route add blackhole 10.213.0.1/32", pair.name(1)));
    let sender = std::thread::spawn(move || send(stream, 50_000_000));
    std::thread::sleep(Duration::from_millis(700));
    ip(&format!("-n {} route delete blackhole 10.213.0.1/32", pair.name(1)));
    sender.join().unwrap().unwrap();
    assert_eq!(receiver.join().unwrap(), Ok(50_000_000));
}

#[test]
fn a_connection_that_was_idle_goes_on() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &["ecn=off"]);
    let world = World::start(path(false)).unwrap();
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || std::net::TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0]
        .spawn(move || {
            let mut stream = connect(to, CHIRP);
            for _ in 0..3 {
                stream.write_all(&[7; 300_000]).unwrap();
                std::thread::sleep(Duration::from_millis(400));
            }
        })
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() == 900_000 && bytes.iter().all(|byte| *byte == 7));
    sender.join().unwrap().unwrap();
    world.finish().unwrap();
}

#[test]
fn it_can_be_taken_away_in_mid_transfer_and_come_back_beside_itself() {
    let Some(_alone) = alone() else { return };
    let registered = Registered::new(Algorithm::PacedChirping, &[]);
    let world = World::start(path(true)).unwrap();
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || std::net::TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0].spawn(move || send(connect(to, CHIRP), 2_000_000)).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let receiver = std::thread::spawn(move || receive(accepted));
    std::thread::sleep(Duration::from_millis(100));
    unload(registered.0).unwrap();
    let _again = Registered::new(Algorithm::PacedChirping, &[]);
    assert_eq!(through(&world, CHIRP, 200_000), Ok(200_000));
    assert_eq!(receiver.join().unwrap(), Ok(2_000_000));
    sender.join().unwrap().unwrap().unwrap();
    world.finish().unwrap();
}

#[test]
fn it_runs_beside_cubic() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let world = World::start(path(false)).unwrap();
    std::thread::scope(|scope| {
        let flows = [CHIRP, "cubic", CHIRP].map(|control| scope.spawn(|| through(&world, control, 1_000_000)));
        for flow in flows {
            assert_eq!(flow.join().unwrap(), Ok(1_000_000));
        }
    });
    world.finish().unwrap();
}

#[test]
fn a_thousand_connections_of_one_byte_at_once_are_served() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let pair = Pair::new();
    const CONNECTIONS: usize = 1000;
    // Both ends of all connections are files of this process.
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let (to, listener) = listen(&pair, CHIRP);
    let acceptor = std::thread::spawn(move || {
        let mut open: Vec<TcpStream> = (0..CONNECTIONS).map(|_| listener.accept().unwrap().0).collect();
        open.iter_mut()
            .map(|stream| {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                u64::from(byte[0])
            })
            .sum::<u64>()
    });
    let mut open = pair.on(0, move || (0..CONNECTIONS).map(|_| connect(to, CHIRP)).collect::<Vec<_>>()).join().unwrap();
    for stream in &mut open {
        stream.write_all(&[1]).unwrap();
    }
    assert_eq!(acceptor.join().unwrap(), CONNECTIONS as u64);
}

#[test]
#[ignore = "takes a while: cargo test -p flowstart-kernel --features ebpf --test chirp -- --ignored"]
fn a_gigabyte_arrives_intact() {
    let Some(_alone) = alone() else { return };
    let pair = Pair::new();
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    assert_eq!(transfer(&pair, CHIRP, 1_000_000_000), Ok(1_000_000_000));
}
