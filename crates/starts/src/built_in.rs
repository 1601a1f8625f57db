//! The start that an avoidance brings itself.

use flowstart_control::{Ack, FlowStart, Window};

/// Leaves the flow to its avoidance from the first packet on: BBR is one machine, and the estimates
/// of its start go on to be used. An avoidance without a start of its own gets standard
/// slow start ([`Window::slow_start`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl FlowStart for BuiltIn {
    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.slow_start(ack.acked)
    }

    fn leaves_to_avoidance(&self) -> bool {
        true
    }
}
