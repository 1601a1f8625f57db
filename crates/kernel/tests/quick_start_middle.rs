//! Requests in mid-connection on the running kernel, over emulated links that are routers. Needs
//! root; says `skipped: …` otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::io::Write as _;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::worlds::{CONTROL, DEVICE, path};
use common::{Registered, alone_with_quick_start, connect, in_time, pattern, receive};
use flowstart_emulator::{Fidelity, World};
use flowstart_kernel::{Algorithm, HostCounts, attach_host, host_counts};
use flowstart_network::{LossConfig, QuickStartHop};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_units::{Rate, Span};
use nix::sys::socket::{setsockopt, sockopt};

/// Longer than a retransmission timeout of these paths.
const PAUSE: Duration = Duration::from_millis(900);
/// Function codes.
const REQUEST: u8 = 0;
const REPORT: u8 = 8;

/// An option as the first link saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carried {
    function: u8,
    rate: u8,
    is_syn: bool,
    payload: u32,
    bytes: u32,
}

/// A path whose router measures and forgets within 300 ms.
fn aware() -> QuickStartHop {
    QuickStartHop::Aware(AdmissionConfig::rfc(Rate::from_mbps(100)))
}

/// What happened: options that came to the link, how long the longest packet was, and counts.
struct Happened {
    options: Vec<Carried>,
    longest: u32,
    counts: HostCounts,
}

/// How a transfer goes.
struct Course {
    hop: QuickStartHop,
    v6: bool,
    loss: LossConfig,
    /// Congestion control at the beginning.
    control: &'static str,
    parts: &'static [u64],
    /// Delay of each way.
    delay: Span,
    /// MTU of the client's route.
    mtu: Option<u32>,
    /// Before each part but the first.
    prepare: fn(&TcpStream),
}

impl Default for Course {
    fn default() -> Self {
        let parts = &[100_000, 1_000_000];
        let loss = LossConfig::None;
        let delay = Span::from_millis(30);
        Self { hop: aware(), v6: false, loss, control: CONTROL, parts, delay, mtu: None, prepare: |_| () }
    }
}

/// Sends the parts with pauses between them; all arrives.
fn happened(course: &Course, parameters: &[&str]) -> Happened {
    in_time(|| happened_once(course, parameters))
}

fn happened_once(course: &Course, parameters: &[&str]) -> (Happened, Fidelity) {
    let _registered = Registered::new(Algorithm::QuickStart, parameters);
    let seen = Arc::new(Mutex::new((Vec::new(), 0)));
    let sink = seen.clone();
    let mut config = path(course.hop);
    config.links[0].loss = course.loss;
    config.links[0].delay = course.delay;
    config.routes[1].after = course.delay;
    let world = World::start_with(config, move |record| {
        let Some(tcp) = record.tcp() else { return };
        let mut seen = sink.lock().unwrap();
        seen.1 = seen.1.max(record.bytes);
        // Behind Ethernet: the header of IPv4 with 28 bytes, or the first extension of IPv6.
        let data = match record.headers.get(14..) {
            Some(ip) if ip[0] == 0x47 && ip[20] == 25 => &ip[22..],
            Some(ip) if ip[0] >> 4 == 6 && ip[6] == 0 && ip[42] == 0x26 => &ip[44..],
            _ => return,
        };
        let (function, rate) = (data[0] >> 4, data[0] & 15);
        let is_syn = tcp.flags & 2 != 0;
        seen.0.push(Carried { function, rate, is_syn, payload: tcp.payload, bytes: record.bytes });
    })
    .unwrap();
    for host in world.hosts() {
        host.run(|| attach_host(DEVICE, None)).unwrap().unwrap();
    }
    if let Some(mtu) = course.mtu {
        world.hosts()[0].run(move || limit_routes(mtu)).unwrap();
    }
    let host = &world.hosts()[1];
    let server: IpAddr = if course.v6 { host.address_v6().unwrap() } else { host.address() };
    let listener = host.run(move || TcpListener::bind((server, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let (control, parts, prepare) = (course.control, course.parts, course.prepare);
    let sender = world.hosts()[0].spawn(move || {
        let mut stream = connect(to, control);
        let mut sent = 0;
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                std::thread::sleep(PAUSE);
                prepare(&stream);
            }
            let mut bytes = vec![0; *part as usize];
            pattern(sent, &mut bytes);
            stream.write_all(&bytes).unwrap();
            sent += part;
        }
        stream.shutdown(Shutdown::Write).unwrap();
        sent
    });
    assert_eq!(receive(listener.accept().unwrap().0), Ok(parts.iter().sum()));
    sender.unwrap().join().unwrap().unwrap();
    let fidelity = world.finish().unwrap().fidelity;
    let (options, longest) = std::mem::take(&mut *seen.lock().unwrap());
    (Happened { options, longest, counts: host_counts().unwrap() }, fidelity)
}

fn limit_routes(mtu: u32) {
    for family in ["-4", "-6"] {
        let shown = std::process::Command::new("ip").args([family, "route", "show"]).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        for route in shown.lines().filter(|route| !route.starts_with("fe80") && !route.starts_with("multicast")) {
            let route = route.trim_end().trim_end_matches(" linkdown").replace(" pref medium", "");
            common::ip(&format!("{family} route change {route} mtu {mtu}"));
        }
    }
}

#[test]
fn after_an_idle_time_the_first_data_asks_again_with_room_that_the_stack_has_left() {
    let Some(_alone) = alone_with_quick_start() else { return };
    for v6 in [false, true] {
        let Happened { options, longest, counts } = happened(&Course { v6, ..Course::default() }, &[]);
        let expected = HostCounts {
            asked: 2,
            granted: 2,
            used: 2,
            reports: 2,
            heard: 2,
            answered: 2,
            asked_in_middle: 1,
            ..HostCounts::default()
        };
        assert_eq!(counts, expected, "IPv6: {v6}: {options:?}");
        let [syn, reported, asked, last] = options[..] else { panic!("IPv6: {v6}: {options:?}") };
        assert_eq!((syn.function, syn.is_syn, reported.function), (REQUEST, true, REPORT));
        // One packet, which is full, with less payload by what the option takes; as the router left
        // it: 81.92 of 100 Mbit/s.
        let payload = if v6 { 1500 - 40 - 16 - 32 } else { 1500 - 28 - 32 };
        assert_eq!(asked, Carried { function: REQUEST, rate: 11, is_syn: false, payload, bytes: 1500 });
        assert_eq!((last.function, last.rate, last.payload), (REPORT, 11, 0));
        assert_eq!(longest, 1500);
    }
}

#[test]
fn a_connection_asks_in_mid_connection_when_its_socket_is_given_this_control() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let prepare = |stream: &TcpStream| setsockopt(stream, sockopt::TcpCongestion, &CONTROL.into()).unwrap();
    let course = Course { control: "cubic", prepare, ..Course::default() };
    // Nothing else asks.
    let Happened { options, counts, .. } = happened(&course, &["in_middle=on", "after_idle=off"]);
    let expected = HostCounts {
        asked: 1,
        granted: 1,
        used: 1,
        reports: 1,
        heard: 1,
        answered: 1,
        asked_in_middle: 1,
        ..HostCounts::default()
    };
    assert_eq!(counts, expected, "{options:?}");
    let functions: Vec<_> = options.iter().map(|option| (option.function, option.payload > 0)).collect();
    assert_eq!(functions, [(REQUEST, true), (REPORT, false)]);
}

#[test]
fn what_is_written_beyond_the_window_asks_only_if_the_host_is_told_so() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let course = Course { parts: &[20_000, 2_000_000], ..Course::default() };
    let asked = |parameters: &[&str]| {
        let Happened { options, counts, .. } = happened(&course, parameters);
        assert!(counts.granted == counts.asked && counts.reports == counts.asked, "{counts:?}: {options:?}");
        (counts.asked, counts.asked_in_middle)
    };
    assert_eq!(asked(&["after_idle=off", "on_syn=off"]), (0, 0));
    assert_eq!(asked(&["after_idle=off", "on_syn=off", "in_middle=on"]), (1, 1));
}

#[test]
fn a_request_on_data_that_is_dropped_is_sent_again_without_and_is_the_last() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let course = Course { hop: QuickStartHop::DropsOptions, parts: &[50_000, 300_000, 300_000], ..Course::default() };
    let Happened { counts, .. } = happened(&course, &["on_syn=off"]);
    let expected = HostCounts { asked: 1, asked_in_middle: 1, lost: 1, ..HostCounts::default() };
    assert_eq!(counts, expected);
}

#[test]
fn where_a_router_knows_nothing_of_it_a_connection_asks_three_times_and_no_more() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let parts = &[50_000, 50_000, 50_000, 50_000, 50_000];
    let course = Course { hop: QuickStartHop::Unaware, parts, ..Course::default() };
    let Happened { counts, options, .. } = happened(&course, &[]);
    let expected = HostCounts {
        asked: 3,
        asked_in_middle: 2,
        wrong_ttl: 3,
        heard: 3,
        answered: 3,
        reports: 3,
        ..HostCounts::default()
    };
    assert_eq!(counts, expected, "{options:?}");
}

#[test]
fn losses_in_a_phase_in_mid_connection_lead_back_and_nothing_is_asked_again() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let parts = &[60_000, 600_000, 600_000];
    let course = Course { loss: LossConfig::Periodic { every: 90 }, parts, ..Course::default() };
    let Happened { counts, options, .. } = happened(&course, &["on_syn=off"]);
    assert_eq!((counts.asked, counts.used, counts.congested), (1, 1, 1), "{counts:?}: {options:?}");
}

#[test]
fn where_the_path_carries_less_than_the_device_no_packet_with_an_option_is_longer() {
    let Some(_alone) = alone_with_quick_start() else { return };
    for v6 in [false, true] {
        let course = Course { v6, mtu: Some(1400), ..Course::default() };
        let Happened { counts, options, longest } = happened(&course, &[]);
        assert_eq!((counts.asked, counts.granted, counts.reports), (2, 2, 2), "IPv6: {v6}: {options:?}");
        assert_eq!((options[2].bytes, longest), (1400, 1400), "IPv6: {v6}");
    }
}

#[test]
fn where_the_stack_bundles_packets_because_round_trips_are_short_data_leaves_without_a_request() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let course = Course { delay: Span::from_micros(300), ..Course::default() };
    let Happened { counts, options, longest } = happened(&course, &["on_syn=off"]);
    // On a busy machine the round trip may be longer than that of the path.
    assert_eq!(counts.asked + counts.failed, 1, "{counts:?}: {options:?}");
    assert_eq!((counts.asked as usize * 2, longest), (options.len(), 1500), "{counts:?}: {options:?}");
}
