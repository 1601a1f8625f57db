//! Names of namespaces, for `ip netns`, and removing what is left over.
//!
//! Namespaces and interfaces go by themselves when the last process that holds them ends, however
//! it ends. Three things could stay after a process that was killed: names in `/run/netns`, the
//! hosts file among the temporary files, and programs started in a namespace. A guard (`guard.rs`)
//! removes them. What stays if that was killed too is found by name:
//! `fs-PID-START-SPACE-NUMBER-HOST`, with the number and start time of the process that made it and
//! the namespace of that number.

use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::namespace::{NetNs, in_first_user_namespace};

/// Where `ip netns` looks for names.
pub(crate) const FOLDER: &str = "/run/netns";
/// What every name begins with.
const PREFIX: &str = "fs-";

/// What a guard is called.
pub(crate) const GUARD: &str = "fs-guard";

/// What stands in the name of a hosts file behind the world's.
const HOSTS: &str = "-hosts-";

/// Names of this process, so that an abrupt end can remove them too.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Worlds made by this process so far.
static WORLDS: AtomicU32 = AtomicU32::new(0);

/// A world's part of the names: unique on this machine.
#[derive(Clone, Debug)]
pub(crate) struct WorldName(String);

impl WorldName {
    /// The next one.
    pub(crate) fn next() -> Self {
        let pid = std::process::id();
        let start = start_time(pid).unwrap_or(0);
        Self(format!("{PREFIX}{pid}-{start}-{}-{}", space(), WORLDS.fetch_add(1, Ordering::Relaxed)))
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// What the name of the world's hosts file begins with.
    pub(crate) fn hosts_file(&self) -> String {
        format!("{}{HOSTS}", self.0)
    }
}

/// The namespace in which this process has its number.
fn space() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |data| data.st_ino())
}

/// When a process started, in clock ticks since boot (field 22 of `/proc/PID/stat`): with its
/// number it names a process for good.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// A name in `/run/netns`, removed on drop.
#[derive(Debug)]
pub(crate) struct Name(PathBuf);

impl Name {
    /// Gives the namespace a name that `ip netns exec` understands. `None` where that is not
    /// possible (without root): it is a convenience.
    pub(crate) fn give(world: &WorldName, host: &str, namespace: &NetNs) -> Option<Self> {
        if !in_first_user_namespace() || !nix::unistd::geteuid().is_root() {
            return None;
        }
        fs::create_dir_all(FOLDER).ok()?;
        let path = Path::new(FOLDER).join(format!("{}-{host}", world.0));
        fs::OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
        lock().push(path.clone());
        let name = Self(path);
        let source = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&namespace.fd()));
        // On failure `name` is dropped, which removes the file.
        mount(Some(source.as_str()), &name.0, None::<&str>, MsFlags::MS_BIND, None::<&str>).ok()?;
        Some(name)
    }

    /// The name alone.
    pub(crate) fn text(&self) -> String {
        self.0.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        remove(&self.0);
        lock().retain(|path| *path != self.0);
    }
}

fn lock() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn remove(path: &Path) {
    // A name that was never mounted is only a file.
    let _ = umount2(path, MntFlags::MNT_DETACH);
    let _ = fs::remove_file(path);
}

/// Removes the names that this process gave, for an end without unwinding (a second Ctrl-C).
/// Everything else goes with the process.
pub fn remove_own_names() {
    for path in lock().drain(..) {
        remove(&path);
    }
}

/// Ends all processes in these namespaces except this one: programs that were started there and did
/// not end by themselves.
pub(crate) fn end_processes_in(inodes: &[u64]) -> usize {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let mut ended = 0;
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let inode = fs::metadata(entry.path().join("ns/net")).map_or(0, |data| data.st_ino());
        // The guard of an emulation in there cleans up after that, and ends.
        let line = || fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let guard = || line().split(|byte| *byte == 0).any(|word| word == GUARD.as_bytes());
        if pid != own && inode != 0 && inodes.contains(&inode) && !guard() {
            ended += usize::from(kill(Pid::from_raw(pid as i32), Signal::SIGKILL).is_ok());
        }
    }
    ended
}

/// Removes what processes that no longer run left behind: names in `/run/netns`, programs in the
/// namespaces so named, and hosts files. What running flowstarts use is not touched, nor anything
/// not named by one. Returns the names removed.
#[must_use]
pub fn clean() -> Vec<String> {
    let mut removed = Vec::new();
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries(Path::new(FOLDER)) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_stale(&name) {
            let inode = fs::metadata(entry.path()).map_or(0, |data| data.st_ino());
            end_processes_in(&[inode]);
            remove(&entry.path());
            removed.push(name);
        }
    }
    for entry in entries(&std::env::temp_dir()) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name.contains(HOSTS) && entry.file_type().is_ok_and(|kind| kind.is_file());
        if ours && is_stale(&name) && fs::remove_file(entry.path()).is_ok() {
            removed.push(name);
        }
    }
    removed.sort();
    removed
}

/// True for a name of ours whose process is gone. Those of other namespaces, such as containers',
/// cannot be seen from here and may run.
fn is_stale(name: &str) -> bool {
    let mut parts = name.strip_prefix(PREFIX).unwrap_or_default().splitn(5, '-');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (Some(pid), Some(start), Some(space), Some(_)) = (number(), number(), number(), number()) else { return false };
    space == self::space() && start_time(u32::try_from(pid).unwrap_or(u32::MAX)) != Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_files_of_processes_that_are_gone_are_removed_and_no_others() {
        let own = tempfile::Builder::new().prefix(&WorldName::next().hosts_file()).tempfile().unwrap();
        let gone = format!("fs-{}-1-{}-0{HOSTS}", std::process::id(), space());
        let gone = tempfile::Builder::new().prefix(&gone).tempfile().unwrap();
        let name = gone.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(clean().contains(&name));
        assert!(own.path().exists() && !gone.path().exists());
    }

    #[test]
    fn only_names_of_processes_that_are_gone_are_stale() {
        let own = format!("{}-server", WorldName::next().0);
        assert!(!is_stale(&own));
        let (space, pid) = (space(), std::process::id());
        assert!(is_stale(&format!("fs-{pid}-1-{space}-0-server")), "the number was given to another process");
        assert!(!is_stale(&format!("fs-{pid}-1-{}-0-server", space + 1)), "it may run in a container");
        for foreign in ["", "fs-", "fs-web", "blue", "fs-1-2", "qdhcp-3-4-5-6-x", "fs-a-b-c-d-e"] {
            assert!(!is_stale(foreign), "{foreign}");
        }
    }
}
