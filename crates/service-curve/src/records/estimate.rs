//! From a file of measurements to an estimate.

use flowstart_units::Rate;

use super::{InOrder, Record, RecordError};
use crate::{Estimate, ProbeConfig, probe_rate};

/// Probes every train of a measurement and joins them. `rate` is that of the only train of a file
/// without rates.
///
/// One pass, in a memory that does not grow with the number of records. A packet counts as received
/// when all packets before it are. Rows that a probe did not need are read and checked all the
/// same.
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
        let mut failure = None;
        let mut delays = std::iter::from_fn(|| {
            let same =
                |next: &Result<Record, RecordError>| next.as_ref().map_or(true, |record| record.rate == of_train);
            match records.next_if(same)?.and_then(|record| order.delay(&record)) {
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
