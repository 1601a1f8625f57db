//! Under construction.

pub mod measure;
