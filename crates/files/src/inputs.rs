//! Files that a command reads, none of which it may replace.

use std::cell::RefCell;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

thread_local! {
    /// What the command on this thread has read; `None` outside of commands.
    static READ: RefCell<Option<Vec<(PathBuf, Place)>>> = const { RefCell::new(None) };
}

/// Which file it is, whatever name it is called by.
#[cfg(unix)]
type Place = (u64, u64);
#[cfg(not(unix))]
type Place = PathBuf;

/// That of a regular file: what cannot be replaced (a pipe, a terminal) may be read and written.
fn place(path: &Path) -> Option<Place> {
    let found = fs::metadata(path).ok().filter(Metadata::is_file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some((found.dev(), found.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        fs::canonicalize(path).ok()
    }
}

/// Does what a command does: from here on it is known what [was read](reads), until it is over. A
/// part of it may be a command itself, which heeds what was read before, too.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("mine.toml");
/// std::fs::write(&file, "all that I have")?;
/// flowstart_files::heeding_inputs(|| {
///     flowstart_files::reads(&file);
///     assert_eq!(flowstart_files::input_at(&file), Some(file.clone()));
///     assert!(flowstart_files::write_atomically(&file, b"results").is_err());
/// });
/// assert_eq!(std::fs::read(&file)?, b"all that I have");
/// flowstart_files::write_atomically(&file, b"results")?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn heeding_inputs<R>(work: impl FnOnce() -> R) -> R {
    /// Puts back what was there before, even if the work panics.
    struct Before(Option<Vec<(PathBuf, Place)>>);
    impl Drop for Before {
        fn drop(&mut self) {
            READ.replace(self.0.take());
        }
    }
    let _before = Before(READ.with_borrow_mut(|read| read.replace(read.clone().unwrap_or_default())));
    work()
}

/// This file is read, or will be: nothing may take its place until the command is over.
pub fn reads(path: &Path) {
    READ.with_borrow_mut(|read| {
        if let (Some(read), Some(place)) = (read, place(path)) {
            read.push((path.to_owned(), place));
        }
    });
}

/// The file that was read and that would be overwritten through this name, as it was called.
#[must_use]
pub fn input_at(path: &Path) -> Option<PathBuf> {
    READ.with_borrow(|read| {
        let read = read.as_ref().filter(|read| !read.is_empty())?;
        let place = place(path)?;
        read.iter().find(|(_, other)| *other == place).map(|(path, _)| path.clone())
    })
}

/// Refuses to overwrite a file that was read.
pub(crate) fn spare(path: &Path) -> io::Result<()> {
    input_at(path).map_or(Ok(()), |input| {
        let why = format!("it would overwrite {}, which is read", input.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    })
}
