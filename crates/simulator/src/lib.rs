//! Deterministic packet-level simulator: transport and network joined in virtual time.
//!
//! The same [`SimulationConfig`] gives the same events in the same order on every machine. One simulation is one value: run as many side by
//! side as there are cores. What is measured is up to an [`Observer`]; the unit observer `()` measures nothing and costs nothing.

mod app;
mod arrivals;
mod config;
mod draw;
mod flow;
mod lane;
mod ledger;
mod network;
mod observer;
mod outcome;
mod pair;
mod random;
mod route;
mod session;
mod simulation;
mod tournament;
mod validate;

pub use arrivals::Transfers;
pub use config::{
    Access, ArrivalConfig, ConfigError, FlowConfig, LinkId, SimulationConfig, Sizes, Spacing, Stop, TcpConfig, Traffic,
    UdpConfig, Workload,
};
pub use observer::{FlowId, Observer};
pub use outcome::{FlowOutcome, LinkOutcome, Outcome};
pub use session::{Page, Reply, SessionConfig, SessionOutcome};
pub use simulation::{MakeController, Simulation};
