//! Quick-Start between hosts on the running kernel, over emulated links that are routers. Needs
//! root; says `skipped: …` otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use common::{Registered, alone, connect, limit_rate, receive, send};
use flowstart_emulator::{World, WorldConfig};
use flowstart_kernel::{Algorithm, HostCounts, attach_host, host_counts, host_devices, unload};
use flowstart_network::{LinkConfig, LossConfig, QueueConfig, QuickStartHop, RateSchedule};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_units::{Rate, Span};
use nix::sys::socket::{setsockopt, sockopt};

const CONTROL: &str = "fs_quick_start";
/// Name of every host's interface.
const DEVICE: &str = "fs-0";

/// 100 Mbit/s and 60 ms.
fn path(hop: QuickStartHop) -> WorldConfig {
    let half = Span::from_millis(30);
    let rate = RateSchedule::Constant(Rate::from_mbps(100));
    WorldConfig::pair(
        LinkConfig { quick_start: hop, ..LinkConfig::new(rate, half, QueueConfig::drop_tail(1000)) },
        half,
    )
}

fn aware() -> QuickStartHop {
    QuickStartHop::Aware(AdmissionConfig::paper(Rate::from_mbps(100)))
}

/// A world whose hosts carry options.
fn world(config: WorldConfig) -> World {
    let world = World::start(config).unwrap();
    for host in world.hosts() {
        host.run(|| attach_host(DEVICE, None)).unwrap().unwrap();
    }
    world
}

/// Transfers `bytes` from host 0 to this address of host 1; what arrived.
fn through(world: &World, server: IpAddr, bytes: u64) -> Result<u64, String> {
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0].spawn(move || send(connect(to, CONTROL), bytes)).unwrap();
    let received = receive(listener.accept().unwrap().0);
    sender.join().unwrap().unwrap().unwrap();
    received
}

/// What a transfer of 500 kB leads to behind this hop; it arrives whole whatever that is.
fn outcome(hop: QuickStartHop, v6: bool) -> HostCounts {
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let world = world(path(hop));
    let host = &world.hosts()[1];
    let server = if v6 { host.address_v6().unwrap() } else { host.address() };
    assert_eq!(through(&world, server, 500_000), Ok(500_000), "{hop:?}");
    world.finish().unwrap();
    host_counts().unwrap()
}

#[test]
fn a_grant_is_asked_for_answered_used_and_reported_over_ipv4_and_ipv6() {
    let Some(_alone) = alone() else { return };
    for v6 in [false, true] {
        let counts = outcome(aware(), v6);
        let expected =
            HostCounts { asked: 1, granted: 1, used: 1, reports: 1, heard: 1, answered: 1, ..HostCounts::default() };
        assert_eq!(counts, expected, "IPv6: {v6}");
    }
}

#[test]
fn where_nobody_grants_anything_the_transfer_is_as_if_nobody_had_asked() {
    let Some(_alone) = alone() else { return };
    let asked = HostCounts { asked: 1, reports: 1, ..HostCounts::default() };
    let answered = HostCounts { heard: 1, answered: 1, ..asked };
    for v6 in [false, true] {
        let of = |hop| outcome(hop, v6);
        assert_eq!(of(QuickStartHop::Unaware), HostCounts { wrong_ttl: 1, ..answered }, "IPv6: {v6}");
        assert_eq!(of(QuickStartHop::AwareTunnel), HostCounts { unanswered: 1, ..asked }, "IPv6: {v6}");
        let dropped = HostCounts { asked: 1, lost: 1, ..HostCounts::default() };
        // Over IPv6 the padding in its place is more than the seven bytes that Linux takes.
        let stripped = if v6 { dropped } else { HostCounts { unanswered: 1, ..asked } };
        assert_eq!(of(QuickStartHop::StripsOptions), stripped, "IPv6: {v6}");
        assert_eq!(of(QuickStartHop::DropsOptions), dropped, "IPv6: {v6}");
    }
}

#[test]
fn losses_in_the_phase_lead_back_and_every_byte_arrives() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let mut config = path(aware());
    config.links[0].loss = LossConfig::Periodic { every: 25 };
    let world = world(config);
    for _ in 0..4 {
        assert_eq!(through(&world, world.hosts()[1].address(), 400_000), Ok(400_000));
    }
    world.finish().unwrap();
    let counts = host_counts().unwrap();
    assert!(counts.asked >= 1 && counts.congested >= 1, "{counts:?}");
}

/// What a server's request on the SYN/ACK leads to: where its listener is bound, and whether the
/// client comes over IPv6.
fn asked_by_the_server(everywhere: bool, v6: bool) -> HostCounts {
    let _registered = Registered::new(Algorithm::QuickStart, &["on_syn_ack=on"]);
    let mut config = path(QuickStartHop::Unaware);
    // The other way round: what the server sends goes through the router.
    config.routes[0].links = Vec::new();
    config.routes[1].links = vec![0];
    config.links[0].quick_start = aware();
    let world = world(config);
    let host = &world.hosts()[1];
    let server = if v6 { host.address_v6().unwrap() } else { host.address() };
    let bound = if everywhere { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { server };
    let listener = host.run(move || TcpListener::bind((bound, 0)).unwrap()).unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &CONTROL.into()).unwrap();
    let to = SocketAddr::new(server, listener.local_addr().unwrap().port());
    let client = world.hosts()[0].spawn(move || receive(connect(to, "cubic"))).unwrap();
    send(listener.accept().unwrap().0, 500_000).unwrap();
    assert_eq!(client.join().unwrap().unwrap(), Ok(500_000));
    world.finish().unwrap();
    host_counts().unwrap()
}

#[test]
fn a_server_asks_on_the_syn_ack_if_it_is_told_to() {
    let Some(_alone) = alone() else { return };
    let expected =
        HostCounts { asked: 1, granted: 1, used: 1, reports: 1, heard: 1, answered: 1, ..HostCounts::default() };
    // The last is a socket of IPv6 that speaks IPv4.
    for (everywhere, v6) in [(false, false), (false, true), (true, false)] {
        assert_eq!(asked_by_the_server(everywhere, v6), expected, "everywhere: {everywhere}, IPv6: {v6}");
    }
}

#[test]
fn a_connection_outlives_the_algorithm_and_programs_go_from_devices_with_it() {
    let Some(_alone) = alone() else { return };
    let registered = Registered::new(Algorithm::QuickStart, &[]);
    let world = world(path(aware()));
    assert_eq!(host_devices().len(), 2);
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0]
        .spawn(move || {
            let stream = connect(to, CONTROL);
            // Two seconds.
            limit_rate(&stream, 1_000_000);
            send(stream, 2_000_000)
        })
        .unwrap();
    let (stream, _) = listener.accept().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(host_counts().unwrap().asked, 1);
    drop(registered);
    assert!(host_devices().is_empty());
    assert_eq!(receive(stream), Ok(2_000_000));
    sender.join().unwrap().unwrap().unwrap();
    world.finish().unwrap();
    assert!(unload(Algorithm::QuickStart).is_err(), "it is gone");
}

#[test]
fn other_controls_ask_for_nothing() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let world = world(path(aware()));
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sender = world.hosts()[0].spawn(move || send(connect(to, "reno"), 20_000)).unwrap();
    assert_eq!(receive(listener.accept().unwrap().0), Ok(20_000));
    sender.join().unwrap().unwrap().unwrap();
    assert_eq!(host_counts().unwrap(), HostCounts::default());
    world.finish().unwrap();
}
