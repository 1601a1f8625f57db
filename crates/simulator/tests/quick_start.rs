//! Quick-Start through simulated routers: against the closed form, and what routers that know nothing do.

mod common;

use flowstart_congestion::start::QuickStartConfig;
use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_quick_start::model::{Link, Start, Transfer};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_simulator::{
    Access, FlowConfig, FlowId, Observer, Outcome, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload,
};
use flowstart_transport::{ReceiverConfig, Sender, SenderConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

const CAPACITY: Rate = Rate::from_mbps(10);
const GRANT: Rate = Rate::from_bps(5_120_000);
const PACKET: u32 = 1500;
const HEADERS: u16 = 40;
const SYN: u16 = 60;

/// The start of the paper: always 5.12 Mbit/s asked for, no limited slow start.
fn paper() -> StartConfig {
    StartConfig::QuickStart(QuickStartConfig {
        request: GRANT,
        as_needed: false,
        max_ssthresh: 0,
        ..QuickStartConfig::default()
    })
}

fn link(router: Option<AdmissionConfig>) -> LinkConfig {
    let queue = QueueConfig::drop_tail(100_000);
    let mut link = LinkConfig::new(RateSchedule::Constant(CAPACITY), Span::ZERO, queue);
    link.quick_start = router;
    link
}

fn flow(start: StartConfig, initial_window: u32, rtt: Span, workload: Workload) -> FlowConfig {
    let mut controller = ControllerConfig::new(start, AvoidanceConfig::Reno);
    (controller.initial_window, controller.mss) = (initial_window, PACKET - u32::from(HEADERS));
    let sender = SenderConfig { mss: controller.mss, header_bytes: HEADERS, syn_bytes: SYN, ..SenderConfig::default() };
    let receiver = ReceiverConfig { header_bytes: HEADERS, syn_bytes: SYN, ..ReceiverConfig::every_segment() };
    FlowConfig {
        forward: vec![0],
        reverse: vec![],
        access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
        tail_delay: rtt / 2,
        return_delay: rtt / 2,
        start: Time::ZERO,
        traffic: Traffic::Tcp(Box::new(TcpConfig { controller, sender, receiver, workload })),
        group: 0,
    }
}

fn config(links: Vec<LinkConfig>, flows: Vec<FlowConfig>) -> SimulationConfig {
    let stop = Stop::WhenComplete(Time::ZERO + Span::from_secs(1000));
    SimulationConfig { links, flows, arrivals: vec![], sessions: vec![], stop, seed: 1, run: 0 }
}

fn run(links: Vec<LinkConfig>, flows: Vec<FlowConfig>) -> Outcome {
    Simulation::new(&config(links, flows), ()).unwrap().run().0
}

fn known() -> Option<AdmissionConfig> {
    Some(AdmissionConfig::paper(CAPACITY))
}

/// Seconds from the request to the last byte, as the model counts: without the handshake, with half a round trip for the request.
fn time(start: StartConfig, initial_window: u32, rtt: Span, size: u64) -> f64 {
    let outcome = run(vec![link(known())], vec![flow(start, initial_window, rtt, Workload::Sized(Bytes::new(size)))]);
    let flow = &outcome.flows[0];
    flow.completed.unwrap().since(flow.first_data).as_secs_f64() + rtt.as_secs_f64() / 2.0
}

#[test]
fn transfers_take_as_long_as_the_model_says_within_a_tenth() {
    for (initial_window, ms) in [(3, 50), (3, 100), (3, 200), (3, 500), (10, 50), (10, 100), (10, 200), (10, 500)] {
        let rtt = Span::from_millis(ms);
        let path = Link { rate: CAPACITY, rtt, packet: PACKET, headers: u32::from(HEADERS) };
        let model = Transfer::new(path, Start { initial_window, growth: 2.0, threshold: None });
        for size in [3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000] {
            let (slow, quick) = (model.slow_start(Bytes::new(size)), model.quick_start(Bytes::new(size), GRANT));
            for (simulated, closed) in [
                (time(StartConfig::SlowStart, initial_window, rtt, size), slow),
                (time(paper(), initial_window, rtt, size), quick),
            ] {
                let error = simulated / closed - 1.0;
                assert!(error.abs() < 0.1, "{size} B, {ms} ms, window {initial_window}: {simulated} against {closed}");
            }
        }
    }
}

#[test]
fn on_a_path_with_a_router_that_knows_nothing_everything_is_as_without_quick_start_but_for_the_option() {
    let rtt = Span::from_millis(100);
    let size = Workload::Sized(Bytes::new(300_000));
    let of = |start, routers: [Option<AdmissionConfig>; 2]| {
        let links = routers.map(link).to_vec();
        let flow = FlowConfig { forward: vec![0, 1], ..flow(start, 10, rtt, size.clone()) };
        let outcome = run(links, vec![flow]);
        (outcome.flows[0].completed.unwrap(), outcome.data_packets)
    };
    let option = CAPACITY.transmission_time(Bytes::new(8));
    for routers in [[None, None], [known(), None], [None, known()]] {
        let (plain, packets) = of(StartConfig::SlowStart, routers);
        assert_eq!(of(paper(), routers), (plain + option * 2, packets), "8 bytes more on each link");
    }
    assert!(of(paper(), [known(), known()]).0 < of(StartConfig::SlowStart, [None, None]).0);
}

/// The largest window of each flow in its first second.
#[derive(Default)]
struct Windows(Vec<u32>);

impl Observer for Windows {
    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        self.0.resize(self.0.len().max(flow as usize + 1), 0);
        if now < Time::ZERO + Span::from_millis(190) {
            self.0[flow as usize] = self.0[flow as usize].max(sender.controller().cwnd());
        }
    }
}

#[test]
fn flows_that_ask_one_after_the_other_get_what_is_left() {
    let rtt = Span::from_millis(100);
    let flows = (0..4)
        .map(|n| FlowConfig { start: Time::ZERO + Span::from_millis(n), ..flow(paper(), 3, rtt, Workload::Greedy) });
    let mut config = config(vec![link(known())], flows.collect());
    config.stop = Stop::At(Time::ZERO + Span::from_millis(200));
    let windows = Simulation::new(&config, Windows::default()).unwrap().run().1.0;
    // 5.12, 2.56, 1.28 and 0.64 Mbit/s of 1500-byte packets in 100 ms and the SYN's own time.
    assert_eq!(windows, [42, 21, 10, 5]);
}

#[test]
fn a_connection_that_was_idle_asks_again_with_its_next_data() {
    let rtt = Span::from_millis(100);
    let second = |start| {
        let script = Workload::Script(vec![(Span::ZERO, Bytes::new(5_000)), (Span::from_secs(5), Bytes::new(100_000))]);
        let outcome = run(vec![link(known())], vec![flow(start, 3, rtt, script)]);
        outcome.flows[0].completed.unwrap().since(Time::ZERO + Span::from_secs(5)).as_secs_f64()
    };
    let never = QuickStartConfig { request: GRANT, after_idle: false, ..QuickStartConfig::default() };
    let (plain, asked, silent) =
        (second(StartConfig::SlowStart), second(paper()), second(StartConfig::QuickStart(never)));
    // One round trip with one packet of the initial window, then the grant.
    assert!(asked < plain - 0.15, "{asked} against {plain}");
    assert!((silent - plain).abs() < 0.01, "{silent} against {plain}");
}
