//! Flow starts in the unmodified Linux kernel, as eBPF congestion controls (`struct_ops`).
//!
//! [`Algorithm`] names what there is and its parameters. With the feature `ebpf`, `load` registers
//! an algorithm as a congestion control that stays when the process ends, `unload` takes it away,
//! and `findings` says beforehand what this kernel lacks. The system's default congestion control
//! is never touched.
//!
//! The programs are C (`bpf/`), under a licence that the kernel accepts (MIT or GPL-2.0). Their
//! arithmetic is in headers without kernel types, which are compiled for user space too and tested
//! against `flowstart-congestion`.

mod algorithm;
#[cfg(feature = "ebpf")]
mod bpffs;
mod chirp_parameters;
#[cfg(feature = "ebpf")]
mod findings;
#[cfg(feature = "ebpf")]
mod loader;
#[cfg(feature = "ebpf")]
mod lock;
mod parameters;
#[cfg(feature = "ebpf")]
mod watch;

pub use algorithm::Algorithm;
#[cfg(feature = "ebpf")]
pub use findings::{Finding, findings};
#[cfg(feature = "ebpf")]
pub use loader::{Loaded, Problem, load, loaded, unload, unseen};
pub use parameters::{InvalidParameter, Kind, Parameter, Settings};
#[cfg(feature = "ebpf")]
pub use watch::{Ended, Event, Said, Watch, What};
