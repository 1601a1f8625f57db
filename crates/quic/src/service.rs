//! What a server lets clients have.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use flowstart_units::Span;

/// What a server lets clients have.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Bytes of one transfer at most; default 10 GB.
    pub most_bytes: u64,
    /// Time of one transfer at most; default 60 s.
    pub most_time: Span,
    /// Connections of one address at the same time; default 8.
    pub per_peer: usize,
    /// The folder whose files may be fetched; none by default.
    pub root: Option<PathBuf>,
}

impl Default for Service {
    fn default() -> Self {
        Self { most_bytes: 10_000_000_000, most_time: Span::from_secs(60), per_peer: 8, root: None }
    }
}

/// A file below `root` by the name a client gave; nothing outside of it, whatever the name or links
/// say.
pub(crate) fn below(root: &Path, name: &str) -> Result<File, String> {
    let relative = Path::new(name);
    let no_file = || format!("there is no file {name:?}");
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) || name.is_empty() {
        return Err(no_file());
    }
    let root = root.canonicalize().map_err(|_| no_file())?;
    let path = root.join(relative).canonicalize().map_err(|_| no_file())?;
    // Looked at before it is opened: to open a pipe waits for whoever writes into it.
    let is_file = std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
    if path.starts_with(&root) && is_file { File::open(&path).map_err(|_| no_file()) } else { Err(no_file()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_below_the_root_and_nowhere_else() {
        let root = std::env::temp_dir().join(format!("flowstart-root-{}", std::process::id()));
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(root.join("in/a.txt"), b"abc").unwrap();
        assert!(below(&root, "in/a.txt").is_ok());
        for name in ["", ".", "in", "../in/a.txt", "/etc/passwd", "in/../../x", "none"] {
            assert!(below(&root, name).is_err(), "{name}");
        }
        #[cfg(unix)]
        {
            let pipe = root.join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let (sender, said) = std::sync::mpsc::channel();
            let folder = root.clone();
            std::thread::spawn(move || sender.send(below(&folder, "pipe").is_err()));
            let waited = said.recv_timeout(std::time::Duration::from_secs(60));
            assert_eq!(waited, Ok(true), "a pipe that nobody writes into");
            std::os::unix::fs::symlink("/etc/passwd", root.join("out")).unwrap();
            assert!(below(&root, "out").is_err(), "a link that leads out");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
