//! Queue disciplines.

mod drop_tail;
mod fair_queuing;
mod step_mark;
#[cfg(test)]
mod testing;

use std::fmt;

use flowstart_units::Time;

use crate::Frame;

pub use drop_tail::{DropTail, DropTailConfig};
pub use fair_queuing::{FairQueuing, FairQueuingConfig};
pub use step_mark::{StepMark, StepMarkConfig, Threshold};

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

impl DropReason {
    /// The reason as it stands in result tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FlowFull => "flow_full",
            Self::Early => "early",
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
pub enum QueueConfig {
    /// A FIFO that drops arrivals when full.
    DropTail(DropTailConfig),
    /// A FIFO that marks above a threshold.
    StepMark(StepMarkConfig),
    /// A queue per flow, served in turns (Linux `sch_fq`).
    FairQueuing(FairQueuingConfig),
}

impl QueueConfig {
    /// The names of all disciplines.
    pub const NAMES: [&'static str; 3] = ["drop_tail", "step_mark", "fair_queuing"];

    /// A FIFO of at most `packets` packets.
    #[must_use]
    pub const fn drop_tail(packets: u64) -> Self {
        Self::DropTail(DropTailConfig { packets: Some(packets), bytes: None })
    }

    /// The discipline's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail(_) => "drop_tail",
            Self::StepMark(_) => "step_mark",
            Self::FairQueuing(_) => "fair_queuing",
        }
    }

    /// Checks the constants.
    ///
    /// # Errors
    /// A buffer without room for a single packet, or a quantum of zero.
    pub fn validate(&self) -> Result<(), QueueError> {
        match self {
            Self::DropTail(config) => config.validate(),
            Self::StepMark(config) => config.limit.validate(),
            Self::FairQueuing(config) => config.validate(),
        }
    }
}

/// Why a queue cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueError(pub(crate) String);

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueueError {}

/// A queue in operation. `P` is the packet type.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// A FIFO that drops arrivals when full.
    DropTail(DropTail<P>),
    /// A FIFO that marks above a threshold.
    StepMark(StepMark<P>),
    /// A queue per flow, served in turns.
    FairQueuing(Box<FairQueuing<P>>),
}

impl<P: Frame> Queue<P> {
    /// A queue as configured; `seed` feeds its random decisions and its flow hash.
    #[must_use]
    pub fn new(config: &QueueConfig, seed: u64) -> Self {
        match config {
            QueueConfig::DropTail(config) => Self::DropTail(DropTail::new(*config)),
            QueueConfig::StepMark(config) => Self::StepMark(StepMark::new(*config)),
            QueueConfig::FairQueuing(config) => Self::FairQueuing(Box::new(FairQueuing::new(*config, seed))),
        }
    }

    /// A packet arrives. Dropped packets (this one or another) go to `dropped`.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, dropped: &mut impl FnMut(P, DropReason)) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, packet, dropped),
            Self::StepMark(queue) => queue.enqueue(now, packet, dropped),
            Self::FairQueuing(queue) => queue.enqueue(now, packet, dropped),
        }
    }

    /// The link is free: the next packet. Packets dropped on the way go to `dropped`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, _dropped: &mut impl FnMut(P, DropReason)) -> Dequeue<P> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::StepMark(queue) => queue.dequeue(now),
            Self::FairQueuing(queue) => queue.dequeue(now),
        }
    }

    /// Packets stored.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> u64 {
        match self {
            Self::DropTail(queue) => queue.packets(),
            Self::StepMark(queue) => queue.packets(),
            Self::FairQueuing(queue) => queue.packets(),
        }
    }

    /// Bytes stored.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::DropTail(queue) => queue.bytes(),
            Self::StepMark(queue) => queue.bytes(),
            Self::FairQueuing(queue) => queue.bytes(),
        }
    }
}
