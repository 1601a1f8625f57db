//! What the system says of files, in words.

use std::io;
use std::path::Path;

/// Why a file or folder cannot be read or written, as a part of a sentence: "no space is left".
///
/// ```
/// use std::io::{Error, ErrorKind};
///
/// assert_eq!(flowstart_files::why(&ErrorKind::StorageFull.into()), "no space is left");
/// // What has no words here is what the system calls it, without its number.
/// # #[cfg(target_os = "linux")]
/// assert_eq!(flowstart_files::why(&Error::from_raw_os_error(5)), "Input/output error");
/// ```
#[must_use]
pub fn why(error: &io::Error) -> String {
    let known = match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::IsADirectory => "it is a folder",
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a folder",
        io::ErrorKind::AlreadyExists => "a file of that name is in the way",
        io::ErrorKind::InvalidFilename => "the name is too long, or has what no name may have",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no space is left",
        io::ErrorKind::FileTooLarge => "it is longer than files may be here (ulimit -f)",
        _ if leads_in_a_circle(error) => "symbolic links lead in a circle",
        _ => {
            let said = error.to_string();
            let end = said.rfind(" (os error ").filter(|_| said.ends_with(')')).unwrap_or(said.len());
            return said[..end].to_owned();
        }
    };
    known.to_owned()
}

/// The same of a file that was to be read.
#[must_use]
pub fn why_unread(path: &Path, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound && path == Path::new("-") {
        return "no such file; standard input is /dev/stdin".to_owned();
    }
    why(error)
}

#[cfg(unix)]
fn leads_in_a_circle(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

#[cfg(not(unix))]
fn leads_in_a_circle(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_told_in_words_and_without_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("circle", at("circle")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        let said = |path: &Path| why(&std::fs::read(path).unwrap_err());
        assert_eq!(said(&at("circle")), "symbolic links lead in a circle");
        assert_eq!(said(folder.path()), "it is a folder");
        assert_eq!(said(&at("none")), "no such file or folder");
        assert_eq!(said(&at("file/none")), "a part of the path is a file, not a folder");
        assert_eq!(why(&io::Error::other("as it was said (so)")), "as it was said (so)");
        let none = io::ErrorKind::NotFound.into();
        assert_eq!(why_unread(Path::new("-"), &none), "no such file; standard input is /dev/stdin");
        assert_eq!(why_unread(Path::new("a"), &none), "no such file or folder");
    }
}
