//! Running the work on all cores.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_parallel::{Cancel, in_parallel};
use flowstart_race::{Baselines, RaceError};

use super::{Frontier, FrontierError, Record, Shard, Work, behaviour};
use crate::shard::Dealer;

/// Is told a record as soon as it is there.
pub type Finished<'a> = &'a (dyn Fn(&Work, &Record) + Sync);

/// How the work is done; nothing in here changes its result.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Threads; `None` for one per core.
    pub threads: Option<usize>,
    /// Asks to stop: what is in progress is given up, what is finished kept.
    pub cancel: Option<&'a Cancel>,
    /// Told how many packets have been simulated, of how many, as estimated beforehand.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Told every record as soon as it is there.
    pub finished: Option<Finished<'a>>,
    /// Records that are there already, by key.
    pub known: HashMap<String, Record>,
    /// Only this part of the work; `None` for all.
    pub shard: Option<Shard>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontierResult {
    /// What was run.
    pub frontier: Frontier,
    /// All work, in order, with its record if it was finished.
    pub records: Vec<(Work, Option<Record>)>,
}

impl FrontierResult {
    /// Work finished, and work there was to do.
    #[must_use]
    pub fn finished(&self) -> (usize, usize) {
        (self.records.iter().filter(|(_, record)| record.is_some()).count(), self.records.len())
    }

    /// True if all of it was finished.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.records.iter().all(|(_, record)| record.is_some())
    }
}

impl Frontier {
    /// Runs everything that is not known yet: seed by seed, the most expensive cells of a seed
    /// first so that no core is left alone with one. The result does not depend on threads, nor on
    /// what was known.
    ///
    /// # Errors
    /// If it is not [valid](Frontier::validate) or no threads can be started.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<FrontierResult, FrontierError> {
        self.validate()?;
        let never = Cancel::default();
        let cancel = options.cancel.unwrap_or(&never);
        let works = self.works();
        let keys = self.keys(&works, options, cancel)?;
        let mut records: Vec<Option<Record>> = keys.iter().map(|key| options.known.get(key).cloned()).collect();
        let costs: Vec<f64> = works.iter().map(Work::packets).collect();
        let groups = self.groups(&works, &records, &costs, options.shard);
        let all: f64 = groups.iter().flatten().map(|number| costs[*number]).sum();
        let simulated = AtomicU64::new(0);
        let job = |position: usize| {
            let mut finished: Vec<(usize, Record)> = Vec::new();
            let mut baselines = Baselines::default();
            for &number in &groups[position] {
                let Some((exit, values)) = works[number].race().measure_first(&mut baselines, cancel)? else { break };
                let record = Record::new(keys[number].clone(), exit, &values);
                if let Some(tell) = options.finished {
                    tell(&works[number], &record);
                }
                finished.push((number, record));
                let simulated = simulated.fetch_add(costs[number] as u64, Ordering::Relaxed) + costs[number] as u64;
                if let Some(progress) = options.progress {
                    progress(simulated, all as u64);
                }
            }
            Ok::<_, RaceError>(finished)
        };
        let finished = in_parallel(groups.len(), options.threads, cancel, |_| (), job).map_err(FrontierError::new)?;
        for group in finished.into_iter().flatten() {
            for (number, record) in group? {
                records[number] = Some(record);
            }
        }
        Ok(FrontierResult { frontier: self.clone(), records: works.into_iter().zip(records).collect() })
    }

    /// The key of every piece of work.
    fn keys(&self, works: &[Work], options: &RunOptions<'_>, cancel: &Cancel) -> Result<Vec<String>, FrontierError> {
        let contestants = self.contestants();
        let job = |number: usize| behaviour(&contestants[number]);
        let found = in_parallel(contestants.len(), options.threads, cancel, |_| (), job).map_err(FrontierError::new)?;
        let behaviours: Vec<Option<String>> = found.into_iter().map(Option::transpose).collect::<Result<_, _>>()?;
        // A contestant is only missing after a cancellation, and then nothing is run.
        Ok(works
            .iter()
            .map(|work| work.key(behaviours[work.contestant_number].as_deref().unwrap_or_default()))
            .collect())
    }

    /// What is still to be done: numbers of work of the same cell and seed, in the order in which
    /// they are to be begun.
    fn groups(
        &self,
        works: &[Work],
        records: &[Option<Record>],
        costs: &[f64],
        shard: Option<Shard>,
    ) -> Vec<Vec<usize>> {
        let turn = |seed: u64| self.seeds.iter().position(|known| *known == seed);
        let mut groups: BTreeMap<(Option<usize>, usize), Vec<usize>> = BTreeMap::new();
        for (number, work) in works.iter().enumerate() {
            groups.entry((turn(work.seed), work.cell_number)).or_default().push(number);
        }
        let mut groups: Vec<(Option<usize>, f64, Vec<usize>)> = groups
            .into_iter()
            .map(|((turn, _), numbers)| (turn, numbers.iter().map(|number| costs[*number]).sum(), numbers))
            .collect();
        groups.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        // Dealt out before what is finished leaves, so that a part is always the same.
        let mut dealer = shard.map(Dealer::new);
        let ours = |(_, cost, mut numbers): (Option<usize>, f64, Vec<usize>)| {
            let held = dealer.as_mut().is_none_or(|dealer| dealer.deal(cost));
            numbers.retain(|number| records[*number].is_none());
            (held && !numbers.is_empty()).then_some(numbers)
        };
        groups.into_iter().filter_map(ours).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grid;

    #[test]
    fn the_parts_of_a_grid_cost_about_the_same_and_are_all_of_it() {
        let frontier = Frontier::new(Grid::quick(), Vec::new(), vec![2, 4]);
        let works = frontier.works();
        let costs: Vec<f64> = works.iter().map(Work::packets).collect();
        let unknown = vec![None; works.len()];
        // The three loads change from cell to cell: by number one part of three would get all idle
        // cells.
        for of in [2, 3, 4, 12] {
            let part = |number| {
                let shard = Some(format!("{number}/{of}").parse().unwrap());
                frontier.groups(&works, &unknown, &costs, shard).concat()
            };
            let parts: Vec<Vec<usize>> = (1..=of).map(part).collect();
            let sums: Vec<f64> = parts.iter().map(|part| part.iter().map(|number| costs[*number]).sum()).collect();
            let (least, most) = sums.iter().fold((f64::MAX, 0.0_f64), |(a, b), sum| (a.min(*sum), b.max(*sum)));
            assert!(most < 1.3 * least, "{of} parts: {sums:?}");
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (0..works.len()).collect::<Vec<_>>());
        }
    }
}
