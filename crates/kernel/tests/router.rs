//! The router's program beside the crate's router: the same packets, the same clock, the same
//! random numbers; packet by packet the same decisions and bytes. Needs root; says `skipped: …`
//! otherwise.

#![cfg(feature = "ebpf")]

mod common;

use common::packets::{both, ipv4, ipv6};
use common::{Pair, alone_with_quick_start, ip, skipped};
use flowstart_kernel::{RouterMeter, RouterSettings, load_router, router_at};
use flowstart_quick_start::router::{FlowsConfig, Forwarding, forward_plain};
use flowstart_quick_start::wire::{IpOption, checksum};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_random::{Rng, Stream, below, stream};
use flowstart_units::{Rate, Span, Time};

fn option(random: &mut impl Rng) -> Option<IpOption> {
    let bits = random.next_u32();
    let rate = RateCode::new((bits & 15) as u8).unwrap();
    let (nonce, ttl) = (Nonce::new(random.next_u32()), (bits >> 8) as u8);
    match bits >> 16 & 7 {
        0..4 => Some(IpOption::Request { rate, ttl, nonce }),
        4 | 5 => Some(IpOption::Report { rate, nonce }),
        _ => None,
    }
}

/// So many flows there are in a test of flows.
const FLOWS: usize = 40;

/// Some flows of some sources, and what each asked for last.
struct Flows {
    asked: [(RateCode, Nonce); FLOWS],
}

impl Flows {
    const SOURCES: u8 = 7;

    /// A request, data or report of one of them; most reports say what was granted, with the nonce
    /// that was sent.
    fn packet(&mut self, random: &mut Stream, granted: &mut [RateCode; FLOWS]) -> (usize, Vec<u8>) {
        let flow = below(random, FLOWS as u64) as usize;
        let (rate, nonce) = self.asked[flow];
        let (option, payload) = match below(random, 20) {
            0..3 => {
                let rate = RateCode::new(1 + below(random, 8) as u8).unwrap();
                let nonce = Nonce::new(random.next_u32());
                self.asked[flow] = (rate, nonce);
                granted[flow] = RateCode::ZERO;
                (Some(IpOption::Request { rate, ttl: 9, nonce }), 0)
            }
            3..6 => {
                let said = if below(random, 8) == 0 { rate } else { granted[flow] };
                let said = if below(random, 8) == 0 { RateCode::ZERO } else { said };
                let nonce = if below(random, 8) == 0 { Nonce::new(random.next_u32()) } else { nonce };
                (Some(IpOption::Report { rate: said, nonce }), 0)
            }
            6 => (None, 0),
            _ => (None, 1 + below(random, 1400) as usize),
        };
        let (source, port) = (flow as u8 % Self::SOURCES, flow as u8);
        let mut packet = if flow.is_multiple_of(3) { ipv6(option, payload) } else { ipv4(option, payload, 0) };
        let transport = if flow.is_multiple_of(3) {
            packet[8] = source;
            if option.is_some() { 56 } else { 40 }
        } else {
            packet[15] = source;
            if option.is_none() && below(random, 16) == 0 {
                // A fragment from the middle: what is where ports would be is payload.
                let offset = 1 + below(random, 0x1fff) as u16;
                packet[6..8].copy_from_slice(&(0x2000 | offset).to_be_bytes());
            }
            packet[10..12].fill(0);
            let header = usize::from(packet[0] & 15) * 4;
            let check = checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&check.to_be_bytes());
            header
        };
        packet[transport + 1] = port;
        packet[transport + 12] = 0x50;
        (flow, packet)
    }
}

/// Gives `packets` packets to both; `damage` percent of them have a few random bytes in their
/// headers, or end early.
fn compare(settings: &RouterSettings, packets: u64, damage: u64, seed: u64) {
    let mut flows = Flows { asked: [(RateCode::ZERO, Nonce::new(0)); FLOWS] };
    let mut granted_of = [RateCode::ZERO; FLOWS];
    let (bench, mut router, told) = both(settings);
    let mut random = stream(seed);
    let (mut now, mut decisions, mut granted) = (0_u64, 0, 0);
    for number in 0..packets {
        let pads = below(&mut random, 5) as usize;
        let payload = below(&mut random, 1400) as usize;
        let chosen = option(&mut random);
        let mut packet = if below(&mut random, 2) == 0 { ipv4(chosen, payload, pads) } else { ipv6(chosen, payload) };
        let mut flow = None;
        if settings.flows.is_some() && below(&mut random, 100) > 0 {
            let (number, of_flow) = flows.packet(&mut random, &mut granted_of);
            (flow, packet) = (Some(number), of_flow);
        }
        if below(&mut random, 100) < damage {
            for _ in 0..=below(&mut random, 4) {
                // Headers are where it matters.
                let place = below(&mut random, 72.min(packet.len() as u64)) as usize;
                packet[place] = random.next_u32() as u8;
            }
            if below(&mut random, 8) == 0 {
                packet.truncate(21 + below(&mut random, packet.len() as u64 - 21) as usize);
            }
        }
        // Bursts, pauses, and once in a while a long silence.
        now += match below(&mut random, 100) {
            0 => 3_000_000_000,
            1..10 => below(&mut random, 200_000_000),
            _ => below(&mut random, 300_000),
        };
        let random_bits = random.next_u32();
        told.set(random_bits);
        let mut lowered = packet.clone();
        let mut expected = packet.clone();
        match forward_plain(&mut lowered, settings.hops) {
            Forwarding::Forwarded => {}
            // The kernel forwards nothing of the kind.
            _ => continue,
        }
        let forwarding = router.forward(Time::ZERO + Span::from_nanos(now), &mut expected);
        // The kernel's test wants a whole header of IP behind that of Ethernet.
        let (passed, _) = bench.pass(now, random_bits, &lowered, 1).unwrap();
        let decided = match forwarding {
            Forwarding::Decided(code) => Some(code.get()),
            _ => None,
        };
        assert_eq!(passed.decided, decided, "packet {number} at {now} ns: {packet:02x?}");
        assert_eq!(passed.packet, expected, "packet {number} at {now} ns: {packet:02x?}");
        if let (Some(flow), Forwarding::Decided(code)) = (flow, forwarding) {
            granted_of[flow] = code;
        }
        if settings.flows.is_some() && number.is_multiple_of(16) {
            let (state, counts) = (bench.state().unwrap(), router.counts());
            let of_crate = (router.admission().granted(), counts.faults, counts.strays);
            assert_eq!((state.granted, state.faults, state.strays), of_crate, "after packet {number} at {now} ns");
        }
        decisions += u64::from(decided.is_some());
        granted += u64::from(decided.is_some_and(|code| code > 0));
    }
    let (state, counts) = (bench.state().unwrap(), router.counts());
    let of_program = (state.approved, state.denied, state.ignored, state.reports, state.faults, state.strays);
    let of_crate = (counts.approved, counts.denied, counts.ignored, counts.reports, counts.faults, counts.strays);
    assert_eq!(of_program, of_crate);
    assert_eq!((state.load, state.granted), (router.admission().load(), router.admission().granted()));
    let of_flows = settings.flows.is_none() || counts.strays > 0 && counts.faults > 0;
    assert!(of_flows, "no rule was broken: nothing was tested");
    assert!(granted > 0 && granted < decisions, "{granted} of {decisions} requests were granted: nothing was tested");
}

fn settings(meter: RouterMeter, capacity: Rate, threshold_percent: u32) -> RouterSettings {
    RouterSettings { meter, threshold_percent, ..RouterSettings::new(capacity) }
}

#[test]
fn the_program_decides_and_writes_packet_by_packet_what_the_crate_does() {
    let Some(_alone) = alone_with_quick_start() else { return };
    // More of them by hand: docs/quick-start-linux.md says how many have been tried.
    let mutated = std::env::var("FLOWSTART_ROUTER_PACKETS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    for (seed, (meter, capacity, threshold)) in [
        (RouterMeter::Mean, Rate::from_mbps(10), 100),
        (RouterMeter::Peak, Rate::from_mbps(10), 90),
        (RouterMeter::Mean, Rate::from_mbps(1000), 75),
        (RouterMeter::Peak, Rate::from_mbps(200), 100),
    ]
    .into_iter()
    .enumerate()
    {
        let settings = settings(meter, capacity, threshold);
        compare(&settings, 20_000, 0, seed as u64);
        compare(&settings, mutated, 100, 100 + seed as u64);
    }
    // Few requests are looked at, and none of them twice in a row.
    let scarce = RouterSettings { requests_per_second: 50, burst: 3, ..RouterSettings::new(Rate::from_mbps(100)) };
    compare(&scarce, 20_000, 10, 7);
}

#[test]
fn a_router_that_remembers_flows_gives_back_refuses_and_counts_as_the_crate_does() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let flows = FlowsConfig::default();
    let extreme = |flows, capacity| RouterSettings { flows: Some(flows), ..RouterSettings::new(capacity) };
    let fast = Rate::from_mbps(100);
    compare(&extreme(flows, Rate::from_mbps(10)), 20_000, 0, 20);
    compare(&extreme(FlowsConfig { faults: 1000, ..flows }, fast), 20_000, 0, 21);
    compare(&extreme(FlowsConfig { faults: 1000, ..flows }, fast), 20_000, 40, 22);
    // Little memory, sources that are forgotten soon, reports that nobody expects.
    let small = FlowsConfig { flows: 3, faults: 20, forgive_after: Span::from_secs(5), ..flows };
    compare(&extreme(small, fast), 20_000, 0, 23);
    let calm = FlowsConfig { expect_reports: false, count_once: false, faults: 500, ..flows };
    compare(&RouterSettings { meter: RouterMeter::Peak, ..extreme(calm, fast) }, 20_000, 10, 24);
}

#[test]
fn a_router_is_loaded_at_a_device_once_counts_what_leaves_there_and_goes_without_a_trace() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let pair = Pair::new();
    let [a, b] = [0, 1].map(|end| pair.name(end).to_owned());
    let settings = RouterSettings::new(Rate::from_mbps(100));
    let there = load_router("fs0", Some(&a), &settings).unwrap();
    let twice = load_router("fs0", Some(&a), &settings).unwrap_err();
    assert!(twice.to_string().contains(&format!("router unload --dev fs0 --netns {a}")), "{twice}");
    assert_eq!(router_at("fs0", Some(&a)).unwrap().index, there.index);
    assert!(router_at("fs0", Some(&b)).is_err(), "the device of the same name of the other host has none");
    let sent = pair.on(0, || {
        let socket = std::net::UdpSocket::bind((common::address(1), 0)).unwrap();
        (0..100).for_each(|_| drop(socket.send_to(&[0; 72], (common::address(2), 9))));
    });
    sent.join().unwrap();
    let state = there.state().unwrap();
    assert!(state.packets >= 100 && state.bytes.get() >= 100 * 100, "{state:?}");
    there.unload().unwrap();
    assert!(router_at("fs0", Some(&a)).is_err());
    // A device that goes takes its router with it.
    let gone = load_router("fs0", Some(&a), &settings).unwrap();
    assert!(gone.is_attached());
    ip(&format!("-n {a} link del fs0"));
    assert!(!gone.is_attached());
    assert!(flowstart_kernel::routers().unwrap().is_empty());
    let said = gone.state().unwrap_err().to_string();
    assert!(said.contains("the router is gone") && !said.contains("root"), "{said}");
    // Whoever finds that out takes away what the last of ours leaves behind.
    let left = std::fs::read_dir("/run/flowstart/bpf/flowstart").map(Iterator::count);
    assert!(left.is_err() || matches!(left, Ok(1..)), "an empty folder on a file system of our own");
}

#[test]
fn of_a_flood_beyond_no_requests_at_all_none_is_looked_at() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let settings = RouterSettings { requests_per_second: 0, ..RouterSettings::new(Rate::from_mbps(100)) };
    let (bench, mut router, _) = both(&settings);
    for millis in 0..5 {
        let option = IpOption::Request { rate: RateCode::MIN, ttl: 9, nonce: Nonce::new(1) };
        let mut packet = ipv4(Some(option), 0, 0);
        let now = millis * 1_000_000;
        let (passed, _) = bench.pass(now, 0, &packet, 1).unwrap();
        assert_eq!(passed.packet, packet);
        assert_eq!(router.forward(Time::ZERO + Span::from_nanos(now), &mut packet), Forwarding::Forwarded);
    }
    assert_eq!((bench.state().unwrap().ignored, router.counts().ignored), (5, 5));
}

#[test]
fn a_bridge_leaves_the_ttl_of_a_request_as_it_is() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let settings = RouterSettings { hops: 0, ..RouterSettings::new(Rate::from_mbps(100)) };
    let (bench, ..) = both(&settings);
    let option = IpOption::Request { rate: RateCode::MIN, ttl: 9, nonce: Nonce::new(1) };
    let packet = ipv4(Some(option), 0, 0);
    let (passed, _) = bench.pass(0, 0, &packet, 1).unwrap();
    assert_eq!((passed.decided, passed.packet), (Some(RateCode::MIN.get()), packet));
}

#[test]
fn segments_that_the_device_will_cut_are_metered_with_the_headers_they_will_have() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let pair = Pair::new();
    let there = load_router("fs0", Some(pair.name(0)), &RouterSettings::new(Rate::from_mbps(100))).unwrap();
    const BYTES: u64 = 4_000_000;
    assert_eq!(common::transfer(&pair, "cubic", BYTES), Ok(BYTES));
    let state = there.state().unwrap();
    there.unload().unwrap();
    let segments = BYTES / 1448;
    assert!(state.packets < segments / 2, "the kernel hands super-packets over: {state:?}");
    // 52 bytes of headers each; beyond that a handshake, and segments that were not full.
    let least = BYTES + 52 * segments;
    assert!((least..least + BYTES / 100).contains(&state.bytes.get()), "{least}: {state:?}");
}

#[test]
fn devices_without_ethernet_and_their_rates_are_known_in_other_namespaces_too() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let pair = Pair::new();
    let name = pair.name(0).to_owned();
    let limit = |device: &str, capacity| {
        let router = load_router(device, Some(&name), &RouterSettings::new(capacity)).unwrap();
        let limit = router.limit().unwrap();
        router.unload().unwrap();
        limit
    };
    // What the driver of virtual pairs says.
    assert_eq!(limit("fs0", Rate::ZERO), Rate::from_mbps(10_000));
    let mut tun = std::process::Command::new("ip");
    tun.args(["-n", &name, "tuntap", "add", "mode", "tun", "name", "fs1"]);
    if !tun.status().is_ok_and(|status| status.success()) {
        return skipped("this kernel has no tun devices");
    }
    ip(&format!("-n {name} addr add 10.214.0.1/24 dev fs1"));
    ip(&format!("-n {name} link set fs1 up"));
    let there = load_router("fs1", Some(&name), &RouterSettings::new(Rate::from_mbps(100))).unwrap();
    let sent = pair.on(0, || {
        let socket = std::net::UdpSocket::bind(("10.214.0.1", 0)).unwrap();
        (0..100).for_each(|_| drop(socket.send_to(&[0; 72], ("10.214.0.2", 9))));
    });
    sent.join().unwrap();
    let state = there.state().unwrap();
    there.unload().unwrap();
    assert!(state.packets >= 100 && state.bytes.get() >= 100 * 100, "{state:?}");
}

#[test]
fn what_cannot_be_loaded_is_refused_in_a_sentence() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let settings = RouterSettings::new(Rate::from_mbps(100));
    let none = load_router("fs-none", None, &settings).unwrap_err();
    assert_eq!(none.to_string(), "there is no network device fs-none; `ip link` says which there are");
    let nowhere = load_router("fs0", Some("fs-nowhere"), &settings).unwrap_err();
    assert!(nowhere.to_string().contains("there is no network namespace fs-nowhere"), "{nowhere}");
    let pair = Pair::new();
    ip(&format!("-n {} link add fs1 type bridge", pair.name(0)));
    let unknown = load_router("fs1", Some(pair.name(0)), &RouterSettings::new(Rate::ZERO)).unwrap_err();
    assert!(unknown.to_string().contains("--capacity"), "{unknown}");
    assert!(router_at("fs1", Some(pair.name(0))).is_err(), "nothing is left behind");
}
