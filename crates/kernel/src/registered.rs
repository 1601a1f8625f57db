//! What is registered in the kernel, by us and by others, as far as this user may see it.

use std::fs;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::problem::Problem;
use crate::{Algorithm, Settings, bpffs};

/// Names of what is pinned in an algorithm's folder.
pub(crate) const LINK: &str = "link";
pub(crate) const PARAMETERS: &str = "parameters";
pub(crate) const EVENTS: &str = "events";
pub(crate) const WATCHERS: &str = "watchers";

/// An algorithm that is registered.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Which.
    pub algorithm: Algorithm,
    /// Its parameters, if they could be read.
    pub settings: Option<Settings>,
    /// Folder of what keeps it registered.
    pub folder: PathBuf,
}

/// Congestion controls that the kernel has now.
pub(crate) fn available() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn is_available(algorithm: Algorithm) -> bool {
    available().iter().any(|name| name == algorithm.kernel_name())
}

/// What is registered by us, in this or another process, as far as this user may see it;
/// [`unseen`] says what else may be.
#[must_use]
pub fn loaded() -> Vec<Loaded> {
    let mut found = Vec::new();
    for parent in bpffs::folders() {
        for algorithm in Algorithm::ALL {
            let folder = parent.join(algorithm.kernel_name());
            if folder.join(LINK).exists() {
                found.push(Loaded { algorithm, settings: settings_of(algorithm, &folder), folder });
            }
        }
    }
    found
}

/// Algorithms under whose names the kernel has congestion controls that this user may not look at:
/// by whom they were registered and with which parameters is not known. With the reason; `None` if
/// everything can be seen.
#[must_use]
pub fn unseen() -> Option<(Vec<Algorithm>, Problem)> {
    let hidden = bpffs::hidden()?;
    let seen = loaded();
    let is_seen = |algorithm: Algorithm| seen.iter().any(|loaded| loaded.algorithm == algorithm);
    let names: Vec<_> =
        Algorithm::ALL.into_iter().filter(|algorithm| is_available(*algorithm) && !is_seen(*algorithm)).collect();
    let why = format!("{} may not be looked into", hidden.display());
    (!names.is_empty()).then(|| (names, Problem::denied(why, "this needs root")))
}

/// Why an algorithm that [`loaded`] does not show is not there.
pub(crate) fn not_there(algorithm: Algorithm, remedy: &str) -> Problem {
    let name = algorithm.kernel_name();
    match unseen() {
        Some((hidden, why)) if hidden.contains(&algorithm) => {
            Problem::denied(format!("the kernel has {name}, but {}", why.cause), why.remedy)
        }
        _ if is_available(algorithm) => {
            Problem::new(format!("{name} is not loaded by flowstart"), "another program registered it")
        }
        _ => Problem::new(format!("{name} is not loaded"), remedy),
    }
}

fn settings_of(algorithm: Algorithm, folder: &Path) -> Option<Settings> {
    if algorithm.parameters().is_empty() {
        return Some(Settings::new(algorithm));
    }
    let map = MapHandle::from_pinned_path(folder.join(PARAMETERS)).ok()?;
    let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
    Settings::from_bytes(algorithm, &bytes)
}
