//! Scenarios, races and programs on this machine's kernel, over emulated links (Linux).
//!
//! [`run`] turns each run of a scenario into a world of the crate `emulator` and connections of the
//! kernel's TCP, and says what happened in the simulator's tables. [`race`] shows what happened to
//! the observers of a race, so that kernels are measured by the same code as simulations.
//! [`emulate`] has programs in the place of flows. [`benchmark()`] probes kernels for attainable
//! rates. [`fidelity`] sets simulator and kernel side by side, [`testbed`] does so for Quick-Start,
//! beside the paper.

#![cfg(target_os = "linux")]

mod benchmark;
mod captures;
mod commanded;
mod controls;
mod emulate;
mod error;
mod exit;
pub mod fidelity;
mod kept;
mod layout;
mod passing;
mod perform;
mod plan;
mod probe;
mod programs;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "quic")]
mod quic_probe;
mod quick_start;
mod race;
mod replay;
mod rows;
mod runs;
mod seen;
mod stamps;
mod tables;
pub mod testbed;
mod watch;

pub use benchmark::{RealBenchmark, Stack, at_once, benchmark, check as check_benchmark, control_named, longest};
pub use commanded::Program;
pub use controls::{not_real, not_real_of_path};
pub use emulate::{Emulated, emulate};
pub use error::{Error, ImpossibleRecord};
pub use programs::{Ended, How, Programs};
pub use race::{RealRace, left_out, race, refused};
pub use runs::{Runs, check as check_scenario, run};
pub use stamps::StampCheck;
pub use tables::flow_name;

/// What carries the flows that are not datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The kernel's TCP.
    Kernel,
    /// This project's QUIC over this stack, with the flows' own starts and avoidances.
    #[cfg(feature = "quic")]
    Quic(flowstart_quic::Stack),
}

/// Most pairs of hosts: as many as have run on a small machine.
pub const MOST_PAIRS: u32 = 100;
