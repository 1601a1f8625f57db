//! A receive window that grows, in the whole loop, against Linux 6.18 over the emulator (10 and
//! 100 Mbit/s, 20 ms): the end of slow start and the windows its receiver offered.

use flowstart_congestion::ExitReason;
use flowstart_network::packet::Body;
use flowstart_network::{DropReason, Packet};
use flowstart_scenario::Scenario;
use flowstart_simulator::{LinkId, Observer, Outcome, Simulation};
use flowstart_units::{Span, Time};

#[derive(Default)]
struct Watch {
    /// When an ACK passed the way back, and the window in it.
    windows: Vec<(Time, u32)>,
    drops: Vec<Time>,
}

impl Observer for Watch {
    fn dropped(&mut self, now: Time, _: LinkId, _: &Packet, _: Option<DropReason>) {
        self.drops.push(now);
    }

    fn transmitted(&mut self, now: Time, _: LinkId, packet: &Packet, _: Time, _: Time) {
        if let Body::Ack(ack) = &packet.body {
            self.windows.push((now, ack.window));
        }
    }
}

impl Watch {
    fn window(&self, at: Time) -> u32 {
        self.windows.iter().take_while(|(now, _)| *now <= at).last().map_or(0, |(_, window)| *window)
    }
}

fn run(seconds: u32, path: &str, flows: &[&str]) -> (Outcome, Watch) {
    let flows: String = flows.iter().map(|flow| format!("[[flow]]\nalgorithm = \"hystart+cubic\"\n{flow}\n")).collect();
    let text = format!(
        "duration = \"{seconds} s\"\n[path]\n{path}\nrtt = \"20 ms\"\nreverse_capacity = \"1 Gbit/s\"\n\
         reverse_buffer = \"100000 packets\"\n{flows}"
    );
    let scenario = Scenario::parse("window", &text).unwrap();
    let simulation = scenario.simulation(0).unwrap().simulation;
    Simulation::new(&simulation, Watch::default()).unwrap().run()
}

const TEN: &str = "capacity = \"10 Mbit/s\"\nbuffer = \"100 packets\"";
const HUNDRED: &str = "capacity = \"100 Mbit/s\"\nbuffer = \"250 kB\"";

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[test]
fn cubic_at_10_mbit_leaves_slow_start_at_30_packets_as_linux_does() {
    let (outcome, watch) = run(12, TEN, &["receive_window = \"linux\""]);
    let exit = outcome.flows[0].start_exit.unwrap();
    assert_eq!((exit.cwnd, exit.reason), (30, ExitReason::AckTrain));
    // No losses at the end of the start.
    assert!(watch.drops.iter().all(|drop| *drop > at(1000)));
}

/// The kernel (`run --real`, 6.18) offered 200 704 B after 1.2 s, 364 544 after 2.4 s, and
/// 1 544 192 from the first loss on, which depends on how much arrives behind the gap.
#[test]
fn its_receive_window_is_linux_s() {
    let flow = "receive_window = \"linux\"";
    let (_, watch) = run(12, TEN, &[flow]);
    for (ms, linux, share) in [(1200, 200_704, 0.10), (2400, 364_544, 0.10), (4800, 1_544_192, 0.20)] {
        let ours = f64::from(watch.window(at(ms)));
        let theirs = f64::from(linux);
        assert!((ours - theirs).abs() <= share * theirs, "{ms} ms: {ours}, not {theirs}");
    }
}

/// Six ACKs more than the first 16 are enough at 10 Mbit/s; at 100 delayed ACKs make trains too.
#[test]
fn at_100_mbit_the_start_ends_where_it_did() {
    let (outcome, watch) = run(5, HUNDRED, &["receive_window = \"linux\""]);
    assert_eq!(outcome.flows[0].start_exit.unwrap().reason, ExitReason::AckTrain);
    let first_second = watch.drops.iter().filter(|drop| **drop < at(1000)).count();
    // Linux: 17.
    assert!((15..=19).contains(&first_second), "{first_second} drops");
}

#[test]
fn a_small_largest_buffer_limits_the_rate() {
    let small = "receiver = { window = { max = \"128 KiB\" } }";
    let (outcome, watch) = run(5, HUNDRED, &[small]);
    // 160/256 of the buffer less a segment, in units of 128 B (the scale is that of 4 MiB on
    // request): at most that much per 20 ms.
    let window = 80_480_u32.next_multiple_of(128);
    assert_eq!(watch.window(at(4000)), window);
    let rate = outcome.flows[0].delivered.get() as f64 * 8.0 / 5.0;
    let most = f64::from(window) * 8.0 / 0.02;
    assert!(rate < most && rate > 0.93 * most, "{rate} bit/s of {most}");
}

#[test]
fn a_largest_buffer_below_the_first_is_refused() {
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n\
                receiver = { window = { max = \"64 KiB\" } }\n";
    let complaint = Scenario::parse("small", text).and_then(|s| s.simulation(0)).unwrap_err().to_string();
    assert!(complaint.contains("window.max") && complaint.contains("128 KiB"), "{complaint}");
    let text = text.replace("max =", "initial = \"64 KiB\", max =");
    assert!(Scenario::parse("small", &text).and_then(|s| s.simulation(0)).is_ok());
}

#[test]
fn a_window_given_twice_is_refused() {
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n\
                receive_window = \"linux\"\nreceiver = { window = { rules = \"6.1\" } }\n";
    let complaint = Scenario::parse("twice", text).and_then(|s| s.simulation(0)).unwrap_err().to_string();
    assert!(complaint.contains("receive_window"), "{complaint}");
    let text = text.replace("window = { rules = \"6.1\" }", "receive_buffer = \"64 KiB\"");
    let complaint = Scenario::parse("twice", &text).and_then(|s| s.simulation(0)).unwrap_err().to_string();
    assert!(complaint.contains("receive_buffer"), "{complaint}");
}

/// A second flow that enters beside a first at 100 Mbit/s lost 27 packets on Linux 6.18. ACKs that
/// come with a window that grows make its bursts smaller, so that it loses less than without them.
#[test]
fn a_second_flow_loses_what_it_loses_beside_a_first_on_linux() {
    let lost = |window: &str| {
        let of = |start: u32| {
            let second = format!("{window}\nstart = \"{start} ms\"");
            let (outcome, _) = run(8, HUNDRED, &[window, &second]);
            outcome.flows[1].dropped_in_start
        };
        [4900, 5000, 5070, 5110].map(of)
    };
    let linux = lost("receive_window = \"linux\"");
    assert!(linux.iter().all(|lost| (24..=30).contains(lost)), "{linux:?}");
    let fixed = lost("receive_window = \"none\"");
    assert!(fixed.iter().all(|lost| *lost > 30), "{fixed:?}");
}
