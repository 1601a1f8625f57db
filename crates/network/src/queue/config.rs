//! What a discipline's constants are asked for, whichever discipline it is.

use std::fmt;

use super::{Discipline, DropTailConfig, QueueConfig};
use crate::Frame;
use crate::link::{MOST_OVERHEAD, too_much_overhead};

/// The constants of a discipline, as the registry needs them.
pub(super) trait Constants: Default {
    /// The discipline in operation.
    type Queue<P: Frame>: Discipline<P>;

    /// An empty queue; `seed` feeds its random decisions and its flow hash, if it has any.
    fn build<P: Frame>(self, seed: u64) -> Self::Queue<P>;

    /// Checks the constants.
    fn validate(&self) -> Result<(), QueueError>;

    /// In which order packets leave.
    fn order(&self) -> Order {
        Order::Arrival
    }

    /// True if packets may be held back while the link is free.
    fn holds_back(&self) -> bool {
        false
    }

    /// True if the queue draws random numbers or hashes flows with its seed.
    fn is_random(&self) -> bool {
        false
    }

    /// The constant that says how much the queue holds.
    fn limit(&mut self) -> Limit<'_>;

    /// The longest packet in bytes (IP length) that an empty queue takes.
    fn largest_packet(&self) -> u64 {
        u64::MAX
    }

    /// Bytes counted for a packet beyond its IP length.
    fn overhead(&self) -> u32 {
        0
    }

    /// Checks that too: at billions of bytes a packet queues that serve in turns would go round
    /// millions of times for each.
    fn validate_overhead(&self) -> Result<(), QueueError> {
        if self.overhead() > MOST_OVERHEAD {
            return Err(QueueError(too_much_overhead(self.overhead())));
        }
        Ok(())
    }
}

/// The methods of [`Constants`] that say how much a queue holds, where its constant `limit` is that
/// of a FIFO.
macro_rules! limit_of_a_fifo {
    () => {
        fn validate(&self) -> Result<(), QueueError> {
            self.limit.validate()
        }

        fn limit(&mut self) -> Limit<'_> {
            Limit::Either(&mut self.limit)
        }

        fn largest_packet(&self) -> u64 {
            self.limit.largest_packet()
        }
    };
}
pub(super) use limit_of_a_fifo;

/// In which order a queue lets packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All in order of arrival.
    Arrival,
    /// Those of a flow in order of arrival: flows wait in queues of their own.
    PerFlow,
    /// Those of a flow in order of arrival that are alike in being of low latency (ECT(1) or CE) or
    /// not.
    PerFlowAndMark,
}

/// The constant that says how much a queue holds, in the unit it has.
#[derive(Debug)]
pub enum Limit<'a> {
    /// Packets.
    Packets(&'a mut u64),
    /// Bytes.
    Bytes(&'a mut u64),
    /// Packets, bytes, both, or no limit at all.
    Either(&'a mut DropTailConfig),
}

impl QueueConfig {
    /// True if flows wait in queues of their own.
    #[must_use]
    pub fn isolates(&self) -> bool {
        self.order() == Order::PerFlow
    }

    /// True if it matters to which hosts flows belong.
    #[must_use]
    pub fn asks_for_hosts(&self) -> bool {
        matches!(self, Self::HostFairness(_))
    }

    /// True if the size of the link's buffer decides how much it holds: it can be told in packets
    /// or bytes, and its own constants do not say.
    #[must_use]
    pub fn takes_buffer(mut self) -> bool {
        matches!(self.limit(), Limit::Either(limit) if *limit == DropTailConfig::default())
    }

    /// How many bytes it holds, of packets of this size; [`u64::MAX`] without a limit.
    #[must_use]
    pub fn most_bytes(mut self, packet: u64) -> u64 {
        match self.limit() {
            Limit::Packets(packets) => packets.saturating_mul(packet),
            Limit::Bytes(bytes) => *bytes,
            Limit::Either(limit) => {
                let packets = limit.packets.map(|packets| packets.saturating_mul(packet));
                packets.into_iter().chain(limit.bytes).min().unwrap_or(u64::MAX)
            }
        }
    }

    /// A FIFO of at most `packets` packets.
    #[must_use]
    pub const fn drop_tail(packets: u64) -> Self {
        Self::DropTail(DropTailConfig { packets: Some(packets), bytes: None })
    }

    /// The discipline with room for so much, in its own unit: `packet` is the size in bytes by
    /// which packets and bytes are converted. Room for at least one packet remains. A discipline
    /// that must have a limit keeps its own if none is given.
    #[must_use]
    pub fn with_limit(mut self, packets: Option<u64>, bytes: Option<u64>, packet: u64) -> Self {
        let packet = packet.max(1);
        match self.limit() {
            Limit::Either(limit) => *limit = DropTailConfig { packets, bytes },
            Limit::Packets(limit) => {
                let converted = bytes.map(|bytes| (bytes / packet).max(1));
                *limit = packets.into_iter().chain(converted).min().unwrap_or(*limit);
            }
            Limit::Bytes(limit) => {
                let converted = packets.map(|packets| packets.saturating_mul(packet));
                *limit = bytes.into_iter().chain(converted).min().unwrap_or(*limit);
            }
        }
        self
    }
}

/// Why a queue cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueError(pub(crate) String);

impl QueueError {
    /// Fails with `message` unless `right`.
    pub(super) fn unless(right: bool, message: &str) -> Result<(), Self> {
        if right { Ok(()) } else { Err(Self(message.to_owned())) }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueueError {}
