//! What a benchmark of real stacks has finished, in a folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flowstart_benchmark::{Benchmark, Kept, KeptError, KeptOf, KeptRate};
use flowstart_files::{why, write_atomically};
use flowstart_service_curve::{Record, read_csv, write_csv};
use flowstart_units::Rate;
use serde::{Deserialize, Serialize};

use super::delays::plain_name;
use crate::output::{Failure, prepare_folder, spare_inputs};

/// The folder, in that of the results.
const FOLDER: &str = "finished";
/// What was measured how; its files are of use for nothing else.
const PARAMETERS: &str = "parameters.json";
/// How the name of a finished rate ends, behind its bits per second.
const ENDING: &str = "bps.csv";

/// How the name of the file ends that vouches for one of them.
const SEAL: &str = "bps.json";

/// Hexadecimal digits that tell stacks of one label apart.
const APART: usize = 12;

/// What a file of a finished rate was like when it was written.
#[derive(PartialEq, Serialize, Deserialize)]
struct Seal {
    rows: usize,
    blake3: String,
    /// Whose rate it is.
    #[serde(default)]
    stack: String,
    /// What else is to be known of how it was measured.
    #[serde(default)]
    path: serde_json::Value,
}

impl Seal {
    fn new(of: KeptOf<'_>, text: &[u8], rows: usize, path: serde_json::Value) -> Self {
        Self { rows, blake3: blake3::hash(text).to_hex().to_string(), stack: of.identity.to_owned(), path }
    }

    /// What is wrong with so many rows of text that were found in its place.
    fn broken_by(&self, text: &[u8], rows: usize) -> Option<String> {
        if blake3::hash(text).to_hex().as_str() == self.blake3 && rows == self.rows {
            return None;
        }
        Some(match rows < self.rows {
            true => format!("it has {rows} of the {} rows that were written", self.rows),
            false => "it is not as it was written".to_owned(),
        })
    }
}

/// Files of finished rates.
pub(super) struct Finished {
    folder: PathBuf,
    /// What they are measured with.
    conditions: String,
    /// What is there is of an earlier benchmark: it counts for nothing, and makes way for the first
    /// rate that is finished. Who fails before has not lost it.
    earlier: Mutex<bool>,
}

impl Finished {
    /// Those in this folder of results, if they are to be used again and are of the same benchmark;
    /// else none.
    pub(super) fn open(results: &Path, benchmark: &Benchmark, resume: bool) -> Result<Self, Failure> {
        let folder = results.join(FOLDER);
        let parameters = folder.join(PARAMETERS);
        let wanted = format!("{:#}\n", conditions(benchmark));
        if resume {
            match there(&parameters).map_err(Failure::Usage)? {
                Some(found) if found == wanted.as_bytes() => {
                    return Ok(Self { folder, conditions: wanted, earlier: Mutex::new(false) });
                }
                Some(found) if !says_conditions(&found, benchmark) => {
                    return Err(Failure::Usage(format!(
                        "{} does not say what {} was measured with (it was damaged, or is of another version): leave \
                         --resume out to begin anew",
                        parameters.display(),
                        folder.display()
                    )));
                }
                Some(_) => {
                    return Err(Failure::Usage(format!(
                        "what {} has was measured with other options: name those, or leave --resume out to begin anew",
                        folder.display()
                    )));
                }
                // It was ended before anything was finished.
                None => {}
            }
        }
        spare_inputs(left_behind(&folder).map_err(Failure::Usage)?)?;
        // What they are measured with is written with the first of them, so that a command that
        // fails before leaves nothing behind.
        prepare_folder(&folder)?;
        Ok(Self { folder, conditions: wanted, earlier: Mutex::new(true) })
    }

    fn earlier(&self) -> MutexGuard<'_, bool> {
        // It is a flag: whoever failed while it was held left one of its two values.
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes away what an earlier benchmark left, once, and nothing else.
    fn make_way(&self) -> Result<(), String> {
        let mut earlier = self.earlier();
        if *earlier {
            let remove = |file: &PathBuf| {
                std::fs::remove_file(file)
                    .map_err(|error| format!("cannot replace {}: {}", file.display(), why(&error)))
            };
            left_behind(&self.folder)?.iter().try_for_each(remove)?;
            *earlier = false;
        }
        Ok(())
    }

    /// The file of a rate. Two stacks of one label are told apart by a hash.
    fn file(&self, of: KeptOf<'_>, rate: Rate, ending: &str) -> PathBuf {
        let apart = match of.identity == of.label {
            true => String::new(),
            false => format!("-{}", &blake3::hash(of.identity.as_bytes()).to_hex()[..APART]),
        };
        self.folder.join(format!("{}{apart}-{}{ending}", plain_name(of.label), rate.as_bps()))
    }
}

/// What must be the same for finished rates to be of use: all but which stacks there are.
fn conditions(benchmark: &Benchmark) -> serde_json::Value {
    let mut parameters = benchmark.parameters();
    if let Some(all) = parameters.as_object_mut() {
        all.remove("real");
        all.remove("contestants");
    }
    parameters
}

/// Whether a text says all that must be the same, whatever it says of it.
fn says_conditions(text: &[u8], benchmark: &Benchmark) -> bool {
    let found: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    conditions(benchmark).as_object().into_iter().flat_map(|all| all.keys()).all(|key| found.get(key).is_some())
}

/// The capacity of the path to there, as what was finished was measured with, if it was.
#[cfg(feature = "quic")]
pub(super) fn capacity_kept(results: &Path, to: &str) -> Option<Rate> {
    let text = there(&results.join(FOLDER).join(PARAMETERS)).ok()??;
    let parameters: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let path = &parameters["path"];
    // What else differs is found out later.
    (path["to"] == to).then(|| serde_json::from_value(path["capacity"].clone()).ok()).flatten()
}

/// What a file has, if it is there. A pipe would be waited for, and a device may never end.
fn there(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let read = std::fs::metadata(path).and_then(|found| found.is_file().then(|| std::fs::read(path)).transpose());
    match read {
        Ok(Some(text)) => Ok(Some(text)),
        Ok(None) => Err(format!("cannot use {}: it is no file", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot use {}: {}", path.display(), why(&error))),
    }
}

/// The files that an earlier benchmark left, if there are no others.
fn left_behind(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot replace {}: {}", folder.display(), why(&error));
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>().map_err(failed)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let files: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    let ours = |file: &PathBuf| {
        let name = file.to_string_lossy();
        file.ends_with(PARAMETERS) || name.ends_with(ENDING) || name.ends_with(SEAL)
    };
    match files.iter().find(|file| !ours(file)) {
        Some(other) => Err(format!("{} is in the way: it is no finished rate", other.display())),
        None => Ok(files),
    }
}

impl Kept for Finished {
    fn known(&self, of: KeptOf<'_>, rate: Rate) -> Result<Option<KeptRate>, KeptError> {
        if *self.earlier() {
            return Ok(None);
        }
        let (path, seal) = (self.file(of, rate, ENDING), self.file(of, rate, SEAL));
        let again = "remove it to have the rate probed again, or leave --resume out to begin anew";
        let unusable =
            |path: &Path, error: &dyn std::fmt::Display| format!("cannot use {}: {error}; {again}", path.display());
        let wrong = |error: &dyn std::fmt::Display| unusable(&path, error);
        // Of a file that nobody vouches for nothing is known: it was never finished.
        let (Some(text), Some(sealed)) = (there(&path)?, there(&seal)?) else { return Ok(None) };
        let rows = read_csv(text.as_slice()).map_err(|error| wrong(&error))?;
        let records = rows.collect::<Result<Vec<Record>, _>>().map_err(|error| wrong(&error))?;
        match records.iter().find(|record| record.rate != Some(rate)).map(|record| record.rate) {
            Some(Some(other)) => return Err(wrong(&format!("it was measured at {other}")).into()),
            Some(None) => return Err(wrong(&"it does not say at which rate it was measured").into()),
            None => {}
        }
        let sealed: Seal = serde_json::from_slice(&sealed).map_err(|error| unusable(&seal, &error))?;
        match sealed.broken_by(&text, records.len()) {
            Some(why) => Err(wrong(&why).into()),
            // Of another stack.
            None if sealed.stack != of.identity => Ok(None),
            None => Ok(Some(KeptRate { records, path: sealed.path })),
        }
    }

    fn keep(
        &self,
        of: KeptOf<'_>,
        rate: Rate,
        records: &[Record],
        path_of: serde_json::Value,
    ) -> Result<(), KeptError> {
        self.make_way()?;
        let (path, seal) = (self.file(of, rate, ENDING), self.file(of, rate, SEAL));
        let parameters = self.folder.join(PARAMETERS);
        let write = |path: &Path, text: &[u8]| {
            write_atomically(path, text).map_err(|error| format!("cannot write {}: {}", path.display(), why(&error)))
        };
        if !parameters.exists() {
            write(&parameters, self.conditions.as_bytes())?;
        }
        let ends = records.iter().any(|record| record.passed.is_some());
        let rated = records.iter().map(|record| Record { rate: Some(rate), ..*record });
        let mut text = Vec::new();
        write_csv(&mut text, rated, ends).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        // The seal first: without what it vouches for it is nothing.
        let sealed = Seal::new(of, &text, records.len(), path_of);
        write(&seal, &serde_json::to_vec(&sealed).map_err(|error| error.to_string())?)?;
        Ok(write(&path, &text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIC: KeptOf<'_> = KeptOf { label: "cubic", identity: "cubic" };

    /// Programs of one interpreter are called alike, and the kernel's controls change with it.
    #[test]
    fn what_was_measured_of_one_stack_is_of_no_use_for_another_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let benchmark = Benchmark::new(flowstart_race::Race::default());
        let kept = Finished::open(folder.path(), &benchmark, false).unwrap();
        let rate = Rate::from_mbps(1);
        let of = |identity| KeptOf { label: "python3 (program)", identity };
        let path = |identity| kept.known(of(identity), rate).unwrap().map(|one| one.path);
        kept.keep(of("python3 fast.py"), rate, &[], 1.into()).unwrap();
        assert_eq!((path("python3 fast.py"), path("python3 slow.py")), (Some(1.into()), None));
        kept.keep(of("python3 slow.py"), rate, &[], 2.into()).unwrap();
        assert_eq!((path("python3 fast.py"), path("python3 slow.py")), (Some(1.into()), Some(2.into())));
        // The seal says whose it is, whatever the file is called.
        let file = |identity, ending| kept.file(of(identity), rate, ending);
        for ending in [ENDING, SEAL] {
            std::fs::copy(file("python3 fast.py", ending), file("python3 slow.py", ending)).unwrap();
        }
        assert_eq!(path("python3 slow.py"), None);
    }

    #[test]
    fn of_what_was_damaged_it_is_said_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path();
        let benchmark = Benchmark::new(flowstart_race::Race::default());
        let rate = Rate::from_mbps(1);
        Finished::open(results, &benchmark, false).unwrap().keep(CUBIC, rate, &[], 7.into()).unwrap();
        let kept = Finished::open(results, &benchmark, true).unwrap();
        let known = || kept.known(CUBIC, rate);
        assert_eq!(known(), Ok(Some(KeptRate { records: Vec::new(), path: 7.into() })));
        let written = |name: &str| results.join(FOLDER).join(name);
        for (name, damage) in [("cubic-1000000bps.csv", "nothing\n"), ("cubic-1000000bps.json", "{")] {
            let whole = std::fs::read(written(name)).unwrap();
            std::fs::write(written(name), damage).unwrap();
            let said = known().unwrap_err().to_string();
            let right = "; remove it to have the rate probed again, or leave --resume out to begin anew";
            assert!(said.contains(name) && said.ends_with(right), "{said}");
            std::fs::write(written(name), whole).unwrap();
        }
        let refused = |text: &str| {
            std::fs::write(written(PARAMETERS), text).unwrap();
            Finished::open(results, &benchmark, true).err().unwrap().told().1
        };
        for damaged in ["{}", "", "[1]"] {
            let said = refused(damaged);
            assert!(said.contains("does not say what") && said.contains("leave --resume out"), "{damaged}: {said}");
        }
        let mut other = benchmark.clone();
        other.race.seed += 1;
        assert!(refused(&conditions(&other).to_string()).contains("with other options"));
    }
}
