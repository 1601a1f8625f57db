//! A periodic timer without a clock: it is asked, at every event, which of its ticks have passed.

use flowstart_units::{Span, Time};

/// After so many ticks without an event whatever they drive has settled or is at its bound; the
/// rest is skipped.
const MOST_AT_ONCE: u32 = 1 << 16;

/// Ticks at regular times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    next: Time,
    interval: Span,
    at_once: u32,
}

impl Ticks {
    /// The first tick is at `first`; the interval must not be zero.
    pub(super) fn new(first: Time, interval: Span) -> Self {
        Self { next: first, interval: interval.max(Span::from_nanos(1)), at_once: 0 }
    }

    /// The next tick that has passed by `now`, once.
    #[inline]
    pub(super) fn next(&mut self, now: Time) -> Option<Time> {
        if self.next > now || self.next == Time::NEVER {
            self.at_once = 0;
            return None;
        }
        let tick = self.next;
        self.next += self.interval;
        self.at_once += 1;
        if self.at_once >= MOST_AT_ONCE {
            self.skip_to(now);
        }
        Some(tick)
    }

    /// Forgets all further ticks up to `now`.
    pub(super) fn skip_to(&mut self, now: Time) {
        if self.next <= now {
            self.next += self.interval * now.since(self.next).whole(self.interval).saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_comes_once_and_skipped_ones_never() {
        let mut ticks = Ticks::new(Time::from_nanos(5), Span::from_nanos(10));
        assert_eq!(ticks.next(Time::from_nanos(4)), None);
        let until_30: Vec<u64> = std::iter::from_fn(|| ticks.next(Time::from_nanos(30))).map(Time::as_nanos).collect();
        assert_eq!(until_30, [5, 15, 25]);
        ticks.skip_to(Time::from_nanos(55));
        assert_eq!(ticks.next(Time::from_nanos(64)), None);
        assert_eq!(ticks.next(Time::from_nanos(65)), Some(Time::from_nanos(65)));
        assert!(std::iter::from_fn(|| ticks.next(Time::NEVER)).count() <= MOST_AT_ONCE as usize + 1);
    }
}
