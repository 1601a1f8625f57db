//! What senders and receivers of our own say of a flow, which of a kernel's nobody knows.

use flowstart_congestion::StartExit;
use flowstart_emulator::FlowKey;
use flowstart_units::Time;

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
}
