//! BBR version 3 alone on a path: what draft-ietf-ccwg-bbr-06 promises, beside version 1.

use crate::common::{flow, link, simulation, tcp};
use flowstart_congestion::avoidance::{Bbr3, Bbr3Mode};
use flowstart_congestion::{Avoidance, AvoidanceConfig, ControllerConfig, start_of};
use flowstart_network::{DropReason, LossConfig, Packet};
use flowstart_simulator::{FlowId, LinkId, Observer, Simulation, SimulationConfig, Stop, Traffic, Workload};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

const RTT: Span = Span::from_millis(40);
const END: Time = Time::from_nanos(40_000_000_000);
/// Packets in flight at 10 Mbit/s and 40 ms.
const BDP: u64 = 33;
const PACKETS_PER_SECOND: f64 = 10e6 / 12_000.0;

#[derive(Default)]
struct Watch {
    waits: Vec<Span>,
    late_drops: u64,
    sent: u64,
    delivered: u64,
    modes: Vec<(Time, Bbr3Mode)>,
    smallest_in_probe: Option<u32>,
    bound: Option<u32>,
}

fn state(sender: &Sender) -> Option<&Bbr3> {
    match sender.controller().avoidance() {
        Avoidance::Bbr3(bbr) => Some(bbr),
        _ => None,
    }
}

impl Observer for Watch {
    fn dropped(&mut self, now: Time, _: LinkId, _: &Packet, _: Option<DropReason>) {
        self.late_drops += u64::from(now > Time::ZERO + Span::from_secs(2));
    }

    fn transmitted(&mut self, now: Time, _: LinkId, _: &Packet, arrived: Time, _: Time) {
        self.sent += 1;
        self.waits.push(now.since(arrived));
    }

    fn delivered(&mut self, _: Time, _: FlowId, total: u64) {
        self.delivered = total;
    }

    fn sender(&mut self, now: Time, _: FlowId, sender: &Sender) {
        let Some(bbr) = state(sender) else { return };
        if self.modes.last().is_none_or(|(_, mode)| *mode != bbr.mode()) {
            self.modes.push((now, bbr.mode()));
        }
        if bbr.mode() == Bbr3Mode::ProbeRtt {
            let cwnd = sender.controller().cwnd();
            self.smallest_in_probe = Some(self.smallest_in_probe.map_or(cwnd, |least| least.min(cwnd)));
        }
        self.bound = bbr.longterm_bound();
    }
}

fn run(name: &str, buffer: u64, loss: LossConfig) -> Watch {
    let mut traffic = tcp(Workload::Greedy, RTT);
    let avoidance = AvoidanceConfig::from_name(name).unwrap();
    traffic.controller = ControllerConfig::new(start_of(&avoidance), avoidance);
    let mut bottleneck = link(10, RTT / 2, Some(buffer));
    bottleneck.loss = loss;
    let config: SimulationConfig =
        simulation(vec![bottleneck], vec![flow(Traffic::Tcp(Box::new(traffic)), RTT)], Stop::At(END));
    Simulation::new(&config, Watch::default()).unwrap().run().1
}

fn share(watch: &Watch) -> f64 {
    watch.delivered as f64 / 1448.0 / (PACKETS_PER_SECOND * END.as_secs_f64())
}

#[test]
fn it_goes_through_its_states_in_order_and_probes_the_rtt_every_five_seconds_with_half_a_bdp() {
    use Bbr3Mode::{Drain, ProbeCruise, ProbeDown, ProbeRefill, ProbeRtt, ProbeUp, Startup};
    let mut watch = run("bbr3", 1_000, LossConfig::None);
    assert!(share(&watch) > 0.95, "{}", share(&watch));
    watch.waits.sort_unstable();
    let median = watch.waits[watch.waits.len() / 2];
    assert!(median < RTT / 4, "{median}");
    for pair in watch.modes.windows(2) {
        let (before, after) = (pair[0].1, pair[1].1);
        let may = match before {
            Startup => matches!(after, Drain | ProbeRtt),
            Drain => matches!(after, ProbeDown | ProbeCruise | ProbeRtt),
            ProbeDown => matches!(after, ProbeCruise | ProbeRefill | ProbeRtt),
            ProbeCruise => matches!(after, ProbeRefill | ProbeRtt),
            ProbeRefill => matches!(after, ProbeUp | ProbeRtt),
            ProbeUp => matches!(after, ProbeDown | ProbeRtt),
            ProbeRtt => matches!(after, ProbeCruise | ProbeRefill | Startup),
            Bbr3Mode::Waiting => false,
        };
        assert!(may, "{pair:?}");
    }
    let times = |mode: Bbr3Mode| watch.modes.iter().filter(|(_, other)| *other == mode).map(|(at, _)| *at).collect();
    let probes: Vec<Time> = times(ProbeRtt);
    assert!((6..=8).contains(&probes.len()), "{probes:?}");
    let smallest = u64::from(watch.smallest_in_probe.unwrap());
    assert!((BDP / 2..=BDP / 2 + 3).contains(&smallest), "{smallest}");
    // 33 round trips of about 42 ms, or as many as the path holds packets: 1.4 s.
    let ups: Vec<Time> = times(ProbeUp);
    assert!((12..=28).contains(&ups.len()), "{}", ups.len());
    assert_eq!(watch.bound, None, "nothing was lost");
}

/// At 1 % Reno's window would be sqrt(1.5 / 0.01) = 12 packets; at 10 %, five times what version 3
/// bears while it probes, version 1 goes on.
#[test]
fn losses_below_its_threshold_cost_little_and_many_more_cost_what_version_1_does_not_pay() {
    let at = |name, probability| share(&run(name, 1_000, LossConfig::Bernoulli { probability }));
    let reno = (1.5_f64 / 0.01).sqrt() / BDP as f64;
    assert!(at("bbr3", 0.01) > 2.0 * reno, "{}", at("bbr3", 0.01));
    assert!(at("bbr3", 0.1) < 0.7 * at("bbr", 0.1), "{} and {}", at("bbr3", 0.1), at("bbr", 0.1));
}

#[test]
fn in_a_shallow_buffer_it_finds_a_bound_and_loses_less_than_version_1() {
    let [old, new] = ["bbr", "bbr3"].map(|name| run(name, BDP / 4, LossConfig::None));
    assert!(share(&new) > 0.85, "{}", share(&new));
    assert!(new.bound.is_some());
    assert!(new.late_drops * 2 < old.late_drops, "{} and {}", new.late_drops, old.late_drops);
    assert!(new.late_drops * 50 < new.sent, "below 2 %: {} of {}", new.late_drops, new.sent);
}
