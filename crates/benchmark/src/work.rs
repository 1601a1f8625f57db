//! How much of a benchmark is done.

use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_units::Span;

/// Simulated time: what jobs are expected to need, and how far each of them is. Some need a
/// hundred times as much as others, so their number says little.
pub(super) struct Work(Vec<(Span, AtomicU64)>);

impl Work {
    /// Jobs that are expected to need so much.
    pub(super) fn new(expected: impl IntoIterator<Item = Span>) -> Self {
        Self(expected.into_iter().map(|span| (span, AtomicU64::new(0))).collect())
    }

    /// A job has simulated so much. One that needs more than was expected is as good as done.
    pub(super) fn is_at(&self, job: usize, simulated: Span) {
        let (expected, done) = &self.0[job];
        done.store(simulated.min(*expected).as_nanos(), Ordering::Relaxed);
    }

    /// A job is done, whatever it needed.
    pub(super) fn is_done(&self, job: usize) {
        self.is_at(job, Span::MAX);
    }

    /// Whole seconds that are done, and of how many.
    pub(super) fn seconds(&self) -> (usize, usize) {
        let done = self.0.iter().map(|(_, done)| Span::from_nanos(done.load(Ordering::Relaxed)).as_secs_f64());
        let expected = self.0.iter().map(|(expected, _)| expected.as_secs_f64());
        // Sums of the same numbers in the same order: all that is done is all that was expected.
        (done.sum::<f64>() as usize, expected.sum::<f64>() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_weighed_by_what_jobs_are_expected_to_need() {
        let work = Work::new([600, 60, 10].map(Span::from_secs));
        assert_eq!(work.seconds(), (0, 670));
        work.is_done(2);
        work.is_at(0, Span::from_secs(90));
        assert_eq!(work.seconds(), (100, 670));
        work.is_at(1, Span::from_secs(100));
        assert_eq!(work.seconds(), (160, 670), "longer than expected");
        work.is_done(0);
        work.is_done(1);
        assert_eq!(work.seconds(), (670, 670));
    }
}
