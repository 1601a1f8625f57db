//! RCP through simulated routers: shares, queues, newcomers, and paths whose routers know nothing.

use flowstart_congestion::{ControllerConfig, StartConfig};
use flowstart_network::packet::Body;
use flowstart_network::{LinkConfig, LossConfig, Packet, QuickStartHop, RcpConfig};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_simulator::{
    FlowConfig, FlowId, LinkId, Observer, Outcome, Simulation, Stop, TcpConfig, Traffic, Workload,
};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::common;

const CAPACITY: Rate = Rate::from_mbps(10);
const RTT: Span = Span::from_millis(100);
const TENTH: u64 = 100_000_000;

fn link(knows: bool) -> LinkConfig {
    LinkConfig { rcp: knows.then(|| RcpConfig::new(CAPACITY)), ..common::link(10, RTT / 2, Some(500)) }
}

fn flow(start: &str, begins: Span, workload: Workload) -> FlowConfig {
    let mut tcp: TcpConfig = common::tcp(workload, RTT);
    let start = StartConfig::from_name(start).unwrap();
    tcp.controller = ControllerConfig { start, ..tcp.controller };
    (tcp.sender.handshake, tcp.sender.handshake_rtt) = (true, None);
    FlowConfig { start: Time::ZERO + begins, ..common::flow(Traffic::Tcp(Box::new(tcp)), RTT) }
}

/// Bytes that reached the bottleneck in each tenth of a second, flow by flow, and the longest wait
/// in each.
#[derive(Default)]
struct Tenths {
    bytes: Vec<Vec<u64>>,
    waits: Vec<Span>,
}

impl Tenths {
    fn at(&mut self, now: Time) -> usize {
        let tenth = (now.as_nanos() / TENTH) as usize;
        self.waits.resize(self.waits.len().max(tenth + 1), Span::ZERO);
        self.bytes.resize_with(self.bytes.len().max(tenth + 1), Vec::new);
        tenth
    }
}

impl Observer for Tenths {
    fn arrived(&mut self, now: Time, _link: LinkId, packet: &Packet, _packets: u64, _bytes: u64) {
        let (tenth, flow) = (self.at(now), packet.flow as FlowId as usize);
        let bytes = &mut self.bytes[tenth];
        bytes.resize(bytes.len().max(flow + 1), 0);
        bytes[flow] += u64::from(packet.bytes);
    }

    fn transmitted(&mut self, now: Time, _link: LinkId, _packet: &Packet, arrived: Time, _done: Time) {
        let tenth = self.at(now);
        self.waits[tenth] = self.waits[tenth].max(now.since(arrived));
    }
}

impl Tenths {
    /// Mbit/s of a flow in a tenth of a second.
    fn in_tenth(&self, flow: usize, tenth: usize) -> f64 {
        self.bytes[tenth].get(flow).map_or(0.0, |bytes| *bytes as f64 * 8e-5)
    }

    /// Mbit/s of a flow in a second.
    fn rate(&self, flow: usize, second: usize) -> f64 {
        (0..10).map(|tenth| self.in_tenth(flow, 10 * second + tenth)).sum::<f64>() / 10.0
    }

    /// The longest wait in a second.
    fn wait(&self, second: usize) -> Span {
        self.waits[10 * second..][..10].iter().max().copied().unwrap()
    }
}

/// Until all transfers are complete, or for so long.
fn watch(links: Vec<LinkConfig>, flows: Vec<FlowConfig>, seconds: u64) -> (Outcome, Tenths) {
    let end = Time::ZERO + Span::from_secs(seconds);
    let greedy = |flow: &FlowConfig| matches!(&flow.traffic, Traffic::Tcp(tcp) if tcp.workload == Workload::Greedy);
    let stop = if flows.iter().any(greedy) { Stop::At(end) } else { Stop::WhenComplete(end) };
    Simulation::new(&common::simulation(links, flows, stop), Tenths::default()).unwrap().run()
}

#[test]
fn flows_share_the_link_equally_fill_it_and_leave_no_queue() {
    let flows = (0..4).map(|n| flow("rcp", Span::from_millis(500 * n), Workload::Greedy)).collect();
    let (outcome, seen) = watch(vec![link(true)], flows, 30);
    for second in 10..29 {
        for flow in 0..4 {
            let rate = seen.rate(flow, second);
            assert!((rate - 2.5).abs() < 0.15, "{rate} Mbit/s of flow {flow} in second {second}");
        }
        let whole: f64 = (0..4).map(|flow| seen.rate(flow, second)).sum();
        assert!(whole > 9.5, "{whole} Mbit/s in second {second}");
        assert!(seen.wait(second) < Span::from_millis(10), "{} in second {second}", seen.wait(second));
    }
    assert!(outcome.flows.iter().all(|flow| flow.dropped == 0 && flow.start_exit.is_none()));
}

#[test]
fn a_newcomer_sends_at_the_share_one_round_trip_after_it_asked_and_the_others_make_room() {
    let flows = vec![
        flow("rcp", Span::ZERO, Workload::Greedy),
        flow("rcp", Span::ZERO, Workload::Greedy),
        flow("rcp", Span::from_millis(19_900), Workload::Greedy),
    ];
    let (_, seen) = watch(vec![link(true)], flows, 40);
    // It asked at 19.9 s: a round trip later it sends at the share of two.
    let first = seen.in_tenth(2, 200);
    assert!((4.5..=5.2).contains(&first), "{first} Mbit/s in its first round trip");
    for flow in 0..3 {
        let rate = seen.rate(flow, 25);
        assert!((rate - 10.0 / 3.0).abs() < 0.3, "{rate} Mbit/s of flow {flow}");
    }
}

#[test]
fn losses_cost_the_packets_that_were_lost() {
    let lossy = LinkConfig { loss: LossConfig::Bernoulli { probability: 0.01 }, ..link(true) };
    let rates = ["rcp", "slow_start"].map(|start| {
        let (_, seen) = watch(vec![lossy.clone()], vec![flow(start, Span::ZERO, Workload::Greedy)], 30);
        (10..29).map(|second| seen.rate(0, second)).sum::<f64>() / 19.0
    });
    assert!(rates[0] > 9.0 && rates[1] < 3.0, "{rates:?}");
}

/// Without the eight bytes of every packet.
fn plain(outcome: &Outcome) -> (u64, Option<f64>) {
    let flow = &outcome.flows[0];
    (flow.retransmitted, flow.completed.map(|at| at.since(flow.first_data).as_secs_f64()))
}

#[test]
fn on_a_path_with_a_router_that_does_not_know_it_it_is_slow_start() {
    let quick = QuickStartHop::Aware(AdmissionConfig::paper(CAPACITY));
    for other in [link(false), LinkConfig { quick_start: quick, ..link(false) }] {
        let of = |start| {
            let mut flow = flow(start, Span::ZERO, Workload::Sized(Bytes::new(3_000_000)));
            flow.forward = vec![0, 1];
            plain(&watch(vec![link(true), other.clone()], vec![flow], 60).0)
        };
        let (rcp, slow) = (of("rcp"), of("slow_start"));
        let ratio = rcp.1.unwrap() / slow.1.unwrap();
        assert!((0.99..1.02).contains(&ratio), "{rcp:?} against {slow:?}");
    }
}

#[test]
fn a_transfer_that_fits_into_its_share_of_a_round_trip_takes_one() {
    let (outcome, _) =
        watch(vec![link(true)], vec![flow("rcp", Span::from_secs(60), Workload::Sized(Bytes::new(60_000)))], 90);
    // An idle link has all of it: 42 packets at 10 Mbit/s, and half a round trip.
    let (_, took) = plain(&outcome);
    let ideal = 0.05 + 41.0 * 1500.0 * 8.0 / 10e6 + 0.0012;
    assert!((took.unwrap() - ideal).abs() < 0.003, "{took:?} against {ideal}");
}

#[test]
fn a_crowd_that_comes_at_once_is_served_by_a_router_that_drops_what_does_not_fit() {
    let flows = (0..20).map(|_| flow("rcp", Span::from_secs(5), Workload::Sized(Bytes::new(500_000)))).collect();
    let small = LinkConfig { queue: common::link(10, RTT / 2, Some(83)).queue, ..link(true) };
    let (outcome, _) = watch(vec![small], flows, 120);
    let last = outcome.flows.iter().map(|flow| flow.completed.unwrap()).max().unwrap();
    // 10 MB and their headers at 10 Mbit/s take 8.4 s. All begin at the whole capacity, and it
    // takes as long again until the rate has come down and up again.
    assert!(last < Time::ZERO + Span::from_secs(5 + 25), "{last}");
}

#[test]
fn datagrams_and_acks_count_as_load_and_carry_no_header() {
    struct Headers(u64);
    impl Observer for Headers {
        fn transmitted(&mut self, _now: Time, link: LinkId, packet: &Packet, _arrived: Time, _done: Time) {
            if let Body::Segment(segment) = &packet.body {
                let told = segment.quick_start.share();
                self.0 += u64::from(link == 0 && told.is_some_and(|rate| rate <= CAPACITY));
            }
        }
    }
    let mut one = flow("rcp", Span::ZERO, Workload::Sized(Bytes::new(144_000)));
    one.reverse = vec![1];
    let stop = Stop::WhenComplete(Time::ZERO + Span::from_secs(60));
    let config = common::simulation(vec![link(true), link(true)], vec![one], stop);
    let (outcome, headers) = Simulation::new(&config, Headers(0)).unwrap().run();
    assert_eq!((outcome.flows[0].packets_sent, headers.0), (100, 101), "the SYN and every segment of 1440 bytes");
}
