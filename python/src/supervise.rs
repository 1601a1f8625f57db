//! Native work on behalf of Python: it can be stopped, is told of, and ends with exceptions of
//! Python's own code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowstart::embed::Hooks;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often Ctrl-C is looked for, and progress told.
const LOOK: Duration = Duration::from_millis(50);

/// How long work may take to end in order after Ctrl-C. Who simulates for minutes, or calls code in
/// Python that does not return, is left behind: what it brings is for nobody.
const GRACE: Duration = Duration::from_secs(2);

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
pub(crate) fn supervise<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Hooks) -> T + Send + 'static,
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
    let (sender, receiver) = channel();
    let running = std::thread::Builder::new().name("flowstart".to_owned()).spawn(move || {
        // The thread keeps its state of the interpreter between calls of Python code.
        let within = || Python::attach(|py| py.detach(|| work(hooks)));
        // Nobody listens if it was left behind, or the process is ending.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(within)));
    });
    running.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    // Only one thread listens; the lock is for whoever must see that.
    let receiver = Mutex::new(receiver);
    let (result, stopped) = py.detach(|| {
        let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stopped: Option<(PyErr, Instant)> = None;
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(result) => return (Some(result), stopped),
                Err(RecvTimeoutError::Disconnected) => return (None, stopped),
                Err(RecvTimeoutError::Timeout) => match &stopped {
                    Some((_, since)) if since.elapsed() > GRACE => return (None, stopped),
                    Some(_) => {}
                    None => {
                        let looked = Python::attach(|py| py.check_signals().and_then(|()| tell(py)));
                        if let Err(error) = looked {
                            stopped = Some((error, Instant::now()));
                            cancel.cancel();
                        }
                    }
                },
            }
        }
    });
    if let Some((error, _)) = stopped {
        return Err(error);
    }
    let value = match result {
        Some(outcome) => outcome.map_err(unwound)?,
        None => return Err(PyRuntimeError::new_err("this is a defect of flowstart: its thread ended without a word")),
    };
    tell(py)?;
    Ok(value)
}
