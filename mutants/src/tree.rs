//! The copy of the tree that is changed and built.

use crate::Result;
use crate::sites::{self, Site};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A source of a crate with the places in it that can be changed.
pub(crate) struct Source {
    /// The crate.
    pub(crate) name: String,
    /// Below the `src` of the crate.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) sites: Vec<Site>,
}

/// Where the copy is. No other run can use it meanwhile.
pub(crate) struct Tree {
    /// The folder of the copy.
    pub(crate) root: PathBuf,
    /// What is built from it.
    pub(crate) target: PathBuf,
    /// The crates that are changed, the names of their folders.
    pub(crate) names: Vec<String>,
    /// Other crates whose tests are run.
    pub(crate) with: Vec<String>,
    _lock: File,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

impl Tree {
    /// Copies the tree that this program was compiled in to `folder`.
    pub(crate) fn open(folder: &Path, names: &[String], with: &[String]) -> Result<Tree> {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("there is no tree above this program")?;
        let missing = |name: &&String| !original.join("crates").join(name).join("src/lib.rs").is_file();
        if let Some(name) = names.iter().chain(with).find(missing) {
            return Err(format!("there is no crates/{name}/src/lib.rs in {}", original.display()));
        }
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let folder = fs::canonicalize(folder).map_err(failed(folder))?;
        let lock = File::create(folder.join("lock")).map_err(failed(&folder))?;
        lock.try_lock().map_err(|_| format!("{} is in use: name another with --folder", folder.display()))?;
        let (root, target) = (folder.join("tree"), folder.join("target"));
        copy(original, &root, true)?;
        Ok(Tree { root, target, names: names.to_vec(), with: with.to_vec(), _lock: lock })
    }

    /// A crate's sources in the copy.
    fn base(&self, name: &str) -> PathBuf {
        self.root.join("crates").join(name).join("src")
    }

    /// All sources of the libraries that are compiled without tests.
    pub(crate) fn sources(&self, constants: bool) -> Result<Vec<Source>> {
        let mut all = vec![];
        for name in &self.names {
            all.append(&mut self.of_crate(name, constants)?);
        }
        Ok(all)
    }

    /// Not by following `mod`: macros declare modules too.
    fn of_crate(&self, name: &str, constants: bool) -> Result<Vec<Source>> {
        let base = self.base(name);
        let mut paths = vec![];
        list(&base, &base, &mut paths)?;
        let (mut sources, mut for_tests) = (vec![], vec![PathBuf::from("main"), PathBuf::from("bin")]);
        for path in paths {
            let file = base.join(&path);
            let text = fs::read_to_string(&file).map_err(failed(&file))?;
            let found = sites::find(&text, constants).map_err(|e| format!("{}: {e}", file.display()))?;
            let root = ["lib.rs", "mod.rs"].iter().any(|name| path.ends_with(name));
            let beside = if root { path.with_file_name("") } else { path.with_extension("") };
            for_tests.extend(found.for_tests.iter().map(|m| m.iter().fold(beside.clone(), |p, name| p.join(name))));
            sources.push(Source { name: name.to_string(), path, text, sites: found.sites });
        }
        // A module and everything below it.
        sources.retain(|s| !s.path.with_extension("").ancestors().any(|p| for_tests.iter().any(|t| t == p)));
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(sources)
    }

    /// Writes a source of a crate.
    pub(crate) fn write(&self, name: &str, path: &Path, text: &str) -> Result<()> {
        write(&self.base(name).join(path), text.as_bytes())
    }
}

/// The Rust files in `folder` and below, by their paths from `base`.
fn list(base: &Path, folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(failed(folder))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(base, &path, paths)?;
        } else if let Some(below) = path.strip_prefix(base).ok().filter(|p| p.extension().is_some_and(|e| e == "rs")) {
            paths.push(below.to_path_buf());
        }
    }
    Ok(())
}

/// Writes only what differs: cargo builds again what was written since it built it.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::write(path, content).map_err(failed(path))
}

/// Makes `to` the same as `from`, without what is built and what is hidden.
fn copy(from: &Path, to: &Path, top: bool) -> Result<()> {
    fs::create_dir_all(to).map_err(failed(to))?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(from).map_err(failed(from))? {
        let entry = entry.map_err(failed(from))?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text.starts_with('.') || text == "target" || top && ["mutants", "fuzz", "results"].contains(&&*text) {
            continue;
        }
        let (path, there) = (entry.path(), to.join(&name));
        if path.is_dir() {
            copy(&path, &there, false)?;
        } else {
            write(&there, &fs::read(&path).map_err(failed(&path))?)?;
        }
        names.insert(name);
    }
    for entry in fs::read_dir(to).map_err(failed(to))?.flatten().filter(|e| !names.contains(&e.file_name())) {
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(failed(&path))?;
    }
    Ok(())
}
