//! Links in parallel, and hosts that flows belong to.

use std::collections::{BTreeMap, BTreeSet};

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{HostFairnessConfig, LinkConfig, Packet, QueueConfig, RateSchedule};
use flowstart_simulator::{
    FlowConfig, FlowId, LinkId, Observer, Outcome, Place, Simulation, SimulationConfig, Stop, TcpConfig, Traffic,
    Workload,
};
use flowstart_transport::ReceiverConfig;
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::common::{flow, link, simulation, tcp, tcp_flow};

const RTT: Span = Span::from_millis(20);

/// Which links the packets of each flow crossed.
#[derive(Default)]
struct Taken(BTreeMap<FlowId, BTreeSet<LinkId>>);

impl Observer for Taken {
    fn arrived(&mut self, _now: Time, link: LinkId, packet: &Packet, _packets: u64, _bytes: u64) {
        self.0.entry(packet.flow).or_default().insert(link);
    }
}

fn run(config: &SimulationConfig) -> (Outcome, Vec<LinkId>) {
    let (outcome, Taken(taken)) = Simulation::new(config, Taken::default()).unwrap().run();
    let one = |links: BTreeSet<LinkId>| {
        assert_eq!(links.len(), 1, "a connection takes one way");
        links.into_iter().next().unwrap()
    };
    (outcome, taken.into_values().map(one).collect())
}

fn parallel(flows: Vec<FlowConfig>, seed: u64) -> SimulationConfig {
    let links = vec![link(50, RTT / 2, Some(100)), link(20, RTT / 2, Some(100)), link(20, RTT, Some(50))];
    let stop = Stop::WhenComplete(Time::ZERO + Span::from_secs(20));
    SimulationConfig { ways: vec![vec![0, 1, 2]], seed, ..simulation(links, flows, stop) }
}

fn transfers(count: u64) -> Vec<FlowConfig> {
    let start = |number| Time::ZERO + Span::from_millis(number);
    (0..count).map(|n| FlowConfig { start: start(n), ..tcp_flow(Workload::Sized(Bytes::new(9_000)), RTT) }).collect()
}

#[test]
fn connections_are_spread_over_links_in_parallel_by_their_number_and_the_seed() {
    let (outcome, ways) = run(&parallel(transfers(300), 1));
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
    let counts = [0, 1, 2].map(|way| ways.iter().filter(|taken| **taken == way).count());
    // Binomial of 300 and a third: a deviation of 8.2.
    assert!(counts.iter().all(|count| (67..=133).contains(count)), "{counts:?}");
    assert_eq!(run(&parallel(transfers(300), 1)).1, ways);
    assert_ne!(run(&parallel(transfers(300), 2)).1, ways);
    // A flow that came later leaves the ways of the others alone.
    assert_eq!(run(&parallel(transfers(301), 1)).1[..300], ways);
}

#[test]
fn a_way_that_is_told_is_taken_and_links_that_are_named_are_no_choice() {
    for way in 0..3 {
        let mut flows = transfers(20);
        flows.iter_mut().for_each(|flow| flow.place = Place { ways: vec![way], ..Place::default() });
        assert_eq!(run(&parallel(flows, 1)).1, [way as usize; 20]);
    }
    let named: Vec<FlowConfig> =
        transfers(20).into_iter().map(|flow| FlowConfig { forward: vec![2], ..flow }).collect();
    assert_eq!(run(&parallel(named, 1)).1, [2; 20]);
}

#[test]
fn links_that_are_in_parallel_to_none_are_as_they_were() {
    let with = |ways| {
        let config = SimulationConfig { ways, ..parallel(transfers(50), 3) };
        Simulation::new(&config, ()).unwrap().run().0
    };
    assert_eq!(with(vec![]), with(vec![vec![0]]));
    assert_eq!(with(vec![]), with(vec![vec![1, 2]]));
}

fn probing(ways: &[u32]) -> FlowConfig {
    let [start, avoidance] = ["fair_queuing_probe", "delay_or_cubic"];
    let controller =
        ControllerConfig::new(StartConfig::from_name(start).unwrap(), AvoidanceConfig::from_name(avoidance).unwrap());
    let tcp = TcpConfig { controller, receiver: ReceiverConfig::every_segment(), ..tcp(Workload::Greedy, RTT) };
    let place = Place { ways: ways.to_vec(), ..Place::default() };
    FlowConfig { place, ..flow(Traffic::Tcp(Box::new(tcp)), RTT) }
}

#[test]
fn both_connections_of_a_probe_take_the_ways_they_are_told_or_draw() {
    let ways = |told: &[u32], seed| {
        let config =
            SimulationConfig { stop: Stop::At(Time::ZERO + Span::from_secs(1)), ..parallel(vec![probing(told)], seed) };
        let (outcome, ways) = run(&config);
        assert_eq!(outcome.flows[1].companion_of, Some(0));
        ways
    };
    assert_eq!(ways(&[0, 0], 1), [0, 0]);
    assert_eq!(ways(&[1, 2], 1), [1, 2]);
    // The first is told, the second drawn, of either kind.
    let seconds: BTreeSet<LinkId> =
        (0..30).map(|seed| ways(&[1], seed)).map(|ways| (ways[0] == 1).then_some(ways[1]).unwrap()).collect();
    assert_eq!(seconds, BTreeSet::from([0, 1, 2]));
    let drawn: Vec<bool> = (0..30).map(|seed| ways(&[], seed)).map(|ways| ways[0] == ways[1]).collect();
    assert!(drawn.contains(&true) && drawn.contains(&false));
}

#[test]
fn ways_that_make_no_sense_are_refused_with_the_place() {
    let refused = |change: fn(&mut SimulationConfig)| {
        let mut config = parallel(transfers(2), 1);
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    assert!(refused(|c| c.ways = vec![vec![]]).contains("ways[0]: a group"));
    assert!(refused(|c| c.ways = vec![vec![0, 7]]).contains("ways[0][1]: there is no link 7"));
    assert!(refused(|c| c.ways = vec![vec![0, 1], vec![2, 1]]).contains("ways[1][1]: link 1 is in parallel twice"));
    assert!(refused(|c| c.flows[1].place.ways = vec![0, 3]).contains("flows[1].place.ways[1]: there is no way 3"));
    assert!(refused(|c| c.flows[1].forward = vec![0, 2]).contains("in parallel to each other"));
    let none = refused(|c| {
        c.ways.clear();
        c.flows[0].place.ways = vec![0];
    });
    assert!(none.contains("no links in parallel"), "{none}");
}

#[test]
fn hosts_get_equal_shares_of_a_link_with_fairness_per_host_whatever_their_flows_are() {
    let queue = QueueConfig::HostFairness(HostFairnessConfig::default());
    let link = LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(20)), RTT / 2, queue);
    // Flow 0 is that of one host, the others of another.
    let between = |number: u32| Place { source: Some(number.min(1)), ..Place::default() };
    let flows = (0..5).map(|n| FlowConfig { place: between(n), ..tcp_flow(Workload::Greedy, RTT) });
    let config = simulation(vec![link], flows.collect(), Stop::At(Time::ZERO + Span::from_secs(20)));
    let outcome = Simulation::new(&config, ()).unwrap().run().0;
    let all: u64 = outcome.flows.iter().map(|flow| flow.delivered.get()).sum();
    let shares: Vec<f64> = outcome.flows.iter().map(|flow| flow.delivered.get() as f64 / all as f64).collect();
    assert!((0.45..0.55).contains(&shares[0]), "{shares:?}");
    assert!(shares[1..].iter().all(|share| (0.10..0.15).contains(share)), "{shares:?}");
    // Hosts of their own: a fifth each.
    let alone = SimulationConfig {
        flows: config.flows.iter().map(|flow| FlowConfig { place: Place::default(), ..flow.clone() }).collect(),
        ..config
    };
    let outcome = Simulation::new(&alone, ()).unwrap().run().0;
    assert!(outcome.flows.iter().all(|flow| flow.delivered.get().abs_diff(all / 5) < all / 20), "{shares:?}");
}
