//! Processing cost of a router: nanoseconds per packet for plain forwarding, with metering, and with 1 % and 100 % Quick-Start requests
//! (Scharf and Strotbek, figure 6: packets of 50 bytes). `cargo bench -p flowstart-quick-start`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_quick_start::router::{AdmissionConfig, MeterConfig, Router, RouterConfig, forward_plain};
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_units::{Rate, Span, Time};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Packets forwarded in one measurement.
const BATCH: usize = 10_000;
/// Longest packet of the batch: 50 bytes and an option.
const LONGEST: usize = 64;

fn plain() -> Vec<u8> {
    let mut packet =
        vec![0x45, 0, 0, 50, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2, 0x12, 0x34, 0, 80];
    packet.resize(50, 0);
    packet[32] = 0x50;
    let check = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet
}

/// A batch in which every `every`-th packet carries a request; none with 0.
fn packets(every: usize) -> Vec<([u8; LONGEST], usize)> {
    let request = IpOption::Request { rate: RateCode::MAX, ttl: 91, nonce: Nonce::new(0x2aaa_aaaa) };
    let asking = Ipv4::with_option(&plain(), request).unwrap_or_default();
    (0..BATCH)
        .map(|n| {
            let packet = if every > 0 && n % every == 0 { asking.clone() } else { plain() };
            let mut buffer = [0; LONGEST];
            buffer[..packet.len()].copy_from_slice(&packet);
            (buffer, packet.len())
        })
        .collect()
}

/// So much capacity and so short a memory that requests are granted, at a lower rate than asked for: the dearest case.
fn router(extreme: bool) -> Router<Pcg64Mcg> {
    let base = if extreme { AdmissionConfig::extreme } else { AdmissionConfig::paper };
    let meter = MeterConfig::Mean { interval: Span::from_millis(1) };
    let admission = AdmissionConfig { meter, ..base(Rate::from_mbps(10_000)) };
    let config = RouterConfig { requests_per_second: 1_000_000_000, burst: 1_000_000, ..RouterConfig::new(admission) };
    Router::new(&config, Pcg64Mcg::seed_from_u64(1))
}

fn forwarding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("router");
    group.throughput(Throughput::Elements(BATCH as u64));
    // Every packet is copied first, as its TTL would be used up otherwise: this much of all numbers is not the router's.
    let batch = packets(0);
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            for (template, length) in &batch {
                let mut packet = *template;
                black_box(&mut packet[..*length]);
            }
        });
    });
    group.bench_function("plain", |bencher| {
        bencher.iter(|| {
            for (template, length) in &batch {
                let mut packet = *template;
                black_box(forward_plain(black_box(&mut packet[..*length]), 1));
            }
        });
    });
    for (name, every, extreme) in
        [("metered", 0, false), ("1_percent", 100, false), ("100_percent", 1, false), ("1_percent_extreme", 100, true)]
    {
        let batch = packets(every);
        group.bench_function(name, |bencher| {
            let mut router = router(extreme);
            let mut now = Time::ZERO;
            bencher.iter(|| {
                for (template, length) in &batch {
                    now += Span::from_nanos(100);
                    let mut packet = *template;
                    black_box(router.forward(now, black_box(&mut packet[..*length])));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, forwarding);
criterion_main!(benches);
