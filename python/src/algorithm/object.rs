//! An algorithm that is a Python object: how its methods are called.

use flowstart::congestion::{Connection, Window as State};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::event::Rounds;
use super::window::{Change, Window};
use crate::supervise::raise;

/// The methods that an object has of its own, bound: looking one up by its name takes longer than
/// calling it.
#[derive(Default)]
pub(super) struct Methods {
    pub(super) on_ack: Option<Py<PyAny>>,
    pub(super) on_round: Option<Py<PyAny>>,
    pub(super) grow: Option<Py<PyAny>>,
    pub(super) reduce: Option<Py<PyAny>>,
    pub(super) on_signal: Option<Py<PyAny>>,
    pub(super) departure: Option<Py<PyAny>>,
    pub(super) pacing_rate: Option<Py<PyAny>>,
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

/// Packets: what the largest receive window of TCP allows, 1 GiB (RFC 7323, section 2.3). A slip of
/// an algorithm, as an overflow of numpy's integers, then fills a queue and not the memory.
pub(super) const MOST_WINDOW: u32 = (1 << 30) / 1448;

/// A Python object and the window it is shown.
pub(super) struct Object {
    object: Py<PyAny>,
    window: Py<Window>,
    pub(super) methods: Methods,
    pub(super) rounds: Rounds,
}

/// Exceptions end the simulation.
impl Object {
    pub(super) fn new(factory: &Py<PyAny>, connection: Connection) -> Self {
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
    pub(super) fn with<T>(
        &mut self,
        state: &mut State,
        method: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>, &Py<Window>) -> PyResult<T>,
    ) -> Option<T> {
        self.with_window(state, Change::Counts, method, call)
    }

    /// The same for a method that only sees the window, and what it does in place of changing it.
    pub(super) fn showing<T>(
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

/// `grow` returns nothing: a window that it returned, in place of setting it, would be lost.
pub(super) fn nothing(py: Python<'_>, value: &Py<PyAny>) -> PyResult<()> {
    if value.is_none(py) {
        return Ok(());
    }
    let message = format!("grow returns nothing, not {value}: it sets window.cwnd");
    Err(PyTypeError::new_err(message))
}
