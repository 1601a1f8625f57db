//! Measurements, written: what is read back gives the same estimate.

use std::io::{self, Write};

use flowstart_units::{Rate, Span, Time};

use super::Record;

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
            Record { rate: Some(self.rate), sent, received: sent + *delay }
        })
    }
}

/// Writes records as [`read_csv`](super::read_csv) reads them: rates in bit/s, times in
/// nanoseconds.
///
/// # Errors
/// Those of the writer.
pub fn write_csv(mut writer: impl Write, records: impl IntoIterator<Item = Record>) -> io::Result<()> {
    writer.write_all(b"rate_bps,sent_ns,received_ns\n")?;
    for Record { rate, sent, received } in records {
        let rate = rate.unwrap_or_default().as_bps();
        writeln!(writer, "{rate},{},{}", sent.as_nanos(), received.as_nanos())?;
    }
    writer.flush()
}
