//! Tables of measurements and records.

use std::sync::OnceLock;

use bytes::Bytes;
use flowstart_explain::{Explanation, parse_trace};
use flowstart_frontier::Journal;
use flowstart_reproduce::{Figure, Record, figures};
use flowstart_service_curve::{ProbeConfig, estimate_records, read_csv};
use flowstart_units::Rate;
use tempfile::TempDir;

use crate::text;

/// Rows of one input that are read.
const MOST_ROWS: usize = 10_000;

/// Delays that were measured, and the service curve of them.
pub fn delays(bytes: &[u8]) {
    if let Ok(records) = read_csv(bytes) {
        let _ = estimate_records(records, Some(Rate::from_mbps(1)), &ProbeConfig::default());
    }
}

/// Delays that were measured, as Apache Parquet.
pub fn parquet(bytes: &[u8]) {
    if let Ok(records) = flowstart_parquet::read_records(Bytes::copy_from_slice(bytes)) {
        // A file of a few bytes may say that it has rows without end.
        let _ = estimate_records(records.take(MOST_ROWS), Some(Rate::from_mbps(1)), &ProbeConfig::default());
    }
}

/// A chirp, and what it says.
pub fn chirp(bytes: &[u8]) {
    if let Some(Ok(chirp)) = text(bytes).map(|text| parse_trace("fuzz.csv", text)) {
        let _ = Explanation::new(&chirp);
    }
}

/// The journal of a frontier: what is read when it is opened is read again when it is opened once
/// more.
///
/// # Panics
/// If it is not.
pub fn journal(bytes: &[u8]) {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().ok());
    let Some(folder) = folder else { return };
    let folder = folder.path();
    if std::fs::write(folder.join("records.csv"), bytes).is_err() {
        return;
    }
    let Ok(first) = Journal::open(folder) else { return };
    let known = first.known().len();
    drop(first);
    match Journal::open(folder) {
        Ok(second) => assert_eq!(second.known().len(), known, "opening a journal loses records"),
        Err(error) => panic!("a journal that was opened does not open again: {error}"),
    }
}

/// What `reproduce --record` keeps, and the verdicts on it.
///
/// # Panics
/// If it is written and does not read back to the same verdicts.
pub fn record(bytes: &[u8]) {
    static FIGURES: OnceLock<Vec<Figure>> = OnceLock::new();
    let Some(Ok(record)) = text(bytes).map(serde_json::from_str::<Record>) else { return };
    for figure in FIGURES.get_or_init(|| figures("").unwrap_or_default()) {
        let Some(kept) = record.figures.get(&figure.name) else { continue };
        let Ok(judged) = kept.judge(figure) else { continue };
        assert!(kept.differences(&judged).is_empty(), "{}: verdicts on a record differ from it", figure.name);
    }
}
