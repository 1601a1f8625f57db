//! From a file of measurements to an estimate.

use std::collections::VecDeque;

use flowstart_units::{Bytes, Rate};

use super::{InOrder, Record, RecordError};
use crate::{Estimate, ProbeConfig, probe_rate};

/// Rows that say how far apart messages are.
const LOOKED_AT: usize = 1000;

/// Bytes of a message, of rows of one train; `None` if there is one row.
fn size(rows: &VecDeque<Record>, rate: Rate) -> Option<Bytes> {
    let (first, last) = (rows.front()?, rows.back()?);
    let apart =
        last.sent.checked_since(first.sent)?.as_secs_f64() / rows.len().checked_sub(1).filter(|gaps| *gaps > 0)? as f64;
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
        let mut failure = None;
        let mut delays = std::iter::from_fn(|| {
            match ahead.pop_front().map(Ok).or_else(|| records.next_if(same))?.and_then(|record| order.delay(&record)) {
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
        probes.push(probe);
    }
    Ok(Estimate::new(probes, config))
}
