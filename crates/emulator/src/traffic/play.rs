//! Lets flows and sessions happen: a thread for each end of each, started shortly before its time,
//! and one that asks the kernel about connections.

use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use flowstart_random::Purpose;
use flowstart_units::{Bytes, Span, Time};

use super::scene::{Scene, Shared};
use super::session::{self, SessionShared};
use super::{FlowConfig, Outcomes, RunConfig, SessionConfig, Traffic, tcp, udp};
use crate::world::World;
use crate::{Error, Host};

/// Most flows and sessions of a run together: each has a port of its own, below those that kernels
/// give to connecting sockets (32768).
pub const MOST_CONNECTIONS: usize = 20_000;
/// The first port of receivers: iperf3's; flows and sessions count up.
const FIRST_PORT: u16 = 5201;
/// Stack of the threads, which do little.
const STACK: usize = 256 << 10;
/// How long before its time a flow's threads are started.
const AHEAD: Span = Span::from_millis(50);

/// Something that happens: when it begins, and its number among its kind.
enum Item<'a> {
    Flow(usize, &'a FlowConfig),
    Session(usize, &'a SessionConfig),
}

impl Item<'_> {
    fn start(&self) -> Time {
        match self {
            Self::Flow(_, flow) => flow.start,
            Self::Session(_, session) => session.start,
        }
    }
}

/// The port that the receiver of a flow listens on, by the flow's number among all.
#[must_use]
pub fn port_of(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}

/// Runs flows and sessions until they are over, and says what became of them, in their order.
/// `cancelled` may end it early. At most [`MOST_CONNECTIONS`] of both together.
///
/// # Errors
/// If there are too many, a host cannot be used, or threads cannot be started.
pub fn run(
    world: &World,
    flows: &[FlowConfig],
    sessions: &[SessionConfig],
    config: RunConfig,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Outcomes, Error> {
    run_watched(world, flows, sessions, config, cancelled, &|_, _, _| {})
}

/// The same; `read` hears of every read of a TCP flow's receiver, on the receiver's thread: the
/// flow's number, when the read returned, and how many bytes it has read in all.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    world: &World,
    flows: &[FlowConfig],
    sessions: &[SessionConfig],
    config: RunConfig,
    cancelled: &(dyn Fn() -> bool + Sync),
    read: &(dyn Fn(usize, Time, u64) + Sync),
) -> Result<Outcomes, Error> {
    if flows.len() + sessions.len() > MOST_CONNECTIONS {
        return Err(Error::Config(format!("a real run has at most {MOST_CONNECTIONS} transfers and users")));
    }
    allow_many_files();
    let shared: Vec<Arc<Shared>> = flows.iter().map(|_| Arc::default()).collect();
    let users: Vec<SessionShared> = sessions.iter().map(|_| SessionShared::default()).collect();
    let sized = flows.iter().filter(|flow| flow.traffic.size().is_some());
    let scene = Scene::new(world.clock(), config, sized.count() + sessions.len(), cancelled, read);
    let mut items: Vec<Item<'_>> = flows.iter().enumerate().map(|(number, flow)| Item::Flow(number, flow)).collect();
    items.extend(sessions.iter().enumerate().map(|(number, session)| Item::Session(number, session)));
    items.sort_by_key(Item::start);
    if config.ends_world {
        world.end_at(config.until);
    }
    let stage = Play { world, scene: &scene, flows: &shared, sessions: &users };
    std::thread::scope(|scope| {
        let began = thread(scope, "starter", || {
            for item in items {
                if scene.over() || !wait_for_turn(&scene, item.start()) {
                    return;
                }
                if let Err(error) = stage.begin(scope, &item) {
                    scene.fail(error);
                }
            }
        });
        if began.is_ok() {
            scene.observe();
        }
        if config.ends_world {
            world.end_at(world.clock().now().min(config.until));
        }
        scene.end();
        began
    })?;
    if let Some(error) = scene.failure() {
        return Err(error);
    }
    Ok(Outcomes {
        flows: shared.iter().map(|shared| shared.outcome()).collect(),
        sessions: users.into_iter().map(SessionShared::outcome).collect(),
    })
}

/// Waits until shortly before `start`, but does not wait for the clock to begin; false if
/// everything ends before.
fn wait_for_turn(scene: &Scene<'_>, start: Time) -> bool {
    start <= Time::ZERO + AHEAD || scene.wait_until(start - AHEAD)
}

/// Every connection has four descriptors while it lasts.
fn allow_many_files() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where it is not allowed, opening the one too many fails, and says so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Starts a thread with a priority.
fn thread<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), Error> {
    std::thread::Builder::new()
        .name(format!("fs-{name}"))
        .stack_size(STACK)
        .spawn_scoped(scope, || {
            // A thread that holds a socket's lock while others have the processor delays the
            // connection's acknowledgements.
            crate::clock::be_prompt(crate::clock::Part::Sender);
            work();
        })
        .map(|_| ())
        .map_err(|error| Error::doing("start a thread", error))
}

/// What items need to begin.
#[derive(Clone, Copy)]
struct Play<'env> {
    world: &'env World,
    scene: &'env Scene<'env>,
    flows: &'env [Arc<Shared>],
    sessions: &'env [SessionShared],
}

impl<'env> Play<'env> {
    /// Starts the threads of an item, the receiver's first, so that no sender knocks in vain.
    fn begin<'scope>(&self, scope: &'scope std::thread::Scope<'scope, 'env>, item: &Item<'env>) -> Result<(), Error> {
        let Self { world, scene, flows, sessions } = *self;
        let host = |number: usize| -> &'env Host { &world.hosts()[number] };
        match *item {
            Item::Flow(number, flow) => {
                let (from, to, port) = (host(flow.from), host(flow.to), port_of(number));
                let shared = &flows[number];
                let seed = Purpose::Spacing.seed(scene.config.seed, scene.config.run, number as u64);
                match &flow.traffic {
                    Traffic::Tcp { congestion, workload } => {
                        let listener = tcp::listen(to, port, congestion.as_deref())?;
                        let size = workload.size().map(Bytes::get);
                        thread(scope, "receiver", move || tcp::receive(&listener, number, size, scene, shared))?;
                        let stamped = scene.config.stamped == Some(number);
                        thread(scope, "sender", move || {
                            tcp::send(from, (to.address(), port), (flow, stamped), scene, shared, seed);
                        })
                    }
                    Traffic::Udp { .. } => {
                        let receiver = udp::bind(to, port)?;
                        thread(scope, "receiver", move || udp::receive(&receiver, scene, shared))?;
                        thread(scope, "sender", move || {
                            udp::send(from, (to.address(), port), flow, scene, shared, seed);
                        })
                    }
                }
            }
            Item::Session(number, config) => {
                let (server, user) = (host(config.server), host(config.user));
                let port = FIRST_PORT + (flows.len() + number) as u16;
                let shared = &sessions[number];
                let listener = tcp::listen(server, port, config.congestion.as_deref())?;
                thread(scope, "server", move || session::serve(&listener, config, scene, shared))?;
                thread(scope, "user", move || session::ask(user, (server.address(), port), config, scene, shared))
            }
        }
    }
}
