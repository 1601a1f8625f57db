//! A FIFO that thins acknowledgements, as the ACK filter of Linux's CAKE does.

use std::collections::VecDeque;

use flowstart_units::Time;

use super::{Constants, Dequeue, Discipline, DropReason, DropTailConfig, Limit, QueueError, Tally};
use crate::{Frame, PureAck};

/// Constants of the ACK filter (Linux `sch_cake`, `cake_ack_filter`): an arriving pure ACK takes
/// the place of earlier ones of its flow that it covers. ACKs that say more than a number (SACK
/// blocks, other flags) are never dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct AckFilterConfig {
    /// Room for packets of all kinds; default unlimited.
    pub limit: DropTailConfig,
    /// So many covered ACKs of a flow stay; default 0. (CAKE's `ack-filter` keeps one,
    /// `ack-filter-aggressive` none.)
    pub keep: u32,
}

/// Packets from the tail on that are looked through for covered ACKs.
const REACH: usize = 1024;

impl Constants for AckFilterConfig {
    type Queue<P: Frame> = AckFilter<P>;

    fn build<P: Frame>(self, _seed: u64) -> AckFilter<P> {
        AckFilter {
            stored: VecDeque::new(),
            bytes: 0,
            keep: self.keep,
            limit_packets: self.limit.packets.unwrap_or(u64::MAX),
            limit_bytes: self.limit.bytes.unwrap_or(u64::MAX),
        }
    }

    fn validate(&self) -> Result<(), QueueError> {
        self.limit.validate()
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Either(&mut self.limit)
    }

    fn largest_packet(&self) -> u64 {
        self.limit.largest_packet()
    }
}

/// The filter in operation.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    stored: VecDeque<(P, Time)>,
    bytes: u64,
    keep: u32,
    limit_packets: u64,
    limit_bytes: u64,
}

/// True if `later` says everything that `earlier` does.
fn covers(later: PureAck, earlier: PureAck) -> bool {
    earlier.plain && later.flags == earlier.flags && later.ack.wrapping_sub(earlier.ack) as i32 >= 0
}

impl<P: Frame> AckFilter<P> {
    /// Drops what the new ACK covers, but for the newest ones that are to stay.
    fn filter(&mut self, packet: &P, ack: PureAck, dropped: &mut dyn FnMut(P, DropReason)) {
        let mut kept = 0;
        let first = self.stored.len().saturating_sub(REACH);
        for place in (first..self.stored.len()).rev() {
            let Some((other, _)) = self.stored.get(place) else { continue };
            let covered = other.flow() == packet.flow() && other.pure_ack().is_some_and(|other| covers(ack, other));
            if covered && kept < self.keep {
                kept += 1;
            } else if covered && let Some((other, _)) = self.stored.remove(place) {
                self.bytes -= u64::from(other.bytes());
                dropped(other, DropReason::Thinned);
            }
        }
    }
}

impl<P: Frame> Discipline<P> for AckFilter<P> {
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        if let Some(ack) = packet.pure_ack() {
            self.filter(&packet, ack, dropped);
        }
        let bytes = self.bytes + u64::from(packet.bytes());
        if self.stored.len() as u64 >= self.limit_packets || bytes > self.limit_bytes {
            return dropped(packet, DropReason::Full);
        }
        self.bytes = bytes;
        self.stored.push_back((packet, now));
    }

    fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        let head = self.stored.pop_front();
        self.bytes -= head.as_ref().map_or(0, |(packet, _)| u64::from(packet.bytes()));
        head.into()
    }

    fn tally(&self) -> Tally {
        Tally { packets: self.stored.len() as u64, bytes: self.bytes, marked: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Acknowledgement, Body, MAX_SACK_BLOCKS, SackBlock};
    use crate::{Ecn, Packet, Queue, QueueConfig};
    use flowstart_quick_start::RateCode;

    fn ack(flow: u32, ack: u64, blocks: u8, ece: bool) -> Packet {
        let body = Body::Ack(Acknowledgement {
            ack,
            echo: Time::ZERO,
            ce_count: 0,
            window: 0,
            sack: [SackBlock { start: 10, end: 20 }; MAX_SACK_BLOCKS],
            sack_len: blocks,
            ece,
            duplicate: false,
            syn: false,
            granted_rate: RateCode::ZERO,
        });
        Packet { flow, bytes: 52, ecn: Ecn::NotEct, body }
    }

    /// Flows and numbers of the ACKs that come out, and how many were dropped.
    fn thinned(keep: u32, packets: &[Packet]) -> (Vec<(u32, u64)>, u64) {
        let config = AckFilterConfig { keep, ..AckFilterConfig::default() };
        let mut queue = Queue::new(&QueueConfig::AckFilter(config), 1);
        for packet in packets {
            queue.enqueue(Time::ZERO, *packet, &mut |_, reason| assert_eq!(reason, DropReason::Thinned));
        }
        let mut out = Vec::new();
        while let Dequeue::Packet(packet, _) = queue.dequeue(Time::ZERO, &mut |_, _| ()) {
            let Body::Ack(ack) = packet.body else { panic!("an ACK") };
            out.push((packet.flow, ack.ack));
        }
        assert_eq!((queue.packets(), queue.bytes()), (0, 0));
        (out, queue.stats().dropped)
    }

    #[test]
    fn a_later_ack_takes_the_place_of_those_it_covers() {
        let packets = [ack(0, 1, 0, false), ack(1, 5, 0, false), ack(0, 2, 0, false), ack(0, 3, 0, false)];
        assert_eq!(thinned(0, &packets), (vec![(1, 5), (0, 3)], 2));
        assert_eq!(thinned(1, &packets), (vec![(1, 5), (0, 2), (0, 3)], 1));
    }

    #[test]
    fn acks_that_say_more_stay() {
        let packets = [ack(0, 1, 2, false), ack(0, 1, 0, true), ack(0, 9, 0, false)];
        assert_eq!(thinned(0, &packets), (vec![(0, 1), (0, 1), (0, 9)], 0));
    }

    #[test]
    fn an_older_ack_drops_no_newer_one_also_where_numbers_wrap() {
        let packets = [ack(0, 7, 0, false), ack(0, 3, 0, false)];
        assert_eq!(thinned(0, &packets), (vec![(0, 7), (0, 3)], 0));
        let packets = [ack(0, 0xffff_ffff, 0, false), ack(0, 0x1_0000_0005, 0, false)];
        assert_eq!(thinned(0, &packets).1, 1);
    }
}
