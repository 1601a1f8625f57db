//! Hosts: namespaces to run code and programs in.

use std::ffi::{CString, OsStr};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;

use crate::Error;
use crate::names::{Name, WorldName};
use crate::namespace::NetNs;
use crate::netlink::Mac;

/// The one interface of a host.
pub(crate) const HOST_INTERFACE: &str = "fs-0";

/// A host: a network namespace with one interface, `fs-0`.
#[derive(Debug)]
pub struct Host {
    pub(crate) name: String,
    pub(crate) namespace: std::sync::Arc<NetNs>,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Option<Ipv6Addr>,
    pub(crate) mac: Mac,
    /// The router's end of its link.
    pub(crate) router_mac: Mac,
    pub(crate) router_index: u32,
    pub(crate) label: Option<Name>,
    /// A copy of `/etc/hosts` with the names of all hosts, and those that this one has for them.
    pub(crate) hosts_file: std::sync::Arc<tempfile::NamedTempFile>,
}

/// Tables of sockets of the calling thread's namespace, and the state in them that means being
/// ready: TCP_LISTEN, and for UDP not connected.
const LISTENERS: [(&str, &str); 4] = [
    ("/proc/thread-self/net/tcp", "0A"),
    ("/proc/thread-self/net/tcp6", "0A"),
    ("/proc/thread-self/net/udp", "07"),
    ("/proc/thread-self/net/udp6", "07"),
];

/// True if the table has a socket in this state (its fourth field).
fn has_socket(file: &str, state: &str) -> bool {
    std::fs::read_to_string(file)
        .is_ok_and(|table| table.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state)))
}

/// Counters of the interfaces of the calling thread's namespace.
const DEVICES: &str = "/proc/thread-self/net/dev";

/// The bytes that a host's interface has sent, of such a table: the ninth of its numbers.
fn sent(table: &str) -> Option<u64> {
    let numbers = table.lines().find_map(|line| line.trim_start().strip_prefix(HOST_INTERFACE)?.strip_prefix(':'))?;
    numbers.split_whitespace().nth(8)?.parse().ok()
}

/// The file that says which names have which addresses.
const HOSTS: &str = "/etc/hosts";

impl Host {
    /// Its name, which programs in other hosts can use as its address.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its IPv4 address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.v4.into()
    }

    /// Its IPv6 address; `None` if the kernel has no IPv6.
    #[must_use]
    pub fn address_v6(&self) -> Option<IpAddr> {
        self.v6.map(IpAddr::from)
    }

    /// Name of its network interface, inside it.
    #[must_use]
    pub fn interface(&self) -> &'static str {
        HOST_INTERFACE
    }

    /// What `ip netns exec` calls it; `None` where names cannot be given (without root).
    #[must_use]
    pub fn netns_name(&self) -> Option<String> {
        self.label.as_ref().map(Name::text)
    }

    /// Runs `f` in this host, on a thread of its own, and waits for it. Sockets opened there belong
    /// to this host for good.
    ///
    /// # Errors
    /// If the thread cannot be started or not enter the namespace.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.namespace.run(f)
    }

    /// Starts a thread in this host.
    ///
    /// # Errors
    /// If the thread cannot be started; joining it says whether it could enter the namespace.
    pub fn spawn<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T, Error>>, Error> {
        let namespace = self.namespace.clone();
        std::thread::Builder::new()
            .name(format!("fs-{}", self.name))
            .spawn(move || {
                namespace.enter()?;
                Ok(f())
            })
            .map_err(|error| Error::doing("start a thread", error))
    }

    /// How many bytes have left this host so far, with their headers.
    ///
    /// # Errors
    /// If the host cannot be looked at.
    pub fn sent(&self) -> Result<u64, Error> {
        self.run(|| std::fs::read_to_string(DEVICES).ok().and_then(|table| sent(&table)))?
            .ok_or_else(|| Error::Failed(format!("{DEVICES} does not say what {HOST_INTERFACE} has sent")))
    }

    /// True if a program in this host listens on a TCP port or has bound a UDP port.
    ///
    /// # Errors
    /// If the host cannot be looked at.
    pub fn listens(&self) -> Result<bool, Error> {
        self.run(|| LISTENERS.iter().any(|(file, state)| has_socket(file, state)))
    }

    /// A program that will run in this host, where the names of all hosts stand for their
    /// addresses. What it leaves running is ended with the world.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let namespace = self.namespace.clone();
        let file = self.hosts_file.clone();
        let source = CString::new(file.path().as_os_str().as_bytes());
        // SAFETY: between fork and exec the closure only makes system calls on prepared arguments;
        // it neither allocates nor locks.
        unsafe {
            command.pre_exec(move || {
                let _keep = &file;
                enter(&namespace, source.as_deref().ok())
            });
        }
        command
    }
}

/// Moves a forked process into a namespace and gives it a hosts file of its own.
fn enter(namespace: &NetNs, hosts: Option<&std::ffi::CStr>) -> io::Result<()> {
    // SAFETY: system calls with valid descriptors, constant strings and null pointers where they
    // are allowed.
    unsafe {
        if libc::setns(namespace.fd().as_raw_fd(), libc::CLONE_NEWNET) != 0 {
            return Err(io::Error::last_os_error());
        }
        // Without a mount namespace, or without a hosts file, names do not work; addresses still
        // do.
        if let Some(source) = hosts
            && libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
        {
            libc::mount(source.as_ptr(), c"/etc/hosts".as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null());
        }
    }
    Ok(())
}

/// Makes a program end when the calling thread does, however that happens: for programs that the
/// thread waits for.
pub fn die_with_this_thread(command: &mut Command) {
    // SAFETY: between fork and exec a single system call without pointers.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            }
        });
    }
}

/// The hosts file: what the system has, and the hosts.
pub(crate) fn hosts_file<'a>(
    world: &WorldName,
    hosts: impl Iterator<Item = (&'a str, (Ipv4Addr, Ipv6Addr))>,
) -> Result<tempfile::NamedTempFile, Error> {
    let mut text = std::fs::read_to_string(Path::new(HOSTS)).unwrap_or_else(|_| "127.0.0.1 localhost\n".to_owned());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for (name, (v4, v6)) in hosts {
        text.push_str(&format!("{v4} {name}\n{v6} {name}\n"));
    }
    let folder = std::env::temp_dir();
    let failed = |error: io::Error| {
        let doing = format_args!("write a hosts file into {} (TMPDIR names another folder)", folder.display());
        Error::doing(doing, flowstart_files::why(&error))
    };
    let mut file = tempfile::Builder::new().prefix(&world.hosts_file()).tempfile_in(&folder).map_err(failed)?;
    io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    // Programs of other users read it too.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    Ok(file)
}
