//! A slow start beside others that keep a queue.

/// A slow start that is slower from a window on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unhurried {
    /// Packets.
    pub(super) from: u32,
    /// Packets for each that is acknowledged.
    pub(super) growth: f64,
    /// Of a packet, that it has not grown by yet.
    pub(super) left: f64,
}

impl Unhurried {
    /// Packets by which a window of `cwnd` grows for so many that were acknowledged.
    pub(super) fn of(&mut self, acked: u32, cwnd: u32) -> u32 {
        if cwnd < self.from {
            return acked;
        }
        let grown = f64::from(acked) * self.growth + self.left;
        let whole = grown as u32;
        self.left = grown - f64::from(whole);
        whole
    }
}
