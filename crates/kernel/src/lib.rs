//! Flow starts in the unmodified Linux kernel, as eBPF congestion controls (`struct_ops`).
//!
//! [`Algorithm`] names what there is and its parameters. With the feature `ebpf`, `load` registers
//! an algorithm as a congestion control that stays when the process ends, `unload` takes it away,
//! and `findings` says beforehand what this kernel lacks. The system's default congestion control
//! is never touched.
//!
//! Quick-Start needs programs at devices too: `attach_host` where a host's packets carry requests
//! and answers, `load_router` where a link's packets are metered and requests are decided on.
//!
//! The programs are C (`bpf/`), under a licence that the kernel accepts (MIT or GPL-2.0). Their
//! arithmetic is in headers without kernel types, which are compiled for user space too and tested
//! against `flowstart-congestion`.

mod algorithm;
#[cfg(feature = "ebpf")]
mod bench;
#[cfg(feature = "ebpf")]
mod bpffs;
mod chirp_parameters;
#[cfg(feature = "ebpf")]
mod cost;
#[cfg(feature = "ebpf")]
mod device;
#[cfg(feature = "ebpf")]
mod findings;
#[cfg(feature = "ebpf")]
mod groups;
#[cfg(feature = "ebpf")]
mod hosts;
#[cfg(feature = "ebpf")]
mod loader;
#[cfg(feature = "ebpf")]
mod lock;
#[cfg(feature = "ebpf")]
mod logged;
mod parameters;
#[cfg(feature = "ebpf")]
mod problem;
mod quick_start_parameters;
#[cfg(feature = "ebpf")]
mod registered;
#[cfg(feature = "ebpf")]
mod router;
#[cfg(feature = "ebpf")]
mod router_state;
#[cfg(feature = "ebpf")]
mod watch;

pub use algorithm::{Algorithm, UnknownAlgorithm};
#[cfg(feature = "ebpf")]
pub use bench::{Passed, RouterBench, RouterLane};
#[cfg(feature = "ebpf")]
pub use cost::{RouterCost, router_cost};
#[cfg(feature = "ebpf")]
pub use findings::{Finding, findings};
#[cfg(feature = "ebpf")]
pub use hosts::{
    HostCounts, HostLinks, attach_host, attach_hosts, carry_host, host_counts, host_devices, usual_devices,
};
#[cfg(feature = "ebpf")]
pub use loader::{load, unload};
pub use parameters::{InvalidParameter, Kind, Parameter, Settings};
#[cfg(feature = "ebpf")]
pub use problem::Problem;
#[cfg(feature = "ebpf")]
pub use registered::{Loaded, loaded, unseen};
#[cfg(feature = "ebpf")]
pub use router::{LoadedRouter, RouterMeter, RouterSettings, load_router, router_at, routers};
#[cfg(feature = "ebpf")]
pub use router_state::RouterState;
#[cfg(feature = "ebpf")]
pub use watch::{Ended, Said, Watch, WatchEvent, What};
