//! Files that are there whole or not at all, and folders that one program at a time writes into
//! ([`HeldFolder`]).
//!
//! A [`WholeFile`] is written beside its place and takes its name when it is finished. Until then
//! nobody sees it, and an existing file of that name stays what it was; afterwards the new one has
//! that file's permissions. A symbolic link stays: what it names is replaced. What is no regular
//! file (a device, a pipe) cannot be replaced: it is given the bytes as they come.
//!
//! ```
//! use std::io::Write as _;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("new").join("result.csv");
//! let mut file = flowstart_files::WholeFile::create(&path)?;
//! file.write_all(b"rate\n")?;
//! assert!(!path.exists());
//! file.finish()?;
//! assert_eq!(std::fs::read(&path)?, b"rate\n");
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

mod held;

pub use held::HeldFolder;

/// Most symbolic links that lead from one to the next (Linux: 40).
const MOST_LINKS: usize = 40;

/// A file that is being written.
#[derive(Debug)]
pub struct WholeFile(To);

#[derive(Debug)]
enum To {
    /// A new file, and the name that it will take.
    Beside(NamedTempFile, PathBuf),
    /// What cannot be replaced.
    Direct(File),
}

impl WholeFile {
    /// Begins a file of this name. Missing folders are made.
    ///
    /// # Errors
    /// If the folder cannot be made or written, or if the name is a folder's or none.
    pub fn create(path: &Path) -> io::Result<Self> {
        let old = fs::metadata(path).ok();
        if old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if old.as_ref().is_some_and(|old| !old.is_file()) || names_a_descriptor(path) {
            return Ok(Self(To::Direct(OpenOptions::new().append(true).open(path)?)));
        }
        let path = followed(path)?;
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(".tmp");
        // Temporary files are private; results are what the user's files are.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = match builder.tempfile_in(folder) {
            // With what is added to it the name is too long.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                builder.prefix(".flowstart-").tempfile_in(folder)?
            }
            file => file?,
        };
        if let Some(old) = old {
            file.as_file().set_permissions(old.permissions())?;
            // Only root may give a file away; elsewhere it is that of whom it was.
            #[cfg(unix)]
            {
                use std::os::unix::fs::MetadataExt as _;
                let _ = std::os::unix::fs::fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
            }
        }
        Ok(Self(To::Beside(file, path)))
    }

    /// The file itself.
    #[must_use]
    pub fn as_file_mut(&mut self) -> &mut File {
        match &mut self.0 {
            To::Beside(file, _) => file.as_file_mut(),
            To::Direct(file) => file,
        }
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// If that cannot be done. Then there is no new file, and an existing one is what it was.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            To::Beside(file, path) => file.persist(path).map(drop).map_err(|error| error.error),
            To::Direct(mut file) => file.flush(),
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.as_file_mut().flush()
    }
}

/// Whether this is `/dev/stdout` or its like, which may be a regular file that others write to.
fn names_a_descriptor(path: &Path) -> bool {
    let of_process = |path: &Path| path.starts_with("/dev/fd") || path.starts_with("/proc");
    of_process(path) || fs::read_link(path).is_ok_and(|named| path.starts_with("/dev") && of_process(&named))
}

/// Where symbolic links lead from here, be a file there or not.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(named) => path = path.parent().unwrap_or(Path::new("")).join(named),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "symbolic links lead in a circle"))
}

/// Writes a file at once, and waits until it is on the disk.
///
/// # Errors
/// As [`WholeFile`].
pub fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_atomically_by(path, |file| file.write_all(contents))
}

/// The same for what is too long to be in memory: `write` is given the file.
///
/// # Errors
/// As [`WholeFile`], and that of `write`.
pub fn write_atomically_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = WholeFile::create(path)?;
    write(file.as_file_mut())?;
    if let To::Beside(file, _) = &file.0 {
        file.as_file().sync_all()?;
    }
    file.finish()
}
