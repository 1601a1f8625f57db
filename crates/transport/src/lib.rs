//! The sending end of a TCP-like connection, sans-IO: a byte stream from a [`Sender`] to a
//! [`Receiver`] (of the crate `flowstart-receiver`, handed on here) over a network that loses,
//! delays, reorders and duplicates packets.
//!
//! Neither end knows a socket or a clock. The caller hands in what arrived and what time it is,
//! asks for packets to send ([`Sender::transmit`], [`Receiver::poll_ack`]) until there are none,
//! and calls `on_timer` when `deadline` has come. When packets may leave and how many is decided by
//! the sender's [`Controller`](flowstart_congestion::Controller).
//!
//! The rules are those of Linux 6.1 where Linux has them: RACK-TLP (RFC 8985), proportional rate
//! reduction (RFC 9937), F-RTO (RFC 5682), quick and delayed ACKs. Clean-room: written from the
//! RFCs and from a description of what Linux does.

mod config;
mod offload;
mod sender;
mod striping;

pub use config::{Kernel, LossDetection, Reduction, RtoRule, SenderConfig};
pub use flowstart_receiver::{
    AckCounting, EcnMode, Joining, OutgoingAck, ReceiveOffload, ReceiveWindow, Receiver, ReceiverConfig, ReceiverStats,
    WindowRules,
};
pub use offload::Offload;
pub use sender::parts;
pub use sender::{Otherwise, Outgoing, Sender, SenderState, SenderStats};
pub use striping::Striping;
