//! What a race has shown.

use flowstart_congestion::ExitReason;

use super::{Contestant, Measure, Race, Series};
use flowstart_measure::Estimate;

/// One contestant in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecord {
    /// Number of the run.
    pub run: u64,
    /// What was measured; with several newcomers their mean. What could not be measured is missing.
    pub values: Vec<(Measure, f64)>,
    /// How each newcomer's start ended, in order of the flows; `None` if it had not within the run.
    pub exits: Vec<Option<ExitReason>>,
    /// True if all of the run's simulations were finished.
    pub complete: bool,
}

impl RunRecord {
    /// The value of a measure.
    #[must_use]
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.values.iter().find(|(m, _)| *m == measure).map(|(_, value)| *value)
    }
}

/// One contestant in all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ContestantResult {
    /// Who.
    pub contestant: Contestant,
    /// Name in tables; with the queue if another contestant has the same.
    pub label: String,
    /// The runs that have any result, in order.
    pub runs: Vec<RunRecord>,
    /// What the pictures show: the first newcomer, its median over the runs.
    pub series: Option<Series>,
}

impl ContestantResult {
    /// A measure over all runs that have it. Once a run was finished, interrupted ones do not
    /// count: then all measures are of the same runs.
    #[must_use]
    pub fn estimate(&self, measure: Measure) -> Option<Estimate> {
        Estimate::of(&self.values(measure))
    }

    /// What [`estimate`](Self::estimate) is of.
    #[must_use]
    pub fn values(&self, measure: Measure) -> Vec<f64> {
        self.counted().filter_map(|run| run.get(measure)).collect()
    }

    /// The values of a measure of this contestant and of another in the runs in which both have
    /// one, in order. In the simulator the same run has the same random numbers.
    #[must_use]
    pub fn paired(&self, other: &Self, measure: Measure) -> (Vec<f64>, Vec<f64>) {
        let theirs = |run: u64| other.counted().find(|known| known.run == run)?.get(measure);
        self.counted().filter_map(|run| Some((run.get(measure)?, theirs(run.run)?))).unzip()
    }

    /// How many runs [`estimate`](Self::estimate) is of, if all have the measure.
    #[must_use]
    pub fn counted_runs(&self) -> usize {
        self.counted().count()
    }

    /// The runs that count.
    fn counted(&self) -> impl Iterator<Item = &RunRecord> {
        let whole = self.whole_runs() > 0;
        self.runs.iter().filter(move |run| run.complete || !whole)
    }

    /// How many runs were finished.
    #[must_use]
    pub fn whole_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.complete).count()
    }

    /// How often each reason ended a start, the most frequent first; `None` stands for starts that
    /// had not ended.
    #[must_use]
    pub fn exits(&self) -> Vec<(Option<ExitReason>, usize)> {
        let mut counts: Vec<(Option<ExitReason>, usize)> = Vec::new();
        for exit in self.runs.iter().flat_map(|run| &run.exits) {
            match counts.iter_mut().find(|(reason, _)| reason == exit) {
                Some((_, count)) => *count += 1,
                None => counts.push((*exit, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

/// The whole race.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceResult {
    /// What was run.
    pub race: Race,
    /// The contestants, in the race's order.
    pub contestants: Vec<ContestantResult>,
    /// False if the race was interrupted.
    pub complete: bool,
    /// Simulations finished, and those there were to do.
    pub simulations: (usize, usize),
    /// Data packets simulated.
    pub data_packets: u64,
    /// Virtual time simulated, in seconds.
    pub simulated_seconds: f64,
}

/// Labels for contestants: their names, with the queue where names repeat, with a number where that
/// repeats too.
#[must_use]
pub fn labels(contestants: &[Contestant]) -> Vec<String> {
    let repeated = |names: &[String], index: usize| names.iter().filter(|name| **name == names[index]).count() > 1;
    let names: Vec<String> = contestants.iter().map(Contestant::name).collect();
    let full: Vec<String> = contestants.iter().map(ToString::to_string).collect();
    (0..contestants.len())
        .map(|index| {
            if !repeated(&names, index) {
                names[index].clone()
            } else if !repeated(&full, index) {
                full[index].clone()
            } else {
                let number = full[..=index].iter().filter(|name| **name == full[index]).count();
                format!("{} #{number}", full[index])
            }
        })
        .collect()
}

/// An exit reason in a word or two.
#[must_use]
pub fn exit_name(reason: Option<ExitReason>) -> &'static str {
    match reason {
        Some(ExitReason::AckTrain) => "ack train",
        Some(ExitReason::DelayIncrease) => "delay",
        Some(ExitReason::PipeFull) => "pipe full",
        Some(ExitReason::DeliveryLag) => "delivery lag",
        Some(ExitReason::RatePlateau) => "rate plateau",
        Some(ExitReason::Loss) => "loss",
        Some(ExitReason::Marks) => "marks",
        Some(ExitReason::Timeout) => "timeout",
        Some(ExitReason::Threshold) => "threshold",
        Some(ExitReason::Limit) => "limit",
        Some(ExitReason::Isolation) => "isolation",
        Some(ExitReason::Unseen) => "unseen",
        None => "not yet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_run_is_finished_interrupted_ones_do_not_count() {
        let measure = flowstart_measure::measures::DEFICIT.measure();
        let run = |run, value, complete| RunRecord { run, values: vec![(measure, value)], complete, exits: Vec::new() };
        let result =
            |runs| ContestantResult { contestant: "cubic".parse().unwrap(), label: String::new(), runs, series: None };
        let mean = |result: ContestantResult| result.estimate(measure).map(|estimate| (estimate.mean, estimate.runs));
        assert_eq!(mean(result(vec![run(0, 1.0, true), run(1, 3.0, true), run(2, 100.0, false)])), Some((2.0, 2)));
        assert_eq!(mean(result(vec![run(0, 7.0, false)])), Some((7.0, 1)));
    }

    #[test]
    fn values_are_paired_run_by_run_where_both_have_one() {
        let measure = flowstart_measure::measures::DEFICIT.measure();
        let of = |values: &[(u64, Option<f64>)]| {
            let run = |&(run, value): &(u64, Option<f64>)| {
                let values = value.map(|value| (measure, value)).into_iter().collect();
                RunRecord { run, values, complete: true, exits: Vec::new() }
            };
            let runs = values.iter().map(run).collect();
            ContestantResult { contestant: "cubic".parse().unwrap(), label: String::new(), runs, series: None }
        };
        let one = of(&[(0, Some(1.0)), (1, None), (2, Some(3.0)), (3, Some(4.0))]);
        let other = of(&[(0, Some(10.0)), (1, Some(20.0)), (3, Some(40.0))]);
        assert_eq!(one.paired(&other, measure), (vec![1.0, 4.0], vec![10.0, 40.0]));
        assert_eq!((one.counted_runs(), one.values(measure).len()), (4, 3));
    }

    #[test]
    fn contestants_that_differ_only_in_their_queue_are_told_apart_by_it() {
        let contestants: Vec<Contestant> = ["cubic@drop_tail", "dctcp", "cubic@drop_tail 2 BDP", "reno", "reno"]
            .iter()
            .map(|c| c.parse().unwrap())
            .collect();
        assert_eq!(
            labels(&contestants),
            [
                "hystart+cubic@drop_tail",
                "slow_start+dctcp",
                "hystart+cubic@drop_tail 2 BDP",
                "slow_start+reno #1",
                "slow_start+reno #2"
            ]
        );
    }
}
