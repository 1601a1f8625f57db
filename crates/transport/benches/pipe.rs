//! Cost of a data packet in the two endpoints (sender, receiver and their share of ACKs; no
//! network), by window and by loss.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_congestion::avoidance::Avoidance;
use flowstart_congestion::start::Start;
use flowstart_congestion::{
    Ack, AvoidanceConfig, CongestionAvoidance, Controller, ControllerConfig, Signal, StartConfig, Window,
};
use flowstart_transport::{Outgoing, Receiver, ReceiverConfig, Sender, SenderConfig};
use flowstart_units::{Span, Time};

/// A window that never changes.
#[derive(Clone)]
struct Fixed(u32);

impl CongestionAvoidance for Fixed {
    fn grow(&mut self, _: &Ack, _: u32, _: &mut Window) {}

    fn reduce(&mut self, _: Time, _: Signal, _: &Window) -> u32 {
        self.0
    }
}

/// A closed loop: packets wait in a FIFO with one departure per 1.2 us (10 Gbit/s), ACKs come back
/// at once.
struct Loop {
    now: Time,
    sender: Sender,
    receiver: Receiver,
    line: VecDeque<Outgoing>,
    /// One packet in so many is lost; 0 for none.
    loss: u64,
    dice: u64,
}

impl Loop {
    fn new(window: u32, loss: u64) -> Self {
        let config = ControllerConfig {
            initial_window: window,
            initial_ssthresh: Some(window),
            ..ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno)
        };
        let avoidance = Avoidance::External(Box::new(Fixed(window)));
        let controller = Controller::join(Start::new(&config), avoidance, &config);
        let mut sender = Sender::new(&SenderConfig { handshake: false, ..SenderConfig::default() }, controller);
        sender.open(Time::ZERO);
        sender.write(Time::ZERO, u64::MAX);
        let receiver = Receiver::new(&ReceiverConfig::every_second_segment());
        let mut this = Self { now: Time::ZERO, sender, receiver, line: VecDeque::new(), loss, dice: 1 };
        this.pump();
        // Warm: the window is full and every buffer has its size.
        this.run(4 * u64::from(window) + 10_000);
        this
    }

    fn pump(&mut self) {
        while let Some(packet) = self.sender.transmit(self.now) {
            self.line.push_back(packet);
        }
    }

    fn run(&mut self, packets: u64) {
        for _ in 0..packets {
            self.now += Span::from_nanos(1_200);
            if let Some(packet) = self.line.pop_front() {
                // Knuth's MMIX generator.
                self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if self.loss == 0 || !(self.dice >> 33).is_multiple_of(self.loss) {
                    self.receiver.on_segment(self.now, &packet.segment, packet.ecn);
                }
            }
            if self.receiver.deadline() <= self.now {
                self.receiver.on_timer(self.now);
            }
            let mut acted = false;
            while let Some(ack) = self.receiver.poll_ack() {
                self.sender.on_ack(self.now, &ack.ack);
                acted = true;
            }
            if self.sender.deadline() <= self.now {
                self.sender.on_timer(self.now);
                acted = true;
            }
            if acted {
                self.pump();
            }
        }
    }
}

fn pipe(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet");
    const BATCH: u64 = 20_000;
    group.throughput(Throughput::Elements(BATCH));
    for (name, loss) in [("lossless", 0), ("loss 1 %", 100)] {
        for window in [20, 400, 100_000] {
            let mut pipe = Loop::new(window, loss);
            group.bench_function(format!("{name}, window {window}"), |bencher| {
                bencher.iter(|| pipe.run(black_box(BATCH)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pipe);
criterion_main!(benches);
