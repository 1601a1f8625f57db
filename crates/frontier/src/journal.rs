//! The file of records: grows while the work is done, and is put in order at the end.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flowstart_results::write_atomically;

use super::{FrontierResult, Record, Work};

/// Name of the file in the results' folder.
const FILE: &str = "records.csv";

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

/// The records in a folder, as CSV: a line per cell, contestant and seed.
///
/// Lines are appended as work is finished, so that nothing is lost if the program is killed; [`close`](Self::close) puts them in order, after which the
/// file is the same however often the work was interrupted.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    /// Lines that were there already.
    known: HashMap<String, Record>,
    /// Those lines as they stand.
    lines: HashMap<String, Vec<String>>,
    /// The first error of [`append`](Self::append).
    failed: Mutex<Option<io::Error>>,
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
    /// If the file cannot be read or written, or is of another version.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(FILE);
        let fail = |error: &dyn fmt::Display| JournalError::new(&path, error);
        let old = match std::fs::read(&path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(fail(&error)),
        };
        let whole = old.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let (known, lines) = read(&old[..whole]).map_err(|error| fail(&error))?;
        let mut content = csv(&[Record::header()]);
        content.extend(csv(&ordered(&lines)));
        write_atomically(&path, &content).map_err(|error| fail(&error))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| fail(&error))?;
        Ok(Self { file: Mutex::new(file), known, lines, failed: Mutex::new(None), path })
    }

    /// The records that were there, by key.
    #[must_use]
    pub fn known(&self) -> &HashMap<String, Record> {
        &self.known
    }

    /// Appends a record. An error is kept for [`close`](Self::close).
    pub fn append(&self, work: &Work, record: &Record) {
        let line = csv(&[record.fields(work)]);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line) {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Writes all records in the order of the work; records that belong to other work come after them, in order of their keys.
    ///
    /// # Errors
    /// If the file cannot be written, now or before.
    pub fn close(mut self, result: &FrontierResult) -> Result<(), JournalError> {
        if let Some(error) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(JournalError::new(&self.path, error));
        }
        let mut lines = vec![Record::header()];
        for (work, record) in &result.records {
            if let Some(record) = record {
                self.lines.remove(&record.key);
                lines.push(record.fields(work));
            }
        }
        lines.extend(ordered(&self.lines));
        write_atomically(&self.path, &csv(&lines)).map_err(|error| JournalError::new(&self.path, error))
    }
}

fn ordered(lines: &HashMap<String, Vec<String>>) -> Vec<Vec<String>> {
    let mut keys: Vec<&String> = lines.keys().collect();
    keys.sort();
    keys.into_iter().map(|key| lines[key].clone()).collect()
}

type Read = (HashMap<String, Record>, HashMap<String, Vec<String>>);

fn read(bytes: &[u8]) -> Result<Read, String> {
    let (mut known, mut lines) = (HashMap::new(), HashMap::new());
    if bytes.is_empty() {
        return Ok((known, lines));
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    if !reader.headers().is_ok_and(|header| header.iter().eq(Record::header().iter())) {
        return Err("holds other columns than this version writes; choose another folder".to_owned());
    }
    for line in reader.records().flatten() {
        if let Some(record) = Record::from_fields(line.iter()) {
            lines.insert(record.key.clone(), line.iter().map(str::to_owned).collect());
            known.insert(record.key.clone(), record);
        }
    }
    Ok((known, lines))
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
