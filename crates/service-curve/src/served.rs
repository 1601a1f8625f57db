//! What a flow control serves in the long run, seen from a train that is too fast for it.

use flowstart_units::Span;

use crate::Probability;
use crate::stats::{student_quantile, upper_quantile};

/// A train is cut into so many blocks.
const BLOCKS: usize = 20;
/// Fewer of them in which the train waited all the time say nothing.
const FEWEST: usize = BLOCKS / 2;

/// The throughput of a train while it waited all the time, in batches.
///
/// Whatever serves what arrives in order of arrival serves a constant rate in the long run exactly
/// if the rate is below its throughput when there is always something to serve (the saturation
/// rule: Baccelli and Foss, "On the saturation rule for the stability of queues", Journal of
/// Applied Probability 32(2), 1995). So one train that is too fast says where the long-term rate
/// lies, to within the batches' interval, whichever rates were probed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// Seconds per bit in each batch; an even number of batches.
    batches: Vec<f64>,
}

impl Served {
    /// Of a train whose samples have these packet numbers, `gap` seconds apart and of `bits` each,
    /// and delays. Counted from the block on after which no sample is delayed so little as twice
    /// the first block's median: until then the train may have been served all that it offered.
    /// `None` if that is less than half of the train.
    pub(crate) fn of(train: impl ExactSizeIterator<Item = (u64, Span)>, gap: f64, bits: f64) -> Option<Self> {
        let length = train.len() / BLOCKS;
        let samples: Vec<(u64, Span)> = train.collect();
        let delays = |samples: &[(u64, Span)]| samples.iter().map(|(_, delay)| *delay).collect::<Vec<_>>();
        let first = upper_quantile(&mut delays(samples.get(..length)?), Probability::HALF)?;
        let quick = samples.iter().rposition(|(_, delay)| *delay <= first * 2)?;
        // The block in which the last quick one lies is left out to its end.
        let from = quick / length + 1;
        let from = if (BLOCKS - from.min(BLOCKS)).is_multiple_of(2) { from } else { from + 1 };
        if from + FEWEST > BLOCKS {
            return None;
        }
        let read = |(packet, delay): (u64, Span)| packet as f64 * gap + delay.as_secs_f64();
        let ends: Vec<(u64, Span)> =
            (from..=BLOCKS).filter_map(|block| samples.get(block * length - 1)).copied().collect();
        let batches =
            ends.windows(2).map(|ends| (read(ends[1]) - read(ends[0])) / ((ends[1].0 - ends[0].0) as f64 * bits));
        Some(Self { batches: batches.collect() })
    }

    /// All batches of several trains.
    #[must_use]
    pub fn join<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        Self { batches: all.into_iter().flat_map(|one| one.batches.iter().copied()).collect() }
    }

    /// The rate, bit/s; `None` if there is no batch.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let mean = self.batches.iter().sum::<f64>() / self.batches.len() as f64;
        (mean > 0.0).then(|| 1.0 / mean)
    }

    /// Between which rates it lies, bit/s, except with probability `miss` (above 0): Student's t of
    /// the batches, or of pairs of them, whichever is wider, for what remembers longer than a batch
    /// makes neighbours alike. The upper end is infinite if batches vary too much for one.
    #[must_use]
    pub fn interval(&self, miss: Probability) -> Option<(f64, f64)> {
        let pairs: Vec<f64> = self.batches.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        let mean = 1.0 / self.rate()?;
        let half = [&self.batches, &pairs].map(|batches| half_width(batches, miss)).into_iter().fold(0.0, f64::max);
        let high = if half < mean { 1.0 / (mean - half) } else { f64::INFINITY };
        Some((1.0 / (mean + half), high))
    }
}

/// Half of the width of the mean's interval.
fn half_width(batches: &[f64], miss: Probability) -> f64 {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    student_quantile(miss.get() / 2.0, batches.len() - 1) * (variance / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A train of `offered` packets a second served at `capacity`, from second `since` on; before
    /// it waits 10 ms.
    fn train(offered: f64, capacity: f64, since: f64) -> Vec<(u64, Span)> {
        let delay = |n: u64| {
            let at = n as f64 / offered;
            0.01 + ((at - since) * (offered / capacity - 1.0)).max(0.0)
        };
        (0..20_000).step_by(10).map(|n| (n, Span::from_secs_f64(delay(n)))).collect()
    }

    #[test]
    fn a_train_that_waits_all_the_time_says_what_it_is_served_and_one_that_does_not_is_silent() {
        // 1000 bit each: 100 packets a second are 100 kbit/s, for 200 s.
        for since in [0.0, 30.0, 60.0] {
            let served = Served::of(train(100.0, 80.0, since).into_iter(), 0.01, 1e3).unwrap();
            assert!((served.rate().unwrap() / 80e3 - 1.0).abs() < 1e-6, "{since}");
            let (low, high) = served.interval(Probability::FIVE_PERCENT).unwrap();
            assert!(low <= 80e3 * (1.0 + 1e-6) && high >= 80e3 * (1.0 - 1e-6) && high - low < 1.0, "{low} {high}");
        }
        assert_eq!(Served::of(train(100.0, 80.0, 110.0).into_iter(), 0.01, 1e3), None, "less than half");
        assert_eq!(Served::of(train(100.0, 100.0, 0.0).into_iter(), 0.01, 1e3), None, "it never waits");
        assert_eq!(Served::of(train(100.0, 80.0, 0.0).into_iter().take(19), 0.01, 1e3), None, "too few");
        assert_eq!(Served::of([].into_iter(), 0.01, 1e3), None);
        assert_eq!((Served::default().rate(), Served::default().interval(Probability::FIVE_PERCENT)), (None, None));
    }

    /// Twenty batches of mean 2 and variance 20/19 * 1/4 ... in pairs of equal ones: as pairs they
    /// are ten of the same variance, and their interval is wider.
    #[test]
    fn batches_that_are_like_their_neighbours_count_as_fewer() {
        let of = |batches: Vec<f64>| Served { batches }.interval(Probability::FIVE_PERCENT).unwrap();
        let value = |n: usize| if n.is_multiple_of(2) { 1.5 } else { 2.5 };
        let (low, high) = of((0..20).map(value).collect());
        // Alternating: pairs do not vary, single ones by s = 0.5130 and t = 2.093.
        let half = 2.093 * (0.25_f64 * 20.0 / 19.0 / 20.0).sqrt();
        assert!((1.0 / low - 2.0 - half).abs() < 1e-3 && (2.0 - 1.0 / high - half).abs() < 1e-3, "{low} {high}");
        let (low, _) = of((0..20).map(|n| value(n / 2)).collect());
        let half = 2.262 * (0.25_f64 * 10.0 / 9.0 / 10.0).sqrt();
        assert!((1.0 / low - 2.0 - half).abs() < 1e-3, "{low}");
        // So spread that no upper end is known.
        let (low, high) = of(vec![0.1, 9.0, 0.1, 0.1]);
        assert!(low > 0.0 && high.is_infinite());
        let joined = Served::join([&Served { batches: vec![1.0, 2.0] }, &Served { batches: vec![3.0, 4.0] }]);
        assert_eq!(joined.rate(), Some(0.4));
    }
}
