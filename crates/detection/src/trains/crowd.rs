//! Whether others keep a queue where the trains pass. A train begins when the one before it has
//! left the bottleneck: if its first packet waits, packets of somebody else are there. That is
//! often known only after "shared" was said, as trains follow each other before any is answered.

use super::side::Flying;

/// The trains that tell it, and what they told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Number of the first packet of the first train.
    from: u64,
    /// Packets of a train.
    length: u64,
    trains: u64,
    seen: bool,
}

impl Crowd {
    /// Trains of `length` packets each leave, the first with number `from`; each finds those before
    /// it gone.
    pub(super) fn begin(&mut self, from: u64, length: u32, trains: u32) {
        (self.from, self.length, self.trains) = (from, u64::from(length.max(1)), u64::from(trains));
    }

    /// The packet with this number was delivered, and did or did not meet a queue.
    pub(super) fn add(&mut self, number: u64, queued: bool) {
        let place = number.checked_sub(self.from).filter(|place| *place < self.length * self.trains);
        self.seen |= queued && place.is_some_and(|place| place.is_multiple_of(self.length));
    }

    /// The answer is given: packets from this number on are of no train. More than this share of
    /// those before lost says that the buffer is full.
    pub(super) fn end<'a>(&mut self, number: u64, packets: impl Iterator<Item = &'a Flying>, full_loss: f64) {
        self.trains = self.trains.min(number.saturating_sub(self.from).div_ceil(self.length.max(1)));
        let settled = packets.filter(|packet| packet.is_settled());
        let (all, lost) = settled.fold((0_u32, 0_u32), |(all, lost), packet| (all + 1, lost + u32::from(packet.lost)));
        self.seen |= f64::from(lost) > f64::from(all) * full_loss;
    }

    /// Others keep a queue.
    pub(super) fn is_seen(&self) -> bool {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use flowstart_units::{Span, Time};

    fn packets(lost: u64) -> Vec<Flying> {
        let packet = |number| {
            let arrived = (number >= lost).then_some(Time::ZERO);
            let rtt = arrived.map(|_| Span::from_millis(30));
            Flying { number, sent: Time::ZERO, neighbour: 0, rtt, lost: number < lost, arrived, newest: Span::ZERO }
        };
        (0..20).map(packet).collect()
    }

    #[test]
    fn only_the_first_packet_of_a_train_tells_of_others() {
        let seen = |number, queued| {
            let mut crowd = Crowd::default();
            crowd.begin(8, 10, 3);
            crowd.add(number, queued);
            crowd.is_seen()
        };
        let tell: Vec<u64> = (0..60).filter(|number| seen(*number, true)).collect();
        assert_eq!(tell, [8, 18, 28]);
        assert!((0..60).all(|number| !seen(number, false)));
    }

    #[test]
    fn what_leaves_after_the_answer_is_no_train() {
        // The third train had not left, and its numbers are those of other packets.
        for (sent, seen) in [(28, false), (29, true)] {
            let mut crowd = Crowd::default();
            crowd.begin(8, 10, 3);
            crowd.end(sent, packets(0).iter(), 0.1);
            crowd.add(28, true);
            assert_eq!(crowd.is_seen(), seen, "{sent}");
        }
    }

    #[test]
    fn more_than_a_tenth_lost_says_so_too() {
        for (lost, seen) in [(0, false), (2, false), (3, true)] {
            let mut crowd = Crowd::default();
            crowd.end(20, packets(lost).iter(), 0.1);
            assert_eq!(crowd.is_seen(), seen, "{lost}");
        }
    }
}
