//! What holds in every simulation, whatever is simulated.

use std::collections::HashMap;

use crate::common::{link, simulation, tcp_flow, udp_flow};
use flowstart_congestion::start::LimitedSlowStartConfig;
use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_network::{DropReason, JitterConfig, LossConfig, Packet, packet::Body};
use flowstart_simulator::{
    FlowId, Observer, Outcome, Progress, Simulation, SimulationConfig, Spacing, Stop, TcpConfig, Traffic, UdpConfig,
    Workload,
};
use flowstart_transport::Sender;
use flowstart_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

/// Counts packets, remembers the last time each link began a transmission and the last serial seen
/// of each flow, and checks as it goes.
#[derive(Default)]
struct Checker {
    sent: u64,
    received: u64,
    dropped: u64,
    last: Time,
    busy_until: HashMap<usize, Time>,
    fifo: HashMap<usize, std::collections::VecDeque<Packet>>,
    delivered: HashMap<FlowId, u64>,
}

impl Checker {
    fn clock(&mut self, now: Time) {
        assert!(now >= self.last, "time went back");
        self.last = now;
    }
}

impl Observer for Checker {
    fn sent(&mut self, now: Time, packet: &Packet) {
        self.clock(now);
        self.sent += 1;
        if let Body::Segment(segment) = &packet.body {
            assert_eq!(segment.sent_at, now);
        }
    }

    fn arrived(&mut self, now: Time, link: usize, packet: &Packet, _packets: u64, _bytes: u64) {
        self.clock(now);
        self.fifo.entry(link).or_default().push_back(*packet);
    }

    fn dropped(&mut self, now: Time, link: usize, packet: &Packet, _reason: Option<DropReason>) {
        self.clock(now);
        self.dropped += 1;
        // Tail drops: the packet that arrived last.
        let gone = self.fifo.get_mut(&link).unwrap().pop_back().unwrap();
        assert_eq!((gone.flow, gone.bytes), (packet.flow, packet.bytes));
    }

    fn transmitted(&mut self, now: Time, link: usize, packet: &Packet, arrived: Time, done: Time) {
        self.clock(now);
        assert!(arrived <= now && now <= done);
        let free = self.busy_until.insert(link, done).unwrap_or(Time::ZERO);
        assert!(free <= now, "two transmissions at once");
        assert!(now == arrived || now == free, "the link idled while a packet waited");
        let mut head = self.fifo.get_mut(&link).unwrap().pop_front().unwrap();
        if let Body::Segment(segment) = &mut head.body {
            // No router here knows Quick-Start: the TTL falls, and nothing else changes.
            segment.quick_start.pass_unaware();
        }
        assert_eq!((head.flow, head.bytes, head.body), (packet.flow, packet.bytes, packet.body), "a FIFO reordered");
    }

    fn received(&mut self, now: Time, _packet: &Packet) {
        self.clock(now);
        self.received += 1;
    }

    fn delivered(&mut self, _now: Time, flow: FlowId, total: u64) {
        let before = self.delivered.insert(flow, total).unwrap_or(0);
        assert!(total > before);
    }

    fn sender(&mut self, _now: Time, _flow: FlowId, sender: &Sender) {
        assert!(sender.controller().cwnd() >= 1);
        let stats = sender.stats();
        // A tail loss probe may repeat a packet that is still in flight; then both copies count (as
        // in Linux). So do those of all that was deemed lost and repaired in vain, once it is
        // known: after an undo (of which `undone` counts those that give something back), or a
        // timeout that came too early.
        let in_vain = stats.undone + stats.timeouts > 0;
        let copies = if in_vain { stats.packets_retransmitted } else { 1 };
        let most = u64::from(stats.packets_out) + copies;
        assert!(u64::from(stats.in_flight) <= most, "{} in flight, {most} at most", stats.in_flight);
    }
}

fn any_loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        3 => Just(LossConfig::None),
        1 => (0.0_f64..0.1).prop_map(|probability| LossConfig::Bernoulli { probability }),
        1 => (2_u64..100).prop_map(|every| LossConfig::Periodic { every }),
    ]
}

prop_compose! {
    fn any_simulation()(
        mbps in 1_u64..200,
        rtt_ms in 1_u64..100,
        buffer in 1_u64..200,
        loss in any_loss(),
        jitter in proptest::option::of((0_u64..5_000, any::<bool>())),
        flows in proptest::collection::vec(
            (0_u64..500, proptest::option::of(1_u64..3_000_000), 0_usize..StartConfig::NAMES.len(), 0_usize..AvoidanceConfig::NAMES.len(), 1_u32..5),
            1..5,
        ),
        datagrams in proptest::option::of(1_u64..50),
        second in any::<bool>(),
        parallel in proptest::option::of(1_u64..200),
        seed: u64,
    ) -> SimulationConfig {
        let rtt = Span::from_millis(rtt_ms);
        let mut first = link(mbps, rtt / 2, Some(buffer));
        first.loss = loss;
        first.jitter = jitter.map(|(micros, reorder)| JitterConfig { spread: Span::from_micros(micros), reorder });
        let mut links = vec![first, link(mbps * 10, Span::ZERO, Some(1000))];
        if second {
            links.push(link(mbps, Span::from_millis(1), Some(buffer)));
        }
        let mut configs: Vec<_> = flows.into_iter().map(|(start_ms, size, start, avoidance, ack_every)| {
            let workload = size.map_or(Workload::Greedy, |size| Workload::Sized(Bytes::new(size)));
            let mut flow = tcp_flow(workload, rtt);
            flow.start = Time::ZERO + Span::from_millis(start_ms);
            flow.reverse = vec![1];
            if second {
                flow.forward.push(2);
            }
            if let Traffic::Tcp(tcp) = &mut flow.traffic {
                tcp.controller.start = StartConfig::from_name(StartConfig::NAMES[start]).unwrap();
                tcp.controller.avoidance = AvoidanceConfig::from_name(AvoidanceConfig::NAMES[avoidance]).unwrap();
                tcp.receiver.ack_every = ack_every;
                tcp.sender.handshake = start_ms % 2 == 0;
            }
            flow
        }).collect();
        if let Some(mbps) = datagrams {
            let udp = UdpConfig { rate: Rate::from_mbps(mbps), packet: 1200, spacing: Spacing::Poisson, lasting: Span::from_secs(2), ecn: false };
            configs.push(udp_flow(udp, rtt));
        }
        let mut ways = vec![];
        if let Some(mbps) = parallel {
            ways.push(vec![0, links.len()]);
            links.push(link(mbps, rtt / 3, Some(buffer)));
        }
        SimulationConfig { seed, ways, ..simulation(links, configs, Stop::At(Time::ZERO + Span::from_secs(3))) }
    }
}

fn run(config: &SimulationConfig) -> Outcome {
    Simulation::new(config, ()).unwrap().run().0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_fifos_keep_order_and_links_never_idle_with_work(config in any_simulation()) {
        let mut simulation = Simulation::new(&config, Checker::default()).unwrap();
        simulation.run_until(Time::NEVER);
        let stored = simulation.packets_in_network();
        let (outcome, seen) = simulation.finish();
        prop_assert_eq!(seen.sent, seen.received + seen.dropped + stored);
        for (id, flow) in outcome.flows.iter().enumerate() {
            if let (Some(size), Some(_)) = (flow.size, flow.completed) {
                prop_assert_eq!(flow.delivered, size, "flow {}", id);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome(config in any_simulation()) {
        prop_assert_eq!(run(&config), run(&config));
    }

    #[test]
    fn running_in_slices_changes_nothing(config in any_simulation(), slice_ms in 1_u64..500) {
        let mut sliced = Simulation::new(&config, ()).unwrap();
        let mut until = Time::ZERO;
        loop {
            until += Span::from_millis(slice_ms);
            if sliced.run_until(until) {
                break;
            }
        }
        prop_assert_eq!(sliced.finish().0, run(&config));
    }

    #[test]
    fn stopping_after_so_many_events_changes_nothing(config in any_simulation(), most in 1_u64..2_000) {
        let mut counted = Simulation::new(&config, ()).unwrap();
        loop {
            let before = counted.events();
            let progress = counted.run_within(Time::NEVER, most);
            prop_assert!(counted.events() - before <= most);
            if progress == Progress::Over {
                break;
            }
            prop_assert_eq!((progress, counted.events() - before), (Progress::Spent, most));
        }
        prop_assert_eq!(counted.finish().0, run(&config));
    }
}

#[test]
fn adding_a_flow_leaves_the_random_streams_of_the_others_alone() {
    let udp = |rate| UdpConfig {
        rate: Rate::from_mbps(rate),
        packet: 1000,
        spacing: Spacing::Poisson,
        lasting: Span::from_secs(1),
        ecn: false,
    };
    let rtt = Span::from_millis(10);
    let end = Stop::At(Time::ZERO + Span::from_secs(2));
    // Two links, so that the flows do not meet.
    let links = vec![link(100, rtt, None), link(100, rtt, None)];
    let one = vec![udp_flow(udp(3), rtt)];
    let mut two = one.clone();
    two.push(udp_flow(udp(5), rtt));
    two[1].forward = vec![1];
    let alone = run(&simulation(links.clone(), one, end));
    let beside = run(&simulation(links, two, end));
    assert_eq!(alone.flows[0], beside.flows[0]);
    assert_eq!(alone.links[0], beside.links[0]);
}

#[test]
fn configurations_that_cannot_be_simulated_are_refused_with_their_place() {
    let rtt = Span::from_millis(10);
    let end = Stop::At(Time::ZERO + Span::from_secs(1));
    let good = simulation(vec![link(10, rtt, Some(10))], vec![tcp_flow(Workload::Greedy, rtt)], end);
    let refused = |change: fn(&mut SimulationConfig)| {
        let mut config = good.clone();
        change(&mut config);
        Simulation::new(&config, ()).unwrap_err().to_string()
    };
    assert!(refused(|c| c.flows[0].forward = vec![3]).starts_with("flows[0].forward[0]: there is no link 3"));
    assert!(refused(|c| c.flows[0].forward = vec![0, 0]).contains("twice"));
    assert!(refused(|c| c.links[0] = link(0, Span::ZERO, None)).contains("rate 0"));
    assert!(refused(|c| c.links[0] = link(10, Span::ZERO, Some(0))).contains("smallest buffer"));
    assert!(refused(|c| c.flows[0] = tcp_flow(Workload::Sized(Bytes::ZERO), Span::ZERO)).contains("at least 1 byte"));
}

/// Ends and controllers with such values work with the nearest that can be, which nobody asked for.
#[test]
fn values_of_a_connection_that_are_out_of_range_are_refused_with_their_place() {
    let rtt = Span::from_millis(10);
    let end = Stop::At(Time::ZERO + Span::from_secs(1));
    let refused = |change: fn(&mut TcpConfig)| {
        let mut tcp = crate::common::tcp(Workload::Greedy, rtt);
        change(&mut tcp);
        let flow = crate::common::flow(Traffic::Tcp(Box::new(tcp)), rtt);
        simulation(vec![link(10, rtt, Some(10))], vec![flow], end).validate().unwrap_err().to_string()
    };
    for (said, place) in [
        (refused(|tcp| tcp.sender.mss = 0), "flows[0].sender: mss must be between 1 and 65 000 bytes"),
        (refused(|tcp| tcp.controller.mss = 0), "flows[0].controller: mss must be at least 1 byte"),
        (refused(|tcp| tcp.controller.initial_window = 0), "flows[0].controller: initial_window must be between 1"),
        (refused(|tcp| tcp.receiver.ack_every = 0), "flows[0].receiver: ack_every must be "),
        (
            refused(|tcp| {
                tcp.controller.start = StartConfig::LimitedSlowStart(LimitedSlowStartConfig { max_ssthresh: 0 });
            }),
            "flows[0].controller: max_ssthresh must be ",
        ),
    ] {
        assert!(said.starts_with(place), "{said}");
    }
}
