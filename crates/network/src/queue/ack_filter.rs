//! A FIFO that thins acknowledgements, as the ACK filter of Linux's CAKE does.

use flowstart_units::Time;

use super::config::limit_of_a_fifo;
use super::{Constants, Dequeue, Discipline, DropReason, DropTail, DropTailConfig, Limit, QueueError, Tally};
use crate::{Frame, PureAck};

/// Constants of the ACK filter (Linux `sch_cake`, `cake_ack_filter`): an arriving pure ACK takes
/// the place of earlier ones of its flow that it covers. ACKs that say more than a number (SACK
/// blocks, other flags) are never dropped, nor those before an ACK with another ECN echo. (CAKE
/// looks at the echo only where it drops a single ACK.)
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
        AckFilter { fifo: DropTail::new(self.limit), keep: self.keep }
    }

    limit_of_a_fifo!();
}

/// The filter in operation.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    fifo: DropTail<P>,
    keep: u32,
}

/// True if `later` says everything that `earlier`, with the same flags, does.
fn covers(later: PureAck, earlier: PureAck) -> bool {
    earlier.plain && later.ack.wrapping_sub(earlier.ack) as i32 >= 0
}

impl<P: Frame> AckFilter<P> {
    /// Places of the ACKs that a new one covers, from the tail on, but for the newest that stay.
    /// None is before an ACK with other flags: that one would tell the sender what they told, and
    /// its ECN echo is not theirs. (CAKE drops a single ACK only if the next packet is the new one
    /// and their ECN flags match.)
    fn covered(&self, packet: &P, ack: PureAck) -> impl Iterator<Item = usize> {
        let stored = &self.fifo.fifo;
        let count = stored.packets() as usize;
        let own_ack = move |place: usize| {
            let other = stored.at(place).filter(|other| other.flow() == packet.flow())?;
            other.pure_ack().map(|other| (place, other))
        };
        (count.saturating_sub(REACH)..count)
            .rev()
            .filter_map(own_ack)
            .take_while(move |(_, other)| other.flags == ack.flags)
            .filter(move |(_, other)| covers(ack, *other))
            .map(|(place, _)| place)
            .skip(self.keep as usize)
    }

    /// True if there is room for an ACK once those that it covers are gone.
    fn has_room(&self, packet: &P, ack: PureAck) -> bool {
        let sizes = self.covered(packet, ack).filter_map(|place| self.fifo.fifo.at(place)).map(Frame::bytes);
        let (packets, bytes) = sizes.fold((0, 0), |(packets, bytes), size| (packets + 1, bytes + u64::from(size)));
        self.fifo.has_room_without(packet, packets, bytes)
    }
}

impl<P: Frame> Discipline<P> for AckFilter<P> {
    // Stores the packet instead of the ACKs that it covers, or drops it.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        // What is dropped for want of room takes nobody's place.
        if let Some(ack) = packet.pure_ack()
            && (self.fifo.has_room(&packet) || self.has_room(&packet, ack))
        {
            // After one has left, all places before it are as they were.
            loop {
                let place = self.covered(&packet, ack).next();
                let Some(other) = place.and_then(|place| self.fifo.fifo.remove(place)) else { break };
                dropped(other, DropReason::Thinned);
            }
        }
        self.fifo.enqueue(now, packet, dropped);
    }

    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        self.fifo.dequeue(now, dropped)
    }

    fn tally(&self) -> Tally {
        self.fifo.tally()
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
            has_share: false,
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
    fn no_ack_with_other_flags_takes_over_what_a_dropped_one_acknowledged() {
        // The first is covered by the third and has its flags, but what it says would be told by
        // the second.
        let packets = [ack(0, 1, 0, true), ack(0, 2, 0, false), ack(0, 3, 0, true), ack(0, 4, 0, true)];
        assert_eq!(thinned(0, &packets), (vec![(0, 1), (0, 2), (0, 4)], 1));
        // Whatever it is that has the other flags; another flow's ACKs count for nothing.
        let packets = [ack(0, 1, 0, false), ack(0, 2, 1, true), ack(0, 3, 0, false)];
        assert_eq!(thinned(0, &packets).1, 0);
        let packets = [ack(0, 1, 0, false), ack(1, 2, 0, true), ack(0, 3, 0, false)];
        assert_eq!(thinned(0, &packets), (vec![(1, 2), (0, 3)], 1));
        // One that stays takes over those before it, too.
        let packets = [ack(0, 1, 0, true), ack(0, 2, 0, false), ack(0, 3, 0, false), ack(0, 4, 0, false)];
        assert_eq!(thinned(1, &packets), (vec![(0, 1), (0, 3), (0, 4)], 1));
    }

    #[test]
    fn an_ack_that_is_dropped_for_want_of_room_takes_nobodys_place() {
        let limit = DropTailConfig { packets: None, bytes: Some(110) };
        let config = AckFilterConfig { limit, ..AckFilterConfig::default() };
        let mut queue = Queue::new(&QueueConfig::AckFilter(config), 1);
        let mut drops = Vec::new();
        // 52 + 52 B are stored; in place of the first 60 B would be two too many, and 56 B fit.
        for (flow, number, bytes) in [(0, 1, 52), (1, 5, 52), (0, 2, 60), (0, 3, 56)] {
            let packet = Packet { bytes, ..ack(flow, number, 0, false) };
            queue.enqueue(Time::ZERO, packet, &mut |packet, reason| drops.push((packet.bytes, reason)));
        }
        assert_eq!(drops, [(60, DropReason::Full), (52, DropReason::Thinned)]);
        assert_eq!((queue.packets(), queue.bytes()), (2, 108));
    }

    #[test]
    fn an_older_ack_drops_no_newer_one_also_where_numbers_wrap() {
        let packets = [ack(0, 7, 0, false), ack(0, 3, 0, false)];
        assert_eq!(thinned(0, &packets), (vec![(0, 7), (0, 3)], 0));
        let packets = [ack(0, 0xffff_ffff, 0, false), ack(0, 0x1_0000_0005, 0, false)];
        assert_eq!(thinned(0, &packets).1, 1);
    }
}
