//! `flowstart run --real`: scenario files on this machine.

use serde_json::json;

use flowstart_congestion::ExitReason;
use flowstart_emulator::Fidelity;
use flowstart_experiment::results::{Provenance, Results, exit_name, page_table, to_json, write_results};
use flowstart_experiment::scenario::{Compiled, Scenario};
use flowstart_report::Terminal;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::controls::not_real;
use super::perform::{Performed, Ran, Wanted, perform};
use super::results::{FlowFacts, FlowRow, SenderSample, results};
use super::{become_able, fidelity_limit, judge, show};
use crate::cli::RunArgs;
use crate::interrupt;
use crate::output::{Failure, Outcome, note, prepare_folder, print, print_json};
use crate::run::{FORMATS, flow_table, link_table, names};
use crate::scenario::load;

/// Runs the files one after the other, their runs too.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let mut scenarios = Vec::new();
    for file in &args.files {
        let mut scenario = load(file)?;
        scenario.seed = args.seed.unwrap_or(scenario.seed);
        scenario.runs = args.runs.unwrap_or(scenario.runs);
        scenarios.push(scenario);
    }
    become_able()?;
    for folder in args.out.iter().chain(&args.pcap) {
        prepare_folder(folder)?;
    }
    let cancel = interrupt::listen();
    let limit = fidelity_limit(args.fidelity);
    let (mut documents, mut verdict) = (Vec::new(), Ok(()));
    for (scenario, name) in scenarios.iter().zip(names(&args.files)) {
        let (mut all, mut fidelities) = (None::<Results>, Vec::new());
        let compiled = scenario.simulation(0).map_err(Failure::usage)?;
        let left_out = not_real(scenario, &compiled);
        for line in &left_out {
            note(&format!("{name}: not as in the simulator: {line}"));
        }
        for run in 0..scenario.runs {
            if cancel.is_cancelled() {
                break;
            }
            let compiled = scenario.simulation(run).map_err(Failure::usage)?;
            let folder = args.pcap.as_ref().filter(|_| run == 0).map(|folder| folder.join(&name));
            if let Some(folder) = &folder {
                prepare_folder(folder)?;
            }
            let wanted = Wanted { log: false, captures: folder };
            let performed = perform(scenario, &compiled, &wanted, &cancel)?;
            let fidelity = performed.outcome.fidelity;
            let one = tables(scenario, &compiled, &performed, run);
            fidelities.push(fidelity);
            if !args.json {
                note(&format!("{name}, run {run}: {fidelity}"));
            }
            verdict = verdict.and(judge(&limit, &fidelity));
            match &mut all {
                None => all = Some(one),
                Some(all) => {
                    for (all, one) in all.tables.iter_mut().zip(one.tables) {
                        all.append(one);
                    }
                    all.finished += 1;
                    all.data_packets += one.data_packets;
                }
            }
        }
        let Some(mut results) = all else { break };
        results.asked = scenario.runs;
        let provenance = Provenance::new(scenario, &results);
        if let Some(folder) = &args.out {
            let folder = if args.files.len() > 1 { folder.join(&name) } else { folder.clone() };
            write_results(&folder, &results, &provenance, FORMATS).map_err(Failure::usage)?;
        }
        if args.json {
            let mut document = to_json(&results, &provenance);
            let list: Vec<_> = fidelities.iter().map(|fidelity| show::fidelity(fidelity, &limit)).collect();
            document["fidelity"] = json!(list);
            document["not_real"] = json!(left_out);
            documents.push(document);
        } else {
            print(&summary(scenario, &name, &results, &fidelities))?;
        }
    }
    if args.json {
        match documents.as_slice() {
            [one] if args.files.len() == 1 => print_json(one)?,
            several => print_json(&json!(several))?,
        }
    }
    if cancel.is_cancelled() { Err(Failure::Interrupted) } else { verdict }
}

fn summary(scenario: &Scenario, name: &str, results: &Results, fidelities: &[Fidelity]) -> String {
    let terminal = Terminal::of_stdout();
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    let mut text = format!("{title}, on this machine's kernel\n\n");
    if let (Some(flows), Some(links)) = (results.table("flows"), results.table("links")) {
        text.push_str(&format!("{}\n", flow_table(flows).to_terminal(terminal)));
        text.push_str(&format!("{}\n", link_table(links).to_terminal(terminal)));
    }
    if results.finished < results.asked {
        text.push_str(&format!("Interrupted: {} of {} runs were finished.\n", results.finished, results.asked));
    }
    if fidelities.len() > 1 {
        let worst = fidelities.iter().map(|fidelity| fidelity.p99).max().unwrap_or(Span::ZERO);
        text.push_str(&format!("{} runs, 99 % of the packets of the worst within {worst}.\n", fidelities.len()));
    }
    text
}

/// The tables of one run.
fn tables(scenario: &Scenario, compiled: &Compiled, performed: &Performed, run: u64) -> Results {
    let rows: Vec<FlowRow> = performed.flows.iter().map(|ran| flow_row(compiled, performed, ran)).collect();
    let (recording, outcome) = (&performed.recording, &performed.outcome);
    let sampled = !scenario.output.sample.is_zero();
    let mut results = results((run, scenario.seed), &performed.layout.links, recording, outcome, &rows, sampled);
    let [.., pages] = &mut results.tables;
    pages.append(page_table(run, &performed.sessions, compiled));
    results
}

/// When the start ended and with which window and threshold, as the samples show it: at the first that has a threshold.
pub(super) struct SeenExit {
    pub(super) at: Time,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    pub(super) in_flight: u32,
    pub(super) reason: ExitReason,
}

/// How the start of a flow ended, as far as can be seen.
pub(super) fn seen_exit(performed: &Performed, ran: &Ran) -> Option<SeenExit> {
    let flow = &ran.outcome;
    let place = flow.samples.iter().position(|sample| sample.info.ssthresh.is_some())?;
    let (after, before) = (&flow.samples[place], &flow.samples[place.saturating_sub(1)]);
    let packets = flow.key.and_then(|key| performed.recording.flow(&key));
    let before_exit = |first: Option<Time>| first.is_some_and(|first| first <= after.at);
    // The kernel counts what its own HyStart did; else what happened before tells. A start that ends without either has decided so by itself, as those of
    // BBR (Linux bbr_check_full_bw_reached, whatever is lost) and paced chirping do.
    let reason = ran.hystart.unwrap_or(if ran.control.as_deref() == Some("bbr") {
        ExitReason::RatePlateau
    } else if before_exit(packets.map(|packets| packets.first_drop)) {
        ExitReason::Loss
    } else if before_exit(packets.map(|packets| packets.first_mark)) {
        ExitReason::Marks
    } else {
        ExitReason::PipeFull
    });
    Some(SeenExit {
        at: after.at,
        cwnd: before.info.cwnd.max(after.info.cwnd),
        ssthresh: after.info.ssthresh?,
        in_flight: before.info.unacked,
        reason,
    })
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
    }
    if let Some(info) = flow.info {
        facts.set("data_segs_out", info.data_segs_out);
        facts.set("delivered_ce", info.delivered_ce);
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
        name: label.name.clone(),
        algorithm: label.kernel.as_ref().unwrap_or(&label.algorithm).clone(),
        facts,
        key: flow.key,
        samples,
    }
}
