//! Everybody on every path: what is quick on one may be slow on another.

use flowstart_frontier::{CellScore, ContestantScores, Factor, REFERENCE, Shown, median};
use flowstart_report::{Axis, Best, Cell, Column, Figure, Legend, Series, Table};

use super::tables;

/// Paths that have room side by side in a picture.
const ROOM: usize = 10;
/// Part of the width of a path that its contestants' dots take.
const SPREAD: f64 = 0.7;

/// What is shown of a path: the completion ratio, or the added delay, each a value of a cell and
/// the interval of its median over the seeds.
#[derive(Clone, Copy)]
struct Quantity {
    title: &'static str,
    axis: &'static str,
    unit: &'static str,
    digits: u8,
    value: fn(&CellScore) -> Option<f64>,
    interval: fn(&CellScore) -> Option<[f64; 2]>,
    /// What is less than this has no place of its own on the logarithmic axis.
    least: f64,
    /// The reference has this value.
    reference: Option<f64>,
}

const COMPLETION: Quantity = Quantity {
    title: "Completion time of 100 kB and more, by path",
    axis: "Over the reference's",
    unit: "",
    digits: 2,
    value: |score| score.completion_ratio,
    interval: |score| score.completion_interval,
    least: 0.0,
    reference: Some(1.0),
};
const DELAY: Quantity = Quantity {
    title: "Added queueing delay, P99, by path",
    axis: "Added delay, P99",
    unit: "ms",
    digits: 1,
    value: |score| score.added_delay,
    interval: |score| score.added_delay_interval,
    least: 0.1,
    reference: None,
};

/// One value of a path.
struct Value {
    middle: f64,
    interval: Option<[f64; 2]>,
}

impl Quantity {
    /// The value on each of these paths: of its only cell with the interval over the seeds, or the
    /// median over its cells.
    fn of(&self, shown: &Shown<'_>, contestant: &ContestantScores, paths: &[String]) -> Vec<Option<Value>> {
        let groups = shown.scores.by(contestant, Factor::Path);
        let value = |path: &String| {
            let (_, scores) = groups.iter().find(|(name, _)| name == path)?;
            let middle = median(scores.iter().filter_map(|score| (self.value)(score)).collect())?;
            let interval = if let [only] = scores[..] { (self.interval)(only) } else { None };
            Some(Value { middle, interval })
        };
        paths.iter().map(value).collect()
    }
}

/// The paths, in order.
fn paths(shown: &Shown<'_>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for cell in &shown.scores.cells {
        let path = cell.path.to_string();
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// One table of completion and one of delay; none if there is one path only.
pub fn paths_tables(shown: &Shown<'_>) -> Vec<Table> {
    let paths = paths(shown);
    if paths.len() < 2 {
        return Vec::new();
    }
    [COMPLETION, DELAY].map(|quantity| table(shown, &paths, quantity)).to_vec()
}

fn table(shown: &Shown<'_>, paths: &[String], quantity: Quantity) -> Table {
    let mut columns = vec![Column::key("contestant")];
    columns.extend(paths.iter().map(|path| Column::number(path, quantity.unit).best(Best::Lowest).apart()));
    let mut table = Table::new(quantity.title, columns);
    for (contestant, color) in shown.scores.contestants.iter().zip(tables::colors(shown)) {
        let mut cells = vec![Cell::text(&contestant.label)];
        cells.extend(quantity.of(shown, contestant, paths).into_iter().map(|value| match value {
            Some(Value { middle, interval: Some([low, high]) }) if high.is_finite() => {
                Cell::quantity(middle, low, high, quantity.digits)
            }
            Some(value) => tables::number(Some(value.middle), quantity.digits),
            None => Cell::Missing,
        }));
        table.push_colored(color, cells);
    }
    table.notes.push(format!(
        "Medians over seeds, with the 95 % interval of the median where a path is one cell and has six seeds or more. {}",
        quantity.reference.map_or(String::new(), |one| format!("{one} is {REFERENCE}."))
    ));
    table
}

/// The same as pictures: a column of dots per path, with their intervals.
pub fn paths_figures(shown: &Shown<'_>, command: &str) -> Vec<Figure> {
    let paths = paths(shown);
    if !(2..=ROOM).contains(&paths.len()) {
        return Vec::new();
    }
    [COMPLETION, DELAY].map(|quantity| figure(shown, &paths, quantity, command)).to_vec()
}

fn figure(results: &Shown<'_>, paths: &[String], quantity: Quantity, command: &str) -> Figure {
    let shown = |value: f64| value.max(quantity.least);
    let y = Axis::new(quantity.axis, quantity.unit).log();
    let mut figure = Figure::new(quantity.title, Axis::new("", "").named(paths.to_vec()), y);
    figure.legend = Legend::Above;
    figure.command = command.to_owned();
    let count = results.scores.contestants.len() as f64;
    for ((number, contestant), color) in results.scores.contestants.iter().enumerate().zip(tables::colors(results)) {
        let aside = SPREAD * ((number as f64 + 0.5) / count - 0.5);
        let values = quantity.of(results, contestant, paths);
        let placed =
            || values.iter().enumerate().filter_map(|(place, value)| Some((place as f64 + aside, value.as_ref()?)));
        // Gaps between the intervals, which are one curve.
        let intervals = placed().filter_map(|(x, value)| Some((x, value.interval?)));
        let bars: Vec<[f64; 2]> =
            intervals.flat_map(|(x, ends)| [[x, shown(ends[0])], [x, shown(ends[1])], [x, f64::NAN]]).collect();
        if !bars.is_empty() {
            figure.series.push(Series::line(&contestant.label, color, bars));
        }
        let dots = placed().map(|(x, value)| [x, shown(value.middle)]).collect();
        figure.series.push(Series::points(&contestant.label, color, dots));
    }
    if let Some(one) = quantity.reference {
        figure.mark_y(one, "as the reference");
    }
    figure.caption = "Medians over the seeds with their 95 % intervals; lower is better.".to_owned();
    if quantity.least > 0.0 {
        figure.caption.push_str(&format!(" Less than {} {} is drawn there.", quantity.least, quantity.unit));
    }
    figure
}
