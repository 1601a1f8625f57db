//! What the work costs, cell by cell, before any of it is done.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{Cell, Frontier, Work};

/// Packets that one core simulates in a second, for saying beforehand how long it will take: 4.9
/// million (10 Gbit/s and 300 ms) to 7 million (the quick grid) on a shared virtual AMD EPYC
/// machine.
pub const PACKETS_PER_SECOND: f64 = 5e6;

/// What there is to do, as estimated beforehand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cells by their numbers, with the packets of all that is done in them.
    cells: BTreeMap<usize, (Cell, f64)>,
    /// Packets of every cell and seed, which one thread does, in the order in which they are begun.
    groups: Vec<f64>,
    starts: usize,
}

impl Plan {
    /// Numbers of cores that times are told for.
    pub const CORES: [usize; 6] = [1, 2, 4, 16, 64, 256];

    /// Of this work, which is the frontier's or a part of it.
    #[must_use]
    pub fn new(frontier: &Frontier, works: &[Work]) -> Self {
        let turn = |seed: u64| frontier.seeds.iter().position(|known| *known == seed);
        let mut cells: BTreeMap<usize, (Cell, f64)> = BTreeMap::new();
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

    /// Every cell with its packets.
    pub fn cells(&self) -> impl Iterator<Item = &(Cell, f64)> {
        self.cells.values()
    }

    /// How many starts are simulated.
    #[must_use]
    pub fn starts(&self) -> usize {
        self.starts
    }

    /// Packets of everything.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.groups.iter().sum()
    }

    /// Seconds that so many cores need: each takes the next cell and seed when it is done with one.
    #[must_use]
    pub fn seconds(&self, cores: usize) -> f64 {
        let mut busy = vec![0.0_f64; cores];
        for packets in &self.groups {
            if let Some(first) = busy.iter_mut().min_by(|a, b| a.total_cmp(b)) {
                *first += packets / PACKETS_PER_SECOND;
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }

    /// As a document.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let cells = self.cells().map(|(cell, packets)| {
            json!({
                "capacity_mbps": cell.capacity.as_mbps_f64(), "rtt_ms": cell.rtt.as_millis_f64(), "room": cell.room(),
                "path": cell.path.to_string(), "load": cell.load.to_string(),
                "packets": packets, "seconds": packets / PACKETS_PER_SECOND,
            })
        });
        let cores = Self::CORES.iter().map(|cores| json!({ "cores": cores, "hours": self.seconds(*cores) / 3600.0 }));
        json!({
            "starts": self.starts, "packets": self.packets(), "packets_per_second_of_a_core": PACKETS_PER_SECOND,
            "cells": cells.collect::<Vec<_>>(), "cores": cores.collect::<Vec<_>>(),
        })
    }
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
