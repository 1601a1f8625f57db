//! Delays at random packets, and what is kept of them.

use flowstart_units::{Rate, Span};

use super::ProbeConfig;
use crate::Error;
use crate::stats::{DelayHistogram, Gaps, SplitMix64, every_nth};

/// Most samples of the whole train that are kept.
const TRACE: usize = 1 << 13;
/// The random numbers of the phases, beside those of the gaps.
const PHASES: u64 = 1;
/// And those of the trace.
const TRACES: u64 = 2;

/// Which sample of every few is kept: the first, or one drawn at random for each extension.
pub(super) struct Phases(Option<SplitMix64>);

impl Phases {
    pub(super) fn new(config: &ProbeConfig) -> Self {
        Self(config.random_phase.then(|| SplitMix64::for_part(config.seed, PHASES)))
    }

    /// One of so many.
    pub(super) fn of(&mut self, growth: u64) -> u64 {
        let growth = usize::try_from(growth).unwrap_or(usize::MAX);
        self.0.as_mut().map_or(0, |random| random.below(growth) as u64)
    }
}

/// Samples evenly spread over all that were taken: when there is no room for another, every second
/// one makes way, which of the two at random.
pub(super) struct Trace {
    values: Vec<Span>,
    /// Their packets, counted from the end of the warm-up on.
    packets: Vec<u64>,
    /// Every so-many-th sample is kept.
    stride: u64,
    /// Samples until the next that is kept.
    wait: u64,
    random: SplitMix64,
}

impl Trace {
    fn new(seed: u64) -> Self {
        Self { values: Vec::new(), packets: Vec::new(), stride: 1, wait: 0, random: SplitMix64::for_part(seed, TRACES) }
    }

    fn push(&mut self, packet: u64, delay: Span) {
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        self.values.push(delay);
        self.packets.push(packet);
        self.wait = self.stride - 1;
        if self.values.len() == TRACE {
            let shift = self.random.below(2);
            self.values = every_nth(&self.values[shift..], 2);
            self.packets = every_nth(&self.packets[shift..], 2);
            // The next that would have been kept is the first of a pair.
            self.wait += self.stride * shift as u64;
            self.stride *= 2;
        }
    }

    /// In order of time.
    pub(super) fn values(&self) -> &[Span] {
        &self.values
    }

    /// With the numbers of their packets.
    pub(super) fn numbered(&self) -> impl DoubleEndedIterator<Item = (u64, Span)> + ExactSizeIterator {
        self.packets.iter().copied().zip(self.values.iter().copied())
    }
}

/// Takes delays at random packets of a train.
pub(super) struct Sampler<I> {
    delays: I,
    gaps: Gaps,
    per_second: f64,
    pub(super) packets: u64,
    pub(super) taken: u64,
    pub(super) histogram: DelayHistogram,
    pub(super) trace: Trace,
}

impl<I: Iterator<Item = Span>> Sampler<I> {
    pub(super) fn new(rate: Rate, mut delays: I, config: &ProbeConfig) -> Result<Self, Error> {
        /// Decimal digits of the histogram.
        const DIGITS: u8 = 3;
        let per_second = config.packets_per_second(rate);
        let mean = (config.sampling_gap.as_secs_f64() * per_second).max(f64::from(config.sampling_packets));
        let warm_up = (config.warm_up.as_secs_f64() * per_second) as u64;
        let packets = delays.by_ref().take(usize::try_from(warm_up).unwrap_or(usize::MAX)).count() as u64;
        let histogram = DelayHistogram::new(DIGITS)?;
        let (gaps, trace) = (Gaps::new(mean, config.seed), Trace::new(config.seed));
        Ok(Self { delays, gaps, per_second, packets, taken: 0, histogram, trace })
    }

    /// Takes samples until there are `count`; the last of them.
    pub(super) fn take_up_to(&mut self, count: u64) -> Option<Span> {
        let mut last = None;
        while self.taken < count {
            let gap = self.gaps.next()?;
            for _ in 0..gap {
                let delay = self.delays.next()?;
                self.packets += 1;
                self.histogram.record(delay);
                last = Some(delay);
            }
            self.taken += 1;
            self.trace.push(self.histogram.count(), last?);
        }
        last
    }
}

impl<I> Sampler<I> {
    /// Time between two packets, seconds.
    pub(super) fn gap(&self) -> f64 {
        1.0 / self.per_second
    }

    /// How long the train has been measured, after the warm-up.
    pub(super) fn measured(&self) -> Span {
        Span::from_secs_f64(self.histogram.count() as f64 / self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_evenly_spread_over_all_samples_however_many() {
        let mut trace = Trace::new(7);
        for n in 0..1_000_000_u64 {
            trace.push(n, Span::from_nanos(n));
            let values = trace.values();
            assert!(values.len() < TRACE);
            if n == TRACE as u64 / 2 || n == 999_999 {
                let apart: Vec<u64> = values.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos()).collect();
                assert!(apart.iter().all(|gap| *gap == trace.stride), "{n}");
                assert!(trace.numbered().all(|(packet, delay)| packet == delay.as_nanos()));
            }
        }
        assert!(trace.values().len() >= TRACE / 2 - 1);
        // The first sample does not survive by right: some phase of the stride.
        assert!(trace.stride == 128 && trace.values()[0] < Span::from_nanos(128));
        let first = |seed: u64| {
            let mut trace = Trace::new(seed);
            (0..100_000).for_each(|n| trace.push(n, Span::from_nanos(n)));
            trace.values()[0].as_nanos()
        };
        let all: std::collections::BTreeSet<u64> = (0..50).map(first).collect();
        assert!(all.len() > 8, "{all:?}");
    }
}
