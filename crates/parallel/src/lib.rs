//! Many runs on all cores, with a way to stop.

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

/// Does job 0 ..= `jobs`-1 on `threads` threads (`None`: as many as there are cores) and returns
/// the results in order of their numbers, whatever the order in which they finished; they are begun
/// in order. `done` is told how many are finished. After a cancellation the jobs not begun are
/// `None`.
///
/// # Errors
/// If the threads cannot be started.
pub fn in_parallel<T: Send>(
    jobs: usize,
    threads: Option<usize>,
    cancel: &Cancel,
    done: impl Fn(usize) + Sync,
    job: impl Fn(usize) -> T + Sync,
) -> Result<Vec<Option<T>>, String> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Every thread takes the next job when it is done with one, so that they are begun in order.
    let parts = pool.broadcast(|_| {
        let mut part = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= jobs || cancel.is_cancelled() {
                return part;
            }
            part.push((number, job(number)));
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    });
    let mut results: Vec<Option<T>> = (0..jobs).map(|_| None).collect();
    for (number, result) in parts.into_iter().flatten() {
        results[number] = Some(result);
    }
    Ok(results)
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
