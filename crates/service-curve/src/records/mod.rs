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
//! - `left_ns` and `arrived_ns` (or with another unit; both or neither, and both empty where they
//!   are not known): when the last byte of the packet first left the sender's stack, and when it
//!   first arrived at the receiver's. They tell where a delay arises and change no result.

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
    /// When it passed from stack to network and from network to stack, if that was measured.
    pub passed: Option<Passed>,
}

/// When the last byte of a packet passed the ends of the network. A packet that is sent again
/// leaves when it does so first, and arrives with the first copy that gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The sender's stack first sent it.
    pub left: Time,
    /// It first reached the receiver's stack.
    pub arrived: Time,
}

/// What is wrong with a file of measurements. Rows count from 1, a CSV file's head not included.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordError {
    /// The file cannot be read as what it should be.
    Unreadable(String),
    /// A column is missing; `sent` stands for all its names.
    NoColumn(&'static str),
    /// Two columns are this time, or the rate: which of them counts, nobody says.
    Twice(&'static str),
    /// A value is no number of its column: row, column, value.
    NotANumber(u64, String, String),
    /// A packet was received before it was sent (row): the clocks do not agree.
    ReceivedBeforeSent(u64),
    /// A packet was received more than a day after it was sent (row, how long after): two clocks
    /// that count from different times, or a wrong unit.
    ReceivedTooLate(u64, Span),
    /// Only one of the columns `left` and `arrived` is there, or only one of their values (row; 0
    /// for the columns).
    OnlyOneEnd(u64),
    /// `left` and `arrived` do not lie between the other times, in this order (row).
    NotBetween(u64),
    /// A packet was sent before the one in the row before it (row).
    OutOfOrder(u64),
    /// The file does not say at which rate it was measured, and nobody else did.
    NoRate,
    /// A rate of 0 (row).
    RateZero(u64),
    /// Of this rate's messages only so many per cent are there, and the rate would be accepted.
    Missing(Rate, u64),
    /// The first thousand messages of this rate's train were sent at one time.
    AtOnce(Rate),
    /// One train more than are read begins here (row).
    TooManyTrains(u64),
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
            Self::Twice(what) => write!(f, "has two columns of {what}; one is right"),
            Self::NotANumber(row, column, value) => {
                write!(
                    f,
                    "row {row}: \"{value}\" in column {column} is not a number of at least 0 (and below 2^64 in bit/s or ns)"
                )
            }
            Self::ReceivedBeforeSent(row) => {
                write!(f, "row {row}: received before it was sent; both clocks must agree, and the row must be whole")
            }
            Self::ReceivedTooLate(row, after) => {
                let days = after.as_secs_f64() / 86_400.0;
                write!(
                    f,
                    "row {row}: received {days:.0} days after it was sent; both clocks must agree, and units, too"
                )
            }
            Self::OnlyOneEnd(0) => {
                f.write_str("has only one of the columns left and arrived; both are needed, or neither")
            }
            Self::OnlyOneEnd(row) => {
                write!(f, "row {row}: only one of left and arrived has a value; both are needed, or neither")
            }
            Self::NotBetween(row) => {
                write!(f, "row {row}: sent, left, arrived and received must follow one another, by one clock")
            }
            Self::OutOfOrder(row) => write!(f, "row {row}: sent before the packet of the row above"),
            Self::NoRate => f.write_str("has no column rate_bps; give the rate of the train"),
            Self::RateZero(row) => write!(f, "row {row}: the rate is 0; that of a measurement is above 0"),
            Self::Missing(rate, percent) => write!(
                f,
                "has {percent} % of the messages that a train of {rate} has between its first and its last row; delays of \
                 those say nothing of the others: leave this rate out, or write all messages (as read when a reliable \
                 stream had them)"
            ),
            Self::AtOnce(rate) => write!(
                f,
                "has a train of {rate} whose first thousand messages were all sent at the same time; at a constant rate \
                 each has its own, that of its write"
            ),
            Self::TooManyTrains(row) => write!(
                f,
                "row {row}: begins one train more than the {} that are read; a train is rows of one rate that follow one \
                 another, so all rows of a rate must stand together",
                estimate::MOST_TRAINS
            ),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecordError {}

/// The units that a column of times may have: ending of its name, nanoseconds.
const UNITS: [(&str, u64); 4] = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];

/// No message waits longer: who says so has two clocks, one since 1970 and one since the start.
const MOST_DELAY: Span = Span::from_secs(86_400);

/// Where a file has its columns, found by their names; for readers of other formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The column of the times of sending, and how many nanoseconds its unit has.
    pub sent: (usize, u64),
    /// The same of the times of receiving.
    pub received: (usize, u64),
    /// The column of the rates in bit/s, if there is one.
    pub rate: Option<usize>,
    /// Those of leaving the sender's stack and arriving at the receiver's, if they are there.
    pub passed: Option<[(usize, u64); 2]>,
}

impl Columns {
    /// The columns among these names.
    ///
    /// # Errors
    /// If there is no time of sending, or none of receiving, or two columns of the same.
    pub fn of(names: &[&str]) -> Result<Self, RecordError> {
        let place = |what: &'static str| {
            let is = |name: &str| UNITS.iter().find(|(unit, _)| name.strip_suffix(unit) == Some(what));
            let mut all = names.iter().enumerate().filter_map(|(index, name)| Some((index, is(name.trim())?.1)));
            let first = all.next();
            if all.next().is_some() { Err(RecordError::Twice(what)) } else { Ok(first) }
        };
        let find = |what: &'static str| place(what)?.ok_or(RecordError::NoColumn(what));
        let passed = match (place("left")?, place("arrived")?) {
            (Some(left), Some(arrived)) => Some([left, arrived]),
            (None, None) => None,
            _ => return Err(RecordError::OnlyOneEnd(0)),
        };
        let mut rates = names.iter().enumerate().filter(|(_, name)| name.trim() == "rate_bps");
        let rate = rates.next().map(|(index, _)| index);
        if rates.next().is_some() {
            return Err(RecordError::Twice("rate"));
        }
        Ok(Self { sent: find("sent")?, received: find("received")?, rate, passed })
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
        if record.received.since(record.sent) > MOST_DELAY {
            return Err(RecordError::ReceivedTooLate(self.row, record.received.since(record.sent)));
        }
        if record.passed.is_some_and(|Passed { left, arrived }| {
            !(record.sent <= left && left <= arrived && arrived <= record.received)
        }) {
            return Err(RecordError::NotBetween(self.row));
        }
        self.sent = record.sent;
        self.received = self.received.max(record.received);
        Ok(self.received.since(record.sent))
    }
}
