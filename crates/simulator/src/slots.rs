//! Who owns which slot of the schedule.

/// One of those whose next time stands in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The transmitter of a link.
    Link(usize),
    /// The flow whose timer comes first.
    Timers,
    /// An arrival process.
    Arrivals(usize),
    /// A session.
    Session(usize),
    /// A lane: packets on their way to the same place.
    Lane(usize),
}

/// Where the slots of each kind begin in the schedule. The order of the kinds is that of [`Slot`],
/// and it decides who goes first at equal times: changing it changes results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    timers: usize,
    sessions: usize,
    lanes: usize,
}

impl Slots {
    /// Slots for so many links, arrival processes and sessions. Lanes come last: any number of
    /// them.
    pub(crate) fn new(links: usize, arrivals: usize, sessions: usize) -> Self {
        let first_session = links + 1 + arrivals;
        Self { timers: links, sessions: first_session, lanes: first_session + sessions }
    }

    /// How many slots there are with so many lanes.
    pub(crate) fn count(&self, lanes: usize) -> usize {
        self.lanes + lanes
    }

    /// The place of a slot in the schedule.
    #[inline(always)]
    pub(crate) fn place(&self, slot: Slot) -> usize {
        match slot {
            Slot::Link(index) => index,
            Slot::Timers => self.timers,
            Slot::Arrivals(index) => self.timers + 1 + index,
            Slot::Session(index) => self.sessions + index,
            Slot::Lane(index) => self.lanes + index,
        }
    }

    /// Whose the slot at this place is; the inverse of [`Self::place`].
    // Lanes and links first: these are the events of packets.
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> Slot {
        if place >= self.lanes {
            Slot::Lane(place - self.lanes)
        } else if place < self.timers {
            Slot::Link(place)
        } else if place == self.timers {
            Slot::Timers
        } else if place < self.sessions {
            Slot::Arrivals(place - self.timers - 1)
        } else {
            Slot::Session(place - self.sessions)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_timers_arrivals_sessions_and_lanes_follow_each_other_without_gaps() {
        for (links, arrivals, sessions) in [(0, 0, 0), (1, 0, 0), (2, 3, 0), (3, 0, 2), (1, 4, 5)] {
            let slots = Slots::new(links, arrivals, sessions);
            let owners: Vec<Slot> = (0..links)
                .map(Slot::Link)
                .chain([Slot::Timers])
                .chain((0..arrivals).map(Slot::Arrivals))
                .chain((0..sessions).map(Slot::Session))
                .chain((0..7).map(Slot::Lane))
                .collect();
            assert_eq!(slots.count(7), owners.len());
            for (place, owner) in owners.into_iter().enumerate() {
                assert_eq!((slots.at(place), slots.place(owner)), (owner, place));
            }
        }
    }
}
