//! `flowstart emulate`: programs on two hosts with a described path between them.

use serde_json::json;

use flowstart_emulator::{Recording, clean};
use flowstart_network::parse_mahimahi;
use flowstart_real::{Emulated, How, Programs};
use flowstart_report::Table;
use flowstart_results::{Provenance, to_json, write_results, written_names};
use flowstart_scenario::{PathSpec, RateSpec, Scenario};
use flowstart_units::{Span, Time};

use super::self_test::self_test;
use super::{become_able, fidelity_limit, judge};
use crate::args::EmulateArgs;
use crate::formats::formats;
use crate::interrupt;
use crate::output::{Done, Failure, note, prepare_folder, print, print_json, spare_inputs, take_folder, terminal};
use crate::pages;
use crate::scenario::load_surroundings;
use crate::session::command_line;
use flowstart_pages::emulated;
use flowstart_pages::scenario::{self as pages_of, About};

/// The path unless something else is said; the flow only stands for the programs.
const DEFAULT: &str = "[path]\ncapacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";

/// Does what the options ask for.
pub(crate) fn emulate(args: &EmulateArgs) -> Done {
    if args.clean {
        let removed = clean();
        return print(&match removed.len() {
            0 => "nothing was left over\n".to_owned(),
            n => format!("removed {n}: {}\n", removed.join(", ")),
        });
    }
    let formats = formats(args.gzip, args.parquet)?;
    let (scenario, shared) = scenario(args)?;
    if let Some(line) = scenario.path.as_ref().and_then(flowstart_real::not_real_of_path).filter(|_| !args.self_test) {
        note(&format!("not as in the simulator: {line}"));
    }
    become_able()?;
    if args.self_test {
        return self_test(args.json);
    }
    prepare_output(args)?;
    let programs = Programs {
        command: args.command.clone(),
        server: args.server.clone(),
        ready_within: args.ready_within,
        time_limit: args.time_limit,
        quiet: args.json,
    };
    let cancel = interrupt::listen();
    let Emulated { ended, links, recording, outcome, results, captured } =
        flowstart_real::emulate((&scenario, shared), &programs, args.pcap.as_deref(), &cancel, &note)?;
    outcome.faults.iter().for_each(|fault| note(fault));
    let provenance = Provenance::new(&scenario, &results);
    let tables = [emulated::flow_table(&recording), emulated::link_table(&links, &recording, &outcome)];
    let sample = scenario.output.sample;
    let (lasted, covers) = (outcome.ended.since(Time::ZERO), recording.covers());
    if !sample.is_zero() && lasted > covers {
        note(&format!(
            "samples end after {covers} of {lasted}, which is as many as are kept; --sample makes them wider"
        ));
    }
    let warning = unlimited(outcome.unlimited_bytes, &recording);
    // What cannot be written does not hide what was seen.
    let write = || -> Done {
        captured?;
        if let Some(folder) = &args.out {
            write_results(folder, &results, &provenance, &formats).map_err(Failure::usage)?;
        }
        if !args.page.pages.is_empty() {
            let end = [capitalised(&ended.reason), capitalised(&outcome.fidelity)].map(|end| format!("{end}."));
            let summary = emulated::sentences(&links, &recording, &outcome).into_iter().chain(end).collect();
            let about = About {
                warnings: warning.iter().cloned().collect(),
                summary,
                tables: tables.to_vec(),
                ..about(args, scenario.seed, &provenance)
            };
            let page = pages_of::page(about, results.table("samples"), scenario.output.sample);
            pages::write(&page, &args.page)?;
        }
        Ok(())
    };
    let written = write();
    let stayed = emulated::stayed(&recording);
    let limit = fidelity_limit(args.fidelity);
    if args.json {
        let mut document = to_json(&results, &provenance);
        document["fidelity"] = emulated::fidelity(&outcome.fidelity, &limit);
        document["ended"] = json!(ended.reason);
        document["on_the_way"] = json!(stayed);
        print_json(&document)?;
    } else {
        note(&format!("\n{}{}\n{}", text(&tables), ended.reason, outcome.fidelity));
        if stayed > 0 {
            note(&format!("{stayed} packets were still in queues, or on their way there, at the end"));
        }
        if outcome.astray > 0 {
            note(&format!("{} packets were for addresses that no host has", outcome.astray));
        }
    }
    if let Some(warning) = &warning {
        note(warning);
    }
    written?;
    judge(&limit, &outcome.fidelity)?;
    match ended.how {
        How::Well => Ok(()),
        How::Status(status) => Err(Failure::Status(status)),
        How::Cancelled => Err(Failure::Interrupted),
        How::TimeLimit => Err(Failure::Usage(ended.reason)),
        How::Failed => Err(Failure::Check),
    }
}

/// Makes sure that all that is asked for can be written.
fn prepare_output(args: &EmulateArgs) -> Done {
    pages::may_be_chosen(&pages_of::TITLES, &args.page)?;
    if let Some(folder) = &args.out {
        spare_inputs(written_names().iter().map(|name| folder.join(name)))?;
        take_folder(folder)?;
    }
    if let Some(folder) = &args.pcap {
        prepare_folder(folder)?;
    }
    pages::prepare(&args.page)
}

/// What the report says before anything has come out.
fn about(args: &EmulateArgs, seed: u64, provenance: &Provenance) -> About {
    About {
        runs: 1,
        title: format!("Emulated: {}", title(args)),
        command: command_line(),
        provenance: vec![
            ("seed".to_owned(), seed.to_string()),
            ("flowstart".to_owned(), provenance.version.clone()),
            ("scenario".to_owned(), provenance.scenario_hash.clone()),
        ],
        warnings: Vec::new(),
        summary: Vec::new(),
        tables: Vec::new(),
        remarks: vec!["Real packets of real programs; links and queues as in the simulator.".to_owned()],
    }
}

/// What ran, for a title.
fn title(args: &EmulateArgs) -> String {
    match args.command.first() {
        Some(program) => program.to_string_lossy().into_owned(),
        None => "a shell".to_owned(),
    }
}

fn capitalised(text: &impl std::fmt::Display) -> String {
    let text = text.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The finest samples.
const FINEST: Span = Span::from_micros(1);

/// Bytes without a limit that are told, beside those of the flows over links.
const MUCH_BYTES: u64 = 1_000_000;

/// What to say if more passed where nothing limits it than where something does.
fn unlimited(bytes: u64, recording: &Recording) -> Option<String> {
    let limited: u64 = recording.flows().iter().map(|flow| flow.bytes).sum();
    (bytes > MUCH_BYTES.max(limited)).then(|| {
        format!(
            "warning: {:.1} MB came back where nothing limits them, and are in no table; the scenario's key \
             reverse_capacity, or --reverse-capacity, limits them",
            bytes as f64 / 1e6
        )
    })
}

/// The scenario that the options describe, and whether flows with the same way share a pair of
/// hosts. Programs take the place of its flows, which say where they go.
fn scenario(args: &EmulateArgs) -> Result<(Scenario, bool), Failure> {
    args.path.one_path(args.scenario.as_deref())?;
    let mut scenario = match &args.scenario {
        Some(file) => load_surroundings(file)?,
        None => Scenario::parse("path", DEFAULT).map_err(Failure::usage)?,
    };
    let pairs = pairs(args)?;
    if args.host_rtt.iter().any(|rtt| rtt.is_zero()) {
        return Err(Failure::usage("--host-rtt: every pair of hosts has a round-trip time above 0, for instance 20ms"));
    }
    match &mut scenario.path {
        Some(path) => describe_path(args, path)?,
        None if pairs > 0 || has_path_options(args) => {
            return Err(Failure::usage("options about the path or its hosts need a scenario with a [path]"));
        }
        None if scenario.flow.is_empty() => {
            return Err(Failure::usage("with [[link]] tables a [[flow]] says between which hosts the links lie"));
        }
        None => {}
    }
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    if let Some(sample) = args.sample {
        scenario.output.sample = sample;
    }
    let sample = scenario.output.sample;
    if !sample.is_zero() && sample < FINEST {
        return Err(Failure::Usage(format!(
            "samples of {sample} are too fine to be told apart: at least {FINEST}, or 0 for none"
        )));
    }
    scenario.udp.clear();
    scenario.arrivals.clear();
    scenario.web.clear();
    if pairs > 0 || scenario.flow.is_empty() {
        let default = Scenario::parse("path", DEFAULT).map_err(Failure::usage)?.flow;
        scenario.flow = default.into_iter().cycle().take(pairs.max(1)).collect();
    }
    for (flow, rtt) in scenario.flow.iter_mut().zip(&args.host_rtt) {
        flow.rtt = Some(*rtt);
    }
    scenario.simulation(0).map_err(Failure::usage)?;
    Ok((scenario, pairs == 0))
}

/// How many pairs of hosts are asked for; 0 if the scenario says it.
fn pairs(args: &EmulateArgs) -> Result<usize, Failure> {
    let (hosts, rtts) = (args.hosts.unwrap_or(0) as usize, args.host_rtt.len());
    if hosts > 0 && rtts > 0 && hosts != rtts {
        return Err(Failure::usage(format!(
            "--hosts says {hosts} pairs of hosts, --host-rtt has round-trip times for {rtts}"
        )));
    }
    Ok(hosts.max(rtts))
}

fn has_path_options(args: &EmulateArgs) -> bool {
    args.path.profile.is_some()
        || args.path.capacity.is_some()
        || args.trace.is_some()
        || args.path.rtt.is_some()
        || args.path.buffer.is_some()
        || args.path.ways.is_some()
        || !args.path.with.is_empty()
        || args.queue.is_some()
        || args.loss.is_some()
        || args.jitter.is_some()
        || args.reverse_capacity.is_some()
        || args.reverse_buffer.is_some()
        || args.reverse_loss.is_some()
}

/// What the options say of the path.
fn describe_path(args: &EmulateArgs, path: &mut PathSpec) -> Result<(), Failure> {
    let given = [
        ("queue", args.queue.is_some()),
        ("loss", args.loss.is_some()),
        ("jitter", args.jitter.is_some()),
        ("reverse_capacity", args.reverse_capacity.is_some()),
        ("reverse_buffer", args.reverse_buffer.is_some()),
        ("reverse_loss", args.reverse_loss.is_some()),
    ];
    args.path.tell_overridden(&given);
    if args.trace.is_some() && args.path.sets("capacity") {
        note("--with capacity counts, and not --trace");
    }
    args.path.lay_over(path)?;
    if let Some(file) = args.trace.as_ref().filter(|_| !args.path.sets("capacity")) {
        let text = flowstart_scenario::read(file).map_err(Failure::usage)?;
        let schedule = parse_mahimahi(&text).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
        path.capacity = RateSpec::from_schedule(&schedule);
    }
    // Nobody's round trip is shorter than the bottleneck's delay.
    let shortest = args.host_rtt.iter().min().copied().unwrap_or(path.rtt);
    if shortest / 2 < path.delay.unwrap_or(path.rtt / 2) {
        path.delay = Some(shortest / 2);
    }
    // Who describes a path by options means both ways; profiles and scenarios say it themselves.
    let by_options = args.scenario.is_none() && args.path.profile.is_none();
    if by_options {
        path.reverse_buffer = path.buffer;
    }
    if let Some(queue) = args.queue {
        path.queue = queue;
        // What nobody said gives way to the queue's own limit.
        path.buffer = args.path.buffer.or(path.buffer.filter(|_| queue.0.takes_buffer()));
    }
    path.loss = args.loss.unwrap_or(path.loss);
    path.jitter = args.jitter.or(path.jitter);
    if let Some(capacity) = args.reverse_capacity {
        path.reverse_capacity = (!capacity.is_unlimited()).then_some(RateSpec::Constant(capacity));
    } else if by_options {
        path.reverse_capacity = Some(path.capacity.clone());
    }
    path.reverse_buffer = args.reverse_buffer.or(path.reverse_buffer.filter(|_| path.reverse_capacity.is_some()));
    path.reverse_loss = args.reverse_loss.unwrap_or(path.reverse_loss);
    // Once more, as they go before the options above.
    args.path.set_keys(path)?;
    args.path.check_keys(path)
}

/// Tables as text for the terminal that shows standard error.
fn text(tables: &[Table]) -> String {
    tables.iter().map(|table| table.to_terminal(terminal()) + "\n").collect()
}
