//! Flow starts and congestion avoidances that are Python objects.

use flowstart::congestion::{
    Ack as Event, AfterAck, AvoidanceConfig, CongestionAvoidance, Connection, Departure, Exit, ExitReason, FlowStart,
    Next, OwnAvoidance, OwnStart, Response, Signal, StartConfig, Window as State,
};
use flowstart::units::{Rate, Span, Time};
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::supervise::raise;

/// Seconds, or `None` for what is not known yet.
fn seconds(span: Span) -> Option<f64> {
    (span != Span::ZERO && span != Span::MAX).then(|| span.as_secs_f64())
}

/// Seconds since the beginning of the simulation.
pub(crate) fn instant(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// What an ACK says. Times in seconds, packets where nothing else is said.
#[pyclass(frozen, get_all, module = "flowstart._native")]
pub(crate) struct Ack {
    now: f64,
    acked: u32,
    acked_bytes: u64,
    marked: u32,
    lost: u32,
    rtt: Option<f64>,
    srtt: Option<f64>,
    min_rtt: Option<f64>,
    in_flight: u32,
    packets_out: u32,
    delivered: u64,
    /// Packets delivered per second over about the last round trip.
    delivery_rate: Option<f64>,
    cwnd_limited: bool,
    app_limited: bool,
}

impl Ack {
    fn new(event: &Event) -> Self {
        Self {
            now: instant(event.now),
            acked: event.acked,
            acked_bytes: event.acked_bytes,
            marked: event.marked,
            lost: event.newly_lost(),
            rtt: event.rtt.map(Span::as_secs_f64),
            srtt: seconds(event.srtt),
            min_rtt: seconds(event.min_rtt),
            in_flight: event.in_flight,
            packets_out: event.packets_out,
            delivered: event.delivered,
            delivery_rate: event.rate.map(|rate| f64::from(rate.delivered) / rate.interval.as_secs_f64()),
            cwnd_limited: event.cwnd_limited,
            app_limited: event.app_limited,
        }
    }
}

/// What a round trip showed: from a packet's departure until its ACK.
#[pyclass(frozen, get_all, module = "flowstart._native")]
#[derive(Clone, Copy)]
pub(crate) struct Round {
    number: u32,
    now: f64,
    duration: f64,
    acked: u32,
    lost: u32,
    marked: u32,
    first_rtt: Option<f64>,
    last_rtt: Option<f64>,
    smallest_rtt: Option<f64>,
    min_rtt: Option<f64>,
    in_flight: u32,
}

/// Whether what is set in a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Counts,
    /// In a call that is told of the window, and what it does in place of changing it.
    No(&'static str),
    /// The call that it was given to is over.
    Over,
}

/// The window that start and avoidance share.
#[pyclass(module = "flowstart._native")]
pub(crate) struct Window {
    /// Congestion window in packets.
    #[pyo3(get)]
    cwnd: u32,
    /// Slow-start threshold in packets; 0x7fffffff before the first reduction.
    #[pyo3(get)]
    ssthresh: u32,
    change: Change,
}

impl Window {
    /// Refuses a change that nobody would hear of.
    fn may_change(&self) -> PyResult<()> {
        match self.change {
            Change::Counts => Ok(()),
            Change::No(why) => Err(PyAttributeError::new_err(why)),
            Change::Over => Err(PyAttributeError::new_err(
                "this window belongs to a call that is over: change the one that a method is given",
            )),
        }
    }
}

/// A count of packets that Python code gives.
fn packets(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u32> {
    // True is 1 for Python; who gives it means something else.
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("{what} must be a whole number of packets, not {value}")));
    }
    value.extract::<u32>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(format!("{what} must be from 0 to {} packets, not {value}", u32::MAX))
        } else if !error.is_instance_of::<PyTypeError>(value.py()) {
            error
        } else {
            PyTypeError::new_err(format!("{what} must be a whole number of packets, not {value}"))
        }
    })
}

/// A number that Python code gives, or `None`.
fn number(value: &Bound<'_, PyAny>, what: &str, unit: &str) -> PyResult<Option<f64>> {
    let text = || format!("{what} must be a number of {unit} or None, not {value}");
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(text()));
    }
    let number = value.extract::<Option<f64>>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(text())
        } else if error.is_instance_of::<PyTypeError>(value.py()) {
            PyTypeError::new_err(text())
        } else {
            error
        }
    })?;
    if number.is_some_and(f64::is_nan) { Err(PyValueError::new_err(text())) } else { Ok(number) }
}

/// A rate that Python code gives, or `None`.
fn rate(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Rate>> {
    match number(value, what, "bit/s")? {
        Some(rate) if rate < 1.0 => Err(PyValueError::new_err(format!(
            "{what} must be at least 1 bit/s, or None to leave it to the connection, not {rate}"
        ))),
        rate => Ok(rate.map(|rate| Rate::from_bps(rate as u64))),
    }
}

#[pymethods]
impl Window {
    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.may_change()?;
        self.cwnd = packets(value, "cwnd")?;
        Ok(())
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.may_change()?;
        self.ssthresh = packets(value, "ssthresh")?;
        Ok(())
    }

    /// Standard slow start for this many acknowledged packets; what is left for avoidance.
    fn slow_start(&mut self, acked: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.may_change()?;
        let acked = packets(acked, "acked")?;
        let mut state = State { cwnd: self.cwnd, ssthresh: self.ssthresh };
        let left = state.slow_start(acked);
        self.cwnd = state.cwnd;
        Ok(left)
    }

    fn __repr__(&self) -> String {
        format!("Window(cwnd={}, ssthresh={})", self.cwnd, self.ssthresh)
    }
}

/// Sums up rounds.
#[derive(Clone, Default)]
struct Rounds {
    end: u64,
    began: f64,
    round: Option<Round>,
    number: u32,
}

impl Rounds {
    /// Takes an ACK in; a whole round if one has ended.
    fn on_ack(&mut self, event: &Event) -> Option<Round> {
        let now = instant(event.now);
        let rtt = event.rtt.map(Span::as_secs_f64);
        let round = self.round.get_or_insert(Round {
            number: self.number,
            now,
            duration: 0.0,
            acked: 0,
            lost: 0,
            marked: 0,
            first_rtt: None,
            last_rtt: None,
            smallest_rtt: None,
            min_rtt: None,
            in_flight: 0,
        });
        round.acked += event.acked;
        round.lost += event.newly_lost();
        round.marked += event.marked;
        round.first_rtt = round.first_rtt.or(rtt);
        round.last_rtt = rtt.or(round.last_rtt);
        round.smallest_rtt = match (round.smallest_rtt, rtt) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if event.una < self.end {
            return None;
        }
        let mut whole = self.round.take()?;
        (whole.now, whole.duration) = (now, now - self.began);
        (whole.min_rtt, whole.in_flight) = (seconds(event.min_rtt), event.in_flight);
        self.number += 1;
        self.began = now;
        self.end = event.next;
        Some(whole)
    }
}

/// The methods that an object has of its own, bound: looking one up by its name takes longer than
/// calling it.
#[derive(Default)]
struct Methods {
    on_ack: Option<Py<PyAny>>,
    on_round: Option<Py<PyAny>>,
    grow: Option<Py<PyAny>>,
    reduce: Option<Py<PyAny>>,
    on_signal: Option<Py<PyAny>>,
    departure: Option<Py<PyAny>>,
    pacing_rate: Option<Py<PyAny>>,
}

impl Methods {
    /// Those of `object` that it `has`.
    fn of(py: Python<'_>, object: &Py<PyAny>, has: impl Fn(&str) -> bool) -> PyResult<Self> {
        let own = |name: &str| if has(name) { object.getattr(py, name).map(Some) } else { Ok(None) };
        Ok(Self {
            on_ack: own("on_ack")?,
            on_round: own("on_round")?,
            grow: own("grow")?,
            reduce: own("reduce")?,
            on_signal: own("on_signal")?,
            departure: own("departure")?,
            pacing_rate: own("pacing_rate")?,
        })
    }

    fn has(&self, name: &str) -> bool {
        let method = match name {
            "on_ack" => &self.on_ack,
            "on_round" => &self.on_round,
            "grow" => &self.grow,
            "reduce" => &self.reduce,
            "on_signal" => &self.on_signal,
            "departure" => &self.departure,
            "pacing_rate" => &self.pacing_rate,
            _ => &None,
        };
        method.is_some()
    }
}

/// A copy has an object of its own (`copy.deepcopy`).
impl Clone for Object {
    fn clone(&self) -> Self {
        let made = Python::attach(|py| -> PyResult<Self> {
            let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?.unbind();
            let methods = Methods::of(py, &object, |name| self.methods.has(name))?;
            let Window { cwnd, ssthresh, change } = *self.window.borrow(py);
            let window = Py::new(py, Window { cwnd, ssthresh, change })?;
            Ok(Self { object, window, methods, rounds: self.rounds.clone() })
        });
        made.unwrap_or_else(|error| raise(error))
    }
}

/// Packets: what the largest receive window of TCP allows, 1 GiB (RFC 7323, section 2.3). A slip of
/// an algorithm, as an overflow of numpy's integers, then fills a queue and not the memory.
const MOST_WINDOW: u32 = (1 << 30) / 1448;

/// A Python object and the window it is shown.
struct Object {
    object: Py<PyAny>,
    window: Py<Window>,
    methods: Methods,
    rounds: Rounds,
}

/// Exceptions end the simulation.
impl Object {
    fn new(factory: &Py<PyAny>, connection: Connection) -> Self {
        let made = Python::attach(|py| -> PyResult<Self> {
            let arguments = (connection.initial_window, connection.mss, connection.seed);
            let (object, names): (Py<PyAny>, Vec<String>) = factory.call1(py, arguments)?.extract(py)?;
            let methods = Methods::of(py, &object, |name| names.iter().any(|own| own == name))?;
            let window =
                Py::new(py, Window { cwnd: connection.initial_window, ssthresh: u32::MAX, change: Change::Over })?;
            Ok(Self { object, window, methods, rounds: Rounds::default() })
        });
        made.unwrap_or_else(|error| raise(error))
    }

    /// Calls with the window in and out; `None` if the object has no such method of its own.
    fn with<T>(
        &mut self,
        state: &mut State,
        method: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>, &Py<Window>) -> PyResult<T>,
    ) -> Option<T> {
        self.with_window(state, Change::Counts, method, call)
    }

    /// The same for a method that only sees the window, and what it does in place of changing it.
    fn showing<T>(
        &mut self,
        state: &State,
        instead: &'static str,
        method: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>, &Py<Window>) -> PyResult<T>,
    ) -> Option<T> {
        self.with_window(&mut state.clone(), Change::No(instead), method, call)
    }

    fn with_window<T>(
        &mut self,
        state: &mut State,
        change: Change,
        method: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>, &Py<Window>) -> PyResult<T>,
    ) -> Option<T> {
        let method = method(&self.methods)?;
        let called = Python::attach(|py| {
            {
                let mut shown = self.window.borrow_mut(py);
                (shown.cwnd, shown.ssthresh, shown.change) = (state.cwnd, state.ssthresh, change);
            }
            let value = call(py, method, &self.window)?;
            let mut shown = self.window.borrow_mut(py);
            shown.change = Change::Over;
            *state = State { cwnd: shown.cwnd.clamp(1, MOST_WINDOW), ssthresh: shown.ssthresh.max(2) };
            Ok(value)
        });
        Some(called.unwrap_or_else(|error| raise(error)))
    }
}

/// The reasons that a Python start can give, by name.
const REASONS: [(&str, ExitReason); 8] = [
    ("delay", ExitReason::DelayIncrease),
    ("pipe full", ExitReason::PipeFull),
    ("delivery lag", ExitReason::DeliveryLag),
    ("rate plateau", ExitReason::RatePlateau),
    ("loss", ExitReason::Loss),
    ("marks", ExitReason::Marks),
    ("threshold", ExitReason::Threshold),
    ("limit", ExitReason::Limit),
];

/// `grow` returns nothing: a window that it returned, in place of setting it, would be lost.
fn nothing(py: Python<'_>, value: &Py<PyAny>) -> PyResult<()> {
    if value.is_none(py) {
        return Ok(());
    }
    let message = format!("grow returns nothing, not {value}: it sets window.cwnd");
    Err(PyTypeError::new_err(message))
}

/// What `on_ack` and `on_round` of a start return: `None` to go on, or an object with `cwnd`,
/// `ssthresh`, `reason` and `rate` (bit/s) to leave.
fn verdict(py: Python<'_>, value: Py<PyAny>) -> PyResult<Option<Exit>> {
    if value.is_none(py) {
        return Ok(None);
    }
    let value = value.bind(py);
    let field = |name: &str| {
        value.getattr(name).map_err(|error| {
            if error.is_instance_of::<PyAttributeError>(py) {
                PyTypeError::new_err("on_ack and on_round of a flow start return None to go on, or an Exit")
            } else {
                error
            }
        })
    };
    let cwnd = packets(&field("cwnd")?, "cwnd of an Exit")?;
    let ssthresh = field("ssthresh")?;
    let ssthresh = if ssthresh.is_none() { None } else { Some(packets(&ssthresh, "ssthresh of an Exit")?) };
    let rate = rate(&field("rate")?, "rate of an Exit")?;
    let given = field("reason")?;
    let name = given.extract::<String>();
    let Some((_, reason)) = REASONS.iter().find(|(known, _)| name.as_ref().is_ok_and(|name| name == known)) else {
        let known: Vec<&str> = REASONS.iter().map(|(known, _)| *known).collect();
        return Err(PyValueError::new_err(format!("\"{given}\" is no reason to leave (known: {})", known.join(", "))));
    };
    let cwnd = cwnd.clamp(2, MOST_WINDOW);
    Ok(Some(Exit { reason: *reason, cwnd, ssthresh: ssthresh.unwrap_or(cwnd).max(2), rate }))
}

fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Loss => "loss",
        Signal::Marks => "marks",
        Signal::Timeout => "timeout",
    }
}

#[derive(Clone)]
struct PythonStart(Object);

impl FlowStart for PythonStart {
    fn on_ack(&mut self, ack: &Event, window: &mut State) -> AfterAck {
        let object = &mut self.0;
        let mut exit = object.with(
            window,
            |methods| methods.on_ack.as_ref(),
            |py, on_ack, window| verdict(py, on_ack.call1(py, (Ack::new(ack), window))?),
        );
        let round = object.methods.on_round.is_some().then(|| object.rounds.on_ack(ack)).flatten();
        if let (None | Some(None), Some(round)) = (exit, round) {
            exit = object.with(
                window,
                |methods| methods.on_round.as_ref(),
                |py, on_round, window| verdict(py, on_round.call1(py, (round, window))?),
            );
        }
        exit.flatten().map_or(AfterAck::Continue, AfterAck::Done)
    }

    fn grow(&mut self, ack: &Event, window: &mut State) -> u32 {
        let called = self.0.with(
            window,
            |methods| methods.grow.as_ref(),
            |py, grow, window| nothing(py, &grow.call1(py, (Ack::new(ack), window))?),
        );
        if called.is_none() { window.slow_start(ack.acked) } else { 0 }
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut State) -> Response {
        // Congestion never makes a window larger.
        let most = window.cwnd.max(2);
        let answer = self.0.with(
            window,
            |methods| methods.on_signal.as_ref(),
            |py, on_signal, window| {
                let value = on_signal.call1(py, (instant(now), name(signal), window))?;
                if value.is_none(py) {
                    return Ok(Response::Leave);
                }
                if let Ok(word) = value.extract::<String>(py) {
                    return match word.as_str() {
                        "ignore" if signal != Signal::Timeout => Ok(Response::Ignore),
                        "ignore" | "leave" => Ok(Response::Leave),
                        _ => Err(PyValueError::new_err("on_signal returns None, \"leave\", \"ignore\" or a threshold")),
                    };
                }
                Ok(Response::LeaveAt(packets(value.bind(py), "what on_signal returns")?.clamp(2, most)))
            },
        );
        answer.unwrap_or(Response::Leave)
    }

    fn departure(&mut self, now: Time, _next: &Next, window: &State) -> Option<Departure> {
        let at = self.0.showing(
            window,
            "departure cannot change the window: it may be asked several times, and says when a packet leaves",
            |methods| methods.departure.as_ref(),
            |py, departure, window| {
                let (value, what) = (departure.call1(py, (instant(now), window))?, "what departure returns");
                match number(value.bind(py), what, "seconds")? {
                    Some(at) if at.abs() > LATEST => Err(PyValueError::new_err(format!(
                        "{what} must be a number of seconds or None, not {at}: a packet that never leaves ends nothing"
                    ))),
                    at => Ok(at),
                }
            },
        )??;
        let at = Time::from_nanos((at.max(0.0) * 1e9) as u64);
        Some(if at > now { Departure::At(at) } else { Departure::Now })
    }
}

/// Seconds of virtual time after which nothing leaves: no simulation lasts so long.
const LATEST: f64 = 1e9;

/// What an avoidance does in place of changing a window that it is told of.
const TOLD: &str = "on_ack and on_round of a congestion avoidance cannot change the window: grow sets it";

#[derive(Clone)]
struct PythonAvoidance(Object);

impl CongestionAvoidance for PythonAvoidance {
    fn on_ack(&mut self, ack: &Event, window: &State) {
        let object = &mut self.0;
        object.showing(
            window,
            TOLD,
            |methods| methods.on_ack.as_ref(),
            |py, on_ack, window| on_ack.call1(py, (Ack::new(ack), window)).map(drop),
        );
        if let Some(round) = object.methods.on_round.is_some().then(|| object.rounds.on_ack(ack)).flatten() {
            object.showing(
                window,
                TOLD,
                |methods| methods.on_round.as_ref(),
                |py, on_round, window| on_round.call1(py, (round, window)).map(drop),
            );
        }
    }

    fn grow(&mut self, ack: &Event, acked: u32, window: &mut State) {
        self.0.with(
            window,
            |methods| methods.grow.as_ref(),
            |py, grow, window| nothing(py, &grow.call1(py, (Ack::new(ack), acked, window))?),
        );
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &State) -> u32 {
        let reduced = self.0.showing(
            window,
            "reduce cannot change the window: it returns the threshold",
            |methods| methods.reduce.as_ref(),
            |py, reduce, window| {
                packets(reduce.call1(py, (instant(now), name(signal), window))?.bind(py), "what reduce returns")
            },
        );
        // Congestion never makes a window larger.
        reduced.unwrap_or(window.cwnd / 2).clamp(2, window.cwnd.max(2))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let method = self.0.methods.pacing_rate.as_ref()?;
        let asked = Python::attach(|py| rate(method.call0(py)?.bind(py), "what pacing_rate returns"));
        asked.unwrap_or_else(|error| raise(error))
    }
}

/// Names live as long as the program: algorithms are registered once.
pub(crate) fn lasting(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Names that contestants have by themselves, as "cubic" is HyStart in front of CUBIC: of an own
/// algorithm of that name nobody would hear.
pub(crate) fn not_taken(name: &str) -> PyResult<()> {
    let avoidance = AvoidanceConfig::NAMES.contains(&name);
    let start = StartConfig::NAMES.contains(&name);
    let short = flowstart::race::ALIASES.iter().any(|(alias, _)| *alias == name);
    let kind = match (start, avoidance, short) {
        (true, ..) => "flow start",
        (_, true, _) => "congestion avoidance",
        (.., true) => "contestant",
        _ => return Ok(()),
    };
    let taken = format!("the {kind} \"{name}\" is part of flowstart; an own one needs another name");
    Err(PyValueError::new_err(taken))
}

/// Makes a flow start known. `factory(initial_window, mss, seed)` returns the object and the names
/// of the methods that it has of its own. With `draws` what it does hangs on the seed.
#[pyfunction]
pub(crate) fn register_start(name: String, about: String, factory: Py<PyAny>, draws: bool) -> PyResult<()> {
    not_taken(&name)?;
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let make = move |connection| -> Box<dyn OwnStart> { Box::new(PythonStart(Object::new(&factory, connection))) };
    let own = StartConfig::own(lasting(name), lasting(about), make).map_err(|error| wrong(&error))?;
    StartConfig::register(if draws { own.with_draws() } else { own }).map_err(|error| wrong(&error))
}

/// Makes a congestion avoidance known; with `ecn` its flows answer accurate marks, with `draws`
/// what it does hangs on the seed.
#[pyfunction]
pub(crate) fn register_avoidance(
    name: String,
    about: String,
    factory: Py<PyAny>,
    ecn: bool,
    draws: bool,
) -> PyResult<()> {
    not_taken(&name)?;
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let make =
        move |connection| -> Box<dyn OwnAvoidance> { Box::new(PythonAvoidance(Object::new(&factory, connection))) };
    let own = AvoidanceConfig::own(lasting(name), lasting(about), make).map_err(|error| wrong(&error))?;
    let own = if ecn { own.with_ecn() } else { own };
    AvoidanceConfig::register(if draws { own.with_draws() } else { own }).map_err(|error| wrong(&error))
}
