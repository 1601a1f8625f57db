//! Drop-tail FIFO (Linux pfifo and bfifo).

use std::collections::VecDeque;

use flowstart_units::Time;

use super::{Dequeue, DropReason};
use crate::Frame;

/// A FIFO that drops the arriving packet when full.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    stored: VecDeque<(P, Time)>,
    stored_bytes: u64,
    limit_packets: u64,
    limit_bytes: u64,
}

impl<P: Frame> DropTail<P> {
    /// A FIFO of at most `packets` packets and `bytes` bytes; `None` for no limit.
    #[must_use]
    pub fn new(packets: Option<u64>, bytes: Option<u64>) -> Self {
        Self {
            stored: VecDeque::new(),
            stored_bytes: 0,
            limit_packets: packets.unwrap_or(u64::MAX),
            limit_bytes: bytes.unwrap_or(u64::MAX),
        }
    }

    /// Stores the packet or drops it.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, dropped: &mut impl FnMut(P, DropReason)) {
        let bytes = u64::from(packet.bytes());
        if self.stored.len() as u64 >= self.limit_packets || self.stored_bytes.saturating_add(bytes) > self.limit_bytes
        {
            dropped(packet, DropReason::Full);
            return;
        }
        self.stored_bytes += bytes;
        self.stored.push_back((packet, now));
    }

    /// The oldest packet.
    #[inline]
    pub fn dequeue(&mut self, _now: Time) -> Dequeue<P> {
        match self.stored.pop_front() {
            Some((packet, arrived)) => {
                self.stored_bytes -= u64::from(packet.bytes());
                Dequeue::Packet(packet, arrived)
            }
            None => Dequeue::Empty,
        }
    }

    /// Packets stored.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Bytes stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.stored_bytes
    }
}
