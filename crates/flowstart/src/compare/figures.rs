//! The pictures of a race.

use flowstart_race::{RaceResult, Series};
use flowstart_report::{Axis, Color, Figure, Legend, Series as Curve};

/// Most points of a curve: pages stay small, and no screen has more columns.
const MOST_POINTS: usize = 1200;

/// Sending rate, throughput, queueing delay, window and delivered bytes over time.
pub(super) fn figures(result: &RaceResult, colors: &[Color], command: &str) -> Vec<Figure> {
    let race = &result.race;
    let capacity = race.capacity().as_mbps_f64();
    let fair = race.reference().fair_share.as_mbps_f64();
    let bdp = race.reference().bdp() / f64::from(race.packet());
    let x = || Axis::new("Time since the first data bit reached the bottleneck", "RTT");
    let figure = |title: &str, y: Axis, caption: &str, pick: fn(&Series) -> &Vec<[f64; 2]>| {
        let mut figure = Figure::new(title, x(), y);
        figure.caption = caption.to_owned();
        figure.command = command.to_owned();
        figure.legend = Legend::Above;
        for (contestant, color) in result.contestants.iter().zip(colors) {
            if let Some(series) = &contestant.series {
                figure.series.push(Curve::line(&contestant.label, *color, thinned(pick(series))));
            }
        }
        figure
    };
    let mut sending = figure(
        "Sending rate",
        Axis::new("Sending rate", "Mbit/s"),
        "IP packets leaving the sender, averaged over a quarter of an RTT.",
        |s| &s.sending,
    );
    let mut throughput = figure(
        "Throughput",
        Axis::new("Throughput", "Mbit/s"),
        "What leaves the bottleneck for the first time, averaged over a quarter of an RTT.",
        |s| &s.throughput,
    );
    for figure in [&mut sending, &mut throughput] {
        figure.mark_y(capacity, "capacity");
        if fair < capacity {
            figure.mark_y(fair, "fair share");
        }
    }
    let queue = figure(
        "Queueing delay",
        Axis::new("Queueing delay", "ms"),
        "Longest wait at the bottleneck of the packets that arrived within an eighth of an RTT.",
        |s| &s.queue,
    );
    let mut cwnd = figure("Congestion window", Axis::new("cwnd", "packets"), "The sender's window.", |s| &s.cwnd);
    cwnd.mark_y(bdp, "BDP");
    let delivered = figure(
        "Delivered",
        Axis::new("Delivered to the application", "MB"),
        "Stream bytes the receiving application has read, in order.",
        |s| &s.delivered,
    );
    vec![sending, throughput, queue, cwnd, delivered]
}

/// Round trips that the picture of the start shows.
const START_RTTS: f64 = 10.0;

/// The one picture of a race: bytes delivered in the first round trips.
pub(super) fn start(result: &RaceResult, colors: &[Color], command: &str) -> Figure {
    let race = &result.race;
    let mut figure = Figure::new(
        "Delivered in the first ten round trips",
        Axis::new("Time since the first data bit reached the bottleneck", "RTT").range(0.0, START_RTTS),
        Axis::new("Delivered to the application", "MB"),
    );
    figure.caption = format!(
        "{}, {} base RTT, buffer {}, seed {}, flowstart {}",
        race.capacity(),
        race.path.rtt,
        race.path.buffer,
        race.seed,
        env!("CARGO_PKG_VERSION")
    );
    figure.command = command.to_owned();
    figure.legend = Legend::AtCurves;
    for (contestant, color) in result.contestants.iter().zip(colors) {
        if let Some(series) = &contestant.series {
            let points = series.delivered.iter().copied().take_while(|[rtts, _]| *rtts <= START_RTTS);
            figure.series.push(Curve::line(&contestant.label, *color, points.collect()));
        }
    }
    figure
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
