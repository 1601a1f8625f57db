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
        self.seen.map_or(Span::ZERO, |seen| seen.last.since(seen.first) / u64::from(seen.after_first.max(1)))
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
