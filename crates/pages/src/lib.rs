//! What results look like: the tables, pictures, sentences and pages that the commands show.
//!
//! A module per command. Nothing here runs anything, reads arguments or writes files: results come
//! in, and text, [`Table`](flowstart_report::Table)s, [`Figure`](flowstart_report::Figure)s and
//! [`Page`](flowstart_report::Page)s go out.
//!
//! ```
//! use flowstart_pages::compare::Shown;
//! use flowstart_race::{Race, RunOptions};
//!
//! let mut race = Race::default();
//! race.contestants.truncate(2);
//! let result = race.run(&RunOptions::default())?;
//! let shown = Shown::new(&result, None, "flowstart compare".to_owned(), Vec::new());
//! assert!(shown.markdown().contains("Flow starts over"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod benchmark;
pub mod compare;
#[cfg(target_os = "linux")]
pub mod emulated;
pub mod explain;
#[cfg(target_os = "linux")]
pub mod fidelity;
pub mod frontier;
#[cfg(feature = "quic")]
pub mod look;
pub mod quick_start;
pub mod reproduce;
pub mod scenario;
#[cfg(target_os = "linux")]
pub mod testbed;
#[cfg(feature = "quic")]
pub mod transfer;
