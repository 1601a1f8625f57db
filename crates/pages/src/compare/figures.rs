//! The pictures of a race.

use flowstart_race::measures::EXIT_RTTS;
use flowstart_race::{RaceResult, Series, Spread};
use flowstart_report::{Axis, Color, Figure, Legend, Series as Curve};

/// Most points of a curve: pages stay small, and no screen has more columns.
const MOST_POINTS: usize = 1200;

/// Round trips that pictures show at least at first.
const FIRST_RTTS: f64 = 10.0;
/// What is shown behind the last exit, as a share of what is before.
const MARGIN: f64 = 0.25;

/// What the page begins with: how much arrived, and what it cost in delay.
pub(super) fn lead(result: &RaceResult, colors: &[Color]) -> Vec<Figure> {
    vec![delivered(result, colors), delay(result, colors)]
}

/// Titles of all pictures, for `--figure`.
pub const TITLES: [&str; 5] = ["Delivered", "Queueing delay", "Sending rate", "Throughput", "Congestion window"];

/// All others.
pub(super) fn others(result: &RaceResult, colors: &[Color]) -> Vec<Figure> {
    vec![sending(result, colors), throughput(result, colors), window(result, colors)]
}

/// Round trips that are shown first: to the last exit and some more. Means that are no exit (none
/// within the race) do not count.
pub(super) fn first_rtts(result: &RaceResult) -> f64 {
    let horizon = result.race.reference().horizon_rtts();
    let exits = result.contestants.iter().filter_map(|contestant| contestant.estimate(EXIT_RTTS.measure()));
    let last = exits.map(|exit| exit.mean).filter(|exit| *exit < horizon).fold(0.0, f64::max);
    (last * (1.0 + MARGIN)).ceil().max(FIRST_RTTS).min(horizon)
}

type Pick = fn(&Series) -> &Vec<[f64; 2]>;
type PickSpread = fn(&Spread) -> &Vec<[f64; 3]>;

fn figure(
    result: &RaceResult,
    colors: &[Color],
    (title, caption): (&str, &str),
    y: Axis,
    (pick, pick_spread): (Pick, PickSpread),
) -> Figure {
    let race = &result.race;
    let x = Axis::new("Time since the first data bit reached the bottleneck", "RTT")
        .first_seen(0.0, first_rtts(result))
        .also(race.base_rtt().as_secs_f64(), "s");
    let mut figure = Figure::new(title, x, y);
    figure.legend = Legend::AtCurves;
    caption.clone_into(&mut figure.caption);
    let mut runs = 1;
    // Bands first: curves lie upon them.
    for (contestant, color) in result.contestants.iter().zip(colors) {
        if let Some(spread) = contestant.series.as_ref().and_then(|series| series.spread.as_ref()) {
            runs = runs.max(spread.runs);
            figure.series.push(Curve::band(&contestant.label, *color, thinned_band(pick_spread(spread))));
        }
    }
    for (contestant, color) in result.contestants.iter().zip(colors) {
        if let Some(series) = &contestant.series {
            figure.series.push(Curve::line(&contestant.label, *color, thinned(pick(series))));
        }
    }
    if runs > 1 {
        let between = if runs < 10 { "all of them" } else { "four fifths of them" };
        figure.caption.push_str(&format!(" Median of {runs} runs; {between} lie in the bands."));
    }
    if runs == 1 && race.effective_runs() > 1 {
        figure.caption.push_str(&format!(" Run 1 of {}.", race.effective_runs()));
    }
    if race.flows > 1 {
        figure.caption.push_str(" The first newcomer.");
    }
    figure
}

fn delivered(result: &RaceResult, colors: &[Color]) -> Figure {
    let caption = "Stream bytes that the receiving application has read, in order: higher is faster.";
    let y = Axis::new("Delivered", "MB");
    figure(result, colors, ("Delivered", caption), y, (|s| &s.delivered, |s| &s.delivered))
}

fn delay(result: &RaceResult, colors: &[Color]) -> Figure {
    let caption = "Longest wait at the bottleneck within an eighth of an RTT: lower is kinder to everybody.";
    figure(result, colors, ("Queueing delay", caption), Axis::new("Queueing delay", "ms"), (|s| &s.queue, |s| &s.queue))
}

fn sending(result: &RaceResult, colors: &[Color]) -> Figure {
    let caption = "IP packets that left the sender during the RTT before.";
    let y = Axis::new("Sending rate", "Mbit/s");
    let mut figure = figure(result, colors, ("Sending rate", caption), y, (|s| &s.sending, |s| &s.sending));
    mark_rates(&mut figure, result);
    figure
}

fn throughput(result: &RaceResult, colors: &[Color]) -> Figure {
    let caption = "What left the bottleneck for the first time during the RTT before.";
    let y = Axis::new("Throughput", "Mbit/s");
    let mut figure = figure(result, colors, ("Throughput", caption), y, (|s| &s.throughput, |s| &s.throughput));
    mark_rates(&mut figure, result);
    figure
}

fn window(result: &RaceResult, colors: &[Color]) -> Figure {
    let y = Axis::new("Congestion window", "packets");
    let words = ("Congestion window", "How many packets the sender lets be in flight.");
    let mut figure = figure(result, colors, words, y, (|s| &s.cwnd, |s| &s.cwnd));
    figure.mark_y(result.race.reference().bdp() / f64::from(result.race.packet()), "BDP");
    figure
}

fn mark_rates(figure: &mut Figure, result: &RaceResult) {
    let capacity = result.race.capacity().as_mbps_f64();
    let fair = result.race.reference().fair_share.as_mbps_f64();
    figure.mark_y(capacity, "capacity");
    if fair < capacity {
        figure.mark_y(fair, "fair share");
    }
}

/// At most [`MOST_POINTS`] areas: of each stretch the widest.
fn thinned_band(areas: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let stretch = areas.len().div_ceil(MOST_POINTS).max(1);
    let joined = areas.chunks(stretch).map(|chunk| {
        let low = chunk.iter().map(|area| area[1]).fold(f64::INFINITY, f64::min);
        let high = chunk.iter().map(|area| area[2]).fold(f64::NEG_INFINITY, f64::max);
        [chunk[0][0], low, high]
    });
    joined.collect()
}

/// At most [`MOST_POINTS`] points: of each stretch its first, lowest and highest, so that peaks
/// stay.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let stretch = (points.len() * 2).div_ceil(MOST_POINTS);
    points
        .chunks(stretch)
        .flat_map(|chunk| {
            let low = chunk.iter().min_by(|a, b| a[1].total_cmp(&b[1])).copied();
            let high = chunk.iter().max_by(|a, b| a[1].total_cmp(&b[1])).copied();
            let mut both: Vec<[f64; 2]> = low.into_iter().chain(high).collect();
            both.sort_by(|a, b| a[0].total_cmp(&b[0]));
            both.dedup();
            both
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_peaks() {
        let mut points: Vec<[f64; 2]> = (0..10_000).map(|i| [f64::from(i), 1.0]).collect();
        points[7777][1] = 99.0;
        points[3333][1] = -5.0;
        let thin = thinned(&points);
        assert!(thin.len() <= MOST_POINTS);
        assert!(thin.contains(&[7777.0, 99.0]) && thin.contains(&[3333.0, -5.0]));
        assert!(thin.is_sorted_by(|a, b| a[0] <= b[0]));
    }
}
