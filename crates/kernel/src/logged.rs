//! What the kernel's loader says while it is at work.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

use crate::problem::Problem;

/// What libbpf says, one loading at a time.
static LOG: Mutex<String> = Mutex::new(String::new());
static LOADING: Mutex<()> = Mutex::new(());

fn remember(_level: PrintLevel, text: String) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

/// Does something with the kernel's loader; if it fails, with what was said.
pub(crate) fn logged<T>(name: &str, act: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, Problem> {
    let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let before = set_print(Some((PrintLevel::Debug, remember)));
    let result = act();
    set_print(before);
    result.map_err(|error| {
        let denied = error.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        let remedy = if denied {
            "this needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
        } else {
            "`flowstart kernel check` says what this kernel lacks"
        };
        let log = std::mem::take(&mut *LOG.lock().unwrap_or_else(PoisonError::into_inner));
        let cause = format!("the kernel did not take {name}: {error:#}");
        Problem { log, is_denied: denied, ..Problem::new(cause, remedy) }
    })
}
