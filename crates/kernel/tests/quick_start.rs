//! Quick-Start between hosts on the running kernel, over emulated links that are routers. Needs
//! root; says `skipped: …` otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use common::worlds::{CONTROL, DEVICE, aware, path, world};
use common::{
    Registered, alone_with_quick_start, connect, connect_from, connect_limited, in_time, limit_rate, receive, send,
};
use flowstart_emulator::{Fidelity, World};
use flowstart_kernel::{
    Algorithm, HostCounts, RouterSettings, attach_host, attach_hosts, host_counts, host_devices, load_router, unload,
};
use flowstart_network::{LossConfig, QuickStartHop, RateSchedule};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_quick_start::wire::checksum;
use flowstart_units::{Bytes, Rate, Span};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, sendto, setsockopt, socket, sockopt,
};

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
    in_time(|| outcome_once(hop, v6))
}

fn outcome_once(hop: QuickStartHop, v6: bool) -> (HostCounts, Fidelity) {
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let world = world(path(hop));
    let host = &world.hosts()[1];
    let server = if v6 { host.address_v6().unwrap() } else { host.address() };
    assert_eq!(through(&world, server, 500_000), Ok(500_000), "{hop:?}");
    let fidelity = world.finish().unwrap().fidelity;
    (host_counts().unwrap(), fidelity)
}

#[test]
fn a_grant_is_asked_for_answered_used_and_reported_over_ipv4_and_ipv6() {
    let Some(_alone) = alone_with_quick_start() else { return };
    for v6 in [false, true] {
        let counts = outcome(aware(), v6);
        let expected =
            HostCounts { asked: 1, granted: 1, used: 1, reports: 1, heard: 1, answered: 1, ..HostCounts::default() };
        assert_eq!(counts, expected, "IPv6: {v6}");
    }
}

#[test]
fn where_nobody_grants_anything_the_transfer_is_as_if_nobody_had_asked() {
    let Some(_alone) = alone_with_quick_start() else { return };
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
    let Some(_alone) = alone_with_quick_start() else { return };
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
    in_time(|| asked_by_the_server_once(everywhere, v6))
}

fn asked_by_the_server_once(everywhere: bool, v6: bool) -> (HostCounts, Fidelity) {
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
    let fidelity = world.finish().unwrap().fidelity;
    (host_counts().unwrap(), fidelity)
}

#[test]
fn a_server_asks_on_the_syn_ack_if_it_is_told_to() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let expected =
        HostCounts { asked: 1, granted: 1, used: 1, reports: 1, heard: 1, answered: 1, ..HostCounts::default() };
    // The last is a socket of IPv6 that speaks IPv4.
    for (everywhere, v6) in [(false, false), (false, true), (true, false)] {
        assert_eq!(asked_by_the_server(everywhere, v6), expected, "everywhere: {everywhere}, IPv6: {v6}");
    }
}

/// Sends a SYN that no socket of this host stands behind, so that its kernel resets what answers.
fn send_syn(from: SocketAddrV4, to: SocketAddrV4) {
    let mut tcp = Vec::new();
    tcp.extend(from.port().to_be_bytes());
    tcp.extend(to.port().to_be_bytes());
    // Number 1, nothing acknowledged, 20 bytes with SYN, a window of 65,535.
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
    let mut sum = [from.ip().octets(), to.ip().octets(), [0, 6, 0, 20]].concat();
    sum.extend(&tcp);
    tcp[16..18].copy_from_slice(&checksum(&sum).to_be_bytes());
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Tcp).unwrap();
    let sent = sendto(raw.as_raw_fd(), &tcp, &SockaddrStorage::from(SocketAddr::V4(to)), MsgFlags::empty());
    assert_eq!(sent, Ok(20));
}

/// Whoever sends a SYN and never opens the connection leaves a request behind that was asked on the
/// SYN/ACK; the next connection from the same port asks anew.
#[test]
fn a_connection_that_was_never_opened_does_not_keep_the_next_of_its_port_from_asking() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let (first, all) = in_time(asked_twice);
    assert_eq!(first, 1, "the SYN/ACK that is reset");
    let expected =
        HostCounts { asked: 2, granted: 1, used: 1, reports: 1, heard: 2, answered: 1, ..HostCounts::default() };
    assert_eq!(all, expected);
}

/// Requests of the server's after a SYN that nobody stands behind, and what a connection from the
/// same port leads to then.
fn asked_twice() -> ((u64, HostCounts), Fidelity) {
    let _registered = Registered::new(Algorithm::QuickStart, &["on_syn_ack=on"]);
    const PORT: u16 = 4784;
    let mut config = path(QuickStartHop::Unaware);
    config.routes[0].links = Vec::new();
    config.routes[1].links = vec![0];
    config.links[0].quick_start = aware();
    let world = world(config);
    let (client, server) = (world.hosts()[0].address(), world.hosts()[1].address());
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &CONTROL.into()).unwrap();
    let to = listener.local_addr().unwrap();
    let (IpAddr::V4(from), SocketAddr::V4(to_v4)) = (client, to) else { panic!("hosts have addresses of IPv4") };
    world.hosts()[0].run(move || send_syn(SocketAddrV4::new(from, PORT), to_v4)).unwrap();
    // A round trip of 60 ms, and the reset on its way.
    std::thread::sleep(Duration::from_millis(300));
    let first = host_counts().unwrap().asked;
    let client = world.hosts()[0].spawn(move || receive(connect_from(Some(PORT), to, "cubic"))).unwrap();
    send(listener.accept().unwrap().0, 500_000).unwrap();
    assert_eq!(client.join().unwrap().unwrap(), Ok(500_000));
    let fidelity = world.finish().unwrap().fidelity;
    ((first, host_counts().unwrap()), fidelity)
}

#[test]
fn connections_of_two_network_namespaces_with_the_same_addresses_and_ports_are_two() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let expected =
        HostCounts { asked: 2, granted: 2, used: 2, reports: 2, heard: 2, answered: 2, ..HostCounts::default() };
    assert_eq!(in_time(asked_by_two), expected);
}

/// What two connections lead to that ask at the same time and have the same name.
fn asked_by_two() -> (HostCounts, Fidelity) {
    let _registered = Registered::new(Algorithm::QuickStart, &["on_syn_ack=on"]);
    // Both servers ask at the same time: what each connection asked is remembered from its SYN/ACK
    // to the third ACK, a round trip.
    const PORTS: (u16, u16) = (4783, 4782);
    let mut config = path(QuickStartHop::Unaware);
    config.routes[0].links = Vec::new();
    config.routes[1].links = vec![0];
    config.links[0].quick_start = aware();
    let worlds = [world(config.clone()), world(config)];
    let server = worlds[0].hosts()[1].address();
    assert_eq!(server, worlds[1].hosts()[1].address(), "worlds have the same addresses");
    let together = Arc::new(Barrier::new(2));
    let pairs = worlds.each_ref().map(|world| {
        let listener = world.hosts()[1].run(move || TcpListener::bind((server, PORTS.1)).unwrap()).unwrap();
        setsockopt(&listener, sockopt::TcpCongestion, &CONTROL.into()).unwrap();
        let (to, together) = (listener.local_addr().unwrap(), together.clone());
        let client = world.hosts()[0].spawn(move || {
            together.wait();
            receive(connect_from(Some(PORTS.0), to, "cubic"))
        });
        (client.unwrap(), std::thread::spawn(move || send(listener.accept().unwrap().0, 300_000)))
    });
    for (client, server) in pairs {
        server.join().unwrap().unwrap();
        assert_eq!(client.join().unwrap().unwrap(), Ok(300_000));
    }
    let both = worlds.map(|world| world.finish().unwrap().fidelity);
    let fidelity = both.into_iter().max_by_key(|fidelity| fidelity.longest_stall).unwrap();
    (host_counts().unwrap(), fidelity)
}

#[test]
fn after_a_grant_packets_leave_at_its_rate_and_not_in_a_burst() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    // 5.12 Mbit/s are granted: 28 packets in a round trip of 67.5 ms, one in 2.3 ms.
    let mut config = path(QuickStartHop::Aware(AdmissionConfig::paper(Rate::from_mbps(10))));
    config.links[0].delay = Span::from_micros(37_500);
    let times = Arc::new(Mutex::new(Vec::new()));
    let sink = times.clone();
    let world = World::start_with(config, move |record| {
        if record.tcp().is_some_and(|tcp| tcp.payload > 0) {
            sink.lock().unwrap().push(record.arrived);
        }
    })
    .unwrap();
    for host in world.hosts() {
        host.run(|| attach_host(DEVICE, None)).unwrap().unwrap();
    }
    assert_eq!(through(&world, world.hosts()[1].address(), 100_000), Ok(100_000));
    world.finish().unwrap();
    assert_eq!(host_counts().unwrap().used, 1);
    let times = times.lock().unwrap();
    let gap = Rate::from_bps(5_120_000).transmission_time(Bytes::new(1500));
    // The first ten at once and a gap as long as theirs, then one by one. Late packets are made up
    // for at twice the rate at most, so a busy machine changes nothing about this bound.
    let paced = times[25].since(times[0]);
    assert!(paced > gap * 24 / 2, "26 packets took {paced}, {gap} each were granted");
}

#[test]
fn a_connection_outlives_the_algorithm_and_programs_go_from_devices_with_it() {
    let Some(_alone) = alone_with_quick_start() else { return };
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
    let Some(_alone) = alone_with_quick_start() else { return };
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

/// What a plain connection of host 0, which knows nothing of Quick-Start, asks for in its SYN, as a
/// rate code; `before` is done to it before it connects.
fn asked_by_a_plain_client(prepare: impl FnOnce() + Send, limit: Option<u64>) -> Vec<u8> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let sink = asked.clone();
    let world = World::start_with(path(aware()), move |record| {
        // Ethernet, then a header of IPv4 of 28 bytes with the option behind the first 20.
        if record.tcp().is_some_and(|tcp| tcp.flags & 2 != 0) && record.headers.get(14) == Some(&0x47) {
            sink.lock().unwrap().push(record.headers[36] & 15);
        }
    })
    .unwrap();
    for host in world.hosts() {
        host.run(|| attach_host(DEVICE, None)).unwrap().unwrap();
    }
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    world.hosts()[0].run(prepare).unwrap();
    let sender = world.hosts()[0].spawn(move || {
        let stream = match limit {
            Some(limit) => connect_limited(limit, to, CONTROL),
            None => TcpStream::connect(to).unwrap(),
        };
        send(stream, 30_000)
    });
    assert_eq!(receive(listener.accept().unwrap().0), Ok(30_000));
    sender.unwrap().join().unwrap().unwrap().unwrap();
    world.finish().unwrap();
    asked.lock().unwrap().clone()
}

#[test]
fn whoever_the_hosts_policy_says_asks_and_a_socket_says_how_much() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &["request=20.48Mbit/s"]);
    const ASKED: u8 = 9;
    assert_eq!(asked_by_a_plain_client(|| {}, None), Vec::<u8>::new(), "nobody was told to ask");
    let route = || {
        let text = std::process::Command::new("ip").args(["-4", "route", "show"]).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        for route in text.lines() {
            common::ip(&format!("route change {} congctl {CONTROL}", route.trim_end().trim_end_matches(" linkdown")));
        }
    };
    assert_eq!(asked_by_a_plain_client(route, None), [ASKED], "a route");
    // 100 kB/s are 800 kbit/s, and the rate below is 640 kbit/s.
    assert_eq!(asked_by_a_plain_client(|| {}, Some(100_000)), [4], "a socket's largest pacing rate");
}

#[test]
fn of_several_devices_all_carry_requests_or_none_that_did_not_before() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let pair = common::Pair::new();
    let there = Some(pair.name(0));
    attach_hosts(&["fs0"], there).unwrap();
    let before = host_devices();
    assert!(attach_hosts(&["fs0", "lo", "fs-none"], there).is_err());
    assert_eq!(host_devices(), before);
    attach_hosts(&["fs0", "lo"], there).unwrap();
    assert_eq!(host_devices().len(), before.len() + 1);
}

#[test]
fn a_router_at_the_hosts_own_device_decides_and_other_programs_there_stay() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let pair = common::Pair::new();
    for end in [0, 1] {
        attach_host("fs0", Some(pair.name(end))).unwrap();
    }
    let settings = RouterSettings::new(Rate::from_mbps(100));
    let router = load_router("fs0", Some(pair.name(0)), &settings).unwrap();
    assert_eq!(common::transfer(&pair, CONTROL, 200_000), Ok(200_000));
    let state = router.state().unwrap();
    assert_eq!((state.approved, state.reports), (1, 1), "{state:?}");
    assert_eq!(host_counts().unwrap().granted, 1);
    // A filter of somebody else: our programs come before it, and hand everything on.
    let name = pair.name(0);
    let tc = |arguments: &str| {
        let arguments = format!("-n {name} {arguments}");
        std::process::Command::new("tc").args(arguments.split(' ')).stderr(std::process::Stdio::null()).status()
    };
    let there = tc("qdisc add dev fs0 clsact").is_ok_and(|status| status.success())
        && tc("filter add dev fs0 egress protocol ip prio 1 u32 match u32 0 0 classid 1:1")
            .is_ok_and(|status| status.success());
    if !there {
        return common::skipped("tc is missing, or this kernel has no u32 filter");
    }
    let before = router.state().unwrap().packets;
    let sent = pair.on(0, || {
        let socket = std::net::UdpSocket::bind((common::address(1), 0)).unwrap();
        (0..20).for_each(|_| drop(socket.send_to(&[0; 72], (common::address(2), 9))));
    });
    sent.join().unwrap();
    assert!(router.state().unwrap().packets >= before + 20, "the router counts on");
    router.unload().unwrap();
    let shown = std::process::Command::new("tc").args(["-n", name, "filter", "show", "dev", "fs0", "egress"]).output();
    assert!(String::from_utf8(shown.unwrap().stdout).unwrap().contains("u32"), "it is still there");
}

#[test]
fn of_ten_thousand_connections_with_options_none_loses_anything() {
    let Some(_alone) = alone_with_quick_start() else { return };
    // 17 packets in a round trip, more than the initial window.
    let _registered = Registered::new(Algorithm::QuickStart, &["request=10.24Mbit/s"]);
    const AT_ONCE: u64 = 100;
    const EACH: u64 = 100;
    let capacity = Rate::from_mbps(100_000);
    let mut config = path(QuickStartHop::Aware(AdmissionConfig::paper(capacity)));
    config.links[0].rate = RateSchedule::Constant(capacity);
    config.links[0].delay = Span::from_millis(10);
    config.routes[1].after = Span::from_millis(10);
    let world = world(config);
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sizes = |thread: u64| (0..EACH).map(move |number| 1 + (thread * 7919 + number * 104_729) % 20_000);
    let senders: Vec<_> = (0..AT_ONCE)
        .map(|thread| {
            let sending = move || sizes(thread).for_each(|bytes| send(connect(to, CONTROL), bytes).unwrap());
            world.hosts()[0].spawn(sending).unwrap()
        })
        .collect();
    let receivers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let listener = listener.try_clone().unwrap();
            let next = move || receive(listener.accept().unwrap().0).unwrap();
            std::thread::spawn(move || (0..EACH).map(|_| next()).sum::<u64>())
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap().unwrap());
    let received: u64 = receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum();
    world.finish().unwrap();
    assert_eq!(received, (0..AT_ONCE).flat_map(sizes).sum::<u64>());
    let counts = host_counts().unwrap();
    // A sender that had to wait for a processor for longer than its timeout asks again; if that was
    // with its last data, nothing is sent that could report.
    let all = AT_ONCE * EACH + counts.asked_in_middle;
    assert_eq!(counts.asked, all, "{counts:?}");
    assert!((AT_ONCE * EACH..=all).contains(&counts.reports), "{counts:?}");
    // What is granted to the first is not there for the last; a request that was denied is zero
    // when it arrives, and nobody answers it.
    assert_eq!((counts.granted + counts.unanswered, counts.failed), (all, 0), "{counts:?}");
    assert_eq!((counts.heard, counts.answered), (counts.granted, counts.granted), "{counts:?}");
}
