//! A link that is silent while a flow begins: the first RTTs are those of the silence, and tell
//! nothing of the path behind it.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{RateSchedule, RateStep};
use flowstart_simulator::{Simulation, Stop, Traffic, Workload};
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
