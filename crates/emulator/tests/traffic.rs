//! Built-in senders: transfers that come and go, users and servers, initial windows.
#![cfg(target_os = "linux")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowstart_emulator::self_test::{Trial, try_out};
use flowstart_emulator::traffic::{
    FlowConfig, MOST_CONNECTIONS, RunConfig, SessionConfig, StampedBy, Traffic, Workload, run, run_watched,
};
use flowstart_emulator::{Recording, World, WorldConfig};
use flowstart_network::{LossConfig, RateSchedule};
use flowstart_units::{Bytes, Rate, Span, Time};

use support::{link, skipped, socket, turn};

const CONFIG: RunConfig = RunConfig {
    until: Time::from_nanos(30_000_000_000),
    ends_world: false,
    stop_when_complete: true,
    sample: Span::ZERO,
    seed: 1,
    run: 0,
    stamped: None,
};

fn transfer(start: Span, bytes: u64) -> FlowConfig {
    let workload = Workload::Sized(Bytes::new(bytes));
    FlowConfig { from: 0, to: 1, start: Time::ZERO + start, traffic: Traffic::Tcp { congestion: None, workload } }
}

#[test]
fn transfers_that_start_one_after_the_other_arrive_whole_and_are_remembered() {
    let Some(_turn) = turn() else { return };
    let world = World::start(WorldConfig::pair(link(100, Span::from_millis(2), 1000), Span::from_millis(2))).unwrap();
    let flows: Vec<FlowConfig> = (0..60).rev().map(|n| transfer(Span::from_millis(5 * n), 1000 + 100 * n)).collect();
    let outcomes = run(&world, &flows, &[], CONFIG, &|| false).unwrap();
    let outcome = world.finish().unwrap();
    assert!(outcome.ended < CONFIG.until, "it ends when all are complete");
    for (config, flow) in flows.iter().zip(&outcomes.flows) {
        let Traffic::Tcp { workload: Workload::Sized(size), .. } = config.traffic else { panic!("a transfer") };
        assert_eq!((flow.delivered, flow.error.as_deref()), (size.get(), None));
        let (started, completed) = (flow.started.unwrap(), flow.completed.unwrap());
        // Handshake and data: nothing is early.
        assert!(started >= config.start && completed >= started + Span::from_millis(6));
        assert!(flow.info.unwrap().bytes_acked >= size.get(), "the kernel's last word is about all of it");
    }
}

/// They counted as nothing to wait for, and the run ended before the first.
#[test]
fn writes_at_times_of_their_own_are_waited_for() {
    let Some(_turn) = turn() else { return };
    let world = World::start(WorldConfig::pair(link(100, Span::from_millis(2), 1000), Span::from_millis(2))).unwrap();
    let second = Span::from_millis(300);
    let workload = Workload::Script(vec![(Span::ZERO, Bytes::new(40_000)), (second, Bytes::new(50_000))]);
    let traffic = Traffic::Tcp { congestion: None, workload };
    let flow = FlowConfig { from: 0, to: 1, start: Time::ZERO, traffic };
    let outcomes = run(&world, &[flow, transfer(Span::ZERO, 1000)], &[], CONFIG, &|| false).unwrap();
    let outcome = world.finish().unwrap();
    let written = &outcomes.flows[0];
    assert_eq!((written.delivered, written.error.as_deref()), (90_000, None));
    assert!(written.completed.unwrap() >= Time::ZERO + second && outcome.ended < CONFIG.until);
}

#[test]
fn a_trial_of_the_self_test_accounts_for_every_packet() {
    let Some(_turn) = turn() else { return };
    let (capacity, lasting) = (Rate::from_mbps(20), Span::from_millis(200));
    let trial = Trial { capacity, packet: 500, offered: Rate::from_mbps(30), buffer: 20, lasting };
    // What an engine that stood still at the end still had is nobody's: then once more.
    let mut trials = (0..50).map(|_| try_out(trial).unwrap());
    let measured = trials.find(|one| one.fidelity.longest_stall < Span::from_millis(50)).expect("a moment of peace");
    let lost = measured.dropped + measured.fidelity.unasked_drops;
    assert!(measured.received > 0);
    assert_eq!(measured.sent, measured.received + lost, "{measured:?}");
    let transmission = capacity.transmission_time(Bytes::new(500));
    assert!(measured.longest_wait <= transmission * 21, "20 in the buffer, one in transmission: {measured:?}");
    assert!(measured.median <= measured.p99 && measured.p99 <= measured.worst);
}

#[test]
fn connections_that_never_come_about_do_not_hold_up_the_end() {
    let Some(_turn) = turn() else { return };
    let mut config = WorldConfig::pair(link(100, Span::ZERO, 1000), Span::ZERO);
    config.links[0].loss = LossConfig::Bernoulli { probability: 1.0 };
    let world = World::start(config).unwrap();
    let until = Time::ZERO + Span::from_millis(100);
    let replies = vec![(Span::ZERO, Bytes::new(1))];
    let session = SessionConfig { server: 1, user: 0, start: Time::ZERO, congestion: None, persistent: true, replies };
    let began = Instant::now();
    let run_for = RunConfig { until, ..CONFIG };
    let outcomes = run(&world, &[transfer(Span::ZERO, 1)], &[session], run_for, &|| false).unwrap();
    // The kernel tries for two minutes.
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!((outcomes.flows[0].completed, &outcomes.flows[0].error), (None, &None));
    assert_eq!((outcomes.sessions[0].done.len(), &outcomes.sessions[0].error), (0, &None));
}

#[test]
fn too_many_transfers_are_refused() {
    let Some(_turn) = turn() else { return };
    let world = World::start(WorldConfig::pair(link(10, Span::ZERO, 10), Span::ZERO)).unwrap();
    let flows = vec![transfer(Span::ZERO, 1); MOST_CONNECTIONS + 1];
    assert!(run(&world, &flows, &[], CONFIG, &|| false).unwrap_err().to_string().contains("at most 20000"));
}

#[test]
fn users_get_the_replies_they_ask_for_on_one_connection_or_on_several() {
    let Some(_turn) = turn() else { return };
    let world = World::start(WorldConfig::pair(link(100, Span::from_millis(5), 1000), Span::from_millis(5))).unwrap();
    let replies: Vec<(Span, Bytes)> =
        [30_000, 1, 5_000].map(|bytes| (Span::from_millis(20), Bytes::new(bytes))).to_vec();
    let session = |persistent| SessionConfig {
        server: 0,
        user: 1,
        start: Time::ZERO,
        congestion: None,
        persistent,
        replies: replies.clone(),
    };
    let outcomes = run(&world, &[], &[session(false), session(true)], CONFIG, &|| false).unwrap();
    let outcome = world.finish().unwrap();
    assert!(outcome.ended < CONFIG.until && outcome.links[0].arrived > 25, "replies go through the link");
    let [several, one] = <[_; 2]>::try_from(outcomes.sessions).unwrap();
    for (session, handshakes) in [(&several, [1, 1, 1]), (&one, [1, 0, 0])] {
        assert_eq!(session.error, None);
        let mut last = Time::ZERO;
        for (done, handshake) in session.done.iter().zip(handshakes) {
            // Pause, handshake if there is one, request and reply.
            assert!(*done >= last + Span::from_millis(20 + 10 * handshake + 10), "nothing is early");
            last = *done;
        }
        assert_eq!(session.done.len(), 3);
    }
    let sizes: Vec<Option<u64>> = several.connections.iter().map(|(size, _)| size.map(Bytes::get)).collect();
    assert_eq!(sizes, [Some(30_000), Some(1), Some(5_000)]);
    for ((size, flow), done) in several.connections.iter().zip(&several.done) {
        assert_eq!((Some(Bytes::new(flow.delivered)), flow.completed), (*size, Some(*done)));
    }
    let [(None, flow)] = one.connections.as_slice() else { panic!("{:?}", one.connections) };
    assert_eq!((flow.delivered, flow.completed), (35_001, None));
    assert_eq!(flow.key.unwrap().source, std::net::IpAddr::from([10, 77, 0, 1]), "the server sends");
}

#[test]
fn connections_begin_with_the_window_of_their_host() {
    let Some(_turn) = turn() else { return };
    for (window, expected) in [(None, 10), (Some(3), 3), (Some(24), 24)] {
        let first = first_window(window);
        assert!(first <= expected, "{first} of {expected}");
        // All of it leaves at once, unless the machine stands still meanwhile.
        assert!(first == expected || (0..9).any(|_| first_window(window) == expected), "{first} of {expected}");
    }
}

/// How many packets leave before an acknowledgement can be back, with this initial window.
fn first_window(window: Option<u32>) -> usize {
    let back = Span::from_millis(400);
    let mut config: WorldConfig = WorldConfig::pair(link(1000, Span::ZERO, 1000), back);
    config.hosts[0].initial_window = window;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let sink = sent.clone();
    let world = World::start_with(config, move |record| {
        if record.link == 0 && record.tcp().is_some_and(|tcp| tcp.payload > 0) {
            sink.lock().unwrap().push(record.arrived);
        }
    })
    .unwrap();
    run(&world, &[transfer(Span::ZERO, 100_000)], &[], CONFIG, &|| false).unwrap();
    world.finish().unwrap();
    let sent = sent.lock().unwrap();
    sent.iter().filter(|arrived| **arrived < sent[0] + back).count()
}

/// What clocks that are compared one after the other may differ by.
const CLOCKS: Span = Span::from_millis(1);

/// Messages of 1000 bytes each millisecond for a time over a link of so many Mbit/s, until all have
/// arrived or it is `until`: how many have, and for those with a stamp of the socket its two stamps
/// and when the path saw their end first.
fn stamped(mbps: u64, lasting: Span, until: Time) -> Option<(u64, Vec<[Time; 3]>)> {
    const MESSAGE: u64 = 1_000;
    let seen: Arc<Mutex<Vec<(u32, u32, Time)>>> = Arc::default();
    let sink = {
        let seen = Arc::clone(&seen);
        move |record: &flowstart_emulator::PacketRecord<'_>| {
            if let Some(tcp) = record.tcp() {
                seen.lock().unwrap().push((tcp.sequence, tcp.payload, record.arrived));
            }
        }
    };
    let config = WorldConfig::pair(link(mbps, Span::from_millis(5), 1000), Span::from_millis(5));
    let world = World::start_with(config, sink).unwrap();
    let (rate, message) = (Rate::from_bps(8 * MESSAGE * 1_000), Bytes::new(MESSAGE));
    let workload = Workload::Paced { rate, message, poisson: false, lasting };
    let traffic = Traffic::Tcp { congestion: None, workload };
    let flow = FlowConfig { from: 0, to: 1, start: Time::ZERO, traffic };
    let run_for = RunConfig { until, stop_when_complete: false, stamped: Some(0), ..CONFIG };
    let arrived = AtomicU64::new(0);
    let enough = || arrived.load(Ordering::Relaxed) >= (MESSAGE * lasting.as_nanos() / 1_000_000);
    let read = |_, _, bytes| arrived.store(bytes, Ordering::Relaxed);
    let mut outcomes = run_watched(&world, &[flow], &[], run_for, &enough, &read).unwrap();
    world.finish().unwrap();
    let flow = outcomes.flows.remove(0);
    assert_eq!(flow.error, None);
    if let Some(refused) = flow.unstamped {
        skipped(&format!("no stamps of sockets (SO_TIMESTAMPING): {refused}"));
        return None;
    }
    let seen = seen.lock().unwrap();
    // The SYN is the first that is seen.
    let first = seen[0].0.wrapping_add(1);
    let mut all = Vec::new();
    for sent in flow.stamps.iter().filter(|stamp| stamp.by == StampedBy::Driver) {
        // A socket with little room takes part of a message: then that is what has a stamp.
        assert!(sent.written > 0, "{sent:?}");
        let of = |by| {
            move |stamp: &&flowstart_emulator::traffic::SocketStamp| stamp.written == sent.written && stamp.by == by
        };
        let scheduled = flow.stamps.iter().find(of(StampedBy::Scheduler)).expect("it went through the discipline");
        let Some(sent) = flow.stamps.iter().find(of(StampedBy::Driver)) else { continue };
        let ends = |sequence: u32, payload: u32| {
            let begin = u64::from(sequence.wrapping_sub(first));
            (begin + 1..=begin + u64::from(payload)).contains(&sent.written)
        };
        let packet = seen.iter().find(|(sequence, payload, _)| ends(*sequence, *payload)).expect("it was seen");
        // When the application has it.
        let due = Time::ZERO + Span::from_millis((sent.written - 1) / MESSAGE);
        assert!(due <= scheduled.at + CLOCKS, "not before it was written: {sent:?}");
        all.push([scheduled.at, sent.at, packet.2]);
    }
    Some((flow.delivered / MESSAGE, all))
}

#[test]
fn a_socket_says_when_the_kernel_sent_a_message_and_the_path_sees_it_then() {
    let Some(_turn) = turn() else { return };
    // What a machine that stands still writes at once has few stamps: it may do so for some of the
    // seconds.
    let Some((messages, all)) = stamped(100, Span::from_secs(8), CONFIG.until) else { return };
    // Nothing waits for the window, so nearly every write has a packet of its own.
    assert!(messages == 8_000 && all.len() as u64 > messages / 2, "{} of {messages}", all.len());
    for [scheduled, sent, _] in &all {
        assert!(*scheduled <= *sent + CLOCKS, "the discipline comes before the driver");
    }
    // Stamps that are taken together have one comparison of clocks, and their order is exact.
    let before = all.iter().filter(|[scheduled, sent, _]| scheduled < sent).count();
    assert!(before * 4 >= all.len() * 3, "{before} of {}", all.len());
    // One that loses the processor between the two is late; they do not all.
    let close = all.iter().filter(|[_, sent, seen]| *sent <= *seen + CLOCKS && *seen <= *sent + CLOCKS).count();
    assert!(close * 10 >= all.len() * 9, "{close} of {}", all.len());
}

#[test]
fn writes_that_wait_together_have_one_stamp() {
    let Some(_turn) = turn() else { return };
    // Eight times what the link carries waits in the socket, and is sent in full packets. A machine
    // that stands still while the connection opens has nothing to tell in that time.
    let (second, until) = (Span::from_secs(1), Time::ZERO + Span::from_secs(2));
    let mut tries = (0..3).map(|_| stamped(1, second, until)).skip_while(|found| matches!(found, Some((0, _))));
    let Some(found) = tries.next() else { panic!("three times nothing arrived") };
    let Some((messages, all)) = found else { return };
    assert!(!all.is_empty() && (all.len() as u64) < messages.max(200), "{} of {messages}", all.len());
}

/// Datagrams of 1000 bytes at so many Mbit/s.
fn datagrams(mbps: u64, lasting: Span) -> FlowConfig {
    let (rate, packet) = (Rate::from_mbps(mbps), 1000);
    let traffic = Traffic::Udp { rate, packet, poisson: false, lasting, ecn: false };
    FlowConfig { from: 0, to: 1, start: Time::ZERO, traffic }
}

/// What a kernel still had to send at the end was waited for, and counted.
#[test]
fn nothing_is_counted_that_happens_after_the_end() {
    let Some(_turn) = turn() else { return };
    // Long enough for a machine that stands still for some of it.
    let (rate, lasting) = (20, Span::from_secs(5));
    let back = Span::from_millis(50);
    let config = WorldConfig::pair(link(rate, Span::from_millis(50), 500), back);
    let recording = Arc::new(Mutex::new(Recording::new(&config.links, Span::from_millis(100))));
    let sink = recording.clone();
    let world = World::start_with(config, move |record| sink.lock().unwrap().add(record)).unwrap();
    let greedy = Traffic::Tcp { congestion: None, workload: Workload::Greedy };
    let greedy = FlowConfig { from: 0, to: 1, start: Time::ZERO, traffic: greedy };
    let run_for = RunConfig { until: Time::ZERO + lasting, ends_world: true, stop_when_complete: false, ..CONFIG };
    let outcomes = run(&world, &[greedy, datagrams(1, lasting)], &[], run_for, &|| false).unwrap();
    let outcome = world.finish().unwrap();
    assert_eq!(outcome.ended, run_for.until);
    let carries = 5 * Rate::from_mbps(rate).as_bps() / 8;
    assert!(outcomes.flows[0].delivered < carries, "{}", outcomes.flows[0].delivered);
    assert!(outcome.links[0].bytes.get() <= carries + 1500, "{:?}", outcome.links[0]);
    let recording = recording.lock().unwrap();
    assert!(recording.links()[0].bins.len() <= 50, "{} bins of 100 ms", recording.links()[0].bins.len());
    // Every datagram counts as sent, wherever it is.
    let [_, udp] = &outcomes.flows[..] else { panic!("two flows") };
    let udp = recording.flow(&udp.key.unwrap()).unwrap();
    assert!((1..=5 * 125 + 1).contains(&udp.packets), "{udp:?}");
    assert_eq!(udp.packets, udp.left + udp.dropped + udp.stayed, "{udp:?}");
}

/// Also where links go on, as those that programs use do.
#[test]
fn a_receiver_does_not_wait_for_what_is_on_its_way_at_the_end() {
    let Some(_turn) = turn() else { return };
    let (rate, lasting) = (1, Span::from_secs(3));
    let world = World::start(WorldConfig::pair(link(rate, Span::from_millis(5), 1000), Span::from_millis(5))).unwrap();
    // Its window is as large by then as all that it has sent, and waits in the queue.
    let traffic = Traffic::Tcp { congestion: Some("reno".to_owned()), workload: Workload::Greedy };
    let flow = FlowConfig { from: 0, to: 1, start: Time::ZERO, traffic };
    let run_for = RunConfig { until: Time::ZERO + lasting, stop_when_complete: false, ..CONFIG };
    let outcomes = run(&world, &[flow], &[], run_for, &|| false).unwrap();
    let delivered = outcomes.flows[0].delivered;
    assert!((1..=3 * Rate::from_mbps(rate).as_bps() / 8).contains(&delivered), "{delivered}");
}

/// Only packets whose fate was decided were counted.
#[test]
fn packets_that_still_wait_at_the_end_have_been_sent() {
    let Some(_turn) = turn() else { return };
    let mut config = WorldConfig::pair(link(1, Span::from_millis(5), 1000), Span::from_millis(5));
    // 100 ms for each of 1000 bytes.
    config.links[0].rate = RateSchedule::Constant(Rate::from_bps(80_000));
    let transmission = Span::from_millis(100);
    let recording = Arc::new(Mutex::new(Recording::new(&config.links, Span::from_millis(100))));
    let sink = recording.clone();
    let world = World::start_with(config, move |record| sink.lock().unwrap().add(record)).unwrap();
    // 250 datagrams, of which 50 pass; fewer if the sender comes later.
    let (until, lasting) = (Time::ZERO + Span::from_secs(5), Span::from_millis(200));
    let run_for = RunConfig { until, ends_world: true, stop_when_complete: false, ..CONFIG };
    let outcomes = run(&world, &[datagrams(10, lasting)], &[], run_for, &|| false).unwrap();
    let outcome = world.finish().unwrap();
    let recording = recording.lock().unwrap();
    let flow = recording.flow(&outcomes.flows[0].key.unwrap()).unwrap();
    assert_eq!((flow.packets, flow.data_packets, flow.dropped), (250, 250, 0), "{flow:?}");
    let passed = until.since(flow.first).as_nanos() / transmission.as_nanos();
    // The last has begun.
    assert!((passed..=passed + 1).contains(&flow.left), "{passed}: {flow:?}");
    assert_eq!((flow.left + flow.stayed, flow.stayed), (250, outcome.links[0].stored), "{flow:?}");
    assert!(flow.last < until && flow.last_left >= until - transmission, "{flow:?}");
}

/// The run went on without it, and failed when it was over.
#[test]
fn a_flow_that_fails_ends_the_run() {
    let Some(_turn) = turn() else { return };
    let world = World::start(WorldConfig::pair(link(10, Span::ZERO, 100), Span::ZERO)).unwrap();
    let taken = socket(&world, 0, world.hosts()[0].address(), 5202);
    let began = Instant::now();
    let flows = [transfer(Span::from_secs(20), 1), datagrams(1, Span::from_secs(10))];
    let outcomes = run(&world, &flows, &[], CONFIG, &|| false).unwrap();
    // The others are there for 20 s.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let said = outcomes.flows[1].error.as_ref().expect("its port is taken");
    assert!(said.contains("in use"), "{said}");
    drop(taken);
}
