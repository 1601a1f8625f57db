//! The simulator in the kernel's place, with hosts that are known to be late: what is recorded of
//! it and replayed has the queue that it has.

use flowstart_emulator::traffic::{Sample, TcpInfo};
use flowstart_emulator::{Given, Tcp};
use flowstart_network::packet::Body;
use flowstart_network::{Jitter, JitterConfig, LateArrivals, Packet};
use flowstart_simulator::{FlowId, Observer, Simulation};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

use super::acks::{Hosts, late_acks};
use super::cases::BACK;
use super::sends::late_sends;
use super::tick::USUAL;
use super::{Disturbance, Lateness, disturbed, queue_cases, rtt, simulate, watch};

/// Notes of a simulation what is known of a run of the kernel.
#[derive(Default)]
struct Notes {
    given: Vec<Given>,
    sent: Vec<(Time, u32)>,
    samples: Vec<Sample>,
}

impl Observer for Notes {
    fn sent(&mut self, now: Time, packet: &Packet) {
        if let Body::Segment(segment) = &packet.body
            && segment.payload > 0
        {
            self.sent.push((now, segment.payload));
        }
    }

    fn received(&mut self, now: Time, packet: &Packet) {
        let (host, sequence, payload, acknowledgement) = match &packet.body {
            Body::Segment(segment) => (1, segment.seq as u32, segment.payload, 0),
            Body::Ack(ack) => (0, 0, 0, ack.ack as u32),
            Body::Datagram(_) => return,
        };
        let tcp = Some(Tcp { sequence, acknowledgement, flags: 16, payload });
        self.given.push(Given { host, due: now, at: now, tcp });
    }

    fn sender(&mut self, now: Time, _: FlowId, sender: &Sender) {
        if self.samples.last().is_none_or(|last| now.since(last.at) >= Span::from_millis(1)) {
            let controller = sender.controller();
            let info = TcpInfo {
                pacing_rate: controller.pacing_rate().map(|rate| rate.as_bps() / 8),
                cwnd: controller.cwnd(),
                unacked: sender.stats().packets_out,
                ..TcpInfo::default()
            };
            self.samples.push(Sample { at: now, info, delivered: 0 });
        }
    }
}

/// Timers that are late by up to so many us, another for each tenth of a millisecond.
fn late_timers(most_us: u64, seed: u64) -> LateArrivals {
    let config = JitterConfig { spread: Span::from_micros(most_us), reorder: true };
    let mut jitter = Jitter::new(&config, seed);
    let row = (0..200_000).map(|place| {
        let due = Time::ZERO + Span::from_micros(place * 100);
        (due, jitter.delay(due).since(due))
    });
    LateArrivals::new(row.collect())
}

/// BBR behind CoDel: the median wait with such hosts, without, and replayed, in ms.
fn medians(acks_us: u64, timers_us: u64, run: u64) -> [f64; 3] {
    let case = &queue_cases(&["bbr"], &["codel"], false, None)[0];
    let mut compiled = case.longer(USUAL, 0.0).unwrap().simulation(run).unwrap();
    if acks_us > 0 {
        let spread = Span::from_micros(acks_us);
        compiled.simulation.links[BACK].jitter = Some(JitterConfig { spread, reorder: false });
    }
    let back = compiled.simulation.flows[0].return_delay;
    let mut simulation = Simulation::new(&compiled.simulation, (watch(case), Notes::default())).unwrap();
    if timers_us > 0 {
        simulation = simulation.with_late_timers(0, late_timers(timers_us, run));
    }
    let (outcome, (watch, notes)) = simulation.run();
    let hosts = watch.values(&outcome, rtt(case))[2].unwrap();
    let acks = late_acks(&notes.given, Hosts { sender: 0, receiver: 1, back, handshake: None });
    let disturbance = Disturbance {
        acks: Lateness::new(&acks.late),
        timers: Lateness::new(&late_sends(&notes.sent, &notes.samples)),
        ..Disturbance::default()
    };
    let [plain, replayed] = [&Disturbance::default(), &disturbance]
        .map(|disturbance| simulate(case, USUAL, run, disturbance).unwrap().0[2].unwrap());
    [hosts, plain, replayed]
}

/// By what factor the median wait is another than with such hosts: without them, and replayed. Of
/// three runs, the middle one: in a run the wait is one of two, by how BBR's start ended, and now
/// and then a replay ends in the other.
fn factors(acks_us: u64, timers_us: u64) -> [f64; 2] {
    let runs = [0, 2, 4].map(|run| medians(acks_us, timers_us, run));
    [1, 2].map(|of| {
        let mut factors = runs.map(|run| run[of] / run[0]);
        factors.sort_by(f64::total_cmp);
        factors[1]
    })
}

#[test]
fn what_is_read_of_late_hosts_and_replayed_gives_their_queue() {
    for (acks, timers) in [(200, 0), (0, 100), (200, 100)] {
        let [plain, replayed] = factors(acks, timers);
        assert!((replayed - 1.0).abs() < 0.03, "{acks} us, {timers} us: {replayed}");
        // Late ACKs make it longer, and that is what would be missed.
        assert!(acks == 0 || plain < 0.9, "{plain}");
    }
}

/// From when to when the sender was given nothing for longer than a millisecond, in ms: behind the
/// start, and before BBR keeps its window small to measure the round-trip time.
fn silences(given: &[Given]) -> Vec<(f64, f64)> {
    let acks: Vec<f64> =
        given.iter().filter(|given| given.host == 0).map(|given| given.at.as_secs_f64() * 1e3).collect();
    acks.windows(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|(from, to)| (2_000.0..10_000.0).contains(from) && to - from > 1.0)
        .collect()
}

#[test]
fn acks_are_held_up_when_they_were() {
    let case = &queue_cases(&["bbr"], &["codel"], false, None)[0];
    let given = |config| Simulation::new(config, Notes::default()).unwrap().run().1.given;
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    // Three standstills of the sender's host: what is due in them is there at their end.
    let stops = [(3_104, 3), (6_201, 5), (9_307, 4)];
    let row = stops.map(|(from, lasts)| [(at(from), Span::from_millis(lasts)), (at(from + lasts), Span::ZERO)]);
    let held = row.iter().flat_map(|[begins, ends]| [*begins, (begins.0 + begins.1 / 2, begins.1 / 2), *ends]);
    let mut config = case.longer(USUAL, 0.0).unwrap().simulation(0).unwrap().simulation;
    config.links[BACK].late = LateArrivals::new(held.collect());
    let hosts = given(&config);
    let way = Hosts { sender: 0, receiver: 1, back: config.flows[0].return_delay, handshake: None };
    let disturbance = Disturbance { acks: Lateness::new(&late_acks(&hosts, way).late), ..Disturbance::default() };
    let replayed = given(&disturbed(case, USUAL, 0, &disturbance).unwrap().simulation);
    let [hosts, replayed] = [hosts, replayed].map(|given| silences(&given));
    assert_eq!((hosts.len(), replayed.len()), (3, 3), "{hosts:?} {replayed:?}");
    for (one, other) in hosts.iter().zip(&replayed) {
        assert!((one.0 - other.0).abs() < 0.5 && (one.1 - other.1).abs() < 0.5, "{one:?} {other:?}");
    }
}
