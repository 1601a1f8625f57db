//! What a start has to reach to surpass the others, and where it does not.

use flowstart_units::Rate;

use flowstart_race::measures::START_LOST;

use super::{CellScore, ContestantScores, LoadKind, Scores, median};

/// The goal for the completion time over that of the reference, at most.
pub const COMPLETION_RATIO: f64 = 1.0;
/// Added delay over that of the reference, at most.
const DELAY_RATIO: f64 = 0.2;
/// The goal for the added delay on an idle path, at most, in ms …
pub const IDLE_DELAY_MS: f64 = 3.0;
/// … at this capacity and above.
const IDLE_DELAY_FROM: Rate = Rate::from_mbps(20);

/// Whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attainment {
    /// It was.
    Reached,
    /// It was not.
    Missed,
    /// No cell says anything about it.
    Unknown,
}

impl Attainment {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reached => "pass",
            Self::Missed => "fail",
            Self::Unknown => "no cell",
        }
    }
}

/// One goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// What is asked for.
    pub name: &'static str,
    /// What is compared with the limit.
    pub value: Option<f64>,
    /// Unit of the value and the limit; empty for none.
    pub unit: &'static str,
    /// The largest value that reaches the goal.
    pub limit: f64,
    /// Whether it is reached.
    pub verdict: Attainment,
    /// Cells that say something about it.
    pub cells: usize,
    /// Those of them in which the limit is exceeded, with their values, the worst first.
    pub lost: Vec<(usize, f64)>,
}

impl Goal {
    fn new(
        name: &'static str,
        unit: &'static str,
        limit: f64,
        values: Vec<(usize, f64)>,
        overall: impl FnOnce(&[(usize, f64)]) -> Option<f64>,
    ) -> Self {
        let value = overall(&values);
        let verdict = match value {
            None => Attainment::Unknown,
            Some(value) if value <= limit => Attainment::Reached,
            Some(_) => Attainment::Missed,
        };
        let cells = values.len();
        let mut lost: Vec<(usize, f64)> = values.into_iter().filter(|(_, value)| *value > limit).collect();
        lost.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Self { name, value, unit, limit, verdict, cells, lost }
    }
}

/// The goals, for one contestant:
///
/// 1. completion time of transfers of 100 kB and more, geometric mean over sizes, over the
///    reference's: median over the cells at most 1;
/// 2. added 99th percentile of the queueing delay over the reference's: median over the cells at
///    most 1/5;
/// 3. that delay on an idle path: at most 3 ms, as median over the cells of each capacity of 20
///    Mbit/s and more;
/// 4. no packet lost because of it on an idle path, in any cell.
#[must_use]
pub fn goals(scores: &Scores, contestant: &ContestantScores) -> Vec<Goal> {
    let all = |value: fn(&CellScore) -> Option<f64>| -> Vec<(usize, f64)> {
        contestant.cells.iter().filter_map(|score| Some((score.cell, value(score)?))).collect()
    };
    let middle = |values: &[(usize, f64)]| median(values.iter().map(|(_, value)| *value).collect());
    let idle = |value: fn(&CellScore) -> Option<f64>, from: Rate| -> Vec<(usize, f64)> {
        let inside = |cell: usize| {
            let cell = &scores.cells[cell];
            cell.load == LoadKind::Idle && cell.capacity >= from
        };
        all(value).into_iter().filter(|(cell, _)| inside(*cell)).collect()
    };
    let worst_capacity = |values: &[(usize, f64)]| {
        let mut rates: Vec<Rate> = values.iter().map(|(cell, _)| scores.cells[*cell].capacity).collect();
        rates.sort_unstable();
        rates.dedup();
        let of = |rate: Rate| {
            let there = values.iter().filter(|(cell, _)| scores.cells[*cell].capacity == rate);
            median(there.map(|(_, value)| *value).collect())
        };
        rates.into_iter().filter_map(of).max_by(f64::total_cmp)
    };
    let largest = |values: &[(usize, f64)]| values.iter().map(|(_, value)| *value).max_by(f64::total_cmp);
    vec![
        Goal::new(
            "completion of 100 kB and more, over the reference's",
            "",
            COMPLETION_RATIO,
            all(|score| score.completion_ratio),
            middle,
        ),
        Goal::new("added P99 delay, over the reference's", "", DELAY_RATIO, all(|score| score.delay_ratio), middle),
        Goal::new(
            "added P99 delay on an idle path, 20 Mbit/s and more",
            "ms",
            IDLE_DELAY_MS,
            idle(|score| score.added_delay, IDLE_DELAY_FROM),
            worst_capacity,
        ),
        Goal::new(
            "packets lost on an idle path",
            "packets",
            0.0,
            idle(|score| score.get(START_LOST.measure()), Rate::ZERO),
            largest,
        ),
    ]
}
