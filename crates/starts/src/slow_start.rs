//! Standard slow start ([`Window::slow_start`]).

use flowstart_control::{Ack, FlowStart, Window};

/// Standard slow start: the window doubles every round trip until a loss, a mark or ssthresh.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowStart;

impl FlowStart for SlowStart {
    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.slow_start(ack.acked)
    }
}
