//! The pictures of a benchmark.

use flowstart_benchmark::{Attained, BenchmarkResult};
use flowstart_report::{Axis, Color, Figure, Palette, Series};
use flowstart_service_curve::ProbeVerdict;
use flowstart_units::Span;

use super::tables::kilobytes;

/// The titles of the pictures.
pub(super) const ATTAINABLE: &str = "Attainable rate";
pub(super) const SUSTAINED: &str = "Which rates are sustained";
pub(super) const VIDEO: &str = "Delay bound of a video";
pub(super) const STARTUP: &str = "Start-up service curve";
pub(super) const BURSTS: &str = "Service of bursts";

/// That of the delays of one contestant.
pub(super) fn delays_of(label: &str) -> String {
    format!("Delays, {label}")
}

/// Of the dots of a rate that is undecided every so-many-th is drawn.
const SPARSE: usize = 8;

/// The attainable rate with its band.
pub(super) fn attainable(result: &BenchmarkResult, colors: &[Color], command: &str) -> Figure {
    let mut figure =
        Figure::new(ATTAINABLE, Axis::new("Length of the interval", "s").log(), Axis::new("Attainable rate", "Mbit/s"));
    figure.caption =
        "Payload rate that an interval has at least, except with the table's probability; 95 % bootstrap band."
            .to_owned();
    figure.command = command.to_owned();
    for (one, color) in result.attained.iter().zip(colors) {
        let points = one.band.iter().map(|point| [point.t.as_secs_f64(), point.rate / 1e6]).collect();
        let band = one.band.iter().map(|point| [point.t.as_secs_f64(), point.low / 1e6, point.high / 1e6]).collect();
        figure.series.push(Series::band(&one.label, *color, band));
        figure.series.push(Series::line(&one.label, *color, points));
    }
    if !result.benchmark.race.contestants.is_empty() || !result.benchmark.real.is_empty() {
        let word = if result.benchmark.to.is_some() { "capacity (gross)" } else { "fair share (gross)" };
        figure.mark_y(result.benchmark.fair_share().as_mbps_f64(), word);
    }
    figure
}

/// Distribution of the delays at every probed rate of one contestant.
pub(super) fn delays(one: &Attained, command: &str) -> Figure {
    let mut figure = Figure::new(
        delays_of(&one.label),
        Axis::new("Delay", "ms").log(),
        Axis::new("Fraction of packets delayed longer", "").log(),
    );
    figure.caption =
        "Write to read of every packet after the warm-up, per probing rate; close dots: too high, sparse dots: undecided."
            .to_owned();
    figure.command = command.to_owned();
    let mut palette = Palette::new();
    for probe in &one.estimate.probes {
        let rate = probe.rate.to_string();
        let color = palette.color(&rate);
        let ccdf = probe.delays.ccdf().into_iter().map(|(delay, p)| [delay.as_millis_f64(), p.get()]).collect();
        // What does not count must not look like what does.
        figure.series.push(match probe.verdict {
            ProbeVerdict::Accepted(_) => Series::steps(&rate, color, ccdf),
            ProbeVerdict::NonStationary => Series::points(format!("{rate}, too high"), color, ccdf),
            ProbeVerdict::Undecided(_) => {
                let sparse = ccdf.into_iter().step_by(SPARSE).collect();
                Series::points(format!("{rate}, undecided"), color, sparse)
            }
        });
    }
    figure
}

/// Delay bounds of the video's frames.
pub(super) fn video(result: &BenchmarkResult, colors: &[Color], command: &str) -> Figure {
    let mut figure = Figure::new(
        VIDEO,
        Axis::new("Delay bound", "ms").log(),
        Axis::new("Fraction of frames with a larger bound", ""),
    );
    let rate = result.benchmark.video_rate();
    figure.caption = match &result.benchmark.film {
        Some(film) => format!("A film of {} frames, {rate} in the mean, frames as bursts.", film.frames().len()),
        None => format!("Ten minutes of synthetic video, {rate} in the mean, frames as bursts."),
    };
    figure.command = command.to_owned();
    for (one, color) in result.attained.iter().zip(colors) {
        let mut bounds = one.video.frames.clone();
        bounds.sort_unstable();
        let count = bounds.len() as f64;
        let points = bounds.iter().enumerate().map(|(n, bound)| [bound.as_millis_f64(), 1.0 - (n + 1) as f64 / count]);
        figure.series.push(Series::steps(&one.label, *color, points.collect()));
    }
    figure
}

/// What bursts are served, beside the convex curves.
pub(super) fn bursts(result: &BenchmarkResult, colors: &[Color], command: &str) -> Figure {
    let mut figure = Figure::new(
        BURSTS,
        Axis::new("Time since the burst was handed over", "s").log(),
        Axis::new("Delivered to the application", "kB"),
    );
    let epsilon = result.benchmark.startup_epsilon.get() * 100.0;
    figure.caption = format!(
        "What all but {epsilon} % of bursts of {} packets into an idle connection are served, in steps; the lines are the convex curves from \
         constant rates, which hold for bursts of any size.",
        result.benchmark.burst_packets
    );
    figure.command = command.to_owned();
    for (one, color) in result.attained.iter().zip(colors) {
        let Some(bursts) = &one.bursts else { continue };
        // One that is never served is late without end, and not drawn.
        let served = |at: &&Span| **at < Span::MAX;
        let times: Vec<Span> = bursts.steps().iter().filter(served).copied().collect();
        let steps = times.iter().map(|at| [at.as_secs_f64(), kilobytes(bursts.service(*at))]).collect();
        let convex = times.iter().map(|at| [at.as_secs_f64(), kilobytes(one.estimate.curve.service(*at) as u64)]);
        figure.series.push(Series::steps(&one.label, *color, steps));
        figure.series.push(Series::line(&one.label, *color, convex.collect()));
    }
    figure
}

/// The start-up service curves, with the medians.
pub(super) fn startup(result: &BenchmarkResult, colors: &[Color], command: &str) -> Figure {
    let mut figure = Figure::new(
        STARTUP,
        Axis::new("Time since the connection was opened", "s").log(),
        Axis::new("Delivered to the application", "kB").log(),
    );
    let epsilon = result.benchmark.startup_epsilon.get() * 100.0;
    figure.caption = format!(
        "What all but {epsilon} % of new greedy connections have delivered; the band reaches up to the median."
    );
    figure.command = command.to_owned();
    for (one, color) in result.attained.iter().zip(colors) {
        let Some(curve) = &one.startup else { continue };
        let points = curve.points().map(|(t, bits)| [t.as_secs_f64(), kilobytes(bits)]).collect();
        let band = curve
            .points()
            .zip(curve.median_points())
            .map(|((t, bits), (_, median))| [t.as_secs_f64(), kilobytes(bits), kilobytes(median)])
            .collect();
        figure.series.push(Series::band(&one.label, *color, band));
        figure.series.push(Series::line(&one.label, *color, points));
    }
    figure
}
