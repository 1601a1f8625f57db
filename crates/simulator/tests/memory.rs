//! How much memory many concurrent flows need.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_simulator::{Access, FlowConfig, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload};
use flowstart_transport::{ReceiverConfig, SenderConfig};
use flowstart_units::{Rate, Span, Time};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const FLOWS: u32 = 10_000;
const LIMIT_MB: f32 = 300.0;

#[test]
fn ten_thousand_concurrent_flows_and_a_full_path_of_10_gbit_and_100_ms_fit_into_300_megabytes() {
    let rtt = Span::from_millis(100);
    let rate = Rate::from_mbps(10_000);
    let start = StartConfig::from_name("hystart").unwrap();
    let avoidance = AvoidanceConfig::from_name("cubic").unwrap();
    let tcp = TcpConfig {
        controller: ControllerConfig::new(start, avoidance),
        sender: SenderConfig::default(),
        receiver: ReceiverConfig::default(),
        workload: Workload::Greedy,
    };
    let flow = |number: u32| FlowConfig {
        forward: vec![0],
        reverse: vec![],
        access: Access { rate: Rate::from_mbps(100_000), delay: Span::ZERO },
        tail_delay: Span::ZERO,
        return_delay: rtt / 2,
        start: Time::ZERO + Span::from_micros(10) * u64::from(number),
        traffic: Traffic::Tcp(Box::new(tcp.clone())),
        group: 0,
        place: Default::default(),
    };
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let config = SimulationConfig {
        links: vec![LinkConfig::new(
            RateSchedule::Constant(rate),
            rtt / 2,
            QueueConfig::drop_tail(rate.bytes_in(rtt).get() / 1500),
        )],
        flows: (0..FLOWS).map(flow).collect(),
        arrivals: vec![],
        ways: vec![],
        sessions: vec![],
        stop: Stop::At(Time::ZERO + Span::from_secs(2)),
        seed: 1,
        run: 0,
    };
    let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
    let used = MEMORY.peak_usage_as_mb() - before;
    let stored: u64 = outcome.links.iter().map(|link| link.stored).sum();
    println!("{used:.0} MB at most for {FLOWS} flows, configuration included; {stored} packets queued at the end");
    assert!(stored > 10_000, "the queue has filled: {stored}");
    assert!(outcome.flows.iter().all(|flow| flow.delivered.get() > 0), "every flow runs");
    assert!(used <= LIMIT_MB, "{used} MB");
}
