//! The two ends of a flow over QUIC, each in a thread of its own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use flowstart_congestion::{ControllerConfig, StartExit};
use flowstart_emulator::Clock as WorldClock;
use flowstart_quic::message::Request;
use flowstart_quic::tls::Identity;
use flowstart_quic::{
    Arrival, Client, Clock, HEADER_BYTES, Limits, MessageDeparture, Node, Outgoing, Server, Service, Sink, Sockets,
    Stack,
};
use flowstart_simulator::{SimulationConfig, Traffic as Simulated};
use flowstart_units::{Span, Time};

use crate::layout::MTU;

/// How often a sender looks up while it waits for its beginning.
const LOOK_UP: Span = Span::from_millis(50);
/// A reading of two clocks that took longer is repeated.
const AT_ONCE: Span = Span::from_micros(3);
/// How often at most.
const READINGS: usize = 20;
/// Time for which an end waits for the other, which is there as long as the run lasts: what is
/// silent is a queue, or a path that lets nothing pass. (own choice: more than a buffer holds)
const PATIENCE: Span = Span::from_secs(3600);
/// More than any transfer has, and little enough to be added to.
const PLENTY: u64 = 1 << 50;

/// What the threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    /// What both ends drive.
    pub(super) stack: Stack,
    pub(super) over: AtomicBool,
    /// Sized transfers that are not complete.
    pub(super) open: AtomicUsize,
}

/// What is heard of a flow while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// Its data could be sent for the first time, in the world's time.
    Began(Time),
    /// So many of its bytes have been read by now.
    Read(Time, u64),
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
pub(super) type Reads = Vec<(Time, u64)>;

/// What the sender of a flow says.
#[derive(Default)]
pub(super) struct Told {
    pub(super) started: Option<Time>,
    pub(super) began: Option<Time>,
    pub(super) windows: Vec<(Time, u32)>,
    pub(super) exit: Option<StartExit>,
    pub(super) srtt: Span,
    pub(super) min_rtt: Span,
    pub(super) cwnd: u32,
    pub(super) error: Option<String>,
    pub(super) departures: Vec<MessageDeparture>,
}

/// UDP payload of a full packet, which is that of the kernel's TCP.
fn mtu() -> u16 {
    let headers = u16::try_from(HEADER_BYTES).unwrap_or(u16::MAX);
    u16::try_from(MTU).unwrap_or(u16::MAX) - headers
}

/// The limits of both ends: nothing is refused, and nobody is given up who may be waited for.
fn limits(stack: Stack) -> Limits {
    let idle = Duration::from_nanos(PATIENCE.as_nanos());
    Limits { stack, mtu: mtu(), idle, silence: PATIENCE, ..Limits::default() }
}

/// The controller of a flow, for packets of QUIC.
pub(super) fn controller(simulation: &SimulationConfig, number: usize) -> Option<ControllerConfig> {
    let Simulated::Tcp(tcp) = &simulation.flows.get(number)?.traffic else { return None };
    Some(ControllerConfig { mss: u32::from(mtu()), ..tcp.controller.clone() })
}

pub(super) fn receive(
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
    let server =
        Server::new(clock, &limits(shared.stack), &identity, service, make, true).map_err(|error| said(&error))?;
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
pub(super) struct Job {
    pub(super) sockets: Vec<UdpSocket>,
    pub(super) to: SocketAddr,
    pub(super) start: Time,
    pub(super) request: Request,
    pub(super) config: ControllerConfig,
    pub(super) heard: Option<Sender<Heard>>,
}

pub(super) fn send(job: Job, world: WorldClock, shared: &Shared) -> Told {
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
    let limits = Limits { departures: heard.is_some(), ..limits(shared.stack) };
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
