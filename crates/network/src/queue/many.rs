//! Many queues, each with CoDel, and what all of them hold.

use flowstart_units::Time;

use super::codel_law::Source;
use super::fifo::Fifo;
use crate::Frame;

/// What is stored in all queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Total {
    /// A packet came.
    #[inline]
    pub(super) fn add(&mut self, packet: &impl Frame) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
    }

    /// A packet is gone.
    #[inline]
    pub(super) fn take(&mut self, packet: &impl Frame) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes());
    }

    /// Bytes with what the link layer adds.
    #[inline]
    pub(super) fn counted(&self, overhead: u32) -> u64 {
        self.bytes.saturating_add(self.packets.saturating_mul(u64::from(overhead)))
    }
}

/// One queue, whose backlog is that of all.
pub(super) struct OneOfMany<'a, P> {
    pub(super) fifo: &'a mut Fifo<P>,
    pub(super) total: &'a mut Total,
    pub(super) overhead: u32,
}

impl<P: Frame> Source<P> for OneOfMany<'_, P> {
    fn pop(&mut self) -> Option<(P, Time)> {
        let head = self.fifo.pop()?;
        self.total.take(&head.0);
        Some(head)
    }

    fn backlog(&self) -> u64 {
        self.total.counted(self.overhead)
    }
}
