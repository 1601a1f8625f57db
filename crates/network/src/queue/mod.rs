//! Queue disciplines.

use flowstart_units::Time;

use crate::Frame;

mod drop_tail;

pub use drop_tail::DropTail;

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue was full.
    Full,
    /// The flow's own share of the queue was full.
    FlowFull,
    /// An active queue management decided so.
    Early,
}

/// What a queue answers when asked for the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue<P> {
    /// This one, which was enqueued at the time given (its sojourn time is now minus that).
    Packet(P, Time),
    /// Nothing is stored.
    Empty,
    /// Packets are stored, but none may leave before this time.
    NotBefore(Time),
}

/// Which discipline, with its constants.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// A FIFO that drops arrivals when full.
    DropTail {
        /// Most packets stored; `None` for no such limit.
        packets: Option<u64>,
        /// Most bytes stored; `None` for no such limit.
        bytes: Option<u64>,
    },
}

/// A queue in operation. `P` is the packet type.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// A FIFO that drops arrivals when full.
    DropTail(DropTail<P>),
}

impl<P: Frame> Queue<P> {
    /// A queue as configured; `seed` feeds its random decisions and its flow hash.
    #[must_use]
    pub fn new(config: &QueueConfig, _seed: u64) -> Self {
        match *config {
            QueueConfig::DropTail { packets, bytes } => Self::DropTail(DropTail::new(packets, bytes)),
        }
    }

    /// A packet arrives. Dropped packets (this one or another) go to `dropped`.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, dropped: &mut impl FnMut(P, DropReason)) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, packet, dropped),
        }
    }

    /// The link is free: the next packet. Packets dropped on the way go to `dropped`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, _dropped: &mut impl FnMut(P, DropReason)) -> Dequeue<P> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now),
        }
    }

    /// Packets stored.
    #[must_use]
    pub fn packets(&self) -> u64 {
        match self {
            Self::DropTail(queue) => queue.packets(),
        }
    }

    /// Bytes stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::DropTail(queue) => queue.bytes(),
        }
    }
}
