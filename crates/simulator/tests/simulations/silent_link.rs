//! A link that is silent while a flow begins: RTTs are those of the silence, and tell nothing of
//! the path behind it. And one on which a packet takes longer than the RTT.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::LinkConfig;
use flowstart_network::{RateSchedule, RateStep};
use flowstart_simulator::{FlowOutcome, Simulation, Stop, Traffic, Workload};
use flowstart_units::{Bytes, Rate, Span, Time};

const RTT: Span = Span::from_millis(50);

/// Seconds from the first data packet to the end of a transfer over a link of `mbps`, 50 ms, that
/// carries hardly anything at first. Without a handshake its RTT is the silence.
fn seconds(start: &str, mbps: u64, silent: Span, kilobytes: u64) -> f64 {
    let mut link = crate::common::link(mbps, RTT / 2, Some(500));
    link.rate = RateSchedule::Steps {
        steps: vec![
            RateStep { at: Time::ZERO, rate: Rate::from_bps(8) },
            RateStep { at: Time::ZERO + silent, rate: Rate::from_mbps(mbps) },
        ],
        period: None,
    };
    let mut tcp = crate::common::tcp(Workload::Sized(Bytes::new(kilobytes * 1000)), RTT);
    tcp.controller =
        ControllerConfig::new(StartConfig::from_name(start).unwrap(), AvoidanceConfig::from_name("cubic").unwrap());
    (tcp.sender.handshake, tcp.sender.handshake_rtt) = (true, None);
    let flow = crate::common::flow(Traffic::Tcp(Box::new(tcp)), RTT);
    let config = crate::common::simulation(vec![link], vec![flow], Stop::At(Time::ZERO + silent + Span::from_secs(60)));
    let outcome = Simulation::new(&config, ()).unwrap().run().0;
    let flow = &outcome.flows[0];
    (flow.completed.expect("the transfer ends") - flow.first_data).as_secs_f64()
}

/// Until this was so, packets left by the RTT of the silence: after 3 s at one per 33 ms, for good.
#[test]
fn a_start_is_not_slower_than_hystart_for_a_silence_before_it() {
    for mbps in [4, 12, 48] {
        for millis in [0, 300, 1000, 3000] {
            let silent = Span::from_millis(millis).max(Span::from_nanos(1));
            for kilobytes in [200, 1000, 4000] {
                let [here, usual] =
                    ["adaptive_chirping", "hystart"].map(|start| seconds(start, mbps, silent, kilobytes));
                let what = format!("{mbps} Mbit/s, {millis} ms, {kilobytes} kB: {here} s, HyStart {usual} s");
                assert!(here <= usual * 1.2, "{what}");
            }
        }
    }
}

/// A transfer over this link until 60 s, as delayed ACKs let it. With a handshake over it.
fn transfer(start: &str, link: LinkConfig, rtt: Span, kilobytes: u64) -> FlowOutcome {
    let mut tcp = crate::common::tcp(Workload::Sized(Bytes::new(kilobytes * 1000)), rtt);
    tcp.controller =
        ControllerConfig::new(StartConfig::from_name(start).unwrap(), AvoidanceConfig::from_name("cubic").unwrap());
    (tcp.sender.handshake, tcp.sender.handshake_rtt) = (true, None);
    tcp.receiver.ack_every = 2;
    let flow = crate::common::flow(Traffic::Tcp(Box::new(tcp)), rtt);
    let config = crate::common::simulation(vec![link], vec![flow], Stop::At(Time::ZERO + Span::from_secs(60)));
    Simulation::new(&config, ()).unwrap().run().0.flows.remove(0)
}

/// Both starts over a link of `mbps` that carries nothing for a while from `at` on.
fn interrupted(mbps: u64, rtt: Span, at: Span, silent: Span) -> [FlowOutcome; 2] {
    ["adaptive_chirping", "hystart"].map(|start| {
        let mut link = crate::common::link(mbps, rtt / 2, Some(133));
        let rates = [(Span::ZERO, mbps), (at, 0), (at + silent, mbps)];
        let steps = rates.map(|(at, mbps)| RateStep { at: Time::ZERO + at, rate: Rate::from_mbps(mbps) });
        link.rate = RateSchedule::Steps { steps: steps.to_vec(), period: None };
        transfer(start, link, rtt, 1000)
    })
}

fn end(flow: &FlowOutcome) -> f64 {
    (flow.completed.expect("the transfer ends") - flow.started).as_secs_f64()
}

/// It took four times as long: packets of the window that HyStart took over left by the RTT of the
/// silence, or the start ended with the rate of the silence, which were four packets.
#[test]
fn a_start_that_a_short_silence_interrupts_is_not_held_back_by_its_rtt() {
    let rtt = Span::from_millis(20);
    for percent in [20, 60, 100, 120, 160, 200, 250, 300, 400] {
        let [here, usual] = interrupted(100, rtt, rtt * percent / 100, Span::from_millis(200));
        let (here, usual) = (end(&here), end(&usual));
        assert!(here <= usual * 1.4, "{percent} %: {here} s, HyStart {usual} s");
    }
}

/// After a timeout that was taken back nothing ended slow start but losses: 182 packets here, none
/// with HyStart.
#[test]
fn a_timeout_that_is_taken_back_leaves_the_start_to_hystart() {
    let rtt = Span::from_millis(80);
    for mbps in [5, 20] {
        for percent in [20, 60, 100, 120, 200] {
            let [here, usual] = interrupted(mbps, rtt, rtt * percent / 100, Span::from_millis(500));
            assert!(here.timeouts > 0, "{mbps} Mbit/s, {percent} %: there is a timeout");
            let what = format!("{mbps} Mbit/s, {percent} %: {} and {} lost", here.dropped, usual.dropped);
            assert!(here.dropped <= usual.dropped + 10, "{what}");
            assert!(end(&here) <= end(&usual) * 1.3, "{what}, {} and {} s", end(&here), end(&usual));
        }
    }
}

/// A packet takes 12 and 47 ms, the RTT is 1 ms: chirps that could not be read followed each other
/// by that RTT, and 150 packets were lost of a window of 10 (HyStart 20).
#[test]
fn where_a_packet_takes_longer_than_the_rtt_no_more_leaves_unread_than_in_slow_start() {
    let rtt = Span::from_millis(1);
    for kbps in [256, 1000] {
        let [here, usual] = ["adaptive_chirping", "hystart"].map(|start| {
            let mut link = crate::common::link(1, rtt / 2, Some(10));
            link.rate = RateSchedule::Constant(Rate::from_bps(kbps * 1000));
            transfer(start, link, rtt, 300)
        });
        let what = format!("{kbps} kbit/s: {} and {} lost", here.dropped, usual.dropped);
        assert!(here.dropped <= usual.dropped * 2, "{what}");
        assert!(end(&here) <= end(&usual) * 1.05, "{what}");
    }
}
