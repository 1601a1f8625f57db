//! From a description of an experiment to results: everything between the simulator and what a person reads.
//!
//! - [`scenario`]: TOML files with units, checked and turned into simulations; [`run`] does many on all cores, [`results`] makes tables of them,
//!   [`capture`] pcapng files.
//! - [`race`]: flow starts over one path, with the measures of [`measure`]; [`frontier`]: races over a grid of paths.
//! - [`reproduce`]: papers' figures and whether their claims hold.
//! - [`benchmark`]: attainable rates of congestion controls, by constant-rate probes over the full transport.
//! - [`explain`]: what one chirp says.
//!
//! The same description and seed give the same bytes, for any number of threads.

pub mod benchmark;
pub mod capture;
pub mod explain;
pub mod frontier;
pub mod measure;
mod probing;
pub mod race;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod scenario;
mod suggest;
pub mod workload;
