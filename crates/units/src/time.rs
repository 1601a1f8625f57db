//! Points in time and lengths of time.

use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::ratio::{mul_div, rounded};

/// Nanoseconds in a second.
pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run, 0 ..= 2^64-1 (584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// The end of representable time; used as "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// A point `nanos` nanoseconds after the start.
    #[must_use]
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for printing and plotting only.
    #[must_use]
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND as f64
    }

    /// The time since `earlier`, zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The time since `earlier`, or `None` if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn checked_since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(n) => Some(Span(n)),
            None => None,
        }
    }

    /// `self + span`, or `None` past the end of time.
    #[must_use]
    #[inline]
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span; used as "unknown" or "for ever".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `n` nanoseconds.
    #[must_use]
    #[inline]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// A span of `n` microseconds (saturating).
    #[must_use]
    #[inline]
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// A span of `n` milliseconds (saturating).
    #[must_use]
    #[inline]
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// A span of `n` seconds (saturating).
    #[must_use]
    #[inline]
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(NANOS_PER_SECOND))
    }

    /// A span of `seconds`, rounded to the nearest nanosecond. Negative and NaN give zero, too
    /// large gives [`Span::MAX`].
    #[must_use]
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates and maps NaN to zero.
        Self(rounded(seconds * NANOS_PER_SECOND as f64))
    }

    /// Nanoseconds.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    #[must_use]
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds as a float, for printing and plotting only.
    #[must_use]
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND as f64
    }

    /// Milliseconds as a float, for printing and plotting only.
    #[must_use]
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// True if the span is zero.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self * numerator / denominator` without intermediate overflow, rounded down, saturating. A
    /// zero denominator gives [`Span::MAX`].
    #[must_use]
    #[inline]
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return Self::MAX;
        }
        Self(mul_div(self.0, numerator, 0, denominator))
    }

    /// `self` scaled by a float factor (a config value such as a gain), rounded to the nearest
    /// nanosecond, saturating.
    #[must_use]
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(rounded(self.0 as f64 * factor))
    }

    /// `self + other`, or `None` on overflow.
    #[must_use]
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// `self - other`, or `None` if it would be negative.
    #[must_use]
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// How many whole `other` fit into `self`; 0 if `other` is zero.
    #[must_use]
    #[inline]
    pub const fn whole(self, other: Self) -> u64 {
        match self.0.checked_div(other.0) {
            Some(n) => n,
            None => 0,
        }
    }

    /// The quotient of two spans as a float, for reports; infinite if `other` is zero, not a
    /// number if both are.
    #[must_use]
    #[inline]
    pub fn ratio(self, other: Self) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// The same as [`Time::since`].
impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// Division by zero gives [`Span::MAX`].
impl Div<u64> for Span {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl core::iter::Sum for Span {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
