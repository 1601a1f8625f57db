//! What is known of a flow that ran, and what senders and receivers of our own say of it, which of
//! a kernel's nobody knows.

use flowstart_congestion::{ExitReason, StartExit};
use flowstart_emulator::FlowKey;
use flowstart_emulator::traffic::FlowOutcome;
use flowstart_units::{Bytes, Time};

/// A flow that ran.
#[derive(Default)]
pub(super) struct Ran {
    /// Its group in the scenario.
    pub(super) group: u32,
    /// Bytes of a sized transfer.
    pub(super) size: Option<Bytes>,
    /// The kernel's congestion control; `None` for datagrams.
    pub(super) control: Option<String>,
    /// How the kernel's HyStart ended slow starts of its host, if it did, and all in the same way.
    pub(super) hystart: Option<ExitReason>,
    /// Its host has this connection alone with CUBIC.
    pub(super) sole_cubic: bool,
    pub(super) outcome: FlowOutcome,
    /// What its ends said, if they are ours.
    pub(super) seen: Option<Seen>,
}

/// What was seen at the ends of a flow. Times are those of the world's clock.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
pub(super) struct Seen {
    /// When data could be sent for the first time; packets before opened the connection.
    pub(super) began: Option<Time>,
    /// The second connection, if it has one.
    pub(super) companion: Option<FlowKey>,
    /// How the start ended, if it did.
    pub(super) exit: Option<StartExit>,
    /// Bytes that the receiving application had read, and when that became so.
    pub(super) reads: Vec<(Time, u64)>,
    /// The messages that ended in datagrams which left, in this order, by their numbers, and what
    /// the path knows each datagram by; only of a flow that somebody listens to.
    pub(super) departures: Vec<(u64, u128)>,
}
