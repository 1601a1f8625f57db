//! Built-in senders and receivers on the kernel's TCP and UDP: bulk, sized, paced and scripted, like the simulator's applications.

mod tcp;
mod tcp_info;
mod udp;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::clock::Clock;
use crate::config::HostId;
use crate::wire::FlowKey;
use crate::world::World;
use crate::{Error, Host};

pub use tcp::congestion_controls;
pub use tcp_info::TcpInfo;

/// A flow between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    /// Who sends.
    pub from: HostId,
    /// Who receives.
    pub to: HostId,
    /// When, on the world's clock.
    pub start: Time,
    /// What.
    pub traffic: Traffic,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// A TCP connection.
    Tcp {
        /// Congestion control of the kernel by name; `None` for the system's default.
        congestion: Option<String>,
        /// What the application writes.
        workload: Workload,
    },
    /// Datagrams.
    Udp {
        /// Mean rate, counted on IP packets.
        rate: Rate,
        /// Bytes of an IPv4 packet, at least 36.
        packet: u16,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// How long.
        lasting: Span,
        /// Send as ECN-capable (ECT(0)).
        ecn: bool,
    },
}

/// What an application writes into its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// As much as the connection takes.
    Greedy,
    /// This much, then the end.
    Sized(Bytes),
    /// Messages at a mean rate.
    Paced {
        /// Mean payload rate.
        rate: Rate,
        /// Bytes per message.
        message: Bytes,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// How long.
        lasting: Span,
    },
    /// Writes of these sizes at these times after the start, ascending.
    Script(Vec<(Span, Bytes)>),
}

/// How long, and what is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunConfig {
    /// When everything ends, on the world's clock.
    pub until: Time,
    /// End as soon as all sized transfers are complete.
    pub stop_when_complete: bool,
    /// How often the kernel is asked about connections; zero for only at the end.
    pub sample: Span,
    /// Seed of random gaps.
    pub seed: u64,
}

/// What the kernel said of a connection at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Time,
    /// What.
    pub info: TcpInfo,
    /// Bytes that the receiving application had read.
    pub delivered: u64,
}

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowOutcome {
    /// Addresses and ports; `None` if it never began.
    pub key: Option<FlowKey>,
    /// When its SYN or first datagram left.
    pub started: Option<Time>,
    /// When the receiving application had read all of a sized transfer.
    pub completed: Option<Time>,
    /// Bytes that the receiving application read (datagrams: IP bytes).
    pub delivered: u64,
    /// What the kernel said at the end.
    pub info: Option<TcpInfo>,
    /// What it said meanwhile.
    pub samples: Vec<Sample>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What the threads of a flow share.
#[derive(Debug, Default)]
struct Shared {
    outcome: Mutex<FlowOutcome>,
    delivered: AtomicU64,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut FlowOutcome)) {
        change(&mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn fail(&self, error: impl std::fmt::Display) {
        self.change(|outcome| {
            outcome.error.get_or_insert_with(|| error.to_string());
        });
    }
}

/// What all threads look at.
struct Scene<'a> {
    clock: Clock,
    over: AtomicBool,
    /// Sized transfers that are not complete.
    incomplete: AtomicUsize,
    config: RunConfig,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Scene<'_> {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sleeps until `time`; false if everything ends before. The clock stands at zero before it begins to run, which is not "at zero" yet: packets
    /// of then would be held up in the emulator until it is, and hosts would measure that as their round-trip time.
    fn wait_until(&self, time: Time) -> bool {
        self.clock.sleep_until(Time::ZERO);
        loop {
            let now = self.clock.now();
            if self.over() || now >= self.config.until {
                return false;
            }
            if now >= time {
                return true;
            }
            self.clock.sleep_until(time.min(now + LOOK));
        }
    }
}

/// How often sleeping threads look whether everything is over.
const LOOK: Span = Span::from_millis(20);
/// The same as a timeout of sockets.
const TIMEOUT: Duration = Duration::from_millis(20);
/// The first port of receivers: iperf3's; flows count up.
const FIRST_PORT: u16 = 5201;
/// Stack of the threads, which do little.
const STACK: usize = 256 << 10;

/// Runs flows until they are over, and says what became of them, in their order. `cancelled` may end it early.
///
/// # Errors
/// If a host cannot be used, or threads cannot be started.
pub fn run(
    world: &World,
    flows: &[FlowConfig],
    config: RunConfig,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<FlowOutcome>, Error> {
    let shared: Vec<Shared> = flows.iter().map(|_| Shared::default()).collect();
    let sized = |flow: &&FlowConfig| matches!(flow.traffic, Traffic::Tcp { workload: Workload::Sized(_), .. });
    let scene = Scene {
        clock: world.clock(),
        over: AtomicBool::new(false),
        incomplete: AtomicUsize::new(flows.iter().filter(sized).count()),
        config,
        cancelled,
    };
    let connections: Mutex<Vec<(usize, std::os::fd::OwnedFd)>> = Mutex::default();
    std::thread::scope(|scope| {
        let result = start_all(scope, world, flows, &scene, &shared, &connections);
        if result.is_ok() {
            watch(&scene, &shared, &connections);
        }
        scene.over.store(true, Ordering::Relaxed);
        result
    })?;
    for (number, connection) in connections.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let info = TcpInfo::of(std::os::fd::AsFd::as_fd(&connection)).ok();
        shared[number].change(|outcome| outcome.info = info.or(outcome.info));
    }
    Ok(shared
        .into_iter()
        .map(|shared| {
            let delivered = shared.delivered.load(Ordering::Relaxed);
            FlowOutcome { delivered, ..shared.outcome.into_inner().unwrap_or_else(PoisonError::into_inner) }
        })
        .collect())
}

type Connections = Mutex<Vec<(usize, std::os::fd::OwnedFd)>>;

fn start_all<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    world: &'env World,
    flows: &'env [FlowConfig],
    scene: &'env Scene<'env>,
    shared: &'env [Shared],
    connections: &'env Connections,
) -> Result<(), Error> {
    let start = |name: &str, work: Box<dyn FnOnce() + Send + 'scope>| {
        std::thread::Builder::new()
            .name(format!("fs-{name}"))
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                // A thread that holds a socket's lock while others have the processor delays the connection's acknowledgements.
                crate::clock::be_prompt();
                work();
            })
            .map(|_| ())
            .map_err(|error| Error::doing("start a thread", error))
    };
    // All receivers first, so that no sender knocks in vain.
    let mut senders: Vec<Box<dyn FnOnce() + Send + 'scope>> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let (from, to): (&Host, &Host) = (&world.hosts()[flow.from], &world.hosts()[flow.to]);
        let port = FIRST_PORT.wrapping_add(number as u16).max(1024);
        let shared = &shared[number];
        match &flow.traffic {
            Traffic::Tcp { congestion, workload } => {
                let listener = tcp::listen(to, port, congestion.as_deref())?;
                let size = if let Workload::Sized(size) = workload { Some(size.get()) } else { None };
                start("receiver", Box::new(move || tcp::receive(&listener, size, scene, shared)))?;
                senders.push(Box::new(move || {
                    tcp::send(from, (to.address(), port), flow, scene, shared, (number, connections));
                }));
            }
            Traffic::Udp { .. } => {
                let receiver = udp::bind(to, port)?;
                start("receiver", Box::new(move || udp::receive(&receiver, scene, shared)))?;
                senders.push(Box::new(move || udp::send(from, (to.address(), port), (number, flow), scene, shared)));
            }
        }
    }
    senders.into_iter().try_for_each(|sender| start("sender", sender))
}

/// Asks the kernel about connections until everything is over.
fn watch(scene: &Scene<'_>, shared: &[Shared], connections: &Connections) {
    let config = &scene.config;
    let step = if config.sample.is_zero() { LOOK } else { config.sample };
    let mut next = Time::ZERO + step;
    while scene.clock.now() < config.until && !(scene.cancelled)() {
        if config.stop_when_complete && scene.incomplete.load(Ordering::Relaxed) == 0 {
            return;
        }
        if !config.sample.is_zero() {
            for (number, connection) in &*connections.lock().unwrap_or_else(PoisonError::into_inner) {
                let Ok(info) = TcpInfo::of(std::os::fd::AsFd::as_fd(connection)) else { continue };
                let delivered = shared[*number].delivered.load(Ordering::Relaxed);
                shared[*number].change(|outcome| {
                    outcome.samples.push(Sample { at: scene.clock.now(), info, delivered });
                });
            }
        }
        next = (next + step).max(scene.clock.now());
        scene.clock.sleep_until(next.min(config.until));
    }
}

/// Gaps between messages.
struct Gaps {
    mean: Span,
    random: Option<Pcg64Mcg>,
}

impl Gaps {
    fn new(mean: Span, poisson: bool, seed: u64) -> Self {
        Self { mean, random: poisson.then(|| Pcg64Mcg::seed_from_u64(seed)) }
    }

    fn next(&mut self) -> Span {
        let Some(random) = &mut self.random else { return self.mean };
        // In (0, 1], with 53 random bits.
        let unit = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        self.mean.mul_f64(-unit.ln())
    }
}
