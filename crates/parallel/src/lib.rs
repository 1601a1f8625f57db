//! Many runs on all cores, with a way to stop.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Asks running work to stop; what is finished is kept. Clones ask the same work.
#[derive(Clone, Debug, Default)]
pub struct Cancel(std::sync::Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once asked.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does the work that it is given, once, with something before and after it.
pub type Around = fn(&mut (dyn FnMut() + Send));

static AROUND: OnceLock<Around> = OnceLock::new();

/// From now on every thread of [`in_parallel`] does all of its work within `around`, which sets up
/// once per thread what each job would set up anew: an interpreter's state, for instance. False if
/// something else is around it already, which stays.
pub fn work_within(around: Around) -> bool {
    AROUND.set(around).is_ok()
}

/// Why nothing can be done in parallel: threads cannot be started. Its `Display` is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoThreads {
    why: String,
}

impl fmt::Display for NoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start threads: {}", self.why)
    }
}

impl std::error::Error for NoThreads {}

impl From<NoThreads> for String {
    fn from(error: NoThreads) -> Self {
        error.to_string()
    }
}

/// Does job 0 ..= `jobs`-1 on `threads` threads (`None`: as many as there are cores) and returns
/// the results in order of their numbers, whatever the order in which they finished; they are begun
/// in order. `done` is told how many are finished. After a cancellation the jobs not begun are
/// `None`. A job that panics cancels the others; its panic goes on in the caller.
///
/// # Errors
/// If the threads cannot be started.
pub fn in_parallel<T: Send>(
    jobs: usize,
    threads: Option<usize>,
    cancel: &Cancel,
    done: impl Fn(usize) + Sync,
    job: impl Fn(usize) -> T + Sync,
) -> Result<Vec<Option<T>>, NoThreads> {
    let pool = rayon::ThreadPoolBuilder::new()
        // More threads than jobs would have nothing to do, and take long to start.
        .num_threads(threads.unwrap_or(0).min(jobs.max(1)))
        .build()
        .map_err(|error| NoThreads { why: error.to_string() })?;
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Every thread takes the next job when it is done with one, so that they are begun in order.
    let parts = pool.broadcast(|_| {
        let mut part = Vec::new();
        let mut work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs || cancel.is_cancelled() {
                    return;
                }
                let others = Others(cancel);
                part.push((number, job(number)));
                std::mem::forget(others);
                done(finished.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        match AROUND.get() {
            Some(around) => around(&mut work),
            None => work(),
        }
        part
    });
    let mut results: Vec<Option<T>> = (0..jobs).map(|_| None).collect();
    for (number, result) in parts.into_iter().flatten() {
        results[number] = Some(result);
    }
    Ok(results)
}

/// Cancels the others when it is dropped, which happens if a job panics.
struct Others<'a>(&'a Cancel);

impl Drop for Others<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_of_their_numbers_for_any_number_of_threads() {
        for threads in [1, 2, 7] {
            let squares = in_parallel(100, Some(threads), &Cancel::default(), |_| {}, |n| n * n).unwrap();
            assert!(squares.iter().enumerate().all(|(n, square)| *square == Some(n * n)));
        }
    }

    #[test]
    fn no_more_threads_are_started_than_there_are_jobs() {
        let twice = in_parallel(2, Some(1_000_000), &Cancel::default(), |_| {}, |_| rayon::current_num_threads());
        assert_eq!(twice, Ok(vec![Some(2), Some(2)]));
        assert_eq!(in_parallel(0, Some(7), &Cancel::default(), |_| {}, |n| n), Ok(vec![]));
    }

    #[test]
    fn a_panic_goes_on_in_the_caller_as_it_is_and_stops_the_others() {
        use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
        let begun = AtomicUsize::new(0);
        let job = |number: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 3 {
                resume_unwind(Box::new(41_u8));
            }
        };
        let run = || in_parallel(1000, Some(1), &Cancel::default(), |_| {}, job);
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
        assert_eq!(panic.downcast_ref(), Some(&41_u8));
        assert_eq!(begun.load(Ordering::Relaxed), 4);
        let cancel = Cancel::default();
        let run = || in_parallel(1000, Some(2), &cancel, |_| {}, job);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn what_is_around_the_work_is_around_all_of_it_and_stays() {
        static ENTERED: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static WITHIN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
        let around: Around = |work| {
            ENTERED.fetch_add(1, Ordering::Relaxed);
            WITHIN.set(true);
            work();
        };
        assert!(work_within(around));
        assert!(!work_within(|_| ()), "only one");
        let before = ENTERED.load(Ordering::Relaxed);
        let within = in_parallel(100, Some(2), &Cancel::default(), |_| {}, |_| WITHIN.get()).unwrap();
        assert!(within.iter().all(|within| *within == Some(true)));
        assert!(ENTERED.load(Ordering::Relaxed) >= before + 2, "once per thread");
    }

    #[test]
    fn after_a_cancellation_what_is_finished_is_kept_and_nothing_more_begins() {
        let cancel = Cancel::default();
        let results = in_parallel(
            50,
            Some(1),
            &cancel,
            |done| {
                if done == 10 {
                    cancel.cancel()
                }
            },
            |n| n,
        )
        .unwrap();
        assert_eq!(results.iter().flatten().count(), 10);
    }
}
