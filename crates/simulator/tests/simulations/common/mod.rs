//! Small scenarios for tests.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_simulator::{Access, FlowConfig, SimulationConfig, Stop, TcpConfig, Traffic, UdpConfig, Workload};
use flowstart_transport::{ReceiverConfig, SenderConfig};
use flowstart_units::{Rate, Span, Time};

/// A greedy slow start + Reno connection over `links` forward links, without handshake and with an
/// ACK per packet.
pub fn tcp(workload: Workload, rtt: Span) -> TcpConfig {
    let start = StartConfig::from_name("slow_start").unwrap();
    let avoidance = AvoidanceConfig::from_name("reno").unwrap();
    TcpConfig {
        controller: ControllerConfig::new(start, avoidance),
        sender: SenderConfig { handshake: false, handshake_rtt: Some(rtt), ..SenderConfig::default() },
        receiver: ReceiverConfig { ack_every: 1, ..ReceiverConfig::default() },
        workload,
    }
}

/// A flow over the first link, whose delay is `rtt / 2`; the way back takes the other half.
pub fn flow(traffic: Traffic, rtt: Span) -> FlowConfig {
    FlowConfig {
        forward: vec![0],
        reverse: vec![],
        access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
        tail_delay: Span::ZERO,
        return_delay: rtt / 2,
        start: Time::ZERO,
        traffic,
        group: 0,
        place: Default::default(),
    }
}

pub fn tcp_flow(workload: Workload, rtt: Span) -> FlowConfig {
    flow(Traffic::Tcp(Box::new(tcp(workload, rtt))), rtt)
}

pub fn udp_flow(udp: UdpConfig, rtt: Span) -> FlowConfig {
    flow(Traffic::Udp(udp), rtt)
}

/// A link with a drop-tail buffer of `packets`.
pub fn link(mbps: u64, delay: Span, packets: Option<u64>) -> LinkConfig {
    let queue = match packets {
        Some(packets) => QueueConfig::drop_tail(packets),
        None => QueueConfig::DropTail(Default::default()),
    };
    LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(mbps)), delay, queue)
}

pub fn simulation(links: Vec<LinkConfig>, flows: Vec<FlowConfig>, stop: Stop) -> SimulationConfig {
    SimulationConfig { links, ways: vec![], flows, arrivals: vec![], sessions: vec![], stop, seed: 1, run: 0 }
}
