//! From a file of measurements to an estimate.

use std::collections::VecDeque;

use flowstart_units::{Bytes, Rate, Time};

use super::{InOrder, Record, RecordError};
use crate::{Estimate, ProbeConfig, ProbeVerdict, RateProbe, Undecided, probe_rate};

/// Rows that say how far apart messages are.
const LOOKED_AT: usize = 1000;
/// More trains are not read: of a file whose rates take turns every row would be one.
pub(super) const MOST_TRAINS: usize = 1000;
/// The share of the messages that must be there where a rate is accepted: what of the others was
/// lost tells no delay.
const THERE: f64 = 0.95;
/// So many deviations a share is off by chance once in a million times.
const DEVIATIONS: f64 = 4.753;

/// How far apart messages of a train were handed over, by some of its rows.
struct Apart {
    /// In the mean, in seconds; above zero.
    mean: f64,
    /// The variance of a gap, in squares of the mean. Of many gaps together it is divided by their
    /// number.
    variance: f64,
    /// Gaps differ little, so that those of messages that are missing were seen and do not count.
    regular: bool,
}

impl Apart {
    /// Of rows of one train; `None` if there is one row, or all were handed over at once.
    fn of(rows: &VecDeque<Record>) -> Option<Self> {
        /// Regular gaps differ by less than this share.
        const REGULAR: f64 = 0.1;
        let mut gaps = Vec::with_capacity(rows.len());
        for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
            gaps.push(next.sent.checked_since(row.sent)?.as_secs_f64());
        }
        let mut sorted = gaps.clone();
        sorted.sort_by(f64::total_cmp);
        let usual = *sorted.get(sorted.len() / 4)?;
        let regular = usual > 0.0 && sorted[sorted.len() / 20] >= usual * (1.0 - REGULAR);
        if regular {
            gaps.retain(|gap| (gap / usual - 1.0).abs() <= REGULAR);
        }
        let mean = mean(&gaps);
        (mean > 0.0).then(|| Self { mean, variance: variance(&gaps) / (mean * mean), regular })
    }

    /// Bytes of a message.
    fn size(&self, rate: Rate) -> Bytes {
        Bytes::new((rate.as_bps() as f64 * self.mean / 8.0).round().max(1.0) as u64)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The variance of one of these values that explains how their sums over blocks differ, at least
/// their own: gaps that follow one another may be alike.
fn variance(values: &[f64]) -> f64 {
    const BLOCKS: usize = 20;
    let about = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
            / values.len().saturating_sub(1).max(1) as f64
    };
    let length = values.len() / BLOCKS;
    let blocks: Vec<f64> = values.chunks_exact(length.max(1)).map(mean).collect();
    about(values).max(about(&blocks) * length as f64)
}

/// The messages of a train that are there.
struct There {
    first: Time,
    last: Time,
    count: u64,
    /// When the train was [`LOOKED_AT`], twice, four times … as long, its last message.
    at: Vec<Time>,
}

impl There {
    fn new(first: Time) -> Self {
        Self { first, last: first, count: 0, at: Vec::new() }
    }

    fn add(&mut self, sent: Time) {
        (self.last, self.count) = (sent, self.count + 1);
        if self.count == Self::rows(self.at.len()) {
            self.at.push(sent);
        }
    }

    /// Rows up to this mark.
    fn rows(mark: usize) -> u64 {
        (LOOKED_AT as u64) << mark.min(50)
    }

    /// Per cent of the messages that are there, if those are clearly too few: of the ones that the
    /// whole train would have if its messages were as far apart as in its beginning. How much of it
    /// is the beginning does not matter where gaps are regular. Where they are random the first
    /// thousand say little, and ever longer ones say ever more.
    fn too_few(&self, apart: &Apart) -> Option<u64> {
        let whole = self.last.since(self.first).as_secs_f64();
        let clearly = |mean: f64, rows: u64| {
            let share = self.count as f64 / (whole / mean + 1.0);
            let known = (1.0 / rows as f64 - 1.0 / self.count as f64).max(0.0);
            let off = DEVIATIONS * (apart.variance * known).sqrt();
            (share * libm::exp(off) < THERE).then_some((share * 100.0 + 1e-6) as u64)
        };
        let first = clearly(apart.mean, (LOOKED_AT as u64).min(self.count.max(1)));
        let longer = self.at.iter().enumerate().skip(1).filter(|_| !apart.regular).filter_map(|(mark, at)| {
            let rows = Self::rows(mark);
            clearly(at.since(self.first).as_secs_f64() / (rows - 1) as f64, rows)
        });
        // A beginning of which messages are missing, too, has too high a share.
        longer.chain(first).min()
    }
}

/// Probes every train of a measurement and joins them. `rate` is that of the only train of a file
/// without rates.
///
/// One pass, in a memory that does not grow with the number of records. A packet counts as received
/// when all packets before it are. Rows that a probe did not need are read and checked all the
/// same. How large the messages of a train are follows from its rate and from how far apart they
/// were handed over; `config.packet` is that of a train of one row. A rate of whose messages too
/// many are missing is not accepted ([`Undecided::Missing`]).
///
/// # Errors
/// The first error of the records, or [`RecordError`] if rates or configuration are refused, there
/// are too many trains, the first thousand messages of one were sent at once, or messages of every
/// train are missing.
pub fn estimate_records(
    records: impl IntoIterator<Item = Result<Record, RecordError>>,
    rate: Option<Rate>,
    config: &ProbeConfig,
) -> Result<Estimate, RecordError> {
    let mut records = records.into_iter().peekable();
    let mut order = InOrder::default();
    let mut probes = Vec::new();
    while let Some(first) = records.peek() {
        if probes.len() == MOST_TRAINS {
            return Err(RecordError::TooManyTrains(order.row + 1));
        }
        let of_train = match first {
            Ok(record) => record.rate,
            Err(error) => return Err(error.clone()),
        };
        let rate = of_train.or(rate).ok_or(RecordError::NoRate)?;
        if of_train == Some(Rate::ZERO) {
            return Err(RecordError::RateZero(order.row + 1));
        }
        let same = |next: &Result<Record, RecordError>| next.as_ref().map_or(true, |record| record.rate == of_train);
        let mut ahead = VecDeque::new();
        while ahead.len() < LOOKED_AT
            && let Some(record) = records.next_if(same)
        {
            ahead.push_back(record?);
        }
        let at_once = |first: &Record| ahead.iter().all(|record| record.sent == first.sent);
        if ahead.len() == LOOKED_AT && ahead.front().is_some_and(at_once) {
            return Err(RecordError::AtOnce(rate));
        }
        let apart = Apart::of(&ahead);
        let packet = apart.as_ref().map_or(config.packet, |apart| apart.size(rate));
        let config = &ProbeConfig { packet, ..config.clone() };
        let mut there = There::new(ahead.front().map_or(Time::ZERO, |record| record.sent));
        let mut failure = None;
        let mut delays = std::iter::from_fn(|| {
            let record = ahead.pop_front().map(Ok).or_else(|| records.next_if(same))?;
            if let Ok(record) = &record {
                there.add(record.sent);
            }
            match record.and_then(|record| order.delay(&record)) {
                Ok(delay) => Some(delay),
                Err(error) => {
                    failure = Some(error);
                    None
                }
            }
        })
        .fuse();
        let mut probe = probe_rate(rate, delays.by_ref(), config).map_err(RecordError::Refused)?;
        delays.by_ref().for_each(drop);
        drop(delays);
        if let Some(failure) = failure {
            return Err(failure);
        }
        if matches!(probe.verdict, ProbeVerdict::Accepted(_))
            && let Some(percent) = apart.as_ref().and_then(|apart| there.too_few(apart))
        {
            probe.verdict = ProbeVerdict::Undecided(Undecided::Missing { percent });
        }
        probes.push(probe);
    }
    let missing = probes.iter().map(|probe: &RateProbe| match probe.verdict {
        ProbeVerdict::Undecided(Undecided::Missing { percent }) => Some(RecordError::Missing(probe.rate, percent)),
        _ => None,
    });
    // Nothing else is in it.
    if let Some(missing) = missing.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next()) {
        return Err(missing);
    }
    Ok(Estimate::new(probes, config))
}
