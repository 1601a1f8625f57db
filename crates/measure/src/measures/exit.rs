//! Measures of the end of a start: M6.

use super::item::{Better, Function, Item, Needs};
use crate::speed::least_utilisation;

/// How long after the exit M6 watches for undershoot.
const WATCHED_AFTER_EXIT_RTTS: u64 = 10;

/// Time of the exit in milliseconds after t = 0.
pub static EXIT_MS: Item = Item {
    name: "exit_ms",
    heading: "exit",
    unit: "ms",
    digits: 1,
    better: Better::Neither,
    needs: Needs::Newcomers,
    help: "When the start ended, after the first data bit of the new flow (of several, each its own) reached the \
           bottleneck's queue (t = 0).",
    function: Function::Newcomer(|newcomer| Some((newcomer.exit?.after - newcomer.late).as_millis_f64())),
};

/// Time of the exit in RTT0 after t = 0.
pub static EXIT_RTTS: Item = Item {
    name: "exit_rtts",
    heading: "exit",
    unit: "RTT",
    digits: 1,
    better: Better::Neither,
    needs: Needs::Newcomers,
    help: "The same in base round-trip times (RTT0).",
    function: Function::Newcomer(|newcomer| {
        Some((newcomer.exit?.after - newcomer.late).ratio(newcomer.reference.base_rtt))
    }),
};

/// Window at the exit over the BDP.
pub static EXIT_WINDOW: Item = Item {
    name: "exit_window_bdp",
    heading: "window / BDP",
    unit: "",
    digits: 2,
    better: Better::Neither,
    needs: Needs::Newcomers,
    help: "Congestion window in wire bytes when the start ended, before the reduction a loss or mark brings, over \
           B_f = C_f RTT0 (neqo: slow_start_exit_detection_cwnd over the BDP).",
    function: Function::Newcomer(|newcomer| Some(newcomer.exit?.window_per_bdp)),
};

/// M6, E.
pub static EXIT_QUALITY: Item = Item {
    name: "exit_quality",
    heading: "E",
    unit: "",
    digits: 2,
    better: Better::Neither,
    needs: Needs::Newcomers,
    help: "M6: log2(window at exit / B_f); 0 is exact, -1 half of it, 1 twice.",
    function: Function::Newcomer(|newcomer| Some(newcomer.exit?.quality)),
};

/// neqo's ratio of bytes in flight to window at detection.
pub static EXIT_IN_FLIGHT: Item = Item {
    name: "exit_in_flight_per_window",
    heading: "in flight / window",
    unit: "",
    digits: 2,
    better: Better::Neither,
    needs: Needs::Newcomers,
    help: "Packets in flight over window when the start ended (neqo: slow_start_exit_bytes_in_flight / \
           slow_start_exit_detection_cwnd).",
    function: Function::Newcomer(|newcomer| Some(newcomer.exit?.in_flight_per_window)),
};

/// M6, U_min.
pub static UNDERSHOOT: Item = Item {
    name: "undershoot",
    heading: "U min",
    unit: "",
    digits: 2,
    better: Better::Higher,
    needs: Needs::Newcomers,
    help: "M6: smallest utilisation of any RTT0 that lies within the 10 RTT0 after the exit.",
    function: Function::Newcomer(|newcomer| {
        let (after, reference) = (newcomer.exit?.after, &newcomer.reference);
        let watched = after + reference.base_rtt * WATCHED_AFTER_EXIT_RTTS;
        least_utilisation(&newcomer.record.egress, reference, after, watched)
    }),
};
