//! Native work on behalf of Python: it can be stopped, is told of, and ends with exceptions of
//! Python's own code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use flowstart::embed::Hooks;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often Ctrl-C is looked for, and progress told.
const LOOK: Duration = Duration::from_millis(50);

/// Ends the simulation that called Python code which raised this. It unwinds up to [`supervise`],
/// which gives it to the caller: no result of a run in which an exception was raised gets out.
pub(crate) fn raise(error: PyErr) -> ! {
    resume_unwind(Box::new(error))
}

/// The exception that unwound, or what a panic of our own is for Python.
pub(crate) fn unwound(panic: Box<dyn Any + Send>) -> PyErr {
    let defect = "this is a defect of flowstart: the simulation panicked; see standard error";
    panic.downcast::<PyErr>().map_or_else(|_| PyRuntimeError::new_err(defect), |error| *error)
}

/// Does `work` on a thread of its own, without Python's lock.
pub(crate) fn supervise<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Hooks) -> T + Send,
) -> PyResult<T> {
    let (done, of) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut hooks = Hooks::default();
    if progress.is_some() {
        let (done, of) = (Arc::clone(&done), Arc::clone(&of));
        hooks.progress = Some(Arc::new(move |now, all| {
            done.fetch_max(now, Ordering::Relaxed);
            of.store(all, Ordering::Relaxed);
        }));
    }
    let cancel = hooks.cancel.clone();
    let tell = |py: Python<'_>| -> PyResult<()> {
        if let Some(progress) = &progress {
            progress.call1(py, (done.load(Ordering::Relaxed), of.load(Ordering::Relaxed)))?;
        }
        Ok(())
    };
    let (result, stopped) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            scope.spawn(move || {
                // The thread keeps its state of the interpreter between calls of Python code.
                let within = || Python::attach(|py| py.detach(|| work(hooks)));
                // Nobody listens only if the process is ending.
                let _ = sender.send(catch_unwind(AssertUnwindSafe(within)));
            });
            let mut stopped = None;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(result) => return (Some(result), stopped),
                    Err(RecvTimeoutError::Disconnected) => return (None, stopped),
                    Err(RecvTimeoutError::Timeout) if stopped.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let looked = Python::attach(|py| py.check_signals().and_then(|()| tell(py)));
                        stopped = looked.err();
                        if stopped.is_some() {
                            cancel.cancel();
                        }
                    }
                }
            }
        })
    });
    if let Some(error) = stopped {
        return Err(error);
    }
    let value = match result {
        Some(outcome) => outcome.map_err(unwound)?,
        None => return Err(PyRuntimeError::new_err("this is a defect of flowstart: its thread ended without a word")),
    };
    tell(py)?;
    Ok(value)
}
