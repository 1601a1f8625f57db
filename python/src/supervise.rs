//! Native work on behalf of Python: it can be stopped, is told of, and ends with exceptions of
//! Python's own code.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// Numbers that Python gives the threads that work for it, until they are done.
static WORKING: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn working() -> MutexGuard<'static, BTreeSet<u64>> {
    WORKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads that work now: at the end of the process those that were left behind, and may be in
/// the middle of Python code.
#[pyfunction]
pub(crate) fn working_threads() -> Vec<u64> {
    working().iter().copied().collect()
}

/// A thread in [`WORKING`].
struct Working(Option<u64>);

impl Working {
    fn new(py: Python<'_>) -> Self {
        let number = py.import("threading").and_then(|threading| threading.call_method0("get_ident")?.extract());
        // Without a number nobody can end it, which is how it was.
        let number = number.ok();
        working().extend(number);
        Self(number)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        working().retain(|number| Some(*number) != self.0);
    }
}

/// Does `work` on this thread with its state of the interpreter, which it keeps between calls of
/// Python code: without it every call of an algorithm makes that state anew and throws it away
/// again, which takes many times as long as the call.
pub(crate) fn with_interpreter<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| {
        let _working = Working::new(py);
        py.detach(work)
    })
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
        let within = || with_interpreter(|| work(hooks));
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
