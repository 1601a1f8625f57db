//! What a packet costs in a queue and on a link: enqueue and dequeue of the simulator's packet at a
//! standing length, and a transmission.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_network::packet::{Body, Datagram};
use flowstart_network::{Dequeue, Ecn, Packet, Queue, QueueConfig, RateSchedule, RateStep, Transmitter};
use flowstart_units::{Rate, Span, Time};

/// Packets standing in the queue.
const STANDING: u32 = 64;
/// Flows that send them in turns.
const FLOWS: u32 = 16;

fn packet(number: u32) -> Packet {
    let body = Body::Datagram(Datagram { number: u64::from(number), sent_at: Time::ZERO });
    Packet { flow: number % FLOWS, bytes: 1500, ecn: Ecn::Ect0, body }
}

fn queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    group.throughput(Throughput::Elements(1));
    for name in QueueConfig::NAMES {
        let Some(config) = QueueConfig::from_name(name) else { continue };
        group.bench_function(name, |bencher| {
            let mut queue = Queue::new(&config, 1);
            let (mut now, mut number) = (Time::ZERO, 0_u32);
            for _ in 0..STANDING {
                number += 1;
                queue.enqueue(now, packet(number), &mut |_, _| {});
            }
            bencher.iter(|| {
                now += Span::from_micros(10);
                number = number.wrapping_add(1);
                queue.enqueue(now, black_box(packet(number)), &mut |_, _| {});
                match queue.dequeue(now, &mut |_, _| {}) {
                    Dequeue::Packet(packet, arrived) => (packet.bytes, arrived),
                    _ => (0, now),
                }
            });
        });
    }
    group.finish();
}

fn transmitters(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transmit");
    group.throughput(Throughput::Elements(1));
    let constant = RateSchedule::Constant(Rate::from_mbps(100));
    let steps =
        (0..100).map(|n| RateStep { at: Time::from_nanos(1_000_000 * n), rate: Rate::from_mbps(50 + n) }).collect();
    let varying = RateSchedule::Steps { steps, period: Some(Span::from_millis(100)) };
    let cases = [
        ("constant_rate_equal_sizes", &constant, [1500, 1500]),
        ("constant_rate_changing_sizes", &constant, [1500, 52]),
        ("varying_rate", &varying, [1500, 1500]),
    ];
    for (name, schedule, sizes) in cases {
        group.bench_function(name, |bencher| {
            let mut link = Transmitter::new(schedule);
            let (mut now, mut turn) = (Time::ZERO, 0);
            bencher.iter(|| {
                turn ^= 1;
                now = link.transmit(now, black_box(sizes[turn]));
                now
            });
        });
    }
    group.finish();
}

criterion_group!(benches, queues, transmitters);
criterion_main!(benches);
