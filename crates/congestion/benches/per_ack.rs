//! Cost of one ACK (with the packet it answers and the packets it lets go) by flow start, and by
//! congestion avoidance after the start.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_congestion::{
    Ack, Acked, AvoidanceConfig, Controller, ControllerConfig, Departure, Next, Pacing, Repair, Sent, Signal,
    StartConfig,
};
use flowstart_units::{Span, Time};

/// ACKs per iteration.
const ACKS: u64 = 1000;
const RTT: Span = Span::from_millis(20);
/// One packet per 12 us: 1 Gbit/s.
const SERVICE: Span = Span::from_micros(12);
/// Packets in flight.
const WINDOW: u64 = 1000;

struct Bench {
    controller: Controller,
    now: Time,
    sent: u64,
    acked: u64,
}

impl Bench {
    fn new(config: &ControllerConfig) -> Self {
        Self { controller: Controller::new(config), now: Time::ZERO, sent: 0, acked: 0 }
    }

    /// The same, after a reduction at a window of 1000 packets.
    fn avoiding(config: &ControllerConfig) -> Self {
        let mut bench = Self::new(config);
        bench.controller.set_cwnd(WINDOW as u32);
        let threshold = bench.controller.on_signal(Time::ZERO, Signal::Loss);
        bench.controller.set_cwnd(threshold.unwrap_or(500));
        bench
    }

    /// An ACK of one packet, and a packet sent.
    fn step(&mut self) {
        self.now += SERVICE;
        let (now, number) = (self.now, self.sent);
        let next = Next {
            number,
            bytes: 1448,
            wire_bytes: 1500,
            in_flight: WINDOW as u32 - 1,
            packets_out: WINDOW as u32 - 1,
            queued: u64::MAX,
            retransmission: false,
            srtt: RTT,
            min_rtt: RTT,
        };
        if black_box(self.controller.departure(now, &next)) != Departure::Hold {
            let seq = number * 1448;
            let in_flight = WINDOW as u32;
            self.controller.on_sent(&Sent { now, number, seq, bytes: 1448, in_flight, retransmission: false });
            self.sent += 1;
        }
        if self.sent > self.acked && self.controller.wants_packets() {
            let (number, sent_at) = (self.acked, now - RTT);
            self.controller.on_acked(&Acked {
                now,
                number,
                bytes: 1448,
                sent_at,
                rtt: Some(RTT),
                retransmitted: false,
            });
        }
        self.acked += u64::from(self.sent > self.acked);
        let ack = Ack {
            now,
            acked: 1,
            acked_bytes: 1448,
            marked: 0,
            lost: 0,
            lost_meanwhile: 0,
            rtt: Some(RTT),
            srtt: RTT,
            min_rtt: RTT,
            una: self.acked * 1448,
            next: (self.acked + WINDOW) * 1448,
            advanced: true,
            in_flight: 1,
            packets_out: WINDOW as u32,
            cwnd_limited: true,
            max_packets_out: WINDOW as u32,
            app_limited: false,
            delivered: self.acked,
            rate: None,
            total_lost: 0,
            repair: Repair::Nothing,
        };
        self.controller.on_ack(black_box(&ack));
        self.controller.grow(&ack);
    }
}

fn per_ack(c: &mut Criterion, group: &str, mut make: impl FnMut() -> Vec<(String, Bench)>) {
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Elements(ACKS));
    for (name, _) in make() {
        group.bench_function(&name, |b| {
            let fresh = || make().into_iter().find(|(other, _)| *other == name).unwrap().1;
            b.iter_batched_ref(fresh, |bench| (0..ACKS).for_each(|_| bench.step()), criterion::BatchSize::SmallInput);
        });
    }
}

fn starts(c: &mut Criterion) {
    per_ack(c, "start", || {
        let config = |name: &str| ControllerConfig::new(StartConfig::from_name(name).unwrap(), AvoidanceConfig::Reno);
        StartConfig::NAMES.iter().map(|name| ((*name).to_owned(), Bench::new(&config(name)))).collect()
    });
}

fn avoidances(c: &mut Criterion) {
    per_ack(c, "avoidance", || {
        let config =
            |name: &str| ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::from_name(name).unwrap());
        AvoidanceConfig::NAMES.iter().map(|name| ((*name).to_owned(), Bench::avoiding(&config(name)))).collect()
    });
}

fn pacing(c: &mut Criterion) {
    per_ack(c, "reno paced", || {
        let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
        let on = ControllerConfig { pacing: Pacing::LINUX, ..config.clone() };
        vec![("off".to_owned(), Bench::avoiding(&config)), ("on".to_owned(), Bench::avoiding(&on))]
    });
}

criterion_group!(benches, starts, avoidances, pacing);
criterion_main!(benches);
