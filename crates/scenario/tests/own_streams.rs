//! Every kind of traffic draws by its own kind and number: what is added leaves the others' random
//! numbers alone.

use flowstart_network::Packet;
use flowstart_network::packet::Body;
use flowstart_scenario::Scenario;
use flowstart_simulator::{FlowId, Observer, Simulation};
use flowstart_units::Time;

/// When datagrams and the first packets of transfers left.
#[derive(Default)]
struct Departures {
    datagrams: Vec<(FlowId, Time)>,
    starts: Vec<(FlowId, Time)>,
}

impl Observer for Departures {
    fn sent(&mut self, now: Time, packet: &Packet) {
        if matches!(packet.body, Body::Datagram(_)) {
            self.datagrams.push((packet.flow, now));
        }
    }

    fn started(&mut self, now: Time, flow: FlowId) {
        self.starts.push((flow, now));
    }
}

/// The times of each group of flows.
fn run(traffic: &str) -> Vec<Vec<Time>> {
    let text = format!("duration = \"2 s\"\n[path]\ncapacity = \"50 Mbit/s\"\nrtt = \"20 ms\"\n{traffic}");
    let compiled = Scenario::parse("streams", &text).unwrap().simulation(0).unwrap();
    let (outcome, seen) = Simulation::new(&compiled.simulation, Departures::default()).unwrap().run();
    let mut times = vec![Vec::new(); compiled.groups.len()];
    let starts = seen.starts.into_iter().filter(|(flow, _)| outcome.flows[*flow as usize].size.is_some());
    for (flow, time) in seen.datagrams.into_iter().chain(starts) {
        times[outcome.flows[flow as usize].group as usize].push(time);
    }
    times
}

const UDP: &str = "[[udp]]\nrate = \"1 Mbit/s\"\nspacing = \"poisson\"\n";
const ARRIVALS: &str =
    "[[arrivals]]\nmean_gap = \"50 ms\"\nsizes = { kind = \"fixed\", size = \"3 kB\" }\nflow.algorithm = \"bbr\"\n";
const FLOW: &str = "[[flow]]\nalgorithm = \"cubic\"\n";
/// Its messages are drawn by the same purpose as datagrams.
const PACED: &str = "[[flow]]\npaced = { rate = \"1 Mbit/s\", message = \"1500 B\", spacing = \"poisson\" }\n";

#[test]
fn datagrams_come_at_the_same_times_whatever_is_added() {
    let alone = run(UDP).remove(0);
    assert!(alone.len() > 100);
    for (added, place) in [
        (format!("{UDP}{FLOW}"), 1),
        (format!("{FLOW}{FLOW}{UDP}"), 2),
        (format!("{UDP}{UDP}"), 0),
        (format!("{UDP}{ARRIVALS}"), 0),
        (format!("{UDP}{PACED}"), 1),
    ] {
        let all = run(&added);
        assert_eq!(all[place], alone, "{added}");
        assert!(all.iter().enumerate().all(|(other, times)| other == place || *times != alone), "{added}");
    }
}

#[test]
fn transfers_that_arrive_and_their_algorithms_draw_by_their_own_numbers() {
    let seeds = |traffic: &str| {
        let text = format!("duration = \"1 s\"\n[path]\ncapacity = \"50 Mbit/s\"\nrtt = \"20 ms\"\n{traffic}");
        let compiled = Scenario::parse("streams", &text).unwrap().simulation(0).unwrap();
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = std::sync::Arc::clone(&seen);
        let make = move |_: FlowId, config: &flowstart_congestion::ControllerConfig| {
            noted.lock().unwrap().push(config.seed);
            flowstart_congestion::Controller::new(config)
        };
        let simulation = Simulation::with_controllers(&compiled.simulation, (), Box::new(make)).unwrap();
        let flows = simulation.run().0.flows;
        let seeds = seen.lock().unwrap().clone();
        let tcp = flows.iter().filter(|flow| compiled.groups[flow.group as usize].algorithm != "udp");
        tcp.map(|flow| flow.group).zip(seeds).collect::<Vec<(u32, u64)>>()
    };
    let of = |all: &[(u32, u64)], wanted: u32| -> Vec<u64> {
        all.iter().filter(|(group, _)| *group == wanted).map(|(_, seed)| *seed).collect()
    };
    let alone = of(&seeds(ARRIVALS), 0);
    assert!(alone.len() > 10);
    assert_eq!(of(&seeds(&format!("{FLOW}{UDP}{ARRIVALS}")), 2), alone);
    assert_eq!(of(&seeds(&format!("{ARRIVALS}{ARRIVALS}")), 0), alone);
    assert_eq!(run(&format!("{FLOW}{UDP}{ARRIVALS}"))[2], run(ARRIVALS)[0]);
    // Flows, and their second connections, draw by how many of them there are before.
    let probes = "[[flow]]\nalgorithm = \"fair_queuing_probe+cubic\"\n[[flow]]\n";
    assert_eq!(seeds(probes), seeds(&format!("{probes}{UDP}")));
}
