//! Deterministic packet-level simulator: transport and network joined in virtual time.
//!
//! The same [`SimulationConfig`] gives the same events in the same order on every machine. One
//! simulation is one value: run as many side by side as there are cores.
//!
//! A transfer of 1 MB over a link of 10 Mbit/s, from nothing:
//!
//! ```
//! use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
//! use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
//! use flowstart_simulator::{
//!     Access, FlowConfig, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload,
//! };
//! use flowstart_transport::{ReceiverConfig, SenderConfig};
//! use flowstart_units::{Bytes, Rate, Span, Time};
//!
//! // One link with a queue of 50 packets. Links are known by their number, this is link 0.
//! let rate = RateSchedule::Constant(Rate::from_mbps(10));
//! let link = LinkConfig::new(rate, Span::from_millis(10), QueueConfig::drop_tail(50));
//! let tcp = TcpConfig {
//!     controller: ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno),
//!     sender: SenderConfig::default(),
//!     receiver: ReceiverConfig::default(),
//!     workload: Workload::Sized(Bytes::new(1_000_000)),
//! };
//! let flow = FlowConfig {
//!     // Over link 0; ACKs come back 10 ms later without meeting a link.
//!     forward: vec![0],
//!     reverse: vec![],
//!     return_delay: Span::from_millis(10),
//!     access: Access { rate: Rate::from_mbps(1_000), delay: Span::ZERO },
//!     tail_delay: Span::ZERO,
//!     start: Time::ZERO,
//!     traffic: Traffic::Tcp(Box::new(tcp)),
//!     group: 0,
//! };
//! let config = SimulationConfig {
//!     links: vec![link],
//!     flows: vec![flow],
//!     arrivals: vec![],
//!     sessions: vec![],
//!     stop: Stop::WhenComplete(Time::ZERO + Span::from_secs(10)),
//!     seed: 1,
//!     run: 0,
//! };
//! let (outcome, ()) = Simulation::new(&config, ())?.run();
//!
//! let flow = &outcome.flows[0];
//! let taken = flow.completed.expect("it takes less than 10 s").since(flow.started);
//! // 8 Mbit at 10 Mbit/s, and the first round trips, in which the link idles.
//! assert!(taken > Span::from_millis(800) && taken < Span::from_millis(1_500));
//! assert_eq!(outcome.links[0].packets, flow.packets_sent + 1 - flow.dropped, "and a SYN");
//! # Ok::<(), flowstart_simulator::ConfigError>(())
//! ```
//!
//! What else is measured is up to an [`Observer`]; the unit observer `()` measures nothing and
//! costs nothing.

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
mod slots;
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
