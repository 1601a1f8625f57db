//! A scenario on this machine: its flows as connections of the kernel's TCP.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use flowstart_congestion::ExitReason;
use flowstart_emulator::traffic::{self, Outcomes, RunConfig};
use flowstart_emulator::{Fate, FlowKey, Host, HostId, PacketRecord, Recording, World, WorldOutcome};
use flowstart_network::Ecn;
use flowstart_parallel::Cancel;
use flowstart_scenario::{Compiled, Scenario};
use flowstart_simulator::{SessionOutcome, Stop};
use flowstart_units::{Span, Time};

use super::captures::Captures;
use super::controls::has_hystart;
use super::layout::{Layout, flows, wants_ecn};
use super::plan::Plan;
use super::quick_start::{carry, is_used};
use super::seen::Ran;
use super::{Error, Transport};

/// Time to prepare a world before its clock runs.
pub(super) const LEAD: Span = Span::from_millis(200);
/// How often the kernel is asked about connections at most and at least.
const SAMPLES: std::ops::RangeInclusive<Span> = Span::from_millis(1)..=Span::from_millis(10);
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
    pub(super) outcome: WorldOutcome,
    /// The scenario's flows, those of arrival processes, then users' connections.
    pub(super) flows: Vec<Ran>,
    /// What users got.
    pub(super) sessions: Vec<SessionOutcome>,
    pub(super) log: Vec<Logged>,
    /// Whether the captures were written: all else is known without them.
    pub(super) captured: Result<(), Error>,
}

/// What is wanted beside the sums.
pub(super) struct Wanted {
    /// Every packet.
    pub(super) log: bool,
    /// What carries the flows.
    pub(super) transport: Transport,
    /// Every packet that a host was given is told ([`flowstart_emulator::Timing::tell_given`]).
    pub(super) given: bool,
    /// The folder for a capture of every link, if they are wanted.
    pub(super) captures: Option<PathBuf>,
}

/// Runs one run of a scenario.
pub(super) fn perform(
    scenario: &Scenario,
    compiled: &Compiled,
    wanted: &Wanted,
    cancel: &Cancel,
) -> Result<Performed, Error> {
    let simulation = &compiled.simulation;
    let mut layout = Layout::new(compiled)?;
    layout.config.lead = LEAD;
    layout.config.timing.tell_given = wanted.given;
    let (until, stop_when_complete) = match simulation.stop {
        Stop::At(until) => (until, false),
        Stop::WhenComplete(until) => (until, true),
    };
    let plan = Plan::new(compiled, &layout, until, wanted.transport)?;
    let captures = Captures::new(wanted.captures.as_deref(), &layout.links)?;
    let recording = Arc::new(Mutex::new(Recording::new(&layout.config.links, bin(scenario))));
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let (recording, captures) = (recording.clone(), captures.clone());
        let log = wanted.log.then(|| log.clone());
        move |record: &PacketRecord<'_>| {
            recording.lock().unwrap_or_else(PoisonError::into_inner).add(record);
            captures.add(record);
            // What has not reached a link by the end is nothing that any of them saw.
            if let Some(log) = log.as_ref().filter(|_| record.arrived <= record.time()) {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(logged(record));
            }
        }
    };
    let world = World::start_with(layout.config.clone(), sink)?;
    let _carried = carry(&world, is_used(&plan.flows, &plan.sessions), &|_| ())?;
    prepare_hosts(compiled, &layout, &world)?;
    let sample = scenario.output.sample;
    let config = RunConfig {
        until,
        ends_world: true,
        stop_when_complete,
        sample: if sample.is_zero() && !wanted.log { sample } else { sample.clamp(*SAMPLES.start(), *SAMPLES.end()) },
        seed: simulation.seed,
        run: simulation.run,
        stamped: None,
    };
    let mut sessions = Vec::new();
    let flows = match wanted.transport {
        Transport::Kernel => {
            let given_up = || cancel.is_cancelled() || world.has_failed();
            let outcomes = traffic::run(&world, &plan.flows, &plan.sessions, config, &given_up)?;
            sessions.clone_from(&outcomes.sessions);
            ran(compiled, &plan, &outcomes, &world)
        }
        #[cfg(feature = "quic")]
        Transport::Quic(stack) => super::quic::run(&world, compiled, &plan, (config, stack), cancel, None)?,
    };
    let outcome = world.finish()?;
    let captured = captures.finish();
    let errors = flows.iter().map(|ran| &ran.outcome.error);
    if let Some(error) = errors.chain(sessions.iter().map(|session| &session.error)).flatten().next() {
        return Err(Error::Connection(error.clone()));
    }
    let sessions = simulation.sessions.iter().zip(&sessions).map(|(config, session)| SessionOutcome {
        group: config.flow.group,
        pages: config.pages(session.done.iter().copied()),
    });
    let sessions = sessions.collect();
    let recording = recording.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let log = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Performed { layout, recording, outcome, flows, sessions, log, captured })
}

/// Puts together what is known of every flow; the world must still be there.
fn ran(compiled: &Compiled, plan: &Plan, outcomes: &Outcomes, world: &World) -> Vec<Ran> {
    let mut all: Vec<(HostId, Ran)> = Vec::new();
    for ((flow, about), outcome) in plan.flows.iter().zip(&plan.about).zip(&outcomes.flows) {
        let control = match &flow.traffic {
            traffic::Traffic::Tcp { congestion, .. } => congestion.clone(),
            traffic::Traffic::Udp { .. } => None,
        };
        let ran = Ran { group: about.group, size: about.size, control, outcome: outcome.clone(), ..Ran::default() };
        all.push((flow.from, ran));
    }
    let sessions = compiled.simulation.sessions.iter().zip(&plan.sessions).zip(&outcomes.sessions);
    for ((config, session), outcome) in sessions {
        for (size, connection) in &outcome.connections {
            let (group, control, outcome) = (config.flow.group, session.congestion.clone(), connection.clone());
            all.push((session.server, Ran { group, size: *size, control, outcome, ..Ran::default() }));
        }
    }
    let is_cubic = |ran: &Ran| ran.control.as_deref().is_some_and(has_hystart);
    let mut cubics: HashMap<HostId, usize> = HashMap::new();
    for (host, _) in all.iter().filter(|(_, ran)| is_cubic(ran)) {
        *cubics.entry(*host).or_default() += 1;
    }
    for (host, ran) in &mut all {
        if is_cubic(ran) {
            ran.hystart = hystart(&world.hosts()[*host]);
            ran.sole_cubic = cubics.get(host) == Some(&1);
        }
    }
    all.into_iter().map(|(_, ran)| ran).collect()
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

/// ECN where flows want it, at both ends; the kernel's default is to accept but not to ask.
pub(super) fn prepare_hosts(compiled: &Compiled, layout: &Layout, world: &World) -> Result<(), Error> {
    let mut asking: Vec<HostId> = flows(&compiled.simulation)
        .zip(&layout.ways)
        .filter(|(flow, _)| wants_ecn(&flow.traffic))
        .flat_map(|(_, (from, to))| [*from, *to])
        .collect();
    asking.sort_unstable();
    asking.dedup();
    for host in asking {
        world.hosts()[host].run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))?.map_err(Error::Ecn)?;
    }
    Ok(())
}

/// What the counters of a host's kernel say of HyStart (TcpExt: TCPHystartTrainDetect,
/// TCPHystartDelayDetect): `None` where they say nothing, or both.
fn hystart(host: &Host) -> Option<ExitReason> {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat")).ok()?.ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let count = |wanted: &str| {
        let place = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(place)?.parse::<u64>().ok().filter(|count| *count > 0)
    };
    match (count("TCPHystartTrainDetect"), count("TCPHystartDelayDetect")) {
        (Some(_), None) => Some(ExitReason::AckTrain),
        (None, Some(_)) => Some(ExitReason::DelayIncrease),
        _ => None,
    }
}
