//! What every queue discipline does.

use flowstart_units::Time;

use super::{Dequeue, DropReason};
use crate::Frame;

/// What a queue holds, and how often it has marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets stored.
    pub packets: u64,
    /// Bytes stored (IP lengths, without link-layer overhead).
    pub bytes: u64,
    /// Packets marked so far; one that carried the mark already counts too.
    pub marked: u64,
}

/// Between whom a flow runs. Numbers mean nothing but who is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hosts {
    /// Who sends the packets of this direction.
    pub source: u64,
    /// Who they are for.
    pub destination: u64,
}

/// A queue discipline: takes packets and says which one leaves next. Time is an argument and never
/// goes back.
///
/// The disciplines of this crate are called without indirection; one from outside is boxed and
/// joins by [`Queue::external`](super::Queue::external). Every packet that is taken must come out
/// again, either from [`dequeue`](Self::dequeue) or through `dropped`.
pub trait Discipline<P: Frame> {
    /// A packet arrives: it is stored, or dropped. Other packets may be dropped in its place.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason));

    /// The link is free: the next packet with the time at which it arrived, perhaps marked. Packets
    /// that are dropped on the way go to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P>;

    /// Nothing is stored: is it news to the discipline that a dequeue finds nothing? Then it is
    /// asked once more when the link is free after the last packet, as Linux asks until there is
    /// nothing (`__qdisc_run`). Default: it is not. So it is with those of Linux that answer at
    /// once when nothing is stored (`fq_dequeue`, `cake_dequeue`).
    fn heeds_emptiness(&self) -> bool {
        false
    }

    /// A flow ([`Frame::flow`]) belongs to these hosts; said before its first packet comes, to
    /// disciplines that ask for it ([`QueueConfig::asks_for_hosts`](super::QueueConfig)). A flow of
    /// which nothing was said has two hosts of its own.
    fn introduce(&mut self, _flow: u64, _hosts: Hosts) {}

    /// What is stored, and how often the queue has marked.
    fn tally(&self) -> Tally;

    /// Packets stored.
    #[inline]
    fn packets(&self) -> u64 {
        self.tally().packets
    }

    /// Bytes stored.
    #[inline]
    fn bytes(&self) -> u64 {
        self.tally().bytes
    }

    /// Packets marked.
    #[inline]
    fn marked(&self) -> u64 {
        self.tally().marked
    }
}
