//! The native part of the Python package `flowstart`.
//!
//! Commands run on a thread of their own with Python's lock released; the calling thread looks for
//! Ctrl-C and tells how far they are. Algorithms in Python are called with the lock held.

mod agent;
mod algorithm;
mod environment;
mod supervise;
mod table;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use flowstart::embed::{self, Called, Hooks};
use flowstart::race::RaceResult as Race;
use flowstart_units::Rate;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use supervise::supervise;
use table::Table;

/// What is wrong in one sentence. The parser of arguments says more in paragraphs of its own: of
/// those only what else there is helps whoever writes no command line.
fn sentence(message: &str) -> String {
    if !message.contains("For more information, try '--help'") {
        return message.to_owned();
    }
    let mut paragraphs = message.split("\n\n").map(|lines| lines.split_whitespace().collect::<Vec<_>>().join(" "));
    let first = paragraphs.next().unwrap_or_default();
    let similar = paragraphs.find_map(|lines| lines.strip_prefix("tip: ").map(str::to_owned));
    match similar.filter(|tip| tip.contains("similar")) {
        Some(tip) => format!("{first}; {tip}"),
        None => first,
    }
}

/// What a command said, as the exception that fits its status.
fn refused(called: &Called) -> PyErr {
    let message = sentence(&called.message);
    match called.status {
        2 => PyValueError::new_err(message),
        3 => PyOSError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

fn words(arguments: Vec<String>) -> Vec<OsString> {
    arguments.into_iter().map(OsString::from).collect()
}

fn files(texts: Option<HashMap<String, String>>) -> Vec<(PathBuf, String)> {
    texts.into_iter().flatten().map(|(name, text)| (PathBuf::from(name), text)).collect()
}

/// A command line in this process: status, standard output, what is wrong, remarks.
#[pyfunction]
#[pyo3(signature = (arguments, progress = None))]
fn call<'py>(
    py: Python<'py>,
    arguments: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u8, Bound<'py, PyBytes>, String, Vec<String>)> {
    let arguments = words(arguments);
    let called = supervise(py, progress, move |hooks| embed::call(&arguments, hooks))?;
    Ok((called.status, PyBytes::new(py, &called.output), sentence(&called.message), called.notes))
}

/// The result of a race.
#[pyclass(frozen, module = "flowstart._native")]
struct RaceResult(Race);

#[pymethods]
impl RaceResult {
    /// The document that `flowstart compare --json` prints.
    fn to_json(&self) -> String {
        format!("{:#}\n", self.0.to_json())
    }

    /// A row per contestant and run, a column per measure; behind them `exit_reasons` and `queue`.
    fn runs(&self) -> PyResult<Table> {
        Table::of_runs(&self.0)
    }

    /// A row per point of the pictures: contestant, what, time in round trips, value, time in
    /// seconds; of several runs the value is the median, and most lie between low and high.
    fn series(&self) -> PyResult<Table> {
        Table::of_series(&self.0)
    }

    /// False if the race was stopped.
    fn complete(&self) -> bool {
        self.0.complete
    }
}

/// The race that `flowstart compare` runs with these arguments, what was said beside it, and why a
/// real run was not faithful enough, if it was not. A file whose name is in `texts` is that text.
#[pyfunction]
#[pyo3(signature = (arguments, progress = None, texts = None))]
fn compare(
    py: Python<'_>,
    arguments: Vec<String>,
    progress: Option<Py<PyAny>>,
    texts: Option<HashMap<String, String>>,
) -> PyResult<(RaceResult, Vec<String>, Option<String>)> {
    let (arguments, texts) = (words(arguments), files(texts));
    let raced = supervise(py, progress, move |hooks| embed::compare(&arguments, Hooks { texts, ..hooks }))?;
    let embed::Raced { result, notes, unfaithful } = raced.map_err(|called| refused(&called))?;
    Ok((RaceResult(result), notes, unfaithful))
}

/// Tables with their names.
type Tables = Vec<(String, Table)>;

/// The tables of scenarios with their names, and remarks.
type Ran = (Vec<(String, Tables)>, Vec<String>);

/// The tables of the scenario files that `flowstart run` runs with these arguments, a list of
/// (name of the scenario, list of (name of the table, table)), and what was said beside them. A
/// file whose name is in `texts` is that text.
#[pyfunction]
#[pyo3(signature = (arguments, progress = None, texts = None))]
fn run(
    py: Python<'_>,
    arguments: Vec<String>,
    progress: Option<Py<PyAny>>,
    texts: Option<HashMap<String, String>>,
) -> PyResult<Ran> {
    let (arguments, texts) = (words(arguments), files(texts));
    let ran = supervise(py, progress, move |hooks| embed::run(&arguments, Hooks { texts, ..hooks }))?;
    let embed::Ran { results, notes } = ran.map_err(|called| refused(&called))?;
    let tables = |results: flowstart_results::Results| -> PyResult<Tables> {
        results.tables.iter().map(|table| Ok((table.spec().name.to_owned(), Table::of_results(table)?))).collect()
    };
    let all: PyResult<_> = results.into_iter().map(|(name, results)| Ok((name, tables(results)?))).collect();
    Ok((all?, notes))
}

/// What a contestant does against the contract of flow starts and avoidances is an error.
#[pyfunction]
fn check(py: Python<'_>, contestant: String) -> PyResult<()> {
    let checked = supervise(py, None, move |_| flowstart::contract::check(&contestant))?;
    checked.map_err(|broken| PyValueError::new_err(broken.to_string()))
}

/// A table of named columns, each a list.
#[pyfunction]
fn table_of(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Table> {
    Table::of_lists(columns)
}

/// A table of named columns, each of a kind ("text", "integer", "number" or "flag") and a list:
/// what a pickled table is made of.
#[pyfunction]
fn table_from(columns: Vec<(String, String, Bound<'_, PyAny>)>) -> PyResult<Table> {
    Table::of_kinds(columns)
}

/// The names of the rough grid's paths: its kinds and the profiles.
#[pyfunction]
fn rough_names() -> Vec<&'static str> {
    flowstart_frontier::rough_names()
}

/// A path of the rough grid at `capacity` bit/s, or at that of its file: the table `path` of a
/// scenario as JSON, its capacity in bit/s and its base RTT in seconds.
#[pyfunction]
#[pyo3(signature = (name, capacity = None))]
fn rough_path(name: &str, capacity: Option<f64>) -> PyResult<(String, f64, f64)> {
    let wrong = |what: String| PyValueError::new_err(what);
    if capacity.is_some_and(|capacity| !(1.0..=1e15).contains(&capacity)) {
        return Err(wrong(format!("capacity must be from 1 to 1e15 bit/s, not {}", capacity.unwrap_or_default())));
    }
    let path = flowstart_frontier::rough_path(name, capacity.map(|rate| Rate::from_bps(rate.round() as u64)));
    let known = flowstart_frontier::rough_names().join(", ");
    let path = path.ok_or_else(|| wrong(format!("there is no path \"{name}\"; there are {known}")))?;
    let json = serde_json::to_string(&path).map_err(|error| wrong(error.to_string()))?;
    Ok((json, path.capacity.nominal().as_bps() as f64, path.rtt.as_secs_f64()))
}

/// The version of flowstart that this is built from.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The native part of the package.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Whoever was first did the same.
    let _ = flowstart_parallel::work_within(|work| supervise::with_interpreter(work));
    module.add("MOST_SHARDS", flowstart_frontier::Shard::MOST)?;
    module.add_class::<RaceResult>()?;
    module.add_class::<Table>()?;
    module.add_class::<algorithm::event::Ack>()?;
    module.add_class::<algorithm::event::Round>()?;
    module.add_class::<algorithm::window::Window>()?;
    module.add_class::<environment::Environments>()?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(table_of, module)?)?;
    module.add_function(wrap_pyfunction!(table_from, module)?)?;
    module.add_function(wrap_pyfunction!(rough_names, module)?)?;
    module.add_function(wrap_pyfunction!(rough_path, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(supervise::working_threads, module)?)?;
    module.add_function(wrap_pyfunction!(algorithm::start::register_start, module)?)?;
    module.add_function(wrap_pyfunction!(algorithm::avoidance::register_avoidance, module)?)?;
    module.add_function(wrap_pyfunction!(environment::register_policy, module)?)?;
    Ok(())
}
