//! The report of a frontier as one page.

use flowstart_experiment::frontier::{CellScore, Shown, front};
use flowstart_experiment::race::Measure;
use flowstart_report::{Axis, Color, Figure, Legend, Page, Section, Series};

use super::tables;

/// The page.
pub(super) fn page(shown: &Shown<'_>, command: &str) -> Page {
    let frontier = &shown.result.frontier;
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let seeds: Vec<String> = frontier.seeds.iter().map(u64::to_string).collect();
    let (finished, all) = shown.result.finished();
    let mut provenance = vec![
        pair("flowstart", env!("CARGO_PKG_VERSION").to_owned()),
        pair("frontier", shown.hash()),
        pair("cells", shown.scores.cells.len().to_string()),
        pair("seeds", seeds.join(", ")),
    ];
    if finished < all {
        provenance.push(pair("interrupted", format!("{finished} of {all} finished")));
    }
    let fronts = Section {
        heading: "Speed against delay".to_owned(),
        paragraphs: vec![
            "A dot per contestant: medians over the cells. Nobody lies both to the left of and below those on the stepped line.".to_owned(),
        ],
        figures: fronts(shown, command),
        ..Section::default()
    };
    let numbers = Section {
        heading: "Results".to_owned(),
        tables: tables::main(shown).into_iter().chain([tables::worst(shown)]).collect(),
        ..Section::default()
    };
    let goals = Section {
        heading: "Goals".to_owned(),
        tables: vec![tables::goals(shown), tables::lost(shown, None)],
        ..Section::default()
    };
    Page {
        title: "The frontier of flow starts".to_owned(),
        command: command.to_owned(),
        provenance,
        summary: tables::summary(shown),
        sections: vec![fronts, goals, numbers],
        footnotes: tables::remarks(shown),
    }
}

type Value = fn(&CellScore) -> Option<f64>;

/// Start-up deficit and slowdown against added delay.
pub(super) fn fronts(shown: &Shown<'_>, command: &str) -> Vec<Figure> {
    let colors = tables::colors(shown);
    let picture = |title: &str, y: Axis, value: Value| {
        let mut figure = Figure::new(title, Axis::new("Added queueing delay, P99, median", "ms"), y);
        figure.legend = Legend::Above;
        figure.command = command.to_owned();
        let points: Vec<(String, Color, [f64; 2])> = shown
            .scores
            .contestants
            .iter()
            .zip(&colors)
            .filter_map(|(contestant, color)| {
                let point = [contestant.median(|score| score.added_delay)?, contestant.median(value)?];
                Some((contestant.label.clone(), *color, point))
            })
            .collect();
        let all: Vec<[f64; 2]> = points.iter().map(|(_, _, point)| *point).collect();
        let grey = Color::new(points.len());
        figure.series.push(Series::steps("front", grey, front(&all)));
        for (label, color, point) in points {
            figure.series.push(Series::points(label, color, vec![point]));
        }
        figure.caption = "Medians over all cells; lower and further left is better.".to_owned();
        figure
    };
    vec![
        picture("Start-up deficit against added delay", Axis::new("Start-up deficit, median", "BDP"), |score| {
            score.get(Measure::Deficit)
        }),
        picture(
            "Slowdown against added delay",
            Axis::new("Completion time over ideal, median", "").fitted(),
            |score| score.slowdown,
        ),
    ]
}
