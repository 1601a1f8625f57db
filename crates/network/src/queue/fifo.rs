//! What every discipline stores packets in.

use std::collections::VecDeque;

use flowstart_units::Time;

use super::Dequeue;
use crate::{Frame, TagWord};

/// Packets in order of arrival, with their arrival times.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    stored: VecDeque<(P, Time, TagWord)>,
    bytes: u64,
}

impl<P: Frame> Fifo<P> {
    pub(super) fn new() -> Self {
        Self { stored: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, packet: P, now: Time) {
        self.bytes += u64::from(packet.bytes());
        self.stored.push_back((packet, now, TagWord::Present));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(P, Time)> {
        let (packet, arrived, _) = self.stored.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        Some((packet, arrived))
    }

    /// The oldest packet as the answer of a queue; like [`pop`](Self::pop), without a form in between.
    #[inline]
    pub(super) fn next(&mut self) -> Dequeue<P> {
        // Looked at where it lies, so that it moves in one piece.
        self.bytes -= self.head().map_or(0, |(packet, _)| u64::from(packet.bytes()));
        match self.stored.pop_front() {
            Some((packet, arrived, _)) => Dequeue::Packet(packet, arrived),
            None => Dequeue::Empty,
        }
    }

    /// The packet that leaves next.
    #[inline]
    pub(super) fn head(&self) -> Option<(&P, Time)> {
        self.stored.front().map(|(packet, arrived, _)| (packet, *arrived))
    }

    #[inline]
    pub(super) fn packets(&self) -> u64 {
        self.stored.len() as u64
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes with the link-layer header of each packet, as Linux queues count them.
    #[inline]
    pub(super) fn counted(&self, overhead: u32) -> u64 {
        self.bytes.saturating_add(self.packets().saturating_mul(u64::from(overhead)))
    }
}

/// A packet's length with its link-layer header.
#[inline]
pub(super) fn counted(packet: &impl Frame, overhead: u32) -> u64 {
    u64::from(packet.bytes()) + u64::from(overhead)
}
