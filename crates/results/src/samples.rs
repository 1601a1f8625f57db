//! The table `samples`, made from a recording.

use flowstart_congestion::INFINITE_SSTHRESH;
use flowstart_measure::Samples;
use flowstart_scenario::Compiled;
use flowstart_simulator::FlowId;
use flowstart_units::{Rate, Span};

use super::column::Value;
use super::schema::SAMPLES;
use super::table::Table;

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// What happened in bins in run number `run`, given the names of flows, whether somebody
/// reads what reaches them, and what was simulated.
pub(crate) fn sample_table(
    run: u64,
    samples: Option<&Samples>,
    flow_name: impl Fn(FlowId) -> String,
    reads: impl Fn(FlowId) -> bool,
    compiled: &Compiled,
) -> Table {
    let mut table = Table::new(&SAMPLES);
    let Some(samples) = samples else { return table };
    let seconds = samples.bin().as_secs_f64();
    // From whole nanoseconds, as all times: the product of two numbers would be beside it.
    let begins = |bin: u64| Value::from((samples.bin() * bin).as_secs_f64());
    let rate = |bytes: u64| Value::from(bytes as f64 * 8.0 / seconds);
    for (bin, flow, seen) in samples.flows() {
        let state = seen.state;
        table.push([
            run.into(),
            begins(bin),
            Value::Text(format!("{} #{flow}", flow_name(flow)).into()),
            rate(seen.sent),
            rate(if reads(flow) { seen.delivered } else { 0 }),
            state.map(|state| state.cwnd).into(),
            state.map(|state| state.ssthresh).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH).into(),
            state.map(|state| state.in_flight).into(),
            state.map(|state| state.srtt).filter(|srtt| !srtt.is_zero()).map(micros).into(),
            state.and_then(|state| state.pacing).map(Rate::as_bps).map(|bps| bps as f64).into(),
        ]);
    }
    for (bin, link, seen) in samples.links() {
        let some = seen.packets > 0;
        let mean = seen.sum.as_nanos() as f64 / 1e3 / seen.packets as f64;
        let mut row = vec![Value::Missing; 10];
        row[0] = run.into();
        row[1] = begins(bin);
        row[2] = compiled.links.get(link).map(String::as_str).into();
        let overhead = compiled.simulation.links.get(link).map_or(0, |link| u64::from(link.overhead));
        row.extend([
            rate(seen.bytes + seen.packets * overhead),
            some.then(|| micros(seen.least)).into(),
            some.then_some(mean).into(),
            some.then(|| micros(seen.most)).into(),
            seen.dropped.into(),
            seen.marked.into(),
        ]);
        table.push(row);
    }
    table
}
