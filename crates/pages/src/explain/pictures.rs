//! The pictures of a chirp.

use flowstart_congestion::start::paced_chirping::reading::Reading;
use flowstart_explain::{PacketRow, Part};
use flowstart_report::{Axis, Color, Direction, Figure, Legend, Marker, Series};

use super::{Case, words};

/// From here on times are shown in ms instead of µs.
const MANY_NANOS: u64 = 10_000_000;

/// Unit and its nanoseconds that suit times up to this one.
fn unit(largest: u64) -> (&'static str, f64) {
    if largest < MANY_NANOS { ("µs", 1e3) } else { ("ms", 1e6) }
}

/// Number of each packet as it is counted in tables, and a time.
fn points(rows: &[PacketRow], nanos: f64, value: impl Fn(&PacketRow) -> Option<u64>) -> Vec<[f64; 2]> {
    let numbered = rows.iter().zip(0_u32..);
    numbered.filter_map(|(row, packet)| Some([f64::from(packet), value(row)? as f64 / nanos])).collect()
}

fn figure(case: &Case, title: &str, x: Axis, y: Axis, caption: &str) -> Figure {
    let mut figure = Figure::new(title, x, y);
    figure.legend = Legend::Above;
    figure.caption = format!("{}. {caption}", case.title);
    figure
}

/// When packets leave, and when they come out behind the queue.
pub(super) fn departures(case: &Case) -> Figure {
    let rows = &case.explanation.packets;
    let last = rows.last().map_or(0, |row| row.sent.saturating_add(row.delay));
    let (unit, nanos) = unit(last);
    let mut figure = figure(
        case,
        "A chirp on the wire",
        Axis::new("Time since the first packet left", unit),
        Axis::new("Packet", ""),
        "Left: as sent, closer and closer. Right: as the path delivers it, without what the path takes at least.",
    );
    let places = |time: fn(&PacketRow) -> u64| -> Vec<[f64; 2]> {
        points(rows, nanos, |row| Some(time(row))).into_iter().map(|[packet, time]| [time, packet]).collect()
    };
    let delivered = places(|row| row.sent.saturating_add(row.delay));
    for (name, color, places) in [("sent", 0, places(|row| row.sent)), ("delivered", 1, delivered)] {
        figure.series.push(Series::line(name, Color::new(color), places.clone()));
        figure.series.push(Series::points(name, Color::new(color), places));
    }
    figure
}

/// The queueing delay of each packet, with excursions and knee.
pub(super) fn delays(case: &Case) -> Figure {
    let rows = &case.explanation.packets;
    let (unit, nanos) = unit(rows.iter().map(|row| row.delay).max().unwrap_or(0));
    let mut figure = figure(
        case,
        "Queueing delay of each packet",
        Axis::new("Packet", ""),
        Axis::new("Queueing delay", unit),
        words::delays_caption(case),
    );
    figure.series.push(Series::line("queueing delay", Color::new(0), points(rows, nanos, |row| Some(row.delay))));
    let parts = [
        (Part::Open, "excursion to the end", 1),
        (Part::Ended, "excursion that ended", 2),
        (Part::Spike, "too short to count", 3),
    ];
    for (part, name, color) in parts {
        if rows.iter().all(|row| row.part != part) {
            continue;
        }
        // What is not a number leaves a gap between excursions.
        let mut members = points(rows, nanos, |row| Some(row.delay));
        for ([_, delay], _) in members.iter_mut().zip(rows).filter(|(_, row)| row.part != part) {
            *delay = f64::NAN;
        }
        figure.series.push(Series::line(name, Color::new(color), members));
    }
    if let Some(knee) = case.explanation.knee {
        figure.mark_x(knee as f64, "knee");
    }
    figure
}

/// Gaps as sent and as received, and what the rules make of them.
pub(super) fn gaps(case: &Case) -> Figure {
    let explanation = &case.explanation;
    let rows = &explanation.packets;
    let largest = rows.iter().flat_map(|row| [row.gap, row.received]).flatten().max().unwrap_or(0);
    let (unit, nanos) = unit(largest);
    let mut figure = figure(
        case,
        "Gaps sent and received",
        Axis::new("Packet", ""),
        Axis::new("Gap before the packet", unit),
        words::gaps_caption(case),
    );
    figure.series.push(Series::line("sent", Color::new(0), points(rows, nanos, |row| row.gap)));
    figure.series.push(Series::line("received", Color::new(1), points(rows, nanos, |row| row.received)));
    let mut mark = |gap: u64, what: &str, color: Option<usize>| {
        let label = format!("{what} {}", words::rate(case.rate(gap)));
        let color = color.map(Color::new);
        figure.markers.push(Marker { direction: Direction::Horizontal, at: gap as f64 / nanos, label, color });
    };
    if let Some(estimate) = explanation.estimate {
        mark(estimate, "published estimate", Some(2));
    }
    match explanation.judged.reading {
        Reading::Knee(gap) => mark(gap, "knee", Some(3)),
        Reading::Clear(gap) => mark(gap, "clear, at least", Some(3)),
        Reading::Crowded | Reading::Unclear => {}
    }
    figure
}
