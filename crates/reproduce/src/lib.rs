//! Reproducing papers: figures with their claims, run and judged.
//!
//! A file of a figure (TOML) has a `[scenario]` as in a scenario file; `[vary.FACTOR.LEVEL]` tables
//! with the pieces of scenario in which its variants differ (all combinations are run); perhaps a
//! `[probe]` that asks for attainable rates; `[[claim]]` tables with what the paper says, what is
//! measured and what is expected; and `[[picture]]` tables. [`Figure::parse`] reads one and checks
//! that every measure finds what it names; [`figures`] has those that come with the program,
//! [`reproduce`] runs them.
//!
//! ```
//! use flowstart_reproduce::{Figure, ReproduceOptions, Verdict, reproduce};
//!
//! let figure = Figure::parse("small.toml", r#"
//!     title = "A small figure"
//!     shows = "How soon a link is full."
//!     [scenario]
//!     duration = "2 s"
//!     path = { capacity = "20 Mbit/s", rtt = "20 ms" }
//!     [[scenario.flow]]
//!     algorithm = "slow_start+cubic"
//!     [[claim]]
//!     id = "soon"
//!     origin = "paper"
//!     source = "Fig. 1"
//!     says = "The flow has half of the link within 200 ms."
//!     measure = { kind = "time_to_rate", rate = "10 Mbit/s" }
//!     expect = "<= 200 ms"
//! "#, None).expect("a figure");
//! let options = ReproduceOptions { runs: Some(1), ..ReproduceOptions::default() };
//! let results = reproduce(&[figure], &options)?.expect("nobody cancelled it");
//! // One run has no interval, so nothing is decided; without `runs` as many are made as it takes.
//! assert_eq!(results[0].claims[0].verdict, Verdict::Undecided);
//! # Ok::<(), flowstart_reproduce::ReproduceError>(())
//! ```

mod attained;
mod attained_picture;
mod claim;
mod collect;
mod docs;
mod drawing;
mod error;
mod evidence;
mod expectation;
mod figure;
mod file;
mod first_run;
mod jobs;
mod library;
mod measure;
mod origin;
mod picture;
mod probing;
mod probing_measures;
mod record;
mod replay;
mod replication;
mod stability;
mod variants;
mod verdict;

pub use docs::figures_page;
pub use error::ReproduceError;
pub use evidence::{Case, Evidence, Looks};
pub use expectation::Expectation;
pub use figure::{Claim, ClaimSpec, Figure, Subject, Variant};
pub use first_run::FirstRun;
pub use flowstart_measure::{Bound, Dimension, Measured, Statistic};
pub use flowstart_probing::Part;
pub use jobs::{ReproduceOptions, first_runs, reproduce};
pub use library::{NotExamined, Paper, PaperSpec, figures, papers};
pub use measure::{Measure, claim_measures};
pub use picture::{Curve, Drawn, Picture, PictureAxis, PictureKind, PictureSpec};
pub use probing::{LoopSpec, ProbeSpec, Probing};

pub use origin::Origin;
pub use record::{ClaimRecord, FigureRecord, Record, ShareTable};
pub use replication::{By, Replications};
pub use stability::{FigureStability, Stability};
pub use variants::{Factor, Level, Levels};
pub use verdict::{ClaimResult, FigureResult, Verdict};

#[cfg(test)]
mod probing_tests;
#[cfg(test)]
mod tests;
