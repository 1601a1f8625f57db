//! Standard slow start: RFC 5681 section 3.1 with growth counted in packets as Linux does (`tcp_slow_start`).

use crate::{Ack, FlowStart, Window};

/// Adds one packet per acknowledged packet up to ssthresh; returns what is left for congestion avoidance.
#[inline]
pub(crate) fn grow(window: &mut Window, acked: u32) -> u32 {
    let grown = window.cwnd.saturating_add(acked).min(window.ssthresh);
    let left = acked - (grown - window.cwnd);
    window.cwnd = grown;
    left
}

/// Standard slow start: the window doubles every round trip until a loss, a mark or ssthresh.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowStart;

impl FlowStart for SlowStart {
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        grow(window, ack.acked)
    }
}
