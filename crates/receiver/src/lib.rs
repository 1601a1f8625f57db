//! The receiving end of a TCP-like connection, sans-IO: it puts the stream together, counts marks,
//! and says when which ACK leaves and how large a window it offers.
//!
//! A [`Receiver`] knows neither a socket nor a clock. The caller hands in the segments that arrived
//! ([`Receiver::on_segment`]), asks for ACKs until there are none ([`Receiver::poll_ack`]), and
//! calls [`Receiver::on_timer`] when [`Receiver::deadline`] has come.
//!
//! The rules are those of Linux 6.1 where Linux has them (quick and delayed ACKs, compressed SACKs,
//! a receive buffer that grows), or of 6.18 where [`WindowRules`] says so. Clean-room: written from
//! the RFCs and from a description of what Linux does.

mod ack_policy;
mod autotuning;
mod config;
mod joining;
mod merging;
mod reassembly;
mod receive_offload;
mod receive_window;
mod receiver;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod window;

pub use config::{AckCounting, EcnMode, ReceiverConfig};
pub use joining::Joining;
pub use receive_offload::ReceiveOffload;
pub use receive_window::{ReceiveWindow, WindowRules};
pub use receiver::{OutgoingAck, Receiver, ReceiverStats};
