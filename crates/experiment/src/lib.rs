//! Under construction.

pub mod measure;
pub mod results;
pub mod run;
pub mod scenario;
mod suggest;
