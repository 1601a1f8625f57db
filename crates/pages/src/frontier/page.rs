//! The report of a frontier as one page.

use flowstart_frontier::{CellScore, Shown, front};
use flowstart_race::measures::DEFICIT;
use flowstart_report::{Axis, Color, Figure, Legend, Page, Section, Series};

use super::{paths_figures, paths_tables, tables};

/// The page.
pub fn page(shown: &Shown<'_>, command: &str) -> Page {
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
    let shares = Section {
        heading: "Not only medians".to_owned(),
        paragraphs: vec![
            "How large a share of the cells has at most a value: further up and left is better. What lies to the right of the marked value is lost."
                .to_owned(),
        ],
        figures: shares(shown, command),
        ..Section::default()
    };
    let by_path = Section {
        heading: "Path by path".to_owned(),
        tables: if frontier.grid.as_is { Vec::new() } else { paths_tables(shown) },
        figures: paths_figures(shown, command),
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
        lead: Vec::new(),
        warnings: Vec::new(),
        answer: String::new(),
        title: "The frontier of flow starts".to_owned(),
        command: command.to_owned(),
        provenance,
        summary: tables::summary(shown),
        sections: vec![fronts, by_path, shares, goals, numbers]
            .into_iter()
            .filter(|section| !section.tables.is_empty() || !section.figures.is_empty())
            .collect(),
        footnotes: tables::remarks(shown),
    }
}

type Value = fn(&CellScore) -> Option<f64>;

/// Start-up deficit and slowdown against added delay.
pub fn fronts(shown: &Shown<'_>, command: &str) -> Vec<Figure> {
    let colors = tables::colors(shown);
    let picture = |title: &str, y: Axis, value: Value| {
        let mut figure = Figure::new(title, Axis::new("Added queueing delay, P99, median", "ms").log(), y);
        figure.legend = Legend::AtPoints;
        figure.command = command.to_owned();
        let points: Vec<(String, Color, [f64; 2])> = shown
            .scores
            .contestants
            .iter()
            .zip(&colors)
            .filter_map(|(contestant, color)| {
                let point = [contestant.median(|score| score.added_delay)?, contestant.median(value)?];
                Some((contestant.label.clone(), *color, [point[0].max(LEAST_MS), point[1]]))
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
        picture(
            "Start-up deficit against added delay",
            Axis::new("Start-up deficit, median", "BDP").fitted(),
            |score| score.get(DEFICIT.measure()),
        ),
        picture(
            "Slowdown against added delay",
            Axis::new("Completion time over ideal, median", "").fitted(),
            |score| score.slowdown,
        ),
    ]
}

/// Distributions over the cells: completion time and added delay over the reference's.
fn shares(shown: &Shown<'_>, command: &str) -> Vec<Figure> {
    let colors = tables::colors(shown);
    let picture = |title: &str, x: Axis, value: Value| {
        let mut figure = Figure::new(title, x, Axis::new("Share of the cells", "%").range(0.0, 100.0));
        figure.legend = Legend::Above;
        figure.command = command.to_owned();
        for (contestant, color) in shown.scores.contestants.iter().zip(&colors) {
            let values = contestant.cells.iter().filter_map(value).collect();
            figure.series.push(Series::steps(&contestant.label, *color, distribution(values)));
        }
        figure.mark_x(1.0, "as the reference");
        figure
    };
    vec![
        picture("Completion time of 100 kB and more over the reference's", Axis::new("Ratio", "").log(), |score| {
            score.completion_ratio
        }),
        picture(
            "Added queueing delay over the reference's",
            Axis::new("Ratio of the added delays, P99", "").log(),
            |score| score.delay_ratio.map(|ratio| ratio.max(LEAST_RATIO)),
        ),
    ]
}

/// What is less than this has no place of its own on a logarithmic axis.
const LEAST_MS: f64 = 0.01;
const LEAST_RATIO: f64 = 0.001;

/// The share of values, in percent, up to each of them. Infinite ones count as values but are not
/// drawn.
fn distribution(mut values: Vec<f64>) -> Vec<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let all = values.len() as f64;
    let mut steps: Vec<[f64; 2]> = Vec::new();
    for (index, value) in values.into_iter().enumerate().filter(|(_, value)| value.is_finite()) {
        let share = 100.0 * (index + 1) as f64 / all;
        match steps.last_mut() {
            Some(last) if last[0] == value => last[1] = share,
            _ => steps.push([value, share]),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_rises_to_the_share_of_what_is_finite() {
        assert_eq!(distribution(vec![2.0, f64::INFINITY, 1.0, 2.0]), [[1.0, 25.0], [2.0, 75.0]]);
        assert_eq!(distribution(Vec::new()), Vec::<[f64; 2]>::new());
    }
}
