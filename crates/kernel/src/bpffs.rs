//! Where registered algorithms are kept: a BPF file system. Most systems have one; if not, one of
//! our own is mounted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::{Problem, device};

/// Where distributions mount it.
const USUAL: &str = "/sys/fs/bpf";
/// Where we do if nobody did.
const OWN: &str = "/run/flowstart/bpf";
/// Our folder in it.
const FOLDER: &str = "flowstart";

/// Mount points of BPF file systems.
fn mounted() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_bpf = |line: &&str| line.split(' ').nth(2) == Some("bpf");
    mounts.lines().filter(is_bpf).filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from).collect()
}

/// Our folders, as far as they exist.
pub(crate) fn folders() -> Vec<PathBuf> {
    mounted().into_iter().map(|root| root.join(FOLDER)).filter(|folder| folder.is_dir()).collect()
}

/// The first BPF file system that this user may not look into.
pub(crate) fn hidden() -> Option<PathBuf> {
    // Root's capabilities may be missing although the user is root; so it is tried.
    let is_hidden = |path: &PathBuf| {
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let folder = path.join(FOLDER);
        fs::symlink_metadata(&folder).is_err_and(denied) || fs::read_dir(&folder).is_err_and(denied)
    };
    mounted().into_iter().find(is_hidden)
}

/// Refuses to mount one of our own where it would end with this mount namespace, and with it what
/// is loaded: in `ip netns exec` and the like, where an ancestor of this process has another one.
/// What cannot be found out is no reason.
pub(crate) fn check_lasting() -> Result<(), Problem> {
    if usable().is_some() {
        return Ok(());
    }
    if let Some(name) = device::executed_in() {
        return Err(Problem::new(
            format!("what is loaded in `ip netns exec {name}` ends with it"),
            "leave that out: an algorithm is there in all network namespaces (those of quick_start's devices: --netns)",
        ));
    }
    let namespace = |process: &str| fs::metadata(format!("/proc/{process}/ns/mnt")).map(|about| about.ino()).ok();
    let own = namespace("self");
    let mut process = "self".to_owned();
    while let Some(parent) = parent_of(&process).filter(|parent| *parent != "0") {
        if let Some(other) = namespace(&parent).filter(|_| own.is_some())
            && Some(other) != own
        {
            return Err(Problem::new(
                "what is loaded in a mount namespace without a BPF file system of others ends with it",
                format!("load it outside, or have {USUAL} mounted before"),
            ));
        }
        process = parent;
    }
    Ok(())
}

/// The number of a process's parent.
fn parent_of(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")).map(|parent| parent.trim().to_owned())
}

/// The usual file system or our own, if one of them is mounted.
fn usable() -> Option<&'static Path> {
    let mounted = mounted();
    [USUAL, OWN].into_iter().map(Path::new).find(|root| mounted.iter().any(|point| point == root))
}

/// Our folder on the usual file system or, if there is none, on our own, which is mounted for it.
pub(crate) fn make_folder() -> io::Result<PathBuf> {
    let root = match usable() {
        Some(root) => root,
        None => {
            fs::create_dir_all(OWN)?;
            mount(
                Some("bpf"),
                OWN,
                Some("bpf"),
                MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
                Some("mode=700"),
            )?;
            Path::new(OWN)
        }
    };
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Takes away our folder if it is empty, and the file system if it is our own.
pub(crate) fn clean(folder: &Path) {
    // A folder that is not empty stays, and so does what it is on.
    if fs::remove_dir(folder).is_ok() && folder.starts_with(OWN) && umount2(OWN, MntFlags::empty()).is_ok() {
        let _ = fs::remove_dir(OWN);
        let _ = fs::remove_dir("/run/flowstart");
    }
}
