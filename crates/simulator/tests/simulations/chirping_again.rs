//! Several flows that chirp again when marks stay away, at one queue: they find the capacity that
//! came free together, and share it.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{QueueConfig, RateSchedule, RateStep, StepMarkConfig};
use flowstart_simulator::{FlowOutcome, Outcome, Simulation, Stop, Traffic, Workload};
use flowstart_transport::EcnMode;
use flowstart_units::{Rate, Span, Time};

/// When the capacity changes, and when the run ends.
const CHANGE: Span = Span::from_secs(30);
const END: Span = Span::from_secs(60);

/// `flows` greedy flows over 20 ms that start half a second apart; the capacity rises from `from`
/// to `to` Mbit/s.
fn run(start: &str, flows: u64, from: u64, to: u64, until: Span) -> Outcome {
    let rtt = Span::from_millis(20);
    let mut link = crate::common::link(from, rtt / 2, None);
    link.rate = RateSchedule::Steps {
        steps: vec![
            RateStep { at: Time::ZERO, rate: Rate::from_mbps(from) },
            RateStep { at: Time::ZERO + CHANGE, rate: Rate::from_mbps(to) },
        ],
        period: None,
    };
    link.queue = QueueConfig::StepMark(StepMarkConfig::default());
    let flows = (0..flows).map(|k| {
        let mut tcp = crate::common::tcp(Workload::Greedy, rtt);
        tcp.controller =
            ControllerConfig::new(StartConfig::from_name(start).unwrap(), AvoidanceConfig::from_name("dctcp").unwrap());
        (tcp.sender.ecn, tcp.receiver.ecn) = (EcnMode::Dctcp, EcnMode::Dctcp);
        let mut flow = crate::common::flow(Traffic::Tcp(Box::new(tcp)), rtt);
        flow.start = Time::ZERO + Span::from_millis(500) * k;
        flow
    });
    let config = crate::common::simulation(vec![link], flows.collect(), Stop::At(Time::ZERO + until));
    Simulation::new(&config, ()).unwrap().run().0
}

/// Mbit/s of each flow from one moment to another.
fn rates(start: &str, flows: u64, from: u64, to: u64, since: Span, until: Span) -> Vec<f64> {
    let (before, after) = (run(start, flows, from, to, since), run(start, flows, from, to, until));
    let bits = |(one, other): (&FlowOutcome, &FlowOutcome)| (other.delivered - one.delivered).get() as f64 * 8.0;
    let time = (until - since).as_secs_f64() * 1e6;
    before.flows.iter().zip(&after.flows).map(bits).map(|bits| bits / time).collect()
}

#[test]
fn capacity_that_comes_free_is_filled_by_all_and_shared() {
    for (flows, from, to) in [(2, 50, 100), (4, 50, 200), (8, 100, 400)] {
        let what = format!("{flows} flows, {from} to {to} Mbit/s");
        // A second is 50 round trips.
        let soon =
            rates("adaptive_chirping", flows, from, to, CHANGE + Span::from_secs(1), CHANGE + Span::from_secs(3));
        let total: f64 = soon.iter().sum();
        let late = rates("adaptive_chirping", flows, from, to, CHANGE + Span::from_secs(10), END);
        let jain = late.iter().sum::<f64>().powi(2) / (flows as f64 * late.iter().map(|rate| rate * rate).sum::<f64>());
        let queue = run("adaptive_chirping", flows, from, to, END).links[0].max_sojourn;
        assert!(total >= 0.85 * to as f64, "{what}: {soon:?}");
        assert!(jain >= 0.95, "{what}: {late:?}");
        // They notice at the same time; each adds what a start on an idle path does.
        assert!(queue <= Span::from_millis(3) * flows, "{what}: {queue}");
    }
}
