//! Writing tables, whole or not at all.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flowstart_files::WholeFile;
use serde_json::{Value as Json, json};

use super::Results;
use super::document::{Document, write_pretty};
use super::portion::compress;
use super::schema::{PACKETS, SCHEMA_VERSION, tables};
use super::table::Table;
use flowstart_scenario::Scenario;

/// A file format.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Comma-separated values, a header line, `.` as decimal point; the provenance stands in
    /// `provenance.json` beside it.
    Csv,
    /// The same, but the table `packets` compressed ([`COMPRESSED_PACKETS`]).
    CsvWithGzip,
    /// One document with the provenance and all tables; without `packets` if they are written in
    /// another format, too.
    Json,
    /// Tables in a format from another crate, a file each.
    Tables(Encoding),
}

/// What the tables beside it say about themselves; written first, and once more when they are
/// there.
const PROVENANCE_FILE: &str = "provenance.json";

/// The file of the table `packets` as CSV, and compressed with gzip: a sixth of the size.
pub const PACKETS_FILE: &str = "packets.csv";
/// See [`PACKETS_FILE`].
pub const COMPRESSED_PACKETS: &str = "packets.csv.gz";

/// All results as one JSON document.
const DOCUMENT_FILE: &str = "results.json";
/// The scenario as it was run.
const EFFECTIVE_FILE: &str = "effective.toml";

/// Endings that files of tables have, those of [`Encoding`]s too.
const ENDINGS: [&str; 2] = ["csv", "parquet"];

/// How another crate writes one table.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// Ending of the files' names, without the dot.
    pub ending: &'static str,
    /// The bytes of a file, or in a few words why there are none.
    pub encode: fn(&Table, &Provenance) -> Result<Vec<u8>, String>,
}

/// What every result says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// Version of flowstart.
    pub version: String,
    /// Hash of the scenario ([`Scenario::hash`]).
    pub scenario_hash: String,
    /// Every parameter, defaults included, as a scenario file.
    pub effective: String,
    /// Seed.
    pub seed: u64,
    /// Runs asked for and finished.
    pub runs: (u64, u64),
    /// True if chance plays a part; otherwise one run says all.
    pub random: bool,
    /// Hash of all tables ([`Results::hash`]).
    pub results_hash: String,
}

/// The random number generator of all streams.
const GENERATOR: &str = "PCG64 MCG (XSL-RR), seeds mixed by SplitMix64 from seed, run, purpose and index";

impl Provenance {
    /// Of these results of this scenario.
    #[must_use]
    pub fn new(scenario: &Scenario, results: &Results) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario_hash: scenario.hash(),
            effective: scenario.effective(),
            seed: scenario.seed,
            runs: (results.asked, results.finished),
            random: scenario.is_random(),
            results_hash: results.hash(),
        }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({
            "flowstart_version": self.version,
            "schema_version": SCHEMA_VERSION,
            "scenario_hash": self.scenario_hash,
            "seed": self.seed,
            "generator": GENERATOR,
            "runs_asked": self.runs.0,
            "runs_finished": self.runs.1,
            "complete": self.runs.0 == self.runs.1,
            "random": self.random,
            "results_hash": self.results_hash,
            "effective_scenario": self.effective,
        })
    }
}

/// Why results could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    path: PathBuf,
    message: String,
}

impl WriteError {
    /// This file cannot be written, because of this.
    #[must_use]
    pub fn new(path: &Path, error: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), message: error.to_string() }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be written: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for WriteError {}

/// What the system says of a file that is to be written, in words.
fn refused(path: &Path, error: &std::io::Error) -> WriteError {
    WriteError::new(path, flowstart_files::why(error))
}

/// Writes a file piece by piece so that it is there whole or not at all.
fn write_whole(path: &Path, write: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>) -> Result<(), WriteError> {
    let mut file = WholeFile::create(path).map_err(|error| refused(path, &error))?;
    write(file.as_file_mut()).and_then(|()| file.finish()).map_err(|error| refused(path, &error))
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<(), WriteError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(refused(path, &error)),
        _ => Ok(()),
    }
}

/// Names of all the files that [`write_results`] writes in some format, or removes as those of
/// another.
#[must_use]
pub fn written_names() -> Vec<String> {
    let in_all = tables().into_iter().flat_map(|table| ENDINGS.map(|ending| format!("{}.{ending}", table.name)));
    let others = [COMPRESSED_PACKETS, DOCUMENT_FILE, PROVENANCE_FILE, EFFECTIVE_FILE].map(str::to_owned);
    in_all.chain(others).collect()
}

/// Writes the results into a folder (made if it is not there): the tables in each format,
/// `provenance.json` and `effective.toml`. Returns the files written. A table without rows is a
/// header, so that none of an earlier run passes for this one's; for the same reason what an
/// earlier run left in a format that this one does not write is removed (the other one of
/// [`PACKETS_FILE`] and [`COMPRESSED_PACKETS`], Parquet). `provenance.json` says that they are
/// complete only when all of them are there.
///
/// # Errors
/// If the folder or a file cannot be written, or a file of an earlier run cannot be removed.
pub fn write_results(
    folder: &Path,
    results: &Results,
    provenance: &Provenance,
    formats: &[Format],
) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
    let mut written = Vec::new();
    let mut put = |name: &str, write: &dyn Fn(&mut std::fs::File) -> std::io::Result<()>| {
        let path = folder.join(name);
        write_whole(&path, write)?;
        written.push(path);
        Ok(())
    };
    // Until all is written it says that it is not: nobody takes files of two runs for one result.
    let whole = provenance.to_json();
    let mut unfinished = whole.clone();
    unfinished["complete"] = false.into();
    put(PROVENANCE_FILE, &|file| write_pretty(&unfinished, file))?;
    put(EFFECTIVE_FILE, &|file| file.write_all(provenance.effective.as_bytes()))?;
    for format in formats {
        if let Format::Json = format {
            let packets = formats.iter().all(|format| matches!(format, Format::Json));
            put(DOCUMENT_FILE, &|file| Document { results, provenance, packets }.write(file))?;
            continue;
        }
        for table in &results.tables {
            let name = table.spec().name;
            match format {
                Format::Csv if name == PACKETS.name => {
                    put(PACKETS_FILE, &|file| {
                        table.csv_portions().iter().try_for_each(|portion| file.write_all(portion.text()))
                    })?;
                }
                Format::CsvWithGzip if name == PACKETS.name => {
                    put(COMPRESSED_PACKETS, &|file| compress(&table.csv_portions(), file))?;
                }
                Format::Csv | Format::CsvWithGzip => put(&format!("{name}.csv"), &|file| table.write_csv(file))?,
                Format::Json => {}
                Format::Tables(Encoding { ending, encode }) => {
                    let file = format!("{name}.{ending}");
                    let content =
                        encode(table, provenance).map_err(|error| WriteError::new(&folder.join(&file), error))?;
                    put(&file, &|out| out.write_all(&content))?;
                }
            }
        }
    }
    let tables = results.tables.iter().map(|table| table.spec().name);
    let in_all = tables.flat_map(|name| ENDINGS.map(|ending| format!("{name}.{ending}")));
    for name in in_all.chain([COMPRESSED_PACKETS, DOCUMENT_FILE].map(str::to_owned)) {
        let path = folder.join(name);
        if !written.contains(&path) {
            remove(&path)?;
        }
    }
    if unfinished != whole {
        write_whole(&folder.join(PROVENANCE_FILE), |file| write_pretty(&whole, file))?;
    }
    Ok(written)
}

/// All tables and the provenance as one JSON document; tables are lists of objects.
#[must_use]
pub fn to_json(results: &Results, provenance: &Provenance) -> Json {
    // Everything in it can be written as JSON.
    serde_json::to_value(Document { results, provenance, packets: true }).unwrap_or_default()
}
