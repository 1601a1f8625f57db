//! Where registered algorithms are kept: a BPF file system. Most systems have one; if not, one of
//! our own is mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

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

/// Our folder on the usual file system or, if there is none, on our own, which is mounted for it.
pub(crate) fn make_folder() -> io::Result<PathBuf> {
    let mounted = mounted();
    let root = [USUAL, OWN].into_iter().map(Path::new).find(|root| mounted.iter().any(|point| point == root));
    let root = match root {
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
