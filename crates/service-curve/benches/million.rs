//! How long a million independent samples of one rate take: the adaptive window loop with window
//! validation, the tests, the quantile. The aim is a minute. A single long run, so no statistics
//! over repetitions. Of the train only the samples and a histogram are kept, so that the memory is
//! that of a million numbers and of the test's regressions on them, however many packets there are.

use std::time::Instant;

use flowstart_service_curve::stats::{DfGlsConfig, LagChoice};
use flowstart_service_curve::{AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, Growth, ProbeConfig, probe_rate};
use flowstart_units::Rate;

fn main() {
    // With this many samples the runs test sees correlations of two in a thousand; 1000 packets per
    // second.
    let stationarity = DfGlsConfig { lags: LagChoice::Bic, max_lags: Some(8), ..DfGlsConfig::default() };
    let config = ProbeConfig { samples: 1_000_000, stationarity, ..ProbeConfig::default() };
    let of = AdaptiveLoopConfig { growth: Growth::WhenLimited, ..AdaptiveLoopConfig::default() };
    let rate = Rate::from_mbps(12);
    let train = AdaptiveLoop::new(of, ConstantRate::new(rate, config.packet), 1).expect("a valid loop");
    let began = Instant::now();
    let probe = probe_rate(rate, train.delays(), &config).expect("a valid configuration");
    let took = began.elapsed().as_secs_f64();
    println!(
        "{} samples of {} packets (each {}th sample kept, {:?}) in {took:.1} s: {:.1} million packets/s",
        probe.samples.len(),
        probe.packets,
        probe.thinning,
        probe.verdict,
        probe.packets as f64 / took / 1e6
    );
    if let Some(peak) = peak_memory() {
        println!("most memory: {peak}");
    }
}

/// The most memory that this process has had so far, where Linux says so.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
