//! The formats of result tables and measurements: CSV and JSON always, Apache Parquet if the
//! program was built with it.

use std::fs::File;
use std::io::BufWriter;

use flowstart_benchmark::ParquetReader;
use flowstart_results::Format;
use flowstart_service_curve::Record;

use crate::output::Failure;

/// What `--out` writes.
pub(crate) fn formats(gzip: bool, parquet: bool) -> Result<Vec<Format>, Failure> {
    let others = if parquet { vec![parquet_tables()?] } else { Vec::new() };
    let csv = if gzip { Format::CsvWithGzip } else { Format::Csv };
    Ok([csv, Format::Json].into_iter().chain(others).collect())
}

#[cfg(feature = "parquet")]
fn parquet_tables() -> Result<Format, Failure> {
    Ok(Format::Tables(flowstart_parquet::TABLES))
}

#[cfg(not(feature = "parquet"))]
fn parquet_tables() -> Result<Format, Failure> {
    Err(Failure::Usage(
        "this program was built without Apache Parquet: leave out --parquet, or build the program with \
         `cargo build --release --features parquet`"
            .to_owned(),
    ))
}

/// What reads measurements from Parquet files.
pub(crate) const PARQUET_READER: Option<ParquetReader> = parquet_reader();

const fn parquet_reader() -> Option<ParquetReader> {
    #[cfg(feature = "parquet")]
    return Some(|file| {
        flowstart_parquet::read_records(file).map(|records| Box::new(records) as flowstart_benchmark::Records)
    });
    #[cfg(not(feature = "parquet"))]
    None
}

/// Writes records of messages, with the ends of the network or without.
type Writer = fn(BufWriter<File>, &mut dyn Iterator<Item = Record>, bool) -> Result<(), String>;

/// What writes measurements to Parquet files.
pub(crate) const PARQUET_WRITER: Option<Writer> = parquet_writer();

const fn parquet_writer() -> Option<Writer> {
    #[cfg(feature = "parquet")]
    return Some(|file, records, ends| flowstart_parquet::write_records(file, records, ends));
    #[cfg(not(feature = "parquet"))]
    None
}
