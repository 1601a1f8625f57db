//! What other programs need of a controller: it can be duplicated, handed to other threads, and
//! told of another MTU.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use crate::common::{Loop, MSS, Path, any_ack};
use flowstart_congestion::{
    Ack, Acked, Avoidance, AvoidanceConfig, CongestionAvoidance, Controller, ControllerConfig, DeliveryRate, FlowStart,
    INFINITE_SSTHRESH, Own, OwnAvoidance, OwnStart, Sent, Signal, Start, StartConfig, Window, detection,
};
use flowstart_units::{Rate, Span, Time};

fn configs() -> impl Iterator<Item = ControllerConfig> {
    let starts = StartConfig::NAMES.iter().map(|name| StartConfig::from_name(name).unwrap());
    starts.flat_map(|start| {
        AvoidanceConfig::NAMES.iter().map(move |name| {
            let avoidance = AvoidanceConfig::from_name(name).unwrap();
            ControllerConfig { seed: 5, ..ControllerConfig::new(start.clone(), avoidance) }
        })
    })
}

fn describe(config: &ControllerConfig) -> String {
    format!("{}+{}", config.start.name(), config.avoidance.name())
}

/// A path with losses and marks, so that nobody's state is as it was at first.
fn path() -> Path {
    let path = Path::new(20, Span::from_millis(20));
    Path { buffer: 40, lose_every: 211, mark_above: Span::from_millis(15), ..path }
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// All that a flow has come to.
fn state(flow: &Loop) -> String {
    format!("{:?} {} {} {} {:?}", flow.now, flow.delivered, flow.lost, flow.timeouts, flow.controller)
}

#[test]
fn everything_can_be_duplicated_and_handed_to_other_threads() {
    fn whole<T: Clone + Send + Sync + Debug + 'static>() {}
    whole::<Controller>();
    whole::<ControllerConfig>();
    whole::<Start>();
    whole::<StartConfig>();
    whole::<Avoidance>();
    whole::<AvoidanceConfig>();
    whole::<Own<dyn OwnStart>>();
    whole::<Own<dyn OwnAvoidance>>();
}

#[test]
fn a_duplicate_goes_the_same_way_and_leaves_the_original_alone() {
    for config in configs() {
        // In the start, and after it.
        for at in [30, 700] {
            let mut flow = Loop::new(path(), Controller::new(&config), u64::MAX);
            flow.run(ms(at), |_| {});
            let before = state(&flow);
            let mut twin = flow.clone();
            twin.run(ms(1200), |_| {});
            assert_eq!(state(&flow), before, "{}", describe(&config));
            flow.run(ms(1200), |_| {});
            assert_eq!(state(&flow), state(&twin), "{}", describe(&config));
        }
    }
}

#[test]
fn one_from_outside_is_duplicated_with_its_state() {
    #[derive(Clone)]
    struct Counting(u32);
    impl FlowStart for Counting {
        fn initial_window(&self) -> Option<u32> {
            Some(self.0)
        }

        fn grow(&mut self, _ack: &Ack, _window: &mut Window) -> u32 {
            self.0 += 1;
            0
        }
    }
    let mut one = Start::External(Box::new(Counting(7)));
    let other = one.clone();
    one.grow(&any_ack(), &mut Window::new(1));
    assert_eq!((one.initial_window(), other.initial_window()), (Some(8), Some(7)));
}

#[test]
fn with_another_mtu_windows_stay_what_they_are_in_bytes_and_flows_go_on() {
    for config in configs() {
        for (at, mss) in [(0, 1200), (30, 1200), (30, 8948), (700, 1200), (700, 8948)] {
            let what = format!("{} at {at} ms: {mss}", describe(&config));
            let mut flow = Loop::new(path(), Controller::new(&config), u64::MAX);
            flow.run(ms(at), |_| {});
            let (cwnd, ssthresh) = (flow.controller.cwnd(), flow.controller.ssthresh());
            flow.controller.set_mss(mss);
            let close = |before: u32, after: u32| {
                before >= INFINITE_SSTHRESH && after >= INFINITE_SSTHRESH - 1
                    || (u64::from(before) * u64::from(MSS)).abs_diff(u64::from(after) * u64::from(mss))
                        <= u64::from(mss) / 2
                    || after == before.min(2)
                    || after == 2
            };
            assert!(close(cwnd, flow.controller.cwnd()), "{what}: {cwnd} became {}", flow.controller.cwnd());
            assert!(close(ssthresh, flow.controller.ssthresh()), "{what}: threshold {ssthresh}");
            assert_eq!(flow.controller.mss(), mss);
            let once = state(&flow);
            flow.controller.set_mss(mss);
            assert_eq!(state(&flow), once, "{what}: the same MTU again changes nothing");
            let delivered = flow.delivered;
            flow.run(ms(at + 3000), |_| {});
            assert!(flow.delivered > delivered + 100, "{what}: {}", flow.delivered - delivered);
        }
    }
}

#[test]
fn a_rate_in_packets_of_the_mtu_is_one_in_bytes() {
    // The curve of CUBIC is in packets: after a reduction at 100 packets of 1448 bytes the plateau
    // is where it was in bytes.
    let cubic = AvoidanceConfig::from_name("cubic").unwrap();
    let config = ControllerConfig { initial_window: 100, ..ControllerConfig::new(StartConfig::SlowStart, cubic) };
    let mut controller = Controller::new(&config);
    controller.on_signal(ms(1), Signal::Loss);
    controller.end_recovery();
    assert_eq!((controller.cwnd(), controller.ssthresh()), (70, 70));
    controller.set_mss(724);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (140, 140));
    assert_eq!(controller.largest_window(), Some(140));
}

#[test]
fn counts_that_step_back_or_are_at_the_end_of_their_range_stop_nobody() {
    for config in configs() {
        let mut controller = Controller::new(&config);
        for step in 0..200_u64 {
            let now = ms(20 * step);
            // Numbers of packets up to the last there is, deliveries from it on down.
            let (number, delivered) = (u64::MAX - 199 + step, u64::MAX - step);
            let rtt = Some(Span::from_millis(15));
            let (bytes, in_flight) = (MSS, 1);
            controller.on_sent(&Sent { now, number, seq: u64::MAX, bytes, in_flight, retransmission: false });
            controller.on_acked(&Acked { now, number, bytes, sent_at: now, rtt, retransmitted: false });
            let interval = Span::from_millis(15);
            let rate = DeliveryRate { delivered: 1, interval, prior_delivered: u64::MAX, app_limited: false };
            let ack = Ack { now, rtt, delivered, lost: 1, total_lost: 200 - step, rate: Some(rate), ..any_ack() };
            controller.on_ack(&ack);
            controller.grow(&ack);
            assert!(controller.cwnd() >= 1, "{}", describe(&config));
        }
        let decision = detection::Decision {
            now: ms(5000),
            isolation: detection::Isolation::Shared,
            ratio: 0.0,
            rate: Rate::from_mbps(10),
            confidence: None,
            smallest: Span::MAX,
        };
        controller.steering().on_decision(&decision, MSS, 1500);
    }
}

/// One that goes wrong in the given way.
#[derive(Clone)]
struct Wrong(&'static str);

impl CongestionAvoidance for Wrong {
    fn grow(&mut self, _ack: &Ack, _acked: u32, window: &mut Window) {
        window.cwnd = if self.0 == "no window" { 0 } else { 20 };
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, _window: &Window) -> u32 {
        0
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (self.0 == "no rate").then_some(Rate::ZERO)
    }
}

#[test]
fn an_avoidance_without_a_window_or_with_a_rate_of_zero_does_not_end_a_flow() {
    for wrong in ["no window", "no rate"] {
        let own = AvoidanceConfig::own("wrong", "goes wrong", move |_| Box::new(Wrong(wrong))).unwrap();
        let config = ControllerConfig {
            initial_ssthresh: Some(2),
            ..ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Own(own))
        };
        let mut flow = Loop::new(Path::new(20, Span::from_millis(20)), Controller::new(&config), 200);
        flow.run(ms(60_000), |_| {});
        assert_eq!((flow.delivered, flow.controller.pacing_rate()), (200, None), "{wrong}");
    }
}

#[test]
fn what_is_out_of_range_is_moved_into_it_and_algorithms_from_outside_see_that() {
    let seen = |initial_window, mss| {
        let made = Arc::new(Mutex::new(None));
        let told = Arc::clone(&made);
        let own = StartConfig::own("looks", "looks at its connection", move |connection| {
            *told.lock().unwrap() = Some((connection.initial_window, connection.mss));
            Box::new(flowstart_congestion::start::SlowStart)
        });
        let start = StartConfig::Own(own.unwrap());
        let config = ControllerConfig { initial_window, mss, ..ControllerConfig::new(start, AvoidanceConfig::Reno) };
        let controller = Controller::new(&config);
        let seen = made.lock().unwrap().unwrap();
        assert_eq!(seen, (controller.cwnd(), controller.mss()));
        (config.validate().is_ok(), seen)
    };
    assert_eq!(seen(0, 1200), (false, (1, 1200)));
    assert_eq!(seen(10, 0), (false, (10, 1)));
    assert_eq!(seen(1_000_000, u32::MAX), (true, (1_000_000, u32::MAX)));
    assert_eq!(seen(u32::MAX, 1), (false, (1_000_000, 1)));
}

/// Every number in a configuration, by the names that lead to it.
#[cfg(feature = "serde")]
fn numbers(value: &serde_json::Value, place: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| numbers(value, &format!("{place}/{name}"), found));
        }
        serde_json::Value::Number(_) => found.push(place.to_owned()),
        _ => {}
    }
}

/// Each constant, and all together, as far out of range as it can be read.
#[cfg(feature = "serde")]
#[test]
fn an_avoidance_of_constants_out_of_range_works() {
    let mut refused = 0;
    for name in AvoidanceConfig::NAMES {
        let default = serde_json::to_value(AvoidanceConfig::from_name(name).unwrap()).unwrap();
        let mut fields = Vec::new();
        numbers(&default, "", &mut fields);
        let single = fields.iter().map(std::slice::from_ref);
        for changed in single.chain([&fields[..]]) {
            for value in ["0", "-1e300", "1e300", "4294967295"] {
                let mut given = default.clone();
                for field in changed {
                    let before = std::mem::replace(given.pointer_mut(field).unwrap(), value.parse().unwrap());
                    if serde_json::from_value::<AvoidanceConfig>(given.clone()).is_err() {
                        // A count, which can be neither.
                        *given.pointer_mut(field).unwrap() = before;
                    }
                }
                let avoidance: AvoidanceConfig = serde_json::from_value(given).unwrap();
                refused += u32::from(avoidance.validate().is_err());
                let config = ControllerConfig::new(StartConfig::SlowStart, avoidance);
                let mut flow = Loop::new(path(), Controller::new(&config), 5000);
                flow.run(ms(3000), |_| {});
                assert!(flow.delivered > 100, "{:?}: {}", config.avoidance, flow.delivered);
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn chirps_of_more_packets_than_there_may_be_deliver_all_the_same() {
    for packets in [0, u32::MAX] {
        for name in ["paced_chirping", "two_gap_chirping", "adaptive_chirping"] {
            let mut start = StartConfig::from_name(name).unwrap();
            match &mut start {
                StartConfig::PacedChirping(config) => config.packets = vec![packets],
                StartConfig::TwoGapChirping(config) => config.packets = packets,
                StartConfig::AdaptiveChirping(config) => config.packets = packets,
                _ => unreachable!("{name}"),
            }
            assert!(start.validate().is_err(), "{name}");
            let config = ControllerConfig::new(start, AvoidanceConfig::from_name("cubic").unwrap());
            let mut flow = Loop::new(Path::new(20, Span::from_millis(20)), Controller::new(&config), 2000);
            flow.run(ms(60_000), |_| {});
            assert_eq!(flow.delivered, 2000, "{name} {packets}");
        }
    }
}
