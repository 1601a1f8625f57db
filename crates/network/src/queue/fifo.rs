//! What every discipline stores packets in.

use std::collections::VecDeque;

use flowstart_units::Time;

use super::{Dequeue, Tally};
use crate::{Frame, TagWord};

/// Packets in order of arrival, with their arrival times: what a discipline keeps them in.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    stored: VecDeque<(P, Time, TagWord)>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { stored: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Frame> Fifo<P> {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a packet that arrives at `now`.
    #[inline]
    pub fn push(&mut self, packet: P, now: Time) {
        self.bytes += u64::from(packet.bytes());
        self.stored.push_back((packet, now, TagWord::Present));
    }

    /// The oldest packet, and when it arrived.
    #[inline]
    pub fn pop(&mut self) -> Option<(P, Time)> {
        let (packet, arrived, _) = self.stored.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        Some((packet, arrived))
    }

    /// The oldest packet as the answer of a queue; like [`pop`](Self::pop), without a form between.
    #[inline]
    pub fn take(&mut self) -> Dequeue<P> {
        // Looked at where it lies, so that it moves in one piece.
        self.bytes -= self.head().map_or(0, |(packet, _)| u64::from(packet.bytes()));
        match self.stored.pop_front() {
            Some((packet, arrived, _)) => Dequeue::Packet(packet, arrived),
            None => Dequeue::Empty,
        }
    }

    /// The packet that leaves next, and when it arrived.
    #[inline]
    pub fn head(&self) -> Option<(&P, Time)> {
        self.stored.front().map(|(packet, arrived, _)| (packet, *arrived))
    }

    /// The packet at a place, 0 for the one that leaves next.
    pub(super) fn at(&self, place: usize) -> Option<&P> {
        self.stored.get(place).map(|(packet, ..)| packet)
    }

    /// Takes the packet at a place out, whoever is before it.
    pub(super) fn remove(&mut self, place: usize) -> Option<P> {
        let (packet, ..) = self.stored.remove(place)?;
        self.bytes -= u64::from(packet.bytes());
        Some(packet)
    }

    /// Packets stored.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Bytes stored.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What a discipline with this store and so many marks answers.
    #[must_use]
    #[inline]
    pub fn tally(&self, marked: u64) -> Tally {
        Tally { packets: self.packets(), bytes: self.bytes, marked }
    }

    /// Bytes with the link-layer header of each packet, as Linux queues count them.
    #[must_use]
    #[inline]
    pub fn counted(&self, overhead: u32) -> u64 {
        self.bytes.saturating_add(self.packets().saturating_mul(u64::from(overhead)))
    }
}

/// A packet's length with its link-layer header.
#[inline]
pub(super) fn counted(packet: &impl Frame, overhead: u32) -> u64 {
    u64::from(packet.bytes()) + u64::from(overhead)
}
