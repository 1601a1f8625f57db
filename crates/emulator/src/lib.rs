//! Links and queues of the crate `network` in real time: real packets of real programs between
//! network namespaces of this machine.
//!
//! A [`World`] is made of hosts, each a network namespace with one interface, and of routes between
//! them that lead through links. What a host sends is taken from its interface with the kernel's
//! time stamp, goes through the very [`Queue`](flowstart_network::Queue),
//! [`Transmitter`](flowstart_network::Transmitter) and loss processes that the simulator uses, and
//! is given to the other host's interface at the time they say. No queueing discipline of the
//! kernel (netem, tbf) has a part in it.
//!
//! ```no_run
//! use flowstart_emulator::{World, WorldConfig};
//! use flowstart_network::{DropTailConfig, LinkConfig, QueueConfig, RateSchedule};
//! use flowstart_units::{Rate, Span};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(167), bytes: None });
//! let rate = RateSchedule::Constant(Rate::from_mbps(100));
//! let there = LinkConfig::new(rate, Span::from_millis(10), queue);
//! let world = World::start_with(WorldConfig::pair(there, Span::from_millis(10)), |record| {
//!     println!("{} {:?}", record.arrived.as_secs_f64(), record.fate);
//! })?;
//! let server = world.hosts()[1].address();
//! // Code, threads or programs inside a host's namespace:
//! let listener = world.hosts()[1].run(|| std::net::TcpListener::bind((server, 5201)))??;
//! let status = world.hosts()[0].command("ping").args(["-c", "3", "server"]).status()?;
//! let outcome = world.finish()?;
//! println!("{}", outcome.fidelity);
//! # drop((listener, status));
//! # Ok(())
//! # }
//! ```
//!
//! Times are [`Time`](flowstart_units::Time) since the start of the world, on the monotonic clock.
//! The crate is empty on systems other than Linux.
#![cfg(target_os = "linux")]

mod capture;
mod clock;
mod config;
mod engine;
mod error;
mod ethtool;
mod fidelity;
mod guard;
mod host;
mod names;
mod namespace;
mod netlink;
mod record;
mod recording;
mod ring;
pub mod self_test;
mod setup;
mod sockets;
pub mod traffic;
mod wire;
mod world;

pub use capture::Capture;
pub use clock::Clock;
pub use config::{HostConfig, HostId, LinkId, RouteConfig, Timing, WorldConfig};
pub use engine::LinkOutcome;
pub use error::Error;
pub use fidelity::{Fidelity, FidelityLimit};
pub use flowstart_pcapng::file_name;
pub use host::{Host, die_with_this_thread};
pub use names::{clean, remove_own_names};
pub use namespace::{Privilege, enter_user_namespace, privilege};
pub use record::{Fate, Given, PacketRecord, Tcp};
pub use recording::{FlowRecording, LinkBin, LinkRecording, Recording};
pub use sockets::TcpWatch;
pub use wire::{FlowKey, mark_frame, read_frame};
pub use world::{World, WorldOutcome};
