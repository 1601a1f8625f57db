//! Result tables, written.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use flowstart_results::{Column, Encoding, Kind, Provenance, Table};

/// Result tables as Parquet files with the provenance in their key-value metadata.
pub const TABLES: Encoding = Encoding {
    ending: "parquet",
    encode: |table, provenance| bytes(table, provenance).map_err(|error| error.to_string()),
};

fn bytes(table: &Table, provenance: &Provenance) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    let fields: Vec<Field> = table
        .spec()
        .columns
        .iter()
        .map(|column| {
            let kind = match column.kind {
                Kind::Text => DataType::Utf8,
                Kind::Integer => DataType::Int64,
                Kind::Float => DataType::Float64,
                Kind::Flag => DataType::Boolean,
            };
            let about = std::collections::HashMap::from(
                [("unit", column.unit), ("meaning", column.meaning)]
                    .map(|(key, value)| (key.to_owned(), value.to_owned())),
            );
            Field::new(column.name, kind, true).with_metadata(about)
        })
        .collect();
    let arrays: Vec<ArrayRef> = table
        .columns()
        .iter()
        .map(|column| -> ArrayRef {
            match column {
                Column::Text(values) => Arc::new(StringArray::from_iter(values.iter().map(Option::as_deref))),
                Column::Integer(values) => Arc::new(Int64Array::from_iter(values.iter().copied())),
                Column::Float(values) => Arc::new(Float64Array::from_iter(values.iter().copied())),
                Column::Flag(values) => Arc::new(BooleanArray::from_iter(values.iter().copied())),
            }
        })
        .collect();
    let metadata = vec![KeyValue::new("flowstart".to_owned(), provenance.to_json().to_string())];
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_key_value_metadata(Some(metadata)).build();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}
