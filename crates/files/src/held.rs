//! Folders that one program at a time writes into.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a folder that another holds is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A folder that nobody else holds until this is dropped. The system lets go of it when the program
/// ends, however it ends.
///
/// ```
/// use std::time::Duration;
///
/// use flowstart_files::HeldFolder;
///
/// let folder = tempfile::tempdir()?;
/// let held = HeldFolder::take(folder.path(), Duration::ZERO);
/// assert!(held.is_some());
/// assert!(HeldFolder::take(folder.path(), Duration::ZERO).is_none());
/// drop(held);
/// assert!(HeldFolder::take(folder.path(), Duration::ZERO).is_some());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HeldFolder(#[expect(dead_code, reason = "held, not used")] Option<File>);

impl HeldFolder {
    /// Takes a folder that is there; `None` if another has not let go of it within `patience`.
    ///
    /// Where a folder cannot be opened as a file (not on Unix), and on file systems without locks,
    /// everybody gets it.
    #[must_use]
    pub fn take(folder: &Path, patience: Duration) -> Option<Self> {
        let Ok(file) = File::open(folder) else { return Some(Self(None)) };
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Some(Self(Some(file))),
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => std::thread::sleep(LOOK_AGAIN),
                Err(TryLockError::WouldBlock) => return None,
                Err(TryLockError::Error(_)) => return Some(Self(None)),
            }
        }
    }
}
