//! The tables of a race.

use super::verdict::{example_size, rank_measure};
use flowstart_measure::Estimate;
use flowstart_race::measures::{
    ADDED_DELAY, COMPLETION, CONVERGENCE, DEFICIT, DELAY_MAX, DELAY_MEAN, DELAY_P99, DELIVERED, EXIT_RTTS, EXIT_WINDOW,
    HARM, HARM_RATIO, Item, JAIN, LOST_AFTER, LOST_BEFORE, LOST_OTHERS, SLOWDOWN, SLOWDOWN_MEAN, START_OWN_DELAY,
    TIME_TO,
};
use flowstart_race::{Better, ContestantResult, Measure, RaceResult, exit_name};
use flowstart_report::{Best, Cell, Color, Column, Palette, Table};

/// One colour per contestant, in the order of the race.
pub(super) fn colors(result: &RaceResult, palette: &mut Palette) -> Vec<Color> {
    result.contestants.iter().map(|contestant| palette.color(&contestant.label)).collect()
}

/// What a column of a table shows.
#[derive(Clone, Copy)]
pub(super) enum Show {
    /// The queue a contestant meets.
    Queue,
    /// Why starts ended.
    ExitReason,
    /// A measure.
    Measure(Measure),
}

/// The tables people read first.
pub(super) fn main_tables(result: &RaceResult, colors: &[Color]) -> Vec<Table> {
    let race = &result.race;
    let measures = |list: &[Measure]| list.iter().copied().map(Show::Measure).collect::<Vec<_>>();
    let mut start = vec![Show::Queue, Show::ExitReason];
    start.extend(measures(&[
        EXIT_RTTS.measure(),
        EXIT_WINDOW.measure(),
        TIME_TO.at(90),
        DEFICIT.measure(),
        DELIVERED.at(5),
        DELIVERED.at(10),
        DELIVERED.at(20),
    ]));
    let mut tables = vec![
        table(result, colors, "The start", &start),
        table(
            result,
            colors,
            "Queueing delay and losses",
            &measures(&[&DELAY_MAX, &DELAY_P99, &DELAY_MEAN, &LOST_BEFORE, &LOST_AFTER].map(Item::measure)),
        ),
    ];
    if !race.sizes.is_empty() {
        let mut transfers: Vec<Measure> =
            race.sizes.iter().flat_map(|s| [COMPLETION.of(*s), SLOWDOWN.of(*s)]).collect();
        transfers.push(SLOWDOWN_MEAN.measure());
        tables.push(table(result, colors, "Completion of transfers", &measures(&transfers)));
    }
    if race.has_others() {
        let others = [ADDED_DELAY.at(50), ADDED_DELAY.at(99)]
            .into_iter()
            .chain([&HARM, &HARM_RATIO, &LOST_OTHERS, &CONVERGENCE, &JAIN].map(Item::measure))
            .collect::<Vec<_>>();
        tables.push(table(result, colors, "What it costs the others", &measures(&others)));
    }
    tables
}

/// The table of the verdict: speed and cost side by side, the fastest first.
pub(super) fn ranking(result: &RaceResult, colors: &[Color]) -> Table {
    let mut show = vec![TIME_TO.at(90)];
    show.extend(example_size(result).map(|size| COMPLETION.of(size)));
    show.push(rank_measure(result));
    if result.race.has_others() {
        show.extend([ADDED_DELAY.at(99), LOST_OTHERS.measure()]);
    } else {
        show.extend([START_OWN_DELAY.at(99), DELAY_P99.measure()]);
    }
    show.extend([LOST_BEFORE.measure(), LOST_AFTER.measure()]);
    let show: Vec<Show> = show.into_iter().map(Show::Measure).collect();
    let mut ranked = table(result, colors, "Who was fastest, and at what cost", &show);
    for (column, heading) in
        ranked.columns.iter_mut().zip(&show_headings(&show, result.race.reference().horizon_rtts()))
    {
        if let Some(heading) = heading {
            heading.clone_into(&mut column.heading);
        }
    }
    // A mean over fewer runs is not compared with one over more.
    let speed = |row: &usize| {
        let estimate = result.contestants[*row].estimate(rank_measure(result));
        estimate.map_or((0, f64::INFINITY), |estimate| (estimate.runs, estimate.mean))
    };
    let mut order: Vec<usize> = (0..ranked.rows.len()).collect();
    order.sort_by(|a, b| {
        let ((a_runs, a), (b_runs, b)) = (speed(a), speed(b));
        b_runs.cmp(&a_runs).then(a.total_cmp(&b))
    });
    ranked.rows = order.into_iter().map(|row| ranked.rows[row].clone()).collect();
    ranked
}

/// Headings that stand alone, without a table's title to explain them; the first column's is fine.
fn show_headings(show: &[Show], horizon: f64) -> Vec<Option<String>> {
    let plain = |show: &Show| match show {
        Show::Measure(measure) if measure.is(&TIME_TO) => Some("at 90 % after".to_owned()),
        Show::Measure(measure) if measure.is(&COMPLETION) => Some(format!("{} takes", measure.heading())),
        Show::Measure(measure) if measure.is(&SLOWDOWN_MEAN) => Some("times the ideal, mean".to_owned()),
        Show::Measure(measure) if measure.is(&START_OWN_DELAY) => Some("queueing delay in the start, P99".to_owned()),
        Show::Measure(measure) if measure.is(&DELAY_P99) => Some(format!("queueing delay over {horizon:.0} RTT, P99")),
        Show::Measure(measure) if measure.is(&ADDED_DELAY) => Some("delay added to others, P99".to_owned()),
        Show::Measure(measure) if measure.is(&LOST_OTHERS) => Some("others' packets lost".to_owned()),
        Show::Measure(measure) if measure.is(&LOST_BEFORE) => Some("lost before exit".to_owned()),
        Show::Measure(measure) if measure.is(&LOST_AFTER) => Some("lost after".to_owned()),
        _ => None,
    };
    std::iter::once(None).chain(show.iter().map(plain)).collect()
}

/// One table with every measure.
pub(super) fn full_table(result: &RaceResult, colors: &[Color]) -> Table {
    let mut show = vec![Show::Queue, Show::ExitReason];
    show.extend(result.race.measures().into_iter().map(Show::Measure));
    table(result, colors, "All measures", &show)
}

fn table(result: &RaceResult, colors: &[Color], title: &str, show: &[Show]) -> Table {
    let mut columns = vec![Column::key("contestant").help("Flow start and congestion avoidance.")];
    columns.extend(show.iter().map(|show| match show {
        Show::Measure(measure) if best_has_fewer_runs(result, *measure) => column(*show).best(Best::None),
        _ => column(*show),
    }));
    let mut table = Table::new(title, columns);
    for (contestant, color) in result.contestants.iter().zip(colors) {
        let mut cells = vec![Cell::text(&contestant.label)];
        cells.extend(show.iter().map(|show| cell(result, contestant, *show)));
        table.push_colored(*color, cells);
    }
    table
}

/// True if whoever has the best mean has it over fewer runs than somebody else.
fn best_has_fewer_runs(result: &RaceResult, measure: Measure) -> bool {
    let estimates = || result.contestants.iter().filter_map(|contestant| contestant.estimate(measure));
    let most = estimates().map(|estimate| estimate.runs).max().unwrap_or(0);
    let better = |a: &Estimate, b: &Estimate| match measure.item().better {
        Better::Lower => a.mean < b.mean,
        Better::Higher => a.mean > b.mean,
        Better::Neither => false,
    };
    estimates().any(|one| one.runs < most && !estimates().any(|other| better(&other, &one)))
}

/// Measures of the tables whose means are not over all runs, and over how many they are; and those
/// in which not reaching something counts as a number.
pub(super) fn over_fewer_runs(result: &RaceResult) -> Vec<String> {
    let sizes = result.race.sizes.iter().map(|size| COMPLETION.of(*size));
    let others = [&SLOWDOWN_MEAN, &CONVERGENCE, &EXIT_RTTS].map(Item::measure);
    let known = result.race.measures();
    let fewer = sizes.chain(others).filter(|measure| known.contains(measure)).filter_map(|measure| {
        let runs = |contestant: &ContestantResult| {
            let (have, all) = (contestant.values(measure).len(), contestant.counted_runs());
            // Without any there is no mean, and of runs that were interrupted parts are missing.
            let fewer = have > 0 && have < all && contestant.whole_runs() > 0;
            fewer.then(|| format!("{} {have} of {all}", contestant.label))
        };
        let all: Vec<String> = result.contestants.iter().filter_map(runs).collect();
        (!all.is_empty()).then(|| format!("{}: {}", measure.heading(), all.join(", ")))
    });
    let fewer: Vec<String> = fewer.collect();
    let horizon = result.race.reference().horizon_rtts();
    let late = result.contestants.iter().filter_map(|contestant| {
        let values = contestant.values(TIME_TO.at(90));
        let late = values.iter().filter(|rtts| **rtts >= horizon).count();
        (late > 0 && late < values.len()).then(|| format!("{} in {late} of {}", contestant.label, values.len()))
    });
    let late: Vec<String> = late.collect();
    let mut list = Vec::new();
    if !fewer.is_empty() {
        list.push(format!(
            "Means of those runs only in which it happened: {}. Whoever was too late is left out of them.",
            fewer.join("; ")
        ));
    }
    if !late.is_empty() {
        let heading = TIME_TO.at(90).heading();
        list.push(format!(
            "Column \"{heading}\": not within {horizon:.0} RTT, which count as {horizon:.0}: {}.",
            late.join(", ")
        ));
    }
    list
}

pub(super) fn column(show: Show) -> Column {
    match show {
        Show::Queue => Column::text("queue").help("The bottleneck's queue."),
        Show::ExitReason => {
            Column::text("exit").named("exit_reason").help("Why the start ended (neqo: slow_start_exit_reason).")
        }
        Show::Measure(measure) => {
            let best = match measure.item().better {
                Better::Lower => Best::Lowest,
                Better::Higher => Best::Highest,
                Better::Neither => Best::None,
            };
            Column::number(measure.heading(), measure.unit()).named(measure.name()).help(measure.help()).best(best)
        }
    }
}

pub(super) fn cell(result: &RaceResult, contestant: &ContestantResult, show: Show) -> Cell {
    match show {
        Show::Queue => Cell::text(result.race.queue_name(&contestant.contestant)),
        Show::ExitReason => Cell::text(exits(contestant)),
        Show::Measure(measure) => value(result, contestant, measure),
    }
}

/// "loss", or with several starts "8 loss, 2 marks".
fn exits(contestant: &ContestantResult) -> String {
    match contestant.exits().as_slice() {
        [(reason, _)] => exit_name(*reason).to_owned(),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(reason, count)| format!("{count} {}", exit_name(*reason))).collect();
            parts.join(", ")
        }
    }
}

fn value(result: &RaceResult, contestant: &ContestantResult, measure: Measure) -> Cell {
    let Some(estimate) = contestant.estimate(measure) else { return Cell::Missing };
    let digits = measure.item().digits;
    if measure.is(&TIME_TO) {
        let horizon = result.race.reference().horizon_rtts();
        if estimate.min >= horizon {
            return Cell::text(format!("> {horizon:.0}"));
        }
    }
    match estimate.half_width {
        Some(half) => Cell::quantity(estimate.mean, estimate.mean - half, estimate.mean + half, digits),
        None => Cell::number(estimate.mean, digits),
    }
}

/// How the contestants are run: those run alike together.
pub(super) fn conditions(result: &RaceResult) -> Vec<String> {
    if let Some(stack) = result.race.world.stack() {
        return vec![format!(
            "Senders and receivers: this project's QUIC over {stack}, full packets of 1500 bytes, an ACK at once for \
             every packet, or for all that were there by then, ECN-capable."
        )];
    }
    if result.race.world.is_real() {
        return vec!["Senders and receivers: this machine's kernel, as it is set up.".to_owned()];
    }
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for contestant in &result.contestants {
        let conditions = contestant.contestant.conditions();
        match groups.iter_mut().find(|(known, _)| *known == conditions) {
            Some((_, labels)) => labels.push(&contestant.label),
            None => groups.push((conditions, vec![&contestant.label])),
        }
    }
    groups.into_iter().map(|(conditions, labels)| format!("{}: {conditions}.", labels.join(", "))).collect()
}
