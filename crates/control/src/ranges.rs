//! Ranges of constants: one list says what is refused and what becomes of values out of range.

use core::ops::{Bound, RangeBounds};

use flowstart_units::{Rate, Span};

use crate::InvalidConfig;

/// Constants that have ranges.
///
/// ```
/// use flowstart_control::{InRange, Ranges, above};
///
/// #[derive(Clone, Debug, PartialEq)]
/// struct Config {
///     gain: f64,
///     rounds: u32,
/// }
///
/// impl InRange for Config {
///     fn ranges(&mut self, ranges: &mut Ranges) {
///         ranges.of("gain", &mut self.gain, above(0.0).up_to(1.0), "above 0 and at most 1");
///         ranges.of("rounds", &mut self.rounds, 1.., "at least 1");
///     }
/// }
///
/// let config = Config { gain: 2.0, rounds: 7 };
/// assert_eq!(config.check().map_err(|error| error.field), Err("gain"));
/// assert_eq!(config.in_range(), Config { gain: 1.0, rounds: 7 });
/// ```
pub trait InRange: Clone {
    /// Shows every constant that has a range to `ranges`, in the order in which they are to be
    /// complained about. A range may depend on constants that were shown before.
    fn ranges(&mut self, ranges: &mut Ranges);

    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    fn check(&self) -> Result<(), InvalidConfig> {
        let mut ranges = Ranges::default();
        self.clone().ranges(&mut ranges);
        ranges.first.map_or(Ok(()), Err)
    }

    /// The constants, those out of range moved to the nearest value in range, the others as they
    /// are. What is no number becomes the lowest.
    #[must_use]
    fn in_range(&self) -> Self {
        let mut moved = self.clone();
        moved.ranges(&mut Ranges::default());
        moved
    }
}

/// Sees constants with their ranges, and moves into them what is not there.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// The first that was not in its range.
    first: Option<InvalidConfig>,
}

impl Ranges {
    /// `field` is in `range`, else it must be `must` and is moved to the nearest value that is. A
    /// range without a value in it moves to its lower end.
    pub fn of<T: Ranged>(
        &mut self,
        field: &'static str,
        value: &mut T,
        range: impl RangeBounds<T>,
        must: &'static str,
    ) {
        let nearest = nearest(*value, &range);
        if *value != nearest {
            *value = nearest;
            self.first.get_or_insert(InvalidConfig { field, must });
        }
    }

    /// `field`, which is no single number, must be `must`; whoever says so moves it.
    pub fn refuse(&mut self, field: &'static str, must: &'static str) {
        self.first.get_or_insert(InvalidConfig { field, must });
    }
}

fn nearest<T: Ranged>(value: T, range: &impl RangeBounds<T>) -> T {
    let least = match range.start_bound() {
        Bound::Included(least) => *least,
        Bound::Excluded(least) => least.next(),
        Bound::Unbounded => T::LEAST,
    };
    let most = match range.end_bound() {
        Bound::Included(most) => *most,
        Bound::Excluded(most) => most.previous(),
        Bound::Unbounded => T::MOST,
    };
    if value > most && most >= least {
        most
    } else if value >= least && value <= most {
        value
    } else {
        least
    }
}

/// The values above this one, up to infinity.
#[must_use]
pub fn above<T: Ranged>(least: T) -> Above<T> {
    Above { least }
}

/// The values [`above`] another.
#[derive(Clone, Copy, Debug)]
pub struct Above<T> {
    least: T,
}

impl<T: Ranged> Above<T> {
    /// Of these, the ones up to `most`, which is one of them.
    pub fn up_to(self, most: T) -> (Bound<T>, Bound<T>) {
        (Bound::Excluded(self.least), Bound::Included(most))
    }

    /// Of these, the ones below `end`.
    pub fn below(self, end: T) -> (Bound<T>, Bound<T>) {
        (Bound::Excluded(self.least), Bound::Excluded(end))
    }
}

impl<T> RangeBounds<T> for Above<T> {
    fn start_bound(&self) -> Bound<&T> {
        Bound::Excluded(&self.least)
    }

    fn end_bound(&self) -> Bound<&T> {
        Bound::Unbounded
    }
}

/// What a constant with a range may be.
pub trait Ranged: Copy + PartialOrd {
    /// The least value there is.
    const LEAST: Self;
    /// The largest value there is; of numbers with a point the largest that is finite.
    const MOST: Self;

    /// The least value above this one; the largest has none but itself.
    #[must_use]
    fn next(self) -> Self;

    /// The largest value below this one; the least has none but itself.
    #[must_use]
    fn previous(self) -> Self;
}

impl Ranged for f64 {
    const LEAST: Self = Self::MIN;
    const MOST: Self = Self::MAX;

    fn next(self) -> Self {
        self.next_up()
    }

    fn previous(self) -> Self {
        self.next_down()
    }
}

impl Ranged for u32 {
    const LEAST: Self = 0;
    const MOST: Self = Self::MAX;

    fn next(self) -> Self {
        self.saturating_add(1)
    }

    fn previous(self) -> Self {
        self.saturating_sub(1)
    }
}

impl Ranged for u64 {
    const LEAST: Self = 0;
    const MOST: Self = Self::MAX;

    fn next(self) -> Self {
        self.saturating_add(1)
    }

    fn previous(self) -> Self {
        self.saturating_sub(1)
    }
}

impl Ranged for Span {
    const LEAST: Self = Self::ZERO;
    const MOST: Self = Self::MAX;

    fn next(self) -> Self {
        Self::from_nanos(self.as_nanos().saturating_add(1))
    }

    fn previous(self) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(1))
    }
}

impl Ranged for Rate {
    const LEAST: Self = Self::ZERO;
    const MOST: Self = Self::UNLIMITED;

    fn next(self) -> Self {
        Self::from_bps(self.as_bps().saturating_add(1))
    }

    fn previous(self) -> Self {
        Self::from_bps(self.as_bps().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved<T: Ranged>(value: T, range: impl RangeBounds<T>) -> (T, bool) {
        let (mut moved, mut ranges) = (value, Ranges::default());
        ranges.of("it", &mut moved, range, "another");
        (moved, ranges.first.is_none())
    }

    #[test]
    fn what_is_out_of_range_becomes_the_nearest_value_in_range_and_the_rest_stays() {
        for value in [0.0, 0.5, 1.0] {
            assert_eq!(moved(value, 0.0..=1.0), (value, true));
        }
        assert_eq!([-1e-9, 1.5].map(|value| moved(value, 0.0..=1.0)), [(0.0, false), (1.0, false)]);
        assert_eq!([3_u32, 4, 64, 65].map(|value| moved(value, 4..=64).0), [4, 4, 64, 64]);
        assert_eq!(moved(0_u32, 1..), (1, false));
        assert_eq!([0_u64, 7, 101].map(|value| moved(value, above(0).up_to(100)).0), [1, 7, 100]);
        let (least, milli) = (Span::from_millis(1), Span::from_micros(999));
        assert_eq!([moved(milli, least..), moved(Span::MAX, least..)], [(least, false), (Span::MAX, true)]);
        assert_eq!(moved(Rate::ZERO, above(Rate::ZERO)), (Rate::from_bps(1), false));
    }

    #[test]
    fn an_end_that_does_not_belong_to_the_range_is_avoided_by_as_little_as_can_be() {
        let share = || above(0.0).below(1.0);
        assert_eq!([1e-300, 0.995].map(|value| moved(value, share())), [(1e-300, true), (0.995, true)]);
        for (value, nearest) in [(0.0, 0.0_f64.next_up()), (1.0, 1.0_f64.next_down()), (7.0, 1.0_f64.next_down())] {
            assert_eq!(moved(value, share()), (nearest, false));
            assert!(nearest > 0.0 && nearest < 1.0);
        }
        assert_eq!(moved(1.0, above(0.0).up_to(1.0)), (1.0, true));
    }

    #[test]
    fn what_is_no_number_becomes_the_lowest_and_what_is_infinite_the_largest_that_is_not() {
        assert_eq!(moved(f64::NAN, 0.5..=1.0), (0.5, false));
        assert_eq!(moved(f64::INFINITY, 1.0..), (f64::MAX, false));
        assert_eq!(moved(f64::NEG_INFINITY, 1.0..), (1.0, false));
    }

    #[derive(Clone, Debug, PartialEq)]
    struct Pair(f64, f64);

    impl InRange for Pair {
        fn ranges(&mut self, ranges: &mut Ranges) {
            ranges.of("first", &mut self.0, 0.0..=1.0, "between 0 and 1");
            ranges.of("second", &mut self.1, self.0..=1.0, "at least first and at most 1");
        }
    }

    #[test]
    fn the_first_that_is_out_of_range_is_named_and_all_are_moved() {
        assert_eq!(Pair(0.5, 0.7).check(), Ok(()));
        let first = Err(InvalidConfig { field: "first", must: "between 0 and 1" });
        assert_eq!((Pair(2.0, 0.1).check(), Pair(2.0, 0.1).in_range()), (first, Pair(1.0, 1.0)));
        let second = Pair(0.5, 0.1);
        assert_eq!(second.check().map_err(|error| error.field), Err("second"));
        assert_eq!(second.in_range(), Pair(0.5, 0.5));
    }
}
