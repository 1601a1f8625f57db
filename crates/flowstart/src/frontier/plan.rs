//! What the work costs, cell by cell, before any of it is done.

use std::collections::BTreeMap;

use flowstart_frontier::{Cell as Place, Frontier, Work};
use flowstart_report::{Cell, Column, Table};
use serde_json::json;

use flowstart_pages::frontier::tables::{duration, large};

use super::{FrontierArgs, PACKETS_PER_SECOND};
use crate::output::{Done, print, print_json, terminal};

/// Numbers of cores that hours are said for.
const CORES: [usize; 6] = [1, 2, 4, 16, 64, 256];

/// Packets of every cell and seed, which one thread does, in the order in which they are begun.
struct Plan {
    cells: BTreeMap<usize, (Place, f64)>,
    groups: Vec<f64>,
    starts: usize,
}

impl Plan {
    fn new(frontier: &Frontier, works: &[Work]) -> Self {
        let turn = |seed: u64| frontier.seeds.iter().position(|known| *known == seed);
        let mut cells: BTreeMap<usize, (Place, f64)> = BTreeMap::new();
        let mut groups: BTreeMap<_, f64> = BTreeMap::new();
        for work in works {
            let packets = work.packets();
            cells.entry(work.cell_number).or_insert_with(|| (work.cell, 0.0)).1 += packets;
            *groups.entry((turn(work.seed), work.cell_number)).or_default() += packets;
        }
        let mut groups: Vec<_> = groups.into_iter().map(|((turn, _), packets)| (turn, packets)).collect();
        groups.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        Self { cells, groups: groups.into_iter().map(|(_, packets)| packets).collect(), starts: works.len() }
    }

    fn packets(&self) -> f64 {
        self.groups.iter().sum()
    }

    /// Seconds that so many cores need: each takes the next cell and seed when it is done with one.
    fn seconds(&self, cores: usize) -> f64 {
        let mut busy = vec![0.0_f64; cores];
        for packets in &self.groups {
            if let Some(first) = busy.iter_mut().min_by(|a, b| a.total_cmp(b)) {
                *first += packets / PACKETS_PER_SECOND;
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }
}

/// Prints it.
pub(super) fn plan(frontier: &Frontier, args: &FrontierArgs) -> Done {
    let plan = Plan::new(frontier, &frontier.works());
    if args.json {
        return print_json(&document(&plan));
    }
    let terminal = terminal();
    print(&format!("{}\n{}", by_path(&plan).to_terminal(terminal), by_cores(&plan).to_terminal(terminal)))
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
    for (cell, packets) in plan.cells.values() {
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
            Cell::text(duration(packets / PACKETS_PER_SECOND)),
            Cell::number(100.0 * packets / all.max(1.0), 1),
        ]);
    }
    table
}

fn by_cores(plan: &Plan) -> Table {
    let title = format!("All {} simulated starts, {} packets", plan.starts, large(plan.packets()));
    let mut table = Table::new(title, vec![Column::key("cores"), Column::text("time")]);
    for cores in CORES {
        table.push(vec![Cell::text(cores.to_string()), Cell::text(duration(plan.seconds(cores)))]);
    }
    table
}

fn document(plan: &Plan) -> serde_json::Value {
    let cells = plan.cells.values().map(|(cell, packets)| {
        json!({
            "capacity_mbps": cell.capacity.as_mbps_f64(), "rtt_ms": cell.rtt.as_millis_f64(), "room": cell.room(),
            "path": cell.path.to_string(), "load": cell.load.to_string(),
            "packets": packets, "seconds": packets / PACKETS_PER_SECOND,
        })
    });
    let cores = CORES.iter().map(|cores| json!({ "cores": cores, "hours": plan.seconds(*cores) / 3600.0 }));
    json!({
        "starts": plan.starts, "packets": plan.packets(), "packets_per_second_of_a_core": PACKETS_PER_SECOND,
        "cells": cells.collect::<Vec<_>>(), "cores": cores.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_share_the_work_and_none_does_less_than_the_largest_piece() {
        let seconds = |number: f64| number * PACKETS_PER_SECOND;
        let plan = Plan { cells: BTreeMap::new(), groups: [6.0, 3.0, 2.0, 1.0].map(seconds).to_vec(), starts: 4 };
        assert_eq!([1, 2, 4, 16].map(|cores| plan.seconds(cores)), [12.0, 6.0, 6.0, 6.0]);
    }
}
