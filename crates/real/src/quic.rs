//! The flows of a scenario as connections of this project's QUIC between the hosts of a world.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use flowstart_congestion::{ControllerConfig, StartExit};
use flowstart_emulator::traffic::{self, FlowOutcome, Sample, TcpInfo, Traffic, Workload};
use flowstart_emulator::{Clock as WorldClock, FlowKey, World};
use flowstart_parallel::Cancel;
use flowstart_quic::message::{Direction, OLDEST, Paced, Request};
use flowstart_quic::tls::Identity;
use flowstart_quic::{
    Arrival, Client, Clock, HEADER_BYTES, Limits, MessageDeparture, Node, Outgoing, SILENCE, Server, Service, Sink,
    Sockets,
};
use flowstart_scenario::Compiled;
use flowstart_simulator::{SimulationConfig, Traffic as Simulated};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::Error;
use super::layout::MTU;
use super::plan::Plan;
use super::seen::{Ran, Seen};

/// IP protocol number of UDP.
const UDP: u8 = 17;
/// First port of receivers; flows count up. Those of datagrams that are no QUIC begin at 5201.
const FIRST_PORT: u16 = 25_201;
/// How often a sender looks up while it waits for its beginning.
const LOOK_UP: Span = Span::from_millis(50);
/// A reading of two clocks that took longer is repeated.
const AT_ONCE: Span = Span::from_micros(3);
/// How often at most.
const READINGS: usize = 20;
/// More than any transfer has, and little enough to be added to.
const PLENTY: u64 = 1 << 50;

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

/// Refuses paths on which no answer comes before the handshake is given up.
pub(super) fn check_path(rtt: Span, capacity: Rate) -> Result<(), Error> {
    /// Datagrams that open a connection are of full size both ways (RFC 9000, section 14.1).
    const FULL: Bytes = Bytes::new(1_500);
    let answer = rtt + capacity.transmission_time(FULL) * 2;
    if answer < SILENCE {
        return Ok(());
    }
    Err(Error::NotOverQuic(format!(
        "the first answer takes {answer} at {capacity} and an RTT of {rtt}, and a connection without one is given up after {SILENCE}; \
         a shorter RTT or more capacity can be raced"
    )))
}

/// What the threads of a run share.
#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    /// Sized transfers that are not complete.
    open: AtomicUsize,
}

/// What is heard of a flow while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    /// Its data could be sent for the first time, in the world's time.
    Began(Time),
    /// So many of its bytes have been read by now.
    Read(Time, u64),
}

/// Somebody who listens to a flow while all run, and says when that is enough.
pub(super) struct Listener<'a> {
    /// Its number in the plan.
    pub(super) flow: usize,
    pub(super) heard: Sender<Heard>,
    pub(super) enough: &'a (dyn Fn() -> bool + Sync),
}

/// A node that is looked at after everything that happens to it.
struct Watched<N, F> {
    node: N,
    look: F,
}

impl<N: Node, F: FnMut(&mut N, Time)> Node for Watched<N, F> {
    fn driven(&mut self, real_time: bool) {
        self.node.driven(real_time);
    }

    fn sockets(&self) -> usize {
        self.node.sockets()
    }

    fn handle(&mut self, now: Time, socket: usize, arrival: &Arrival, data: &[u8]) {
        self.node.handle(now, socket, arrival, data);
        (self.look)(&mut self.node, now);
    }

    fn refused(&mut self, now: Time) {
        self.node.refused(now);
    }

    fn poll_transmit(&mut self, now: Time, socket: usize, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        self.node.poll_transmit(now, socket, buffer)
    }

    fn departed(&mut self, socket: usize, outgoing: &Outgoing, at: Time) {
        self.node.departed(socket, outgoing, at);
    }

    fn departs(&self) -> Time {
        self.node.departs()
    }

    fn only_acknowledges(&self) -> bool {
        self.node.only_acknowledges()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.node.handle_timeout(now);
        (self.look)(&mut self.node, now);
    }

    fn deadline(&self) -> Time {
        self.node.deadline()
    }

    fn is_over(&self, now: Time) -> bool {
        self.node.is_over(now)
    }
}

/// How far the world's clock is ahead of another, in nanoseconds; both must run.
fn ahead(world: WorldClock, clock: Clock) -> i64 {
    let (mut shortest, mut apart) = (Span::MAX, 0);
    for _ in 0..READINGS {
        let before = clock.now();
        let there = world.now();
        let took = clock.now().since(before);
        if took < shortest {
            (shortest, apart) = (took, there.as_nanos() as i64 - (before + took / 2).as_nanos() as i64);
        }
        if took <= AT_ONCE {
            break;
        }
    }
    apart
}

/// The world's time.
fn moved(time: Time, ahead: i64) -> Time {
    if time == Time::NEVER { time } else { Time::from_nanos(time.as_nanos().saturating_add_signed(ahead)) }
}

/// What the receiver of a flow says: bytes read, and when.
type Reads = Vec<(Time, u64)>;

/// What the sender of a flow says.
#[derive(Default)]
struct Told {
    started: Option<Time>,
    began: Option<Time>,
    windows: Vec<(Time, u32)>,
    exit: Option<StartExit>,
    srtt: Span,
    min_rtt: Span,
    cwnd: u32,
    error: Option<String>,
    departures: Vec<MessageDeparture>,
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

/// The limits of both ends: full packets are those of the kernel's TCP, and nothing is refused.
fn limits() -> Limits {
    let headers = u16::try_from(HEADER_BYTES).unwrap_or(u16::MAX);
    Limits { mtu: u16::try_from(MTU).unwrap_or(u16::MAX) - headers, ..Limits::default() }
}

/// The controller of a flow, for packets of QUIC.
fn controller(simulation: &SimulationConfig, number: usize) -> Option<ControllerConfig> {
    let Simulated::Tcp(tcp) = &simulation.flows.get(number)?.traffic else { return None };
    Some(ControllerConfig { mss: u32::from(limits().mtu), ..tcp.controller.clone() })
}

fn receive(
    socket: UdpSocket,
    config: ControllerConfig,
    world: WorldClock,
    shared: &Shared,
    heard: Option<&Sender<Heard>>,
) -> Result<Reads, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let clock = Clock::start();
    let identity = Identity::generate().map_err(|error| said(&error))?;
    let service =
        Service { most_bytes: PLENTY, most_time: Span::from_secs(1 << 20), per_peer: 64, ..Service::default() };
    // Receivers have no use for it.
    let make = Box::new(move |_: &str, _: &str, _: u16| Ok(config.clone()));
    let server = Server::new(clock, &limits(), &identity, service, make, true).map_err(|error| said(&error))?;
    let mut reads = Reads::new();
    let mut known = None;
    let look = |server: &mut Server, now: Time| {
        server.take_news();
        let read = server.received();
        if reads.last().map_or(read > 0, |(_, last)| read > *last) {
            reads.push((now, read));
            if let Some(heard) = heard {
                // Both clocks run by now, and go at the same pace.
                let ahead = *known.get_or_insert_with(|| ahead(world, clock));
                let _ = heard.send(Heard::Read(moved(now, ahead), read));
            }
        }
    };
    let mut sockets = Sockets::of_receiver(vec![socket], clock).map_err(|error| said(&error))?;
    let going = &mut |_: &mut _, _| !shared.over.load(Ordering::Relaxed);
    sockets.run(&mut Watched { node: server, look }, going).map_err(|error| said(&error))?;
    let ahead = ahead(world, clock);
    Ok(reads.into_iter().map(|(at, read)| (moved(at, ahead), read)).collect())
}

/// What a sender is to do.
struct Job {
    sockets: Vec<UdpSocket>,
    to: SocketAddr,
    start: Time,
    request: Request,
    config: ControllerConfig,
    heard: Option<Sender<Heard>>,
}

fn send(job: Job, world: WorldClock, shared: &Shared) -> Told {
    let Job { sockets, to, start, request, config, heard } = job;
    let sized = request.size.is_some();
    let mut told = Told { min_rtt: Span::MAX, ..Told::default() };
    let clock = Clock::start();
    let failed = |mut told: Told, error: &dyn std::fmt::Display| {
        told.error = Some(error.to_string());
        shared.over.store(true, Ordering::Relaxed);
        told
    };
    let mut sockets = match Sockets::new(sockets, clock) {
        Ok(sockets) => sockets,
        Err(error) => return failed(told, &error),
    };
    // The world's clock stands at zero until it begins.
    let start = start.max(Time::from_nanos(1));
    while world.now() < start {
        if shared.over.load(Ordering::Relaxed) {
            return told;
        }
        world.sleep_until(start.min(world.now() + LOOK_UP));
    }
    told.started = Some(world.now());
    // Whoever listens hears of every message.
    let limits = Limits { departures: heard.is_some(), ..limits() };
    let client = match Client::new(clock, clock.now(), &limits, to, None, request, (config, Sink::Check)) {
        Ok(client) => client,
        Err(error) => return failed(told, &error),
    };
    let look = |client: &mut Client, now: Time| {
        told.departures.append(&mut client.take_departures());
        if told.began.is_none() {
            told.began = client.sending().and_then(|sending| sending.began());
            if let (Some(began), Some(heard)) = (told.began, &heard) {
                let _ = heard.send(Heard::Began(moved(began, ahead(world, clock))));
            }
        }
        let Some(ledger) = client.ledger(0) else { return };
        let (srtt, min_rtt, cwnd) = (ledger.srtt(), ledger.min_rtt(), ledger.controller().cwnd());
        if told.windows.last().is_none_or(|(_, last)| *last != cwnd) {
            told.windows.push((now, cwnd));
        }
        if told.exit.is_none() {
            told.exit = ledger.controller().start_exit().copied();
        }
        (told.srtt, told.min_rtt, told.cwnd) = (srtt, min_rtt, cwnd);
    };
    let mut watched = Watched { node: client, look };
    let ended = sockets.run(&mut watched, &mut |_, _| !shared.over.load(Ordering::Relaxed));
    let last = watched.node.take_departures();
    let outcome = watched.node.outcome();
    told.departures.extend(last);
    let ahead = ahead(world, clock);
    told.began = told.began.map(|at| moved(at, ahead));
    told.windows.iter_mut().for_each(|(at, _)| *at = moved(*at, ahead));
    if let Some(exit) = &mut told.exit {
        exit.now = moved(exit.now, ahead);
    }
    if let Err(error) = ended {
        return failed(told, &error);
    }
    match outcome {
        // What is over for everybody is no failure of one.
        Err(error) if !shared.over.load(Ordering::Relaxed) => return failed(told, &error),
        Ok(outcome) if !outcome.received.intact => return failed(told, &"wrong bytes arrived"),
        _ => {}
    }
    if sized {
        shared.open.fetch_sub(1, Ordering::Relaxed);
    }
    told
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
    config: traffic::RunConfig,
    cancel: &Cancel,
    listener: Option<Listener<'_>>,
) -> Result<Vec<Ran>, Error> {
    check(compiled)?;
    let shared = Arc::new(Shared::default());
    // Handshake, a retry and the request take three round trips, of which the plan knows one.
    let rtt = longest_rtt(&compiled.simulation);
    let config = traffic::RunConfig { until: config.until + rtt * 3, ..config };
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
    let mut all: Vec<Ran> = plan
        .about
        .iter()
        .map(|about| Ran {
            group: about.group,
            size: about.size,
            control: None,
            hystart: None,
            outcome: FlowOutcome::default(),
            seen: None,
        })
        .collect();
    for flow in flows {
        let number = flow.number;
        (all[number].outcome, all[number].seen) = ended(flow)?;
    }
    for (number, outcome) in datagrams.iter().zip(outcomes?.flows) {
        all[*number].outcome = outcome;
    }
    Ok(all)
}

/// The longest way there and back, without queues.
fn longest_rtt(simulation: &SimulationConfig) -> Span {
    let links = |links: &[usize]| links.iter().map(|link| simulation.links[*link].delay).sum::<Span>();
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
    use super::*;

    #[test]
    fn a_path_whose_first_answer_comes_too_late_is_refused() {
        let fast = Rate::from_mbps(10);
        assert!(check_path(Span::from_millis(2_900), fast).is_ok());
        assert!(check_path(Span::from_millis(3_000), fast).is_err());
        // 24 000 bits there and back.
        assert!(check_path(Span::from_millis(10), Rate::from_bps(9_000)).is_ok());
        let refused = check_path(Span::from_millis(10), Rate::from_bps(8_000)).unwrap_err().to_string();
        assert!(refused.contains("the first answer takes 3.01 s at 8 kbit/s"), "{refused}");
    }
}
