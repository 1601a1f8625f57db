//! Measurements as CSV.

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

use flowstart_units::{Rate, Time};

use super::{Columns, Passed, Record, RecordError};

/// A row is not longer than this: three numbers and what somebody may have put beside them.
const LONGEST_ROW: u64 = 1 << 20;

/// Reads a row, and then no more until the next one is allowed: what has no end of line, or a quote
/// that nobody closes, must not be taken into memory whole.
struct Rationed<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(std::io::Error::other(format!("a row is longer than {LONGEST_ROW} bytes")));
        }
        let most = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut bytes[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}

/// The records of a CSV file with a head, row by row: memory does not grow with the file.
///
/// # Errors
/// If the head cannot be read or lacks a column. Each row has an error of its own.
pub fn read_csv<R: Read>(reader: R) -> Result<impl Iterator<Item = Result<Record, RecordError>> + use<R>, RecordError> {
    let unreadable = |error: csv::Error| RecordError::Unreadable(error.to_string());
    let left = Rc::new(Cell::new(LONGEST_ROW));
    let mut reader = csv::Reader::from_reader(Rationed { inner: reader, left: left.clone() });
    let names = reader.headers().map_err(unreadable)?.clone();
    let columns = Columns::of(&names.iter().collect::<Vec<_>>())?;
    let mut row = csv::StringRecord::new();
    let mut number = 0;
    Ok(std::iter::from_fn(move || {
        left.set(LONGEST_ROW);
        match reader.read_record(&mut row) {
            Ok(false) => None,
            Err(error) => Some(Err(unreadable(error))),
            Ok(true) => {
                number += 1;
                Some(record(&row, &names, &columns, number))
            }
        }
    }))
}

fn record(
    row: &csv::StringRecord,
    names: &csv::StringRecord,
    columns: &Columns,
    number: u64,
) -> Result<Record, RecordError> {
    let parsed = |column: usize, unit: u64| {
        let text = row.get(column).unwrap_or_default().trim();
        decimal(text, unit).ok_or_else(|| {
            RecordError::NotANumber(number, names.get(column).unwrap_or_default().to_owned(), text.to_owned())
        })
    };
    // Where both ends are not known, their cells are empty.
    let passed = columns.passed.map_or(Ok(None), |[left, arrived]| {
        let known = |(column, _): (usize, u64)| !row.get(column).unwrap_or_default().trim().is_empty();
        match (known(left), known(arrived)) {
            (false, false) => Ok(None),
            (true, true) => Ok(Some(Passed {
                left: Time::from_nanos(parsed(left.0, left.1)?),
                arrived: Time::from_nanos(parsed(arrived.0, arrived.1)?),
            })),
            _ => Err(RecordError::OnlyOneEnd(number)),
        }
    })?;
    Ok(Record {
        rate: columns.rate.map(|column| parsed(column, 1)).transpose()?.map(Rate::from_bps),
        sent: Time::from_nanos(parsed(columns.sent.0, columns.sent.1)?),
        received: Time::from_nanos(parsed(columns.received.0, columns.received.1)?),
        passed,
    })
}

/// A decimal number of `unit`, a power of ten, exactly (a float has too few digits for nanoseconds
/// since 1970). What is smaller than one is cut off; beyond the range of 64 bits it is none.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let append = |sum: u64, digit: u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let mut value = whole.bytes().try_fold(0_u64, append)?.checked_mul(unit)?;
    let mut place = unit;
    for digit in part.bytes() {
        place /= 10;
        value = value.checked_add(place * u64::from(digit - b'0'))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<Record>, RecordError> {
        read_csv(text.as_bytes())?.collect()
    }

    #[test]
    fn what_has_no_end_of_line_is_refused_and_not_read_to_its_end() {
        let endless = || std::io::Read::chain("sent_s,received_s\n1,2\n\"".as_bytes(), std::io::repeat(b'x'));
        let mut rows = read_csv(endless()).unwrap();
        assert!(rows.next().unwrap().is_ok());
        let refused = rows.next().unwrap().unwrap_err().to_string();
        assert!(refused.contains("a row is longer than 1048576 bytes"), "{refused}");
        let refused = read_csv(std::io::repeat(0)).err().expect("no head ends").to_string();
        assert!(refused.contains("a row is longer"), "{refused}");
        // Many rows are not one.
        let rows = "1,2\n".repeat(1_000_000);
        assert_eq!(read_csv(format!("sent_s,received_s\n{rows}").as_bytes()).unwrap().count(), 1_000_000);
    }

    #[test]
    fn columns_have_units_in_their_names_and_any_order() {
        let expected = |rate: Option<u64>| Record {
            rate: rate.map(Rate::from_bps),
            sent: Time::from_nanos(1_700_000_000_123_456_789),
            received: Time::from_nanos(1_700_000_000_223_456_000),
            passed: None,
        };
        let seconds = "received_s,note,sent_s\n1700000000.223456,x,1700000000.1234567891\n";
        assert_eq!(read(seconds), Ok(vec![expected(None)]));
        let mixed = "rate_bps, sent_ns ,received_us\n 5000 ,1700000000123456789,1700000000223456\n";
        assert_eq!(read(mixed), Ok(vec![expected(Some(5_000))]));
    }

    #[test]
    fn the_ends_of_the_network_are_read_where_they_are_known_and_both_or_neither() {
        let rows = "sent_ms,left_ms,arrived_ms,received_ms\n1,2,3,5\n2,,,6\n";
        let passed: Vec<_> = read(rows).unwrap().into_iter().map(|record| record.passed).collect();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert_eq!(passed, [Some(Passed { left: at(2), arrived: at(3) }), None]);
        assert_eq!(read("sent_ms,left_ms,received_ms\n"), Err(RecordError::OnlyOneEnd(0)));
        assert_eq!(read("sent_ms,left_ms,arrived_ms,received_ms\n1,2,3,5\n2,3,,6\n"), Err(RecordError::OnlyOneEnd(2)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_row_and_column() {
        assert_eq!(read("sent_ns,rate_bps\n"), Err(RecordError::NoColumn("received")));
        assert_eq!(read(""), Err(RecordError::NoColumn("sent")));
        for (head, what) in [
            ("sent_ns,sent_us,received_ns", "sent"),
            ("sent_ns,received_s,received_s", "received"),
            ("sent_ns,left_s,left_ms,arrived_s,received_ns", "left"),
            ("rate_bps,sent_ns,received_ns, rate_bps", "rate"),
        ] {
            assert_eq!(read(&format!("{head}\n")), Err(RecordError::Twice(what)), "{head}");
        }
        let lost = read("sent_ns,received_ns\n1,2\n3,\n");
        assert_eq!(lost, Err(RecordError::NotANumber(2, "received_ns".to_owned(), String::new())));
        for bad in ["-1", "1e9", "1.2.3", ".", "NaN"] {
            assert!(read(&format!("sent_ns,received_ns\n{bad},2\n")).is_err(), "{bad}");
        }
        assert!(matches!(read("sent_ns,received_ns\n1\n"), Err(RecordError::Unreadable(_))));
        assert_eq!(read("sent_ns,received_ns\n"), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn whole_numbers_of_any_unit_are_exact_and_parsing_is_total(value in 0_u64..10_000_000_000, text in "\\PC{0,20}") {
            prop_assert_eq!(decimal(&value.to_string(), 1_000_000_000), Some(value * 1_000_000_000));
            prop_assert_eq!(decimal(&format!("0.{value:010}"), 1_000_000_000), Some(value / 10));
            let _ = decimal(&text, 1_000);
        }
    }
}
