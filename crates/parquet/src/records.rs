//! Measurements, read and written.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::file::reader::ChunkReader;

use flowstart_units::{Rate, Time};

use crate::careful::carefully;
use crate::whole::Whole;
use flowstart_service_curve::{Columns, Passed, Record, RecordError};

/// The records of a Parquet file, or of its bytes, whose columns are 64-bit integers (signed or
/// not) or floats; only the needed columns are read, some thousand rows at a time.
///
/// # Errors
/// If the file cannot be read or lacks a column. Each row has an error of its own.
pub fn read_records<R: ChunkReader + 'static>(
    file: R,
) -> Result<impl Iterator<Item = Result<Record, RecordError>> + use<R>, RecordError> {
    let builder = read(|| ParquetRecordBatchReaderBuilder::try_new(Whole(file)))?;
    let schema = builder.schema().clone();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let all = Columns::of(&names)?;
    let ends = all.passed.into_iter().flatten().map(|(column, _)| column);
    let wanted: Vec<usize> = [all.sent.0, all.received.0].into_iter().chain(all.rate).chain(ends).collect();
    let mut reader = Some(read(|| {
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
        builder.with_projection(mask).build()
    })?);
    let mut before = 0;
    let batches = std::iter::from_fn(move || {
        let batch = read(|| reader.as_mut().and_then(Iterator::next).transpose()).transpose()?;
        if batch.is_err() {
            // What failed once is not asked again.
            reader = None;
        }
        Some(batch.and_then(|batch| {
            let first = before;
            before += batch.num_rows() as u64;
            Rows::new(batch, first)
        }))
    });
    Ok(batches.flat_map(|rows| {
        let (rows, error) = match rows {
            Ok(rows) => (Some(rows), None),
            Err(error) => (None, Some(Err(error))),
        };
        rows.into_iter().flatten().chain(error)
    }))
}

/// What the library reads, or why it cannot.
fn read<T, E: std::fmt::Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, RecordError> {
    carefully(read).map_err(unreadable)?.map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> RecordError {
    RecordError::Unreadable(error.to_string())
}

/// The rows of one batch.
struct Rows {
    batch: RecordBatch,
    columns: Columns,
    /// Rows of the file before this batch.
    before: u64,
    next: usize,
}

impl Rows {
    fn new(batch: RecordBatch, before: u64) -> Result<Self, RecordError> {
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let columns = Columns::of(&names)?;
        Ok(Self { columns, batch, before, next: 0 })
    }

    /// A value times `unit`.
    fn value(&self, column: usize, row: usize, unit: u64) -> Result<u64, RecordError> {
        let array = self.batch.column(column);
        let bad = |value: String| {
            let name = self.batch.schema().field(column).name().clone();
            RecordError::NotANumber(self.before + row as u64 + 1, name, value)
        };
        if array.is_null(row) {
            return Err(bad(String::new()));
        }
        let whole = match array.data_type() {
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row),
            DataType::Int64 => {
                let value = array.as_primitive::<Int64Type>().value(row);
                u64::try_from(value).map_err(|_| bad(value.to_string()))?
            }
            DataType::Float64 => {
                let value = array.as_primitive::<Float64Type>().value(row);
                let scaled = (value * unit as f64).round();
                if !(value >= 0.0 && scaled < u64::MAX as f64) {
                    return Err(bad(value.to_string()));
                }
                return Ok(scaled as u64);
            }
            other => return Err(bad(format!("a value of type {other}"))),
        };
        whole.checked_mul(unit).ok_or_else(|| bad(whole.to_string()))
    }

    fn record(&self, row: usize) -> Result<Record, RecordError> {
        let Columns { sent, received, rate, passed } = &self.columns;
        let known = |(column, _): (usize, u64)| !self.batch.column(column).is_null(row);
        let passed = match *passed {
            Some([left, arrived]) if known(left) && known(arrived) => Some(Passed {
                left: Time::from_nanos(self.value(left.0, row, left.1)?),
                arrived: Time::from_nanos(self.value(arrived.0, row, arrived.1)?),
            }),
            Some([left, arrived]) if known(left) || known(arrived) => {
                return Err(RecordError::OnlyOneEnd(self.before + row as u64 + 1));
            }
            _ => None,
        };
        Ok(Record {
            rate: rate.map(|column| self.value(column, row, 1)).transpose()?.map(Rate::from_bps),
            sent: Time::from_nanos(self.value(sent.0, row, sent.1)?),
            received: Time::from_nanos(self.value(received.0, row, received.1)?),
            passed,
        })
    }
}

impl Iterator for Rows {
    type Item = Result<Record, RecordError>;
    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next;
        self.next += 1;
        (row < self.batch.num_rows()).then(|| self.record(row))
    }
}

/// Rows that are written at once.
const ROWS: usize = 1 << 16;

/// Writes records as [`read_records`] reads them: rates in bit/s, times in nanoseconds, some
/// thousand rows at a time; with the ends of the network if that is wanted.
///
/// # Errors
/// Those of the writer, in words.
pub fn write_records<W: Write + Send>(
    writer: W,
    records: impl IntoIterator<Item = Record>,
    ends: bool,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut fields: Vec<Field> =
        ["rate_bps", "sent_ns", "received_ns"].map(|name| Field::new(name, DataType::UInt64, false)).into();
    if ends {
        fields.extend(["left_ns", "arrived_ns"].map(|name| Field::new(name, DataType::UInt64, true)));
    }
    let schema = Arc::new(Schema::new(fields));
    let mut writer = ArrowWriter::try_new(writer, Arc::clone(&schema), None).map_err(|error| text(&error))?;
    let mut records = records.into_iter();
    loop {
        let rows: Vec<Record> = records.by_ref().take(ROWS).collect();
        if rows.is_empty() {
            return writer.close().map(drop).map_err(|error| text(&error));
        }
        let column =
            |value: fn(&Record) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(value))) };
        let mut columns = vec![
            column(|row| row.rate.unwrap_or_default().as_bps()),
            column(|row| row.sent.as_nanos()),
            column(|row| row.received.as_nanos()),
        ];
        if ends {
            let end = |value: fn(Passed) -> Time| -> ArrayRef {
                let values = rows.iter().map(|row| row.passed.map(|passed| value(passed).as_nanos()));
                Arc::new(values.collect::<UInt64Array>())
            };
            columns.extend([end(|passed| passed.left), end(|passed| passed.arrived)]);
        }
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| text(&error))?;
        writer.write(&batch).map_err(|error| text(&error))?;
    }
}
