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
use super::{Disturbance, Lateness, queue_cases, rtt, simulate, watch};

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
    let mut compiled = case.longer(0.0).unwrap().simulation(run).unwrap();
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
        .map(|disturbance| simulate(case, run, disturbance).unwrap().0[2].unwrap());
    [hosts, plain, replayed]
}

/// The mean of the medians of some runs: with such hosts, without, and replayed.
fn means(acks_us: u64, timers_us: u64) -> [f64; 3] {
    let runs = [0, 2, 4].map(|run| medians(acks_us, timers_us, run));
    std::array::from_fn(|of| runs.iter().map(|run| run[of]).sum::<f64>() / runs.len() as f64)
}

#[test]
fn what_is_read_of_late_hosts_and_replayed_gives_their_queue() {
    for (acks, timers) in [(200, 0), (0, 100), (200, 100)] {
        let [hosts, plain, replayed] = means(acks, timers);
        assert!((replayed / hosts - 1.0).abs() < 0.03, "{acks} us, {timers} us: {replayed} ms, not {hosts}");
        // Late ACKs make it longer, and that is what would be missed.
        assert!(acks == 0 || plain < 0.9 * hosts, "{plain} {hosts}");
    }
}
