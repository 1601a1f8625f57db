//! The tables of a frontier.

use std::collections::BTreeMap;

use flowstart_frontier::{Attainment, CellScore, ContestantScores, Factor, Plan, REFERENCE, SIZES, Shown, median};
use flowstart_race::measures::{
    DEFICIT, EXIT_QUALITY, HARM, START_LOST, START_OTHERS_DELAY, START_OWN_DELAY, TIME_TO, TRANSFER_DELAY,
};
use flowstart_report::{Best, Cell, Color, Column, Palette, Table};

/// One colour per contestant.
pub fn colors(shown: &Shown<'_>) -> Vec<Color> {
    let mut palette = Palette::new();
    shown.scores.contestants.iter().map(|contestant| palette.color(&contestant.label)).collect()
}

/// The tables people read first.
pub fn main(shown: &Shown<'_>) -> Vec<Table> {
    let mut tables = vec![medians(shown), completions(shown), delays(shown)];
    if shown.result.frontier.grid.as_is {
        // Levels differ all together from path to path.
        tables.extend(super::paths_tables(shown));
        return tables;
    }
    tables.extend(shown.subjects.iter().map(|subject| levels(shown, *subject)));
    tables
}

type Value = fn(&CellScore) -> Option<f64>;

/// A column of medians: heading, unit, name in files, digits, explanation, value.
type Medians = (&'static str, &'static str, &'static str, u8, &'static str, Value);

const MEDIANS: &[Medians] = &[
    ("deficit", "BDP", "deficit_bdp", 2, "M3: data not carried although there was room.", |score| {
        score.get(DEFICIT.measure())
    }),
    ("to 90 %", "RTT", "time_to_90_percent_rtts", 1, "M2: until 90 % of the fair share is kept.", |score| {
        score.get(TIME_TO.at(90))
    }),
    ("E", "", "exit_quality", 2, "M6: log2(window at the exit / BDP).", |score| score.get(EXIT_QUALITY.measure())),
    (
        "slowdown",
        "",
        "slowdown_geometric_mean",
        2,
        "M7: geometric mean over the sizes of completion over ideal.",
        |score| score.slowdown,
    ),
    ("completion / ref.", "", "completion_ratio", 3, "Completion of 100 kB and more over the reference's.", |score| {
        score.completion_ratio
    }),
    (
        "own P99",
        "ms",
        "start_own_delay_p99_ms",
        2,
        "Queueing delay of its own packets, above that without it.",
        |score| score.get(START_OWN_DELAY.at(99)),
    ),
    ("own max", "ms", "start_own_delay_p100_ms", 2, "The largest.", |score| score.get(START_OWN_DELAY.at(100))),
    (
        "others' P99",
        "ms",
        "start_others_delay_p99_ms",
        2,
        "M8: delay added to the others' packets, cells with others.",
        |score| score.get(START_OTHERS_DELAY.at(99)),
    ),
    ("others' max", "ms", "start_others_delay_p100_ms", 2, "M8: the largest, with minus without.", |score| {
        score.get(START_OTHERS_DELAY.at(100))
    }),
    (
        "delay / ref.",
        "",
        "delay_ratio",
        3,
        "Added P99, the larger of own and others', over the reference's.",
        |score| score.delay_ratio,
    ),
    ("harm", "%", "harm_percent", 1, "M9: throughput taken from the greedy flow beyond the fair loss.", |score| {
        score.get(HARM.measure())
    }),
];

/// A ratio of delays, beside that of the reference. Where neither adds any there is nothing to
/// compare, and the reference is not better than itself.
fn compared(ratio: Option<f64>, references: Option<f64>, digits: u8) -> Cell {
    let nothing = ratio == Some(0.0) && references == Some(0.0);
    if nothing { Cell::Missing } else { number(ratio, digits) }
}

/// Medians over the cells.
fn medians(shown: &Shown<'_>) -> Table {
    let mut columns = vec![Column::key("contestant"), Column::number("cells", "")];
    columns.extend(MEDIANS.iter().map(|(heading, unit, name, _, help, _)| {
        let best = if *name == "exit_quality" { Best::None } else { Best::Lowest };
        Column::number(*heading, *unit).named(*name).help(*help).best(best)
    }));
    columns.push(
        Column::number("lost", "")
            .named("lost_caused")
            .help(
                "M5: packets the queue dropped because of it, all cells together until one RTT0 after its end (a cell counts the mean over seeds).",
            )
            .best(Best::Lowest),
    );
    columns.push(
        Column::number("lost, idle", "").named("lost_caused_idle").help("The same on idle paths.").best(Best::Lowest),
    );
    columns.push(
        Column::text("front")
            .help("Nobody is as good in deficit, added delay (own or others' P99) and losses and better in one."),
    );
    let mut table = Table::new("Medians over the grid", columns);
    let fronts = shown.scores.on_the_front();
    for ((contestant, color), on) in shown.scores.contestants.iter().zip(colors(shown)).zip(fronts) {
        let mut cells = vec![Cell::text(&contestant.label), Cell::count(contestant.cells.len() as u64)];
        cells.extend(MEDIANS.iter().map(|(_, _, name, digits, _, value)| {
            let found = contestant.median(value);
            let theirs = shown.scores.contestants[shown.scores.reference].median(value);
            if *name == "delay_ratio" { compared(found, theirs, *digits) } else { number(found, *digits) }
        }));
        cells.push(number(shown.scores.losses(contestant), 0));
        cells.push(number(shown.scores.idle_losses(contestant), 0));
        cells.push(if on { Cell::text("yes") } else { Cell::Missing });
        table.push_colored(color, cells);
    }
    table
}

/// Completion over the reference's, by size.
fn completions(shown: &Shown<'_>) -> Table {
    let mut columns = vec![Column::key("contestant")];
    for size in SIZES {
        let name = format!("completion_ratio_{}", size.to_string().to_lowercase().replace(' ', ""));
        columns.push(Column::number(size.to_string(), "").named(name).best(Best::Lowest));
    }
    let mut table = Table::new(format!("Completion time over that of {REFERENCE}, medians over the cells"), columns);
    for (contestant, color) in shown.scores.contestants.iter().zip(colors(shown)) {
        let ratio = |score: &CellScore, size| score.ratios.iter().find(|(s, _)| *s == size).map(|(_, ratio)| *ratio);
        let mut cells = vec![Cell::text(&contestant.label)];
        cells.extend(SIZES.map(|size| number(contestant.median(|score| ratio(score, size)), 3)));
        table.push_colored(color, cells);
    }
    table
}

/// Queueing delay of whole transfers, by size.
fn delays(shown: &Shown<'_>) -> Table {
    let mut columns = vec![Column::key("contestant")];
    for size in SIZES {
        let name = TRANSFER_DELAY.of(size).name();
        columns.push(Column::number(size.to_string(), "ms").named(name).best(Best::Lowest));
    }
    let mut table = Table::new("P99 of the queueing delay of whole transfers, medians over the cells", columns);
    for (contestant, color) in shown.scores.contestants.iter().zip(colors(shown)) {
        let mut cells = vec![Cell::text(&contestant.label)];
        cells.extend(SIZES.map(|size| number(contestant.median_of(TRANSFER_DELAY.of(size)), 2)));
        table.push_colored(color, cells);
    }
    table
}

/// The worst cells.
pub fn worst(shown: &Shown<'_>) -> Table {
    let columns = vec![
        Column::key("contestant"),
        Column::number("completion / ref.", "").named("completion_ratio"),
        Column::text("in"),
        Column::number("added P99", "ms").named("added_delay_ms"),
        Column::text("in").named("in_delay"),
        Column::number("lost", "").named("lost_caused"),
        Column::text("in").named("in_lost"),
    ];
    let mut table = Table::new("Worst cells", columns);
    for (contestant, color) in shown.scores.contestants.iter().zip(colors(shown)) {
        let mut cells = vec![Cell::text(&contestant.label)];
        let mut push = |value: Value, digits| match contestant.worst(value) {
            Some((score, worst)) if worst > 0.0 => {
                cells.push(number(Some(worst), digits));
                cells.push(Cell::text(shown.scores.cells[score.cell].to_string()));
            }
            _ => cells.extend([Cell::Missing, Cell::Missing]),
        };
        push(|score| score.completion_ratio, 2);
        push(|score| score.added_delay, 2);
        push(|score| score.get(START_LOST.measure()), 0);
        table.push_colored(color, cells);
    }
    table
}

/// Where a contestant is good: medians by the levels of every factor.
fn levels(shown: &Shown<'_>, subject: usize) -> Table {
    let contestant: &ContestantScores = &shown.scores.contestants[subject];
    let columns = vec![
        Column::key("level"),
        Column::number("cells", ""),
        Column::number("completion / ref.", "").named("completion_ratio"),
        Column::number("slower in", "cells"),
        Column::number("delay / ref.", "").named("delay_ratio"),
        Column::number("added P99", "ms").named("added_delay_ms"),
        Column::number("deficit", "BDP").named("deficit_bdp"),
        Column::number("E", "").named("exit_quality"),
        Column::number("lost in", "cells"),
    ];
    let mut table = Table::new(format!("{} by the levels of the grid, medians", contestant.label), columns);
    let reference = &shown.scores.contestants[shown.scores.reference];
    for factor in Factor::ALL {
        let references = shown.scores.by(reference, factor);
        for (level, scores) in shown.scores.by(contestant, factor) {
            let beside = references.iter().find(|(known, _)| *known == level);
            let theirs = beside.and_then(|(_, scores)| median(scores.iter().filter_map(|it| it.delay_ratio).collect()));
            let middle = |value: Value| median(scores.iter().filter_map(|score| value(score)).collect());
            let count =
                |is: fn(&CellScore) -> bool| Cell::count(scores.iter().filter(|score| is(score)).count() as u64);
            table.push(vec![
                Cell::text(level),
                Cell::count(scores.len() as u64),
                number(middle(|score| score.completion_ratio), 3),
                count(|score| score.completion_ratio.is_some_and(|ratio| ratio > 1.0)),
                compared(middle(|score| score.delay_ratio), theirs, 3),
                number(middle(|score| score.added_delay), 2),
                number(middle(|score| score.get(DEFICIT.measure())), 2),
                number(middle(|score| score.get(EXIT_QUALITY.measure())), 2),
                count(|score| score.get(START_LOST.measure()).is_some_and(|lost| lost > 0.0)),
            ]);
        }
    }
    table
}

/// The goals.
pub fn goals(shown: &Shown<'_>) -> Table {
    let columns = vec![
        Column::key("contestant"),
        Column::text("goal"),
        Column::number("value", ""),
        Column::text("95 % interval"),
        Column::number("limit", ""),
        Column::text("unit"),
        Column::text("verdict"),
        Column::number("cells lost", ""),
        Column::number("of", ""),
    ];
    let mut table = Table::new("Goals", columns);
    let colors = colors(shown);
    for subject in &shown.subjects {
        for goal in shown.goals(*subject) {
            let packets = goal.unit == "packets";
            let end = |end: f64| if end.is_infinite() { "infinite".to_owned() } else { format!("{end:.3}") };
            let interval = goal.interval.map(|[low, high]| Cell::text(format!("{} to {}", end(low), end(high))));
            table.push_colored(
                colors[*subject],
                vec![
                    Cell::text(&shown.scores.contestants[*subject].label),
                    Cell::text(goal.name),
                    number(goal.value, if packets { 1 } else { 3 }),
                    interval.unwrap_or(Cell::Missing),
                    number(Some(goal.limit), if packets { 0 } else { 3 }),
                    Cell::text(goal.unit),
                    Cell::text(goal.verdict.name()),
                    Cell::count(goal.lost.len() as u64),
                    Cell::count(goal.cells as u64),
                ],
            );
        }
    }
    table
}

/// The cells that are lost, by goal, the worst first; at most `most` of each.
pub fn lost(shown: &Shown<'_>, most: Option<usize>) -> Table {
    let columns = vec![
        Column::key("contestant"),
        Column::key("goal"),
        Column::text("cell"),
        Column::number("value", ""),
        Column::text("exit"),
    ];
    let mut table = Table::new("Lost cells", columns);
    let mut left_out = 0;
    for subject in &shown.subjects {
        let contestant = &shown.scores.contestants[*subject];
        for goal in shown.goals(*subject) {
            let shown_cells = most.unwrap_or(usize::MAX);
            left_out += goal.lost.len().saturating_sub(shown_cells);
            for (cell, value) in goal.lost.iter().take(shown_cells) {
                let exits = contestant.cells.iter().find(|score| score.cell == *cell).map(|score| score.exits.as_str());
                table.push(vec![
                    Cell::text(&contestant.label),
                    Cell::text(goal.name),
                    Cell::text(shown.scores.cells[*cell].to_string()),
                    number(Some(*value), 3),
                    Cell::text(exits.unwrap_or_default()),
                ]);
            }
        }
    }
    if left_out > 0 {
        table.notes.push(format!("{left_out} more: --all names them here, --out writes them to a file."));
    }
    table
}

/// A number, or what stands for infinity.
pub(super) fn number(value: Option<f64>, digits: u8) -> Cell {
    match value {
        Some(value) if value.is_infinite() => Cell::text("infinite"),
        value => Cell::number_or_missing(value, digits),
    }
}

/// What the work costs, before any of it is done: by path, and by how many cores do it.
#[must_use]
pub fn plan(plan: &Plan) -> [Table; 2] {
    [by_path(plan), by_cores(plan)]
}

/// Cells of the same capacity and RTT together.
fn by_path(plan: &Plan) -> Table {
    let columns = vec![
        Column::key("capacity, RTT"),
        Column::number("cells", ""),
        Column::text("packets"),
        Column::text("processor time"),
        Column::number("of all", "%"),
    ];
    let mut table = Table::new("What there is to do, as estimated beforehand", columns);
    let mut paths: BTreeMap<_, (u64, f64)> = BTreeMap::new();
    for (cell, packets) in plan.cells() {
        let (count, sum) = paths.entry((cell.capacity, cell.rtt)).or_default();
        *count += 1;
        *sum += packets;
    }
    let all = plan.packets();
    for ((capacity, rtt), (count, packets)) in paths {
        table.push(vec![
            Cell::text(format!("{capacity}, {rtt}")),
            Cell::count(count),
            Cell::text(large(packets)),
            Cell::text(duration(plan.time_of(packets))),
            Cell::number(100.0 * packets / all.max(1.0), 1),
        ]);
    }
    table
}

fn by_cores(plan: &Plan) -> Table {
    let title = format!("All {} simulated starts, {} packets", plan.starts(), large(plan.packets()));
    let mut table = Table::new(title, vec![Column::key("cores"), Column::text("time")]);
    for cores in Plan::CORES {
        table.push(vec![Cell::text(cores.to_string()), Cell::text(duration(plan.seconds(cores)))]);
    }
    table
}

/// "12 million".
pub fn large(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} billion", n / 1e9),
        n if n >= 1e6 => format!("{:.0} million", n / 1e6),
        n => format!("{n:.0}"),
    }
}

/// "3 hours".
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 5400.0 => format!("{:.0} hours", s / 3600.0),
        s if s >= 90.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.0} seconds", s.ceil()),
    }
}

/// What the numbers are.
pub fn remarks(shown: &Shown<'_>) -> Vec<String> {
    let (finished, all) = shown.result.finished();
    let frontier = &shown.result.frontier;
    let seeds: Vec<String> = frontier.seeds.iter().map(u64::to_string).collect();
    let mut remarks = vec![
        format!(
            "Medians over the seeds {} (one seed where nothing is random), then medians over {} cells.",
            seeds.join(", "),
            shown.scores.cells.len()
        ),
        format!(
            "Ratios are to {REFERENCE}, unpaced, over a drop-tail queue in the same cell; contestants with an avoidance that \
             wants marks meet a queue that marks (1 ms, or two packets' time if that is longer) and a DCTCP flow where others meet a CUBIC flow."
        ),
        "Transfers that would take more than 200 round trips at the fair share are left out of a cell.".to_owned(),
        "Delays and losses are those of packets that arrive at the bottleneck from t = 0 until one RTT0 after the start's end. Added P99 is the larger of what its own packets and the others' packets wait longer; up to one packet's transmission time counts as none.".to_owned(),
    ];
    remarks.extend(frontier.grid.left_out());
    if finished < all {
        remarks.push(format!("Interrupted: {finished} of {all} were finished; --resume goes on."));
    }
    remarks.push(format!("flowstart {}, frontier {}", env!("CARGO_PKG_VERSION"), shown.hash()));
    remarks
}

/// How many goals were reached, in a sentence per subject.
pub fn summary(shown: &Shown<'_>) -> Vec<String> {
    shown
        .subjects
        .iter()
        .map(|subject| {
            let goals = shown.goals(*subject);
            let count = |verdict| goals.iter().filter(|goal| goal.verdict == verdict).count();
            let label = &shown.scores.contestants[*subject].label;
            let (reached, open) = (count(Attainment::Reached), count(Attainment::Undecided));
            let open = if open > 0 { format!("; {open} are undecided") } else { String::new() };
            format!("{label} reaches {reached} of {} goals{open}.", goals.len())
        })
        .collect()
}
