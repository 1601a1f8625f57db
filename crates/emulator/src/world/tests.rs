use std::io::Write as _;
use std::net::UdpSocket;
use std::sync::atomic::AtomicU32;

use flowstart_network::{DropTailConfig, LinkConfig, QueueConfig, RateSchedule};
use flowstart_units::{Rate, Span};

use super::*;
use crate::engine::{Fault, HANGS};

/// A world whose engine of the client's packets fails once it has seen one; what came of it,
/// and how many records were handed on.
fn failing(fault: Fault) -> Option<(WorldOutcome, u32)> {
    if crate::privilege() != Ok(crate::Privilege::Full) {
        let _ = writeln!(std::io::stderr(), "skipped: worlds cannot be made here without root");
        return None;
    }
    let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(10), bytes: None });
    let link = LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(10)), Span::from_millis(1), queue);
    let records = Arc::new(AtomicU32::new(0));
    let counted = records.clone();
    let sink = move |_: &PacketRecord<'_>| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let mut first = Some(fault);
    let config = WorldConfig::pair(link, Span::from_millis(1));
    let world = World::build(config, Some(sink), |plan| plan.fault = first.take()).unwrap();
    let socket = |host: usize, port: u16| {
        let host = &world.hosts()[host];
        host.run(|| UdpSocket::bind((host.address(), port))).unwrap().unwrap()
    };
    let receiver = socket(0, 7001);
    let send = |from: usize, to: usize| {
        socket(from, 7000).send_to(&[0; 100], (world.hosts()[to].address(), 7001)).unwrap();
    };
    send(1, 0);
    send(0, 1);
    let until = Instant::now() + Duration::from_secs(60);
    let has_come = || match fault {
        Fault::Panic => world.has_failed(),
        Fault::Hang => HANGS.load(Ordering::Relaxed),
    };
    while !has_come() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Whatever is on the way comes through the engine that works.
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    receiver.recv(&mut [0; 100]).unwrap();
    let outcome = world.finish().unwrap();
    Some((outcome, records.load(Ordering::Relaxed)))
}

#[test]
fn the_report_is_kept_when_an_engine_panics_and_names_what_failed() {
    let Some((outcome, records)) = failing(Fault::Panic) else { return };
    let [fault] = outcome.faults.as_slice() else { panic!("{:?}", outcome.faults) };
    assert!(fault.contains("client") && fault.contains("on purpose"), "{fault}");
    // Both engines' counts, the failed one's too.
    assert!(outcome.arrived >= 2, "{outcome:?}");
    assert!(outcome.links[0].arrived >= 1 && records >= 1, "{outcome:?}, {records} records");
    let broken = crate::FidelityLimit::default().broken_by(&outcome.fidelity).expect("not faithful");
    assert!(broken.contains("a part of the emulator failed"), "{broken}");
}

#[test]
fn the_report_is_kept_when_an_engine_does_not_end() {
    let Some((outcome, _)) = failing(Fault::Hang) else { return };
    let [fault] = outcome.faults.as_slice() else { panic!("{:?}", outcome.faults) };
    assert!(fault.contains("client") && fault.contains("did not end"), "{fault}");
    assert!(outcome.arrived >= 1, "the other engine's: {outcome:?}");
}

#[test]
fn an_engine_of_many_hosts_is_named_by_the_first_of_them() {
    let hosts = |n: usize| (1..=n).map(|n| crate::HostConfig::new(format!("h{n}"))).collect();
    let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(10), bytes: None });
    let link = LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(10)), Span::ZERO, queue);
    let config = WorldConfig { hosts: hosts(100), ..WorldConfig::pair(link, Span::ZERO) };
    assert_eq!(part(&config, &[0, 1]), "h1, h2");
    assert_eq!(part(&config, &(0..100).collect::<Vec<_>>()), "h1, h2, h3 and 97 more");
}
