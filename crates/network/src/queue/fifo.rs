//! What every discipline stores packets in.

use std::collections::VecDeque;

use flowstart_units::Time;

use crate::Frame;

/// Packets in order of arrival, with their arrival times.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    stored: VecDeque<(P, Time)>,
    bytes: u64,
}

impl<P: Frame> Fifo<P> {
    pub(super) fn new() -> Self {
        Self { stored: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, packet: P, now: Time) {
        self.bytes += u64::from(packet.bytes());
        self.stored.push_back((packet, now));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(P, Time)> {
        let head = self.stored.pop_front()?;
        self.bytes -= u64::from(head.0.bytes());
        Some(head)
    }

    /// The packet that leaves next.
    #[inline]
    pub(super) fn head(&self) -> Option<&(P, Time)> {
        self.stored.front()
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
