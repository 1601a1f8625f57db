//! Programs at network devices: where a device is, and what is attached to it (tcx, Linux 6.6).

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::net::if_::{if_indextoname, if_nametoindex};
use nix::sched::{CloneFlags, setns};

use crate::Problem;

/// Where `ip netns add` keeps namespaces.
const NAMESPACES: &str = "/run/netns";
/// Bytes in front of IP on Ethernet.
const ETHERNET: u32 = 14;
/// Types of devices (linux/if_arp.h) whose packets begin with a header of Ethernet, and those whose
/// packets begin with IP.
const WITH_ETHERNET: [u16; 2] = [1, 772];
const PLAIN: [u16; 6] = [65_534, 768, 769, 776, 778, 519];

/// A side of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Packets that come in.
    Ingress,
    /// Packets that leave.
    Egress,
}

/// Which of several programs at one side of a device runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// This one, as of now.
    First,
    /// This one, as of now, is the last.
    Last,
}

/// A network device, in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Its name there.
    pub(crate) name: String,
    /// Its number there.
    pub(crate) index: u32,
    /// Inode of the namespace, which names it.
    pub(crate) namespace: u64,
    /// Bytes in front of IP.
    pub(crate) link_header: u32,
    /// Rate that it says it has, Mbit/s.
    pub(crate) megabits: Option<u64>,
}

/// Runs `what` in a network namespace (a name as `ip netns` knows it, or a path), or in this one.
pub(crate) fn within<T: Send>(
    namespace: Option<&str>,
    what: impl FnOnce() -> Result<T, Problem> + Send,
) -> Result<T, Problem> {
    let Some(name) = namespace else { return what() };
    let path = if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMESPACES).join(name) };
    let file = File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Problem::new(format!("there is no network namespace {name}"), "`ip netns list` says which there are")
        }
        _ => Problem::denied(format!("{} cannot be opened ({error})", path.display()), "this needs root"),
    })?;
    thread::scope(|scope| {
        let inside = || {
            setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| match error {
                Errno::EINVAL => Problem::new(format!("{name} is no network namespace"), ""),
                _ => Problem::denied(
                    format!("the network namespace {name} cannot be entered ({error})"),
                    "this needs root",
                ),
            })?;
            what()
        };
        scope.spawn(inside).join().unwrap_or_else(|_| Err(Problem::new("a thread failed", "")))
    })
}

/// The inode of this thread's network namespace.
pub(crate) fn namespace() -> u64 {
    fs::metadata("/proc/thread-self/ns/net").map_or(0, |about| about.ino())
}

/// The name that `ip netns` has for a network namespace.
pub(crate) fn namespace_name(namespace: u64) -> Option<String> {
    let is_it = |entry: &fs::DirEntry| fs::metadata(entry.path()).is_ok_and(|about| about.ino() == namespace);
    let entry = fs::read_dir(NAMESPACES).ok()?.flatten().find(is_it)?;
    entry.file_name().into_string().ok()
}

/// The name of a device of this thread's network namespace.
pub(crate) fn name_of(index: u32) -> Option<String> {
    if_indextoname(index).ok().and_then(|name| name.into_string().ok())
}

/// Asks about a device of this thread's network namespace (netdevice(7)); `None` if the kernel does
/// not say. sysfs would show the namespace it was mounted in.
fn ask(name: &str, command: libc::Ioctl, data: *mut libc::c_void) -> Option<libc::ifreq> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data.cast();
    // SAFETY: the request lives until the call has returned, and so does what it points to.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut request) };
    (result >= 0).then_some(request)
}

/// The type of a device (linux/if_arp.h).
fn kind_of(name: &str) -> Option<u16> {
    let answer = ask(name, libc::SIOCGIFHWADDR, ptr::null_mut())?;
    // SAFETY: the kernel has filled in an address; any bytes are one.
    Some(unsafe { answer.ifr_ifru.ifru_hwaddr }.sa_family)
}

/// The rate of a device in Mbit/s, if it says one (`struct ethtool_cmd` of linux/ethtool.h).
fn megabits_of(name: &str) -> Option<u64> {
    const GET_SETTINGS: u32 = 1;
    /// In words: where the lower half of the speed is, and where the upper.
    const LOWER: usize = 3;
    const UPPER: usize = 7;
    let mut settings = [0_u32; 11];
    settings[0] = GET_SETTINGS;
    ask(name, libc::SIOCETHTOOL, settings.as_mut_ptr().cast())?;
    let half = |word: usize| {
        let [first, second, ..] = settings[word].to_ne_bytes();
        u64::from(u16::from_ne_bytes([first, second]))
    };
    let speed = half(UPPER) << 16 | half(LOWER);
    (1..u64::from(u32::MAX)).contains(&speed).then_some(speed)
}

impl Device {
    /// The device of this name in this thread's network namespace.
    pub(crate) fn find(name: &str) -> Result<Self, Problem> {
        let index = if_nametoindex(name).map_err(|_| {
            Problem::new(format!("there is no network device {name}"), "`ip link` says which there are")
        })?;
        let kind = kind_of(name);
        let link_header = match kind {
            None => ETHERNET,
            Some(kind) if WITH_ETHERNET.contains(&kind) => ETHERNET,
            Some(kind) if PLAIN.contains(&kind) => 0,
            Some(kind) => {
                return Err(Problem::new(
                    format!("{name} is a device of type {kind}, whose packets this program cannot read"),
                    "devices with Ethernet or plain IP it can",
                ));
            }
        };
        Ok(Self { name: name.to_owned(), index, namespace: namespace(), link_header, megabits: megabits_of(name) })
    }
}

/// Attaches a program to a side of a device of this thread's network namespace. It stays as long as
/// what is returned, or a pin of it.
pub(crate) fn attach(program: BorrowedFd<'_>, device: &Device, side: Side, order: Order) -> Result<OwnedFd, Problem> {
    // SAFETY: all zeros are a valid value of this plain structure: no flags and no pointers.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { mem::zeroed() };
    options.sz = mem::size_of_val(&options) as _;
    options.flags = if order == Order::First { libbpf_sys::BPF_F_BEFORE } else { 0 };
    let kind = match side {
        Side::Ingress => libbpf_sys::BPF_TCX_INGRESS,
        Side::Egress => libbpf_sys::BPF_TCX_EGRESS,
    };
    let index = i32::try_from(device.index).unwrap_or(i32::MAX);
    // SAFETY: the options live until the call has returned, and the program is open.
    let link = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), index, kind, &options) };
    if link >= 0 {
        // SAFETY: the kernel just gave this descriptor to nobody else.
        return Ok(unsafe { OwnedFd::from_raw_fd(link) });
    }
    let name = &device.name;
    Err(match Errno::from_raw(-link) {
        Errno::EPERM | Errno::EACCES => Problem::denied(
            format!("nothing may be attached to {name}"),
            "this needs root, or CAP_BPF and CAP_NET_ADMIN",
        ),
        Errno::ENODEV => Problem::new(format!("there is no network device {name}"), "`ip link` says which there are"),
        Errno::EINVAL => Problem::denied(
            format!("this kernel attaches no programs to {name} that stay"),
            "Linux 6.6 or later is needed (tcx)",
        ),
        Errno::ERANGE => Problem::new(format!("{name} has as many programs as a device can have"), "take one away"),
        other => Problem::new(format!("the kernel attaches nothing to {name} ({})", other.desc()), ""),
    })
}

/// Keeps a link, map or program when this process ends.
pub(crate) fn pin(what: BorrowedFd<'_>, path: &Path) -> Result<(), Problem> {
    let text = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: the descriptor is open and the path a string that ends with a zero.
    match unsafe { libbpf_sys::bpf_obj_pin(what.as_raw_fd(), text.as_ptr()) } {
        0 => Ok(()),
        error => {
            let why = Errno::from_raw(-error).desc();
            Err(Problem::denied(format!("{} could not be made: {why}", path.display()), "this needs root"))
        }
    }
}

/// The network namespace of an `ip netns exec` in which this process runs. What is pinned stays
/// only where its file system does: not in the mount namespace that it makes for a command, whose
/// /sys is named after the network namespace.
pub(crate) fn executed_in() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut sources = mounts.lines().filter_map(|line| line.strip_suffix(" 0 0")).filter_map(|line| {
        let mut parts = line.split(' ');
        let (source, place, kind) = (parts.next()?, parts.next()?, parts.next()?);
        (place == "/sys" && kind == "sysfs").then_some(source)
    });
    sources.next_back().filter(|source| Path::new(NAMESPACES).join(source).exists()).map(str::to_owned)
}
