//! What TCP would call the data of each packet. QUIC sends what was lost in new packets and never
//! says which; but it sends it before new data, and about in the order in which it left first. So a
//! packet that leaves while something lost waits stands for the oldest of that, and all others
//! stand for themselves. A recovery as TCP's (RFC 6675 section 5) ends when all that was sent
//! before it is delivered, by whatever packet, however often it was lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What was lost and is not known to be delivered since.
#[derive(Clone, Debug, Default)]
pub(super) struct Repairs {
    /// First bytes of what waits to be sent again.
    owed: BinaryHeap<Reverse<u64>>,
    /// Packets in flight that stand for such.
    under_way: u32,
    /// The recovery's end, and how much below it is owed or in flight.
    end: u64,
    below: u32,
}

impl Repairs {
    /// A recovery begins, with so many packets in flight, the end of which is this byte.
    pub(super) fn begin(&mut self, in_flight: u32, end: u64) {
        self.end = end;
        self.below = in_flight.saturating_add(u32::try_from(self.owed.len()).unwrap_or(u32::MAX));
    }

    /// The first byte of what a packet stands for that leaves now, and is otherwise this one.
    pub(super) fn on_sent(&mut self, seq: u64) -> u64 {
        match self.owed.pop() {
            Some(Reverse(lost)) => {
                self.under_way += 1;
                lost
            }
            None => seq,
        }
    }

    /// A packet whose own first byte is `seq` and that stands for that of `stands_for` arrived.
    pub(super) fn on_delivered(&mut self, seq: u64, stands_for: u64) {
        self.under_way -= u32::from(stands_for != seq);
        self.below = self.below.saturating_sub(u32::from(stands_for < self.end));
    }

    /// ... or was lost.
    pub(super) fn on_lost(&mut self, seq: u64, stands_for: u64) {
        self.under_way -= u32::from(stands_for != seq);
        self.owed.push(Reverse(stands_for));
    }

    /// All that was sent before the recovery is delivered.
    pub(super) fn over(&self) -> bool {
        self.below == 0
    }

    /// Something that was lost is not known to be delivered.
    pub(super) fn any(&self) -> bool {
        self.under_way > 0 || !self.owed.is_empty()
    }

    /// What was lost will not be sent again, for there is nothing more to send.
    pub(super) fn write_off(&mut self) {
        while let Some(Reverse(lost)) = self.owed.pop() {
            self.below = self.below.saturating_sub(u32::from(lost < self.end));
        }
    }

    /// What was lost was not, and every packet in flight stands for itself.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
