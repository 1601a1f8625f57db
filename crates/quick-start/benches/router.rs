//! Processing cost of a router: nanoseconds per packet for plain forwarding, with metering, and
//! with 1 % and 100 % Quick-Start requests (Scharf and Strotbek, figure 6).
//! `cargo bench -p flowstart-quick-start --bench router`.

mod cases;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn forwarding(criterion: &mut Criterion) {
    for (six, name) in [(false, "ipv4"), (true, "ipv6")] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(cases::BATCH as u64));
        for case in cases::all().iter().filter(|case| case.six == six) {
            let mut bench = cases::Bench::new(case);
            group.bench_function(case.name, |bencher| bencher.iter(|| bench.run()));
        }
        group.finish();
    }
}

criterion_group!(benches, forwarding);
criterion_main!(benches);
