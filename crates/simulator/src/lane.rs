//! Packets on their way: a pipe that delivers in order of arrival time.

use std::collections::VecDeque;

use flowstart_network::Packet;
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

/// Packets in flight over a constant (or nearly constant) delay, sorted by arrival. A constant delay keeps the order of departure, so a packet is
/// almost always appended; only jitter and several access links sharing a lane make one overtake others.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) target: Target,
    packets: VecDeque<(Time, Packet)>,
}

impl Lane {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, packets: VecDeque::new() }
    }

    /// Adds a packet that arrives at `time`, behind those that arrive at the same time. Returns true if it is the new head.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, packet: Packet) -> bool {
        match self.packets.back() {
            None => {
                self.packets.push_back((time, packet));
                true
            }
            Some((last, _)) if *last <= time => {
                self.packets.push_back((time, packet));
                false
            }
            Some(_) => {
                let place = self.packets.partition_point(|(other, _)| *other <= time);
                self.packets.insert(place, (time, packet));
                place == 0
            }
        }
    }

    /// Takes the head and tells when the next one arrives.
    #[inline]
    pub(crate) fn pop(&mut self) -> (Option<Packet>, Time) {
        let head = self.packets.pop_front().map(|(_, packet)| packet);
        let next = self.packets.front().map_or(Time::NEVER, |(time, _)| *time);
        (head, next)
    }

    /// Packets in flight.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
