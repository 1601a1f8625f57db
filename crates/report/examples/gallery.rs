//! Writes a page and a picture made of invented data, to look at:
//! `cargo run -p flowstart-report --example gallery -- FOLDER`.

use std::path::PathBuf;

use flowstart_files::write_atomically;
use flowstart_report::{Axis, Best, Cell, Column, Figure, Legend, Page, Palette, Section, Series, Table, Terminal};

/// Names, growth per round trip until the exit, queue left behind in ms.
const CONTESTANTS: [(&str, f64, f64); 7] = [
    ("cubic", 2.0, 6.0),
    ("cubic, no HyStart", 2.0, 20.0),
    ("cubic, HyStart++", 1.9, 9.0),
    ("dctcp, slow start", 2.0, 2.4),
    ("dctcp, paced chirping", 2.6, 0.9),
    ("cubic, paced chirping", 2.5, 1.1),
    ("reno", 2.0, 20.0),
];

const COMMAND: &str = "flowstart compare --capacity '100 Mbit/s' --rtt '20 ms' --buffer '1 BDP' --seed 1";

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "gallery".into()));
    let mut palette = Palette::new();
    let table = table(&mut palette);
    println!("{}", table.to_terminal(Terminal::of_stdout()));
    let mut delay = noisy("Queueing delay", "ms", &mut palette);
    delay.mark_y(1.0, "marking threshold 1 ms");
    delay.mark_y(20.0, "buffer 1 BDP");
    let mut rate = delivered(&mut palette);
    rate.legend = Legend::Above;
    let mut completion =
        Figure::new("Completion time by size", Axis::new("Size", "byte").log(), Axis::new("Slowdown", "").log());
    for (i, (name, growth, _)) in CONTESTANTS.into_iter().enumerate() {
        let color = palette.color(name);
        let at = |k: u32| 10f64.powf(4.0 + f64::from(k) / 4.0);
        let slowdown = |k: u32| 1.0 + (9.0 + i as f64) / growth * (-(f64::from(k) - 6.0).powi(2) / 30.0).exp();
        completion.series.push(Series::band(
            name,
            color,
            (0..17).map(|k| [at(k), slowdown(k) * 0.9, slowdown(k) * 1.1]).collect(),
        ));
        completion.series.push(Series::line(name, color, (0..17).map(|k| [at(k), slowdown(k)]).collect()));
    }
    let mut window = noisy("Congestion window", "packets", &mut palette);
    window.mark_x(240.0, "background flow starts");
    for (i, (name, ..)) in CONTESTANTS.into_iter().enumerate().take(3) {
        window.markers.push(flowstart_report::Marker {
            direction: flowstart_report::Direction::Vertical,
            at: 100.0 + 12.0 * i as f64,
            label: format!("{name}: exit"),
            color: Some(palette.color(name)),
        });
    }
    let page = Page {
        title: "Seven flow starts over 100 Mbit/s and 20 ms".into(),
        command: COMMAND.into(),
        provenance: [("Seed", "1"), ("Runs", "1"), ("Version", "0.1.0"), ("Scenario", "4f1e88b09a3c7d21"), ("Simulated", "7 × 2 s in 0.31 s")]
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
        summary: vec![
            "Paced chirping with DCTCP reached 90 % of the capacity first, after 6.1 round trips, and left 0.9 ms of queue; \
             cubic without HyStart lost 161 packets."
                .into(),
            "No randomness in this scenario: one run is enough.".into(),
        ],
        sections: vec![
            Section { heading: "Results".into(), tables: vec![table], ..Section::default() },
            Section {
                heading: "Over time".into(),
                paragraphs: vec!["Point at a figure to read values; click a name to hide or show a contestant everywhere.".into()],
                figures: vec![rate, delay, window, completion],
                ..Section::default()
            },
        ],
        lead: vec![delivered(&mut palette)],
        warnings: Vec::new(),
        answer: "Fastest: paced chirping with DCTCP, which costs nobody anything.".into(),
        footnotes: vec!["Time zero is when the first data bit of the flow reaches the bottleneck queue.".into()],
    };
    page.write(&folder.join("report.html"))?;
    write_atomically(&folder.join("start.svg"), delivered(&mut palette).to_svg().as_bytes())
}

fn table(palette: &mut Palette) -> Table {
    let mut table = Table::new(
        "Who got up to speed, how fast, at whose cost",
        vec![
            Column::key("Contestant"),
            Column::text("Exit reason").help("What made the start hand over to congestion avoidance."),
            Column::number("Exit time", "ms")
                .help("From the first data bit at the bottleneck to the end of the start."),
            Column::number("Window at exit", "BDP").help("cwnd when the start ended, in bandwidth-delay products."),
            Column::number("Time to 90 %", "RTT")
                .best(Best::Lowest)
                .help("Until two round trips in a row used 90 % of the capacity."),
            Column::number("1 MB", "ms")
                .best(Best::Lowest)
                .help("Completion time of a flow of 1 MB: first bit sent to last byte delivered in order."),
            Column::number("Slowdown of 1 MB", "").best(Best::Lowest).help("The same over that of an idle link."),
            Column::number("Queueing delay, P99", "ms").best(Best::Lowest),
            Column::number("Lost before exit", "packets").best(Best::Lowest),
        ],
    );
    for (i, (name, growth, queue)) in CONTESTANTS.into_iter().enumerate() {
        let i = i as f64;
        let half = if i == 3.0 { 12.25 } else { 3.1 + i };
        table.push_colored(
            palette.color(name),
            vec![
                Cell::text(name),
                Cell::text(
                    ["ACK train", "loss", "delay increase", "mark", "in flight", "in flight", "loss"][i as usize],
                ),
                Cell::number(120.0 + 7.0 * i, 1),
                Cell::number(queue / 8.0, 2),
                if i == 6.0 { Cell::Missing } else { Cell::number(12.0 / growth, 1) },
                Cell::quantity(
                    330.0 / growth,
                    330.0 / growth - half,
                    330.0 / growth + half * if i == 4.0 { 2.0 } else { 1.0 },
                    1,
                ),
                Cell::number(330.0 / growth / 107.9, 2),
                Cell::number(queue, 1),
                Cell::count(if queue > 10.0 { 161 } else { 0 }),
            ],
        );
    }
    table
}

fn delivered(palette: &mut Palette) -> Figure {
    let mut figure = Figure::new(
        "Bytes delivered in the first ten round trips",
        Axis::new("Round trips since the first byte", "RTT"),
        Axis::new("Delivered", "byte"),
    );
    figure.caption = "100 Mbit/s, 20 ms base RTT, buffer 1 BDP, alone on the path.".into();
    figure.command = COMMAND.into();
    figure.legend = Legend::AtCurves;
    for (name, growth, _) in CONTESTANTS {
        let mut points = vec![[0.0, 0.0]];
        let (mut window, mut sum) = (14_480.0f64, 0.0);
        for round in 1..=10 {
            sum += window;
            points.push([f64::from(round), sum]);
            window = (window * growth).min(250_000.0 * growth / 2.6);
        }
        figure.series.push(Series::line(name, palette.color(name), points));
    }
    figure.series.push(Series::line("ideal", palette.color("ideal"), vec![[0.0, 0.0], [10.0, 2.5e6]]));
    figure
}

fn noisy(title: &str, unit: &str, palette: &mut Palette) -> Figure {
    let mut figure = Figure::new(title, Axis::new("Time", "ms"), Axis::new(title, unit));
    figure.caption = format!("{title} at the bottleneck.");
    let mut state = 1u64;
    for (name, growth, queue) in CONTESTANTS {
        let points = (0..40_000).map(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (state >> 33) as f64 / f64::from(1u32 << 31);
            let time = f64::from(i) * 0.01;
            let shape = (-(time - 90.0 * 2.6 / growth).powi(2) / 900.0).exp();
            [time, queue * (0.9 * shape + 0.1 * noise)]
        });
        figure.series.push(Series::steps(name, palette.color(name), points.collect()));
    }
    figure
}
