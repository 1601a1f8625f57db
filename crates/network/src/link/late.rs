//! How late each of a row of packets was.

use flowstart_units::{Span, Time};

/// A row of packets by when each was due, and how much later it was there: a replay of what a
/// machine did to them, for packets that are due at other moments.
///
/// A packet of the row that was there before the next one was due was late by itself (a host took
/// so long for it): whatever is due from then on until the next of the row is late by as much.
/// Where the next was already due both were held by one standstill: whatever is due meanwhile is
/// there when that ends. Nothing overtakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateArrivals(Vec<Late>);

/// What becomes of packets that are due from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Late {
    due: Time,
    what: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// Each is late by this much.
    Own(Span),
    /// All are there at this time.
    Held(Time),
}

impl LateArrivals {
    /// A row: when each was due, and how late it was; in any order.
    #[must_use]
    pub fn new(mut row: Vec<(Time, Span)>) -> Self {
        row.sort_unstable();
        let mut latest = Time::ZERO;
        // None is there before one that was due earlier.
        let there = row.iter().map(|(due, late)| {
            latest = latest.max(*due + *late);
            latest
        });
        let there: Vec<Time> = there.collect();
        let late = row.iter().enumerate().map(|(place, (due, late))| {
            let with_earlier = place.checked_sub(1).is_some_and(|before| there[before] > *due);
            let with_next = row.get(place + 1).is_some_and(|(next, _)| there[place] > *next);
            let what = if with_earlier || with_next { Cause::Held(there[place]) } else { Cause::Own(*late) };
            Late { due: *due, what }
        });
        Self(late.collect())
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When something is there that is due at `time`, unless it has to wait for what was due
    /// before.
    #[must_use]
    pub fn after(&self, time: Time) -> Time {
        let begun = self.0.partition_point(|late| late.due <= time);
        match begun.checked_sub(1).map(|last| self.0[last].what) {
            None => time,
            Some(Cause::Own(late)) => time + late,
            Some(Cause::Held(until)) => time.max(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    fn row(row: &[(u64, u64)]) -> LateArrivals {
        LateArrivals::new(row.iter().map(|(due, late)| (at(*due), Span::from_nanos(*late))).collect())
    }

    fn there<const N: usize>(late: &LateArrivals, due: [u64; N]) -> [u64; N] {
        due.map(|ns| late.after(at(ns)).as_nanos())
    }

    #[test]
    fn what_is_due_between_two_is_as_late_as_the_first_of_them() {
        let late = row(&[(200, 0), (100, 30), (300, 5)]);
        assert_eq!(
            there(&late, [50, 99, 100, 150, 199, 200, 299, 300, 1000]),
            [50, 99, 130, 180, 229, 200, 299, 305, 1005]
        );
        assert!(!late.is_empty() && LateArrivals::default().is_empty());
    }

    #[test]
    fn what_was_late_together_was_held_until_one_moment() {
        // The packets of 100, 120 and 140 were there at 150; that of 200 was in time.
        let late = row(&[(100, 50), (120, 30), (140, 10), (200, 0)]);
        assert_eq!(there(&late, [99, 100, 130, 149, 151, 199, 200]), [99, 150, 150, 150, 151, 199, 200]);
        // One that was late by itself holds nobody who is due later.
        let alone = row(&[(100, 50), (150, 0)]);
        assert_eq!(there(&alone, [100, 149, 150]), [150, 199, 150]);
        // That of 120 cannot be there before that of 100.
        let behind = row(&[(100, 50), (120, 0)]);
        assert_eq!(there(&behind, [100, 120, 149, 150]), [150; 4]);
    }

    proptest::proptest! {
        #[test]
        fn the_packets_of_the_row_are_as_late_as_they_were(row in proptest::collection::vec((0_u64..10_000, 0_u64..300), 0..40)) {
            let (mut row, mut latest) = (row, 0);
            row.sort_unstable();
            row.dedup_by_key(|(due, _)| *due);
            let late = self::row(&row);
            for (due, by) in row {
                latest = latest.max(due + by);
                proptest::prop_assert_eq!(late.after(at(due)).as_nanos(), latest);
            }
        }
    }
}
