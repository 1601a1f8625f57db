//! What the work costs, cell by cell, before any of it is done.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{Cell, Frontier, Work};

/// Packets that one core simulates in a second, for saying beforehand how long it will take: 4.9
/// million (10 Gbit/s and 300 ms) to 7 million (the quick grid) on a shared virtual AMD EPYC
/// machine.
const PACKETS_PER_SECOND: f64 = 5e6;
/// The same on the rough grid: of its kinds in the quick one's development half 0.4 to 2 million
/// where half a second or so could be measured, 0.8 in the middle.
const ROUGH_PACKETS_PER_SECOND: f64 = 1e6;

/// What there is to do, as estimated beforehand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cells by their numbers, with the packets of all that is done in them.
    cells: BTreeMap<usize, (Cell, f64)>,
    /// Packets of every cell and seed, which one thread does, in the order in which they are begun.
    groups: Vec<f64>,
    starts: usize,
    /// Packets that a core simulates in a second.
    speed: f64,
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
        Self {
            cells,
            groups: groups.into_iter().map(|(_, packets)| packets).collect(),
            starts: works.len(),
            speed: frontier.packets_per_second(),
        }
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

    /// Seconds of processor time for so many packets.
    #[must_use]
    pub fn time_of(&self, packets: f64) -> f64 {
        packets / self.speed
    }

    /// Seconds that so many cores need: each takes the next cell and seed when it is done with one.
    #[must_use]
    pub fn seconds(&self, cores: usize) -> f64 {
        let mut busy = vec![0.0_f64; cores];
        for packets in &self.groups {
            if let Some(first) = busy.iter_mut().min_by(|a, b| a.total_cmp(b)) {
                *first += self.time_of(*packets);
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
                "packets": packets, "seconds": self.time_of(*packets),
            })
        });
        let cores = Self::CORES.iter().map(|cores| json!({ "cores": cores, "hours": self.seconds(*cores) / 3600.0 }));
        json!({
            "starts": self.starts, "packets": self.packets(), "packets_per_second_of_a_core": self.speed,
            "cells": cells.collect::<Vec<_>>(), "cores": cores.collect::<Vec<_>>(),
        })
    }
}

impl Frontier {
    /// Packets that a core simulates in a second, about.
    #[must_use]
    pub fn packets_per_second(&self) -> f64 {
        if self.grid.sampled.is_some() { ROUGH_PACKETS_PER_SECOND } else { PACKETS_PER_SECOND }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grid, Seeds};

    #[test]
    fn cores_share_the_work_and_none_does_less_than_the_largest_piece() {
        let seconds = |number: f64| number * PACKETS_PER_SECOND;
        let groups = [6.0, 3.0, 2.0, 1.0].map(seconds).to_vec();
        let plan = Plan { cells: BTreeMap::new(), groups, starts: 4, speed: PACKETS_PER_SECOND };
        assert_eq!([1, 2, 4, 16].map(|cores| plan.seconds(cores)), [12.0, 6.0, 6.0, 6.0]);
    }

    #[test]
    fn a_packet_of_the_rough_grid_takes_longer() {
        let plan = |grid: Grid| {
            let frontier = Frontier::new(grid, Vec::new(), vec![2]);
            Plan::new(&frontier, &frontier.works())
        };
        let (smooth, rough) = (plan(Grid::quick()), plan(Grid::quick_rough(Seeds::Development)));
        for (plan, speed) in [(smooth, PACKETS_PER_SECOND), (rough, ROUGH_PACKETS_PER_SECOND)] {
            assert!((plan.seconds(1) * speed / plan.packets() - 1.0).abs() < 1e-9);
        }
    }
}
