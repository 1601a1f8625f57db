//! What is written, replaced and left alone.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flowstart_files::{WholeFile, write_atomically, write_atomically_by};
use tempfile::tempdir;

/// How many files and folders are in it.
fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("result");
    write_atomically(&path, b"old").unwrap();
    let failed = write_atomically_by(&path, |file| file.write_all(b"new").and(Err(io::ErrorKind::StorageFull.into())));
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    let mut dropped = WholeFile::create(&path).unwrap();
    dropped.write_all(b"half").unwrap();
    drop(dropped);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(entries(folder.path()), 1);
}

#[test]
fn folders_are_made_and_not_replaced() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("new");
    write_atomically(&path.join("result"), b"x").unwrap();
    assert_eq!(write_atomically(&path, b"x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
    assert!(write_atomically(Path::new("/"), b"x").is_err());
    assert!(write_atomically(Path::new(""), b"x").is_err());
    assert_eq!((entries(folder.path()), entries(&path)), (1, 1));
}

/// A part was named by the name without its ending: two downloads shared one.
#[test]
fn files_whose_names_differ_in_the_ending_do_not_meet() {
    let folder = tempdir().unwrap();
    let (one, two) = (folder.path().join("o.1"), folder.path().join("o.2"));
    let mut files = [WholeFile::create(&one).unwrap(), WholeFile::create(&two).unwrap()];
    files[0].write_all(b"one").unwrap();
    files[1].write_all(b"two").unwrap();
    for file in files {
        file.finish().unwrap();
    }
    assert_eq!((fs::read(one).unwrap(), fs::read(two).unwrap()), (b"one".to_vec(), b"two".to_vec()));
}

#[test]
fn the_longest_names_can_be_written() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("x".repeat(255));
    write_atomically(&path, b"x").unwrap();
    assert!(path.exists());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_replaced_keeps_its_permissions_and_what_is_new_is_no_secret() {
        let folder = tempdir().unwrap();
        let (private, new, usual) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
        fs::write(&private, b"old").unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&private, b"new").unwrap();
        assert_eq!(mode(&private), 0o600);
        write_atomically(&new, b"new").unwrap();
        fs::write(&usual, b"new").unwrap();
        assert_eq!(mode(&new), mode(&usual));
    }

    #[test]
    fn a_link_stays_and_what_it_names_is_written() {
        let folder = tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (link, second, file) = (folder.path().join("link"), inner.join("second"), inner.join("file"));
        symlink("inner/second", &link).unwrap();
        symlink("file", &second).unwrap();
        for content in ["there was none", "there was one"] {
            write_atomically(&link, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert!(link.is_symlink() && second.is_symlink() && !file.is_symlink());
        assert_eq!((entries(folder.path()), entries(&inner)), (2, 2));
        symlink("circle", folder.path().join("circle")).unwrap();
        assert!(write_atomically(&folder.path().join("circle"), b"x").is_err());
    }

    /// A new named pipe.
    fn pipe_in(folder: &Path) -> PathBuf {
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        pipe
    }

    /// It was waited for somebody to read it, for ever.
    #[test]
    fn a_pipe_that_nobody_reads_is_refused_with_the_reason() {
        let folder = tempdir().unwrap();
        let pipe = pipe_in(folder.path());
        let said = WholeFile::create(&pipe).unwrap_err().to_string();
        assert!(said.contains("it is a pipe that nobody reads"), "{said}");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    /// The program waits for a slow reader, rather than to lose what does not fit into the pipe.
    #[test]
    fn a_pipe_takes_more_than_it_holds() {
        let folder = tempdir().unwrap();
        let pipe = pipe_in(folder.path());
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let reader = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(&pipe).unwrap();
        let mut file = WholeFile::create(&pipe).unwrap();
        // From here on reading waits for bytes.
        rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::empty()).unwrap();
        let reading = std::thread::spawn(move || io::copy(&mut &reader, &mut io::sink()).unwrap());
        let much = vec![0; 10 << 20];
        file.write_all(&much).unwrap();
        file.finish().unwrap();
        assert_eq!(reading.join().unwrap(), much.len() as u64);
    }

    /// A program that was killed left a hidden file.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_being_written_has_no_name_where_files_may_be_without() {
        let folder = tempdir().unwrap();
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
        if rustix::fs::open(folder.path(), flags, rustix::fs::Mode::empty()).is_err() {
            let _ = writeln!(io::stderr(), "skipped: the file system has no files without a name");
            return;
        }
        let path = folder.path().join("result");
        for content in ["there was none", "there was one"] {
            let before = entries(folder.path());
            let mut file = WholeFile::create(&path).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            assert_eq!(entries(folder.path()), before);
            file.finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(entries(folder.path()), 1);
        }
    }

    /// `/dev/null` became a file when root named it.
    #[test]
    fn pipes_and_devices_are_given_what_is_written_and_stay() {
        let folder = tempdir().unwrap();
        let pipe = pipe_in(folder.path());
        // Without waiting for somebody who writes.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut reader = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(&pipe).unwrap();
        write_atomically(&pipe, b"through").unwrap();
        let mut read = String::new();
        io::Read::read_to_string(&mut reader, &mut read).unwrap();
        assert_eq!(read, "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        // A link, so that a fault replaces this and not the machine's device.
        let null = folder.path().join("null");
        symlink("/dev/null", &null).unwrap();
        write_atomically(&null, b"gone").unwrap();
        assert!(null.is_symlink() && fs::metadata(&null).unwrap().file_type().is_char_device());
        assert_eq!(entries(folder.path()), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_told() {
        let folder = tempdir().unwrap();
        let full = folder.path().join("full");
        symlink("/dev/full", &full).unwrap();
        assert_eq!(write_atomically(&full, b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_descriptor_is_written_to_and_not_replaced() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        file.write_all(b"before ").unwrap();
        write_atomically(Path::new(&format!("/dev/fd/{descriptor}")), b"result ").unwrap();
        file.write_all(b"after").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "before result after");
    }
}
