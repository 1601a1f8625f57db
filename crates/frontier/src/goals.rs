//! What a start has to reach to surpass the others, and where it does not.

use flowstart_units::Bytes;

use flowstart_race::measures::START_LOST;

use super::{Cell, CellScore, ContestantScores, LoadKind, PathKind, Scores, median, median_interval};

/// The limits of one kind of grid.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    /// Completion of 100 kB and more over the reference's, median over the cells, at most.
    completion: f64,
    /// Added delay over the reference's, median over the cells, at most.
    delay: f64,
}

/// Where links are smooth, as this project chose them.
const SMOOTH: Limits = Limits { completion: 0.944, delay: 0.133 };
/// On rough paths and profiles, as this project chose them.
const ROUGH: Limits = Limits { completion: 1.0, delay: 0.3 };
/// On both, as this project chose them: completion of 100 kB and more in any cell, …
const WORST_COMPLETION: f64 = 1.15;
/// … of a small transfer, median over the cells, …
const SMALL_COMPLETION: f64 = 1.02;
/// … and in any cell.
const WORST_SMALL_COMPLETION: f64 = 1.1;
/// What a small transfer is.
const SMALL: Bytes = Bytes::new(30_000);
/// On a smooth path that holds no more packets than this, in flight and in the buffer, some may be
/// lost.
const FEW_PACKETS: u64 = 10;
/// Bytes of a full IP packet.
const PACKET: u64 = 1500;

impl Limits {
    /// Those for these cells: for rough paths if there is one among them.
    fn of(cells: &[Cell]) -> Self {
        if is_rough(cells) { ROUGH } else { SMOOTH }
    }
}

fn is_rough(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| matches!(cell.path, PathKind::Rough(_)))
}

/// Whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attainment {
    /// It was.
    Reached,
    /// It was not.
    Missed,
    /// The interval of the median has the limit in it, or there are too few cells for one.
    Undecided,
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
            Self::Undecided => "undecided",
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
    /// Of a median over the cells its 95 % interval; `None` for what holds in every cell, and with
    /// fewer than six cells.
    pub interval: Option<[f64; 2]>,
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

/// Numbers of cells with their values.
type Values = Vec<(usize, f64)>;

impl Goal {
    /// The median over the cells is at most this, and so is the upper end of its interval.
    fn median(name: &'static str, limit: f64, values: &Values) -> Self {
        let all = || values.iter().map(|(_, value)| *value).collect::<Vec<f64>>();
        let interval = median_interval(all());
        let verdict = match interval {
            _ if values.is_empty() => Attainment::Unknown,
            Some([_, high]) if high <= limit => Attainment::Reached,
            Some([low, _]) if low > limit => Attainment::Missed,
            _ => Attainment::Undecided,
        };
        Self { name, value: median(all()), interval, unit: "", limit, verdict, cells: values.len(), lost: Vec::new() }
            .naming(values)
    }

    /// No cell has more than this.
    fn largest(name: &'static str, unit: &'static str, limit: f64, values: &Values) -> Self {
        let value = values.iter().map(|(_, value)| *value).max_by(f64::total_cmp);
        let verdict = match value {
            None => Attainment::Unknown,
            Some(value) if value <= limit => Attainment::Reached,
            Some(_) => Attainment::Missed,
        };
        Self { name, value, interval: None, unit, limit, verdict, cells: values.len(), lost: Vec::new() }.naming(values)
    }

    /// With the cells above the limit.
    fn naming(mut self, values: &Values) -> Self {
        self.lost = values.iter().filter(|(_, value)| *value > self.limit).copied().collect();
        self.lost.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self
    }
}

/// The goals, for one contestant. Of smooth links, and in brackets of rough paths and profiles:
///
/// 1. completion time of transfers of 100 kB and more, geometric mean over sizes, over the
///    reference's: median over the cells at most 0.944 (1.00);
/// 2. that in no cell above 1.15;
/// 3. completion time of 30 kB over the reference's: median over the cells at most 1.02;
/// 4. that in no cell above 1.10;
/// 5. added 99th percentile of the queueing delay over the reference's: median over the cells at
///    most 0.133 (0.30);
/// 6. no packet lost because of it on an idle path that holds more than ten, in any cell (in no
///    idle cell more than the reference loses).
///
/// A median is decided by its 95 % interval: the goal is reached if all of it is, missed if none of
/// it is, and undecided between.
#[must_use]
pub fn goals(scores: &Scores, contestant: &ContestantScores) -> Vec<Goal> {
    let limits = Limits::of(&scores.cells);
    let all = |value: fn(&CellScore) -> Option<f64>| -> Values {
        contestant.cells.iter().filter_map(|score| Some((score.cell, value(score)?))).collect()
    };
    let completion = all(|score| score.completion_ratio);
    let small = all(|score| score.ratios.iter().find(|(size, _)| *size == SMALL).map(|(_, ratio)| *ratio));
    vec![
        Goal::median("completion of 100 kB and more, over the reference's", limits.completion, &completion),
        Goal::largest("completion of 100 kB and more, in every cell", "", WORST_COMPLETION, &completion),
        Goal::median("completion of 30 kB, over the reference's", SMALL_COMPLETION, &small),
        Goal::largest("completion of 30 kB, in every cell", "", WORST_SMALL_COMPLETION, &small),
        Goal::median("added P99 delay, over the reference's", limits.delay, &all(|score| score.delay_ratio)),
        idle_losses(scores, contestant),
    ]
}

/// Packets lost because of a contestant on idle paths: on smooth ones none, on rough ones no more
/// than the reference loses.
fn idle_losses(scores: &Scores, contestant: &ContestantScores) -> Goal {
    let lost = |score: &CellScore| score.get(START_LOST.measure());
    let idle = contestant.cells.iter().filter(|score| scores.cells[score.cell].load == LoadKind::Idle);
    if is_rough(&scores.cells) {
        let reference = |place: usize| {
            let cells = &scores.contestants.get(scores.reference)?.cells;
            lost(cells.iter().find(|score| score.cell == place)?)
        };
        let more = idle.filter_map(|score| Some((score.cell, lost(score)? - reference(score.cell)?))).collect();
        return Goal::largest("packets lost on an idle path, less the reference's", "packets", 0.0, &more);
    }
    let large = idle.filter(|score| holds_many(&scores.cells[score.cell]));
    let lost = large.filter_map(|score| Some((score.cell, lost(score)?))).collect();
    Goal::largest("packets lost on an idle path that holds more than ten", "packets", 0.0, &lost)
}

/// Whether path and buffer hold more than a few packets.
fn holds_many(cell: &Cell) -> bool {
    if cell.queue.is_some_and(|queue| !queue.0.takes_buffer()) {
        return true;
    }
    let buffer = match cell.buffer.limits(cell.capacity, cell.rtt, PACKET) {
        (Some(packets), _) => packets.saturating_mul(PACKET),
        (None, Some(bytes)) => bytes,
        (None, None) => return true,
    };
    cell.capacity.bytes_in(cell.rtt).get().saturating_add(buffer) > FEW_PACKETS * PACKET
}

#[cfg(test)]
mod tests {
    use flowstart_race::measures::{COMPLETION, START_OWN_DELAY};
    use flowstart_units::{Rate, Span};

    use super::*;
    use crate::{Frontier, FrontierResult, Grid, Record};

    /// One idle cell per number on this path: times of 30 and 100 kB and the delay over the
    /// reference's, packets lost and those of the reference.
    fn judged(path: PathKind, cells: &[[f64; 5]]) -> Vec<Goal> {
        let capacities = (0..cells.len()).map(|number| Rate::from_mbps(100 + number as u64)).collect();
        let (rtts, buffers) = (vec![Span::from_millis(20)], vec![flowstart_scenario::Buffer::Bdp(1.0)]);
        let grid = Grid { capacities, rtts, buffers, paths: vec![path], loads: vec![LoadKind::Idle], ..Grid::quick() };
        let frontier = Frontier::new(grid, vec!["slow_start+cubic".parse().unwrap()], vec![2]);
        let record = |place: usize, own: bool| {
            let [small, large, delay, lost, theirs] = cells[place];
            let over = |value: f64| if own { value } else { 1.0 };
            let values = [
                (COMPLETION.of(SMALL), 100.0 * over(small)),
                (COMPLETION.of(Bytes::new(100_000)), 200.0 * over(large)),
                (START_OWN_DELAY.at(99), 10.0 * over(delay)),
                (START_LOST.measure(), if own { lost } else { theirs }),
            ];
            Record::new(String::new(), None, &values)
        };
        let works = frontier.works().into_iter();
        let records = works.map(|work| (work.clone(), Some(record(work.cell_number, work.contestant_number == 1))));
        let records = records.collect();
        let scores = Scores::new(&FrontierResult { frontier, records });
        goals(&scores, &scores.contestants[1])
    }

    fn verdicts(goals: &[Goal]) -> Vec<&'static str> {
        goals.iter().map(|goal| goal.verdict.name()).collect()
    }

    const ROUGH_PATH: PathKind = PathKind::Rough("wifi");

    #[test]
    fn what_is_good_on_a_rough_path_is_not_on_a_smooth_one() {
        let cells = [[1.0, 0.98, 0.25, 4.0, 4.0]; 8];
        assert_eq!(verdicts(&judged(ROUGH_PATH, &cells)), ["pass"; 6]);
        assert_eq!(verdicts(&judged(PathKind::Clean, &cells)), ["fail", "pass", "pass", "pass", "fail", "fail"]);
        let cells = [[1.0, 0.9, 0.1, 0.0, 0.0]; 8];
        assert_eq!(verdicts(&judged(PathKind::Clean, &cells)), ["pass"; 6]);
    }

    #[test]
    fn a_median_is_decided_by_its_interval_and_not_by_fewer_than_six_cells() {
        let cell = |completion| [completion, completion, completion, 0.0, 0.0];
        let of = |completions: &[f64]| {
            let cells: Vec<[f64; 5]> = completions.iter().map(|value| cell(*value)).collect();
            judged(ROUGH_PATH, &cells)[0].clone()
        };
        // Between the least and the largest of six.
        let goal = of(&[0.9, 0.9, 0.9, 0.9, 0.9, 1.1]);
        assert_eq!((goal.verdict, goal.lost.as_slice()), (Attainment::Undecided, &[(5, 1.1)][..]));
        let [low, high] = goal.interval.unwrap();
        assert!((low - 0.9).abs() < 1e-9 && (high - 1.1).abs() < 1e-9 && goal.value.unwrap() < 0.91);
        assert_eq!(of(&[0.9; 6]).verdict, Attainment::Reached);
        assert_eq!(of(&[1.01; 6]).verdict, Attainment::Missed);
        assert_eq!(of(&[0.5; 5]).verdict, Attainment::Undecided);
    }

    #[test]
    fn one_cell_is_enough_to_miss_what_holds_in_every_cell() {
        let mut cells = [[1.0, 0.9, 0.1, 0.0, 0.0]; 12];
        cells[3] = [1.11, 1.16, 0.1, 0.5, 0.4];
        let goals = judged(ROUGH_PATH, &cells);
        assert_eq!(verdicts(&goals), ["pass", "fail", "pass", "fail", "pass", "fail"]);
        for number in [1, 3, 5] {
            assert!(goals[number].lost.len() == 1 && goals[number].lost[0].0 == 3, "{:?}", goals[number]);
        }
        assert!((goals[5].value.unwrap() - 0.1).abs() < 1e-9);
        // At the limits.
        cells[3] = [1.10, 1.15, 0.1, 0.4, 0.4];
        assert_eq!(verdicts(&judged(ROUGH_PATH, &cells)), ["pass"; 6]);
    }

    #[test]
    fn smooth_paths_that_hold_ten_packets_may_lose_some() {
        let cell = |mbps, millis, buffer| Cell {
            capacity: Rate::from_mbps(mbps),
            rtt: Span::from_millis(millis),
            buffer: flowstart_scenario::Buffer::Bdp(buffer),
            queue: None,
            path: PathKind::Clean,
            load: LoadKind::Idle,
            as_is: false,
            with: &[],
        };
        // Two packets in flight, and three or nine in the buffer.
        assert!(!holds_many(&cell(5, 5, 1.0)) && holds_many(&cell(5, 5, 4.0)) && holds_many(&cell(5, 20, 1.0)));
        let pie = Some("pie".parse().unwrap());
        assert!(holds_many(&Cell { queue: pie, ..cell(5, 5, 1.0) }));
    }
}
