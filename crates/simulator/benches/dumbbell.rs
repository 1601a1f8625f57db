//! Nanoseconds per simulated data packet (with its ACK, SACK and queue) on the dumbbell scenarios
//! of docs/validation.md, flat in window and number of flows. `cargo bench -p flowstart-simulator`;
//! with a scenario's name behind `--` only that one. For instruction counts: `valgrind
//! --tool=callgrind` on the binary with `--count NAME`, which runs it once.

use std::hint::black_box;
use std::time::Instant;

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule, StepMarkConfig};
use flowstart_simulator::{
    Access, FlowConfig, Outcome, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload,
};
use flowstart_transport::{EcnMode, ReceiverConfig, SenderConfig};
use flowstart_units::{Rate, Span, Time};

struct Case {
    name: &'static str,
    mbps: u64,
    rtt_ms: u64,
    flows: u32,
    seconds: u64,
    algorithm: (&'static str, &'static str),
    mark: bool,
}

const CASES: [Case; 7] = [
    Case { name: "A", mbps: 100, rtt_ms: 20, flows: 1, seconds: 100, algorithm: ("hystart", "cubic"), mark: false },
    Case { name: "B", mbps: 100, rtt_ms: 20, flows: 10, seconds: 100, algorithm: ("slow_start", "reno"), mark: false },
    Case { name: "D", mbps: 100, rtt_ms: 15, flows: 2, seconds: 100, algorithm: ("slow_start", "dctcp"), mark: true },
    Case { name: "1G", mbps: 1_000, rtt_ms: 20, flows: 1, seconds: 20, algorithm: ("hystart", "cubic"), mark: false },
    Case { name: "10G", mbps: 10_000, rtt_ms: 20, flows: 1, seconds: 4, algorithm: ("hystart", "cubic"), mark: false },
    Case {
        name: "10G-100ms",
        mbps: 10_000,
        rtt_ms: 100,
        flows: 1,
        seconds: 6,
        algorithm: ("hystart", "cubic"),
        mark: false,
    },
    Case {
        name: "1000-flows",
        mbps: 1_000,
        rtt_ms: 20,
        flows: 1_000,
        seconds: 10,
        algorithm: ("hystart", "cubic"),
        mark: false,
    },
];

fn config(case: &Case) -> SimulationConfig {
    let rtt = Span::from_millis(case.rtt_ms);
    let delay = Span::from_millis(5).min(rtt / 2);
    let rate = Rate::from_mbps(case.mbps);
    let packets = (rate.bytes_in(rtt).get() / 1502).max(u64::from(case.flows) * 4);
    let queue =
        if case.mark { QueueConfig::StepMark(StepMarkConfig::default()) } else { QueueConfig::drop_tail(packets) };
    let mut link = LinkConfig::new(RateSchedule::Constant(rate), delay, queue);
    link.overhead = 2;
    let start = StartConfig::from_name(case.algorithm.0).expect("a start");
    let avoidance = AvoidanceConfig::from_name(case.algorithm.1).expect("an avoidance");
    let ecn = if avoidance.wants_ecn() { EcnMode::Dctcp } else { EcnMode::Off };
    let tcp = TcpConfig {
        controller: ControllerConfig::new(start, avoidance),
        sender: SenderConfig { ecn, ..SenderConfig::default() },
        receiver: ReceiverConfig { ecn, quick_acks: 0, ..ReceiverConfig::default() },
        workload: Workload::Greedy,
    };
    let flow = |number: u32| FlowConfig {
        forward: vec![0],
        reverse: vec![],
        access: Access { rate: Rate::from_mbps(case.mbps * 100), delay: rtt / 2 - delay },
        tail_delay: Span::ZERO,
        return_delay: rtt / 2,
        start: Time::ZERO + Span::from_micros(313) * u64::from(number),
        traffic: Traffic::Tcp(Box::new(tcp.clone())),
        group: 0,
        place: Default::default(),
    };
    SimulationConfig {
        links: vec![link],
        ways: vec![],
        flows: (0..case.flows).map(flow).collect(),
        arrivals: vec![],
        sessions: vec![],
        stop: Stop::At(Time::ZERO + Span::from_secs(case.seconds)),
        seed: 1,
        run: 0,
    }
}

fn run(case: &Case) -> Outcome {
    Simulation::new(&config(case), ()).expect("a valid configuration").run().0
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let once = arguments.first().is_some_and(|argument| argument == "--count");
    let named: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    println!(
        "{:<11} {:>9} {:>10} {:>13} {:>15}",
        "scenario", "packets", "ns/packet", "events/packet", "Mpackets/second"
    );
    for case in CASES.iter().filter(|case| named.is_empty() || named.iter().any(|name| *name == case.name)) {
        // The fastest of several repetitions: everything that disturbs a measurement makes it
        // slower.
        let repetitions = if once { 1 } else { 5 };
        let (mut best, mut outcome) = (f64::INFINITY, None);
        for _ in 0..repetitions {
            let began = Instant::now();
            let result = black_box(run(case));
            best = best.min(began.elapsed().as_nanos() as f64 / result.data_packets as f64);
            outcome = Some(result);
        }
        if let Some(outcome) = outcome {
            let events = outcome.events as f64 / outcome.data_packets as f64;
            println!("{:<11} {:>9} {best:>10.1} {events:>13.2} {:>15.2}", case.name, outcome.data_packets, 1e3 / best);
        }
    }
}
