//! Result tables: declared once, written as CSV and JSON (`flowstart-parquet` adds Parquet), and
//! documented from the same declaration.
//!
//! ```
//! use flowstart_parallel::Cancel;
//! use flowstart_results::{Value, run_scenario};
//! use flowstart_scenario::Scenario;
//!
//! let text = r#"
//!     duration = "3 s"
//!     [path]
//!     capacity = "10 Mbit/s"
//!     rtt = "20 ms"
//!     [[flow]]
//!     size = "1 MB"
//! "#;
//! let scenario = Scenario::parse("example", text)?;
//! let results = run_scenario(&scenario, None, &Cancel::default(), |_| {})?;
//! let flows = results.table("flows").expect("there is always one");
//! let Value::Float(seconds) = flows.get(0, "completion_time_s") else { panic!("it is complete") };
//! // 8 Mbit and their headers take more than 0.8 s at 10 Mbit/s.
//! assert!(seconds > 0.8 && seconds < 1.2, "{seconds}");
//! # Ok::<(), flowstart_scenario::ScenarioError>(())
//! ```

mod column;
mod docs;
mod document;
mod fill;
mod gzip;
mod packets;
mod portion;
mod samples;
mod schema;
mod table;
mod text;
mod write;

pub use column::{Column, Value};
pub use docs::results_page;
pub use document::{Document, write_pretty};
pub use fill::{Results, exit_name, page_table, run_scenario, run_to_write, utilisation};
pub use schema::{ColumnSpec, Kind, SCHEMA_VERSION, TableSpec, tables};
pub use table::Table;
pub use write::{
    COMPRESSED_PACKETS, Encoding, Format, PACKETS_FILE, Provenance, WriteError, to_json, write_results, written_names,
};
