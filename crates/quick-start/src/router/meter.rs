//! How busy the link is.

use alloc::boxed::Box;
use alloc::vec;

use flowstart_units::{Bytes, Rate, Span, Time};

/// How the load of a link is measured: bytes of IP packets that leave, over intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterConfig {
    /// The mean over the last complete interval (Scharf and Strotbek; D = 1 s).
    Mean {
        /// Length of an interval.
        interval: Span,
    },
    /// The largest mean of the last samples (RFC 4782 appendix C; 150 ms, 3 ..= 20 of them).
    Peak {
        /// Length of a sample.
        sample: Span,
        /// Number of samples, at least 1.
        samples: u32,
    },
}

impl MeterConfig {
    /// Length of an interval or sample.
    #[must_use]
    pub fn interval(&self) -> Span {
        match *self {
            Self::Mean { interval } => interval,
            Self::Peak { sample, .. } => sample,
        }
        .max(Span::from_nanos(1))
    }
}

/// A meter in operation.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    interval: Span,
    /// When the present interval ends.
    end: Time,
    bytes: u64,
    /// Means of the last complete intervals, as many as count; `turn` is the next to be
    /// overwritten.
    samples: Box<[Rate]>,
    turn: usize,
    load: Rate,
}

impl Meter {
    pub(super) fn new(config: MeterConfig) -> Self {
        let samples = match config {
            MeterConfig::Mean { .. } => 1,
            MeterConfig::Peak { samples, .. } => samples.max(1),
        };
        let interval = config.interval();
        Self {
            interval,
            end: Time::ZERO + interval,
            bytes: 0,
            samples: vec![Rate::ZERO; samples as usize].into(),
            turn: 0,
            load: Rate::ZERO,
        }
    }

    /// The load as published at the end of the last complete interval.
    pub(super) fn load(&self) -> Rate {
        self.load
    }

    /// A packet of `bytes` leaves within the present interval.
    #[inline]
    pub(super) fn count(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_add(u64::from(bytes));
    }

    /// Completes the intervals that ended at `now` or before. Returns how many, as far as they
    /// matter.
    #[inline]
    pub(super) fn turn(&mut self, now: Time) -> u64 {
        if now < self.end { 0 } else { self.complete(now) }
    }

    #[cold]
    fn complete(&mut self, now: Time) -> u64 {
        let passed = now.since(self.end).whole(self.interval).saturating_add(1);
        let first = Rate::of(Bytes::new(self.bytes), self.interval);
        // Nothing left in the intervals after the first.
        for n in 0..passed.min(self.samples.len() as u64 + 1) {
            self.samples[self.turn] = if n == 0 { first } else { Rate::ZERO };
            self.turn = (self.turn + 1) % self.samples.len();
        }
        self.bytes = 0;
        self.end += self.interval * passed;
        self.load = self.samples.iter().copied().max().unwrap_or(Rate::ZERO);
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn loads(config: MeterConfig, packets: &[(u64, u32)], times: &[u64]) -> Vec<u64> {
        let mut meter = Meter::new(config);
        let mut packets = packets.iter().peekable();
        let mut load = |time: &u64| {
            while let Some((at, bytes)) = packets.next_if(|(at, _)| at <= time) {
                meter.turn(ms(*at));
                meter.count(*bytes);
            }
            meter.turn(ms(*time));
            meter.load().as_bps() / 1000
        };
        times.iter().map(&mut load).collect()
    }

    #[test]
    fn the_mean_of_an_interval_is_published_when_it_ends_and_holds_for_one_more() {
        let mean = MeterConfig::Mean { interval: Span::from_secs(1) };
        let loads = loads(mean, &[(0, 500_000), (999, 500_000), (1000, 125_000)], &[999, 1000, 1999, 2000, 2999, 3000]);
        assert_eq!(loads, [0, 8000, 8000, 1000, 1000, 0]);
    }

    #[test]
    fn the_peak_lasts_as_many_samples_as_are_kept() {
        let peak = MeterConfig::Peak { sample: Span::from_millis(150), samples: 3 };
        let loads = loads(peak, &[(10, 150_000), (200, 15_000)], &[149, 150, 450, 599, 600, 749, 750]);
        assert_eq!(loads, [0, 8000, 8000, 8000, 800, 800, 0]);
    }

    #[test]
    fn a_long_silence_leaves_no_load() {
        let peak = MeterConfig::Peak { sample: Span::from_nanos(1), samples: 20 };
        assert_eq!(loads(peak, &[(0, 1500)], &[1_000_000]), [0]);
    }
}
