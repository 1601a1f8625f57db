//! Quick-Start through simulated routers: against the closed form, and what routers that know
//! nothing do.

use flowstart_congestion::avoidance::Avoidance;
use flowstart_congestion::start::{QuickStart, QuickStartConfig, Start};
use flowstart_congestion::{
    Ack, Answer, AvoidanceConfig, Controller, ControllerConfig, FlowStart, Occasion, RouterClient, StartConfig, Window,
};
use flowstart_network::{LinkConfig, LossConfig, QueueConfig, QuickStartHop, RateSchedule};
use flowstart_quick_start::model::{self, Transfer};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_quick_start::wire::IpOption;
use flowstart_quick_start::{Carried, RateCode};
use flowstart_simulator::{
    Access, FlowConfig, FlowId, Observer, Outcome, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload,
};
use flowstart_transport::{ReceiverConfig, Sender, SenderConfig, SenderState};
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

fn link(hop: QuickStartHop) -> LinkConfig {
    let queue = QueueConfig::drop_tail(100_000);
    let mut link = LinkConfig::new(RateSchedule::Constant(CAPACITY), Span::ZERO, queue);
    link.quick_start = hop;
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
        place: Default::default(),
    }
}

fn config(links: Vec<LinkConfig>, flows: Vec<FlowConfig>) -> SimulationConfig {
    let stop = Stop::WhenComplete(Time::ZERO + Span::from_secs(1000));
    SimulationConfig { links, ways: vec![], flows, arrivals: vec![], sessions: vec![], stop, seed: 1, run: 0 }
}

fn run(links: Vec<LinkConfig>, flows: Vec<FlowConfig>) -> Outcome {
    Simulation::new(&config(links, flows), ()).unwrap().run().0
}

fn known() -> QuickStartHop {
    QuickStartHop::Aware(AdmissionConfig::paper(CAPACITY))
}

/// Seconds from the request to the last byte, as the model counts: without the handshake, with half
/// a round trip for the request.
fn time(start: StartConfig, initial_window: u32, rtt: Span, size: u64) -> f64 {
    let outcome = run(vec![link(known())], vec![flow(start, initial_window, rtt, Workload::Sized(Bytes::new(size)))]);
    let flow = &outcome.flows[0];
    flow.completed.unwrap().since(flow.first_data).as_secs_f64() + rtt.as_secs_f64() / 2.0
}

#[test]
fn transfers_take_as_long_as_the_model_says_within_a_tenth() {
    for (initial_window, ms) in [(3, 50), (3, 100), (3, 200), (3, 500), (10, 50), (10, 100), (10, 200), (10, 500)] {
        let rtt = Span::from_millis(ms);
        let path = model::Link { rate: CAPACITY, rtt, packet: PACKET, headers: u32::from(HEADERS) };
        let model = Transfer::new(path, model::Start { initial_window, growth: 2.0, threshold: None });
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
    let of = |start, routers: [QuickStartHop; 2]| {
        let links = routers.map(link).to_vec();
        let flow = FlowConfig { forward: vec![0, 1], ..flow(start, 10, rtt, size.clone()) };
        let outcome = run(links, vec![flow]);
        (outcome.flows[0].completed.unwrap(), outcome.data_packets)
    };
    let option = CAPACITY.transmission_time(Bytes::new(8));
    use QuickStartHop::{AwareTunnel, Unaware};
    for routers in [[Unaware; 2], [known(), Unaware], [Unaware, known()], [known(), AwareTunnel]] {
        let (plain, packets) = of(StartConfig::SlowStart, routers);
        // The request makes the SYN longer on each link; the report takes its bytes from the first
        // packet, and the last one carries them, which waits for the one before it on the second
        // link anyway.
        assert_eq!(of(paper(), routers), (plain + option * 3, packets));
    }
    assert!(of(paper(), [known(), known()]).0 < of(StartConfig::SlowStart, [Unaware; 2]).0);
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

#[test]
fn a_connection_in_the_middle_asks_for_its_next_object_with_the_first_data_of_it_if_it_is_told_so() {
    let rtt = Span::from_millis(100);
    let second = |in_middle, bytes| {
        let quick = QuickStartConfig { request: GRANT, in_middle, ..QuickStartConfig::default() };
        // When the second object comes, the first was acknowledged 50 ms ago: far less than a
        // retransmission timeout.
        let later = Span::from_millis(250);
        let script = Workload::Script(vec![(Span::ZERO, Bytes::new(3_000)), (later, Bytes::new(bytes))]);
        let outcome = run(vec![link(known())], vec![flow(StartConfig::QuickStart(quick), 3, rtt, script)]);
        let counts = outcome.links[0].quick_start;
        (outcome.flows[0].completed.unwrap().since(Time::ZERO + later), [counts.approved, counts.reports])
    };
    let (silent, asked) = (second(false, 100_000), second(true, 100_000));
    assert_eq!((silent.1, asked.1), ([1, 1], [2, 2]), "the SYN asks, then the second object, and both are reported");
    // Slow start takes five round trips from 5 packets, half of one more for the way there: 5, 10,
    // 20, 34. The request takes one with 5 packets, the grant another.
    assert!(asked.0 + Span::from_millis(80) < silent.0, "{:?} against {:?}", asked.0, silent.0);
    assert_eq!(second(true, 5_000), second(false, 5_000), "what fits into the window asks for nothing");
}

/// The window before a flow's first recovery; window, threshold and packets delivered as it begins;
/// the most packets in flight once it is over.
#[derive(Default)]
struct FirstLoss {
    before: u32,
    after: Option<(u32, u32, u64)>,
    later: u32,
}

impl Observer for FirstLoss {
    fn sender(&mut self, _now: Time, _flow: FlowId, sender: &Sender) {
        let controller = sender.controller();
        if sender.state() == SenderState::Recovery && self.after.is_none() {
            self.after = Some((controller.cwnd(), controller.ssthresh(), sender.stats().delivered));
        } else if self.after.is_none() {
            self.before = controller.cwnd();
        } else if sender.state() == SenderState::Open {
            self.later = self.later.max(sender.stats().in_flight);
        }
    }
}

#[test]
fn a_grant_of_what_the_path_has_not_ends_with_the_initial_window_and_a_threshold_of_half_of_what_arrived() {
    let rtt = Span::from_millis(100);
    let believer = QuickStartHop::Aware(AdmissionConfig::paper(Rate::from_mbps(100)));
    // A router that is wrong, and a tunnel over one that nobody asked.
    for (hop, approved) in [(believer, 1), (QuickStartHop::Tunnel, 0)] {
        let link = LinkConfig { queue: QueueConfig::drop_tail(20), ..link(hop) };
        let request = RateCode::new(11).unwrap().rate();
        let quick = QuickStartConfig { request, max_ssthresh: 0, ..QuickStartConfig::default() };
        let flow = flow(StartConfig::QuickStart(quick), 3, rtt, Workload::Sized(Bytes::new(2_000_000)));
        let simulation = Simulation::new(&config(vec![link], vec![flow]), FirstLoss::default()).unwrap();
        let (outcome, FirstLoss { before, after, later }) = simulation.run();
        let (cwnd, ssthresh, delivered) = after.unwrap();
        assert!(before > 600, "81.92 Mbit/s for 100 ms: {before}");
        assert_eq!(cwnd, 3, "the initial window");
        assert_eq!(u64::from(ssthresh), delivered / 2);
        // The damage is that of one window: 83 packets fill the path, 20 the queue, and slow start
        // doubles that at most.
        assert!(outcome.links[0].dropped < u64::from(before), "{} of {before}", outcome.links[0].dropped);
        assert!(later <= 2 * (84 + 20), "{later}");
        assert_eq!(outcome.links[0].quick_start.approved, approved, "never again");
        assert!(outcome.flows[0].completed.is_some());
    }
}

/// What became of a flow that asks for 5.12 Mbit/s: when it was complete, and its largest window in
/// the first 190 ms.
fn through(hops: [QuickStartHop; 2]) -> (Time, u32) {
    let rtt = Span::from_millis(100);
    let flow = flow(paper(), 3, rtt, Workload::Sized(Bytes::new(300_000)));
    let flow = FlowConfig { forward: vec![0, 1], ..flow };
    let (outcome, Windows(windows)) =
        Simulation::new(&config(hops.map(link).to_vec(), vec![flow]), Windows::default()).unwrap().run();
    (outcome.flows[0].completed.unwrap(), windows[0])
}

#[test]
fn a_tunnel_that_hides_the_ttl_is_taken_for_approval_and_one_that_knows_that_denies() {
    use QuickStartHop::{AwareTunnel, Tunnel, Unaware};
    let approved = through([known(), known()]);
    assert_eq!(approved.1, 42);
    assert_eq!(through([known(), Tunnel]), approved, "a false positive: nobody was asked for the second link");
    assert_eq!(through([Tunnel, Tunnel]), approved, "nobody was asked at all");
    for denied in [[known(), AwareTunnel], [Tunnel, Unaware], [Unaware, known()]] {
        assert_eq!(through(denied).1, 3, "{denied:?}");
    }
}

#[test]
fn a_router_that_lowers_the_rate_leaves_the_nonce_bits_that_the_sender_checks() {
    // Were a bit of the lower rate changed, or the nonce checked against the higher one, nothing
    // would be granted.
    for seed in 0..50 {
        let half = AdmissionConfig::paper(Rate::from_mbps(5));
        let flow = flow(paper(), 3, Span::from_millis(100), Workload::Sized(Bytes::new(300_000)));
        let mut config = config(vec![link(QuickStartHop::Aware(half))], vec![flow]);
        config.seed = seed;
        let windows = Simulation::new(&config, Windows::default()).unwrap().run().1.0;
        assert_eq!(windows, [21], "2.56 Mbit/s");
    }
}

#[test]
fn a_middlebox_that_strips_options_denies_and_one_that_drops_them_costs_3_s_once() {
    use QuickStartHop::{DropsOptions, StripsOptions, Unaware};
    let rtt = Span::from_millis(100);
    let later = Span::from_secs(10);
    let of = |start, hop| {
        let script = Workload::Script(vec![(Span::ZERO, Bytes::new(30_000)), (later, Bytes::new(100_000))]);
        let flow = FlowConfig { forward: vec![0, 1], ..flow(start, 3, rtt, script) };
        let outcome = run(vec![link(known()), link(hop)], vec![flow]);
        let flow = &outcome.flows[0];
        (flow.first_data.since(Time::ZERO), flow.completed.unwrap(), outcome.links[1].lost)
    };
    let plain = of(StartConfig::SlowStart, Unaware);
    assert_eq!(plain.2, 0);
    // The request costs the bytes of an option, and the report of the denial, at the beginning and
    // after the idle time.
    let option = CAPACITY.transmission_time(Bytes::new(8));
    let stripped = of(paper(), StripsOptions);
    assert_eq!((stripped.0, stripped.2), (plain.0 + option * 2, 0), "the SYN crosses both links with it");
    assert!(stripped.1.since(plain.1) < option * 4, "{:?} against {:?}", stripped.1, plain.1);
    // The SYN is lost and goes out plain after 3 s; the connection asks for nothing and reports
    // nothing after that.
    let dropped = of(paper(), DropsOptions);
    assert_eq!((dropped.0, dropped.1, dropped.2), (plain.0 + Span::from_secs(3), plain.1, 1));
}

#[test]
fn an_answer_that_is_lost_is_none() {
    // Every third ACK is lost. The third is that of the third flow's SYN, which is sent again,
    // plain; the sixth is another flow's last.
    let rtt = Span::from_millis(100);
    let back = LinkConfig { loss: LossConfig::Periodic { every: 3 }, ..link(QuickStartHop::Unaware) };
    let of = |start, ms, bytes| FlowConfig {
        start: Time::ZERO + Span::from_millis(ms),
        reverse: vec![1],
        ..flow(start, 3, rtt, Workload::Sized(Bytes::new(bytes)))
    };
    let plain = StartConfig::SlowStart;
    let flows = vec![of(plain.clone(), 0, 1_000), of(plain, 0, 2_000), of(paper(), 1, 300_000)];
    let outcome = run(vec![link(known()), back], flows);
    let counts = outcome.links[0].quick_start;
    assert_eq!((counts.approved, counts.reports), (1, 0), "what the router granted, it forgets");
    let asked = &outcome.flows[2];
    let opened = Span::from_millis(3101) + CAPACITY.transmission_time(Bytes::new(60)) * 2;
    assert_eq!(asked.first_data.since(Time::ZERO), opened);
    assert!(asked.completed.unwrap() > asked.first_data + Span::from_millis(400), "as long as slow start takes");
}

#[test]
fn few_acks_neither_hide_the_answer_nor_prolong_the_phase() {
    // An ACK for every 16th packet: the packet that asks is acknowledged at once, and the phase
    // ends with the first ACK of its packets.
    let rtt = Span::from_millis(100);
    let thin = |start| {
        let mut flow = flow(start, 10, rtt, Workload::Sized(Bytes::new(300_000)));
        let Traffic::Tcp(tcp) = &mut flow.traffic else { panic!("the flows here are TCP") };
        tcp.receiver = ReceiverConfig { ack_every: 16, quick_acks: 0, ..tcp.receiver.clone() };
        let (outcome, Windows(windows)) =
            Simulation::new(&config(vec![link(known())], vec![flow]), Windows::default()).unwrap().run();
        (windows[0], outcome.flows[0].completed.unwrap(), outcome.links[0].dropped)
    };
    let (window, completed, dropped) = thin(paper());
    assert_eq!((window, dropped), (42, 0));
    assert!(completed < thin(StartConfig::SlowStart).1);
}

/// What the router of a 10 Mbit/s link heard, which remembers grants flow by flow: approved,
/// denied, reports, faults.
fn heard(hops: Vec<QuickStartHop>, flows: Vec<FlowConfig>, make: fn(&ControllerConfig) -> Controller) -> [u64; 4] {
    let links = hops.into_iter().map(link).collect();
    let simulation =
        Simulation::with_controllers(&config(links, flows), (), Box::new(move |_, config| make(config))).unwrap();
    let counts = simulation.run().0.links[0].quick_start;
    [counts.approved, counts.denied, counts.reports, counts.faults]
}

fn transfer(ms: u64) -> FlowConfig {
    let flow = flow(paper(), 3, Span::from_millis(100), Workload::Sized(Bytes::new(300_000)));
    FlowConfig { start: Time::ZERO + Span::from_millis(ms), ..flow }
}

fn by_flow() -> QuickStartHop {
    QuickStartHop::Aware(AdmissionConfig::extreme(CAPACITY))
}

#[test]
fn grants_and_denials_are_reported_to_the_routers_with_the_first_data() {
    let at = |ms| transfer(ms);
    assert_eq!(heard(vec![by_flow()], vec![at(0), at(3000)], Controller::new), [2, 0, 2, 0]);
    // The second router knows nothing: the first hears that its grant came to nothing and gives it
    // to the next flow.
    let both = |flow: FlowConfig| FlowConfig { forward: vec![0, 1], ..flow };
    let flows = (0..8).map(|n| both(at(200 * n))).collect();
    assert_eq!(heard(vec![by_flow(), QuickStartHop::Unaware], flows, Controller::new), [8, 0, 8, 0]);
}

/// Quick-Start that reports the highest rate there is, whatever it was granted.
#[derive(Clone)]
struct Boaster(QuickStart);

impl FlowStart for Boaster {
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        self.0.grow(ack, window)
    }

    fn router_client(&mut self) -> Option<&mut dyn RouterClient> {
        Some(self)
    }
}

impl RouterClient for Boaster {
    fn rate_request(&mut self, occasion: &Occasion) -> Carried {
        self.0.rate_request(occasion)
    }

    fn on_answer(&mut self, answer: &Answer, window: &mut Window) -> bool {
        self.0.on_answer(answer, window)
    }

    fn take_report(&mut self) -> Carried {
        match self.0.take_report().option() {
            Some(IpOption::Report { nonce, .. }) => Carried::new(&IpOption::Report { rate: RateCode::MAX, nonce }, 64),
            _ => Carried::NONE,
        }
    }
}

#[test]
fn a_sender_that_reports_more_than_it_was_granted_is_noticed() {
    let boaster = |config: &ControllerConfig| {
        let StartConfig::QuickStart(start) = config.start else { panic!("the flows here ask") };
        let start = Boaster(QuickStart::new(&start, config.initial_window, config.mss, config.seed));
        Controller::join(Start::External(Box::new(start)), Avoidance::new(config), config)
    };
    let [approved, _, reports, faults] = heard(vec![by_flow()], vec![transfer(0)], boaster);
    assert_eq!([approved, reports], [1, 1]);
    assert!(faults >= 1, "a report of more than the grant");
}
