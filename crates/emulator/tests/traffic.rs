//! Built-in senders: transfers that come and go, users and servers, initial windows.
#![cfg(target_os = "linux")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowstart_emulator::self_test::{Trial, try_out};
use flowstart_emulator::traffic::{FlowConfig, MOST_CONNECTIONS, RunConfig, SessionConfig, Traffic, Workload, run};
use flowstart_emulator::{World, WorldConfig};
use flowstart_network::LossConfig;
use flowstart_units::{Bytes, Rate, Span, Time};

use support::{link, turn};

const CONFIG: RunConfig =
    RunConfig { until: Time::from_nanos(30_000_000_000), stop_when_complete: true, sample: Span::ZERO, seed: 1 };

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

#[test]
fn a_trial_of_the_self_test_accounts_for_every_packet() {
    let Some(_turn) = turn() else { return };
    let (capacity, lasting) = (Rate::from_mbps(20), Span::from_millis(200));
    let trial = Trial { capacity, packet: 500, offered: Rate::from_mbps(30), buffer: 20, lasting };
    let measured = try_out(trial).unwrap();
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
        // What leaves before an acknowledgement can be back.
        let first = sent.iter().filter(|arrived| **arrived < sent[0] + back).count();
        assert_eq!(first, expected);
    }
}
