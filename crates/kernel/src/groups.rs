//! The root of the control groups (cgroup v2), where a program hears of every connection of the
//! machine.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::Problem;

/// Where they are mounted for a moment if nobody mounted them.
const OWN: &str = "/run/flowstart-groups";

/// The first place where their root is mounted; not only a part of them, as in some containers.
fn mounted(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        (kind.split(' ').next()? == "cgroup2" && root == "/").then(|| PathBuf::from(point))
    })
}

fn open() -> io::Result<File> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(root) = mounted(&mounts) {
        return File::open(root);
    }
    fs::create_dir_all(OWN)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let opened =
        mount(Some("cgroup2"), OWN, Some("cgroup2"), flags, None::<&Path>).map_err(io::Error::from).and_then(|()| {
            let opened = File::open(OWN);
            let _ = umount2(OWN, MntFlags::MNT_DETACH);
            opened
        });
    let _ = fs::remove_dir(OWN);
    opened
}

/// Their root.
///
/// # Errors
/// If this kernel has none, or this user may not.
pub(crate) fn root() -> Result<File, Problem> {
    open().map_err(|error| {
        let remedy = "without requests after idle times it can be loaded (--param after_idle=off)";
        Problem::denied(format!("the root of the control groups (cgroup v2) cannot be opened ({error})"), remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_only_a_part_of_the_groups_is_mounted_is_not_their_root() {
        let part = "36 25 0:29 /docker/1 /sys/fs/cgroup ro,nosuid shared:9 - cgroup2 cgroup rw";
        let old = "35 25 0:28 / /sys/fs/cgroup/cpu rw shared:8 - cgroup cgroup rw,cpu";
        let whole = "34 25 0:27 / /sys/fs/cgroup/unified rw shared:7 - cgroup2 cgroup2 rw";
        assert_eq!(mounted(&[part, old].join("\n")), None);
        assert_eq!(mounted(&[part, old, whole].join("\n")), Some(PathBuf::from("/sys/fs/cgroup/unified")));
    }
}
