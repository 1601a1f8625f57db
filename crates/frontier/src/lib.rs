//! The frontier: every flow start over a grid of paths, against the same reference.
//!
//! A [`Grid`] has cells (capacity, RTT, buffer, path, load). Every contestant runs in every cell
//! with every seed, alone with the cell's load, as in a [race](flowstart_race); what is measured
//! there (M1 … M12) makes one [`Record`]. [`Scores`] sets each contestant's cells against those of
//! the [reference](REFERENCE), and [`goals`](goals()) says where a start wins and where it loses,
//! by name.
//!
//! Seeds come in two halves: even ones for tuning an algorithm, odd ones held out for judging it
//! afterwards ([`Seeds`]).
//!
//! ```
//! use flowstart_frontier::{Frontier, Grid, LoadKind, PathKind, RunOptions, Scores, Seeds};
//! use flowstart_race::{Contestant, measures::DEFICIT};
//! use flowstart_units::{Rate, Span};
//!
//! let grid = Grid {
//!     capacities: vec![Rate::from_mbps(20)],
//!     rtts: vec![Span::from_millis(50)],
//!     paths: vec![PathKind::Clean],
//!     loads: vec![LoadKind::Idle],
//!     ..Grid::quick()
//! };
//! assert_eq!(grid.cells().len(), 2, "two buffers");
//! let contestant: Contestant = "adaptive_chirping+cubic".parse()?;
//! let frontier = Frontier::new(grid, vec![contestant], Seeds::Development.first(1));
//! let result = frontier.run(&RunOptions::default())?;
//! let scores = Scores::new(&result);
//! let [reference, chirping] = &scores.contestants[..] else { panic!("both have run") };
//! // Carried less than possible, in bandwidth-delay products.
//! let deficit = DEFICIT.measure();
//! assert!(chirping.median_of(deficit) < reference.median_of(deficit));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod behaviour;
mod cost;
mod document;
mod error;
mod goals;
mod grid;
mod journal;
mod kinds;
mod pareto;
mod plan;
mod record;
mod rough;
mod sample;
mod score;
mod shard;
mod with;
mod works;

use flowstart_congestion::StartConfig;

use flowstart_race::{Contestant, Race};

pub use behaviour::behaviour;
pub use document::{FRONTIER_SCHEMA_VERSION, Shown};
pub use error::FrontierError;
pub use goals::{Attainment, Goal, goals};
pub use grid::{Cell, Grid, SIZES};
pub use journal::{Damage, Journal, JournalError};
pub use kinds::{LoadKind, PathKind};
pub use pareto::{front, undominated};
pub use plan::Plan;
pub use record::{Record, measures};
pub use rough::{rough_names, rough_path};
pub use sample::Sampled;
pub use score::{CellScore, ContestantScores, Factor, Scores, median, median_interval};
pub use shard::Shard;
pub use works::{Finished, FrontierResult, RunOptions};

/// What everything is compared with: CUBIC with HyStart as Linux runs it, unpaced, over a drop-tail
/// queue.
pub const REFERENCE: &str = "hystart+cubic";

/// Contestants over marking queues; all flow starts race in front of CUBIC over drop-tail queues
/// besides.
const MARKED: [&str; 3] = ["slow_start+dctcp", "paced_chirping+dctcp", "adaptive_chirping+dctcp"];

/// Which half of the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// The even ones: 2, 4, 6, …, for choosing constants and designs.
    Development,
    /// The odd ones: 1, 3, 5, …, for judging what was chosen.
    HeldOut,
    /// All: 1, 2, 3, …
    All,
}

impl Seeds {
    /// The first `count` seeds of this half.
    #[must_use]
    pub fn first(self, count: u32) -> Vec<u64> {
        (0..u64::from(count))
            .map(|index| match self {
                Self::Development => 2 * index + 2,
                Self::HeldOut => 2 * index + 1,
                Self::All => index + 1,
            })
            .collect()
    }

    /// All three.
    pub const ALL: [Self; 3] = [Self::Development, Self::HeldOut, Self::All];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::HeldOut => "held-out",
            Self::All => "all",
        }
    }
}

impl std::str::FromStr for Seeds {
    type Err = FrontierError;

    fn from_str(text: &str) -> Result<Self, FrontierError> {
        let wanted = text.trim().to_lowercase().replace('_', "-");
        Self::ALL.into_iter().find(|seeds| seeds.name() == wanted).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            FrontierError::new(format!("\"{text}\" is no half of the seeds; there are {known}"))
        })
    }
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontier {
    /// The cells.
    pub grid: Grid,
    /// Who races; the [reference](REFERENCE) is among them, first if it was not named.
    contestants: Vec<Contestant>,
    /// Seeds. Cells without randomness only run with the first.
    pub seeds: Vec<u64>,
}

/// One contestant in one cell with one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Number of the cell in [`Grid::cells`].
    pub cell_number: usize,
    /// The cell.
    pub cell: Cell,
    /// Number of the contestant.
    pub contestant_number: usize,
    /// The contestant.
    pub contestant: Contestant,
    /// The seed.
    pub seed: u64,
}

impl Work {
    /// Its race.
    #[must_use]
    pub fn race(&self) -> Race {
        self.cell.race(&self.contestant, self.seed)
    }

    /// The queue in words.
    #[must_use]
    pub fn queue(&self) -> String {
        self.race().queue_name(&self.contestant)
    }

    /// 16 hexadecimal digits of the BLAKE3 hash of flowstart's version, of every parameter of the
    /// race (the seed and the constants of all algorithms included), and of the contestant's
    /// [behaviour].
    #[must_use]
    pub fn key(&self, behaviour: &str) -> String {
        digest(&format!("{} {behaviour} {}", env!("CARGO_PKG_VERSION"), self.race().parameters()))
    }
}

/// 16 hexadecimal digits of the BLAKE3 hash.
fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

impl Frontier {
    /// Of these cells, contestants and seeds; the reference is added if it is missing, and who is
    /// named twice races once.
    #[must_use]
    pub fn new(grid: Grid, contestants: Vec<Contestant>, seeds: Vec<u64>) -> Self {
        let mut all: Vec<Contestant> = Vec::new();
        let reference: Option<Contestant> = REFERENCE.parse().ok();
        let missing = reference.filter(|reference| !contestants.contains(reference));
        for contestant in missing.into_iter().chain(contestants) {
            if !all.contains(&contestant) {
                all.push(contestant);
            }
        }
        Self { grid, contestants: all, seeds }
    }

    /// Every known flow start in front of CUBIC over drop-tail queues, and those that are used with
    /// DCTCP over marking ones.
    #[must_use]
    pub fn default_contestants() -> Vec<Contestant> {
        // Who is compared, not the bound; CUBIC brings no start.
        let starts = StartConfig::NAMES.iter().filter(|start| !["oracle", "built_in"].contains(start));
        let cubic = starts.map(|start| format!("{start}+cubic"));
        let names = cubic.chain(MARKED.iter().map(|name| (*name).to_owned()));
        names.filter_map(|name| name.parse().ok()).collect()
    }

    /// Who races.
    #[must_use]
    pub fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    /// Number of the reference among the contestants.
    #[must_use]
    pub fn reference(&self) -> usize {
        let reference: Option<Contestant> = REFERENCE.parse().ok();
        self.contestants.iter().position(|contestant| Some(contestant) == reference.as_ref()).unwrap_or(0)
    }

    /// Everything to do: cell by cell, in a cell contestant by contestant, then seed by seed.
    #[must_use]
    pub fn works(&self) -> Vec<Work> {
        let mut works = Vec::new();
        for (cell_number, cell) in self.grid.cells().into_iter().enumerate() {
            for (contestant_number, contestant) in self.contestants.iter().enumerate() {
                let random = cell.race(contestant, 0).is_random();
                let seeds = self.seeds.iter().take(if random { usize::MAX } else { 1 });
                works.extend(seeds.map(|&seed| Work {
                    cell_number,
                    cell,
                    contestant_number,
                    contestant: contestant.clone(),
                    seed,
                }));
            }
        }
        works
    }

    /// Checks that every race can be run.
    ///
    /// # Errors
    /// One sentence about the first that cannot.
    pub fn validate(&self) -> Result<(), FrontierError> {
        self.grid.check()?;
        if self.grid.cells().is_empty() {
            let why = self.grid.left_out().map(|words| format!(". {}", words.trim_end_matches('.')));
            let why = why.unwrap_or_default();
            return Err(FrontierError::new(format!("the grid has no cells{why}")));
        }
        if self.seeds.is_empty() {
            return Err(FrontierError::new("no seed is chosen"));
        }
        for cell in self.grid.cells() {
            for contestant in &self.contestants {
                let race = cell.race(contestant, self.seeds[0]);
                race.validate().map_err(|error| FrontierError::new(format!("{cell}: {error}")))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
