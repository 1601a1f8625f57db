//! Tables as Apache Parquet: result tables are written, measurements read and written.
//!
//! Nothing but the command line's feature `parquet` links this crate, because its libraries are the
//! heaviest part of a build.

mod careful;
mod records;
mod tables;
mod whole;

pub use records::{read_records, write_records};
pub use tables::TABLES;
