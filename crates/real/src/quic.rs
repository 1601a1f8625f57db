//! The flows of a scenario as connections of this project's QUIC between the hosts of a world.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use flowstart_emulator::traffic::{self, FlowOutcome, Sample, TcpInfo, Traffic, Workload};
use flowstart_emulator::{FlowKey, World};
use flowstart_network::{LinkConfig, QueueConfig};
use flowstart_parallel::Cancel;
use flowstart_quic::Stack;
use flowstart_quic::message::{Direction, OLDEST, Paced, Request};
use flowstart_scenario::Compiled;
use flowstart_simulator::{SimulationConfig, Traffic as Simulated};
use flowstart_units::{Bytes, Span, Time};

use super::Error;
use super::plan::Plan;
use super::seen::{Ran, Seen};

mod ends;

pub(super) use ends::Heard;
use ends::{Job, Reads, Shared, Told, controller, receive, send};

/// IP protocol number of UDP.
const UDP: u8 = 17;
/// Bytes of a full IP packet.
const FULL: u64 = 1500;
/// First port of receivers; flows count up. Those of datagrams that are no QUIC begin at 5201.
const FIRST_PORT: u16 = 25_201;

/// The port to which a flow's packets go.
pub(super) const fn port_of(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}

/// Refuses what QUIC cannot carry.
pub(super) fn check(compiled: &Compiled) -> Result<(), Error> {
    let simulation = &compiled.simulation;
    let refuse = |why: &str| Err(Error::NotOverQuic(why.to_owned()));
    if !simulation.arrivals.is_empty() || !simulation.sessions.is_empty() {
        return refuse("transfers that arrive at random, and users, are not run over QUIC: without them it can be");
    }
    for flow in &simulation.flows {
        let Simulated::Tcp(tcp) = &flow.traffic else { continue };
        let label = &compiled.groups[flow.group as usize];
        if tcp.controller.start.asks_routers() {
            return refuse(&format!(
                "{}: QUIC cannot carry it, for its packets have no room for a request to the routers",
                label.algorithm
            ));
        }
        if let Some(kernel) = &label.kernel {
            return refuse(&format!("{kernel} is a control of the kernel, which QUIC does without"));
        }
    }
    Ok(())
}

/// Somebody who listens to a flow while all run, and says when that is enough.
pub(super) struct Listener<'a> {
    /// Its number in the plan.
    pub(super) flow: usize,
    pub(super) heard: Sender<Heard>,
    pub(super) enough: &'a (dyn Fn() -> bool + Sync),
}

/// A flow over QUIC.
struct Flow {
    /// Its number in the plan.
    number: usize,
    keys: Vec<FlowKey>,
    size: Option<u64>,
    receiver: JoinHandle<Reads>,
    sender: JoinHandle<Told>,
}

/// A thread; its name.
fn thread<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Error> {
    let failed = |error| Error::Connection(format!("cannot start a thread: {error}"));
    std::thread::Builder::new().name(format!("fs-{name}")).spawn(work).map_err(failed)
}

/// A socket in a host.
fn bind(world: &World, host: usize, port: u16, to: Option<SocketAddr>) -> Result<(UdpSocket, SocketAddr), Error> {
    let host = &world.hosts()[host];
    let at = SocketAddr::new(host.address(), port);
    let bound = host.run(|| {
        let socket = UdpSocket::bind(at)?;
        if let Some(to) = to {
            // Only then the system says when nobody listens there.
            socket.connect(to)?;
        }
        let local = socket.local_addr()?;
        Ok((socket, local))
    })?;
    bound.map_err(|error: std::io::Error| Error::Connection(format!("cannot use {at}: {error}")))
}

/// Starts both ends of a flow.
fn start(
    world: &World,
    compiled: &Compiled,
    plan: &Plan,
    (number, until): (usize, Time),
    shared: &Arc<Shared>,
    heard: Option<Sender<Heard>>,
) -> Result<Option<Flow>, Error> {
    let (flow, simulation) = (&plan.flows[number], &compiled.simulation);
    let Traffic::Tcp { workload, .. } = &flow.traffic else { return Ok(None) };
    let mut lasts = until.since(flow.start);
    let (size, paced) = match workload {
        Workload::Greedy => (None, None),
        Workload::Sized(size) => (Some(size.get()), None),
        Workload::Paced { rate, message, poisson: false, lasting } => {
            lasts = lasts.min(*lasting);
            let gap = rate.transmission_time(*message).as_nanos();
            (None, Some(Paced { message: message.get(), gap: gap.max(1), tell: false }))
        }
        Workload::Paced { .. } | Workload::Script(_) => {
            let why = "flows that write at random, or at times of their own, are not run over QUIC: without \
                       `spacing` and `writes` they can be";
            return Err(Error::NotOverQuic(why.to_owned()));
        }
    };
    let Some(config) = controller(simulation, number) else { return Ok(None) };
    if flow.start >= until {
        return Ok(None);
    }
    let port = port_of(number);
    let (listening, to) = bind(world, flow.to, port, None)?;
    let (mut sockets, mut keys) = (Vec::new(), Vec::new());
    for _ in 0..config.start.connections().clamp(1, 2) {
        let (socket, from) = bind(world, flow.from, 0, Some(to))?;
        sockets.push(socket);
        keys.push(FlowKey {
            source: from.ip(),
            destination: to.ip(),
            source_port: from.port(),
            destination_port: port,
            protocol: UDP,
        });
    }
    let request = Request {
        version: OLDEST,
        session: number as u64 + 1,
        connections: sockets.len() as u8,
        direction: Direction::Up,
        size,
        // Greedy ones end with the run.
        nanos: size.is_none().then(|| match paced {
            Some(_) => lasts.as_nanos(),
            None => lasts.as_nanos().saturating_mul(2),
        }),
        streams: 1,
        start: config.start.name().to_owned(),
        avoidance: config.avoidance.name().to_owned(),
        file: None,
        look: false,
        paced,
    };
    shared.open.fetch_add(usize::from(size.is_some()), Ordering::Relaxed);
    let clock = world.clock();
    let (ours, theirs) = (Arc::clone(shared), Arc::clone(shared));
    let (receiving, hearing) = (config.clone(), heard.clone());
    let receiver = thread("receiver", move || {
        receive(listening, receiving, clock, &theirs, hearing.as_ref()).unwrap_or_else(|_| {
            // The sender says that nobody is there.
            Reads::new()
        })
    })?;
    let job = Job { sockets, to, start: flow.start, request, config, heard };
    let sender = thread("sender", move || send(job, clock, &ours))?;
    Ok(Some(Flow { number, keys, size, receiver, sender }))
}

/// Runs all flows of a plan: those that are no datagrams over QUIC.
pub(super) fn run(
    world: &World,
    compiled: &Compiled,
    plan: &Plan,
    (config, stack): (traffic::RunConfig, Stack),
    cancel: &Cancel,
    listener: Option<Listener<'_>>,
) -> Result<Vec<Ran>, Error> {
    check(compiled)?;
    let shared = Arc::new(Shared { stack, over: AtomicBool::new(false), open: AtomicUsize::new(0) });
    // Handshake, a retry and the request take three round trips, of which the plan knows one.
    let rtt = longest_rtt(&compiled.simulation, config.until);
    let config = traffic::RunConfig { until: config.until + rtt * 3, ends_world: false, ..config };
    let mut flows = Vec::new();
    for number in 0..plan.flows.len() {
        let heard = listener.as_ref().filter(|listener| listener.flow == number).map(|it| it.heard.clone());
        match start(world, compiled, plan, (number, config.until), &shared, heard) {
            Ok(flow) => flows.extend(flow),
            Err(error) => {
                shared.over.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
    let datagrams: Vec<usize> =
        (0..plan.flows.len()).filter(|number| matches!(plan.flows[*number].traffic, Traffic::Udp { .. })).collect();
    let only: Vec<traffic::FlowConfig> = datagrams.iter().map(|number| plan.flows[*number].clone()).collect();
    let ends_when_complete = config.stop_when_complete;
    let plain = traffic::RunConfig { stop_when_complete: false, ..config };
    let given_up = || {
        let complete = ends_when_complete && shared.open.load(Ordering::Relaxed) == 0;
        let enough = listener.as_ref().is_some_and(|listener| (listener.enough)());
        complete || enough || shared.over.load(Ordering::Relaxed) || cancel.is_cancelled() || world.has_failed()
    };
    let outcomes = traffic::run(world, &only, &[], plain, &given_up);
    shared.over.store(true, Ordering::Relaxed);
    let mut all: Vec<Ran> =
        plan.about.iter().map(|about| Ran { group: about.group, size: about.size, ..Ran::default() }).collect();
    for flow in flows {
        let number = flow.number;
        (all[number].outcome, all[number].seen) = ended(flow)?;
    }
    for (number, outcome) in datagrams.iter().zip(outcomes?.flows) {
        all[*number].outcome = outcome;
    }
    Ok(all)
}

/// The longest way there and back in a run until then, behind FIFO queues that are full, if they
/// have a limit: those of other disciplines keep themselves short, or let a new flow pass.
fn longest_rtt(simulation: &SimulationConfig, until: Time) -> Span {
    let queue = |link: &LinkConfig| match link.queue.most_bytes(FULL) {
        u64::MAX => Span::ZERO,
        _ if !matches!(link.queue, QueueConfig::DropTail(_)) => Span::ZERO,
        bytes => link.rate.peak().transmission_time(Bytes::new(bytes)).min(until.since(Time::ZERO)),
    };
    let link = |link: &LinkConfig| link.delay + queue(link);
    let links = |links: &[usize]| links.iter().map(|number| link(&simulation.links[*number])).sum::<Span>();
    let ways = simulation.flows.iter().map(|flow| {
        links(&flow.forward) + links(&flow.reverse) + flow.access.delay + flow.tail_delay + flow.return_delay
    });
    ways.max().unwrap_or(Span::ZERO)
}

/// Waits for both ends of a flow, and puts together what they say.
fn ended(flow: Flow) -> Result<(FlowOutcome, Option<Seen>), Error> {
    let lost = || Error::Connection("a thread of a connection ended before its time".to_owned());
    let told = flow.sender.join().map_err(|_| lost())?;
    let reads = flow.receiver.join().map_err(|_| lost())?;
    let delivered = reads.last().map_or(0, |(_, read)| *read);
    let completed = flow.size.and_then(|size| reads.iter().find(|(_, read)| *read >= size)).map(|(at, _)| *at);
    let info = |cwnd| TcpInfo { cwnd, rtt: told.srtt, min_rtt: told.min_rtt, ..TcpInfo::default() };
    let outcome = FlowOutcome {
        key: flow.keys.first().copied(),
        started: told.started,
        completed,
        delivered,
        info: Some(info(told.cwnd)),
        samples: told.windows.iter().map(|(at, cwnd)| Sample { at: *at, info: info(*cwnd), delivered: 0 }).collect(),
        error: told.error,
        ..FlowOutcome::default()
    };
    let departures = told.departures.iter().filter_map(|left| Some((left.message, left.sample?))).collect();
    let seen = Seen { began: told.began, companion: flow.keys.get(1).copied(), exit: told.exit, reads, departures };
    Ok((outcome, Some(seen)))
}

#[cfg(test)]
mod tests {
    use flowstart_scenario::Scenario;

    use super::*;

    #[test]
    fn a_handshake_may_wait_in_a_full_fifo_but_not_in_one_without_a_limit() {
        let longest = |path: &str| {
            let text = format!("[path]\ncapacity = \"6 Mbit/s\"\nrtt = \"30 ms\"\n{path}[[flow]]\n");
            let compiled = Scenario::parse("test", &text).unwrap().simulation(0).unwrap();
            longest_rtt(&compiled.simulation, Time::ZERO + Span::from_secs(60)).as_nanos() / 1_000_000
        };
        assert!((4_029..=4_031).contains(&longest("buffer = \"4 s\"\n")), "{}", longest("buffer = \"4 s\"\n"));
        assert_eq!(longest("buffer = \"unlimited\"\n"), 30);
        assert_eq!(longest("queue = \"fq_codel\"\n"), 30);
    }
}
