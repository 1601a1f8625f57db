//! Measures of what was lost, repaired and marked: M5.

use super::item::{Better, Function, Item, Needs};
use crate::recording::{Newcomers, Recording};

/// M5, own packets lost that left before the exit.
pub static LOST_BEFORE: Item = Item {
    name: "lost_before_exit",
    heading: "lost before exit",
    unit: "",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M5: the new flow's packets dropped within the horizon that were sent before the start ended.",
    function: Function::Newcomer(|newcomer| Some(newcomer.record.dropped_in_start as f64)),
};

/// M5, own packets lost that left after the exit.
pub static LOST_AFTER: Item = Item {
    name: "lost_after_exit",
    heading: "after",
    unit: "",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M5: its packets dropped within the horizon that were sent later.",
    function: Function::Newcomer(|newcomer| Some(newcomer.record.dropped_later as f64)),
};

/// M5, others' packets lost.
pub static LOST_OTHERS: Item = Item {
    name: "lost_others",
    heading: "lost, others",
    unit: "",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M5: packets of the other flows dropped within the horizon.",
    function: Function::Run(|run| {
        let first = run.setting.others;
        let own = first..first + run.setting.newcomers;
        let others = run.with.flows().iter().enumerate().filter(|(number, _)| !own.contains(number));
        Some(others.map(|(_, flow)| flow.dropped()).sum::<u64>() as f64)
    }),
};

/// M5 while the start lasts, of all flows, because of the newcomers.
pub static START_LOST: Item = Item {
    name: "start_lost",
    heading: "lost in the start",
    unit: "",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M5: packets of all flows that the bottleneck's queue dropped (not those a loss process took) until one RTT0 \
           after the start's end, minus those dropped without the newcomer (paired runs, same seed).",
    function: Function::Run(|run| {
        let until = run.start_phase();
        let lost =
            |recording: &Recording<Newcomers>| recording.bottleneck().map_or(0.0, |link| link.drops().by(until) as f64);
        Some(lost(run.with) - run.without.map_or(0.0, lost))
    }),
};

/// Own retransmissions.
pub static RETRANSMITTED: Item = Item {
    name: "retransmitted",
    heading: "retransmitted",
    unit: "",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M5: retransmissions of the new flow within the horizon; missing where they cannot be told from other \
           packets (QUIC).",
    function: Function::Newcomer(|newcomer| {
        newcomer.record.repairs_seen.then_some(newcomer.record.retransmitted as f64)
    }),
};

/// Own retransmission timeouts.
pub static TIMEOUTS: Item = Item {
    name: "timeouts",
    heading: "timeouts",
    unit: "",
    digits: 0,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M5: retransmission timeouts of the new flow in the whole run.",
    function: Function::Newcomer(|newcomer| Some(newcomer.flow.timeouts as f64)),
};

/// Own packets that met a congestion mark.
pub static MARKED: Item = Item {
    name: "marked",
    heading: "marked",
    unit: "",
    digits: 0,
    better: Better::Neither,
    needs: Needs::Newcomers,
    help: "Packets of the new flow that left the bottleneck with a congestion mark within the horizon.",
    function: Function::Newcomer(|newcomer| Some(newcomer.record.marked as f64)),
};
