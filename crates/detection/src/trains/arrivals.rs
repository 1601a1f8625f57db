//! How the packets of the first train, or of a chirp, arrive.

use flowstart_units::{Span, Time};

/// Arrivals of packets that left close together: their spacing tells how fast the bottleneck is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals {
    /// Numbers of the packets, the end excluded.
    from: u64,
    until: u64,
    seen: Option<Seen>,
}

/// What has arrived.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Time of the first ACK.
    first: Time,
    /// Time of the last one.
    last: Time,
    /// Packets that the first ACK acknowledged.
    with_first: u32,
    /// Packets acknowledged since.
    after_first: u32,
    /// Shortest time between two arrivals that is not zero.
    quickest: Option<Span>,
    /// Longest time between two arrivals.
    slowest: Span,
}

impl Arrivals {
    /// `count` packets from number `from` on, none of which has arrived.
    pub(super) fn new(from: u64, count: u32) -> Self {
        Self { from, until: from + u64::from(count), seen: None }
    }

    /// There are more of them, up to this number, the end excluded.
    pub(super) fn extend_to(&mut self, until: u64) {
        self.until = self.until.max(until);
    }

    /// A packet was acknowledged; false if it is none of these.
    pub(super) fn add(&mut self, now: Time, number: u64) -> bool {
        if !(self.from..self.until).contains(&number) {
            return false;
        }
        match &mut self.seen {
            None => {
                let (first, last) = (now, now);
                let (with_first, after_first) = (1, 0);
                self.seen = Some(Seen { first, last, with_first, after_first, quickest: None, slowest: Span::ZERO });
            }
            Some(seen) if now <= seen.first => {
                seen.with_first += 1;
                seen.last = now;
            }
            Some(seen) => {
                let gap = now.since(seen.last);
                if !gap.is_zero() {
                    seen.quickest = Some(seen.quickest.map_or(gap, |quickest| quickest.min(gap)));
                }
                seen.slowest = seen.slowest.max(gap);
                seen.after_first += 1;
                seen.last = now;
            }
        }
        true
    }

    /// True if a packet that left behind all of these was acknowledged.
    pub(super) fn are_over(&self, number: u64) -> bool {
        number >= self.until
    }

    /// How many have arrived.
    pub(super) fn count(&self) -> u32 {
        self.seen.map_or(0, |seen| seen.with_first + seen.after_first)
    }

    /// How many arrived after those of the first ACK.
    pub(super) fn after_first(&self) -> u32 {
        self.seen.map_or(0, |seen| seen.after_first)
    }

    /// When the first ACK came, if the arrivals tell a rate: more than one ACK came, or all `whole`
    /// packets arrived with one.
    pub(super) fn tell_a_rate_since(&self, whole: u32) -> Option<Time> {
        self.seen.filter(|seen| seen.after_first > 0 || seen.with_first >= whole).map(|seen| seen.first)
    }

    /// Time between two arrivals on average; zero if all came at once.
    pub(super) fn mean_gap(&self) -> Span {
        self.seen.map_or(Span::ZERO, |seen| {
            // Of many in one ACK it is not known when the first arrived: rather too quick than too
            // slow.
            let merged = if seen.with_first > 2 { seen.with_first - 1 } else { 0 };
            seen.last.since(seen.first) / u64::from((merged + seen.after_first).max(1))
        })
    }

    /// Time per packet after the first ACK if all took `least` and longer.
    pub(super) fn gap_of_many(&self, least: Span) -> Option<Span> {
        let seen = self.seen.filter(|seen| seen.after_first > 0 && seen.last.since(seen.first) >= least)?;
        Some(seen.last.since(seen.first) / u64::from(seen.after_first))
    }

    /// Shortest time between two arrivals that is not zero.
    pub(super) fn quickest(&self) -> Option<Span> {
        self.seen?.quickest
    }

    /// By how much gaps differ at most from `service`.
    pub(super) fn unevenness(&self, service: Span) -> Span {
        let quickest = self.quickest().unwrap_or(Span::ZERO);
        let slowest = self.seen.map_or(Span::ZERO, |seen| seen.slowest);
        (slowest - service).max(service - quickest)
    }

    /// True if packets up to `number`, the newest, arrived one by one, in order, and none is
    /// missing.
    pub(super) fn are_in_order_up_to(&self, number: u64) -> bool {
        self.seen.is_some_and(|seen| seen.with_first == 1 && number == self.from + u64::from(seen.after_first))
    }

    /// Number of the last packet.
    pub(super) fn last_number(&self) -> u64 {
        self.until - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// Packets 10 to 17 of which those arrive at these times in milliseconds.
    fn arrived(packets: &[(u64, u64)]) -> Arrivals {
        let mut arrivals = Arrivals::new(10, 8);
        packets.iter().for_each(|(number, at)| assert!(arrivals.add(Time::ZERO + ms(*at), *number)));
        arrivals
    }

    #[test]
    fn packets_before_and_behind_do_not_count() {
        let mut arrivals = Arrivals::new(10, 8);
        assert!([9, 18].iter().all(|number| !arrivals.add(Time::ZERO, *number)));
        assert_eq!((arrivals.count(), arrivals.last_number()), (0, 17));
        assert!(arrivals.add(Time::ZERO, 10) && arrivals.add(Time::ZERO, 17));
        assert_eq!(arrivals.count(), 2);
        assert!(!arrivals.are_over(17) && arrivals.are_over(18));
    }

    #[test]
    fn gaps_of_arrivals_tell_the_mean_the_shortest_and_the_most_uneven() {
        let arrivals = arrived(&[(10, 20), (11, 20), (12, 22), (13, 23), (14, 23), (15, 28)]);
        assert_eq!((arrivals.count(), arrivals.after_first()), (6, 4));
        // Eight milliseconds in four gaps; one of them was zero and does not count as the shortest.
        assert_eq!((arrivals.mean_gap(), arrivals.quickest()), (ms(2), Some(ms(1))));
        // From 2 ms they differ by 1 and by 3, from 4 ms by 3 and by 1.
        assert_eq!((arrivals.unevenness(ms(2)), arrivals.unevenness(ms(4))), (ms(3), ms(3)));
        assert_eq!(arrived(&[]).unevenness(ms(2)), ms(2));
        assert_eq!([8, 9].map(|least| arrivals.gap_of_many(ms(least))), [Some(ms(2)), None]);
        // Of four in the first ACK three may have arrived just before it.
        assert_eq!(arrived(&[(10, 20), (11, 20), (12, 20), (13, 20), (14, 28)]).mean_gap(), ms(2));
        assert_eq!((arrived(&[]).mean_gap(), arrived(&[(10, 5)]).mean_gap()), (ms(0), ms(0)));
    }

    #[test]
    fn a_rate_takes_two_acks_or_all_packets_in_one() {
        let first = Some(Time::ZERO + ms(20));
        assert_eq!(arrived(&[]).tell_a_rate_since(2), None);
        assert_eq!(arrived(&[(10, 20)]).tell_a_rate_since(2), None);
        assert_eq!(arrived(&[(10, 20), (11, 20)]).tell_a_rate_since(3), None);
        assert_eq!(arrived(&[(10, 20), (11, 20)]).tell_a_rate_since(2), first);
        assert_eq!(arrived(&[(10, 20), (11, 21)]).tell_a_rate_since(8), first);
    }

    #[test]
    fn they_are_in_order_if_each_came_with_an_ack_of_its_own_and_none_is_missing() {
        assert!(arrived(&[(10, 20), (11, 21), (12, 22)]).are_in_order_up_to(12));
        assert!(!arrived(&[(10, 20), (12, 22)]).are_in_order_up_to(12));
        assert!(!arrived(&[(10, 20), (11, 20), (12, 22)]).are_in_order_up_to(12));
        assert!(!arrived(&[(11, 20), (12, 22)]).are_in_order_up_to(12));
        assert!(!arrived(&[]).are_in_order_up_to(10));
    }
}
