//! `flowstart frontier`: a grid in tables, pictures and sentences.

mod page;
pub mod tables;

pub use page::{fronts, page};
