//! Each contestant's cells against those of the reference, and medians over the grid.

use statrs::distribution::{Binomial, DiscreteCDF};

use flowstart_units::Bytes;

use flowstart_measure::geometric_mean;
use flowstart_race::Measure;
use flowstart_race::measures::{COMPLETION, DEFICIT, HARM, SLOWDOWN, START_LOST, START_OTHERS_DELAY, START_OWN_DELAY};

use super::{Cell, FrontierResult, LoadKind, Record, SIZES, measures, undominated};

/// Transfers from this size on count for the completion ratio.
const COUNTED_FROM: u64 = 100_000;

/// One contestant in one cell: medians over the seeds (means of what is lost), and how they relate
/// to the reference's with the same seed.
#[derive(Clone, Debug, PartialEq)]
pub struct CellScore {
    /// Number of the cell.
    pub cell: usize,
    /// Seeds.
    pub runs: usize,
    /// Why starts ended, the most frequent reason first, with counts if they differ.
    pub exits: String,
    /// Over the seeds, in the order of [`measures`].
    values: Vec<Option<f64>>,
    /// Geometric mean over the sizes of the cell of completion time over the ideal (M7).
    pub slowdown: Option<f64>,
    /// Completion time over the reference's, by size; infinite if only the reference finished.
    pub ratios: Vec<(Bytes, f64)>,
    /// Geometric mean of these ratios over the sizes of 100 kB and more.
    pub completion_ratio: Option<f64>,
    /// The 95 % interval of the median over the seeds of that mean; `None` with fewer than six
    /// seeds.
    pub completion_interval: Option<[f64; 2]>,
    /// The delay this contestant adds, in ms: the 99th percentile while it starts, for its own
    /// packets or the others', whichever is more; at most one packet's transmission time counts as
    /// none.
    pub added_delay: Option<f64>,
    /// The 95 % interval of its median over the seeds; `None` with fewer than six.
    pub added_delay_interval: Option<[f64; 2]>,
    /// That over the reference's; 0 if neither adds any.
    pub delay_ratio: Option<f64>,
    /// Harm (M9) over the reference's; 0 if neither does any.
    pub harm_ratio: Option<f64>,
}

impl CellScore {
    /// A measure over the seeds: the median, for losses the mean.
    #[must_use]
    pub fn get(&self, measure: Measure) -> Option<f64> {
        let index = measures().iter().position(|known| *known == measure)?;
        self.values.get(index).copied().flatten()
    }
}

/// One contestant over the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct ContestantScores {
    /// Name.
    pub label: String,
    /// Name of the flow start.
    pub start: &'static str,
    /// The cells it has results for, in order.
    pub cells: Vec<CellScore>,
}

/// What cells are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Rate of the bottleneck.
    Capacity,
    /// Round-trip time.
    Rtt,
    /// Buffer.
    Buffer,
    /// Path.
    Path,
    /// Load.
    Load,
}

impl Factor {
    /// All.
    pub const ALL: [Self; 5] = [Self::Capacity, Self::Rtt, Self::Buffer, Self::Path, Self::Load];

    /// The level of a cell.
    #[must_use]
    pub fn level(self, cell: &Cell) -> String {
        match self {
            Self::Capacity => cell.capacity.to_string(),
            Self::Rtt => cell.rtt.to_string(),
            Self::Buffer => cell.room(),
            Self::Path => cell.path.to_string(),
            Self::Load => cell.load.to_string(),
        }
    }
}

impl ContestantScores {
    /// The median over the cells that have it.
    #[must_use]
    pub fn median(&self, value: impl Fn(&CellScore) -> Option<f64>) -> Option<f64> {
        median(self.cells.iter().filter_map(value).collect())
    }

    /// The median of a measure over the cells that have it.
    #[must_use]
    pub fn median_of(&self, measure: Measure) -> Option<f64> {
        self.median(|cell| cell.get(measure))
    }

    /// The cell with the largest value.
    #[must_use]
    pub fn worst(&self, value: impl Fn(&CellScore) -> Option<f64>) -> Option<(&CellScore, f64)> {
        let valued = self.cells.iter().filter_map(|cell| Some((cell, value(cell)?)));
        // The first of equal ones.
        valued.reduce(|worst, next| if next.1 > worst.1 { next } else { worst })
    }
}

/// The scores of everybody.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The cells of the grid.
    pub cells: Vec<Cell>,
    /// The contestants, in order.
    pub contestants: Vec<ContestantScores>,
    /// Number of the reference.
    pub reference: usize,
}

/// The median; infinite values have their place. `None` without values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// The 95 % interval of the median of independent values, whatever their distribution: between two
/// order statistics (David and Nagaraja, *Order Statistics*, 2003, section 7.1). `None` with fewer
/// than six, of which not even the least and the largest have the median between them so often.
#[must_use]
pub fn median_interval(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    // As many values are below the median as heads come up.
    let heads = Binomial::new(0.5, values.len() as u64).ok()?;
    let low = (0..values.len() / 2).take_while(|below| heads.cdf(*below as u64) <= MISS / 2.0).last()?;
    Some([values[low], values[values.len() - 1 - low]])
}

/// How often an interval of 95 % misses.
const MISS: f64 = 0.05;

/// The 99th percentile of the delay that a contestant adds in a cell while it starts, in ms: for
/// its own packets or for the others' (M8), whichever is more. At most one packet's transmission
/// time counts as none: a packet that waits for a single other one is no queue.
fn added_delay(cell: &Cell, record: &Record) -> Option<f64> {
    let own = record.get(START_OWN_DELAY.at(99));
    let others = record.get(START_OTHERS_DELAY.at(99));
    let added = own.into_iter().chain(others).reduce(f64::max)?;
    let service = cell.capacity.transmission_time(Bytes::new(PACKET)).as_millis_f64();
    Some(if added <= service { 0.0 } else { added })
}

/// Bytes of a full IP packet.
const PACKET: u64 = 1500;

/// A value over the reference's; 0 if neither is above zero.
fn over(value: f64, reference: f64) -> f64 {
    if value <= 0.0 {
        0.0
    } else if reference <= 0.0 {
        f64::INFINITY
    } else {
        value / reference
    }
}

impl Scores {
    /// Of these results. Ratios are medians over the seeds that both have.
    #[must_use]
    pub fn new(result: &FrontierResult) -> Self {
        let cells = result.frontier.grid.cells();
        let reference = result.frontier.reference();
        let count = result.frontier.contestants().len();
        let mut found: Vec<Vec<Vec<(u64, &Record)>>> = vec![vec![Vec::new(); cells.len()]; count];
        for (work, record) in &result.records {
            if let Some(record) = record {
                found[work.contestant_number][work.cell_number].push((work.seed, record));
            }
        }
        let contestants = result
            .frontier
            .contestants()
            .iter()
            .enumerate()
            .map(|(number, contestant)| ContestantScores {
                label: contestant.to_string(),
                start: contestant.start.name(),
                cells: cells
                    .iter()
                    .enumerate()
                    .filter(|(cell, _)| !found[number][*cell].is_empty())
                    .map(|(place, cell)| score(place, cell, &found[number][place], &found[reference][place]))
                    .collect(),
            })
            .collect();
        Self { cells, contestants, reference }
    }

    /// Which contestants are on the Pareto front of start-up deficit (M3), added delay (medians
    /// over the cells) and packets lost because of them: the three that no single number should
    /// hide.
    #[must_use]
    pub fn on_the_front(&self) -> Vec<bool> {
        let point = |contestant: &ContestantScores| {
            let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
            let (speed, delay) =
                (contestant.median_of(DEFICIT.measure()), contestant.median(|score| score.added_delay));
            [or_nan(speed), or_nan(delay), or_nan(self.losses(contestant))]
        };
        undominated(&self.contestants.iter().map(point).collect::<Vec<_>>())
    }

    /// The cells of an [idle](LoadKind::Idle) path, of one contestant.
    pub fn idle<'a>(&'a self, contestant: &'a ContestantScores) -> impl Iterator<Item = &'a CellScore> {
        contestant.cells.iter().filter(|score| self.cells[score.cell].load == LoadKind::Idle)
    }

    /// Packets lost because of a contestant, all cells together, on an idle path; `None` if there
    /// is no such cell.
    #[must_use]
    pub fn idle_losses(&self, contestant: &ContestantScores) -> Option<f64> {
        lost(self.idle(contestant))
    }

    /// The same over all cells.
    #[must_use]
    pub fn losses(&self, contestant: &ContestantScores) -> Option<f64> {
        lost(contestant.cells.iter())
    }

    /// The scores of one contestant by the levels of a factor.
    #[must_use]
    pub fn by<'a>(&self, contestant: &'a ContestantScores, factor: Factor) -> Vec<(String, Vec<&'a CellScore>)> {
        let mut groups: Vec<(String, Vec<&CellScore>)> = Vec::new();
        for score in &contestant.cells {
            let level = factor.level(&self.cells[score.cell]);
            match groups.iter_mut().find(|(known, _)| *known == level) {
                Some((_, members)) => members.push(score),
                None => groups.push((level, vec![score])),
            }
        }
        groups
    }
}

/// Packets lost because of a contestant in these cells; `None` if nobody counted any.
fn lost<'a>(cells: impl Iterator<Item = &'a CellScore>) -> Option<f64> {
    cells.filter_map(|score| score.get(START_LOST.measure())).reduce(|sum, lost| sum + lost)
}

/// Over the seeds: the median, but the mean of what is lost, so that a loss with one seed in ten is
/// one.
fn over_seeds(records: &[&Record], measure: Measure) -> Option<f64> {
    let values: Vec<f64> = records.iter().filter_map(|record| record.get(measure)).collect();
    if measure.is(&START_LOST) && !values.is_empty() {
        return Some(values.iter().sum::<f64>() / values.len() as f64);
    }
    median(values)
}

/// Records of the same seed: this contestant's and the reference's.
type Pair<'a> = (&'a Record, &'a Record);

/// Completion time over the reference's; infinite if only the reference finished.
fn completion_ratio((own, reference): &Pair<'_>, size: Bytes) -> Option<f64> {
    let measure = COMPLETION.of(size);
    let theirs = reference.get(measure)?;
    Some(own.get(measure).map_or(f64::INFINITY, |ours| ours / theirs))
}

fn score(place: usize, cell: &Cell, own: &[(u64, &Record)], reference: &[(u64, &Record)]) -> CellScore {
    let records: Vec<&Record> = own.iter().map(|(_, record)| *record).collect();
    let pairs: Vec<Pair<'_>> = own
        .iter()
        .filter_map(|(seed, record)| Some((*record, reference.iter().find(|(other, _)| other == seed)?.1)))
        .collect();
    // Pairs of the same seed only: differences between seeds are larger than those between
    // contestants.
    let paired = |ratio: &dyn Fn(&Pair<'_>) -> Option<f64>| median(pairs.iter().filter_map(ratio).collect());
    let ratios: Vec<(Bytes, f64)> =
        SIZES.into_iter().filter_map(|size| Some((size, paired(&|pair| completion_ratio(pair, size))?))).collect();
    let counted: Vec<f64> =
        ratios.iter().filter(|(size, _)| size.get() >= COUNTED_FROM).map(|(_, ratio)| *ratio).collect();
    let large = || SIZES.into_iter().filter(|size| size.get() >= COUNTED_FROM);
    let of_seed = |pair: &Pair<'_>| {
        let ratios: Vec<f64> = large().filter_map(|size| completion_ratio(pair, size)).collect();
        if ratios.contains(&f64::INFINITY) { Some(f64::INFINITY) } else { geometric_mean(&ratios) }
    };
    let slowdowns: Vec<f64> = SIZES.into_iter().filter_map(|size| over_seeds(&records, SLOWDOWN.of(size))).collect();
    let added = |record: &Record| added_delay(cell, record);
    CellScore {
        cell: place,
        runs: records.len(),
        exits: exits(&records),
        values: measures().iter().map(|measure| over_seeds(&records, *measure)).collect(),
        slowdown: geometric_mean(&slowdowns),
        completion_ratio: if counted.contains(&f64::INFINITY) { Some(f64::INFINITY) } else { geometric_mean(&counted) },
        ratios,
        completion_interval: median_interval(pairs.iter().filter_map(of_seed).collect()),
        added_delay_interval: median_interval(records.iter().filter_map(|record| added(record)).collect()),
        added_delay: median(records.iter().filter_map(|record| added(record)).collect()),
        delay_ratio: paired(&|(ours, theirs)| Some(over(added(ours)?, added(theirs)?))),
        harm_ratio: paired(&|(ours, theirs)| Some(over(ours.get(HARM.measure())?, theirs.get(HARM.measure())?))),
    }
}

/// "loss", or with several reasons "3 loss, 1 delay".
fn exits(records: &[&Record]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for record in records {
        let name = record.exit.as_str();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match counts.as_slice() {
        [(one, _)] => (*one).to_owned(),
        several => several.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", "),
    }
}
