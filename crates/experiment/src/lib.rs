//! Under construction.

pub mod benchmark;
pub mod capture;
pub mod explain;
pub mod frontier;
pub mod measure;
pub mod race;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod scenario;
mod suggest;
pub mod workload;
