//! `flowstart frontier`: a grid in tables, pictures and sentences.

mod page;
mod paths;
pub mod tables;

pub use page::{fronts, page};
pub use paths::{paths_figures, paths_tables};
