//! Native work on behalf of Python: stoppable, told of, and with errors of Python's own code kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flowstart::embed::Hooks;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often Ctrl-C is looked for, and progress told.
const LOOK: Duration = Duration::from_millis(50);

/// The first exception that Python code raised while it was called from a simulation.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// Keeps an exception of code that is called from a simulation, which cannot pass it on.
pub(crate) fn keep(error: PyErr) {
    let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    raised.get_or_insert(error);
}

fn raised() -> Option<PyErr> {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner).take()
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
                // Nobody listens only if the process is ending.
                let _ = sender.send(catch_unwind(AssertUnwindSafe(|| work(hooks))));
            });
            let mut stopped = None;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(result) => return (Some(result), stopped),
                    Err(RecvTimeoutError::Disconnected) => return (None, stopped),
                    Err(RecvTimeoutError::Timeout) if stopped.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let looked = Python::attach(|py| py.check_signals().and_then(|()| tell(py)));
                        stopped = looked.err().or_else(raised);
                        if stopped.is_some() {
                            cancel.cancel();
                        }
                    }
                }
            }
        })
    });
    if let Some(error) = stopped.or_else(raised) {
        return Err(error);
    }
    tell(py)?;
    match result {
        Some(Ok(value)) => Ok(value),
        _ => Err(PyRuntimeError::new_err("this is a defect of flowstart: the simulation panicked; see standard error")),
    }
}
