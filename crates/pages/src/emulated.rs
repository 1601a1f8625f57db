//! What links and flows of an emulated world did: tables, sentences, and how faithful it was.

use flowstart_emulator::{Fidelity, FidelityLimit, FlowRecording, Recording, WorldOutcome};
use flowstart_real::flow_name;
use flowstart_report::{Cell, Column, Table};
use flowstart_units::{Bytes, Rate, Span};
use serde_json::{Value, json};

/// Flows that are shown on the terminal, the largest; all are in the result files.
const SHOWN_FLOWS: usize = 12;

/// What the links did.
#[must_use]
pub fn link_table(names: &[String], recording: &Recording, outcome: &WorldOutcome) -> Table {
    let ms = |span: Span| Cell::number(span.as_millis_f64(), 3);
    let mut table = Table::new(
        "Links",
        vec![
            Column::key("link"),
            Column::number("packets", ""),
            Column::number("throughput", "Mbit/s"),
            Column::number("median wait", "ms"),
            Column::number("99 % wait", "ms"),
            Column::number("longest wait", "ms"),
            Column::number("dropped", "packets"),
            Column::number("lost", "packets"),
            Column::number("marked", "packets"),
        ],
    );
    for (number, (name, link)) in names.iter().zip(&outcome.links).enumerate() {
        let waits = &recording.links()[number];
        table.push(vec![
            Cell::text(name),
            Cell::count(link.packets),
            Cell::number(Rate::of(link.bytes, outcome.ended.since(flowstart_units::Time::ZERO)).as_mbps_f64(), 2),
            ms(waits.wait_quantile(0.5)),
            ms(waits.wait_quantile(0.99)),
            ms(link.max_sojourn),
            Cell::count(link.dropped),
            Cell::count(link.lost),
            Cell::count(link.marked),
        ]);
    }
    table
}

/// The largest flows.
#[must_use]
pub fn flow_table(recording: &Recording) -> Table {
    let mut flows: Vec<_> = recording.flows().iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes));
    let title = if flows.len() > SHOWN_FLOWS {
        format!("The {SHOWN_FLOWS} largest of {} flows", flows.len())
    } else {
        "Flows".to_owned()
    };
    let mut table = Table::new(
        title,
        vec![
            Column::key("flow"),
            Column::number("began", "s"),
            Column::number("lasted", "s"),
            Column::number("packets", ""),
            Column::number("bytes", "MB"),
            Column::number("rate", "Mbit/s"),
            Column::number("dropped", "packets"),
            Column::number("marked", "packets"),
        ],
    );
    for flow in flows.into_iter().take(SHOWN_FLOWS) {
        let lasted = flow.last.max(flow.last_left).since(flow.first);
        table.push(vec![
            Cell::text(flow_name(&flow.key)),
            Cell::number(flow.first.as_secs_f64(), 3),
            Cell::number(lasted.as_secs_f64(), 3),
            Cell::count(flow.packets),
            Cell::number(flow.bytes as f64 / 1e6, 3),
            Cell::number_or_missing(rate(flow), 2),
            Cell::count(flow.dropped),
            Cell::count(flow.marked),
        ]);
    }
    table
}

/// What left the flow's first link, from the arrival of its first packet until the last had left,
/// in Mbit/s: never more than the link carries. `None` of fewer than two packets.
fn rate(flow: &FlowRecording) -> Option<f64> {
    let took = flow.last_left.since(flow.first);
    (flow.left > 1 && !took.is_zero()).then(|| Rate::of(Bytes::new(flow.left_bytes), took).as_mbps_f64())
}

/// Flows that are named in sentences, the largest.
const NAMED_FLOWS: usize = 2;

/// What became of the largest flows and of the links, in words.
#[must_use]
pub fn sentences(names: &[String], recording: &Recording, outcome: &WorldOutcome) -> Vec<String> {
    let mut flows: Vec<_> = recording.flows().iter().filter_map(|flow| Some((flow, rate(flow)?))).collect();
    flows.sort_by_key(|(flow, _)| std::cmp::Reverse(flow.left_bytes));
    let flow = |(flow, rate): (&FlowRecording, f64)| {
        format!(
            "{}: {:.3} MB in {:.2} s, {rate:.2} Mbit/s, {} packets dropped.",
            flow_name(&flow.key),
            flow.left_bytes as f64 / 1e6,
            flow.last_left.since(flow.first).as_secs_f64(),
            flow.dropped
        )
    };
    let link = |(name, link): (&String, &flowstart_emulator::LinkOutcome)| {
        let wait = link.max_sojourn.as_millis_f64();
        format!("Link {name}: at most {wait:.1} ms of waiting, {} packets dropped.", link.dropped)
    };
    let flows = flows.into_iter().take(NAMED_FLOWS).map(flow);
    flows.chain(names.iter().zip(&outcome.links).map(link)).collect()
}

/// Packets that were sent, and at the end were still in a queue or on their way to one.
#[must_use]
pub fn stayed(recording: &Recording) -> u64 {
    recording.flows().iter().map(|flow| flow.stayed).sum()
}

/// Fidelity as JSON, with the verdict.
#[must_use]
pub fn fidelity(fidelity: &Fidelity, limit: &FidelityLimit) -> Value {
    let micros = |span: Span| span.as_nanos() as f64 / 1e3;
    json!({
        "packets": fidelity.packets,
        "late_median_us": micros(fidelity.median),
        "late_p99_us": micros(fidelity.p99),
        "late_worst_us": micros(fidelity.worst),
        "faults": fidelity.faults,
        "stalls": fidelity.stalls,
        "longest_stall_us": micros(fidelity.longest_stall),
        "unasked_drops": fidelity.unasked_drops,
        "above_mtu": fidelity.above_mtu,
        "late_arrivals": fidelity.late_arrivals,
        "real_time_priority": fidelity.real_time,
        "limit_p99_us": micros(limit.p99),
        "kept": limit.broken_by(fidelity).is_none(),
    })
}
