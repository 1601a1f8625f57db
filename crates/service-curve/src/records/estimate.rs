//! From a file of measurements to an estimate.

use std::collections::VecDeque;

use flowstart_units::{Bytes, Rate, Time};

use super::{InOrder, Record, RecordError};
use crate::{Estimate, ProbeConfig, ProbeVerdict, probe_rate};

/// Rows that say how far apart messages are.
const LOOKED_AT: usize = 1000;
/// The share of the messages that must be there where a rate is accepted: what of the others was
/// lost tells no delay.
const THERE: f64 = 0.95;

/// The messages of a train that are there.
struct There {
    first: Time,
    last: Time,
    count: u64,
}

impl There {
    /// Their share of those that a train of this rate has, from the first to the last of them.
    fn share(&self, rate: Rate, size: Bytes) -> f64 {
        let sent = self.last.since(self.first).as_secs_f64() * rate.as_bps() as f64 / size.bits() as f64 + 1.0;
        self.count as f64 / sent
    }
}

/// Bytes of a message, of rows of one train; `None` if there is one row. Where gaps are regular,
/// those of messages that are missing are seen, and do not count.
fn size(rows: &VecDeque<Record>, rate: Rate) -> Option<Bytes> {
    /// Regular gaps differ by less than this share.
    const REGULAR: f64 = 0.1;
    let mut gaps = Vec::with_capacity(rows.len());
    for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
        gaps.push(next.sent.checked_since(row.sent)?.as_secs_f64());
    }
    gaps.sort_by(f64::total_cmp);
    let usual = *gaps.get(gaps.len() / 4)?;
    if gaps[gaps.len() / 20] >= usual * (1.0 - REGULAR) {
        gaps.retain(|gap| (gap / usual - 1.0).abs() <= REGULAR);
    }
    let apart = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    Some(Bytes::new((rate.as_bps() as f64 * apart / 8.0).round().max(1.0) as u64))
}

/// Probes every train of a measurement and joins them. `rate` is that of the only train of a file
/// without rates.
///
/// One pass, in a memory that does not grow with the number of records. A packet counts as received
/// when all packets before it are. Rows that a probe did not need are read and checked all the
/// same. How large the messages of a train are follows from its rate and from how far apart they
/// were handed over; `config.packet` is that of a train of one row.
///
/// # Errors
/// The first error of the records, or [`RecordError`] if rates or configuration are refused.
pub fn estimate_records(
    records: impl IntoIterator<Item = Result<Record, RecordError>>,
    rate: Option<Rate>,
    config: &ProbeConfig,
) -> Result<Estimate, RecordError> {
    let mut records = records.into_iter().peekable();
    let mut order = InOrder::default();
    let mut probes = Vec::new();
    while let Some(first) = records.peek() {
        let of_train = match first {
            Ok(record) => record.rate,
            Err(error) => return Err(error.clone()),
        };
        let rate = of_train.or(rate).ok_or(RecordError::NoRate)?;
        let same = |next: &Result<Record, RecordError>| next.as_ref().map_or(true, |record| record.rate == of_train);
        let mut ahead = VecDeque::new();
        while ahead.len() < LOOKED_AT
            && let Some(record) = records.next_if(same)
        {
            ahead.push_back(record?);
        }
        let config = &ProbeConfig { packet: size(&ahead, rate).unwrap_or(config.packet), ..config.clone() };
        let first = ahead.front().map_or(Time::ZERO, |record| record.sent);
        let mut there = There { first, last: first, count: 0 };
        let mut failure = None;
        let mut delays = std::iter::from_fn(|| {
            let record = ahead.pop_front().map(Ok).or_else(|| records.next_if(same))?;
            if let Ok(record) = &record {
                (there.last, there.count) = (record.sent, there.count + 1);
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
        let probe = probe_rate(rate, delays.by_ref(), config).map_err(RecordError::Refused)?;
        delays.by_ref().for_each(drop);
        drop(delays);
        if let Some(failure) = failure {
            return Err(failure);
        }
        let share = there.share(rate, config.packet);
        if matches!(probe.verdict, ProbeVerdict::Accepted(_)) && share < THERE {
            return Err(RecordError::Missing(rate, (share * 100.0) as u64));
        }
        probes.push(probe);
    }
    Ok(Estimate::new(probes, config))
}
