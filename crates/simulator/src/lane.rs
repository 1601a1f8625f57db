//! Packets on their way: a pipe that delivers in order of arrival time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flowstart_network::{
    Ecn, Packet,
    packet::{Body, Datagram},
};
use flowstart_units::Time;

use crate::LinkId;

/// Where the packets of a lane arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// At the queue of a link.
    Link(LinkId),
    /// At the endpoint of their flow.
    Endpoint,
}

/// A packet and when it arrives. Aligned so that it is copied in whole words of the largest size
/// (measured).
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Entry {
    time: Time,
    packet: Packet,
}

/// What stands where no packet does.
const NOTHING: Entry = Entry {
    time: Time::NEVER,
    packet: Packet {
        flow: 0,
        bytes: 0,
        ecn: Ecn::NotEct,
        body: Body::Datagram(Datagram { number: 0, sent_at: Time::NEVER }),
    },
};

/// Entries a ring begins with.
const FIRST_CAPACITY: usize = 16;
/// A packet that overtakes more than so many waits beside the ring: to move them would take time in
/// proportion to all that is on its way.
const MOST_OVERTAKEN: usize = 32;

/// A packet that overtook many. Of those that arrive at one moment the first that came is the
/// first.
#[derive(Clone, Copy, Debug)]
struct Overtaking {
    entry: Entry,
    number: u64,
}

impl Overtaking {
    fn key(&self) -> (Time, u64) {
        (self.entry.time, self.number)
    }
}

impl PartialEq for Overtaking {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Overtaking {}

impl PartialOrd for Overtaking {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Overtaking {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Packets in flight over a constant (or nearly constant) delay, sorted by arrival. A constant
/// delay keeps the order of departure, so a packet is almost always appended; only jitter and
/// several access links sharing a lane make one overtake others.
///
/// A ring whose size is a power of two: a position is a mask away from its place, where a
/// `VecDeque` compares and subtracts.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) target: Target,
    ring: Vec<Entry>,
    /// Position of the next packet to arrive, and of the next one added; they count on and are
    /// masked.
    head: usize,
    tail: usize,
    /// The latest arrival ever added: what comes no earlier is appended.
    latest: Time,
    /// Those that overtook many. None of them arrives before the head of the ring, so while there
    /// are any the ring is not empty; and all that overtake while there are any join them, so
    /// whatever in the ring arrives at the same moment came before.
    overtaking: BinaryHeap<Reverse<Overtaking>>,
    /// How many have joined them.
    joined: u64,
}

impl Lane {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            ring: vec![NOTHING; FIRST_CAPACITY],
            head: 0,
            tail: 0,
            latest: Time::ZERO,
            overtaking: BinaryHeap::new(),
            joined: 0,
        }
    }

    #[inline(always)]
    fn place(&self, position: usize) -> usize {
        position & (self.ring.len() - 1)
    }

    /// Adds a packet that arrives at `time`, behind those that arrive at the same time. Returns
    /// true if it is the new head.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Time, packet: &Packet) -> bool {
        if self.in_ring() == self.ring.len() {
            self.enlarge();
        }
        if time < self.latest {
            return self.insert(Entry { time, packet: *packet });
        }
        self.latest = time;
        let place = self.place(self.tail);
        self.ring[place] = Entry { time, packet: *packet };
        self.tail = self.tail.wrapping_add(1);
        self.in_ring() == 1
    }

    #[cold]
    fn enlarge(&mut self) {
        let head = self.place(self.head);
        self.ring.rotate_left(head);
        (self.head, self.tail) = (0, self.in_ring());
        self.ring.resize(self.ring.len() * 2, NOTHING);
    }

    /// A packet overtakes others: all of them, or few, which move back by one, or many.
    #[cold]
    fn insert(&mut self, entry: Entry) -> bool {
        let count = self.in_ring();
        if count > 0 && entry.time < self.ring[self.place(self.head)].time {
            self.put_first(entry);
            return true;
        }
        let overtakes_many =
            count > MOST_OVERTAKEN && self.ring[self.place(self.tail.wrapping_sub(MOST_OVERTAKEN))].time > entry.time;
        if overtakes_many || !self.overtaking.is_empty() {
            self.joined += 1;
            self.overtaking.push(Reverse(Overtaking { entry, number: self.joined }));
            return false;
        }
        let mut position = self.tail;
        self.tail = self.tail.wrapping_add(1);
        while position != self.head {
            let before = self.place(position.wrapping_sub(1));
            if self.ring[before].time <= entry.time {
                break;
            }
            let place = self.place(position);
            self.ring[place] = self.ring[before];
            position = position.wrapping_sub(1);
        }
        let place = self.place(position);
        self.ring[place] = entry;
        position == self.head
    }

    /// Before all others; the ring has room.
    fn put_first(&mut self, entry: Entry) {
        self.head = self.head.wrapping_sub(1);
        let place = self.place(self.head);
        self.ring[place] = entry;
    }

    /// The next of those that overtook many goes into the ring if it is its turn.
    #[cold]
    fn call_in(&mut self) {
        let next = self.overtaking.peek().map(|Reverse(next)| next.entry);
        let is_next = |next: &Entry| self.head == self.tail || next.time < self.ring[self.place(self.head)].time;
        if let Some(next) = next.filter(is_next) {
            self.overtaking.pop();
            self.put_first(next);
        }
    }

    /// The packet that arrives next.
    #[inline(always)]
    pub(crate) fn head(&self) -> Option<&Packet> {
        if self.head == self.tail { None } else { Some(&self.ring[self.place(self.head)].packet) }
    }

    /// Drops the head and tells when the next packet arrives.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Time {
        if self.head != self.tail {
            self.head = self.head.wrapping_add(1);
        }
        if !self.overtaking.is_empty() {
            self.call_in();
        }
        if self.head == self.tail { Time::NEVER } else { self.ring[self.place(self.head)].time }
    }

    #[inline(always)]
    fn in_ring(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Packets in flight.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.in_ring() + self.overtaking.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Differential: a lane against a list that is sorted again after every change.
        #[test]
        fn packets_leave_in_order_of_arrival_and_equal_ones_as_they_came(
            steps in proptest::collection::vec((0_u64..100, proptest::bool::weighted(0.3)), 1..600),
        ) {
            let mut lane = Lane::new(Target::Endpoint);
            let mut list: Vec<(Time, u32)> = Vec::new();
            for (number, (time, take)) in (0_u32..).zip(steps) {
                if take {
                    prop_assert_eq!(lane.head().map(|packet| packet.flow), list.first().map(|first| first.1));
                    if !list.is_empty() {
                        list.remove(0);
                    }
                    prop_assert_eq!(lane.advance(), list.first().map_or(Time::NEVER, |first| first.0));
                } else {
                    let time = Time::from_nanos(time);
                    list.push((time, number));
                    list.sort_by_key(|(time, _)| *time);
                    let new_head = lane.push(time, &Packet { flow: number, ..NOTHING.packet });
                    prop_assert_eq!(new_head, list[0].1 == number);
                }
                prop_assert_eq!(lane.len(), list.len());
            }
        }
    }

    /// As many as a fast link with a long jitter has on its way: in proportion to their number, not
    /// to its square, which would be minutes.
    #[test]
    fn a_million_packets_that_overtake_one_another_are_sorted() {
        let mut lane = Lane::new(Target::Endpoint);
        let mut random = flowstart_random::SplitMix64::new(1);
        for number in 0..1_000_000_u64 {
            let time = Time::from_nanos(number * 60 + random.below(60_000_000) as u64);
            lane.push(time, &NOTHING.packet);
        }
        let (mut before, mut moved) = (Time::ZERO, 0);
        while lane.head().is_some() {
            let next = lane.advance();
            assert!(next >= before);
            (before, moved) = (next, moved + 1);
        }
        assert_eq!(moved, 1_000_000);
    }
}
