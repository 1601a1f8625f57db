//! Measurements of real systems: files of the times at which packets were sent and received.
//!
//! A file has one row per packet of a constant-rate train, in the order of sending, and these
//! columns, in any order and among others:
//!
//! - when the packet was handed to the flow control (the application's write) and when it came out
//!   of it (the other application's read): `sent_ns` and `received_ns`, or with `_us`, `_ms` or
//!   `_s`; both by clocks that agree. Decimals are allowed.
//! - `rate_bps`, the rate of the train in bit/s, if the file has trains of several rates:
//!   consecutive rows of one rate are one train.

mod csv;
mod estimate;
mod write;

use std::fmt;

use flowstart_units::{Rate, Span, Time};

pub use self::csv::read_csv;
pub use self::estimate::estimate_records;
pub use self::write::{MessageTrain, write_csv};

/// One packet of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Rate of the train, if the file says so.
    pub rate: Option<Rate>,
    /// Handed to the flow control.
    pub sent: Time,
    /// Came out of it.
    pub received: Time,
}

/// What is wrong with a file of measurements. Rows count from 1, a CSV file's head not included.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordError {
    /// The file cannot be read as what it should be.
    Unreadable(String),
    /// A column is missing; `sent` stands for all its names.
    NoColumn(&'static str),
    /// A value is no number of its column: row, column, value.
    NotANumber(u64, String, String),
    /// A packet was received before it was sent (row): the clocks do not agree.
    ReceivedBeforeSent(u64),
    /// A packet was sent before the one in the row before it (row).
    OutOfOrder(u64),
    /// The file does not say at which rate it was measured, and nobody else did.
    NoRate,
    /// The configuration, or the rate in the file, is refused.
    Refused(crate::Error),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::NoColumn(name) => {
                write!(f, "has no column {name}_ns, {name}_us, {name}_ms or {name}_s")
            }
            Self::NotANumber(row, column, value) => {
                write!(f, "row {row}: \"{value}\" in column {column} is not a number of at least 0")
            }
            Self::ReceivedBeforeSent(row) => {
                write!(f, "row {row}: received before it was sent; both clocks must agree")
            }
            Self::OutOfOrder(row) => write!(f, "row {row}: sent before the packet of the row above"),
            Self::NoRate => f.write_str("has no column rate_bps; give the rate of the train"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecordError {}

/// The units that a column of times may have: ending of its name, nanoseconds.
const UNITS: [(&str, u64); 4] = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];

/// Where a file has its columns, found by their names; for readers of other formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The column of the times of sending, and how many nanoseconds its unit has.
    pub sent: (usize, u64),
    /// The same of the times of receiving.
    pub received: (usize, u64),
    /// The column of the rates in bit/s, if there is one.
    pub rate: Option<usize>,
}

impl Columns {
    /// The columns among these names.
    ///
    /// # Errors
    /// If there is no time of sending, or none of receiving.
    pub fn of(names: &[&str]) -> Result<Self, RecordError> {
        let find = |what: &'static str| {
            let is = |name: &str| UNITS.iter().find(|(unit, _)| name.strip_suffix(unit) == Some(what));
            let found = names.iter().enumerate().find_map(|(index, name)| Some((index, is(name.trim())?.1)));
            found.ok_or(RecordError::NoColumn(what))
        };
        let rate = names.iter().position(|name| name.trim() == "rate_bps");
        Ok(Self { sent: find("sent")?, received: find("received")?, rate })
    }
}

/// Delays of a reliable stream: a packet comes out only after all before it have.
#[derive(Default)]
struct InOrder {
    row: u64,
    rate: Option<Rate>,
    sent: Time,
    received: Time,
}

impl InOrder {
    fn delay(&mut self, record: &Record) -> Result<Span, RecordError> {
        self.row += 1;
        if record.rate != self.rate {
            (self.rate, self.sent, self.received) = (record.rate, Time::ZERO, Time::ZERO);
        }
        if record.sent < self.sent {
            return Err(RecordError::OutOfOrder(self.row));
        }
        if record.received < record.sent {
            return Err(RecordError::ReceivedBeforeSent(self.row));
        }
        self.sent = record.sent;
        self.received = self.received.max(record.received);
        Ok(self.received.since(record.sent))
    }
}
