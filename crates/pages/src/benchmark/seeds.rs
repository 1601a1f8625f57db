//! The same benchmark with several seeds: medians, and how far the seeds are apart.

use flowstart_benchmark::{Attained, BenchmarkResult};
use flowstart_measure::Estimate;
use flowstart_report::{Axis, Cell, Color, Column, Figure, Series, Table};
use flowstart_service_curve::ProbeVerdict;
use flowstart_units::{Rate, Span};

use super::{figures, tables};

/// The value in the middle (of an even number the mean of the two), the lowest and the highest;
/// `None` without values, or if one is not finite.
pub(super) fn spread(values: Vec<f64>) -> Option<[f64; 3]> {
    let estimate = Estimate::of(&values)?;
    Some([estimate.median, estimate.min, estimate.max])
}

/// The numbers of several seeds as one: their median, from the lowest to the highest; missing if
/// any seed lacks it. If of any only bounds are known, so it is of the median: it lies where any
/// may.
pub(super) fn merged(cells: &[Cell]) -> Cell {
    if let [cell] = cells {
        return cell.clone();
    }
    let bounds = |cell: &Cell| match *cell {
        Cell::Number { value, digits } => Some((value, Some(value), digits, true)),
        Cell::Quantity { value, digits, .. } => Some((value, Some(value), digits, true)),
        Cell::Between { low, high, digits } => Some((low, high, digits, false)),
        Cell::Missing | Cell::Text(_) => None,
    };
    let Some(all) = cells.iter().map(bounds).collect::<Option<Vec<_>>>() else { return Cell::Missing };
    let Some(digits) = all.first().map(|one| one.2) else { return Cell::Missing };
    let Some([median, lowest, _]) = spread(all.iter().map(|one| one.0).collect()) else { return Cell::Missing };
    let highest: Option<Vec<f64>> = all.iter().map(|one| one.1).collect();
    let highest = highest.map(|values| values.into_iter().fold(f64::NEG_INFINITY, f64::max));
    match highest {
        Some(highest) if all.iter().all(|one| one.3) => Cell::quantity(median, lowest, highest, digits),
        highest => Cell::between(lowest, highest, digits),
    }
}

/// The summary of every seed as one: a column's number is the median, its interval reaches from the
/// lowest to the highest, and it is missing if any seed lacks it; words are counted.
pub(super) fn summary(results: &[BenchmarkResult], colors: &[Color]) -> Table {
    let all: Vec<Table> = results.iter().map(|result| tables::summary(result, colors)).collect();
    let Some(first) = all.first() else { return Table::default() };
    let mut table = Table { rows: Vec::new(), ..first.clone() };
    table.title = format!("Attainable rates, median of {} seeds [lowest, highest]", results.len());
    for column in &mut table.columns {
        column.help = column.help.replace("; 95 % bootstrap interval", "");
    }
    for (number, row) in first.rows.iter().enumerate() {
        let merge = |column: usize| {
            let cells = || all.iter().map(move |table| table.rows[number].cells.get(column).unwrap_or(&Cell::Missing));
            if table.columns[column].key {
                return row.cells[column].clone();
            }
            match row.cells.get(column) {
                Some(Cell::Number { .. } | Cell::Quantity { .. } | Cell::Between { .. }) => {
                    merged(&cells().cloned().collect::<Vec<_>>())
                }
                Some(Cell::Text(_)) => counted(cells()),
                // Missing in the first seed; words may follow in others.
                _ if cells().any(|cell| matches!(cell, Cell::Text(_))) => counted(cells()),
                _ => Cell::Missing,
            }
        };
        let cells = (0..table.columns.len()).map(merge).collect();
        table.rows.push(flowstart_report::Row { color: row.color, cells });
    }
    table.notes.push("A dash: missing with at least one of the seeds.".to_owned());
    with_decided(table, results)
}

/// The next rates of many seeds are many words; in their place how many seeds decide.
fn with_decided(mut table: Table, results: &[BenchmarkResult]) -> Table {
    let Some(place) = table.columns.iter().position(|column| column.name == tables::NEXT) else { return table };
    table.columns[place] = Column::number("decided", "").help(
        "Seeds with which it is known where the rates end: the next one is too high, or the long run lies within one step.",
    );
    for (number, row) in table.rows.iter_mut().enumerate() {
        let decided = results.iter().filter(|result| result.attained[number].estimate.is_decided()).count();
        row.cells[place] = Cell::count(decided as u64);
    }
    table
}

/// Words, and how often they were said if not always.
fn counted<'a>(cells: impl Iterator<Item = &'a Cell>) -> Cell {
    let mut words: Vec<(String, usize)> = Vec::new();
    for cell in cells {
        let word = cell.main().unwrap_or_else(|| "all accepted".to_owned());
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let always = words.len() == 1;
    let say = |(word, count): (String, usize)| if always { word } else { format!("{word}: {count}") };
    Cell::text(words.into_iter().map(say).collect::<Vec<_>>().join("; "))
}

/// One row per contestant and rate: what the seeds said of it.
pub(super) fn probes(results: &[BenchmarkResult], colors: &[Color]) -> Table {
    let columns = vec![
        Column::key("contestant"),
        Column::number("rate", "Mbit/s").help("Payload rate of the probe."),
        Column::number("accepted", "").help("Seeds with which it is sustained."),
        Column::number("undecided", "").help("Seeds with which the measurement does not decide."),
        Column::number("too high", "").help("Seeds with which its delays grow."),
        Column::number("not probed", "").help("Seeds with which lower rates were too high already."),
        Column::number("quantile", "ms")
            .help("Delay quantile where it was accepted: median, lowest and highest of these seeds."),
        Column::number("worth", "")
            .help("How many independent samples the quantile is worth where the rate was accepted, in the median."),
    ];
    let title = format!("Probes with {} seeds", results.len());
    let mut table = Table::new(title, columns);
    let Some(first) = results.first() else { return table };
    for (number, (one, color)) in first.attained.iter().zip(colors).enumerate() {
        for rate in first.benchmark.rates() {
            let probes: Vec<_> = (results.iter().map(|result| &result.attained[number].estimate))
                .filter_map(|estimate| estimate.probes.iter().find(|probe| probe.rate == rate).map(|p| (estimate, p)))
                .collect();
            if probes.is_empty() {
                break;
            }
            let count = |wanted: fn(ProbeVerdict) -> bool| {
                Cell::count(probes.iter().filter(|(_, probe)| wanted(probe.verdict)).count() as u64)
            };
            let lines = probes.iter().filter_map(|(estimate, probe)| probe.line(estimate.epsilon));
            let quantile = spread(lines.map(|line| line.delay.as_millis_f64()).collect());
            let accepted = probes.iter().filter(|(_, probe)| matches!(probe.verdict, ProbeVerdict::Accepted(_)));
            let worth = spread(accepted.map(|(_, probe)| probe.effective).collect());
            table.push_colored(
                *color,
                vec![
                    Cell::text(&one.label),
                    Cell::number(rate.as_mbps_f64(), 2),
                    count(|verdict| matches!(verdict, ProbeVerdict::Accepted(_))),
                    count(|verdict| matches!(verdict, ProbeVerdict::Undecided(_))),
                    count(|verdict| matches!(verdict, ProbeVerdict::NonStationary)),
                    Cell::count((results.len() - probes.len()) as u64),
                    quantile.map_or(Cell::Missing, |[median, low, high]| Cell::quantity(median, low, high, 1)),
                    Cell::number_or_missing(worth.map(|[median, ..]| median), 0),
                ],
            );
        }
    }
    table
}

/// How many of all curves are decided, in words.
pub(super) fn decided(results: &[BenchmarkResult]) -> String {
    let all: Vec<_> = results.iter().flat_map(|result| &result.attained).map(|one| &one.estimate).collect();
    let percent = |count: usize| 100.0 * count as f64 / all.len().max(1) as f64;
    let decided = all.iter().filter(|estimate| estimate.is_decided()).count();
    let next = all.iter().filter(|estimate| estimate.next_is_too_high()).count();
    format!(
        "Of {} curves ({} seeds each) {decided} ({:.0} %) are decided: {next} end with a rate that is too high, and of the others \
         the long run is known to within one step.",
        all.len(),
        results.len(),
        percent(decided)
    )
}

/// Of every contestant the median over the seeds, at one length of interval, in bit/s.
pub(super) fn median(results: &[BenchmarkResult], number: usize, value: impl Fn(&Attained) -> f64) -> f64 {
    spread(results.iter().map(|result| value(&result.attained[number])).collect()).map_or(0.0, |[median, ..]| median)
}

/// The attainable rate: the median, and a band from the lowest seed to the highest.
pub(super) fn attainable(results: &[BenchmarkResult], colors: &[Color], command: &str) -> Figure {
    let mut figure = Figure::new(
        figures::ATTAINABLE,
        Axis::new("Length of the interval", "s").log(),
        Axis::new("Attainable rate", "Mbit/s"),
    );
    figure.caption = format!(
        "Payload rate that an interval has at least, except with the table's probability; the median of {} seeds, the band from the lowest to the highest.",
        results.len()
    );
    figure.command = command.to_owned();
    let Some(first) = results.first() else { return figure };
    for (number, (one, color)) in first.attained.iter().zip(colors).enumerate() {
        let at = |t: Span| {
            let rates = results.iter().map(|result| result.attained[number].estimate.curve.attainable_rate(t) / 1e6);
            spread(rates.collect()).map(|values| (t.as_secs_f64(), values))
        };
        let points: Vec<(f64, [f64; 3])> = one.band.iter().filter_map(|point| at(point.t)).collect();
        let band = points.iter().map(|(t, [_, low, high])| [*t, *low, *high]).collect();
        let line = points.iter().map(|(t, [median, ..])| [*t, *median]).collect();
        figure.series.push(Series::band(&one.label, *color, band));
        figure.series.push(Series::line(&one.label, *color, line));
    }
    figure.mark_y(first.benchmark.fair_share().as_mbps_f64(), "fair share (gross)");
    figure
}

/// What every rate came to: the share of the seeds that accept it, as a line, and dots where a seed
/// found it too high.
pub(super) fn verdicts(results: &[BenchmarkResult], colors: &[Color], command: &str) -> Figure {
    let mut figure = Figure::new(
        figures::SUSTAINED,
        Axis::new("Probed rate", "Mbit/s"),
        Axis::new("Share of the seeds", "").range(0.0, 1.0),
    );
    figure.caption = "Lines: the share of the seeds that accept the rate. Dots: the share that find it too high. What is missing to 1 is undecided, or \
         was not probed."
        .to_owned();
    figure.command = command.to_owned();
    let Some(first) = results.first() else { return figure };
    for (number, (one, color)) in first.attained.iter().zip(colors).enumerate() {
        let share = |rate: Rate, wanted: fn(ProbeVerdict) -> bool| {
            let probes = results.iter().flat_map(|result| &result.attained[number].estimate.probes);
            let count = probes.filter(|probe| probe.rate == rate && wanted(probe.verdict)).count();
            [rate.as_mbps_f64(), count as f64 / results.len() as f64]
        };
        let rates = || first.benchmark.rates().into_iter();
        let accepted = rates().map(|rate| share(rate, |verdict| matches!(verdict, ProbeVerdict::Accepted(_))));
        let refused = rates().map(|rate| share(rate, |verdict| matches!(verdict, ProbeVerdict::NonStationary)));
        figure.series.push(Series::steps(&one.label, *color, accepted.collect()));
        let refused: Vec<[f64; 2]> = refused.filter(|[_, share]| *share > 0.0).collect();
        if !refused.is_empty() {
            figure.series.push(Series::points(format!("{}, too high", one.label), *color, refused));
        }
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_two_and_the_interval_reaches_from_end_to_end() {
        assert_eq!(spread(vec![4.0, 1.0, 9.0]), Some([4.0, 1.0, 9.0]));
        assert_eq!(spread(vec![4.0, 1.0, 9.0, 5.0]), Some([4.5, 1.0, 9.0]));
        assert_eq!(spread(vec![1.0, 9.0]), Some([5.0, 1.0, 9.0]));
        assert_eq!(spread(vec![]), None);
    }

    #[test]
    fn a_seed_that_lacks_a_number_leaves_none_and_one_that_knows_bounds_leaves_bounds() {
        let number = |value| Cell::number(value, 1);
        assert_eq!(merged(&[number(3.0), number(1.0), number(9.0)]), Cell::quantity(3.0, 1.0, 9.0, 1));
        assert_eq!(merged(&[number(3.0), Cell::Missing]), Cell::Missing);
        assert_eq!(merged(&[Cell::Missing]), Cell::Missing);
        let (at_least, within) = (Cell::between(2.0, None, 1), Cell::between(0.0, Some(4.0), 1));
        assert_eq!(merged(std::slice::from_ref(&within)), within);
        assert_eq!(merged(&[number(3.0), within.clone(), number(2.0)]), within);
        assert_eq!(merged(&[number(3.0), within, at_least]), Cell::between(0.0, None, 1));
    }

    #[test]
    fn words_are_counted_unless_all_say_the_same() {
        let say = |words: &[&str]| {
            let cells: Vec<Cell> =
                words.iter().map(|word| if word.is_empty() { Cell::Missing } else { Cell::text(*word) }).collect();
            counted(cells.iter()).main().unwrap()
        };
        assert_eq!(say(&["9 undecided", "9 undecided"]), "9 undecided");
        assert_eq!(
            say(&["8 undecided", "9 too high", "9 too high", ""]),
            "9 too high: 2; 8 undecided: 1; all accepted: 1"
        );
    }
}
