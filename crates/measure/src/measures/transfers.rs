//! Measures of whole transfers, each in a run of its own: M7.

use super::item::{Better, Function, Item, Needs};
use crate::transfer::{geometric_mean, slowdown};

/// Which quantile of a transfer's queueing delays is told.
const QUANTILE: f64 = 0.99;

/// Completion time of the transfer of a size.
pub static COMPLETION: Item = Item {
    name: "completion_{}_ms",
    heading: "{}",
    unit: "ms",
    digits: 1,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M7: completion time of a transfer of {} in a run of its own (not the endless newcomer of the other \
           measures): from the first bit sent to the last byte delivered in order. Not in it: handshake, request, name \
           look-up, a server that thinks. Beside others it shares the path with them.",
    function: Function::Transfer(|transfer| {
        let flow = transfer.flow?;
        Some(flow.completed?.since(flow.first_data).as_millis_f64())
    }),
};

/// M7, its ratio to the ideal.
pub static SLOWDOWN: Item = Item {
    name: "slowdown_{}",
    heading: "{} / ideal",
    unit: "",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M7: completion time over the ideal RTT0/2 + (bytes on the wire) / C; behind a shaper its burst passes at the \
           rate of its peak or line. Not less than a policer, the sender's own link or a bottleneck further away than \
           RTT/2 let it take.",
    function: Function::Transfer(|transfer| {
        let flow = transfer.flow?;
        Some(slowdown(flow.completed?.since(flow.first_data), transfer.ideal))
    }),
};

/// M7, the geometric mean of the ratios of all sizes.
pub static SLOWDOWN_MEAN: Item = Item {
    name: "slowdown_geometric_mean",
    heading: "mean / ideal",
    unit: "",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M7: geometric mean of the ratios of all sizes.",
    function: Function::OverSizes(&SLOWDOWN, geometric_mean),
};

/// Queueing delay of the transfer of a size.
pub static TRANSFER_DELAY: Item = Item {
    name: "queue_delay_p99_{}_ms",
    heading: "{} P99 queue",
    unit: "ms",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "99th percentile of the queueing delay at the bottleneck of the packets of a transfer of {} in a run of its \
           own, what other flows cause included.",
    function: Function::Transfer(|transfer| {
        Some(transfer.waits.bottleneck()?.wait_quantile(QUANTILE)?.as_millis_f64())
    }),
};
