//! Measures of what a newcomer does to the flows that were there before: M8, M9 and M10.

use flowstart_units::Span;

use super::item::{Better, Function, Item, Needs};
use super::run::Sharing;
use crate::delay::busy_time;
use crate::others::{convergence, harm, harm_ratio, jain, max_min_share};

/// M8: the queue counts as busy this much above its mean before t = 0.
const BUSY_MARGIN: Span = Span::from_millis(1);
/// Over how many RTT0 at the end of the horizon Jain's index is taken (M10).
const JAIN_RTTS: u64 = 10;

/// M8 while the start lasts, at a percentile.
pub static START_OTHERS_DELAY: Item = Item {
    name: "start_others_delay_p{}_ms",
    heading: "others' P{} in the start",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Others,
    help: "{}th percentile of the queueing delay of the others' packets that arrive at the bottleneck until one RTT0 \
           after the new flow's start ended, minus that without the newcomer (paired runs, same seed).",
    function: Function::RunAt(&[99, 100], |run, percentile| run.added_in_start().others(percentile)),
};

/// M8 at a percentile.
pub static ADDED_DELAY: Item = Item {
    name: "added_delay_p{}_ms",
    heading: "added P{}",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Others,
    help: "M8: {}th percentile of the queueing delay of the other flows' packets within the horizon, minus the same \
           without the newcomer (paired runs, same seed).",
    function: Function::RunAt(&[50, 95, 99, 100], |run, percentile| run.added().others(percentile)),
};

/// M8, time with the queue 1 ms above before.
pub static BUSY_TIME: Item = Item {
    name: "busy_time_ms",
    heading: "queue > +1 ms",
    unit: "ms",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Others,
    help: "M8: time within the horizon during which the queue was more than 1 ms above its mean before t = 0.",
    function: Function::Run(|run| {
        let above = run.overshoot().before + BUSY_MARGIN;
        Some(busy_time(run.with.waits(), run.origin, run.horizon(), above).as_millis_f64())
    }),
};

/// M9.
pub static HARM: Item = Item {
    name: "harm_percent",
    heading: "harm",
    unit: "%",
    digits: 1,
    better: Better::Lower,
    needs: Needs::Others,
    help: "M9: max(0, (x_without - x_with - fair loss) / x_without) for the other flows' bytes through the bottleneck \
           over the horizon, fair loss = x_without - their max-min share beside the newcomers of what datagrams leave. \
           Whoever C_f does not count wants what it carried without the newcomers: nothing, if it was over.",
    function: Function::Run(|run| {
        let without = run.without?;
        let (before, with) = (run.carried_by_others(without), run.carried_by_others(run.with));
        Some(harm(before, with, run.fair_for_others(without))? * 100.0)
    }),
};

/// M9, relative to the reference contestant.
pub static HARM_RATIO: Item = Item {
    name: "harm_ratio",
    heading: "harm / ref.",
    unit: "",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Others,
    help: "M9: harm over that of the reference contestant, CUBIC with Linux's HyStart, if it races; missing if that does \
           none in some run.",
    function: Function::ToReference(&HARM, harm_ratio),
};

/// M10.
pub static CONVERGENCE: Item = Item {
    name: "convergence_rtts",
    heading: "converged",
    unit: "RTT",
    digits: 1,
    better: Better::Lower,
    needs: Needs::Others,
    help: "M10: first t in RTT0 from which the newcomer's U(t) stays within 0.8 ... 1.25 for 10 RTT0; missing if none \
           within the horizon.",
    function: Function::Newcomer(|newcomer| convergence(&newcomer.egress, &newcomer.reference)),
};

/// M10, Jain's index over the last 10 RTT0 of the horizon.
pub static JAIN: Item = Item {
    name: "jain_index",
    heading: "Jain",
    unit: "",
    digits: 3,
    better: Better::Higher,
    needs: Needs::Newcomers,
    help: "M10: Jain's index of the bytes through the bottleneck over the last 10 RTT0 of the horizon, of those flows that \
           the fair share counts, each over its max-min share: a paced flow or datagrams that want less than others have \
           theirs with what they want. 1 with a single flow.",
    function: Function::Run(|run| {
        let horizon = run.horizon();
        let last = horizon - (run.setting.reference.base_rtt * JAIN_RTTS).min(horizon);
        let carried = |number: &usize| Some(run.with.flows().get(*number)?.egress.cumulative().between(last, horizon));
        let sharing = &run.setting.sharing;
        let wants: Vec<f64> = sharing.iter().map(|one| one.wants_in(horizon - last)).collect();
        let share = max_min_share(run.possible(last, horizon), &wants);
        // What a full share is: if there is enough for all, what is most wanted.
        let full = if share.is_finite() { share } else { wants.iter().copied().fold(0.0, f64::max) };
        let of = |(one, want): (&Sharing, &f64)| {
            let part = if full > 0.0 { want.min(share) / full } else { 1.0 };
            (part > 0.0).then(|| one.connections.iter().filter_map(carried).sum::<f64>() / part)
        };
        jain(&sharing.iter().zip(&wants).filter_map(of).collect::<Vec<_>>())
    }),
};
