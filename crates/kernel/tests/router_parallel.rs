//! The router's program on several processors at once beside the crate's router, which is told the
//! same packets one after the other: whatever the program decides in parallel, an order exists in
//! which the crate decides the same, and afterwards both know the same. Needs root; says `skipped:
//! …` otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::sync::Barrier;

use common::alone_with_quick_start;
use common::packets::{both, ipv4};
use flowstart_kernel::{RouterBench, RouterLane, RouterMeter, RouterSettings};
use flowstart_quick_start::router::{FlowsConfig, Forwarding};
use flowstart_quick_start::wire::{IpOption, checksum};
use flowstart_quick_start::{Nonce, RateCode, Router};
use flowstart_random::{Rng as _, Stream, below, stream};
use flowstart_units::{Rate, Span, Time};

const THREADS: usize = 4;
const FLOWS: usize = 120;
const SOURCES: usize = 9;
const ROUNDS: u64 = 60;

/// A packet of one of the flows; each flow has a thread of its own, so that its packets keep their
/// order.
#[derive(Clone)]
struct Given {
    flow: usize,
    bytes: Vec<u8>,
}

fn packet(flow: usize, option: Option<IpOption>, payload: usize) -> Given {
    let mut bytes = ipv4(option, payload, 0);
    let header = usize::from(bytes[0] & 15) * 4;
    bytes[15] = (flow % SOURCES) as u8;
    bytes[header + 1] = flow as u8;
    bytes[10..12].fill(0);
    let check = checksum(&bytes[..header]);
    bytes[10..12].copy_from_slice(&check.to_be_bytes());
    Given { flow, bytes }
}

/// Gives all packets to the program, each flow's by its own thread, all at once; what was decided.
fn parallel(lanes: &[RouterLane], now: u64, packets: &[Given]) -> Vec<Option<u8>> {
    let together = Barrier::new(lanes.len());
    let mut decided = vec![None; packets.len()];
    std::thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter()
            .enumerate()
            .map(|(thread, lane)| {
                let together = &together;
                scope.spawn(move || {
                    let own = packets.iter().enumerate().filter(|(_, packet)| packet.flow % lanes.len() == thread);
                    together.wait();
                    own.map(|(place, packet)| (place, lane.pass(now, 7, &packet.bytes).unwrap().decided))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for (place, was) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            decided[place] = was;
        }
    });
    decided
}

/// Gives a packet to the crate.
fn alone_decided<R: flowstart_random::Rng>(router: &mut Router<R>, now: u64, packet: &Given) -> Option<u8> {
    match router.forward(Time::ZERO + Span::from_nanos(now), &mut packet.bytes.clone()) {
        Forwarding::Decided(code) => Some(code.get()),
        _ => None,
    }
}

fn same<R: flowstart_random::Rng>(bench: &RouterBench, router: &Router<R>, flows: bool, when: &str) {
    let (state, counts, admission) = (bench.state().unwrap(), router.counts(), router.admission());
    let of_program = (state.approved, state.denied, state.ignored, state.reports, state.load, state.granted);
    let of_crate =
        (counts.approved, counts.denied, counts.ignored, counts.reports, admission.load(), admission.granted());
    assert_eq!(of_program, of_crate, "{when}");
    if flows {
        assert_eq!((state.faults, state.strays), (counts.faults, counts.strays), "{when}");
    }
}

/// What flows that were granted something send next: data, reports that are right or wrong, or
/// nothing.
fn followed(random: &mut Stream, flow: usize, nonce: Nonce, rate: RateCode) -> Vec<Given> {
    let report = |rate| packet(flow, Some(IpOption::Report { rate, nonce }), 0);
    let data = |payload| packet(flow, None, payload);
    let size = 1 + below(random, 1400) as usize;
    match below(random, 8) {
        0 => Vec::new(),
        1 => vec![data(size)],
        2 => vec![report(RateCode::MAX), data(size)],
        3 => vec![report(RateCode::ZERO)],
        4 => vec![data(size), report(rate), data(size), data(size)],
        _ => vec![report(rate), data(size)],
    }
}

fn compare(settings: &RouterSettings, seed: u64) {
    let (bench, mut router, told) = both(settings);
    told.set(7);
    let lanes: Vec<_> = (0..THREADS).map(|_| bench.lane().unwrap()).collect();
    let with_flows = settings.flows.is_some();
    let mut random = stream(seed);
    let (mut now, mut granted, mut denied) = (0, 0, 0);
    for round in 0..ROUNDS {
        // All ask for the same, so that an order is found by what they got: the first get most.
        let rate = RateCode::new(3 + below(&mut random, 6) as u8).unwrap();
        let nonces: Vec<_> = (0..FLOWS).map(|_| Nonce::new(random.next_u32())).collect();
        let asking: Vec<_> = (0..FLOWS)
            .filter(|_| below(&mut random, 3) > 0)
            .map(|flow| packet(flow, Some(IpOption::Request { rate, ttl: 9, nonce: nonces[flow] }), 0))
            .collect();
        let decided = parallel(&lanes, now, &asking);
        let mut order: Vec<_> = decided.iter().zip(&asking).collect();
        order.sort_by_key(|(code, _)| std::cmp::Reverse(**code));
        for (code, request) in order {
            let (flow, said) = (request.flow, alone_decided(&mut router, now, request));
            assert_eq!(*code, said, "round {round}, flow {flow}");
            granted += usize::from(said > Some(0));
            denied += usize::from(said == Some(0));
        }
        same(&bench, &router, with_flows, &format!("requests of round {round}"));

        let mut following = Vec::new();
        // Which denials a full table remembers, the order decides.
        let is_remembered =
            |code: &Option<u8>| *code != Some(0) || settings.flows.is_none_or(|of| of.flows > 2 * FLOWS as u32);
        for (code, request) in decided.iter().zip(&asking).filter(|(code, _)| is_remembered(code)) {
            let rate = RateCode::new(code.unwrap()).unwrap();
            following.extend(followed(&mut random, request.flow, nonces[request.flow], rate));
        }
        parallel(&lanes, now, &following);
        following.iter().for_each(|given| {
            alone_decided(&mut router, now, given);
        });
        same(&bench, &router, with_flows, &format!("data and reports of round {round}"));

        // Intervals end while data is sent.
        for _ in 0..below(&mut random, 4) {
            now += below(&mut random, 700_000_000);
            let flowing: Vec<_> = (0..3 * FLOWS)
                .map(|_| packet(below(&mut random, FLOWS as u64) as usize, None, below(&mut random, 1400) as usize))
                .collect();
            parallel(&lanes, now, &flowing);
            flowing.iter().for_each(|given| {
                alone_decided(&mut router, now, given);
            });
            same(&bench, &router, with_flows, &format!("time after round {round}"));
        }
    }
    assert!(granted > 100 && denied > 100, "{granted} granted, {denied} denied: nothing was tested");
}

/// Every request is looked at.
fn settings(capacity: Rate) -> RouterSettings {
    RouterSettings { requests_per_second: u32::MAX, burst: u32::MAX, ..RouterSettings::new(capacity) }
}

/// Nothing is forgiven within a test: the order in which faults of the same time are found is not
/// that of the crate.
fn flows() -> FlowsConfig {
    FlowsConfig { forgive_after: Span::from_secs(1 << 30), faults: 1000, ..FlowsConfig::default() }
}

#[test]
fn on_several_processors_no_more_is_granted_than_one_after_the_other() {
    let Some(_alone) = alone_with_quick_start() else { return };
    compare(&settings(Rate::from_mbps(20)), 1);
    compare(&RouterSettings { meter: RouterMeter::Peak, ..settings(Rate::from_mbps(50)) }, 2);
}

#[test]
fn grants_flow_by_flow_are_given_counted_and_given_back_on_several_processors_as_on_one() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let with = |flows, capacity| RouterSettings { flows: Some(flows), ..settings(capacity) };
    compare(&with(flows(), Rate::from_mbps(20)), 3);
    compare(&with(FlowsConfig { faults: 40, ..flows() }, Rate::from_mbps(200)), 4);
    // The table is smaller than what is asked for.
    compare(&with(FlowsConfig { flows: 20, ..flows() }, Rate::from_mbps(100)), 5);
    let calm = FlowsConfig { expect_reports: false, count_once: false, ..flows() };
    compare(&RouterSettings { meter: RouterMeter::Peak, ..with(calm, Rate::from_mbps(50)) }, 6);
}
