//! How far apart simulator and kernel are, and whether that is within the goals.

use serde::Serialize;

use flowstart_measure::Estimate;

use super::Row;

/// One value of each of [`QUANTITIES`]; `None`: there was none.
pub type Values = [Option<f64>; QUANTITIES.len()];

/// How far apart is near enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This share of the kernel's mean.
    Share(f64),
    /// This much in the quantity's unit.
    Absolute(f64),
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Name.
    pub name: &'static str,
    /// Unit; empty if there is none.
    pub unit: &'static str,
    /// Digits after the point.
    pub digits: u8,
    /// How near is near enough.
    pub goal: Goal,
}

const fn quantity(name: &'static str, unit: &'static str, digits: u8, goal: Goal) -> Quantity {
    Quantity { name, unit, digits, goal }
}

/// Rates and waits after the start (waits end when transmission begins), drops of the whole run,
/// and how the start ended: the round trips it took, and its window in packets.
pub const QUANTITIES: [Quantity; 7] = [
    quantity("goodput", "Mbit/s", 2, Goal::Share(0.01)),
    quantity("queue mean", "ms", 2, Goal::Share(0.03)),
    quantity("p50", "ms", 2, Goal::Share(0.03)),
    quantity("p95", "ms", 2, Goal::Share(0.03)),
    quantity("drops", "packets", 0, Goal::Share(0.05)),
    quantity("exit", "RTT", 1, Goal::Absolute(0.5)),
    quantity("window", "packets", 0, Goal::Share(0.05)),
];

/// Whether a goal is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// The whole interval is within the goal.
    Met,
    /// The whole interval is outside.
    Missed,
    /// The interval reaches over the bound, or there is none.
    Undecided,
}

/// How far the simulator is from the kernel in one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Mean of simulator less kernel: a share of the kernel's mean, or in the quantity's unit.
    /// `None` if only one of them has a value, or if the kernel's is 0.
    pub mean: Option<f64>,
    /// Half of its 95 % interval over the runs; `None` with one run.
    pub half_width: Option<f64>,
    /// Whether the goal is reached.
    pub verdict: Reached,
}

impl Quantity {
    /// Compares values run by run; a simulator without chance has one run for all. What only one
    /// side has in a run is not compared, unless there is no run with both. `None` if neither side
    /// has a value.
    #[must_use]
    pub fn deviation(&self, simulated: &[Option<f64>], kernel: &[Option<f64>]) -> Option<Deviation> {
        let none = |verdict| Some(Deviation { mean: None, half_width: None, verdict });
        let first = simulated.first().copied().flatten();
        let both =
            |(run, theirs): (usize, &Option<f64>)| Some((simulated.get(run).copied().unwrap_or(first)?, (*theirs)?));
        let (ours, kernel_values): (Vec<f64>, Vec<f64>) = kernel.iter().enumerate().filter_map(both).unzip();
        let Some(theirs) = Estimate::of(&kernel_values) else {
            let any = simulated.iter().chain(kernel).any(Option::is_some);
            return if any { none(Reached::Missed) } else { None };
        };
        let (scale, bound) = match self.goal {
            Goal::Share(share) => (theirs.mean, share),
            Goal::Absolute(bound) => (1.0, bound),
        };
        let differences: Vec<f64> = ours.iter().zip(&kernel_values).map(|(ours, theirs)| ours - theirs).collect();
        if scale == 0.0 {
            // A share of nothing has no bound: what is clear of nothing is missed.
            let verdict = match Estimate::of(&differences)? {
                Estimate { mean: 0.0, half_width: Some(0.0), .. } => {
                    return Some(Deviation { mean: Some(0.0), half_width: Some(0.0), verdict: Reached::Met });
                }
                Estimate { mean, half_width: Some(half), .. } if mean.abs() > half => Reached::Missed,
                _ => Reached::Undecided,
            };
            return none(verdict);
        }
        let scaled: Vec<f64> = differences.iter().map(|difference| difference / scale).collect();
        let Estimate { mean, half_width, .. } = Estimate::of(&scaled)?;
        let verdict = match half_width {
            Some(half) if mean.abs() + half <= bound => Reached::Met,
            Some(half) if mean.abs() - half > bound => Reached::Missed,
            _ => Reached::Undecided,
        };
        Some(Deviation { mean: Some(mean), half_width, verdict })
    }
}

impl Row {
    /// What is shown of every quantity: of the simulator, of the kernel if it ran, and, if the
    /// simulated runs had the [disturbances](Self::disturbances) of the kernel's, of the simulator
    /// without them.
    #[must_use]
    pub fn sides(&self) -> Vec<(&'static str, [Vec<f64>; QUANTITIES.len()])> {
        let of = |runs: &[Values]| {
            std::array::from_fn(|number| runs.iter().filter_map(|values: &Values| values[number]).collect())
        };
        let mut sides = vec![("simulator", of(&self.simulated))];
        if !self.kernel.is_empty() {
            sides.push(("kernel, emulated", of(&self.kernel)));
        }
        if !self.disturbances.is_empty() && !self.undisturbed.is_empty() {
            sides.push(("simulator, undisturbed", of(&self.undisturbed)));
        }
        sides
    }

    /// How far apart, in the order of [`QUANTITIES`]; nothing where no run of the kernel counts.
    #[must_use]
    pub fn deviations(&self) -> [Option<Deviation>; QUANTITIES.len()] {
        std::array::from_fn(|number| {
            let of = |runs: &[Values]| runs.iter().map(|values| values[number]).collect::<Vec<_>>();
            let kernel = of(&self.kernel);
            if kernel.is_empty() { None } else { QUANTITIES[number].deviation(&of(&self.simulated), &kernel) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(quantity: usize, simulated: &[f64], kernel: &[f64]) -> Option<(Option<f64>, Reached)> {
        let runs = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let deviation = QUANTITIES[quantity].deviation(&runs(simulated), &runs(kernel))?;
        Some((deviation.mean.map(|mean| (mean * 1e4).round() / 1e4), deviation.verdict))
    }

    #[test]
    fn a_goal_is_met_or_missed_only_if_the_whole_interval_says_so() {
        let near = [99.5, 99.6, 99.4];
        assert_eq!(judged(0, &[99.5], &near), Some((Some(0.0), Reached::Met)));
        assert_eq!(judged(0, &[110.0], &near), Some((Some(0.1055), Reached::Missed)));
        assert_eq!(judged(0, &[100.5], &near), Some((Some(0.0101), Reached::Undecided)));
        // A wide spread decides nothing, nor does one run.
        assert_eq!(judged(0, &[100.0], &[90.0, 110.0, 100.0]), Some((Some(0.0), Reached::Undecided)));
        assert_eq!(judged(0, &[100.0], &[100.0]), Some((Some(0.0), Reached::Undecided)));
    }

    #[test]
    fn the_exit_is_judged_in_round_trips_and_its_window_as_a_share() {
        assert_eq!(judged(5, &[5.0], &[5.4, 5.4]), Some((Some(-0.4), Reached::Met)));
        assert_eq!(judged(5, &[5.0], &[5.6, 5.6]), Some((Some(-0.6), Reached::Missed)));
        assert_eq!(judged(6, &[94.0], &[100.0, 100.0]), Some((Some(-0.06), Reached::Missed)));
    }

    #[test]
    fn runs_with_chance_in_both_are_compared_run_by_run() {
        let (ours, theirs) = ([10.0, 12.0, 11.0], [10.0, 12.0, 11.0]);
        assert_eq!(judged(1, &ours, &theirs), Some((Some(0.0), Reached::Met)));
    }

    /// They were moved together first, and so compared with another run.
    #[test]
    fn a_run_without_a_value_leaves_the_others_where_they_are() {
        let theirs = [None, Some(12.0), Some(11.0)];
        let ours = [Some(10.0), Some(12.0), Some(11.0)];
        let deviation = |ours: &[Option<f64>], theirs: &[Option<f64>]| QUANTITIES[5].deviation(ours, theirs).unwrap();
        let same = Deviation { mean: Some(0.0), half_width: Some(0.0), verdict: Reached::Met };
        assert_eq!(deviation(&ours, &theirs), same);
        assert_eq!(deviation(&theirs, &ours), same);
        // One run of the simulator stands for all.
        assert_eq!(deviation(&[Some(11.5)], &theirs).mean, Some(0.0));
        assert_eq!(deviation(&[None, None, None], &ours).verdict, Reached::Missed);
    }

    #[test]
    fn nothing_on_both_sides_is_met_and_something_on_one_is_missed() {
        assert_eq!(judged(4, &[0.0], &[0.0, 0.0]), Some((Some(0.0), Reached::Met)));
        assert_eq!(judged(4, &[3.0], &[0.0, 0.0]), Some((None, Reached::Missed)));
        assert_eq!(judged(4, &[0.0], &[0.0]), Some((None, Reached::Undecided)));
        // One run of many with something is not clear of nothing, nor is a single run.
        assert_eq!(judged(4, &[20.0, 0.0, 0.0, 0.0, 0.0], &[0.0; 5]), Some((None, Reached::Undecided)));
        assert_eq!(judged(4, &[3.0], &[0.0]), Some((None, Reached::Undecided)));
        assert_eq!(judged(5, &[], &[]), None);
        assert_eq!(judged(5, &[4.0], &[]), Some((None, Reached::Missed)));
    }
}
