//! Flow starts and congestion avoidances that are Python objects.

pub(crate) mod avoidance;
pub(crate) mod event;
mod object;
pub(crate) mod start;
pub(crate) mod window;

use flowstart::congestion::{AvoidanceConfig, StartConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
