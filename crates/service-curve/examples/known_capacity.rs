//! How often the procedure errs where the truth is known: shares of wrong refusals, and how often
//! intervals of the 99 % quantile, and bands of the attainable rate, hold the closed form.
//!
//! `cargo run --release -p flowstart-service-curve --example known_capacity -- [CASES] [SEED]`

#[path = "../tests/common/servers.rs"]
mod servers;

use flowstart_service_curve::stats::SplitMix64;
use flowstart_service_curve::{
    Accepted, BandConfig, Estimate, Probability, ProbeConfig, ProbeVerdict, RateProbe, probe_rate,
};
use flowstart_units::Span;
use servers::Server;

/// Those that serve nobody but the train.
const ALONE: [Server; 5] =
    [Server::LatencyRate, Server::Exponential, Server::OnOff, Server::RandomOnOff, Server::Window];

/// Probes a server for so many seconds at most.
fn probe(server: Server, load: f64, seconds: f64, samples: usize, seed: u64) -> RateProbe {
    let rate = server.rate(load);
    let config = ProbeConfig { samples, seed, packet: server.packet(), ..ProbeConfig::default() };
    let packets = (rate.as_bps() as f64 / config.packet.bits() as f64 * seconds) as usize;
    probe_rate(rate, server.delays(load, seed).take(packets), &config).expect("a probe")
}

/// Wilson's 95 % interval of a share, percent.
fn wilson(part: usize, whole: usize) -> String {
    const Z: f64 = 1.96;
    let (n, p) = (whole.max(1) as f64, part as f64 / whole.max(1) as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    format!("{:.2} % [{:.2}, {:.2}]", 100.0 * p, 100.0 * (middle - half).max(0.0), 100.0 * (middle + half))
}

fn main() {
    let number = |n: usize| std::env::args().nth(n).and_then(|text| text.parse::<u64>().ok());
    let (cases, first) = (number(1).unwrap_or(100), number(2).unwrap_or(1));
    println!("stationary: load 0.3 to 0.98, 60 to 2000 s, 150 or 750 samples");
    let mut all = [0_usize; 4];
    for server in Server::ALL {
        let mut counts = [0_usize; 4];
        for seed in first..first + cases {
            let mut random = SplitMix64::for_part(seed, server as u64);
            let load = 0.3 + 0.68 * random.unit();
            let seconds = 60.0 * (2_000.0_f64 / 60.0).powf(random.unit());
            let samples = if random.coin() { 150 } else { 750 };
            let found = probe(server, load, seconds + 10.0, samples, seed);
            let place = match found.verdict {
                ProbeVerdict::Accepted(Accepted::Dependent) => 1,
                ProbeVerdict::Accepted(_) => 0,
                ProbeVerdict::NonStationary => 2,
                ProbeVerdict::Undecided(_) => 3,
            };
            if place == 2 {
                println!(
                    "  too high: {server:?} load {load:.3} {seconds:.0} s {samples} samples seed {seed} {:?}",
                    found.growth
                );
            }
            counts[place] += 1;
            all[place] += 1;
        }
        println!(
            "{server:?}: accepted {}, dependent {}, too high {}, undecided {}",
            counts[0], counts[1], counts[2], counts[3]
        );
    }
    let whole = all.iter().sum();
    println!("all: too high {}, undecided {}", wilson(all[2], whole), wilson(all[3], whole));
    println!("overloaded: 1.02, 1.05 and 1.2, 1500 s");
    for load in [1.02, 1.05, 1.2] {
        let mut counts = [0_usize; 3];
        for server in Server::ALL {
            for seed in first..first + (cases / 10).max(1) {
                match probe(server, load, 1_500.0, 150, seed).verdict {
                    ProbeVerdict::Accepted(_) => {
                        println!("  accepted: {server:?} {load} {seed}");
                        counts[0] += 1;
                    }
                    ProbeVerdict::NonStationary => counts[1] += 1,
                    ProbeVerdict::Undecided(_) => counts[2] += 1,
                }
            }
        }
        println!("{load}: accepted {}, too high {}, undecided {}", counts[0], counts[1], counts[2]);
    }
    println!("what trains that are too fast were served, 900 s: 95 % intervals");
    for server in ALONE {
        for load in [1.1, 1.2] {
            let (mut held, mut refused, mut width, mut below) = (0, 0, 0.0, 0);
            for seed in first..first + cases {
                let Some(served) = probe(server, load, 900.0, 150, seed).served else { continue };
                let truth = server.rate(1.0).as_bps() as f64;
                let Some((low, high)) = served.interval(Probability::FIVE_PERCENT) else { continue };
                refused += 1;
                held += usize::from(low * (1.0 - 1e-6) <= truth && truth <= high * (1.0 + 1e-6));
                below += usize::from(high * (1.0 + 1e-6) < truth);
                width += (high - low) / truth;
            }
            let mean = 100.0 * width / refused.max(1) as f64;
            println!("{server:?} {load}: of {refused} {}, too low {below}; {mean:.1} % wide", wilson(held, refused));
        }
    }
    println!("intervals of the 99 % quantile, 95 %");
    for server in Server::ALL {
        for (load, seconds) in [(0.51, 1_000.0), (0.79, 1_000.0), (0.95, 1_000.0), (0.95, 200.0)] {
            let Some(truth) = server.quantile(load, 0.01) else { continue };
            let (mut held, mut above, mut below, mut tested, mut dependent) = (0, 0, 0, 0, 0);
            for seed in first..first + cases {
                let found = probe(server, load, seconds, 750, seed);
                let ProbeVerdict::Accepted(how) = found.verdict else { continue };
                tested += 1;
                dependent += usize::from(how == Accepted::Dependent);
                let (low, high) = found.quantile_interval(Probability::ONE_PERCENT, Probability::FIVE_PERCENT);
                // The clock is a nanosecond coarse.
                let (low, high) =
                    (low.map_or(0.0, |x| x.as_secs_f64() - 1e-9), high.map_or(f64::MAX, |x| x.as_secs_f64() + 1e-9));
                held += usize::from(low <= truth && truth <= high);
                above += usize::from(low > truth);
                below += usize::from(high < truth);
            }
            println!(
                "{server:?} {load} {seconds} s: {tested} accepted ({dependent} dependent), {}; too large {above}, too small {below}",
                wilson(held, tested)
            );
        }
    }
    println!("bands of the attainable rate over 1 ms to 1 s, 95 %, of rates of which each is nearly as good somewhere");
    for server in [Server::Exponential, Server::AmongExponential] {
        for (samples, seconds) in [(750, 140.0), (150, 60.0)] {
            bands(server, samples, seconds, first..first + cases);
        }
    }
}

/// How often bands hold the closed form, at each time.
fn bands(server: Server, samples: usize, seconds: f64, seeds: std::ops::Range<u64>) {
    /// Loads of the rates, in tenths.
    const TENTHS: std::ops::RangeInclusive<u64> = 2..=7;
    let load = |tenths: u64| tenths as f64 / 10.0;
    let times = [5, 10, 20, 50, 100, 1_000].map(Span::from_millis);
    let line = |tenths: u64, t: Span| {
        let delay = server.quantile(load(tenths), 0.01).expect("a closed form");
        server.rate(load(tenths)).as_bps() as f64 * (1.0 - delay / t.as_secs_f64())
    };
    let truth = times.map(|t| TENTHS.map(|tenths| line(tenths, t)).fold(0.0, f64::max));
    let (mut all, mut below, mut above) = (0, [0_usize; 6], [0_usize; 6]);
    for seed in seeds {
        let config = ProbeConfig { samples, seed, packet: server.packet(), ..ProbeConfig::default() };
        let train = |tenths: u64| probe(server, load(tenths), seconds, samples, seed * 100 + tenths);
        let probes: Vec<RateProbe> = TENTHS.map(train).collect();
        if !probes.iter().all(|probe| matches!(probe.verdict, ProbeVerdict::Accepted(_))) {
            continue;
        }
        all += 1;
        let band = BandConfig { seed, ..BandConfig::default() };
        let band = Estimate::new(probes, &config).band(&times, &band).expect("a band");
        for (n, point) in band.iter().enumerate() {
            // A bit per second is the clock's nanosecond.
            below[n] += usize::from(truth[n] < point.low - 1.0);
            above[n] += usize::from(truth[n] > point.high + 1.0);
        }
    }
    println!("{server:?}, {samples} samples, {seconds} s: of {all} the truth is below {below:?}, above {above:?}");
}
