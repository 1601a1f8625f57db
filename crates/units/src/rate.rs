//! Data rates.

use crate::ratio::{mul_div, rounded};
use crate::time::NANOS_PER_SECOND;
use crate::{Bytes, Span};

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// No data at all.
    pub const ZERO: Self = Self(0);
    /// Faster than anything; used as "not limited". It prints as "unlimited", which is not read
    /// back: in files and options it would stand where a rate has to be one.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// `n` bits per second.
    #[must_use]
    #[inline]
    pub const fn from_bps(n: u64) -> Self {
        Self(n)
    }

    /// `n` million bits per second, saturating.
    #[must_use]
    #[inline]
    pub const fn from_mbps(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// Bits per second.
    #[must_use]
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Millions of bits per second, for printing and plotting only.
    #[must_use]
    #[inline]
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// True if this is [`Rate::UNLIMITED`].
    #[must_use]
    #[inline]
    pub const fn is_unlimited(self) -> bool {
        self.0 == u64::MAX
    }

    /// The rate at which `bytes` pass in `span`, rounded down, saturating; unlimited if `span` is
    /// zero.
    #[must_use]
    #[inline]
    pub const fn of(bytes: Bytes, span: Span) -> Self {
        if span.as_nanos() == 0 {
            return Self::UNLIMITED;
        }
        Self(mul_div(bytes.get(), 8 * NANOS_PER_SECOND, 0, span.as_nanos()))
    }

    /// How long `bytes` take at this rate, rounded to the nearest nanosecond, saturating.
    /// [`Span::MAX`] at rate zero, zero at an unlimited rate.
    #[must_use]
    #[inline]
    pub const fn transmission_time(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        if self.is_unlimited() {
            return Span::ZERO;
        }
        Span::from_nanos(mul_div(bytes.get(), 8 * NANOS_PER_SECOND, self.0 / 2, self.0))
    }

    /// How many bytes pass in `span`, rounded down, saturating. [`Bytes::MAX`] at an unlimited
    /// rate.
    #[must_use]
    #[inline]
    pub const fn bytes_in(self, span: Span) -> Bytes {
        if self.is_unlimited() {
            return Bytes::MAX;
        }
        Bytes::new(mul_div(self.0, span.as_nanos(), 0, 8 * NANOS_PER_SECOND))
    }

    /// `self` scaled by a float factor (a config value such as a gain), rounded to the nearest
    /// bit/s, saturating.
    #[must_use]
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(rounded(self.0 as f64 * factor))
    }

    /// `self * numerator / denominator` without intermediate overflow, rounded down, saturating. A
    /// zero denominator gives [`Rate::UNLIMITED`].
    #[must_use]
    #[inline]
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return Self::UNLIMITED;
        }
        Self(mul_div(self.0, numerator, 0, denominator))
    }
}
