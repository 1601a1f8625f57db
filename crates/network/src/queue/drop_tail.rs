//! Drop-tail FIFO (Linux pfifo and bfifo).

use flowstart_units::Time;

use super::fifo::Fifo;
use super::{Constants, Dequeue, Discipline, DropReason, Limit, QueueError, Tally};
use crate::Frame;

/// How much a FIFO holds. The packet in transmission is not in the queue, so a link with a buffer
/// of one packet still sends back to back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DropTailConfig {
    /// Most packets stored, at least 1; `None` (the default) for no such limit.
    pub packets: Option<u64>,
    /// Most bytes stored, at least one packet's; `None` (the default) for no such limit.
    pub bytes: Option<u64>,
}

impl Constants for DropTailConfig {
    type Queue<P: Frame> = DropTail<P>;

    fn build<P: Frame>(self, _seed: u64) -> DropTail<P> {
        DropTail::new(self)
    }

    fn validate(&self) -> Result<(), QueueError> {
        if self.packets == Some(0) || self.bytes == Some(0) {
            return Err(QueueError(
                "a buffer of 0 has room for no packet, so the link would send nothing; \
                 the smallest buffer is \"1 packet\""
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Either(self)
    }

    fn largest_packet(&self) -> u64 {
        self.bytes.unwrap_or(u64::MAX)
    }
}

/// A FIFO that drops the arriving packet when full.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    pub(super) fifo: Fifo<P>,
    limit_packets: u64,
    limit_bytes: u64,
}

impl<P: Frame> DropTail<P> {
    /// An empty FIFO.
    #[must_use]
    pub fn new(config: DropTailConfig) -> Self {
        Self {
            fifo: Fifo::new(),
            limit_packets: config.packets.unwrap_or(u64::MAX),
            limit_bytes: config.bytes.unwrap_or(u64::MAX),
        }
    }

    /// True if there is room for this packet.
    #[inline]
    pub(super) fn has_room(&self, packet: &P) -> bool {
        self.has_room_without(packet, 0, 0)
    }

    /// True if there is room for this packet once so much of what is stored has left.
    #[inline]
    pub(super) fn has_room_without(&self, packet: &P, packets: u64, bytes: u64) -> bool {
        self.fifo.packets() - packets < self.limit_packets
            && (self.fifo.bytes() - bytes).saturating_add(u64::from(packet.bytes())) <= self.limit_bytes
    }
}

impl<P: Frame> Discipline<P> for DropTail<P> {
    // Stores the packet or drops it. Not inlined: a caller would take the packet apart to look at
    // its length, and to copy what was just written in parts stalls.
    #[inline(never)]
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        if self.has_room(&packet) {
            self.fifo.push(packet, now);
        } else {
            dropped(packet, DropReason::Full);
        }
    }

    // The oldest packet.
    #[inline]
    fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        self.fifo.take()
    }

    #[inline]
    fn tally(&self) -> Tally {
        self.fifo.tally(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueConfig;
    use crate::queue::testing::accepted;

    #[test]
    fn a_fifo_of_three_packets_drops_the_fourth() {
        assert_eq!(accepted(&[1514; 4], QueueConfig::drop_tail(3)), [true, true, true, false]);
    }

    #[test]
    fn a_fifo_of_3000_bytes_takes_1514_and_1486_and_then_not_one_byte_more() {
        let config = QueueConfig::DropTail(DropTailConfig { packets: None, bytes: Some(3000) });
        assert_eq!(accepted(&[1514, 1486, 1], config), [true, true, false]);
    }

    #[test]
    fn a_buffer_of_zero_is_refused() {
        assert!(DropTailConfig { packets: Some(0), bytes: None }.validate().is_err());
        assert!(DropTailConfig { packets: None, bytes: Some(0) }.validate().is_err());
    }
}
