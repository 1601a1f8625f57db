//! One race in several worlds (simulator, kernel, QUIC): a table, and how far they are apart.

use flowstart_measure::Estimate;
use flowstart_race::measures::{
    COMPLETION, DELAY_P99, DELIVERED, EXIT_RTTS, EXIT_WINDOW, LOST_AFTER, LOST_BEFORE, TIME_TO,
};
use flowstart_race::{ContestantResult, Measure, RaceResult};
use flowstart_report::{Best, Cell, Column, Page, Palette, Section, Table};

use super::tables::{Show, cell, colors, column, conditions};
use super::verdict::{example_size, milliseconds};

/// A race, and what carried it.
pub struct World<'a> {
    /// "simulator", "kernel", "QUIC": the first is what others are compared with.
    pub name: &'static str,
    /// What came out.
    pub result: &'a RaceResult,
}

/// What is shown: what the first world measures.
fn shown(result: &RaceResult) -> Vec<Show> {
    let mut list = vec![EXIT_RTTS.measure(), EXIT_WINDOW.measure(), TIME_TO.at(90)];
    list.extend([5, 10, 20].map(|rtts| DELIVERED.at(rtts)));
    list.extend([&DELAY_P99, &LOST_BEFORE, &LOST_AFTER].map(|item| item.measure()));
    list.extend(result.race.sizes.iter().map(|size| COMPLETION.of(*size)));
    list.into_iter().map(Show::Measure).collect()
}

/// Contestants in the order of the first world, each with the worlds that have it.
fn by_contestant<'a>(worlds: &'a [World<'a>]) -> Vec<(&'a str, Vec<(&'a World<'a>, &'a ContestantResult)>)> {
    let Some(first) = worlds.first() else { return Vec::new() };
    let of = |label: &str| {
        let found = |world: &'a World<'a>| {
            let mut contestants = world.result.contestants.iter();
            contestants.find(|contestant| contestant.label == label).map(|contestant| (world, contestant))
        };
        worlds.iter().filter_map(found).collect()
    };
    first.result.contestants.iter().map(|contestant| (contestant.label.as_str(), of(&contestant.label))).collect()
}

/// A row for each contestant and world.
#[must_use]
pub fn table(worlds: &[World<'_>]) -> Table {
    let Some(first) = worlds.first() else { return Table::new("", Vec::new()) };
    let show = shown(first.result);
    let mut columns = vec![Column::key("contestant"), Column::key("where")];
    // The best is nobody's merit here: rows are to be alike.
    columns.extend(show.iter().map(|show| column(*show).best(Best::None)));
    let mut table = Table::new("The same race in each world", columns);
    let colors = colors(first.result, &mut Palette::new());
    for ((label, rows), color) in by_contestant(worlds).into_iter().zip(colors) {
        for (world, contestant) in rows {
            let mut cells = vec![Cell::text(label), Cell::text(world.name)];
            cells.extend(show.iter().map(|show| cell(world.result, contestant, *show)));
            table.push_colored(color, cells);
        }
    }
    table
}

/// How long a transfer takes in the first world and in the others, a sentence for each contestant.
#[must_use]
pub fn sentences(worlds: &[World<'_>]) -> Vec<String> {
    let Some(size) = worlds.first().and_then(|world| example_size(world.result)) else { return Vec::new() };
    let measure: Measure = COMPLETION.of(size);
    let mut list = Vec::new();
    for (label, rows) in by_contestant(worlds) {
        let times = rows.iter().filter_map(|(world, contestant)| Some((*world, contestant.estimate(measure)?)));
        let times: Vec<_> = times.collect();
        let Some(((world, reference), others)) = times.split_first() else { continue };
        let mut parts = vec![format!("{} ({})", milliseconds(reference.mean), world.name)];
        // Where nothing is random one run says all.
        let half_width = |world: &World<'_>, time: &Estimate| match time.half_width {
            None if !world.result.race.is_random() => Some(0.0),
            half => half,
        };
        let of_reference = half_width(world, reference);
        for (world, time) in others {
            let ratio = time.mean / reference.mean;
            let half = half_width(world, time).zip(of_reference).filter(|halves| *halves != (0.0, 0.0));
            // Both vary: that of a quotient, to first order.
            let relative = |(own, theirs): (f64, f64)| {
                let (own, theirs) = (own / time.mean, theirs / reference.mean);
                (own * own + theirs * theirs).sqrt()
            };
            let half = half.map_or(String::new(), |halves| format!(" ± {:.0}", ratio * relative(halves) * 100.0));
            let apart = ratio * 100.0 - 100.0;
            parts.push(format!("{} ({}: {apart:+.0}{half} %)", milliseconds(time.mean), world.name));
        }
        list.push(format!("{label}: {size} takes {}.", parts.join(", ")));
    }
    list
}

/// What stands under the table: how ends are set up in each world.
#[must_use]
pub fn remarks(worlds: &[World<'_>]) -> Vec<String> {
    let one = |world: &World<'_>| {
        let race = &world.result.race;
        let runs = if race.is_random() { race.effective_runs() } else { 1 };
        let interrupted = if world.result.complete { "" } else { ", interrupted" };
        let runs = format!("{runs} run{}{interrupted}", if runs == 1 { "" } else { "s" });
        format!("{} ({runs}): {}", world.name, conditions(world.result).join(" "))
    };
    worlds.iter().map(one).collect()
}

/// The report. `title` as for a race.
#[must_use]
pub fn page(worlds: &[World<'_>], title: String, command: String, notes: Vec<String>) -> Page {
    let provenance = worlds.first().map_or_else(Vec::new, |world| {
        let race = &world.result.race;
        let pair = |key: &str, value: String| (key.to_owned(), value);
        vec![
            pair("seed", race.seed.to_string()),
            pair("flowstart", env!("CARGO_PKG_VERSION").to_owned()),
            pair("capacity", race.capacity().to_string()),
            pair("base RTT", race.path.rtt.to_string()),
            pair("buffer", race.buffer().to_string()),
        ]
    });
    Page {
        title,
        command,
        provenance,
        warnings: notes,
        summary: sentences(worlds),
        sections: vec![Section { tables: vec![table(worlds)], ..Section::default() }],
        footnotes: remarks(worlds),
        ..Page::default()
    }
}

#[cfg(test)]
mod tests {
    use flowstart_race::{Race, RunOptions};

    use super::*;

    fn race(names: &[&str], rtt: &str) -> RaceResult {
        let contestants = names.iter().map(|name| name.parse().unwrap()).collect();
        let mut race = Race { contestants, ..Race::default() };
        race.path.rtt = rtt.parse().unwrap();
        race.run(&RunOptions::default()).unwrap()
    }

    #[test]
    fn each_contestant_has_a_row_for_every_world_that_has_it_and_is_told_apart_from_the_first() {
        let (simulated, other) = (race(&["hystart+cubic", "slow_start+reno"], "20 ms"), race(&["reno"], "40 ms"));
        let worlds = [World { name: "simulator", result: &simulated }, World { name: "kernel", result: &other }];
        let table = table(&worlds);
        let keys: Vec<String> = table.rows.iter().map(|row| format!("{:?} {:?}", row.cells[0], row.cells[1])).collect();
        assert_eq!(keys.len(), 3);
        assert!(keys[0].contains("hystart+cubic") && keys[1].contains("slow_start+reno"), "{keys:?}");
        assert!(keys[1].contains("simulator") && keys[2].contains("kernel"), "{keys:?}");
        let said = sentences(&worlds);
        assert_eq!(said[0], "hystart+cubic: 1 MB takes 157 ms (simulator).");
        let ratio = |result: &RaceResult| {
            let size = example_size(result).unwrap();
            result.contestants.last().unwrap().estimate(COMPLETION.of(size)).unwrap().mean
        };
        let percent = (ratio(&other) / ratio(&simulated) - 1.0) * 100.0;
        assert!(said[1].ends_with(&format!("(kernel: {percent:+.0} %).")), "{} {percent}", said[1]);
        assert!(percent > 20.0, "{percent}");
    }

    /// The simulator's own interval was left out: ± 162 % where it is 198.
    #[test]
    fn the_interval_of_a_difference_has_that_of_either_world() {
        // 278 ± 245.8 and 357.6 ± 449.9, from two runs each: 12.706 / sqrt(2) times the deviation.
        let with = |mean: f64, half: f64| {
            let away = half / 12.706;
            let mut result = race(&["hystart+cubic"], "20 ms");
            result.race.others.flow = vec!["cubic".parse::<flowstart_race::Background>().unwrap().spec(0)];
            let run = |number: u64, value| flowstart_race::RunRecord {
                run: number,
                values: vec![(COMPLETION.of(example_size(&result).unwrap()), value)],
                exits: Vec::new(),
                complete: true,
            };
            result.contestants[0].runs = vec![run(0, mean - away), run(1, mean + away)];
            result
        };
        let (one, other) = (with(277.9, 245.8), with(357.6, 449.9));
        let worlds = [World { name: "simulator", result: &one }, World { name: "kernel", result: &other }];
        let (of_one, of_other) = (245.8_f64 / 277.9, 449.9 / 357.6);
        let half = 357.6 / 277.9 * (of_one * of_one + of_other * of_other).sqrt() * 100.0;
        assert!((half - 198.0).abs() < 1.0, "{half}");
        let said = sentences(&worlds);
        assert!(said[0].ends_with(&format!("(kernel: +29 ± {half:.0} %).")), "{said:?}");
        // One run of a random world has no interval, and then neither has the difference.
        let mut single = one.clone();
        single.contestants[0].runs.truncate(1);
        let worlds = [World { name: "simulator", result: &single }, World { name: "kernel", result: &other }];
        assert!(!sentences(&worlds)[0].contains('±'), "{:?}", sentences(&worlds));
    }
}
