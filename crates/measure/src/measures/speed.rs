//! Measures of how fast a newcomer gets up to speed: M2, M3 and M11.

use flowstart_units::Bytes;

use super::item::{Better, Function, Item, Needs};
use crate::speed::{deficit, duplicates, overhead, time_to};

/// M2 at a level in percent.
pub static TIME_TO: Item = Item {
    name: "time_to_{}_percent_rtts",
    heading: "to {} %",
    unit: "RTT",
    digits: 1,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M2: smallest t in RTT0 from which U(t) = (egress(t) - egress(t - RTT0)) / (C_f RTT0) stays at {} % or more \
           for 2 RTT0; beyond the horizon counts as the horizon.",
    function: Function::NewcomerAt(&[50, 80, 90], |newcomer, percent| {
        let time = time_to(f64::from(percent) / 100.0, &newcomer.egress, &newcomer.reference);
        Some(time.unwrap_or(newcomer.reference.horizon_rtts()))
    }),
};

/// M3, L.
pub static DEFICIT: Item = Item {
    name: "deficit_bdp",
    heading: "deficit",
    unit: "BDP",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M3: L = (1/B_f) integral over the horizon of max(0, C_f - e(t)) dt, e = egress rate over RTT0/4: data not \
           carried although there was room (quicly compares starts by the integral of delivered bytes).",
    function: Function::Newcomer(|newcomer| Some(deficit(&newcomer.egress, &newcomer.reference))),
};

/// M3, L_dup.
pub static DUPLICATES: Item = Item {
    name: "duplicates_bdp",
    heading: "duplicates",
    unit: "BDP",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M3: L_dup, bytes that left the bottleneck a second time, in BDP.",
    function: Function::Newcomer(|newcomer| {
        Some(duplicates(Bytes::new(newcomer.record.duplicate_bytes), &newcomer.reference))
    }),
};

/// Megabytes read by the receiving application after so many RTT0.
pub static DELIVERED: Item = Item {
    name: "delivered_{}_rtts_mb",
    heading: "after {} RTT",
    unit: "MB",
    digits: 3,
    better: Better::Higher,
    needs: Needs::Newcomers,
    help: "Stream bytes the receiving application had read by t = {} RTT0.",
    function: Function::NewcomerAt(&[5, 10, 20], |newcomer, rtts| {
        let by = newcomer.reference.base_rtt * u64::from(rtts);
        (by <= newcomer.reference.horizon).then(|| newcomer.delivered.at(by) / 1e6)
    }),
};

/// M11.
pub static OVERHEAD: Item = Item {
    name: "overhead_percent",
    heading: "overhead",
    unit: "%",
    digits: 2,
    better: Better::Lower,
    needs: Needs::Newcomers,
    help: "M11: payload bytes sent within the horizon over those sent for the first time, minus 1 (which for a \
           complete transfer is bytes sent over bytes delivered, minus 1); missing where these cannot be told apart \
           (QUIC).",
    function: Function::Newcomer(|newcomer| {
        if !newcomer.record.repairs_seen {
            return None;
        }
        let sent = newcomer.record.payload_sent;
        let once = sent - newcomer.record.payload_retransmitted;
        Some(overhead(Bytes::new(sent), Bytes::new(once))? * 100.0)
    }),
};
