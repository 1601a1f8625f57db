//! Measures of the bottleneck's queue: M4, and what every table shows.

use super::item::{Better, Function, Item, Needs};

/// Largest queueing delay.
pub static DELAY_MAX: Item = Item {
    name: "delay_max_ms",
    heading: "max",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "Longest wait of a data packet at the bottleneck until its transmission began, within the horizon, all flows.",
    function: Function::Run(|run| Some(run.delay()?.max.as_millis_f64())),
};

/// 99th percentile of the queueing delay.
pub static DELAY_P99: Item = Item {
    name: "delay_p99_ms",
    heading: "P99",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "99th percentile (nearest rank) of the time that packets waited in the bottleneck's queue.",
    function: Function::Run(|run| Some(run.delay()?.p99.as_millis_f64())),
};

/// Mean queueing delay.
pub static DELAY_MEAN: Item = Item {
    name: "delay_mean_ms",
    heading: "mean",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "Mean of the time that packets waited in the bottleneck's queue.",
    function: Function::Run(|run| Some(run.delay()?.mean.as_millis_f64())),
};

/// M4, O_pk.
pub static OVERSHOOT_PEAK: Item = Item {
    name: "overshoot_peak_ms",
    heading: "overshoot",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M4: O_pk, largest queueing delay within the horizon minus the mean over the 10 RTT0 before t = 0.",
    function: Function::Run(|run| Some(run.overshoot().peak.as_millis_f64())),
};

/// M4, O_ar.
pub static OVERSHOOT_AREA: Item = Item {
    name: "overshoot_area_rtt2",
    heading: "overshoot area",
    unit: "RTT^2",
    digits: 3,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M4: O_ar, integral over the horizon of the queueing delay above that mean, over RTT0^2.",
    function: Function::Run(|run| Some(run.overshoot().area)),
};

/// Queueing delay of the newcomers' own packets while they start, above what there was without
/// them, at a percentile.
pub static START_OWN_DELAY: Item = Item {
    name: "start_own_delay_p{}_ms",
    heading: "own P{} in the start",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "{}th percentile of the queueing delay of the new flow's own packets that arrive at the bottleneck until one \
           RTT0 after the start's end; with others there, minus that of the others' packets without the newcomer \
           (paired runs, same seed).",
    function: Function::RunAt(&[99, 100], |run, percentile| run.added_in_start().own(percentile)),
};
