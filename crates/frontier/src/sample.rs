//! Cells of the rough grid: which queue, which load and which half, drawn from a cell's name.

use flowstart_random::{SplitMix64, mix};
use flowstart_scenario::{Buffer, QueueSpec};
use flowstart_units::Rate;

use super::{Cell, Grid, LoadKind, Seeds, rough};

/// How cells of the rough grid are chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Queues that take turns with the buffers.
    pub queues: Vec<QueueSpec>,
    /// Which cells.
    pub half: Seeds,
}

/// Queues and loads that were drawn from first; those behind them in the lists joined later.
const FIRST_QUEUES: usize = 7;
const FIRST_LOADS: usize = 3;
/// Between the numbers of draws for those.
const LATER: u64 = 16;
/// Queues that mark what DCTCP sends, as they are by default.
const MARKING: [&str; 4] = ["step_mark", "fq_codel", "dual_pi2", "host_fairness"];

impl Grid {
    /// For every path, capacity and RTT one cell. What is drawn depends on these three alone, so
    /// that a part of the grid has the cells of the whole.
    pub(crate) fn sample(&self, sampled: &Sampled) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &path in &self.paths {
            let rough = rough::named(path.name());
            let most = rough.map_or(Rate::UNLIMITED, |rough| rough.most);
            for &capacity in self.capacities.iter().filter(|capacity| **capacity <= most) {
                for &rtt in &self.rtts {
                    let place = path
                        .name()
                        .bytes()
                        .fold(capacity.as_bps() ^ rtt.as_nanos(), |sum, byte| mix(sum ^ u64::from(byte)));
                    let held_out = place & 1 == 1;
                    let wanted = match sampled.half {
                        Seeds::All => true,
                        Seeds::Development => !held_out,
                        Seeds::HeldOut => held_out,
                    };
                    let pick = |number: u64, of: usize| (SplitMix64::nth(place, number) % of.max(1) as u64) as usize;
                    // One of `of`; what joined the first ones later takes a place of its own, so
                    // that the other cells stay what they were.
                    let one = |number: u64, of: usize, first: usize| {
                        let joined = (first..of).rev().find(|at| pick(number + LATER * (at + 1) as u64, at + 1) == 0);
                        joined.unwrap_or_else(|| pick(number, of.min(first)))
                    };
                    let choice = one(1, self.buffers.len() + sampled.queues.len(), FIRST_QUEUES);
                    let buffer = self.buffers.get(choice).copied().unwrap_or(Buffer::Bdp(1.0));
                    let drawn = choice.checked_sub(self.buffers.len()).and_then(|at| sampled.queues.get(at)).copied();
                    // A kind that is a queue has no other.
                    let queue = rough.and_then(|rough| rough.queue).or(drawn);
                    // Half of the cells have the first load, which is nobody.
                    let load = match (self.loads.split_first(), pick(2, 2)) {
                        (Some((_, others)), 1) if !others.is_empty() => others[one(3, others.len(), FIRST_LOADS)],
                        (Some((first, _)), _) => *first,
                        (None, _) => LoadKind::Idle,
                    };
                    let marks = queue.is_some_and(|queue| MARKING.contains(&queue.0.name()));
                    let step = || sampled.queues.iter().find(|queue| queue.0.name() == "step_mark").copied();
                    let queue = if load == LoadKind::Dctcp && !marks { step().or(queue) } else { queue };
                    if wanted {
                        cells.push(Cell { capacity, rtt, buffer, queue, path, load, as_is: false, with: self.with });
                    }
                }
            }
        }
        cells
    }
}

impl Grid {
    /// Which cells of the paths, capacities and round trips asked for are left out and why, in a
    /// sentence; `None` if none is.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let sampled = self.sampled.as_ref()?;
        let whole = Self { sampled: Some(Sampled { half: Seeds::All, ..sampled.clone() }), ..self.clone() };
        let (whole, here) = (whole.cells().len(), self.cells().len());
        let asked = self.paths.len() * self.capacities.len() * self.rtts.len();
        let other = match sampled.half {
            Seeds::HeldOut => Seeds::Development,
            Seeds::Development | Seeds::All => Seeds::HeldOut,
        };
        let half = format!("{} of the {} half (--half all has both)", whole - here, other.name());
        let fast = format!("{} faster than their kind of path goes", asked - whole);
        let parts: Vec<String> = [(whole - here, half), (asked - whole, fast)]
            .into_iter()
            .filter(|part| part.0 > 0)
            .map(|part| part.1)
            .collect();
        (!parts.is_empty()).then(|| format!("Of {asked} cells {here} are here; left out: {}.", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathKind;

    #[test]
    fn cells_that_are_left_out_are_counted_and_the_reason_is_told() {
        let all = Grid::rough(Seeds::All);
        let asked = all.paths.len() * all.capacities.len() * all.rtts.len();
        let fast = asked - all.cells().len();
        assert!(fast > 0);
        let expected = format!("Of {asked} cells {} are here; left out: {fast} faster than", asked - fast);
        assert!(all.left_out().unwrap().starts_with(&expected), "{:?}", all.left_out());
        for (half, other) in [(Seeds::Development, "held-out"), (Seeds::HeldOut, "development")] {
            let some = Grid::rough(half);
            let words = some.left_out().unwrap();
            let rest = all.cells().len() - some.cells().len();
            assert!(
                words.contains(&format!("{rest} of the {other} half (--half all has both), {fast} faster")),
                "{words}"
            );
        }
        assert_eq!(Grid { paths: vec![PathKind::Clean], ..all }.left_out(), None);
        assert_eq!(Grid::quick().left_out(), None);
    }

    /// Numbers that were published for them stay valid.
    #[test]
    fn the_cells_of_the_first_kinds_are_what_they_were_before_others_joined() {
        let first = |half| Grid { paths: PathKind::rough()[..19].to_vec(), ..Grid::rough(half) };
        assert_eq!(first(Seeds::All).paths.last(), Some(&PathKind::Rough("detour")));
        let text =
            |half| first(half).cells().iter().map(|cell| format!("{cell}, {}\n", cell.buffer)).collect::<String>();
        let hash = |half| crate::digest(&text(half));
        assert_eq!(first(Seeds::All).cells().len(), 356);
        assert_eq!([hash(Seeds::Development), hash(Seeds::HeldOut)], ["b01e0e1eb2aa135d", "8ac3f1b22f9216ea"]);
    }

    #[test]
    fn a_kind_that_is_a_queue_has_it_in_every_cell_and_says_so() {
        let cells = Grid::rough(Seeds::All).cells();
        for kind in ["host_fairness", "host_fairness_busy"] {
            let of = cells.iter().filter(|cell| cell.path == PathKind::Rough(kind));
            assert!(of.clone().count() == 20 && of.clone().all(|cell| cell.room() == "host_fairness"), "{kind}");
            for cell in of {
                for contestant in ["hystart+cubic", "slow_start+dctcp"] {
                    let contestant = contestant.parse().unwrap();
                    assert_eq!(cell.race(&contestant, 1).queue_name(&contestant), "host_fairness");
                }
            }
        }
        // Where no queue is drawn, too.
        let smooth = Grid { paths: vec![PathKind::Rough("host_fairness")], ..Grid::quick() };
        assert!(smooth.cells().iter().all(|cell| cell.room() == "host_fairness"));
    }

    #[test]
    fn every_cell_of_the_rough_grid_can_be_raced_and_is_in_one_half() {
        let all = Grid::rough(Seeds::All).cells();
        let (development, held_out) = (Grid::rough(Seeds::Development).cells(), Grid::rough(Seeds::HeldOut).cells());
        assert_eq!(all.len(), development.len() + held_out.len());
        assert!(all.len() > 300, "{}", all.len());
        assert!(development.len().abs_diff(held_out.len()) < all.len() / 5);
        assert!(development.iter().all(|cell| !held_out.contains(cell) && all.contains(cell)));
        for name in ["hystart+cubic", "oracle+cubic"] {
            for cell in &all {
                cell.race(&name.parse().unwrap(), 1).validate().unwrap_or_else(|error| panic!("{cell}: {error}"));
            }
        }
        // In both halves every kind, every load and every queue.
        for half in [development, held_out] {
            assert!(PathKind::rough().iter().all(|path| half.iter().any(|cell| cell.path == *path)));
            let mut seen: Vec<String> = half.iter().map(|cell| format!("{:?} {:?}", cell.load, cell.queue)).collect();
            seen.sort();
            seen.dedup();
            assert!(seen.len() >= 24, "{seen:?}");
        }
        // DCTCP is only where packets are marked.
        let marks = |cell: &&Cell| cell.queue.is_some_and(|queue| MARKING.contains(&queue.0.name()));
        let beside = |load| all.iter().filter(move |cell| cell.load == load);
        assert_eq!(beside(LoadKind::Dctcp).filter(marks).count(), beside(LoadKind::Dctcp).count());
        // About as often as the others: 8 queues, and half of 4 loads.
        let shares = [LoadKind::Greedy, LoadKind::Bbr, LoadKind::Web, LoadKind::Dctcp].map(|load| beside(load).count());
        assert!(shares.iter().all(|n| (all.len() / 12..all.len() / 6).contains(n)), "{shares:?} of {}", all.len());
        assert!(Grid::quick_rough(Seeds::All).cells().iter().all(|cell| all.contains(cell)));
    }
}
