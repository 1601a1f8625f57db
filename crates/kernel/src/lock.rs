//! Locks between processes: one loads or unloads at a time, and one watches.
//!
//! A lock ends with its holder, however that ends, so that nothing stale can be left behind.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::problem::Problem;

/// Where locks are: root's, and gone after a restart, like registrations.
const FOLDER: &str = "/run";
/// How often a lock that somebody has is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What only one process may do at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Only {
    /// Loading and unloading.
    Changes,
    /// Reading events.
    Watcher,
}

impl Only {
    fn file(self) -> &'static str {
        match self {
            Self::Changes => "flowstart-kernel.lock",
            Self::Watcher => "flowstart-kernel-watch.lock",
        }
    }
}

/// Held as long as it exists.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] Flock<File>);

/// Takes a lock, waiting for it at most this long. `Ok(Err(pid))` if another process has it; the
/// process is named as it wrote itself down.
///
/// # Errors
/// If locks cannot be taken here.
pub(crate) fn take(only: Only, patience: Duration) -> Result<Result<Lock, String>, Problem> {
    let path = Path::new(FOLDER).join(only.file());
    let failed = |error: &dyn std::fmt::Display| {
        Problem::denied(format!("{} cannot be locked ({error})", path.display()), "this needs root")
    };
    fs::create_dir_all(FOLDER).map_err(|error| failed(&error))?;
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| failed(&error))?;
    let began = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(mut lock) => {
                // Who has it, for the others to read; the lock holds without that too.
                let _ = lock.set_len(0);
                let _ = lock.write_all(std::process::id().to_string().as_bytes());
                return Ok(Ok(Lock(lock)));
            }
            Err((back, Errno::EWOULDBLOCK)) if began.elapsed() < patience => {
                file = back;
                thread::sleep(LOOK);
            }
            Err((mut back, Errno::EWOULDBLOCK)) => {
                let mut pid = String::new();
                let _ = back.read_to_string(&mut pid);
                return Ok(Err(pid.trim().to_owned()));
            }
            Err((_, error)) => return Err(failed(&error)),
        }
    }
}
