//! A scenario on this machine: its flows as connections of the kernel's TCP.

use std::sync::{Arc, Mutex, PoisonError};

use flowstart_congestion::ExitReason;
use flowstart_emulator::traffic::{
    self, FlowConfig as RealFlow, FlowOutcome, RunConfig, Traffic as RealTraffic, Workload as RealWorkload,
};
use flowstart_emulator::{Capture, Fate, FlowKey, Host, Outcome, PacketRecord, Recording, World};
use flowstart_experiment::run::Cancel;
use flowstart_experiment::scenario::{Compiled, Scenario};
use flowstart_network::Ecn;
use flowstart_simulator::{Spacing, Stop, TcpConfig, Traffic, Workload};
use flowstart_transport::EcnMode;
use flowstart_units::{Span, Time};

use super::failure;
use super::layout::Layout;
use crate::output::Failure;

/// Time to prepare a world before its clock runs.
const LEAD: Span = Span::from_millis(200);
/// How often the kernel is asked about connections at most and at least.
const SAMPLES: std::ops::RangeInclusive<Span> = Span::from_millis(1)..=Span::from_millis(10);
/// The kernel's own congestion controls and those that `flowstart kernel load` brings, and how each begins.
const OWN_STARTS: [(&str, &str); 5] = [
    ("cubic", "hystart"),
    ("reno", "slow_start"),
    ("dctcp", "slow_start"),
    ("scalable", "slow_start"),
    ("bbr", "bbr_start"),
];
/// What `flowstart kernel load` has, beside paced chirping.
const LOADABLE: [&str; 2] = ["dctcp", "scalable"];

/// Flow starts that `flowstart kernel load paced_chirping` brings, and the congestion control's name.
const CHIRPS: ([&str; 2], &str) = (["paced_chirping", "adaptive_chirping"], "fs_chirp");

/// True if the loaded program does this start.
fn chirps_for_real(start: &str, known: &[String]) -> bool {
    CHIRPS.0.contains(&start) && known.iter().any(|name| name == CHIRPS.1)
}

/// What is kept of a packet at the first link of its way, for playing it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub(super) link: usize,
    pub(super) key: FlowKey,
    pub(super) arrived: Time,
    pub(super) fate: Fate,
    pub(super) delivery: Option<Time>,
    pub(super) bytes: u32,
    pub(super) ecn: Ecn,
    /// Sequence number, payload and whether it is a SYN; `None` without a TCP header.
    pub(super) tcp: Option<(u32, u32, bool)>,
}

/// What happened.
pub(super) struct Performed {
    pub(super) layout: Layout,
    pub(super) recording: Recording,
    pub(super) outcome: Outcome,
    pub(super) flows: Vec<FlowOutcome>,
    /// The kernel's congestion control of each flow; `None` for datagrams.
    pub(super) controls: Vec<Option<String>>,
    /// How the kernel's HyStart ended the slow start of each flow, if it did, where its host has only this one with CUBIC.
    pub(super) hystart: Vec<Option<ExitReason>>,
    pub(super) log: Vec<Logged>,
}

/// What is wanted beside the sums.
pub(super) struct Wanted {
    /// Every packet.
    pub(super) log: bool,
    /// Captures, one per link, or none.
    pub(super) captures: Arc<Mutex<Vec<Capture>>>,
}

/// How the kernel begins instead of what an algorithm (START+AVOIDANCE) says, in words; `None` if it does what it says.
pub(super) fn other_start(algorithm: &str) -> Option<String> {
    let (start, avoidance) = algorithm.rsplit_once('+').unwrap_or(("", algorithm));
    if chirps_for_real(start, &traffic::congestion_controls()) {
        return None;
    }
    let (_, own) = OWN_STARTS.iter().find(|(name, own)| *name == avoidance && *own != start)?;
    let remedy =
        if CHIRPS.0.contains(&start) { "; `flowstart kernel load paced_chirping` brings the other" } else { "" };
    Some(format!("{algorithm}: the kernel's {avoidance} begins with {own}{remedy}"))
}

/// What a scenario asks for that the kernel does not do, in words; the rest is done.
pub(super) fn not_real(scenario: &Scenario, compiled: &Compiled) -> Vec<String> {
    let mut list = Vec::new();
    let default = Scenario::parse("default", DEFAULT).ok();
    let plain = default.as_ref().and_then(|scenario| scenario.flow.first());
    for (number, flow) in scenario.flow.iter().enumerate() {
        let mut say = |key: &str, why: &str| list.push(format!("flow[{number}].{key}: {why}"));
        if let Some(plain) = plain {
            if flow.sender != plain.sender {
                say("sender", "the kernel's sender is as it is");
            }
            if flow.receiver != plain.receiver {
                say("receiver", "the kernel's receiver is as it is");
            }
            if flow.pacing != plain.pacing {
                say("pacing", "the congestion control decides");
            }
            if flow.initial_window != plain.initial_window || flow.initial_ssthresh.is_some() {
                say("initial_window, initial_ssthresh", "the kernel begins with 10 packets and no threshold");
            }
        }
        if flow.flow_start.is_some() || flow.avoidance.is_some() {
            say("flow_start, avoidance", "constants are the kernel's");
        }
    }
    let known = traffic::congestion_controls();
    for label in compiled.groups.iter().filter(|label| label.kernel.is_none()) {
        let start = label.algorithm.rsplit_once('+').map_or("", |(start, _)| start);
        if chirps_for_real(start, &known) {
            list.push(format!(
                "{}: fs_chirp, which goes on as DCTCP where its packets can be marked, else as CUBIC",
                label.algorithm
            ));
            continue;
        }
        list.extend(other_start(&label.algorithm));
    }
    if scenario.output.packets {
        list.push("output.packets: not recorded; --pcap has every packet".to_owned());
    }
    list
}

const DEFAULT: &str = "[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";

/// The kernel's congestion control for an algorithm.
pub(super) fn control(algorithm: &str, kernel: Option<&str>) -> Result<String, Failure> {
    let known = traffic::congestion_controls();
    if let Some(name) = kernel {
        return Ok(name.to_owned());
    }
    let (start, avoidance) = algorithm.rsplit_once('+').unwrap_or(("", algorithm));
    if chirps_for_real(start, &known) {
        return Ok(CHIRPS.1.to_owned());
    }
    let loaded = format!("fs_{avoidance}");
    let found = [avoidance, loaded.as_str()].into_iter().find(|name| known.iter().any(|known| known == name));
    found.map(str::to_owned).ok_or_else(|| {
        let remedy = if LOADABLE.contains(&avoidance) {
            format!("; `flowstart kernel load {avoidance}` brings one")
        } else {
            String::new()
        };
        Failure::NotPossible(format!(
            "this kernel has no congestion control \"{avoidance}\"; it has {}{remedy} (in scenario files the key `kernel` of a flow names another)",
            known.join(", ")
        ))
    })
}

/// Runs one run of a scenario.
pub(super) fn perform(
    scenario: &Scenario,
    compiled: &Compiled,
    wanted: &Wanted,
    cancel: &Cancel,
) -> Result<Performed, Failure> {
    let simulation = &compiled.simulation;
    if !simulation.arrivals.is_empty() || !simulation.sessions.is_empty() {
        return Err(Failure::usage("[[arrivals]] and [[web]] cannot be run for real; list the transfers as [[flow]]s"));
    }
    let mut layout = Layout::new(compiled)?;
    layout.config.lead = LEAD;
    let flows = real_flows(compiled, &layout)?;
    let recording = Arc::new(Mutex::new(Recording::new(layout.config.links.len(), bin(scenario))));
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let (recording, captures) = (recording.clone(), wanted.captures.clone());
        let log = wanted.log.then(|| log.clone());
        move |record: &PacketRecord<'_>| {
            recording.lock().unwrap_or_else(PoisonError::into_inner).add(record);
            if let Some(capture) = captures.lock().unwrap_or_else(PoisonError::into_inner).get_mut(record.link) {
                capture.add(record);
            }
            if let Some(log) = &log {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(logged(record));
            }
        }
    };
    let world = World::start_with(layout.config.clone(), sink).map_err(|error| failure(&error))?;
    prepare_hosts(compiled, &layout, &world)?;
    let (until, stop_when_complete) = match simulation.stop {
        Stop::At(until) => (until, false),
        Stop::WhenComplete(until) => (until, true),
    };
    let sample = scenario.output.sample;
    let config = RunConfig {
        until,
        stop_when_complete,
        sample: if sample.is_zero() && !wanted.log { sample } else { sample.clamp(*SAMPLES.start(), *SAMPLES.end()) },
        seed: simulation.seed.wrapping_add(simulation.run),
    };
    let outcomes = traffic::run(&world, &flows, config, &|| cancel.is_cancelled() || world.has_failed())
        .map_err(|error| failure(&error))?;
    let controls: Vec<Option<String>> = flows
        .iter()
        .map(|flow| match &flow.traffic {
            RealTraffic::Tcp { congestion, .. } => congestion.clone(),
            RealTraffic::Udp { .. } => None,
        })
        .collect();
    let cubic = |number: usize| controls[number].as_deref() == Some("cubic");
    let hystart = (0..flows.len())
        .map(|number| {
            let host = flows[number].from;
            let alone = (0..flows.len()).filter(|other| cubic(*other) && flows[*other].from == host).count() == 1;
            (cubic(number) && alone).then(|| hystart(&world.hosts()[host])).flatten()
        })
        .collect();
    let outcome = world.finish().map_err(|error| failure(&error))?;
    let captures = std::mem::take(&mut *wanted.captures.lock().unwrap_or_else(PoisonError::into_inner));
    for capture in captures {
        capture.finish().map_err(|error| failure(&error))?;
    }
    if let Some(error) = outcomes.iter().find_map(|flow| flow.error.as_ref()) {
        return Err(Failure::usage(error));
    }
    let recording = recording.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let log = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Performed { layout, recording, outcome, flows: outcomes, controls, hystart, log })
}

/// Width of the bins; a scenario without samples has one bin per second, which nobody sees.
fn bin(scenario: &Scenario) -> Span {
    if scenario.output.sample.is_zero() { Span::from_secs(1) } else { scenario.output.sample }
}

fn logged(record: &PacketRecord<'_>) -> Logged {
    Logged {
        link: record.link,
        key: record.flow,
        arrived: record.arrived,
        fate: record.fate,
        delivery: record.delivery,
        bytes: record.bytes,
        ecn: record.ecn,
        tcp: record.tcp().map(|tcp| (tcp.sequence, tcp.payload, tcp.flags & 2 != 0)),
    }
}

fn real_flows(compiled: &Compiled, layout: &Layout) -> Result<Vec<RealFlow>, Failure> {
    let flows = compiled.simulation.flows.iter().zip(&layout.flows);
    flows
        .map(|(flow, (from, to))| {
            let traffic = match &flow.traffic {
                Traffic::Tcp(tcp) => {
                    let label = &compiled.groups[flow.group as usize];
                    RealTraffic::Tcp {
                        congestion: Some(control(&label.algorithm, label.kernel.as_deref())?),
                        workload: workload(tcp)?,
                    }
                }
                Traffic::Udp(udp) => RealTraffic::Udp {
                    rate: udp.rate,
                    packet: udp.packet,
                    poisson: udp.spacing == Spacing::Poisson,
                    lasting: udp.lasting,
                    ecn: udp.ecn,
                },
            };
            Ok(RealFlow { from: *from, to: *to, start: flow.start, traffic })
        })
        .collect()
}

fn workload(tcp: &TcpConfig) -> Result<RealWorkload, Failure> {
    Ok(match &tcp.workload {
        Workload::Greedy => RealWorkload::Greedy,
        Workload::Sized(size) => RealWorkload::Sized(*size),
        Workload::Paced { rate, message, spacing, lasting } => RealWorkload::Paced {
            rate: *rate,
            message: *message,
            poisson: *spacing == Spacing::Poisson,
            lasting: *lasting,
        },
        Workload::Script(writes) => RealWorkload::Script(writes.clone()),
        Workload::Replies(_) => return Err(Failure::usage("[[web]] cannot be run for real")),
    })
}

/// Whether a flow wants marks instead of drops.
pub(super) fn wants_ecn(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::Tcp(tcp) if tcp.sender.ecn != EcnMode::Off)
}

/// ECN where flows want it; the kernel's default is to accept but not to ask.
fn prepare_hosts(compiled: &Compiled, layout: &Layout, world: &World) -> Result<(), Failure> {
    for (flow, (from, _)) in compiled.simulation.flows.iter().zip(&layout.flows) {
        if wants_ecn(&flow.traffic) {
            world.hosts()[*from]
                .run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
                .map_err(|error| failure(&error))?
                .map_err(|error| Failure::Usage(format!("cannot switch ECN on: {error}")))?;
        }
    }
    Ok(())
}

/// What the counters of a host's kernel say of HyStart (TcpExt: TCPHystartTrainDetect, TCPHystartDelayDetect).
fn hystart(host: &Host) -> Option<ExitReason> {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat")).ok()?.ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let count = |wanted: &str| {
        let place = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(place)?.parse::<u64>().ok().filter(|count| *count > 0)
    };
    let train = count("TCPHystartTrainDetect").map(|_| ExitReason::AckTrain);
    train.or_else(|| count("TCPHystartDelayDetect").map(|_| ExitReason::DelayIncrease))
}
