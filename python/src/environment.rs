//! Environments for learning agents: many simulations side by side, advanced by an interval each.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flowstart::congestion::{
    Avoidance, AvoidanceConfig, CongestionAvoidance, Connection, Controller, Start, StartConfig, forward_avoidance,
};
use flowstart::units::{Span, Time};
use flowstart_scenario::Scenario;
use flowstart_simulator::{FlowId, Observer, Simulation, Traffic};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::agent::{ACTIONS, Action, Agent, AgentControl, AgentStart, NoStart, OBSERVED, Policy};
use crate::algorithm::{lasting, not_taken};
use crate::supervise::{raise, unwound};

/// Which algorithm an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    FlowStart,
    CongestionControl,
}

impl Kind {
    fn read(text: &str) -> PyResult<Self> {
        match text {
            "flow_start" => Ok(Self::FlowStart),
            "congestion_control" => Ok(Self::CongestionControl),
            _ => Err(PyValueError::new_err(format!(
                "\"{text}\" is no kind of agent (known: flow_start, congestion_control)"
            ))),
        }
    }
}

/// What a reward is made of.
#[derive(Clone, Copy, Debug)]
struct Weights {
    delay: f64,
    loss: f64,
    /// Round trips after a start that its reward counts.
    tail: u32,
    /// Intervals after which an episode is cut.
    steps: u32,
}

/// The avoidance after a start, watched.
#[derive(Clone)]
struct Watched {
    inner: Avoidance,
    agent: Agent,
}

macro_rules! watched {
    ($this:ident.on_ack($ack:ident, $window:ident)) => {{
        {
            let mut shared = $this.agent.lock();
            if shared.over {
                shared.hear($ack);
            }
        }
        $this.inner.on_ack($ack, $window)
    }};
    ($this:ident.$method:ident($($argument:ident),*)) => { $this.inner.$method($($argument),*) };
}

impl CongestionAvoidance for Watched {
    forward_avoidance!(watched);
}

/// Whether a transfer that has a size is complete.
struct Completion {
    flow: FlowId,
    is_complete: bool,
}

impl Observer for Completion {
    fn completed(&mut self, _now: Time, flow: FlowId) {
        self.is_complete |= flow == self.flow;
    }
}

/// One episode.
struct Episode {
    simulation: Simulation<Completion>,
    agent: Agent,
    capacity: f64,
    steps: u32,
}

/// What a step gives.
#[derive(Clone, Copy, Debug, Default)]
struct Stepped {
    observation: [f64; OBSERVED],
    reward: f64,
    terminated: bool,
    truncated: bool,
}

impl Episode {
    fn begin(kind: Kind, toml: &str, capacity: f64, seed: u64) -> Result<Self, String> {
        let mut scenario = Scenario::parse("episode", toml).map_err(|error| error.to_string())?;
        scenario.seed = seed;
        let config = scenario.simulation(0).map_err(|error| error.to_string())?.simulation;
        let Some(Traffic::Tcp(own)) = config.flows.last().map(|flow| &flow.traffic) else {
            return Err("the scenario of an episode needs a [[flow]], the last of which is the agent".to_owned());
        };
        let (number, agent) =
            ((config.flows.len() - 1) as FlowId, Agent::new(own.controller.initial_window, kind == Kind::FlowStart));
        let made = agent.clone();
        let make = move |flow: FlowId, config: &flowstart::congestion::ControllerConfig| {
            if flow != number {
                return Controller::new(config);
            }
            let agent = made.clone();
            match kind {
                Kind::FlowStart => {
                    let start = Start::External(Box::new(AgentStart { agent: agent.clone(), policy: None }));
                    let watched = Watched { inner: Avoidance::new(config), agent };
                    Controller::join(start, Avoidance::External(Box::new(watched)), config)
                }
                Kind::CongestionControl => {
                    let mss = config.mss;
                    let control = AgentControl { agent, policy: None, mss, srtt: 0.0, in_charge: true };
                    let start = Start::External(Box::new(NoStart));
                    Controller::join(start, Avoidance::External(Box::new(control)), config)
                }
            }
        };
        let observer = Completion { flow: number, is_complete: false };
        let simulation =
            Simulation::with_controllers(&config, observer, Box::new(make)).map_err(|error| error.to_string())?;
        let mut episode = Self { simulation, agent, capacity, steps: 0 };
        episode.warm_up()?;
        Ok(episode)
    }

    /// Until the first interval is over: the initial window, which no agent decides.
    fn warm_up(&mut self) -> Result<(), String> {
        const STEP: Span = Span::from_micros(500);
        const PATIENCE: u32 = 1_000_000;
        for _ in 0..PATIENCE {
            let due = self.agent.lock().due;
            if due < Time::NEVER {
                self.simulation.run_until(due);
                return Ok(());
            }
            if self.simulation.run_until(self.simulation.now() + STEP) {
                break;
            }
        }
        Err("the agent's flow of this scenario never begins".to_owned())
    }

    fn step(&mut self, kind: Kind, action: Action, weights: Weights) -> Stepped {
        self.steps += 1;
        let (over, reward) = self.interval(Some(action), weights);
        let mut stepped = Stepped { reward, truncated: self.steps >= weights.steps, ..Stepped::default() };
        if over {
            stepped.truncated = true;
        }
        stepped.observation = self.agent.lock().observe();
        if kind == Kind::FlowStart && (self.agent.lock().over || self.agent.lock().leave) {
            for _ in 0..weights.tail {
                if self.is_complete() {
                    break;
                }
                stepped.reward += self.interval(None, weights).1;
            }
            stepped.terminated = true;
        }
        stepped.terminated |= self.is_complete();
        stepped.truncated &= !stepped.terminated;
        stepped
    }

    /// True once all of a flow with a size has arrived: there is nothing left to decide.
    fn is_complete(&self) -> bool {
        self.simulation.observer().is_complete
    }

    /// One interval: whether the simulation is over, and the reward.
    fn interval(&mut self, action: Option<Action>, weights: Weights) -> (bool, f64) {
        let now = self.simulation.now();
        let (end, base) = {
            let mut shared = self.agent.lock();
            let base = shared.base();
            match action {
                Some(action) => shared.decide(action, now, base),
                None => shared.forget(),
            }
            (now + Span::from_secs_f64(base), base)
        };
        let over = self.simulation.run_until(end);
        let seen = self.agent.lock().seen;
        let share = seen.acked_bytes * 8.0 / base / self.capacity;
        let delay = seen.mean_rtt().map_or(0.0, |rtt| (rtt / base - 1.0).max(0.0));
        let lost = seen.lost / (seen.acked + seen.lost).max(1.0);
        (over, share - weights.delay * delay.min(10.0) - weights.loss * lost)
    }
}

/// Episodes side by side.
#[pyclass(frozen, module = "flowstart._native")]
pub(crate) struct Environments {
    kind: Kind,
    weights: Weights,
    // A simulation belongs to one thread at a time; the lock makes it so.
    episodes: Mutex<Vec<Option<Episode>>>,
    count: usize,
    pool: rayon::ThreadPool,
}

fn all_of<'py, T: pyo3::buffer::Element>(
    object: &Bound<'py, PyAny>,
    length: usize,
    what: &str,
) -> PyResult<PyBuffer<T>> {
    let buffer = PyBuffer::<T>::get(object)?;
    if buffer.item_count() != length || !buffer.is_c_contiguous() {
        return Err(PyValueError::new_err(format!("{what} must hold {length} values in a row")));
    }
    Ok(buffer)
}

/// Without Python's lock; a panic, or an exception of an algorithm in Python, is an error.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(unwound)
}

/// Arrays that a step writes: observations, rewards, and whether the episodes ended or were cut.
type Written<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

thread_local! {
    /// A step is in progress on this thread: what Python code calls now is called by an algorithm.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// A step in progress, as long as it lives.
struct Within;

impl Within {
    fn a_step() -> Self {
        WITHIN.set(true);
        Self
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(false);
    }
}

/// An algorithm that resets or steps environments in the middle of a step would wait for itself.
fn not_within_a_step() -> PyResult<()> {
    if WITHIN.get() {
        return Err(PyRuntimeError::new_err("an algorithm cannot reset or step environments in the middle of a step"));
    }
    Ok(())
}

#[pymethods]
impl Environments {
    #[new]
    fn new(
        kind: &str,
        count: usize,
        delay_weight: f64,
        loss_weight: f64,
        tail: u32,
        steps: u32,
        threads: usize,
    ) -> PyResult<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
        let weights = Weights { delay: delay_weight, loss: loss_weight, tail, steps };
        Ok(Self {
            kind: Kind::read(kind)?,
            weights,
            episodes: Mutex::new((0..count).map(|_| None).collect()),
            count,
            pool,
        })
    }

    /// Begins an episode: the scenario's last flow is the agent, `capacity` is the payload in bit/s
    /// that a reward of 1 stands for. Returns the first observation.
    fn reset(&self, py: Python<'_>, index: usize, toml: &str, capacity: f64, seed: u64) -> PyResult<Vec<f64>> {
        if index >= self.count || capacity.is_nan() || capacity <= 0.0 {
            return Err(PyValueError::new_err("there is no such environment, or its capacity is not above 0"));
        }
        not_within_a_step()?;
        // Algorithms in Python may be in the simulations: whoever waits for the lock must not hold
        // Python's.
        detached(py, || {
            let within = Within::a_step();
            let episode = Episode::begin(self.kind, toml, capacity, seed).map_err(PyValueError::new_err)?;
            let observation = episode.agent.lock().observe().to_vec();
            drop(within);
            self.lock()[index] = Some(episode);
            Ok(observation)
        })?
    }

    /// A step of every environment but those that `skip` marks.
    fn step(
        &self,
        py: Python<'_>,
        actions: &Bound<'_, PyAny>,
        skip: &Bound<'_, PyAny>,
        written: Written<'_>,
    ) -> PyResult<()> {
        not_within_a_step()?;
        let (observations, rewards, terminated, truncated) = &written;
        let count = self.count;
        let given = all_of::<f64>(actions, count * ACTIONS, "actions")?.to_vec(py)?;
        let skipped = all_of::<u8>(skip, count, "skip")?.to_vec(py)?;
        let observed = all_of::<f64>(observations, count * OBSERVED, "observations")?;
        let rewarded = all_of::<f64>(rewards, count, "rewards")?;
        let ended = all_of::<u8>(terminated, count, "terminated")?;
        let cut = all_of::<u8>(truncated, count, "truncated")?;
        let (kind, weights) = (self.kind, self.weights);
        let pool = &self.pool;
        let results: PyResult<Vec<Option<Stepped>>> = detached(py, || {
            let mut held = self.lock();
            let episodes: &mut Vec<Option<Episode>> = &mut held;
            let one = |((episode, action), skipped): ((&mut Option<Episode>, &[f64]), &u8)| {
                let episode = episode.as_mut()?;
                if *skipped != 0 {
                    return Some(Stepped { observation: episode.agent.lock().observe(), ..Stepped::default() });
                }
                let _within = Within::a_step();
                Some(episode.step(kind, Action::of(action), weights))
            };
            if count == 1 {
                return Ok(episodes.iter_mut().zip(given.chunks(ACTIONS)).zip(&skipped).map(one).collect());
            }
            Ok(pool.install(|| episodes.par_iter_mut().zip(given.par_chunks(ACTIONS)).zip(&skipped).map(one).collect()))
        })
        .inspect_err(|_| {
            // They stopped in the middle of something.
            py.detach(|| self.lock().fill_with(|| None));
        })?;
        let Some(results) = results?.into_iter().collect::<Option<Vec<Stepped>>>() else {
            return Err(PyRuntimeError::new_err("an environment must be reset before its first step"));
        };
        let flat: Vec<f64> = results.iter().flat_map(|one| one.observation).collect();
        observed.copy_from_slice(py, &flat)?;
        rewarded.copy_from_slice(py, &results.iter().map(|one| one.reward).collect::<Vec<_>>())?;
        ended.copy_from_slice(py, &results.iter().map(|one| u8::from(one.terminated)).collect::<Vec<_>>())?;
        cut.copy_from_slice(py, &results.iter().map(|one| u8::from(one.truncated)).collect::<Vec<_>>())
    }
}

impl Environments {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Episode>>> {
        self.episodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn policy(callable: Py<PyAny>) -> Policy {
    std::sync::Arc::new(move |observation| {
        let answer = Python::attach(|py| -> PyResult<[f64; ACTIONS]> {
            let list = pyo3::types::PyList::new(py, observation)?;
            let answer = callable.call1(py, (list,))?;
            let values = answer.extract::<Vec<f64>>(py).ok();
            let whole = values.and_then(|values| <[f64; ACTIONS]>::try_from(values.as_slice()).ok());
            whole.filter(|values| values.iter().all(|value| value.is_finite())).ok_or_else(|| {
                let told = answer.bind(py).repr().map(|told| told.to_string()).unwrap_or_default();
                let told: String = told.chars().take(80).collect();
                PyValueError::new_err(format!("a policy answers with {ACTIONS} finite numbers, not with {told}"))
            })
        });
        answer.unwrap_or_else(|error| raise(error))
    })
}

/// Makes a trained agent known as a flow start or a congestion avoidance of this name.
/// `callable(observation)` answers with three numbers.
#[pyfunction]
pub(crate) fn register_policy(kind: &str, name: String, about: String, callable: Py<PyAny>) -> PyResult<()> {
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    not_taken(&name)?;
    let (name, about) = (lasting(name), lasting(about));
    let policy = policy(callable);
    match Kind::read(kind)? {
        Kind::FlowStart => {
            let make = move |connection: Connection| -> Box<dyn flowstart::congestion::OwnStart> {
                Box::new(AgentStart {
                    agent: Agent::new(connection.initial_window, true),
                    policy: Some(policy.clone()),
                })
            };
            let own = StartConfig::own(name, about, make).map_err(|error| wrong(&error))?;
            StartConfig::register(own).map_err(|error| wrong(&error))
        }
        Kind::CongestionControl => {
            let make = move |connection: Connection| -> Box<dyn flowstart::congestion::OwnAvoidance> {
                let agent = Agent::new(connection.initial_window, false);
                let (policy, mss) = (Some(policy.clone()), connection.mss);
                Box::new(AgentControl { agent, policy, mss, srtt: 0.0, in_charge: false })
            };
            let own = AvoidanceConfig::own(name, about, make).map_err(|error| wrong(&error))?;
            AvoidanceConfig::register(own).map_err(|error| wrong(&error))
        }
    }
}
