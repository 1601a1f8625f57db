//! Network namespaces, and user namespaces for those who are not root.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::fs::MetadataExt as _;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use crate::Error;

/// The namespace file of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// How namespaces can be made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// At once: root, or the capabilities SYS_ADMIN and NET_ADMIN.
    Full,
    /// After [`enter_user_namespace`]; without real-time priority, so less punctual.
    UserNamespace,
}

/// A network namespace. It exists as long as somebody holds it: this value, or a process in it.
#[derive(Debug)]
pub(crate) struct NetNs {
    file: File,
}

impl NetNs {
    /// A new one, with nothing but a loopback interface that is down. The calling thread stays
    /// where it is.
    pub(crate) fn create() -> Result<Self, Error> {
        let made = in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| match error {
                Errno::EPERM => Error::NotPossible(not_allowed()),
                Errno::ENOSPC => Error::NotPossible(
                    "there are too many network namespaces: raise user.max_net_namespaces with sysctl".to_owned(),
                ),
                other => Error::doing("make a network namespace", other),
            })?;
            File::open(OWN).map_err(|error| Error::doing(format_args!("open {OWN}"), error))
        })?;
        Ok(Self { file: made? })
    }

    /// The file that stands for it.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its number, the same as `/proc/PID/ns/net` of the processes in it.
    pub(crate) fn inode(&self) -> u64 {
        self.file.metadata().map_or(0, |data| data.st_ino())
    }

    /// Runs `f` on a thread in this namespace and waits for it. Sockets made there stay in the
    /// namespace wherever they are used.
    pub(crate) fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        in_thread(|| {
            self.enter()?;
            Ok(f())
        })?
    }

    /// Moves the calling thread into this namespace.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|error| Error::doing("enter a network namespace", error))
    }
}

/// Runs `f` on a thread of its own, so that what it does to the thread's namespaces ends with it; a
/// panic goes on in the caller.
fn in_thread<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("fs-setup".to_owned())
            .spawn_scoped(scope, f)
            .map_err(|error| Error::doing("start a thread", error))?;
        thread.join().map_or_else(|panic| std::panic::resume_unwind(panic), Ok)
    })
}

fn not_allowed() -> String {
    let why = match user_namespaces() {
        Ok(()) => "run flowstart from its command line, which enters a user namespace first, or as root".to_owned(),
        Err(why) => format!("it needs root, because {why}"),
    };
    format!("making a network namespace is not allowed here: {why}")
}

fn setting(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Whether unprivileged user namespaces are switched off, as far as the system's settings tell.
fn user_namespaces() -> Result<(), String> {
    if setting("/proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
        return Err(
            "user namespaces are switched off (sysctl user.max_user_namespaces=15000 switches them on)".to_owned()
        );
    }
    if setting("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return Err(
            "user namespaces are for root only (sysctl kernel.unprivileged_userns_clone=1 changes that)".to_owned()
        );
    }
    if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        return Err(
            "AppArmor restricts user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 changes that)"
                .to_owned(),
        );
    }
    Ok(())
}

/// How namespaces can be made by this process.
///
/// # Errors
/// A sentence about what is missing if they cannot.
pub fn privilege() -> Result<Privilege, Error> {
    match NetNs::create() {
        Ok(_) => Ok(Privilege::Full),
        Err(Error::NotPossible(message)) => match user_namespaces() {
            Ok(()) => Ok(Privilege::UserNamespace),
            Err(_) => Err(Error::NotPossible(message)),
        },
        Err(other) => Err(other),
    }
}

/// How long a thread that was waited for may take to leave the process.
const LEAVING: Duration = Duration::from_secs(1);

/// Does what only a process with one thread may do. A thread that was joined counts until the
/// kernel has removed it, a moment after `join` returns, so what is refused for that reason is
/// tried again.
fn when_alone(mut act: impl FnMut() -> nix::Result<()>) -> nix::Result<()> {
    let began = Instant::now();
    loop {
        match act() {
            Err(Errno::EINVAL) if began.elapsed() < LEAVING => thread::sleep(Duration::from_micros(100)),
            done => return done,
        }
    }
}

/// Moves this process into a user namespace of its own in which it may make network namespaces, as
/// the user it is but with the number 0.
///
/// # Errors
/// If the process has more than one thread already, or the system does not allow it.
pub fn enter_user_namespace() -> Result<(), Error> {
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    when_alone(|| unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)).map_err(|error| match error {
        Errno::EINVAL => Error::Failed("a user namespace must be entered before threads are started".to_owned()),
        Errno::EPERM | Errno::ENOSPC => Error::NotPossible(format!(
            "a user namespace is not allowed here ({error}): {}",
            user_namespaces().err().unwrap_or_else(|| "run flowstart as root".to_owned())
        )),
        other => Error::doing("make a user namespace", other),
    })?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::NotPossible(format!(
                "a user namespace was made but {file} cannot be written: {}",
                user_namespaces().err().unwrap_or_else(|| "run flowstart as root".to_owned())
            )),
            _ => Error::doing(format_args!("write {file}"), error),
        })
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {uid} 1\n"))?;
    write("/proc/self/gid_map", format!("0 {gid} 1\n"))
}

/// True if this process is in the first user namespace, where names of network namespaces are
/// visible to everybody.
pub(crate) fn in_first_user_namespace() -> bool {
    setting("/proc/self/uid_map").is_some_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_leaving_is_waited_for_and_other_refusals_are_said_at_once() {
        let mut tries = 0;
        let third = || {
            tries += 1;
            if tries < 3 { Err(Errno::EINVAL) } else { Ok(()) }
        };
        assert_eq!(when_alone(third), Ok(()));
        assert_eq!(tries, 3);
        tries = 0;
        let never = || {
            tries += 1;
            Err(Errno::EPERM)
        };
        assert_eq!(when_alone(never), Err(Errno::EPERM));
        assert_eq!(tries, 1);
    }
}
