//! What a token bucket lets pass tells a rate that does not last. Packets that waited one behind
//! the other say so before the next trains build a long queue.

use flowstart_units::Span;

use super::Look;
use super::bucket::Way;

impl Look {
    /// If the bottleneck took much longer for each of the packets that arrived last than the path
    /// was taken for it is taken for that.
    pub(super) fn slow_down(&mut self) {
        let takes = takes(&self.ways, self.smallest, self.config.least_settling as usize);
        let slower = takes.filter(|takes| *takes > self.service.mul_f64(self.config.slower));
        if let Some(takes) = slower.filter(|_| !self.service.is_zero()) {
            let before = std::mem::replace(&mut self.service, takes);
            self.slower = true;
            // Of a bucket of a few packets it is not asked how fast it lets them pass.
            if self.passes_at_once() >= self.config.most_leads {
                self.fast = self.fast.or(Some(before));
            }
        }
    }
}

/// What the bottleneck took for a packet, in the middle of so many that arrived last, if more than
/// half of them were there when the one before was through.
fn takes(ways: &[Way], fastest: Span, count: usize) -> Option<Span> {
    let newest = ways.len().checked_sub(count + 1).map(|from| &ways[from..])?;
    let waited = |two: &[Way]| {
        let apart = two[1].1.since(two[0].1);
        (two[1].0 + fastest + apart <= two[1].1).then_some(apart)
    };
    let mut apart: Vec<Span> = newest.windows(2).filter_map(waited).collect();
    apart.sort_unstable();
    (apart.len() * 2 > count).then(|| apart[apart.len() / 2])
}

#[cfg(test)]
mod tests {
    use flowstart_units::Time;

    use super::*;

    /// Packets that leave and arrive after so many milliseconds; the fastest takes 20.
    fn of(seen: &[(u64, u64)]) -> Option<u64> {
        let at = |millis: u64| Time::ZERO + Span::from_millis(millis);
        let ways: Vec<Way> = seen.iter().map(|(left, arrived)| (at(*left), at(*arrived), 1480)).collect();
        takes(&ways, Span::from_millis(20), 4).map(|takes| takes.as_nanos() / 1_000_000)
    }

    #[test]
    fn packets_that_waited_for_each_other_tell_what_one_takes() {
        let queued = [(0, 20), (1, 25), (2, 30), (3, 35), (4, 40)];
        assert_eq!(of(&queued), Some(5));
        assert_eq!(of(&queued[1..]), None, "too few");
        // Before them others passed faster; one was held up, and the next came with it.
        assert_eq!(of(&[&[(0, 20), (0, 21), (0, 22)], &queued[..]].concat()), Some(5));
        assert_eq!(of(&[(0, 20), (1, 25), (2, 49), (3, 49), (4, 54)]), Some(5));
    }

    #[test]
    fn packets_that_met_no_queue_tell_nothing() {
        assert_eq!(of(&[(0, 20), (5, 25), (10, 30), (15, 35), (20, 40)]), None);
        // Half of them.
        assert_eq!(of(&[(0, 20), (5, 25), (5, 30), (25, 45), (25, 50)]), None);
    }
}
