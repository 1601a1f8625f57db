//! The largest of the last rounds, from three candidates.

/// Nichols's running maximum over a window: the best value, and the best of what came after it,
/// twice. What it gives is at least the largest of the last quarter of the window and never more
/// than the largest of the whole (as Linux `minmax_running_max`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningMax<T> {
    /// Round and value, the best first, each later than the one before or the same.
    best: [(u64, T); 3],
}

impl<T: Copy + Ord + Default> RunningMax<T> {
    pub(crate) fn get(&self) -> T {
        self.best[0].1
    }

    /// The same with another unit of values.
    pub(crate) fn map(self, change: impl Fn(T) -> T) -> Self {
        Self { best: self.best.map(|(round, value)| (round, change(value))) }
    }

    /// A value of this round, with a window of so many rounds.
    pub(crate) fn update(&mut self, round: u64, value: T, window: u64) {
        let new = (round, value);
        if value >= self.best[0].1 || round - self.best[2].0 > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best = [self.best[0], new, new];
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        let age = round - self.best[0].0;
        if age > window {
            self.promote(new);
            if round - self.best[0].0 > window {
                self.promote(new);
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            // A quarter of the window without a second one: take what comes.
            self.best = [self.best[0], new, new];
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = new;
        }
    }

    fn promote(&mut self, new: (u64, T)) {
        self.best = [self.best[1], self.best[2], new];
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Rate;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_peak_is_forgotten_when_it_is_older_than_the_window() {
        let mut max = RunningMax::default();
        max.update(0, Rate::from_mbps(9), 10);
        for round in 1..=10 {
            max.update(round, Rate::from_mbps(5), 10);
            assert_eq!(max.get(), Rate::from_mbps(9), "round {round}");
        }
        max.update(11, Rate::from_mbps(5), 10);
        assert_eq!(max.get(), Rate::from_mbps(5));
    }

    /// `minmax_subwin_update`: after a quarter of the window the second comes from what followed,
    /// after half of it the third does.
    #[test]
    fn what_takes_the_place_of_a_peak_is_the_best_of_its_second_quarter_and_then_of_its_second_half() {
        let at_end = |values: &[(u64, u64)], end| {
            let mut max = RunningMax::default();
            for (round, value) in values {
                max.update(*round, *value, 10);
            }
            max.update(end, 1, 10);
            max.get()
        };
        let ones = (7..=13).map(|round| (round, 1));
        let values: Vec<(u64, u64)> = [(0, 9), (3, 5), (6, 4)].into_iter().chain(ones).collect();
        assert_eq!(at_end(&values[..6], 10), 9);
        assert_eq!(at_end(&values[..7], 11), 5);
        assert_eq!(at_end(&values[..9], 13), 5);
        assert_eq!(at_end(&values, 14), 4);
        assert_eq!(at_end(&values[..3], 15), 4, "two are too old");
    }

    proptest! {
        #[test]
        fn it_is_between_the_newest_and_the_largest_of_the_window(values in prop::collection::vec(1_u64..100, 1..80)) {
            let mut max = RunningMax::default();
            for (round, value) in values.iter().enumerate() {
                max.update(round as u64, Rate::from_mbps(*value), 10);
                let largest = values[round.saturating_sub(10)..=round].iter().max().unwrap();
                prop_assert!(max.get() >= Rate::from_mbps(*value));
                prop_assert!(max.get() <= Rate::from_mbps(*largest));
            }
        }
    }
}
