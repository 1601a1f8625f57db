//! The window that Python sees, and the values that Python code gives.

use flowstart::congestion::Window as State;
use flowstart::units::Rate;
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// Whether what is set in a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
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
    pub(super) cwnd: u32,
    /// Slow-start threshold in packets; 0x7fffffff before the first reduction.
    #[pyo3(get)]
    pub(super) ssthresh: u32,
    pub(super) change: Change,
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
pub(super) fn packets(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u32> {
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
pub(super) fn number(value: &Bound<'_, PyAny>, what: &str, unit: &str) -> PyResult<Option<f64>> {
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
pub(super) fn rate(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Rate>> {
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
