//! `flowstart emulate`: programs on two hosts with a described path between them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use flowstart_emulator::{Capture, Recording, World, clean};
use flowstart_experiment::results::{Provenance, to_json, write_results};
use flowstart_experiment::scenario::{PathSpec, RateSpec, Scenario};
use flowstart_network::parse_mahimahi;

use super::layout::Layout;
use super::programs::programs;
use super::results::{FlowFacts, FlowRow, SenderSample, flow_name, results};
use super::self_test::self_test;
use super::watch::watch;
use super::{become_able, failure, fidelity_limit, judge, show};
use crate::cli::EmulateArgs;
use crate::interrupt;
use crate::output::{Failure, Outcome, note, prepare_folder, print, print_json};
use crate::run::FORMATS;
use crate::scenario::load;

/// The path unless something else is said; the flow only stands for the programs.
const DEFAULT: &str = "[path]\ncapacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
/// Does what the options ask for.
pub(crate) fn emulate(args: &EmulateArgs) -> Outcome {
    if args.clean {
        let removed = clean();
        return print(&match removed.len() {
            0 => "nothing was left over\n".to_owned(),
            n => format!("removed {n}: {}\n", removed.join(", ")),
        });
    }
    let (scenario, shared) = scenario(args)?;
    become_able()?;
    if args.self_test {
        return self_test(args.json);
    }
    let layout = Layout::for_programs(&scenario.simulation(0).map_err(Failure::usage)?, shared)?;
    for folder in args.out.iter().chain(&args.pcap) {
        prepare_folder(folder)?;
    }
    // From here on there is something to clean up.
    let cancel = interrupt::listen();
    let recording = Arc::new(Mutex::new(Recording::new(layout.config.links.len(), scenario.output.sample)));
    let captures = captures(args.pcap.as_deref(), &layout.links)?;
    let (records, packets) = (recording.clone(), captures.clone());
    let world = World::start_with(layout.config.clone(), move |record| {
        records.lock().unwrap_or_else(PoisonError::into_inner).add(record);
        if let Some(capture) = packets.lock().unwrap_or_else(PoisonError::into_inner).get_mut(record.link) {
            capture.add(record);
        }
    })
    .map_err(|error| failure(&error))?;
    let over = AtomicBool::new(false);
    let (ended, mut states) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&world, scenario.output.sample, &over));
        // Programs end with the thread that starts them, so that is this one.
        let ended = programs(args, &world, &cancel);
        over.store(true, Ordering::Relaxed);
        (ended, watching.join().unwrap_or_default())
    });
    let outcome = world.finish().map_err(|error| failure(&error))?;
    outcome.faults.iter().for_each(|fault| note(fault));
    let captures = std::mem::take(&mut *captures.lock().unwrap_or_else(PoisonError::into_inner));
    for capture in captures {
        capture.finish().map_err(|error| failure(&error))?;
    }
    let ended = ended?;
    let recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
    let flows: Vec<FlowRow> = recording
        .flows()
        .iter()
        .map(|flow| {
            let states = states.remove(&flow.key).unwrap_or_default();
            let mut facts = FlowFacts::of_packets(flow);
            if let Some((_, last)) = states.last() {
                facts.add_state(last);
            }
            let samples = states.iter().map(|(at, info)| SenderSample::of(*at, info, info.bytes_acked));
            let (name, samples) = (flow_name(&flow.key), samples.collect());
            FlowRow { name, algorithm: String::new(), facts, key: Some(flow.key), samples }
        })
        .collect();
    let results = results((0, scenario.seed), &layout.links, &recording, &outcome, &flows, true);
    let provenance = Provenance::new(&scenario, &results);
    if let Some(folder) = &args.out {
        write_results(folder, &results, &provenance, FORMATS).map_err(Failure::usage)?;
    }
    let limit = fidelity_limit(args.fidelity);
    if args.json {
        let mut document = to_json(&results, &provenance);
        document["fidelity"] = show::fidelity(&outcome.fidelity, &limit);
        document["ended"] = json!(ended.reason);
        print_json(&document)?;
    } else {
        let tables = [show::flow_table(&recording), show::link_table(&layout.links, &recording, &outcome)];
        note(&format!("\n{}{}\n{}", show::text(&tables), ended.reason, outcome.fidelity));
        if outcome.astray > 0 {
            note(&format!("{} packets were for addresses that no host has", outcome.astray));
        }
    }
    judge(&limit, &outcome.fidelity)?;
    ended.outcome
}

/// The scenario that the options describe, and whether flows with the same way share a pair of
/// hosts. Programs take the place of its flows, which say where they go.
fn scenario(args: &EmulateArgs) -> Result<(Scenario, bool), Failure> {
    let mut scenario = match &args.scenario {
        Some(file) => load(file)?,
        None => Scenario::parse("path", DEFAULT).map_err(Failure::usage)?,
    };
    let pairs = pairs(args)?;
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
    args.capacity.is_some()
        || args.trace.is_some()
        || args.rtt.is_some()
        || args.buffer.is_some()
        || args.queue.is_some()
        || args.loss.is_some()
        || args.jitter.is_some()
        || args.reverse_capacity.is_some()
        || args.reverse_buffer.is_some()
        || args.reverse_loss.is_some()
}

/// What the options say of the path.
fn describe_path(args: &EmulateArgs, path: &mut PathSpec) -> Result<(), Failure> {
    if let Some(capacity) = args.capacity {
        path.capacity = RateSpec::Constant(capacity);
    }
    if let Some(file) = &args.trace {
        let text = flowstart_experiment::scenario::read(file).map_err(Failure::usage)?;
        let schedule = parse_mahimahi(&text).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
        path.capacity = RateSpec::from_schedule(&schedule);
    }
    if let Some(rtt) = args.rtt {
        path.rtt = rtt;
        path.delay = None;
    }
    // Nobody's round trip is shorter than the bottleneck's delay.
    let shortest = args.host_rtt.iter().min().copied().unwrap_or(path.rtt);
    if shortest / 2 < path.delay.unwrap_or(path.rtt / 2) {
        path.delay = Some(shortest / 2);
    }
    path.buffer = args.buffer.unwrap_or(path.buffer);
    path.queue = args.queue.unwrap_or(path.queue);
    path.loss = args.loss.unwrap_or(path.loss);
    path.jitter = args.jitter.or(path.jitter);
    if let Some(capacity) = args.reverse_capacity {
        path.reverse_capacity = Some(RateSpec::Constant(capacity));
    }
    path.reverse_buffer = args.reverse_buffer.unwrap_or(path.reverse_buffer);
    path.reverse_loss = args.reverse_loss.unwrap_or(path.reverse_loss);
    Ok(())
}

/// A capture for every link, if asked for.
pub(super) fn captures(folder: Option<&Path>, links: &[String]) -> Result<Arc<Mutex<Vec<Capture>>>, Failure> {
    let Some(folder) = folder else { return Ok(Arc::default()) };
    let captures = links
        .iter()
        .map(|link| Capture::new(link, &folder.join(format!("{link}.pcapng"))))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failure(&error))?;
    Ok(Arc::new(Mutex::new(captures)))
}
