//! Result tables: declared once, written as CSV, JSON and Parquet, and documented from the same declaration.

mod docs;
mod fill;
#[cfg(feature = "parquet")]
mod parquet;
mod sampler;
mod schema;
mod table;
mod write;

pub use docs::{figures_page, results_page, scenario_page};
pub use fill::{Results, exit_name, page_table, run_scenario};
pub use sampler::Sampler;
pub use schema::{ColumnSpec, Kind, SCHEMA_VERSION, TableSpec, tables};
pub use table::{Table, Value};
pub use write::{Format, Provenance, WriteError, to_json, write_atomically, write_results};
