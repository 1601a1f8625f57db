//! Stretches of time in which nothing arrives.

use flowstart_units::Time;

use super::{Jitter, LateArrivals, LinkConfig};

/// Stretches of time in which nothing arrives: what would is there when the stretch ends, in order.
///
/// A replay of what a machine did to packets that were due: an emulated path is not always served
/// in time, and this is how a simulated one has the same mishaps. A stretch that begins within
/// another takes over from it: so a row of packets of which each was late has a stretch for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standstills(Vec<(Time, Time)>);

impl Standstills {
    /// These stretches, each from its first moment to its last, in any order. One that ends before
    /// an earlier one does lasts as long as that; what ends before it begins is none.
    #[must_use]
    pub fn new(mut stretches: Vec<(Time, Time)>) -> Self {
        stretches.retain(|(from, until)| from < until);
        stretches.sort_unstable();
        let mut latest = Time::ZERO;
        for (_, until) in &mut stretches {
            latest = latest.max(*until);
            *until = latest;
        }
        Self(stretches)
    }

    /// The stretches in order of time.
    #[must_use]
    pub fn stretches(&self) -> &[(Time, Time)] {
        &self.0
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When something is there that would be at `time`.
    #[must_use]
    pub fn after(&self, time: Time) -> Time {
        let begun = self.0.partition_point(|(from, _)| *from <= time);
        begun.checked_sub(1).map_or(time, |last| time.max(self.0[last].1))
    }
}

/// What a link's delay varies by, in operation: jitter, then what is late, then standstills.
#[derive(Clone, Debug)]
pub struct Variation {
    jitter: Option<Jitter>,
    late: LateArrivals,
    standstills: Standstills,
    /// There is jitter alone: on most links that vary, so that packets there are not looked up.
    plain: bool,
    /// When the last was there, which nothing overtakes if anything is late.
    latest: Time,
}

impl Variation {
    /// That of a link, with a random stream of its own; `None` if the delay is always the same.
    #[must_use]
    pub fn new(config: &LinkConfig, seed: u64) -> Option<Self> {
        let jitter = config.jitter.as_ref().map(|jitter| Jitter::new(jitter, seed));
        let (late, standstills) = (config.late.clone(), config.standstills.clone());
        let plain = late.is_empty() && standstills.is_empty();
        let varies = jitter.is_some() || !plain;
        varies.then_some(Self { jitter, late, standstills, plain, latest: Time::ZERO })
    }

    /// When a packet arrives that would arrive at `time` if the delay were always the same.
    #[inline]
    pub fn delay(&mut self, time: Time) -> Time {
        let mut time = self.jitter.as_mut().map_or(time, |jitter| jitter.delay(time));
        if self.plain {
            return time;
        }
        if !self.late.is_empty() {
            self.latest = self.latest.max(self.late.after(time));
            time = self.latest;
        }
        self.standstills.after(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JitterConfig, QueueConfig, RateSchedule};
    use flowstart_units::{Rate, Span};

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    #[test]
    fn what_is_due_in_a_standstill_is_there_at_its_end_and_all_else_in_time() {
        let still = Standstills::new(vec![(at(50), at(60)), (at(10), at(20)), (at(15), at(30)), (at(9), at(3))]);
        assert_eq!(still.stretches(), [(at(10), at(20)), (at(15), at(30)), (at(50), at(60))]);
        let due = [0, 9, 10, 14, 15, 29, 30, 49, 50, 59, 60, 100];
        assert_eq!(due.map(|ns| still.after(at(ns)).as_nanos()), [0, 9, 20, 20, 30, 30, 30, 49, 60, 60, 60, 100]);
        // One that ends before an earlier one: what came later is not there earlier.
        let within = Standstills::new(vec![(at(10), at(90)), (at(20), at(40))]);
        assert_eq!([15, 30, 89, 90].map(|ns| within.after(at(ns)).as_nanos()), [90; 4]);
        assert!(Standstills::new(vec![(at(4), at(4))]).is_empty());
    }

    #[test]
    fn a_standstill_holds_what_jitter_has_delayed_too() {
        let rate = RateSchedule::Constant(Rate::from_mbps(1));
        let mut link = LinkConfig::new(rate, Span::ZERO, QueueConfig::DropTail(Default::default()));
        assert!(Variation::new(&link, 1).is_none());
        link.standstills = Standstills::new(vec![(at(100), at(200))]);
        assert_eq!(Variation::new(&link, 1).unwrap().delay(at(150)), at(200));
        link.jitter = Some(JitterConfig { spread: Span::from_nanos(90), reorder: true });
        let mut variation = Variation::new(&link, 1).unwrap();
        assert!((0..1_000).all(|_| variation.delay(at(105)) == at(200)), "whatever the jitter");
        assert!((0..1_000).any(|_| variation.delay(at(50)) < at(100)), "before it only jitter delays");
    }

    #[test]
    fn nothing_overtakes_what_is_late_and_a_standstill_holds_it_too() {
        let rate = RateSchedule::Constant(Rate::from_mbps(1));
        let mut link = LinkConfig::new(rate, Span::ZERO, QueueConfig::DropTail(Default::default()));
        let late = [(100, 50), (160, 0)].map(|(due, by)| (at(due), Span::from_nanos(by)));
        link.late = LateArrivals::new(late.to_vec());
        let mut variation = Variation::new(&link, 1).unwrap();
        // That of 155 is there at 205; those of 160 and 180 wait for it.
        assert_eq!(
            [90, 100, 155, 160, 180, 210].map(|ns| variation.delay(at(ns)).as_nanos()),
            [90, 150, 205, 205, 205, 210]
        );
        link.standstills = Standstills::new(vec![(at(140), at(300))]);
        assert_eq!(Variation::new(&link, 1).unwrap().delay(at(100)), at(300));
    }

    proptest::proptest! {
        #[test]
        fn standstills_keep_the_order_and_never_bring_anything_forward(
            ends in proptest::collection::vec((0_u64..1_000, 0_u64..1_000), 0..20), mut due in proptest::collection::vec(0_u64..1_200, 1..50)
        ) {
            let still = Standstills::new(ends.iter().map(|(from, until)| (at(*from), at(*until))).collect());
            due.sort_unstable();
            let there: Vec<Time> = due.iter().map(|ns| still.after(at(*ns))).collect();
            proptest::prop_assert!(there.is_sorted());
            for (due, there) in due.iter().zip(&there) {
                // Held until the end of the longest of those that have begun, if that is still to
                // come.
                let begun = ends.iter().filter(|(from, until)| from <= due && from < until);
                let latest = begun.map(|(_, until)| *until).max().unwrap_or(0);
                proptest::prop_assert_eq!(*there, at(*due.max(&latest)));
            }
        }
    }
}
