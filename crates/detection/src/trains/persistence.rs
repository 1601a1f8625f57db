//! Whether the rate at which trains arrive persists. A token bucket lets a burst pass at the rate
//! of the line behind it, a policer too, and trains may queue at the sender's own card: what they
//! meet there says nothing of the queue where a flow waits in the long run. So the rate of a train
//! is an upper bound until it has stopped falling.

use flowstart_units::{Span, Time};

/// Packets of a train whose arrivals are taken together: one lone packet among them, or the turn of
/// another flow, is no fall.
const GROUP: u32 = 8;

/// The lowest rate of groups of packets so far, and how many packets arrived since it fell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persistence {
    /// Time per packet at that rate.
    service: Option<Span>,
    /// Packets of this batch that arrived since it fell for the last time: in a pause a bucket
    /// fills again.
    packets: u32,
    /// How often it fell.
    falls: u32,
    group: Option<Group>,
}

/// Packets of a train whose arrivals are taken together.
#[derive(Clone, Copy, Debug)]
struct Group {
    train: u64,
    /// When the first ACK came, and how many packets came later.
    first: Time,
    later: u32,
    /// When the last one came.
    last: Time,
}

impl Group {
    /// Time per packet. Those that came with the first ACK were served before it.
    fn service(&self) -> Span {
        self.last.since(self.first) / u64::from(self.later.max(1))
    }
}

impl Persistence {
    /// A batch begins, for which the bottleneck is thought to take this long per packet: trains are
    /// counted from 0 again.
    pub(super) fn begin_batch(&mut self, service: Span) {
        self.service.get_or_insert(service);
        (self.group, self.packets) = (None, 0);
    }

    /// Packets of this batch that arrived since the rate fell for the last time.
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    /// True if the rate fell: a burst may pass again after every pause.
    pub(super) fn has_fallen(&self) -> bool {
        self.falls > 0
    }

    /// Time per packet at the rate that persists, once it is known.
    pub(super) fn service(&self) -> Option<Span> {
        self.service
    }

    /// A packet arrived whose time tells nothing.
    pub(super) fn count(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// The rate is known otherwise to be no higher than this.
    pub(super) fn fall_to(&mut self, service: Span) {
        (self.service, self.packets, self.falls) = (Some(service), 0, self.falls + 1);
    }

    /// A packet of this train arrived. True if the rate turns out to be lower than before by more
    /// than the factor `fall`.
    pub(super) fn add(&mut self, now: Time, train: u64, fall: f64) -> bool {
        self.count();
        let Some(mut group) = self.group.filter(|group| group.train == train) else {
            self.group = Some(Group { train, first: now, later: 0, last: now });
            return false;
        };
        let next = now > group.last;
        if next && group.later >= GROUP - 1 {
            // All packets of its last ACK are counted.
            let known = *self.service.get_or_insert(group.service());
            let fell = group.service() > known.mul_f64(fall);
            self.group = Some(Group { train, first: group.last, later: 1, last: now });
            if fell {
                self.fall_to(group.service());
            }
            return fell;
        }
        group.later += u32::from(now > group.first);
        group.last = now;
        self.group = Some(group);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// Packets of one train that arrive at these times; after which of them the rate fell.
    fn falls(times: impl Iterator<Item = u64>) -> (Vec<usize>, Persistence) {
        let mut persistence = Persistence::default();
        let falls = times.enumerate().filter(|(_, time)| persistence.add(at(*time), 0, 1.5)).map(|(index, _)| index);
        let falls = falls.collect();
        (falls, persistence)
    }

    #[test]
    fn a_rate_that_stays_has_been_seen_for_all_packets() {
        let (falls, persistence) = falls((0..100).map(|index| index * 12));
        assert_eq!((falls, persistence.packets(), persistence.has_fallen()), (vec![], 100, false));
        assert_eq!(persistence.service(), Some(Span::from_micros(12)));
    }

    #[test]
    fn after_a_burst_the_rate_is_that_of_the_bucket_and_counts_from_there_on() {
        // Twenty packets at 1 Gbit/s, then one every 600 us.
        let times = (0..100_u64).map(|index| if index < 20 { index * 12 } else { 240 + (index - 20) * 600 });
        let (falls, persistence) = falls(times);
        // In the third group, of packets 14 to 21, two gaps are long, in the fourth all are. That
        // no other packet came with the last ACK of a group is known when the next one comes.
        assert!(persistence.has_fallen());
        assert_eq!(falls, vec![22, 29]);
        assert_eq!((persistence.service(), persistence.packets()), (Some(Span::from_micros(600)), 70));
    }

    /// Seen with random losses at 100 Mbit/s: behind a gap Linux's receivers merge the ACKs of a
    /// millisecond. Delayed ACKs did the same in little.
    #[test]
    fn packets_that_come_with_one_ack_took_as_long_as_if_each_had_its_own() {
        for merged in [2, 3, 12, 40] {
            // In order up to the twelfth, then so many at a time.
            let arrives = |index: u64| if index < 12 { index } else { 11 + (index - 11).div_ceil(merged) * merged };
            let (seen, persistence) = falls((0..200).map(|index| arrives(index) * 120));
            assert_eq!((seen, persistence.service()), (vec![], Some(Span::from_micros(120))), "{merged}");
        }
        // Half of the rate is a fall even so.
        let arrives = |index: u64| if index < 48 { index } else { 48 + (index - 48).div_ceil(12) * 24 };
        let (seen, persistence) = falls((0..200).map(|index| arrives(index) * 120));
        assert_eq!(seen.len(), 1);
        // One group has some of both.
        assert_eq!(persistence.service(), Some(Span::from_micros(200)));
    }

    #[test]
    fn time_between_trains_is_no_fall_and_a_faster_group_is_none() {
        let mut persistence = Persistence::default();
        for train in 0..3 {
            persistence.begin_batch(Span::from_micros(100));
            let gap = 100 - train * 20;
            assert!((0..20).all(|index| !persistence.add(at(train * 100_000 + index * gap), train, 1.5)));
        }
        assert_eq!((persistence.service(), persistence.packets()), (Some(Span::from_micros(100)), 20));
    }
}
