//! Whether the rate at which trains arrive persists. A token bucket lets a burst pass at the rate
//! of the line behind it, a policer too, and trains may queue at the sender's own card: what they
//! meet there says nothing of the queue where a flow waits in the long run. So the rate of a train
//! is an upper bound until it has stopped falling.

use flowstart_units::{Span, Time};

/// Packets of a train in a row.
#[derive(Clone, Copy, Debug)]
struct Group {
    train: u64,
    /// When the first of them arrived, and when it had left.
    first: Time,
    left: Time,
    count: u32,
}

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
    /// Packets of a train in a row, of which the last one was the latest.
    group: Option<Group>,
    /// Lone packets that arrived since that group began, which took their time, too.
    lone: u32,
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

    /// A lone packet arrived.
    pub(super) fn lone_arrives(&mut self) {
        self.lone = self.lone.saturating_add(1);
    }

    /// A packet arrived whose time tells nothing.
    pub(super) fn count(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// The rate is known otherwise to be no higher than this.
    pub(super) fn fall_to(&mut self, service: Span) {
        (self.service, self.packets, self.falls) = (Some(service), 0, self.falls + 1);
    }

    /// A packet of this train, which left at the time `left`, arrived. True if the last `group`
    /// packets of it, at least 2, turn out to be slower than before by more than the factor `fall`:
    /// they left faster by that, too, or they would not tell.
    pub(super) fn add(&mut self, now: Time, left: Time, train: u64, group: u32, fall: f64) -> bool {
        self.count();
        let begin = Group { train, first: now, left, count: 1 };
        let Some(Group { first, left: since, count, .. }) = self.group.filter(|group| group.train == train) else {
            (self.group, self.lone) = (Some(begin), 0);
            return false;
        };
        let count = count + 1;
        self.group = Some(Group { train, first, left: since, count });
        if count < group {
            return false;
        }
        // The last one is the first of the next group.
        self.group = Some(begin);
        let (span, lone) = (now.since(first), core::mem::take(&mut self.lone));
        let gaps = u64::from(count - 1);
        let service = span / gaps;
        let known = *self.service.get_or_insert(service);
        let slower = span - known * u64::from(lone) > (known * gaps).mul_f64(fall);
        let fell = slower && span > left.since(since).mul_f64(fall);
        if fell {
            self.fall_to(service);
        }
        fell
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
        let falls =
            times.enumerate().filter(|(_, time)| persistence.add(at(*time), at(0), 0, 8, 1.5)).map(|(index, _)| index);
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
        // In the third group, of packets 14 to 21, two gaps are long, in the fourth all are.
        assert!(persistence.has_fallen());
        assert_eq!(falls, vec![21, 28]);
        assert_eq!((persistence.service(), persistence.packets()), (Some(Span::from_micros(600)), 71));
    }

    /// Seen at 100 Mbit/s in FQ-CoDel: 189 and 206 us per packet where the link takes 120, as four
    /// and five lone packets were served among eight.
    #[test]
    fn the_time_of_lone_packets_served_among_a_group_is_no_fall() {
        for (lone, micros) in [(4, 1320), (5, 1440)] {
            let mut persistence = Persistence::default();
            persistence.begin_batch(Span::from_micros(120));
            assert!((0..7).all(|index| !persistence.add(at(index * 120), at(0), 0, 8, 1.5)));
            (0..lone).for_each(|_| persistence.lone_arrives());
            assert!(!persistence.add(at(micros), at(0), 0, 8, 1.5), "{lone}");
            assert_eq!(persistence.service(), Some(Span::from_micros(120)));
            // They are of no other group.
            assert!((1..7).all(|index| !persistence.add(at(micros + index * 120), at(0), 0, 8, 1.5)));
            assert!(persistence.add(at(micros + 1320), at(0), 0, 8, 1.5));
            assert_eq!(persistence.service(), Some(Span::from_nanos(188_571)));
        }
    }

    #[test]
    fn time_between_trains_is_no_fall_and_a_faster_group_is_none() {
        let mut persistence = Persistence::default();
        for train in 0..3 {
            persistence.begin_batch(Span::from_micros(100));
            let gap = 100 - train * 20;
            assert!((0..20).all(|index| !persistence.add(at(train * 100_000 + index * gap), at(0), train, 8, 1.5)));
        }
        assert_eq!((persistence.service(), persistence.packets()), (Some(Span::from_micros(100)), 20));
    }

    /// A window that is full makes packets leave one by one, and arrive so.
    #[test]
    fn packets_that_left_as_slowly_as_they_arrive_tell_of_no_fall() {
        let fell = |left_apart: u64| {
            let mut persistence = Persistence::default();
            persistence.begin_batch(Span::from_micros(50));
            (0..8).any(|nth| persistence.add(at(10_000 + nth * 150), at(nth * left_apart), 0, 8, 1.5))
        };
        // 150 us apart instead of 50.
        assert!(fell(47) && fell(99));
        assert!(!fell(100) && !fell(150));
    }

    /// Seen at 100 and 150 Mbit/s with 1 % of packets lost: the first ACK behind a hole was for
    /// twelve packets, 1.5 ms later, and the rate seemed to fall.
    #[test]
    fn acks_that_a_receiver_holds_back_behind_a_loss_are_no_fall() {
        let fell = |group: u32, micros: u64| {
            let mut persistence = Persistence::default();
            persistence.begin_batch(Span::from_micros(120));
            // Twelve arrive together with the last of them, and the others as they are sent.
            let arrives = |nth: u64| if (1..12).contains(&nth) { 1_500 } else { nth * micros };
            (0..40).any(|nth| persistence.add(at(10_000 + arrives(nth)), at(0), 0, group, 1.5))
        };
        assert!(fell(8, 120) && !fell(32, 120));
        // A rate that is lower by more shows in more packets, too.
        assert!(fell(32, 200));
    }
}
