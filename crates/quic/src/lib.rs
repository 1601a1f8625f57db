//! QUIC whose packets leave when a congestion [`Controller`](flowstart_congestion::Controller)
//! says, one by one.
//!
//! The stack is `noq-proto` or `quinn-proto`, unchanged ([`Stack`]; `stack` is all that knows
//! which). Its own congestion control and pacing are out of the way: the window that it asks for is
//! a gate that opens for one packet at a time (`gate`), at the moment the controller wants that
//! packet to leave ([`Connection`]). What became of every packet goes to the controller as the
//! events of `flowstart-congestion` ([`Ledger`]), with the times at which packets really left. The
//! other end is asked to acknowledge every packet at once (ACK frequency extension), so every
//! packet gives an RTT of its own.
//!
//! Nothing above [`Sockets`] knows a clock or a socket: a [`Node`] ([`Client`], [`Server`]) runs in
//! virtual time as well. Starts that look for fair queuing get two connections that carry one
//! stream ([`Sending`]).

mod allowance;
mod client;
mod clock;
mod connection;
mod data;
mod departures;
mod driving;
mod endpoint;
mod failed;
mod frames;
mod gate;
#[cfg(test)]
mod hostile;
mod judging;
mod knocking;
mod learning;
mod ledger;
mod look;
mod memory;
pub mod message;
mod moving;
mod node;
mod one_way;
mod owns;
mod qlog;
mod reading;
mod resets;
mod scopes;
mod sending;
mod server;
mod service;
mod stack;
mod system;
mod tap;
mod telling;
pub mod tls;
mod udp;
mod waits;
mod watching;

pub use client::{Client, SoFar, Transferred};
pub use clock::Clock;
pub use connection::{Connection, Happening, Idle};
pub use data::{Opened, Receiving, Sink, Source};
pub use departures::{MessageDeparture, datagram_sample};
pub use endpoint::{Arrival, Endpoint, Limits, Outgoing, SILENCE};
pub use failed::{ConnectError, ControllerError, Failed, FailedKind};
pub use judging::{ReadingConfig, header_bytes};
pub use knocking::first_to_answer;
pub use learning::{LearningConfig, Lesson, Observed};
pub use ledger::{Counts, HEADER_BYTES, Ledger};
pub use look::{FindingsConfig, LookConfig};
pub use memory::{Memory, MemoryError};
pub use node::Node;
pub use one_way::OneWay;
pub use qlog::Qlog;
pub use reading::{Capacity, Reading};
pub use sending::Sending;
pub use server::{Controllers, News, Server, Today};
pub use service::Service;
pub use stack::{ConnectionError, Dir, EcnCodepoint, Stack, StreamId};
pub use udp::Sockets;

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, Pacing, StartConfig};

/// The controller of a start and an avoidance by their names, with packets of `mtu` bytes. Packets
/// are paced where neither says when they leave (RFC 9002 section 7.7).
///
/// # Errors
/// If there is no algorithm of that name, or packets cannot be that long.
pub fn controller(start: &str, avoidance: &str, mtu: u16) -> Result<ControllerConfig, ControllerError> {
    let start = StartConfig::from_name(start)?;
    let avoidance = AvoidanceConfig::from_name(avoidance)?;
    let mut config = ControllerConfig::new(start, avoidance);
    config.mss = u32::from(mtu);
    config.pacing = Pacing::LINUX;
    config.validate()?;
    Ok(config)
}
