//! One of the two connections: what leaves when, and what became of it.

use alloc::collections::VecDeque;

use flowstart_units::{Span, Time};

use crate::{Acked, Departure, Sent};

use super::config::TrainProbeConfig;

/// A packet that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) number: u64,
    pub(super) sent: Time,
    /// For a lone packet, the train packet that left last before it.
    pub(super) neighbour: u64,
    pub(super) rtt: Option<Span>,
    pub(super) lost: bool,
    /// When its ACK came.
    pub(super) arrived: Option<Time>,
    /// How much later the newest packet of that ACK left, whose RTT it is.
    pub(super) newest: Span,
}

impl Flying {
    /// True once its fate is known.
    pub(super) fn is_settled(&self) -> bool {
        self.rtt.is_some() || self.lost
    }
}

/// The packet that left last of those that have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    number: u64,
    pub(super) sent: Time,
    rtt: Span,
    /// When its ACK came.
    at: Time,
}

impl Newest {
    pub(super) fn new(acked: &Acked) -> Self {
        Self { number: acked.number, sent: acked.sent_at, rtt: round_trip(acked), at: acked.now }
    }

    /// By how much this one, which left earlier, was under way for longer. The bottleneck takes
    /// `service` for a packet, if that is known; packets leave at most `most_space` of it apart.
    pub(super) fn overtook(&self, acked: &Acked, service: Option<Span>, most_space: u64) -> Span {
        // In one ACK all have the RTT of the newest. And a pause between them, in which a queue
        // drained, is no delay.
        let packets = self.number.saturating_sub(acked.number);
        let between = service.map(|service| service * most_space.saturating_mul(packets));
        let most = between.map_or(Span::MAX, |between| acked.now.since(self.at) + between);
        (round_trip(acked) - self.rtt).min(most)
    }
}

/// An ACK with the packets that it was for.
#[derive(Clone, Copy, Debug, Default)]
struct Together {
    at: Time,
    packets: u32,
    /// When the last of them left.
    sent: Time,
    /// Time between the departures of its first packet and of the last of the ACK before.
    apart: Span,
    /// By how much longer the time between both ACKs is.
    held: Span,
}

/// One of the two connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// `most_space` of the constants.
    most_space: u64,
    /// `most_in_an_ack` of the constants.
    most_in_an_ack: u32,
    /// Departures to come: when, and how many packets.
    pub(super) plan: VecDeque<(Time, u32)>,
    /// Packets whose fate still matters, by number.
    pub(super) flying: VecDeque<Flying>,
    pub(super) sent: u64,
    pub(super) open: bool,
    pub(super) smallest: Option<Span>,
    /// The smallest time from the last transmission of a packet that was sent again to its ACK. It
    /// may be that of an earlier transmission (Karn), so it only counts as long as nothing else is
    /// known: what is planned by the RTT must not wait for ever.
    pub(super) of_repairs: Option<Span>,
    /// The packet that left last of those that have arrived.
    newest: Option<Newest>,
    /// The last ACK.
    together: Together,
    /// An ACK was for more packets than two delayed ACKs are.
    pub(super) stretched: bool,
    /// The longest time between two ACKs of which the later one was for that many packets.
    held: Span,
    /// By how much longer, at most, two packets of different ACKs were under way of which the
    /// second left right behind the first and came with others; once an ACK was for many.
    held_few: Span,
    /// Number of the last packet that arrived, and when.
    last: Option<(u64, Time)>,
    /// Shortest time between the arrivals of two packets that left one after the other.
    pub(super) quickest: Option<Span>,
    /// By how much a packet was under way for longer than one that overtook it, at most.
    pub(super) reordering: Span,
}

/// Packets whose fate is remembered; more than a batch of the longest trains.
const REMEMBERED: usize = 2048;

/// The RTT of the newest packet of an ACK counts for all of them, so that a delayed ACK does not
/// look like a queue.
pub(super) fn round_trip(acked: &Acked) -> Span {
    acked.rtt.unwrap_or(acked.now.since(acked.sent_at))
}

impl Side {
    pub(super) fn new(config: &TrainProbeConfig) -> Self {
        let (most_space, most_in_an_ack) = (u64::from(config.most_space), config.most_in_an_ack);
        Self { most_space, most_in_an_ack, ..Self::default() }
    }

    pub(super) fn departure(&self) -> Departure {
        self.plan.front().map_or(Departure::Hold, |(at, _)| Departure::At(*at))
    }

    /// True if a packet is planned to leave by now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.plan.front().is_some_and(|(at, _)| *at <= now)
    }

    pub(super) fn leave(&mut self, sent: &Sent, neighbour: u64) {
        if let Some((_, count)) = self.plan.front_mut() {
            *count -= 1;
            if *count == 0 {
                self.plan.pop_front();
            }
        }
        if self.flying.len() >= REMEMBERED {
            self.flying.pop_front();
        }
        self.flying.push_back(Flying {
            number: sent.number,
            sent: sent.now,
            neighbour,
            rtt: None,
            lost: false,
            arrived: None,
            newest: Span::ZERO,
        });
        self.sent = sent.number + 1;
    }

    /// Packets that left earlier by at least `patience` and whose ACK did not come are lost. The
    /// bottleneck takes `service` for each, if that is known.
    pub(super) fn arrive(&mut self, acked: &Acked, patience: Span, service: Option<Span>) {
        let (rtt, most_space) = (round_trip(acked), self.most_space);
        let known = if acked.retransmitted { &mut self.of_repairs } else { &mut self.smallest };
        *known = Some(known.map_or(rtt, |smallest| smallest.min(rtt)));
        self.note_gaps(acked, service);
        if !acked.retransmitted {
            match self.newest {
                Some(newest) if acked.sent_at < newest.sent => {
                    self.reordering = self.reordering.max(newest.overtook(acked, service, most_space));
                }
                _ => self.newest = Some(Newest::new(acked)),
            }
        }
        for packet in &mut self.flying {
            if packet.number > acked.number || packet.rtt.is_some() {
                continue;
            }
            if packet.number == acked.number {
                // If it was thought lost, it was only late.
                (packet.rtt, packet.lost, packet.arrived) = (Some(rtt), false, Some(acked.now));
                packet.newest = acked.now.since(packet.sent) - rtt;
            } else if acked.sent_at.since(packet.sent) >= patience {
                packet.lost = true;
            }
        }
    }

    /// Notes how far apart packets arrive, and whether many come with one ACK.
    fn note_gaps(&mut self, acked: &Acked, service: Option<Span>) {
        let Together { at, packets, sent, apart, held } = self.together;
        let (packets, apart, held) = if at == acked.now {
            (packets + 1, apart, held)
        } else {
            let apart = acked.sent_at.since(sent);
            (1, apart, acked.now.since(at) - apart)
        };
        self.together = Together { at: acked.now, packets, sent: acked.sent_at, apart, held };
        self.stretched |= packets > self.most_in_an_ack;
        // A longer time is a pause.
        let most = self.smallest.unwrap_or(Span::ZERO) / 2;
        let near = service.is_some_and(|service| apart <= service * self.most_space);
        if packets > self.most_in_an_ack && held + apart <= most {
            self.held = self.held.max(held + apart);
        } else if self.stretched && packets > 1 && near && held <= most {
            self.held_few = self.held_few.max(held);
        }
        if let Some((number, at)) = self.last.replace((acked.number, acked.now))
            && !acked.retransmitted
            && acked.number == number + 1
            && at < acked.now
        {
            let gap = acked.now.since(at);
            self.quickest = Some(self.quickest.map_or(gap, |quickest| quickest.min(gap)));
        }
    }

    /// True if the ACK of the packet that left last has not come.
    pub(super) fn is_waiting(&self) -> bool {
        self.flying.back().is_some_and(|packet| packet.rtt.is_none())
    }

    /// For how long the receiver holds ACKs back, if one was for many packets; zero if that is not
    /// known.
    pub(super) fn merging(&self) -> Span {
        if self.held.is_zero() { self.held_few } else { self.held }
    }

    /// True if packets that are remembered were lost.
    pub(super) fn has_losses(&self) -> bool {
        self.flying.iter().any(|packet| packet.lost)
    }

    pub(super) fn find(&self, number: u64) -> Option<&Flying> {
        let first = self.flying.front()?.number;
        self.flying.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The RTT of the last packet up to `number`, within a train of this length, that arrived. If
    /// its ACK was held back, that of an earlier packet and the time that the bottleneck took for
    /// those between them.
    pub(super) fn delay_before(&self, number: u64, length: u32, service: Span) -> Option<Span> {
        let train = (0..u64::from(length)).filter_map(|back| self.find(number.checked_sub(back)?));
        let mut arrived = train.filter_map(|packet| Some((packet.number, packet.rtt?)));
        let (last, rtt) = arrived.next()?;
        let earlier = arrived.find(|(_, other)| *other != rtt);
        Some(earlier.map_or(rtt, |(number, before)| rtt.min(before + service * (last - number))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::sent;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn acked(now: u64, number: u64, sent_at: u64) -> Acked {
        let (now, sent_at) = (Time::ZERO + ms(now), Time::ZERO + ms(sent_at));
        Acked { now, number, bytes: 1448, sent_at, rtt: Some(now.since(sent_at)), retransmitted: false }
    }

    /// A side that sent a packet every millisecond.
    fn side(packets: u64) -> Side {
        let mut side = Side::new(&TrainProbeConfig::default());
        (0..packets).for_each(|number| side.leave(&sent(Time::ZERO + ms(number), number), number * 10));
        side
    }

    #[test]
    fn what_is_planned_leaves_one_by_one() {
        let mut side = Side::new(&TrainProbeConfig::default());
        assert_eq!(side.departure(), Departure::Hold);
        let [first, second] = [5, 7].map(|at| Time::ZERO + ms(at));
        side.plan.extend([(first, 2), (second, 1)]);
        assert!(!side.is_due(first - ms(1)) && side.is_due(first) && side.is_due(second));
        let mut left = |number| {
            let departure = side.departure();
            side.leave(&sent(first, number), 0);
            departure
        };
        assert_eq!(
            [0, 1, 2, 3].map(&mut left),
            [Departure::At(first), Departure::At(first), Departure::At(second), Departure::Hold]
        );
        assert_eq!(side.sent, 4);
    }

    #[test]
    fn packets_overtaken_by_more_than_the_patience_are_lost_until_they_arrive() {
        let mut side = side(5);
        side.arrive(&acked(20, 3, 3), ms(2), None);
        let lost = |side: &Side| (0..5).map(|number| side.find(number).unwrap().lost).collect::<Vec<_>>();
        assert_eq!(lost(&side), [true, true, false, false, false]);
        assert!(side.has_losses());
        side.arrive(&acked(22, 0, 0), ms(2), None);
        side.arrive(&acked(22, 1, 1), ms(2), None);
        assert_eq!(lost(&side), [false; 5]);
        assert!(!side.has_losses());
        assert_eq!(side.find(0).unwrap().rtt, Some(ms(22)));
        // The first RTT of a packet stays.
        side.arrive(&acked(30, 0, 0), ms(2), None);
        assert_eq!(side.find(0).unwrap().rtt, Some(ms(22)));
        assert_eq!(side.smallest, Some(ms(17)));
        let settled = |number| side.find(number).unwrap().is_settled();
        assert!(settled(0) && settled(3) && !settled(2) && !settled(4));
    }

    #[test]
    fn a_packet_in_an_ack_of_a_later_one_knows_how_much_later_that_left() {
        let mut side = side(5);
        for number in 1..=3 {
            // The fourth left after 3 ms and took 17.
            side.arrive(&Acked { rtt: Some(ms(17)), ..acked(20, number, number) }, ms(100), None);
        }
        assert_eq!([1, 2, 3].map(|number| side.find(number).unwrap().newest), [2, 1, 0].map(ms));
    }

    #[test]
    fn a_packet_that_was_sent_twice_does_not_tell_the_smallest_rtt() {
        let mut side = side(2);
        side.arrive(&Acked { rtt: None, retransmitted: true, ..acked(3, 0, 2) }, ms(2), None);
        assert_eq!(side.smallest, None);
        assert_eq!(round_trip(&Acked { rtt: None, ..acked(30, 0, 10) }), ms(20));
        assert_eq!(round_trip(&Acked { rtt: Some(ms(7)), ..acked(30, 0, 10) }), ms(7));
    }

    #[test]
    fn a_packet_that_was_overtaken_tells_by_how_much_and_a_repair_does_not() {
        let mut side = side(5);
        side.arrive(&acked(20, 3, 3), ms(2), None);
        side.arrive(&acked(24, 1, 1), ms(2), None);
        // 23 ms instead of 17.
        assert_eq!(side.reordering, ms(6));
        side.arrive(&Acked { retransmitted: true, ..acked(60, 0, 0) }, ms(2), None);
        side.arrive(&acked(26, 4, 4), ms(2), None);
        assert_eq!(side.reordering, ms(6));
    }

    /// Seen with 3 ms of reordering at 100 Mbit/s: the last packet of a train arrived 0.2 ms after
    /// one that had left 22 ms later, when the queue was gone, and 23 ms were taken for reordering.
    #[test]
    fn a_queue_that_drained_in_a_pause_is_no_reordering() {
        let mut side = side(5);
        side.leave(&sent(Time::ZERO + ms(30), 5), 0);
        side.arrive(&acked(50, 5, 30), ms(2), Some(ms(1)));
        // It took 47 ms where the newest took 20, but it came 1 ms later, one packet before it.
        side.arrive(&acked(51, 4, 4), ms(2), Some(ms(1)));
        assert_eq!(side.reordering, ms(3));
        // Without a pause between them it is the difference.
        side.arrive(&acked(52, 2, 2), ms(2), None);
        assert_eq!(side.reordering, ms(30));
    }

    #[test]
    fn an_ack_for_more_than_four_packets_tells_for_how_long_they_were_held_back() {
        let mut side = side(20);
        (0..4).for_each(|number| side.arrive(&acked(30, number, 3), ms(2), None));
        assert!(!side.stretched);
        (4..9).for_each(|number| side.arrive(&acked(35, number, 8), ms(2), None));
        assert!(side.stretched);
        assert_eq!(side.merging(), ms(5));
        // A pause of more than half a round trip is none.
        (9..14).for_each(|number| side.arrive(&acked(50, number, 13), ms(2), None));
        assert_eq!(side.merging(), ms(5));
    }

    #[test]
    fn how_many_a_delayed_ack_is_for_at_most_is_a_constant() {
        for (most_in_an_ack, stretched) in [(4, true), (5, false)] {
            let mut side = Side::new(&TrainProbeConfig { most_in_an_ack, ..TrainProbeConfig::default() });
            (0..5).for_each(|number| side.leave(&sent(Time::ZERO + ms(number), number), 0));
            (0..5).for_each(|number| side.arrive(&acked(30, number, 4), ms(2), None));
            assert_eq!(side.stretched, stretched, "{most_in_an_ack}");
        }
    }

    /// Seen at 50 Mbit/s beside CUBIC: the first ACK was for many after a pause, the others for
    /// three.
    #[test]
    fn where_no_ack_for_many_tells_it_those_for_fewer_do() {
        let mut side = side(20);
        let service = Some(ms(1));
        let mut arrive = |at, numbers: core::ops::Range<u64>| {
            numbers.for_each(|number| side.arrive(&acked(at, number, number), ms(2), service));
            (side.stretched, side.merging())
        };
        assert_eq!(arrive(30, 0..2), (false, ms(0)));
        assert_eq!(arrive(33, 2..4), (false, ms(0)), "delayed ACKs are for two");
        assert_eq!(arrive(50, 4..9), (true, ms(0)), "after a pause");
        assert_eq!(arrive(53, 9..10), (true, ms(0)), "one alone is not held back");
        assert_eq!(arrive(57, 10..12), (true, ms(3)), "four, of which one between departures");
        assert_eq!(arrive(60, 12..14), (true, ms(3)));
        assert_eq!(arrive(67, 14..19), (true, ms(7)), "one for many tells better");
    }

    #[test]
    fn what_left_long_after_the_packet_before_tells_nothing_of_acks_for_few() {
        let mut side = Side { stretched: true, ..Side::new(&TrainProbeConfig::default()) };
        for (number, sent_at) in [(0, 0), (1, 4), (2, 4)] {
            let time = Time::ZERO + ms(sent_at);
            side.leave(&sent(time, number), 0);
        }
        side.arrive(&acked(20, 0, 0), ms(2), Some(ms(1)));
        [1, 2].into_iter().for_each(|number| side.arrive(&acked(28, number, 4), ms(2), Some(ms(1))));
        assert_eq!(side.merging(), ms(0));
    }

    #[test]
    fn the_quickest_gap_is_that_of_packets_that_left_one_after_the_other() {
        let mut side = side(6);
        for (at, number) in [(20, 0), (22, 1), (23, 3), (26, 4), (26, 5)] {
            side.arrive(&acked(at, number, number), ms(2), None);
        }
        assert_eq!(side.quickest, Some(ms(2)));
    }

    #[test]
    fn the_last_2048_packets_are_remembered() {
        let side = side(2100);
        assert!(side.find(51).is_none() && side.find(2100).is_none());
        assert_eq!(side.find(52).map(|packet| packet.neighbour), Some(520));
        assert_eq!(side.find(2099).map(|packet| packet.number), Some(2099));
    }

    #[test]
    fn the_delay_before_a_packet_is_that_of_the_last_of_its_train_that_arrived() {
        let mut side = side(8);
        let rtts = [10, 11, 12, 13, 30, 30];
        for (number, rtt) in (0..).zip(rtts) {
            side.arrive(&acked(number + rtt, number, number), ms(100), None);
        }
        // Packet 5 came with an ACK that was held back: that of packet 3 and two packet times.
        assert_eq!(side.delay_before(7, 8, ms(1)), Some(ms(15)));
        assert_eq!(side.delay_before(7, 8, ms(10)), Some(ms(30)));
        assert_eq!(side.delay_before(3, 8, ms(1)), Some(ms(13)));
        // In a train of two there is none before, in one of one nothing arrived.
        assert_eq!(side.delay_before(5, 2, ms(1)), Some(ms(30)));
        assert_eq!((side.delay_before(7, 2, ms(1)), side.delay_before(7, 0, ms(1))), (None, None));
    }
}
