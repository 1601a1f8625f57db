//! The report of one scenario, simulated or real, from its result tables.

mod tables;

use std::collections::BTreeMap;

use flowstart_report::{Axis, Color, Figure, Legend, Page, Palette, Section, Series, Table};
use flowstart_results::{Table as Rows, Value};
use flowstart_units::Span;

pub use tables::{about, chance, flow_table, interrupted, link_table, summary};

/// Flows that are drawn, those with the most bytes.
const DRAWN: usize = 10;

/// What a report is made of beside the tables.
pub struct About {
    /// Title of the page.
    pub title: String,
    /// The command as it was typed.
    pub command: String,
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// What a reader must know beforehand.
    pub warnings: Vec<String>,
    /// What came out, in sentences.
    pub summary: Vec<String>,
    /// The tables, as on the terminal.
    pub tables: Vec<Table>,
    /// How it was run.
    pub remarks: Vec<String>,
    /// How many runs there were, the first of which is drawn.
    pub runs: u64,
}

/// The page; `samples` are the rows of the table `samples` in bins of `width`, of which the first
/// run is drawn.
pub fn page(about: About, samples: Option<&Rows>, width: Span) -> Page {
    let mut curves = samples.map(|samples| Curves::of(samples, width)).unwrap_or_default();
    curves.runs = about.runs;
    let all = curves.figures();
    let (lead, others): (Vec<Figure>, Vec<Figure>) =
        all.into_iter().filter(|figure| !figure.series.is_empty()).partition(|figure| LEAD.contains(&&*figure.title));
    let tables = Section { tables: about.tables, ..Section::default() };
    let pictures = Section {
        heading: "Rates, windows, round-trip times".to_owned(),
        paragraphs: vec![
            "Drag over a picture to zoom, all of them together; shift and drag to move; click a name to hide it."
                .to_owned(),
        ],
        figures: others,
        ..Section::default()
    };
    let sections = if pictures.figures.is_empty() { vec![tables] } else { vec![tables, pictures] };
    // Where pictures come first, the first sentence stands above them; without any, all follow.
    let mut summary = about.summary;
    let answer = if lead.is_empty() || summary.is_empty() { String::new() } else { summary.remove(0) };
    Page {
        title: about.title,
        answer,
        lead,
        command: about.command,
        provenance: about.provenance,
        warnings: about.warnings,
        summary,
        sections,
        footnotes: about.remarks,
    }
}

/// Titles of the figures that stand first.
const LEAD: [&str; 2] = [TITLES[0], TITLES[1]];

/// Titles of all figures that there may be: of each there is one where there is something to draw.
pub const TITLES: [&str; 6] =
    ["Delivered", "Queueing delay", "Sending rate", "Throughput", "Congestion window", "Round-trip time"];

/// Everything over time, by name of the flow or link.
#[derive(Default)]
struct Curves {
    /// Width of a bin in seconds.
    width: f64,
    /// True if there are more flows than are drawn.
    flows: Vec<Named>,
    links: Vec<Named>,
    flow_count: usize,
    /// How many runs there were; drawn is the first.
    runs: u64,
}

/// The rows of a flow or link in order of time: beginning of the bin, row.
struct Named {
    name: String,
    delivered: Vec<[f64; 2]>,
    sent: Vec<[f64; 2]>,
    window: Vec<[f64; 2]>,
    rtt: Vec<[f64; 2]>,
    delay: Vec<[f64; 2]>,
    throughput: Vec<[f64; 2]>,
}

impl Curves {
    fn of(samples: &Rows, width: Span) -> Self {
        let width = width.as_secs_f64();
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let first_run = (samples.rows() > 0).then(|| number(samples, 0, "run")).flatten();
        for row in (0..samples.rows()).filter(|row| number(samples, *row, "run") == first_run) {
            if let Value::Text(name) = samples.get(row, "series") {
                by_name.entry(name.into_owned()).or_default().push(row);
            }
        }
        let (mut flows, mut links) = (Vec::new(), Vec::new());
        for (name, rows) in by_name {
            let one = Named::of(name, samples, &rows, width);
            if one.throughput.is_empty() { flows.push(one) } else { links.push(one) }
        }
        // Within a round trip a sender sends in bursts: a rate is that of a round trip.
        let shortest = flows.iter().filter_map(Named::shortest_rtt).min_by(f64::total_cmp);
        for one in flows.iter_mut().chain(&mut links) {
            let span = one.shortest_rtt().or(shortest).unwrap_or(width);
            one.sent = averaged(&filled(&one.sent, span, width), span, width);
            one.throughput = averaged(&filled(&one.throughput, span, width), span, width);
        }
        let flow_count = flows.len();
        let bytes = |flow: &Named| flow.delivered.last().map_or(0.0, |last| last[1]);
        flows.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
        flows.truncate(DRAWN);
        flows.sort_by(|a, b| a.name.cmp(&b.name));
        Self { width, flows, links, flow_count, runs: 1 }
    }

    fn figures(&self) -> Vec<Figure> {
        let mut palette = Palette::new();
        let flows: Vec<Color> = self.flows.iter().map(|flow| palette.color(&flow.name)).collect();
        // Links are no flows: grey.
        let links: Vec<Color> = (0..self.links.len()).map(Color::neutral).collect();
        let end = self.flows.iter().chain(&self.links).flat_map(Named::times).fold(self.width, f64::max);
        let figure = |title: &str, unit: &str, of: &[Named], colors: &[Color], pick: Pick, caption: &str| {
            let mut figure = Figure::new(title, Axis::new("Time", "s").range(0.0, end), Axis::new(title, unit));
            figure.legend = Legend::AtCurves;
            caption.clone_into(&mut figure.caption);
            for (one, color) in of.iter().zip(colors) {
                let points = pick(one);
                if !points.is_empty() {
                    figure.series.push(Series::line(&one.name, *color, points.clone()));
                }
            }
            figure
        };
        let mut bins = format!(" In bins of {}.", Span::from_nanos((self.width * 1e9).round() as u64));
        if self.runs > 1 {
            bins.push_str(&format!(" Run 1 of {}.", self.runs));
        }
        let shown = if self.flow_count > self.flows.len() {
            format!(" The {} of {} flows with the most bytes.", self.flows.len(), self.flow_count)
        } else {
            String::new()
        };
        let flow = |title, unit, pick: Pick, caption: &str| {
            figure(title, unit, &self.flows, &flows, pick, &format!("{caption}{bins}{shown}"))
        };
        let link = |title, unit, pick: Pick, caption: &str| {
            figure(title, unit, &self.links, &links, pick, &format!("{caption}{bins}"))
        };
        vec![
            flow(
                "Delivered",
                "MB",
                |one| &one.delivered,
                "Stream bytes that the receiving application has read; of datagrams the IP bytes received.",
            ),
            link("Queueing delay", "ms", |one| &one.delay, "Longest wait at a link within a bin."),
            flow("Sending rate", "Mbit/s", |one| &one.sent, "IP packets sent, over the shortest RTT."),
            link("Throughput", "Mbit/s", |one| &one.throughput, "What a link sent, over the shortest RTT."),
            flow("Congestion window", "packets", |one| &one.window, "The sender's window."),
            flow("Round-trip time", "ms", |one| &one.rtt, "The sender's smoothed round-trip time."),
        ]
    }
}

type Pick = fn(&Named) -> &Vec<[f64; 2]>;

impl Named {
    fn of(name: String, samples: &Rows, rows: &[usize], width: f64) -> Self {
        let column = |column: &str, scale: f64| -> Vec<[f64; 2]> {
            let points = rows.iter().filter_map(|row| {
                let begin = number(samples, *row, "t_s")?;
                Some([begin + width / 2.0, number(samples, *row, column)? * scale])
            });
            points.collect()
        };
        let mut sum = 0.0;
        let mut delivered = vec![];
        for row in rows {
            let Some(begin) = number(samples, *row, "t_s") else { continue };
            if let Some(rate) = number(samples, *row, "delivered_bps") {
                if delivered.is_empty() {
                    delivered.push([begin, 0.0]);
                }
                sum += rate * width / 8.0 / 1e6;
                delivered.push([begin + width, sum]);
            }
        }
        Self {
            name,
            delivered,
            sent: column("sent_bps", 1e-6),
            window: column("snd_cwnd_pkts", 1.0),
            rtt: column("rtt_us", 1e-3),
            delay: filled(&column("sojourn_max_us", 1e-3), width, width),
            throughput: column("throughput_bps", 1e-6),
        }
    }

    /// In seconds; `None` without samples.
    fn shortest_rtt(&self) -> Option<f64> {
        self.rtt.iter().map(|point| point[1] / 1e3).min_by(f64::total_cmp)
    }

    fn times(&self) -> impl Iterator<Item = f64> {
        let curves = [&self.delivered, &self.sent, &self.window, &self.delay, &self.throughput];
        curves.into_iter().filter_map(|curve| curve.last().map(|last| last[0]))
    }
}

/// Means of the bins within `span` before, those without a row counted as zero.
fn averaged(points: &[[f64; 2]], span: f64, width: f64) -> Vec<[f64; 2]> {
    let bins = (span / width).round().max(1.0);
    // Most bins of short ones are empty, and need not be added again and again.
    let full: Vec<[f64; 2]> = points.iter().filter(|point| point[1] != 0.0).copied().collect();
    let (mut oldest, mut end) = (0, 0);
    let mean = |point: &[f64; 2]| {
        let time = point[0];
        while end < full.len() && full[end][0] <= time {
            end += 1;
        }
        while oldest < end && full[oldest][0] < time - (bins - 0.5) * width {
            oldest += 1;
        }
        [time, full[oldest..end].iter().fold(0.0, |sum, point| sum + point[1]) / bins]
    };
    points.iter().map(mean).collect()
}

/// With zeros where there are no rows, because nothing happened: for as long as what was before
/// counts for the mean over `span`, and just before the next row. Where a span has more bins than a
/// picture shows, not in every one: means are the same without.
fn filled(points: &[[f64; 2]], span: f64, width: f64) -> Vec<[f64; 2]> {
    const SHOWN: f64 = 1000.0;
    let bins = (span / width).round().max(1.0);
    let stride = (bins / SHOWN).ceil();
    let mut all: Vec<[f64; 2]> = Vec::with_capacity(points.len());
    for point in points {
        if let Some(before) = all.last().copied() {
            let missing = ((point[0] - before[0]) / width).round() - 1.0;
            let mut bin = stride;
            while bin <= missing.min(bins) {
                all.push([before[0] + bin * width, 0.0]);
                bin += stride;
            }
            if missing > bins {
                all.push([point[0] - width, 0.0]);
            }
        }
        all.push(*point);
    }
    all
}

/// The number in a cell.
fn number(rows: &Rows, row: usize, column: &str) -> Option<f64> {
    match rows.get(row, column) {
        Value::Integer(n) => Some(n as f64),
        Value::Float(x) if x.is_finite() => Some(x),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_titles_that_are_known_before() {
        let titles: Vec<String> = Curves::default().figures().into_iter().map(|figure| figure.title).collect();
        assert_eq!(titles, TITLES);
    }

    #[test]
    fn a_rate_is_that_of_the_bins_before_and_none_counts_twice() {
        let bursts = [[0.5, 8.0], [2.5, 8.0], [3.5, 4.0]];
        assert_eq!(averaged(&bursts, 2.0, 1.0), [[0.5, 4.0], [2.5, 4.0], [3.5, 6.0]]);
        assert_eq!(averaged(&bursts, 0.1, 1.0), bursts, "not less than a bin");
        assert!(averaged(&[], 1.0, 1.0).is_empty());
    }

    #[test]
    fn bins_without_rows_are_bins_in_which_nothing_happened() {
        let points = [[0.5, 2.0], [1.5, 3.0], [5.5, 1.0]];
        assert_eq!(filled(&points, 1.0, 1.0), [[0.5, 2.0], [1.5, 3.0], [2.5, 0.0], [4.5, 0.0], [5.5, 1.0]]);
    }

    #[test]
    fn bins_of_a_nanosecond_take_no_more_memory_than_a_picture_needs() {
        let points = [[0.5e-9, 2.0], [0.01, 3.0], [2.0, 1.0]];
        let all = filled(&points, 0.04, 1e-9);
        assert!(all.len() < 2000, "{} points", all.len());
        let means = averaged(&all, 0.04, 1e-9);
        // The last row's alone counts for it, and none before.
        assert!((means.last().unwrap()[1] * 0.04e9 - 1.0).abs() < 1e-6, "{:?}", means.last());
    }

    /// A call sends a packet every few bins: its rate over a round trip of many is nearly constant.
    #[test]
    fn a_rate_over_a_round_trip_does_not_flicker_between_packets() {
        let call: Vec<[f64; 2]> = (0..50).map(|packet| [f64::from(packet) * 4.0 + 0.5, 12.0]).collect();
        let rate = averaged(&filled(&call, 20.0, 1.0), 20.0, 1.0);
        assert!(rate.iter().skip(20).all(|[_, rate]| (*rate - 3.0).abs() <= 0.6), "{rate:?}");
        // A pause longer than a round trip is one, after a round trip.
        let pause = averaged(&filled(&[[0.5, 4.0], [9.5, 4.0]], 2.0, 1.0), 2.0, 1.0);
        assert_eq!(pause, [[0.5, 2.0], [1.5, 2.0], [2.5, 0.0], [8.5, 0.0], [9.5, 2.0]]);
    }
}
