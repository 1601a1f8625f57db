//! Result tables: declared once, written as CSV and JSON (`flowstart-parquet` adds Parquet), and documented from the same declaration.

mod docs;
mod fill;
mod sampler;
mod schema;
mod table;
mod write;

pub use docs::results_page;
pub use fill::{Results, exit_name, page_table, run_scenario};
pub use sampler::Sampler;
pub use schema::{ColumnSpec, Kind, SCHEMA_VERSION, TableSpec, tables};
pub use table::{Column, Table, Value};
pub use write::{Encoding, Format, Provenance, WriteError, to_json, write_atomically, write_results};
