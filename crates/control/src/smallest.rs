//! The smallest round-trip time of late.

use flowstart_units::{Span, Time};

/// The smallest of the samples of the last one to two halves of a window.
#[derive(Clone, Copy, Debug)]
pub struct Smallest {
    current: Span,
    before: Span,
    turns: Time,
}

impl Default for Smallest {
    /// Without a sample.
    fn default() -> Self {
        Self { current: Span::MAX, before: Span::MAX, turns: Time::ZERO }
    }
}

impl Smallest {
    /// Without a sample.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sample; true if a half of the window began.
    #[inline]
    pub fn add(&mut self, now: Time, rtt: Span, half: Span) -> bool {
        let turns = now >= self.turns;
        if turns {
            (self.before, self.current) = (self.current, Span::MAX);
            self.turns = now + half;
        }
        self.lower(rtt);
        turns
    }

    /// It is known to be no more than this.
    #[inline]
    pub fn lower(&mut self, rtt: Span) {
        self.current = self.current.min(rtt);
    }

    /// [`Span::MAX`] without a sample.
    #[inline]
    pub fn get(&self) -> Span {
        self.current.min(self.before)
    }

    /// Forgets all samples for this one.
    #[inline]
    pub fn reset(&mut self, rtt: Span) {
        (self.current, self.before) = (rtt, rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn the_smallest_sample_counts_for_one_to_two_halves_of_the_window() {
        let mut smallest = Smallest::new();
        assert_eq!(smallest.get(), Span::MAX);
        let mut add = |at, rtt| {
            let began = smallest.add(Time::ZERO + ms(at), ms(rtt), ms(10));
            (began, smallest.get())
        };
        assert_eq!(add(0, 50), (true, ms(50)));
        assert_eq!(add(9, 40), (false, ms(40)));
        assert_eq!(add(9, 45), (false, ms(40)));
        assert_eq!(add(10, 60), (true, ms(40)), "the half before still counts");
        assert_eq!(add(19, 70), (false, ms(40)));
        assert_eq!(add(20, 70), (true, ms(60)), "and no longer");
    }

    #[test]
    fn what_is_known_otherwise_lowers_it_and_a_new_path_forgets_it() {
        let mut smallest = Smallest::new();
        smallest.add(Time::ZERO, ms(50), ms(10));
        smallest.lower(ms(30));
        smallest.lower(ms(99));
        assert_eq!(smallest.get(), ms(30));
        smallest.reset(ms(80));
        assert_eq!(smallest.get(), ms(80));
    }
}
