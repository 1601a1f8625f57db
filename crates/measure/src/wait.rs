//! How long packets wait at a link.

use flowstart_simulator::FlowId;
use flowstart_units::{Span, Time};

/// One data packet's wait at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When it arrived at the queue.
    pub arrived: Time,
    /// How long it waited until its transmission began.
    pub waited: Span,
    /// Whose it was.
    pub flow: FlowId,
    /// How long its transmission took, in nanoseconds; with `Parts::LINK_SERIES`, otherwise zero.
    pub transmission: u32,
}
