//! Tables as Apache Parquet: result tables are written, measurements read.
//!
//! Nothing but the command line's feature `parquet` links this crate, because its libraries are the
//! heaviest part of a build.

mod records;
mod tables;

pub use records::read_records;
pub use tables::TABLES;
