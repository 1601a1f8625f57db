//! Measurements from Parquet files say what they say as CSV.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, UInt64Array};
use flowstart_service_curve::{
    AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, ProbeConfig, RecordError, estimate_records, read_csv,
};
use flowstart_units::{Rate, Span};

#[test]
fn a_file_gives_the_same_estimate_as_the_same_records_in_csv() {
    let config = ProbeConfig { samples: 100, warm_up: Span::from_secs(1), ..ProbeConfig::default() };
    let (mut text, mut rows) = ("rate_bps,sent_ns,received_ns\n".to_owned(), Vec::new());
    for packets_per_second in [500_u64, 2_000] {
        let rate = Rate::from_bps(packets_per_second * 12_000);
        let times = ConstantRate::new(rate, config.packet);
        let flow = AdaptiveLoop::new(AdaptiveLoopConfig::default(), times.clone(), 7).unwrap();
        for (sent, delay) in times.zip(flow.delays()).take(60_000) {
            let row = (rate.as_bps(), sent.as_nanos(), (sent + delay).as_nanos());
            writeln!(text, "{},{},{}", row.0, row.1, row.2).unwrap();
            rows.push(row);
        }
    }
    assert_eq!(rows.len(), 120_000);
    // Other types, another unit, another order of the columns, and one that nobody asks for.
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("received_ns", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2 as i64)))),
        ("other", Arc::new(Float64Array::from_iter_values(rows.iter().map(|_| 0.5)))),
        ("rate_bps", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.0)))),
        ("sent_ms", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.1 as f64 / 1e6)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = tempfile::tempfile().unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let records = flowstart_parquet::read_records(file).unwrap();
    let found = estimate_records(records, None, &config).unwrap();
    let expected = estimate_records(read_csv(text.as_bytes()).unwrap(), None, &config).unwrap();
    assert_eq!(found.curve, expected.curve);
    assert_eq!(found.probes[1].samples, expected.probes[1].samples);
}

#[test]
fn what_is_written_is_read_back() {
    // More than are written at once.
    let record = |n: u64| flowstart_service_curve::Record {
        rate: Some(Rate::from_mbps(1 + n / 40_000)),
        sent: flowstart_units::Time::from_nanos(n * 1_000_003),
        received: flowstart_units::Time::from_nanos(n * 1_000_003 + 31_072_113),
        passed: n.is_multiple_of(3).then_some(flowstart_service_curve::Passed {
            left: flowstart_units::Time::from_nanos(n * 1_000_003 + 5),
            arrived: flowstart_units::Time::from_nanos(n * 1_000_003 + 30_000_000),
        }),
    };
    let file = tempfile::tempfile().unwrap();
    flowstart_parquet::write_records(file.try_clone().unwrap(), (0..100_000).map(record), true).unwrap();
    let read = flowstart_parquet::read_records(file).unwrap();
    assert!(read.zip(0..).all(|(found, n)| found == Ok(record(n))));
    let none = tempfile::tempfile().unwrap();
    flowstart_parquet::write_records(none.try_clone().unwrap(), [], false).unwrap();
    assert_eq!(flowstart_parquet::read_records(none).unwrap().count(), 0);
}

/// Fuzzing found it: where a page begins there is a list of two thousand million numbers that
/// nobody asks for, and the library goes over all of them although the file has ended.
#[test]
fn a_list_that_goes_on_behind_the_end_of_the_file_is_not_read_for_minutes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/parquet/list-behind-the-end");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let last = flowstart_parquet::read_records(std::fs::File::open(file).unwrap()).unwrap().last();
        tell.send(matches!(last, Some(Err(RecordError::Unreadable(_)))))
    });
    assert_eq!(told.recv_timeout(std::time::Duration::from_secs(20)), Ok(true));
}
