//! The scenarios of docs/validation.md against what ns-3 and Linux did on them.
//!
//! Tolerances were fixed before the first comparison: throughput 1 %, queue mean and percentiles 5
//! % or 0.3 ms, losses of the first second 30 %, later ones 20 %, marks 10 %, saw-tooth period 5 %,
//! time to 90 % of the link one RTT. A check that does not hold stays here, named and explained in
//! docs/validation.md, with what flowstart gives instead.

use std::path::PathBuf;

use flowstart_network::{DropReason, Ecn, Packet};
use flowstart_scenario::Scenario;
use flowstart_simulator::{LinkId, Observer, Outcome, Simulation};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

/// What the comparison looks at: queueing delays and deliveries after a warm-up, drops with their
/// times, the window of flow 0.
struct Watch {
    warm: Time,
    sojourns: Vec<u64>,
    drops: Vec<Time>,
    marks: u64,
    delivered: [u64; 2],
    total: std::collections::HashMap<u32, u64>,
    windows: Vec<u32>,
    reductions: Vec<Time>,
    last_cwnd: u32,
}

impl Observer for Watch {
    fn dropped(&mut self, now: Time, link: LinkId, _: &Packet, _: Option<DropReason>) {
        if link == 0 {
            self.drops.push(now);
        }
    }

    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, _: Time) {
        if link == 0 && now >= self.warm {
            self.sojourns.push(now.since(arrived).as_nanos());
        }
        if link == 0 {
            self.marks += u64::from(packet.ecn == Ecn::Ce);
        }
    }

    fn delivered(&mut self, now: Time, flow: u32, total: u64) {
        let before = self.total.insert(flow, total).unwrap_or(0);
        self.delivered[usize::from(now >= self.warm)] += total - before;
    }

    fn sender(&mut self, now: Time, flow: u32, sender: &Sender) {
        let cwnd = sender.controller().cwnd();
        if flow == 0 && now >= self.warm {
            self.windows.push(cwnd);
            // The end of a reduction: the threshold has just fallen below the window before.
            if cwnd * 10 < self.last_cwnd * 9 {
                if self.reductions.last().is_none_or(|last| now.since(*last) > Span::from_millis(500)) {
                    self.reductions.push(now);
                }
                self.last_cwnd = cwnd;
            }
            self.last_cwnd = self.last_cwnd.max(cwnd);
        }
    }
}

#[derive(Debug)]
struct Seen {
    goodput_mbps: f64,
    mean_ms: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    drops: u64,
    drops_first_second: u64,
    marks: u64,
    retransmitted: u64,
    cwnd_mean: f64,
    cwnd_range: (u32, u32),
    period_s: f64,
    jain: f64,
    recoveries: u64,
    whole_goodput: f64,
}

fn run(name: &str, warm: Span, seed: u64) -> Seen {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let mut scenario = Scenario::load(&file).unwrap();
    scenario.seed = seed;
    let compiled = scenario.simulation(0).unwrap();
    let warm = Time::ZERO + warm;
    let watch = Watch {
        warm,
        sojourns: vec![],
        drops: vec![],
        marks: 0,
        delivered: [0; 2],
        total: Default::default(),
        windows: vec![],
        reductions: vec![],
        last_cwnd: 0,
    };
    let (outcome, mut seen): (Outcome, Watch) = Simulation::new(&compiled.simulation, watch).unwrap().run();
    seen.sojourns.sort_unstable();
    let quantile = |q: f64| seen.sojourns[((seen.sojourns.len() - 1) as f64 * q) as usize] as f64 / 1e6;
    let second = Time::ZERO + Span::from_secs(1);
    let shares: Vec<f64> = outcome.flows.iter().map(|flow| flow.delivered.get() as f64).collect();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    Seen {
        goodput_mbps: seen.delivered[1] as f64 * 8.0 / outcome.ended.since(warm).as_secs_f64() / 1e6,
        mean_ms: seen.sojourns.iter().sum::<u64>() as f64 / seen.sojourns.len() as f64 / 1e6,
        p50_ms: quantile(0.5),
        p95_ms: quantile(0.95),
        p99_ms: quantile(0.99),
        drops: seen.drops.len() as u64,
        drops_first_second: seen.drops.iter().filter(|at| **at < second).count() as u64,
        marks: seen.marks,
        retransmitted: outcome.flows.iter().map(|flow| flow.retransmitted).sum(),
        cwnd_mean: seen.windows.iter().map(|cwnd| f64::from(*cwnd)).sum::<f64>() / seen.windows.len() as f64,
        cwnd_range: (*seen.windows.iter().min().unwrap(), *seen.windows.iter().max().unwrap()),
        period_s: match seen.reductions.as_slice() {
            [first, .., last] => last.since(*first).as_secs_f64() / (seen.reductions.len() - 1) as f64,
            _ => f64::NAN,
        },
        recoveries: outcome.flows.iter().map(|flow| flow.recoveries).sum(),
        whole_goodput: sum * 8.0 / outcome.ended.as_secs_f64() / 1e6,
        jain: sum * sum / squares / shares.len() as f64,
    }
}

/// Within 5 % or 0.3 ms, whichever is larger.
fn delay_agrees(what: &str, ours_ms: f64, theirs_ms: f64) {
    let allowed = (theirs_ms * 0.05).max(0.3);
    assert!((ours_ms - theirs_ms).abs() <= allowed, "{what}: {ours_ms} ms, not {theirs_ms} ms");
}

/// Within a share of the reference.
fn agrees(what: &str, ours: f64, theirs: f64, share: f64) {
    assert!((ours - theirs).abs() <= share * theirs, "{what}: {ours}, not {theirs}");
}

const TEN_SECONDS: Span = Span::from_secs(10);
const FIVE_SECONDS: Span = Span::from_secs(5);

#[test]
fn one_cubic_flow_over_drop_tail_does_what_it_does_in_ns3() {
    let ours = run("ns3-a.toml", TEN_SECONDS, 1);
    agrees("goodput", ours.goodput_mbps, 96.405, 0.01);
    delay_agrees("mean", ours.mean_ms, 16.17);
    delay_agrees("median", ours.p50_ms, 17.24);
    delay_agrees("P99", ours.p99_ms, 19.89);
    agrees("period", ours.period_s, 4.98, 0.05);
    agrees("cwnd mean", ours.cwnd_mean, 302.8, 0.05);
    assert_eq!(ours.cwnd_range, (233, 334), "to the packet");
    // ns-3 loses 156: its HyStart leaves only when the RTT has doubled, so that its start
    // overshoots further. Later losses agree: about one per saw-tooth in both.
    let later = ours.drops - ours.drops_first_second;
    assert!((17..=22).contains(&later), "{later}");
}

#[test]
fn one_cubic_flow_with_an_ack_per_segment_does_what_it_does_in_ns3() {
    let ours = run("ns3-a1.toml", TEN_SECONDS, 1);
    agrees("goodput", ours.goodput_mbps, 96.405, 0.01);
    delay_agrees("mean", ours.mean_ms, 16.21);
    delay_agrees("median", ours.p50_ms, 17.36);
    delay_agrees("P99", ours.p99_ms, 19.89);
    agrees("period", ours.period_s, 4.99, 0.05);
    agrees("drops", ours.drops as f64, 37.0, 0.2);
}

#[test]
fn ten_reno_flows_fill_the_link_fairly_as_in_ns3() {
    let ours = run("ns3-b.toml", TEN_SECONDS, 1);
    agrees("goodput", ours.goodput_mbps, 96.405, 0.01);
    assert!(ours.jain > 0.95, "{}", ours.jain);
    delay_agrees("P99", ours.p99_ms, 19.60);
    // Differs: twice the losses of ns-3 (1489), and with them a mean delay 1 ms lower. ns-3's
    // NewReno adds MSS^2/cwnd per ACK, which with delayed ACKs is half a packet per RTT; flowstart
    // counts acknowledged packets as Linux does, a whole one. Twice the growth is twice the losses.
    assert!(ours.recoveries > 2 * 689 * 9 / 10 && ours.recoveries < 2 * 689 * 12 / 10, "{}", ours.recoveries);
}

#[test]
fn two_dctcp_flows_under_step_marking_do_what_they_do_in_ns3() {
    let ours = run("ns3-d.toml", TEN_SECONDS, 1);
    agrees("goodput", ours.goodput_mbps, 96.08, 0.01);
    delay_agrees("mean", ours.mean_ms, 0.69);
    delay_agrees("median", ours.p50_ms, 0.73);
    delay_agrees("P99", ours.p99_ms, 1.45);
    agrees("marks", ours.marks as f64, 111_728.0, 0.1);
    assert_eq!((ours.drops, ours.retransmitted), (0, 0));
    assert!(ours.jain > 0.99);
}

#[test]
fn linux_cubic_at_100_mbit_does_what_the_kernel_did() {
    let ours = run("linux-cubic-100m.toml", FIVE_SECONDS, 1);
    agrees("goodput of the whole run", ours.whole_goodput, 96.27, 0.01);
    delay_agrees("mean", ours.mean_ms, 16.05);
    delay_agrees("median", ours.p50_ms, 16.96);
    delay_agrees("P95", ours.p95_ms, 19.72);
    assert_eq!((ours.drops, ours.drops_first_second), (22, 17), "to the packet");
    agrees("period", ours.period_s, 5.02, 0.05);
}

#[test]
fn linux_cubic_at_10_mbit_does_what_the_kernel_did() {
    let ours = run("linux-cubic-10m.toml", FIVE_SECONDS, 1);
    agrees("goodput of the whole run", ours.whole_goodput, 9.65, 0.01);
    delay_agrees("mean", ours.mean_ms, 100.4);
    delay_agrees("median", ours.p50_ms, 98.8);
    delay_agrees("P95", ours.p95_ms, 118.0);
    // Differs: six losses at the end of the start, where Linux 6.1 had none in the first second;
    // slow start ends at another threshold (Linux itself ends it at 51 packets in 6.1 and at 30 in
    // 6.18). All losses together agree.
    agrees("drops", ours.drops as f64, 27.0, 0.2);
}

#[test]
fn linux_dctcp_does_what_the_kernel_did() {
    let ours = run("linux-dctcp-100m.toml", FIVE_SECONDS, 1);
    agrees("goodput of the whole run", ours.whole_goodput, 93.8, 0.01);
    delay_agrees("mean", ours.mean_ms, 0.68);
    delay_agrees("median", ours.p50_ms, 0.72);
    delay_agrees("P95", ours.p95_ms, 1.20);
    agrees("marks", ours.marks as f64, 20_030.0, 0.1);
    assert_eq!(ours.drops, 0);
}

/// Prints every number for docs/validation.md:
/// `cargo test --test references -- --ignored --nocapture`.
#[test]
#[ignore = "prints, checks nothing"]
fn print_all_numbers() {
    for name in ["ns3-a", "ns3-a1", "ns3-b", "ns3-d", "ns3-dred"] {
        println!("{name} {:#?}", run(&format!("{name}.toml"), TEN_SECONDS, 1));
    }
    for name in ["linux-cubic-100m", "linux-cubic-10m", "linux-dctcp-100m"] {
        println!("{name} {:#?}", run(&format!("{name}.toml"), FIVE_SECONDS, 1));
    }
}
