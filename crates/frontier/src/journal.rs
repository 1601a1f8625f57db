//! The file of records: grows while the work is done, and is put in order at the end.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flowstart_files::{HeldFolder, why, write_atomically};

use super::{FrontierResult, Record, Work};

/// Name of the file in the results' folder.
const FILE: &str = "records.csv";
/// The file as it was before it was written anew.
const BACKUP: &str = "records.csv.backup";
/// Lines that could not be used.
const DAMAGED: &str = "records.damaged.csv";
/// The last column.
const CHECKSUM: &str = "checksum";

/// Why the records could not be read or written.
#[derive(Debug)]
pub struct JournalError {
    path: PathBuf,
    message: String,
}

impl JournalError {
    fn new(path: &Path, message: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), message: message.to_string() }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for JournalError {}

/// The records in a folder, as CSV: a line per cell, contestant and seed, with a checksum of its
/// own.
///
/// Lines are appended as work is finished, so that nothing is lost if the program is killed;
/// [`close`](Self::close) puts them in order, after which the file is the same however often the
/// work was interrupted. While a journal is open no second one can be opened on the same folder.
///
/// A line that cannot be read, or whose checksum is not that of its fields, is never used and never
/// thrown away: it is named by [`damaged`](Self::damaged) and kept in `records.damaged.csv`, and
/// the file as it was is kept as `records.csv.backup`.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    /// Lines that were there already.
    known: HashMap<String, Record>,
    /// Those lines as they stand, without checksums.
    lines: HashMap<String, Vec<String>>,
    damaged: Vec<Damage>,
    /// The first error of [`append`](Self::append).
    failed: Mutex<Option<io::Error>>,
    /// Keeps others out until it is dropped.
    _held: HeldFolder,
}

/// A line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its number in the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Journal {
    /// True if there are records in the folder.
    #[must_use]
    pub fn exists(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Opens the records of a folder, or begins new ones. A last line that was cut off is dropped.
    ///
    /// # Errors
    /// If the file cannot be read or written, is of another version, or if another run writes it.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(FILE);
        let fail = |error: &dyn fmt::Display| JournalError::new(&path, error);
        let held = HeldFolder::take(folder, Duration::ZERO)
            .ok_or_else(|| fail(&"another run is writing here; wait for its end or choose another folder"))?;
        let old = match std::fs::read(&path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(fail(&why(&error))),
        };
        let whole = old.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let Contents { known, lines, damaged } = read(&old[..whole]).map_err(|error| fail(&error))?;
        let content = csv(&std::iter::once(header()).chain(ordered(&lines).map(with_checksum)).collect::<Vec<_>>());
        if !damaged.is_empty() {
            set_aside(folder, &old, &damaged).map_err(|error| fail(&why(&error)))?;
        }
        if content != old {
            if !old.is_empty() {
                write_atomically(&folder.join(BACKUP), &old).map_err(|error| fail(&why(&error)))?;
            }
            write_atomically(&path, &content).map_err(|error| fail(&why(&error)))?;
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| fail(&why(&error)))?;
        Ok(Self { file: Mutex::new(file), known, lines, damaged, failed: Mutex::new(None), path, _held: held })
    }

    /// Takes in what the records of another folder have and these have not. Lines that cannot be
    /// used are left there. Gives the number of records taken.
    ///
    /// # Errors
    /// If the other file cannot be read or is of another version, or this one cannot be written.
    pub fn take_in(&mut self, folder: &Path) -> Result<usize, JournalError> {
        let other = folder.join(FILE);
        let fail = |path: &Path, error: &dyn fmt::Display| JournalError::new(path, error);
        let bytes = std::fs::read(&other).map_err(|error| fail(&other, &why(&error)))?;
        let contents = read(&bytes).map_err(|error| fail(&other, &error))?;
        let mut taken = Vec::new();
        for (key, record) in contents.known {
            if let (false, Some(fields)) = (self.known.contains_key(&key), contents.lines.get(&key)) {
                taken.push(with_checksum(fields.clone()));
                self.lines.insert(key.clone(), fields.clone());
                self.known.insert(key, record);
            }
        }
        // Maps have no order; the file gets its own when it is closed.
        taken.sort();
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&csv(&taken)).map_err(|error| fail(&self.path, &why(&error)))?;
        Ok(taken.len())
    }

    /// The records that were there, by key.
    #[must_use]
    pub fn known(&self) -> &HashMap<String, Record> {
        &self.known
    }

    /// The lines that were there but could not be used, in order; what they held is measured again.
    #[must_use]
    pub fn damaged(&self) -> &[Damage] {
        &self.damaged
    }

    /// Appends a record. An error is kept for [`close`](Self::close).
    pub fn append(&self, work: &Work, record: &Record) {
        let line = csv(&[with_checksum(record.fields(work))]);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line) {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Writes all records in the order of the work; records that belong to other work come after
    /// them, in order of their keys.
    ///
    /// # Errors
    /// If the file cannot be written, now or before.
    pub fn close(mut self, result: &FrontierResult) -> Result<(), JournalError> {
        if let Some(error) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(JournalError::new(&self.path, why(&error)));
        }
        let mut lines = vec![header()];
        for (work, record) in &result.records {
            if let Some(record) = record {
                self.lines.remove(&record.key);
                lines.push(with_checksum(record.fields(work)));
            }
        }
        lines.extend(ordered(&self.lines).map(with_checksum));
        let fail = |error: &dyn fmt::Display| JournalError::new(&self.path, error);
        let backup = self.path.with_file_name(BACKUP);
        if !backup.exists() {
            std::fs::copy(&self.path, &backup).map_err(|error| fail(&why(&error)))?;
        }
        write_atomically(&self.path, &csv(&lines)).map_err(|error| fail(&why(&error)))?;
        if self.damaged.is_empty() {
            // Everything that was in it stands in the file.
            match std::fs::remove_file(backup) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(&why(&error))),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Copies damaged lines to a file of their own, after those of earlier runs.
fn set_aside(folder: &Path, content: &[u8], damaged: &[Damage]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join(DAMAGED))?;
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    for damage in damaged {
        file.write_all(lines.get(damage.line - 1).copied().unwrap_or_default())?;
    }
    file.sync_all()
}

fn ordered(lines: &HashMap<String, Vec<String>>) -> impl Iterator<Item = Vec<String>> {
    let mut keys: Vec<&String> = lines.keys().collect();
    keys.sort();
    keys.into_iter().map(|key| lines[key].clone())
}

/// The header: the fields of a record, and the checksum.
fn header() -> Vec<String> {
    let mut header = Record::header();
    header.push(CHECKSUM.to_owned());
    header
}

/// A line: these fields, and their checksum.
fn with_checksum(mut fields: Vec<String>) -> Vec<String> {
    fields.push(checksum(&fields));
    fields
}

/// BLAKE3 over the fields as they stand in the file, 64 bits of it in hexadecimal digits.
fn checksum(fields: &[String]) -> String {
    blake3::hash(&csv(&[fields.to_vec()])).to_hex()[..16].to_owned()
}

/// What a file of records holds.
#[derive(Default)]
struct Contents {
    known: HashMap<String, Record>,
    lines: HashMap<String, Vec<String>>,
    damaged: Vec<Damage>,
}

fn read(bytes: &[u8]) -> Result<Contents, String> {
    let mut contents = Contents::default();
    // No field holds a line break, so a stray quote spoils the line it is in and no other.
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let fields = fields(line);
        if index == 0 {
            if fields.is_none_or(|fields| fields != header()) {
                return Err("holds other columns than this version writes; choose another folder".to_owned());
            }
            continue;
        }
        match fields.ok_or("is not a line of CSV").and_then(record) {
            Ok((record, fields)) => {
                contents.lines.insert(record.key.clone(), fields);
                contents.known.insert(record.key.clone(), record);
            }
            Err(reason) => contents.damaged.push(Damage { line: index + 1, reason }),
        }
    }
    Ok(contents)
}

/// The fields of one line.
fn fields(line: &[u8]) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let fields = reader.records().next()?.ok()?;
    // A quote that is opened and not closed takes the line break along.
    (!fields.iter().any(|field| field.contains('\n'))).then(|| fields.iter().map(str::to_owned).collect())
}

/// The record of a line, and its fields without the checksum.
fn record(mut fields: Vec<String>) -> Result<(Record, Vec<String>), &'static str> {
    let said = fields.pop().unwrap_or_default();
    if said != checksum(&fields) {
        return Err("has another checksum than its numbers");
    }
    let record = Record::from_fields(fields.iter().map(String::as_str)).ok_or("has fields that cannot be read")?;
    Ok((record, fields))
}

/// Lines of CSV.
pub(super) fn csv(lines: &[Vec<String>]) -> Vec<u8> {
    // Writing into memory does not fail.
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        let _ = writer.write_record(line);
    }
    writer.into_inner().unwrap_or_default()
}
