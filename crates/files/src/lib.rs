//! Files that are there whole or not at all, and folders that one program at a time writes into
//! ([`HeldFolder`]).
//!
//! A [`WholeFile`] is written beside its place and takes its name when it is finished. Until then
//! nobody sees it, and an existing file of that name stays what it was; afterwards the new one has
//! that file's permissions. Where the system lets files be without a name (Linux, on most file
//! systems) nothing is left of it if the program is killed; elsewhere a hidden file is. A symbolic
//! link stays: what it names is replaced. What is no regular file (a device, a pipe that somebody
//! reads) cannot be replaced: it is given the bytes as they come. What a command [reads] is not
//! replaced while it runs.
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

use tempfile::{Builder, NamedTempFile, PersistError};

mod held;
mod inputs;
#[cfg(unix)]
mod unix;
mod why;

pub use held::HeldFolder;
pub use inputs::{heeding_inputs, input_at, reads};
pub use why::{why, why_unread};

/// Most symbolic links that lead from one to the next (Linux: 40).
const MOST_LINKS: usize = 40;

/// A file that is being written.
#[derive(Debug)]
pub struct WholeFile(To);

#[derive(Debug)]
enum To {
    /// A new file, and the name that it will take.
    Beside(NamedTempFile, PathBuf),
    /// The same without a name meanwhile.
    #[cfg(target_os = "linux")]
    Nameless(File, PathBuf),
    /// What cannot be replaced.
    Direct(File),
}

impl WholeFile {
    /// Begins a file of this name. Missing folders are made.
    ///
    /// # Errors
    /// If the folder cannot be made or written, if the name is a folder's or none, or if it is that
    /// of a pipe that nobody reads, not after a second either; or that of a file that the command
    /// [reads].
    pub fn create(path: &Path) -> io::Result<Self> {
        inputs::spare(path)?;
        let old = fs::metadata(path).ok();
        if old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        #[cfg(unix)]
        if old.as_ref().is_some_and(|old| std::os::unix::fs::FileTypeExt::is_fifo(&old.file_type())) {
            return Ok(Self(To::Direct(unix::open_pipe(path)?)));
        }
        if old.as_ref().is_some_and(|old| !old.is_file()) || names_a_descriptor(path) {
            return Ok(Self(To::Direct(OpenOptions::new().append(true).open(path)?)));
        }
        let path = followed(path)?;
        if path.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
        }
        let folder = folder_of(&path);
        fs::create_dir_all(folder)?;
        #[cfg(target_os = "linux")]
        if let Some(file) = unix::nameless_in(folder) {
            replacing(&file, old.as_ref())?;
            return Ok(Self(To::Nameless(file, path)));
        }
        let file = beside(&path, |builder| builder.tempfile_in(folder))?;
        replacing(file.as_file(), old.as_ref())?;
        Ok(Self(To::Beside(file, path)))
    }

    /// The file itself.
    #[must_use]
    pub fn as_file_mut(&mut self) -> &mut File {
        match &mut self.0 {
            To::Beside(file, _) => file.as_file_mut(),
            #[cfg(target_os = "linux")]
            To::Nameless(file, _) => file,
            To::Direct(file) => file,
        }
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// If that cannot be done. Then there is no new file, and an existing one is what it was.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            To::Beside(file, path) => persist(file, &path),
            #[cfg(target_os = "linux")]
            To::Nameless(mut file, path) => {
                // Only a new name can be given to it, which then replaces the old file.
                let linked = beside(&path, |builder| builder.make_in(folder_of(&path), |name| unix::link(&file, name)));
                match linked {
                    Ok(linked) => persist(linked, &path),
                    // Rare systems do not let it have one. What it holds is not lost for that.
                    Err(_) => persist(copied(&mut file, &path)?, &path),
                }
            }
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

/// The folder that a file of this name is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Has a hidden file made for what will be called `path`.
fn beside<R>(path: &Path, make: impl Fn(&Builder<'_, '_>) -> io::Result<R>) -> io::Result<R> {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    // Temporary files are private; results are what the user's files are.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(unix::MODE));
    match make(&builder) {
        // With what is added to it the name is too long.
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => make(builder.prefix(".flowstart-")),
        made => made,
    }
}

/// Makes a new file that of whom the old one is, if there is one, with its permissions.
fn replacing(file: &File, old: Option<&fs::Metadata>) -> io::Result<()> {
    let Some(old) = old else { return Ok(()) };
    file.set_permissions(old.permissions())?;
    // Only root may give a file away; elsewhere it is that of whom it was.
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    }
    Ok(())
}

/// Gives a hidden file the name that it is for.
fn persist<F>(file: NamedTempFile<F>, path: &Path) -> io::Result<()> {
    file.persist(path).map(drop).map_err(|PersistError { error, .. }| error)
}

/// A hidden file beside `path` with what is in this one, and its permissions.
#[cfg(target_os = "linux")]
fn copied(file: &mut File, path: &Path) -> io::Result<NamedTempFile> {
    use std::io::Seek as _;
    let mut copy = beside(path, |builder| builder.tempfile_in(folder_of(path)))?;
    file.rewind()?;
    io::copy(file, copy.as_file_mut())?;
    replacing(copy.as_file(), Some(&file.metadata()?))?;
    copy.as_file().sync_all()?;
    Ok(copy)
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
    if !matches!(file.0, To::Direct(_)) {
        file.as_file_mut().sync_all()?;
    }
    file.finish()
}
