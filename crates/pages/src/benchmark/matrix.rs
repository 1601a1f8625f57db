//! Contestants by queues: one number each, where every contestant was put on every queue.

use flowstart_benchmark::{Attained, BenchmarkResult};
use flowstart_race::{Contestant, QueueChoice};
use flowstart_report::{Best, Cell, Column, Table};
use flowstart_units::Span;

use super::seeds::merged;
use super::tables::{STARTUP_MS, kilobytes, long_run};

/// Lengths of intervals that have a table of their own.
const LENGTHS_MS: [u64; 3] = [100, 1_000, 10_000];

/// A table of the long-term rates, one for each length of interval, and those of the start, with a
/// row per contestant and a column per queue; none unless every contestant is on every one of
/// several queues. With several seeds a number is the median, with the lowest and the highest.
pub(super) fn matrices(results: &[BenchmarkResult]) -> Vec<Table> {
    let Some(first) = results.first() else { return Vec::new() };
    let Some((names, queues)) = grid(&first.benchmark.race.contestants) else { return Vec::new() };
    let seeds = if results.len() > 1 {
        format!(", median of {} seeds [lowest, highest]", results.len())
    } else {
        String::new()
    };
    let table = |title: String, unit: &str, cell: &dyn Fn(&Attained) -> Cell| {
        let mut columns = vec![Column::key("contestant")];
        columns.extend(queues.iter().map(|queue| Column::number(queue.to_string(), unit).best(Best::Highest).apart()));
        let mut table = Table::new(format!("{title}{seeds}"), columns);
        for (row, name) in names.iter().enumerate() {
            let of = |column: usize| {
                let place = row * queues.len() + column;
                let cells: Option<Vec<Cell>> =
                    results.iter().map(|result| result.attained.get(place).map(cell)).collect();
                cells.map_or(Cell::Missing, |cells| merged(&cells))
            };
            table.push(std::iter::once(Cell::text(name)).chain((0..queues.len()).map(of)).collect());
        }
        table
    };
    let mut tables = vec![table("In the long run".to_owned(), "Mbit/s", &long_run)];
    for ms in LENGTHS_MS {
        let length = Span::from_millis(ms);
        tables.push(table(format!("In every interval of {length}, at least"), "Mbit/s", &|one| {
            Cell::number(one.estimate.curve.attainable_rate(length) / 1e6, 2)
        }));
    }
    if first.attained.iter().any(|one| one.startup.is_some()) {
        for ms in STARTUP_MS {
            let length = Span::from_millis(ms);
            tables.push(table(format!("Delivered {length} after the start, at least"), "kB", &|one| {
                let bits = one.startup.as_ref().map(|startup| startup.service(length));
                Cell::number_or_missing(bits.map(kilobytes), 0)
            }));
        }
    }
    tables
}

/// The contestants' names without queue and the queues, if every one is on every one of several.
fn grid(contestants: &[Contestant]) -> Option<(Vec<String>, Vec<QueueChoice>)> {
    let name = |one: &Contestant| Contestant { queue: None, ..one.clone() }.to_string();
    let queues: Vec<QueueChoice> =
        contestants.iter().take_while(|one| name(one) == name(&contestants[0])).filter_map(|one| one.queue).collect();
    let rows = contestants.chunks_exact(queues.len().max(1));
    let whole = queues.len() > 1
        && rows.remainder().is_empty()
        && rows.clone().all(|row| {
            row.iter().zip(&queues).all(|(one, queue)| one.queue == Some(*queue) && name(one) == name(&row[0]))
        });
    whole.then(|| (rows.map(|row| name(&row[0])).collect(), queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<Contestant> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn contestants_make_a_grid_only_if_each_is_on_every_queue() {
        let (names, queues) = grid(&named(&["cubic@codel", "cubic@pie", "reno@codel", "reno@pie"])).unwrap();
        assert_eq!(names, ["hystart+cubic", "slow_start+reno"]);
        assert_eq!(queues.iter().map(ToString::to_string).collect::<Vec<_>>(), ["codel", "pie"]);
        for none in [
            &["cubic@codel", "reno@codel"][..],
            &["cubic@codel", "cubic@pie", "reno@codel"],
            &["cubic@codel", "cubic@pie", "reno@pie", "reno@codel"],
            &["cubic", "reno"],
            &[],
        ] {
            assert_eq!(grid(&named(none)), None, "{none:?}");
        }
    }
}
