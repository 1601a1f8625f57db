//! A second estimator, written from the paper's procedure and not from the crate's code: all
//! samples in memory, thinned by counting, both tests by their textbook formulas (least squares by
//! normal equations), the quantile by sorting. It must agree with the crate on every rate that
//! either accepts. Only the random choice of packets is shared, for it is given by the seed.

#[path = "common/servers.rs"]
#[allow(dead_code, reason = "closed forms are for other tests")]
mod servers;

use flowstart_service_curve::stats::{DfGlsConfig, Gaps, Series, SplitMix64, dfgls};
use flowstart_service_curve::{Accepted, ProbeConfig, ProbeVerdict, RateProbe, probe_rate};
use flowstart_units::{Rate, Span};
use servers::Server;

/// What the second estimator says of a rate that it accepts.
#[derive(Debug)]
struct Opinion {
    thinning: usize,
    /// Runs test and DF-GLS (with its lags and critical value); `None` where delays hardly vary.
    tests: Option<(f64, f64, usize, f64)>,
    quantile: Span,
}

/// The paper's procedure; `None` if the rate is not accepted.
fn opinion(delays: &[Span], rate: Rate, config: &ProbeConfig) -> Option<Opinion> {
    let per_second = rate.as_bps() as f64 / (config.packet.get() * 8) as f64;
    let warm = (config.warm_up.as_secs_f64() * per_second) as usize;
    let mut at = warm;
    let mut samples = Vec::new();
    for gap in Gaps::new(config.sampling_gap.as_secs_f64() * per_second, config.seed) {
        at += gap as usize;
        let Some(delay) = delays.get(at - 1) else { break };
        samples.push(*delay);
    }
    let mut thinning = 1;
    while (config.samples - 1) * thinning < samples.len() {
        let kept: Vec<Span> = (0..config.samples).map(|n| samples[n * thinning]).collect();
        let y: Vec<f64> = kept.iter().map(|delay| delay.as_secs_f64()).collect();
        let mut sorted = kept.clone();
        sorted.sort();
        let beyond = (config.epsilon.get() * kept.len() as f64 + 1e-9) as usize;
        let quantile = sorted[kept.len() - beyond - 1];
        let (z, smaller) = runs(&y);
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        let spread = y.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / y.len() as f64;
        if smaller < 10 || spread.sqrt() < 1e-6 {
            return Some(Opinion { thinning, tests: None, quantile });
        }
        let (statistic, lags) = df_gls(&y);
        let critical = critical(y.len() - 1 - lags);
        // 5 % on either side together.
        if statistic < critical && z.abs() < 1.959_964 {
            return Some(Opinion { thinning, tests: Some((z, statistic, lags, critical)), quantile });
        }
        thinning *= 2;
    }
    None
}

/// The value at 5 % for so many observations.
fn critical(observations: usize) -> f64 {
    let x = 1.0 / observations as f64;
    -1.943_633_25 - 21.727_274_6 * x + 260.815_068 * x * x - 2_269.149_16 * x * x * x
}

/// The z of the number of runs about the median, and the size of the smaller class.
fn runs(y: &[f64]) -> (f64, usize) {
    let mut sorted = y.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) { (sorted[half - 1] + sorted[half]) / 2.0 } else { sorted[half] };
    // "At the median or above" would be all of them.
    let strict = median <= sorted[0];
    let class: Vec<bool> = y.iter().map(|x| if strict { *x > median } else { *x >= median }).collect();
    let n1 = class.iter().filter(|upper| **upper).count();
    let n0 = class.len() - n1;
    let blocks = 1 + (1..class.len()).filter(|i| class[*i] != class[i - 1]).count();
    let (a, b, n) = (n1 as f64, n0 as f64, class.len() as f64);
    let mean = 2.0 * a * b / n + 1.0;
    let variance = 2.0 * a * b * (2.0 * a * b - n) / (n * n * (n - 1.0));
    ((blocks as f64 - mean) / variance.sqrt(), n1.min(n0))
}

/// Elliott, Rothenberg and Stock's statistic with a constant, and the lags that Bayes' criterion
/// chooses on the demeaned series (Perron and Qu).
fn df_gls(y: &[f64]) -> (f64, usize) {
    let n = y.len();
    let mean = y.iter().sum::<f64>() / n as f64;
    let demeaned: Vec<f64> = y.iter().map(|x| x - mean).collect();
    let most = (12.0 * (n as f64 / 100.0).powf(0.25)).ceil() as usize;
    let observations = (n - 1 - most) as f64;
    let criterion = |lags: usize| {
        let (rss, ..) = regress(&demeaned, lags, most);
        observations * (rss / observations).ln() + observations.ln() * lags as f64
    };
    let lags = (0..=most).min_by(|a, b| criterion(*a).total_cmp(&criterion(*b))).unwrap();
    let a = 1.0 - 7.0 / n as f64;
    let (mut zy, mut zz) = (y[0], 1.0);
    for t in 1..n {
        zy += (1.0 - a) * (y[t] - a * y[t - 1]);
        zz += (1.0 - a) * (1.0 - a);
    }
    let level: Vec<f64> = y.iter().map(|x| x - zy / zz).collect();
    let (rss, first, inverse) = regress(&level, lags, lags);
    let freedom = (n - 1 - lags) as f64 - lags as f64 - 1.0;
    (first / (rss / freedom * inverse).sqrt(), lags)
}

/// Differences of `x` from the one number `from` on, on the lagged level and so many lagged
/// differences: the residual sum of squares, the level's coefficient, and its place on the diagonal
/// of the inverse of the normal equations.
fn regress(x: &[f64], lags: usize, from: usize) -> (f64, f64, f64) {
    let d: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let row = |t: usize| std::iter::once(x[t]).chain((1..=lags).map(|j| d[t - j])).collect::<Vec<f64>>();
    let size = lags + 1;
    // The matrix, the right side, and the first column of the unit matrix.
    let mut all = vec![vec![0.0; size + 2]; size];
    for (t, y) in d.iter().enumerate().skip(from) {
        let row: Vec<f64> = row(t).into_iter().chain([*y]).collect();
        for (i, sums) in all.iter_mut().enumerate() {
            sums.iter_mut().zip(&row).for_each(|(sum, x)| *sum += row[i] * x);
        }
    }
    all[0][size + 1] = 1.0;
    for i in 0..size {
        let pivot = (i..size).max_by(|a, b| all[*a][i].abs().total_cmp(&all[*b][i].abs())).unwrap();
        all.swap(i, pivot);
        let by = all[i].clone();
        for (_, other) in all.iter_mut().enumerate().filter(|(k, _)| *k != i) {
            let factor = other[i] / by[i];
            other.iter_mut().zip(&by).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let solved = |column: usize| (0..size).map(|i| all[i][column] / all[i][i]).collect::<Vec<f64>>();
    let coefficients = solved(size);
    let rss = (from..d.len())
        .map(|t| {
            let fitted: f64 = row(t).iter().zip(&coefficients).map(|(x, b)| x * b).sum();
            (d[t] - fitted) * (d[t] - fitted)
        })
        .sum();
    (rss, coefficients[0], solved(size + 1)[0])
}

/// A server, a load and a seed: the delays of a train, its rate, and the procedure.
fn trains() -> impl Iterator<Item = (Server, f64, u64)> {
    let servers = [
        Server::LatencyRate,
        Server::Exponential,
        Server::AmongExponential,
        Server::AmongEqual,
        Server::RandomOnOff,
        Server::Window,
    ];
    let loads = [0.3, 0.6, 0.8, 0.9, 1.05];
    servers
        .into_iter()
        .flat_map(move |server| loads.into_iter().flat_map(move |load| (1..=3).map(move |seed| (server, load, seed))))
}

fn probe(server: Server, load: f64, seed: u64, config: &ProbeConfig) -> (RateProbe, Option<Opinion>) {
    /// How long each train is.
    const SECONDS: f64 = 400.0;
    let config = ProbeConfig { seed, packet: server.packet(), ..config.clone() };
    let rate = server.rate(load);
    let packets = (rate.as_bps() as f64 / config.packet.bits() as f64 * SECONDS) as usize;
    let delays: Vec<Span> = server.delays(load, seed).take(packets).collect();
    (probe_rate(rate, delays.iter().copied(), &config).unwrap(), opinion(&delays, rate, &config))
}

#[test]
fn a_second_estimator_accepts_the_same_rates_by_the_same_samples_and_quantiles() {
    let (mut accepted, mut tested) = (0, 0);
    for (server, load, seed) in trains() {
        let config = ProbeConfig::paper();
        let (found, opinion) = probe(server, load, seed, &config);
        let is_accepted = matches!(found.verdict, ProbeVerdict::Accepted(_));
        assert_eq!(is_accepted, opinion.is_some(), "{server:?} {load} {seed}: {:?} {opinion:?}", found.verdict);
        let Some(opinion) = opinion else { continue };
        accepted += 1;
        assert_eq!(found.thinning, opinion.thinning as u64, "{server:?} {load} {seed}");
        assert_eq!(found.line(config.epsilon).unwrap().delay, opinion.quantile, "{server:?} {load} {seed}");
        let constant = found.verdict == ProbeVerdict::Accepted(Accepted::Constant);
        assert_eq!(constant, opinion.tests.is_none(), "{server:?} {load} {seed}");
        let Some((z, statistic, lags, critical)) = opinion.tests else { continue };
        tested += 1;
        let (runs, stationary) = (found.independence.unwrap(), found.stationarity.unwrap());
        assert!((runs.z - z).abs() < 1e-9, "{server:?} {load} {seed}: {} {z}", runs.z);
        assert_eq!(stationary.lags, lags, "{server:?} {load} {seed}");
        assert!((stationary.statistic - statistic).abs() < 1e-6 * statistic.abs(), "{server:?} {load} {seed}");
        assert!((stationary.critical.five - critical).abs() < 1e-9, "{server:?} {load} {seed}");
    }
    // Enough to mean something.
    assert!(accepted >= 40 && tested >= 30, "{accepted} {tested}");
}

/// Delays that pass are thinned until they need hardly any lags, and whether the largest number of
/// lags, or the mean that is removed before they are chosen, is right shows nowhere. So also series
/// that need many: what remembers one value long ago, and random walks.
#[test]
fn both_estimators_test_series_of_all_kinds_alike() {
    let mut most = 0;
    for seed in 1..=150_u64 {
        let mut random = SplitMix64::new(seed);
        let n = 50 + random.below(150);
        let ago = 1 + random.below(14);
        let (pull, start) = ([0.3, 0.8, 0.95, 1.0][random.below(4)], 20.0 * random.unit());
        let mut y = vec![start; ago];
        for t in ago..n {
            y.push(pull * y[t - ago] + random.normal());
        }
        let found = dfgls(&Series::new(y.clone()).unwrap(), &DfGlsConfig::default()).unwrap();
        let (statistic, lags) = df_gls(&y);
        assert_eq!(found.lags, lags, "{seed}: {n} values, {pull} of {ago} ago");
        assert!((found.statistic - statistic).abs() < 1e-6 * statistic.abs().max(1.0), "{seed}");
        assert!((found.critical.five - critical(n - 1 - lags)).abs() < 1e-9, "{seed}");
        most = most.max(lags);
    }
    assert!(most >= 11, "{most}");
}

#[test]
fn by_the_default_procedure_too_accepted_samples_pass_the_second_estimators_tests() {
    let mut tested = 0;
    for (server, load, seed) in trains() {
        let config = ProbeConfig::default();
        let (found, _) = probe(server, load, seed, &config);
        if !matches!(found.verdict, ProbeVerdict::Accepted(_)) {
            continue;
        }
        let mut sorted = found.samples.clone();
        sorted.sort();
        let beyond = (config.epsilon.get() * sorted.len() as f64 + 1e-9) as usize;
        let quantile = found.line(config.epsilon).unwrap().delay;
        assert_eq!(quantile, sorted[sorted.len() - beyond - 1], "{server:?} {load} {seed}");
        if found.verdict == ProbeVerdict::Accepted(Accepted::Tested) {
            let y: Vec<f64> = found.samples.iter().map(|delay| delay.as_secs_f64()).collect();
            let ((z, _), (statistic, _)) = (runs(&y), df_gls(&y));
            assert!(z.abs() < 1.96 && statistic < -1.9, "{server:?} {load} {seed}: {z} {statistic}");
            tested += 1;
        }
    }
    assert!(tested >= 30, "{tested}");
}
