//! NewReno congestion avoidance (RFC 5681 section 3.1, RFC 6582), counted in packets as Linux does.

use flowstart_units::Time;

use crate::{Ack, CongestionAvoidance, Signal, Window};

/// NewReno.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno {
    counted: u32,
}

impl CongestionAvoidance for Reno {
    #[inline]
    fn grow(&mut self, _ack: &Ack, acked: u32, window: &mut Window) {
        self.counted += acked;
        if self.counted >= window.cwnd {
            self.counted -= window.cwnd;
            window.cwnd += 1;
        }
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        (window.cwnd / 2).max(2)
    }
}
