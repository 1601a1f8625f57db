//! Measurements of real systems beside simulated ones.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::path::Path;

use flowstart_service_curve::{Record, RecordError, estimate_records, read_csv};
use flowstart_units::Rate;

use super::{Attained, Benchmark, Parts};
use flowstart_race::RaceError;

/// Why a file of measurements cannot be used.
#[derive(Debug)]
pub enum MeasuredError {
    /// It cannot be opened.
    Io(std::io::Error),
    /// Its name ends neither in `.csv` nor in `.parquet`.
    Ending,
    /// Its name ends in `.parquet`, and nobody gave a reader for such files.
    NoParquet,
    /// It has a head and no row.
    NoRows,
    /// What is in it.
    Records(RecordError),
    /// What follows from it cannot be calculated.
    Result(RaceError),
}

impl fmt::Display for MeasuredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be opened: {}", flowstart_files::why(error)),
            Self::Ending => f.write_str("is no file of measurements by its ending; known are .csv and .parquet"),
            Self::NoParquet => f.write_str(
                "is a Parquet file, which this program was built without: give it as .csv, or build the program \
                 with `cargo build --release --features parquet`",
            ),
            Self::NoRows => f.write_str("has no row below its head: nothing was measured"),
            Self::Records(error) => error.fmt(f),
            Self::Result(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MeasuredError {}

/// The records of a measurement, one by one.
pub type Records = Box<dyn Iterator<Item = Result<Record, RecordError>>>;

/// Reads files whose names end in `.parquet`.
pub type ParquetReader = fn(File) -> Result<Records, RecordError>;

fn open(path: &Path, parquet: Option<ParquetReader>) -> Result<Records, MeasuredError> {
    let file = File::open(path).map_err(MeasuredError::Io)?;
    flowstart_files::reads(path);
    // A folder can be opened, and whoever reads it hears of a number.
    if file.metadata().is_ok_and(|file| file.is_dir()) {
        return Err(MeasuredError::Io(std::io::ErrorKind::IsADirectory.into()));
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let records: Result<Records, RecordError> = match ending.as_str() {
        "csv" => read_csv(std::io::BufReader::new(file)).map(|records| Box::new(records) as Records),
        "parquet" => parquet.ok_or(MeasuredError::NoParquet)?(file),
        _ => return Err(MeasuredError::Ending),
    };
    records.map_err(MeasuredError::Records)
}

/// True if a file of send and receive times tells the rates of its trains itself.
///
/// # Errors
/// [`MeasuredError`].
pub fn tells_rates(path: &Path, parquet: Option<ParquetReader>) -> Result<bool, MeasuredError> {
    let first = open(path, parquet)?.next().transpose().map_err(MeasuredError::Records)?;
    Ok(first.is_some_and(|record| record.rate.is_some()))
}

/// How many rates a file of send and receive times has, over which one probability is divided.
///
/// # Errors
/// [`MeasuredError`].
pub fn rates_measured(path: &Path, parquet: Option<ParquetReader>) -> Result<usize, MeasuredError> {
    let mut rates = BTreeSet::new();
    for record in open(path, parquet)? {
        rates.insert(record.map_err(MeasuredError::Records)?.rate);
    }
    Ok(rates.len())
}

/// Analyses a file of send and receive times (see `flowstart_service_curve::Record`) with the
/// benchmark's procedure. `rate`: that of the only train of a file without rates. `parquet`: reads
/// files whose names end in `.parquet`, if the program can.
///
/// # Errors
/// [`MeasuredError`].
pub fn measured(
    benchmark: &Benchmark,
    path: &Path,
    rate: Option<Rate>,
    parquet: Option<ParquetReader>,
) -> Result<Attained, MeasuredError> {
    let records = open(path, parquet)?;
    let mut parts: Vec<Parts> = Vec::new();
    // Both end a train where its rate ends.
    let mut watch = |record: &Record| {
        let of = record.rate.or(rate).unwrap_or_default();
        if parts.last().is_none_or(|parts| parts.rate != of) {
            parts.push(Parts::new(of, record.sent + benchmark.probe.warm_up));
        }
        if let Some(parts) = parts.last_mut() {
            parts.record(record);
        }
    };
    let watched = records.inspect(|record| record.iter().for_each(&mut watch));
    let estimate = estimate_records(watched, rate, &benchmark.procedure()).map_err(MeasuredError::Records)?;
    if estimate.probes.is_empty() {
        return Err(MeasuredError::NoRows);
    }
    parts.retain(|parts| parts.count() > 0);
    let label = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let attained = benchmark.attained(label, "measured".to_owned(), estimate, None).map_err(MeasuredError::Result)?;
    Ok(Attained { parts, ..attained })
}
