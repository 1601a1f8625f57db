//! Congestion avoidances that are Python objects.

use flowstart::congestion::{
    Ack as Event, AvoidanceConfig, CongestionAvoidance, OwnAvoidance, Signal, Window as State,
};
use flowstart::units::{Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::event::{Ack, instant, name};
use super::object::{Object, nothing};
use super::window::{packets, rate};
use super::{lasting, not_taken};
use crate::supervise::raise;

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
