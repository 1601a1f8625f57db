//! What a sender counts and puts into words for its report.

use flowstart_congestion::ExitReason;
use flowstart_congestion::detection::{Decision, Isolation};
use flowstart_units::Time;

use crate::message::Isolated;

/// RTTs seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtts {
    pub(super) count: u64,
    pub(super) sum: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) last: u64,
    pub(super) moved: u64,
}

impl Rtts {
    pub(super) fn add(&mut self, rtt: u64) {
        if self.count == 0 {
            (self.least, self.most) = (rtt, rtt);
        } else {
            self.moved = self.moved.saturating_add(rtt.abs_diff(self.last));
        }
        self.least = self.least.min(rtt);
        self.most = self.most.max(rtt);
        self.count += 1;
        self.sum = self.sum.saturating_add(rtt);
        self.last = rtt;
    }
}

/// How late departures were: a histogram in steps of a sixteenth of a power of two.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    pub(super) counts: Vec<u64>,
    pub(super) total: u64,
}

impl Lateness {
    pub(super) const STEPS: u64 = 16;

    fn slot(nanos: u64) -> usize {
        if nanos < Self::STEPS {
            return nanos as usize;
        }
        let power = u64::from(nanos.ilog2());
        ((power - 3) * Self::STEPS + ((nanos >> (power - 4)) - Self::STEPS)) as usize
    }

    pub(super) fn add(&mut self, nanos: u64) {
        if let Some(count) = self.counts.get_mut(Self::slot(nanos)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// The upper end of the step that `percent` per cent do not exceed.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.total * percent).div_ceil(100);
        let mut seen = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                let slot = slot as u64;
                return match slot < Self::STEPS {
                    true => slot,
                    false => (Self::STEPS + slot % Self::STEPS + 1) << (slot / Self::STEPS - 1),
                };
            }
        }
        0
    }
}

/// A reason in words: `ack train`.
pub(super) fn words(reason: ExitReason) -> String {
    let mut words = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// A decision for others. Nobody is certain of what was not found out.
pub(super) fn isolated(decision: &Decision, began: Time) -> Isolated {
    Isolated {
        isolation: decision.isolation.name().to_owned(),
        confidence: decision.confidence.filter(|_| decision.isolation != Isolation::Unknown),
        rate: decision.rate.as_bps(),
        after: decision.now.since(began).as_nanos(),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::{Rate, Span};

    use super::*;

    /// A path with several ways: the detector is certain that there are, and knows of no queue.
    #[test]
    fn nobody_is_certain_of_what_was_not_found_out() {
        for (isolation, confidence) in
            [(Isolation::Unknown, None), (Isolation::Shared, Some(1.0)), (Isolation::Isolated, Some(1.0))]
        {
            let (now, smallest) = (Time::from_nanos(5), Span::ZERO);
            let decision = Decision { now, isolation, ratio: 1.0, rate: Rate::ZERO, confidence: Some(1.0), smallest };
            assert_eq!(isolated(&decision, Time::ZERO).confidence, confidence);
        }
    }

    #[test]
    fn percentiles_of_lateness_are_off_by_a_sixteenth_at_most() {
        let mut late = Lateness { counts: vec![0; 61 * 16], total: 0 };
        (1..=1000).for_each(|n| late.add(n * 100));
        for (percent, exact) in [(50, 50_000), (99, 99_000)] {
            let read = late.percentile(percent);
            assert!(read >= exact && read <= exact + exact / 16, "{percent}: {read}");
        }
        late.add(u64::MAX);
        assert_eq!(late.total, 1001);
    }
}
