//! Quick-Start hosts: which devices' packets carry requests and answers (bpf/carrying.h,
//! bpf/hearing.h), and what became of them.

use std::fs;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::errno::Errno;

use crate::device::{self, Device, Order, Side};
use crate::{Algorithm, Problem, registered};

/// Name of the pin of the counts.
pub(crate) const COUNTS: &str = "counts";
/// Programs, by what they are called in the object and by their pins.
const PROGRAMS: [(&str, &str); 4] = [
    ("fs_out_ethernet", "out_ethernet"),
    ("fs_out_plain", "out_plain"),
    ("fs_in_ethernet", "in_ethernet"),
    ("fs_in_plain", "in_plain"),
];
/// Pins of links begin so; the device's number and its namespace follow.
const LINKS: [(Side, &str); 2] = [(Side::Egress, "at-out-"), (Side::Ingress, "at-in-")];

/// The pin of a program at devices.
pub(crate) fn pin_of(program: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|(name, _)| *name == program).map(|(_, pin)| *pin)
}

fn folder() -> Result<PathBuf, Problem> {
    let found = registered::loaded().into_iter().find(|loaded| loaded.algorithm == Algorithm::QuickStart);
    found
        .map(|loaded| loaded.folder)
        .ok_or_else(|| registered::not_there(Algorithm::QuickStart, "`flowstart kernel load quick_start` first"))
}

fn program(folder: &Path, side: Side, link_header: u32) -> Result<OwnedFd, Problem> {
    let pin = match (side, link_header) {
        (Side::Egress, 0) => "out_plain",
        (Side::Egress, _) => "out_ethernet",
        (Side::Ingress, 0) => "in_plain",
        (Side::Ingress, _) => "in_ethernet",
    };
    let path = folder.join(pin);
    let text = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default();
    // SAFETY: the path is a string that ends with a zero.
    match unsafe { libbpf_sys::bpf_obj_get(text.as_ptr()) } {
        // SAFETY: the kernel just gave this descriptor to nobody else.
        fd if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        error => {
            let why = Errno::from_raw(-error).desc();
            Err(Problem::denied(format!("{} cannot be opened: {why}", path.display()), "this needs root"))
        }
    }
}

/// Before whatever is there: a router at the same device sees what this host asks for.
fn order(side: Side) -> Order {
    if side == Side::Egress { Order::First } else { Order::Last }
}

/// Programs at a device of a host, until this is dropped or the device goes away.
#[derive(Debug)]
pub struct HostLinks {
    #[expect(dead_code, reason = "held, not read")]
    links: [OwnedFd; 2],
}

/// Lets packets that pass a device of this thread's network namespace carry what Quick-Start says,
/// as [`attach_host`] does, for as long as what is returned exists.
///
/// # Errors
/// If Quick-Start is not loaded, there is no such device, or this user may not.
pub fn carry_host(name: &str) -> Result<HostLinks, Problem> {
    let folder = folder()?;
    let found = Device::find(name)?;
    let at = |side| {
        let program = program(&folder, side, found.link_header)?;
        device::attach(program.as_fd(), &found, side, order(side))
    };
    Ok(HostLinks { links: [at(Side::Egress)?, at(Side::Ingress)?] })
}

/// From now on packets of this host that pass a device, in this network namespace or the one named
/// as `ip netns` knows it, carry what Quick-Start says: until the algorithm is unloaded or the
/// device goes away. Again for the same device changes nothing.
///
/// # Errors
/// If Quick-Start is not loaded, there is no such device, or this user may not.
pub fn attach_host(name: &str, namespace: Option<&str>) -> Result<(), Problem> {
    attach_hosts(&[name], namespace)
}

/// The same at several devices: at all of them, or at none that had nothing before.
///
/// # Errors
/// As [`attach_host`].
pub fn attach_hosts(names: &[impl AsRef<str>], namespace: Option<&str>) -> Result<(), Problem> {
    let mut made: Vec<PathBuf> = Vec::new();
    for name in names {
        match attach(name.as_ref(), namespace) {
            Ok(pins) => made.extend(pins),
            Err(problem) => {
                made.iter().for_each(|pin| drop(fs::remove_file(pin)));
                return Err(problem);
            }
        }
    }
    Ok(())
}

/// The links that were made for a device.
fn attach(name: &str, namespace: Option<&str>) -> Result<Vec<PathBuf>, Problem> {
    let folder = folder()?;
    let found = device::within(namespace, || Device::find(name))?;
    let mut made: Vec<PathBuf> = Vec::new();
    for (side, prefix) in LINKS {
        let pin = folder.join(format!("{prefix}{}-{}", found.index, found.namespace));
        if fs::symlink_metadata(&pin).is_ok() {
            if is_attached(&pin) {
                continue;
            }
            let _ = fs::remove_file(&pin);
        }
        let attached = program(&folder, side, found.link_header).and_then(|program| {
            let link = device::within(namespace, || device::attach(program.as_fd(), &found, side, order(side)))?;
            device::pin(link.as_fd(), &pin)
        });
        if let Err(problem) = attached {
            made.iter().for_each(|pin| drop(fs::remove_file(pin)));
            return Err(problem);
        }
        made.push(pin);
    }
    Ok(made)
}

/// True if a pinned link still leads to a device.
pub(crate) fn is_attached(pin: &Path) -> bool {
    let info = libbpf_rs::Link::open(pin).and_then(|link| link.info());
    match info.map(|info| info.info) {
        Ok(libbpf_rs::query::LinkTypeInfo::Tcx(tcx)) => tcx.ifindex != 0,
        _ => true,
    }
}

/// Devices of this network namespace that are up and lead somewhere: all but the loopback, and
/// those whose packets the programs cannot read.
#[must_use]
pub fn usual_devices() -> Vec<String> {
    const UP: u32 = 1;
    const LOOPBACK: u32 = 8;
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let flags = fs::read_to_string(entry.path().join("flags")).unwrap_or_default();
            let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0);
            flags & UP != 0 && flags & LOOPBACK == 0
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| Device::find(name).is_ok())
        .collect();
    names.sort();
    names
}

/// Devices at which the programs of Quick-Start hosts are: names for those of this network
/// namespace, numbers for others.
#[must_use]
pub fn host_devices() -> Vec<String> {
    let Ok(folder) = folder() else { return Vec::new() };
    let here = device::namespace();
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((index, namespace)) =
            name.to_str().and_then(|name| name.strip_prefix(LINKS[0].1)).and_then(|name| name.split_once('-'))
        else {
            continue;
        };
        let (Ok(index), Ok(namespace)) = (index.parse::<u32>(), namespace.parse::<u64>()) else { continue };
        if !is_attached(&entry.path()) {
            continue;
        }
        found.push(match device::name_of(index).filter(|_| namespace == here) {
            Some(name) => name,
            None => format!("device {index} of network namespace {namespace}"),
        });
    }
    found.sort();
    found
}

/// What became of requests since Quick-Start was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Requests sent.
    pub asked: u64,
    /// Requests whose packet had to be sent again.
    pub lost: u64,
    /// Answers that were good.
    pub granted: u64,
    /// Requests that nothing answered.
    pub unanswered: u64,
    /// Answers with a rate that was not asked for.
    pub wrong_rate: u64,
    /// Answers with a wrong TTL difference.
    pub wrong_ttl: u64,
    /// Answers with a wrong nonce.
    pub wrong_nonce: u64,
    /// Grants that were no larger than the window without them.
    pub too_small: u64,
    /// Grants that data was sent on.
    pub used: u64,
    /// Grants that no data followed in time.
    pub expired: u64,
    /// Losses and marks in a Quick-Start phase.
    pub congested: u64,
    /// Reports sent.
    pub reports: u64,
    /// Requests that came in.
    pub heard: u64,
    /// Answers sent.
    pub answered: u64,
    /// Packets that had no room for an option.
    pub failed: u64,
    /// Of the requests sent, those in mid-connection.
    pub asked_in_middle: u64,
}

/// What became of requests since Quick-Start was loaded.
///
/// # Errors
/// If it is not loaded, or this user may not see it.
pub fn host_counts() -> Result<HostCounts, Problem> {
    let path = folder()?.join(COUNTS);
    let unreadable =
        |why: String| Problem::denied(format!("{} cannot be read ({why})", path.display()), "this needs root");
    let map = MapHandle::from_pinned_path(&path).map_err(|error| unreadable(error.to_string()))?;
    let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| unreadable(error.to_string()))?;
    let bytes = bytes.unwrap_or_default();
    let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
    let mut next = || words.next().unwrap_or(0);
    Ok(HostCounts {
        asked: next(),
        lost: next(),
        granted: next(),
        unanswered: next(),
        wrong_rate: next(),
        wrong_ttl: next(),
        wrong_nonce: next(),
        too_small: next(),
        used: next(),
        expired: next(),
        congested: next(),
        reports: next(),
        heard: next(),
        answered: next(),
        failed: next(),
        asked_in_middle: next(),
    })
}
