//! Spacing packets while a start is in charge.

use flowstart_control::{Departure, Sent};
use flowstart_units::{Bytes, Rate, Time};

/// Books one departure after the other at a rate. A late packet gets nothing back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spacing {
    /// Earliest departure of the next packet.
    next: Time,
}

impl Spacing {
    pub(super) fn new() -> Self {
        Self { next: Time::ZERO }
    }

    /// Begins not before `first`.
    pub(super) fn from(first: Time) -> Self {
        Self { next: first }
    }

    #[inline]
    pub(super) fn departure(&self, now: Time) -> Departure {
        if self.next <= now { Departure::Now } else { Departure::At(self.next) }
    }

    /// A packet left; the next one follows after its transmission time at `rate`.
    #[inline]
    pub(super) fn book(&mut self, sent: &Sent, rate: Rate) {
        self.next = self.next.max(sent.now) + rate.transmission_time(Bytes::new(u64::from(sent.bytes)));
    }
}

/// `rate` times a factor in millionths.
pub(super) fn scale(rate: Rate, millionths: u64) -> Rate {
    rate.mul_ratio(millionths, MILLION)
}

/// Millionths of a whole.
pub(super) const MILLION: u64 = 1_000_000;

/// A factor of a configuration in millionths, rounded to the nearest; zero if it is negative or no
/// number.
pub(super) fn millionths(factor: f64) -> u64 {
    libm::round(factor * MILLION as f64) as u64
}
