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
