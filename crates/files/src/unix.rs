//! What only Unix systems do with files.

use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::io::Errno;

/// Permissions of a new file, before what the user's mask takes away.
pub(crate) const MODE: u32 = 0o666;

/// How long somebody who reads a pipe is waited for: who starts both at once starts one of them
/// first.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a pipe is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Opens a named pipe to write into. To open it as a file would wait until somebody reads it, for
/// ever if nobody does.
pub(crate) fn open_pipe(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
    let began = Instant::now();
    loop {
        match open(path, flags | OFlags::NONBLOCK, Mode::empty()) {
            Ok(pipe) => {
                // Whoever reads may take time.
                fcntl_setfl(&pipe, flags & OFlags::APPEND)?;
                return Ok(pipe.into());
            }
            Err(Errno::NXIO) if began.elapsed() < PATIENCE => std::thread::sleep(LOOK_AGAIN),
            Err(Errno::NXIO) => {
                return Err(io::Error::other(
                    "it is a pipe that nobody reads; start who reads it first, or name a file",
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A new file without a name; `None` where there is no such thing, or no way to name it later.
#[cfg(target_os = "linux")]
pub(crate) fn nameless_in(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_bits_truncate(MODE)).ok()?);
    Path::new(&descriptor(&file)).exists().then_some(file)
}

/// Gives a file without a name one that there is none of.
#[cfg(target_os = "linux")]
pub(crate) fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Where the system has an open file of this program.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
