//! The flows of a scenario's run as rows of the tables.

use flowstart_results::{Results, exit_name, page_table};
use flowstart_scenario::{Compiled, Scenario};
use flowstart_units::{Bytes, Rate, Time};

use super::exit::seen_exit;
use super::perform::Performed;
use super::seen::Ran;
use super::tables::{FlowFacts, FlowRow, SenderSample, results};

/// The tables of one run.
pub(super) fn tables(scenario: &Scenario, compiled: &Compiled, performed: &Performed, run: u64) -> Results {
    let rows: Vec<FlowRow> = performed.flows.iter().map(|ran| flow_row(compiled, performed, ran)).collect();
    let (recording, outcome) = (&performed.recording, &performed.outcome);
    let sampled = !scenario.output.sample.is_zero();
    let mut results = results((run, scenario.seed), &performed.layout, recording, outcome, &rows, sampled);
    let [.., pages] = &mut results.tables;
    pages.append(page_table(run, &performed.sessions, compiled));
    results
}

fn flow_row(compiled: &Compiled, performed: &Performed, ran: &Ran) -> FlowRow {
    let label = &compiled.groups[ran.group as usize];
    let flow = &ran.outcome;
    let packets = flow.key.and_then(|key| performed.recording.flow(&key));
    let mut facts = packets.map(FlowFacts::of_packets).unwrap_or_default();
    let first_data = packets.map_or(Time::NEVER, |packets| packets.first_data);
    facts.set("start_s", flow.started.map(Time::as_secs_f64));
    facts.set("bytes_delivered", flow.delivered);
    let until = flow.completed.unwrap_or(performed.outcome.ended);
    if first_data < until {
        facts.set("goodput_bps", Rate::of(Bytes::new(flow.delivered), until.since(first_data)).as_bps() as f64);
    }
    if let Some(size) = ran.size {
        facts.set("size_bytes", size.get());
        facts.set("completed_s", flow.completed.map(Time::as_secs_f64));
        facts.set("completion_time_s", flow.completed.map(|done| done.since(first_data).as_secs_f64()));
        let whole = flow.completed.zip(flow.started).map(|(done, started)| done.since(started).as_secs_f64());
        facts.set("completion_with_handshake_s", whole);
    }
    if let Some(info) = flow.info {
        facts.set("data_segs_out", info.data_segs_out);
        // With classic ECN the kernel counts every ACK with an echo, of one mark many.
        if packets.is_none() {
            facts.set("delivered_ce", info.delivered_ce);
        }
        facts.add_state(&info);
    }
    if let Some(exit) = seen_exit(performed, ran) {
        facts.set("exit_reason", exit_name(exit.reason));
        facts.set("exit_s", exit.at.since(first_data).as_secs_f64());
        facts.set("exit_cwnd_pkts", exit.cwnd);
        facts.set("exit_ssthresh_pkts", exit.ssthresh);
        facts.set("exit_in_flight_pkts", exit.in_flight);
    }
    let samples =
        flow.samples.iter().map(|sample| SenderSample::of(sample.at, &sample.info, sample.delivered)).collect();
    FlowRow {
        name: label.real_name().to_owned(),
        algorithm: label.kernel.as_ref().unwrap_or(&label.algorithm).clone(),
        facts,
        key: flow.key,
        samples,
    }
}
