//! Flow starts that are Python objects.

use flowstart::congestion::{
    Ack as Event, AfterAck, Departure, Exit, ExitReason, FlowStart, Next, OwnStart, Response, Signal, StartConfig,
    Window as State,
};
use flowstart::units::Time;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::event::{Ack, instant, name};
use super::object::{MOST_WINDOW, Object, nothing};
use super::window::{number, packets, rate};
use super::{lasting, not_taken};

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

/// Seconds of virtual time after which nothing leaves: no simulation lasts so long.
const LATEST: f64 = 1e9;

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
