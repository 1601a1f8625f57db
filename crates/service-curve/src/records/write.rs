//! Measurements, written: what is read back gives the same estimate.

use std::io::{self, Write};

use flowstart_units::{Rate, Span, Time};

use super::{Passed, Record};

/// The messages of a constant-rate train, as many as were watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageTrain {
    /// Its rate.
    pub rate: Rate,
    /// When the first message was handed over.
    pub start: Time,
    /// From message to message.
    pub gap: Span,
    /// The delay of each, from the first on, in nanoseconds.
    pub delays: Vec<Span>,
}

impl MessageTrain {
    /// One record per message.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.delays.iter().zip(0_u64..).map(|(delay, number)| {
            let sent = self.start + self.gap * number;
            Record { rate: Some(self.rate), sent, received: sent + *delay, passed: None }
        })
    }
}

/// Writes records as [`read_csv`](super::read_csv) reads them: rates in bit/s, times in
/// nanoseconds; with the ends of the network if that is wanted.
///
/// # Errors
/// Those of the writer.
pub fn write_csv(mut writer: impl Write, records: impl IntoIterator<Item = Record>, ends: bool) -> io::Result<()> {
    let between = if ends { "left_ns,arrived_ns," } else { "" };
    writeln!(writer, "rate_bps,sent_ns,{between}received_ns")?;
    for Record { rate, sent, received, passed } in records {
        write!(writer, "{},{},", rate.unwrap_or_default().as_bps(), sent.as_nanos())?;
        match passed {
            Some(Passed { left, arrived }) if ends => write!(writer, "{},{},", left.as_nanos(), arrived.as_nanos())?,
            None if ends => writer.write_all(b",,")?,
            _ => {}
        }
        writeln!(writer, "{}", received.as_nanos())?;
    }
    writer.flush()
}
