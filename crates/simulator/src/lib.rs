//! Deterministic packet-level simulator: transport and network joined in virtual time.
//!
//! The same [`SimulationConfig`] gives the same events in the same order on every machine. One
//! simulation is one value: run as many side by side as there are cores. What is measured is up to
//! an [`Observer`]; the unit observer `()` measures nothing and costs nothing.
//!
//! # One transfer, and one over a queue from outside
//!
//! ```
//! use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
//! use flowstart_network::{
//!     Dequeue, Discipline, DropReason, Fifo, Frame, LinkConfig, QueueConfig, RateSchedule, Tally,
//! };
//! use flowstart_simulator::{
//!     Access, FlowConfig, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload,
//! };
//! use flowstart_transport::{ReceiverConfig, SenderConfig};
//! use flowstart_units::{Bytes, Rate, Span, Time};
//!
//! // 1 MB by slow start and CUBIC over 10 Mbit/s and 40 ms, with a buffer of 50 packets.
//! let start = StartConfig::from_name("slow_start").unwrap();
//! let cubic = AvoidanceConfig::from_name("cubic").unwrap();
//! let tcp = TcpConfig {
//!     controller: ControllerConfig::new(start, cubic),
//!     sender: SenderConfig::default(),
//!     receiver: ReceiverConfig::default(),
//!     workload: Workload::Sized(Bytes::new(1_000_000)),
//! };
//! let flow = FlowConfig {
//!     forward: vec![0],
//!     reverse: vec![],
//!     access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
//!     tail_delay: Span::ZERO,
//!     return_delay: Span::from_millis(20),
//!     start: Time::ZERO,
//!     traffic: Traffic::Tcp(Box::new(tcp)),
//!     group: 0,
//!     place: Default::default(),
//! };
//! let rate = RateSchedule::Constant(Rate::from_mbps(10));
//! let config = SimulationConfig {
//!     links: vec![LinkConfig::new(rate, Span::from_millis(20), QueueConfig::drop_tail(50))],
//!     ways: vec![],
//!     flows: vec![flow],
//!     arrivals: vec![],
//!     sessions: vec![],
//!     stop: Stop::WhenComplete(Time::ZERO + Span::from_secs(60)),
//!     seed: 1,
//!     run: 0,
//! };
//! let (usual, ()) = Simulation::new(&config, ())?.run();
//! assert!(usual.links[0].dropped > 0, "slow start overshoots");
//!
//! /// A queue that never drops.
//! struct Endless<P>(Fifo<P>);
//!
//! impl<P: Frame> Discipline<P> for Endless<P> {
//!     fn enqueue(&mut self, now: Time, packet: P, _dropped: &mut dyn FnMut(P, DropReason)) {
//!         self.0.push(packet, now);
//!     }
//!
//!     fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
//!         self.0.take()
//!     }
//!
//!     fn tally(&self) -> Tally {
//!         self.0.tally(0)
//!     }
//! }
//!
//! let own = Simulation::new(&config, ())?.with_queue(0, Box::new(Endless(Fifo::new())))?;
//! let (own, ()) = own.run();
//! assert_eq!(own.links[0].dropped, 0);
//! # Ok::<(), flowstart_simulator::ConfigError>(())
//! ```

mod app;
mod arrivals;
mod config;
mod draw;
mod flow;
mod lane;
mod ledger;
mod link;
mod network;
mod observer;
mod outcome;
mod requests;
mod route;
mod session;
mod simulation;
mod slots;
mod tournament;
mod validate;
mod ways;

pub use arrivals::Transfers;
pub use config::{
    Access, ArrivalConfig, ConfigError, FlowConfig, LinkId, Place, SimulationConfig, Sizes, Spacing, Stop, TcpConfig,
    Traffic, UdpConfig, Workload,
};
pub use flow::MakeController;
pub use observer::{FlowId, Observer};
pub use outcome::{FlowOutcome, LinkOutcome, Outcome};
pub use session::{Page, Reply, SessionConfig, SessionOutcome};
pub use simulation::{Progress, Simulation};
