//! `flowstart emulate`: programs on two hosts with a described path between them.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use flowstart_emulator::{Capture, Host, Recording, World, clean, die_with_this_thread};
use flowstart_experiment::results::{Provenance, to_json, write_results};
use flowstart_experiment::run::Cancel;
use flowstart_experiment::scenario::{RateSpec, Scenario};
use flowstart_network::parse_mahimahi;

use super::layout::Layout;
use super::results::{FlowFacts, FlowRow, flow_name, results};
use super::self_test::self_test;
use super::{become_able, failure, fidelity_limit, judge, show};
use crate::cli::EmulateArgs;
use crate::interrupt;
use crate::output::{Failure, Outcome, note, prepare_folder, print, print_json};
use crate::run::FORMATS;
use crate::scenario::load;

/// The path unless something else is said; the flow only stands for the programs.
const DEFAULT: &str = "[path]\ncapacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
/// How often running programs are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program may take to end when asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Does what the options ask for.
pub(crate) fn emulate(args: &EmulateArgs) -> Outcome {
    if args.clean {
        let removed = clean();
        return print(&match removed.len() {
            0 => "nothing was left over\n".to_owned(),
            n => format!("removed {n}: {}\n", removed.join(", ")),
        });
    }
    let scenario = scenario(args)?;
    become_able()?;
    if args.self_test {
        return self_test(args.json);
    }
    let layout = Layout::new(&scenario.simulation(0).map_err(Failure::usage)?)?;
    for folder in args.out.iter().chain(&args.pcap) {
        prepare_folder(folder)?;
    }
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
    let cancel = interrupt::listen();
    let ended = programs(args, &world, &cancel);
    let outcome = world.finish().map_err(|error| failure(&error))?;
    let captures = std::mem::take(&mut *captures.lock().unwrap_or_else(PoisonError::into_inner));
    for capture in captures {
        capture.finish().map_err(|error| failure(&error))?;
    }
    let ended = ended?;
    let recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
    let flows: Vec<FlowRow> = recording
        .flows()
        .iter()
        .map(|flow| FlowRow {
            name: flow_name(&flow.key),
            algorithm: String::new(),
            facts: FlowFacts::of_packets(flow),
            key: Some(flow.key),
            samples: Vec::new(),
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

/// The scenario that the options describe.
fn scenario(args: &EmulateArgs) -> Result<Scenario, Failure> {
    let mut scenario = match &args.scenario {
        Some(file) => load(file)?,
        None => Scenario::parse("path", DEFAULT).map_err(Failure::usage)?,
    };
    let Some(path) = &mut scenario.path else {
        return Err(Failure::usage("emulate needs a scenario with one [path]"));
    };
    if let Some(capacity) = args.capacity {
        path.capacity = RateSpec::Constant(capacity);
    }
    if let Some(file) = &args.trace {
        let text = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))?;
        let schedule = parse_mahimahi(&text).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
        path.capacity = RateSpec::from_schedule(&schedule);
    }
    if let Some(rtt) = args.rtt {
        path.rtt = rtt;
        path.delay = None;
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
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    if let Some(sample) = args.sample {
        scenario.output.sample = sample;
    }
    // Programs take the place of the scenario's flows; one of them says where they go.
    scenario.flow.truncate(1);
    scenario.udp.clear();
    scenario.arrivals.clear();
    scenario.web.clear();
    if scenario.flow.is_empty() {
        scenario.flow = Scenario::parse("path", DEFAULT).map_err(Failure::usage)?.flow;
    }
    scenario.simulation(0).map_err(Failure::usage)?;
    Ok(scenario)
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

/// How the programs ended.
struct Ended {
    reason: String,
    outcome: Outcome,
}

impl Ended {
    fn with(reason: impl Into<String>, outcome: Outcome) -> Self {
        Self { reason: reason.into(), outcome }
    }
}

/// Starts the server, waits until it is ready, runs the command, and waits for its end, Ctrl-C or the time limit.
fn programs(args: &EmulateArgs, world: &World, cancel: &Cancel) -> Result<Ended, Failure> {
    let limit = Instant::now() + Duration::from_nanos(args.time_limit.as_nanos());
    let (client, server) = (&world.hosts()[0], &world.hosts()[1]);
    let mut serving = match &args.server {
        None => None,
        Some(line) => {
            let mut command = server.command("sh");
            command.args(["-c", line]).stdin(Stdio::null());
            Some(start(command, world, args.json, "the server")?)
        }
    };
    if let Some(child) = &mut serving {
        wait_until_ready(args, server, child, cancel)?;
    }
    let mut command = match args.command.as_slice() {
        [] => {
            note(&format!(
                "a shell on the client; the server is \"{}\" ({}); exit ends the emulation",
                server.name(),
                server.address()
            ));
            client.command(std::env::var_os("SHELL").unwrap_or_else(|| "sh".into()))
        }
        [program, rest @ ..] => {
            let mut command = client.command(program);
            command.args(rest);
            command
        }
    };
    if !args.command.is_empty() && args.json {
        command.stdin(Stdio::null());
    }
    let mut child = start(command, world, args.json, "the command")?;
    let ended = loop {
        if let Some(status) = child.try_wait().map_err(Failure::usage)? {
            break ended(status);
        }
        if cancel.is_cancelled() {
            stop(&mut child);
            break Ended::with("ended by Ctrl-C", Err(Failure::Interrupted));
        }
        if Instant::now() > limit {
            stop(&mut child);
            let why = format!("the time limit of {} was reached", args.time_limit);
            break Ended::with(why.clone(), Err(Failure::Usage(why)));
        }
        if world.has_failed() {
            stop(&mut child);
            break Ended::with("the emulator failed", Err(Failure::Check));
        }
        std::thread::sleep(LOOK);
    };
    if let Some(mut server) = serving {
        stop(&mut server);
    }
    Ok(ended)
}

fn ended(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ended::with("the command ended", Ok(())),
        (Some(code), _) => {
            // As shells and env do: the program's own status.
            let status = u8::try_from(code).unwrap_or(1);
            Ended::with(format!("the command ended with status {code}"), Err(Failure::Status(status)))
        }
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            let status = u8::try_from(128 + signal).unwrap_or(1);
            Ended::with(format!("the command was ended by signal {signal}"), Err(Failure::Status(status)))
        }
    }
}

/// Starts a program, with the addresses of both hosts in its environment.
fn start(mut command: Command, world: &World, quiet: bool, what: &str) -> Result<Child, Failure> {
    for (host, name) in world.hosts().iter().zip(["CLIENT", "SERVER"]) {
        command.env(format!("FLOWSTART_{name}"), host.address().to_string());
        if let Some(address) = host.address_v6() {
            command.env(format!("FLOWSTART_{name}_V6"), address.to_string());
        }
    }
    if quiet {
        // Standard output is for the document.
        command.stdout(std::io::stderr());
    }
    die_with_this_thread(&mut command);
    command.spawn().map_err(|error| Failure::Usage(format!("cannot start {what}: {error}")))
}

/// Asks a program to end, and ends it if it does not.
fn stop(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = Command::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Waits until a program on the server listens (TCP) or has a socket open (UDP).
fn wait_until_ready(args: &EmulateArgs, host: &Host, child: &mut Child, cancel: &Cancel) -> Outcome {
    let within = Instant::now() + Duration::from_nanos(args.ready_within.as_nanos());
    loop {
        if host.listens().map_err(|error| failure(&error))? {
            return Ok(());
        }
        if let Some(status) = child.try_wait().map_err(Failure::usage)? {
            return Err(Failure::Usage(format!("the server ended before it was ready ({status})")));
        }
        if cancel.is_cancelled() {
            return Err(Failure::Interrupted);
        }
        if Instant::now() > within {
            return Err(Failure::Usage(format!(
                "the server listens on no port after {}; --ready-within gives it more time",
                args.ready_within
            )));
        }
        std::thread::sleep(LOOK);
    }
}
