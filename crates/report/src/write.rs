//! Files that are there completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file so that nobody ever sees half of it: into a new file beside it, which then takes
/// its name.
///
/// Missing folders are made. On failure an existing file stays as it was and the new one is
/// removed.
///
/// # Errors
///
/// Whatever the system says about the folder or the file, with the path in front; a path without a
/// file name is invalid.
pub fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_atomically_by(path, |file| file.write_all(contents))
}

/// The same for what is too long to be in memory: `write` is given the file.
///
/// # Errors
/// With the path in its text; that of `write`, too.
pub fn write_atomically_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let about = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let name = path.file_name().ok_or_else(|| about(io::Error::new(io::ErrorKind::InvalidInput, "not a file name")))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(about)?;
    // Two threads or processes may write the same report at the same time.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{count}.tmp", std::process::id()));
    let temporary = folder.join(temporary);
    let written = (|| {
        let mut file = File::create_new(&temporary)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    written.map_err(|error| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
        about(error)
    })
}
