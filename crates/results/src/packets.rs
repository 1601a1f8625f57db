//! The table `packets`, made from a recording.

use std::sync::Arc;

use flowstart_measure::{Fate, PacketRecord, Packets};
use flowstart_network::DropReason;
use flowstart_units::{Span, Time};

use super::column::Value;
use super::schema::PACKETS;
use super::table::{MadeRows, Table};

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// What became of the data packets of run number `run`, given the names of links.
pub(crate) fn packet_table(run: u64, packets: Option<Packets>, links: &[String]) -> Table {
    match packets.map(Packets::into_rows) {
        Some(rows) => Table::made(&PACKETS, Arc::new(OfRun { run, rows, links: links.to_vec() })),
        None => Table::new(&PACKETS),
    }
}

/// The packets of a run.
#[derive(Debug)]
struct OfRun {
    run: u64,
    rows: Vec<PacketRecord>,
    links: Vec<String>,
}

impl MadeRows for OfRun {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn each(&self, take: &mut dyn FnMut(&[Value])) {
        for row in &self.rows {
            take(&cells(self.run, row, &self.links));
        }
    }
}

fn cells(run: u64, row: &PacketRecord, links: &[String]) -> [Value; PACKETS.columns.len()] {
    let (fate, place, why) = match row.fate {
        Fate::Received { .. } => ("received", None, None),
        Fate::Dropped { link, reason, .. } => {
            ("dropped", links.get(link), Some(reason.map_or("loss", DropReason::name)))
        }
        Fate::InFlight => ("in_flight", None, None),
    };
    let (received, read, dropped) = match row.fate {
        Fate::Received { at, read } => (Some(at), read, None),
        Fate::Dropped { at, .. } => (None, None, Some(at)),
        Fate::InFlight => (None, None, None),
    };
    [
        run.into(),
        row.flow.into(),
        row.number.into(),
        row.seq.into(),
        u32::from(row.bytes).into(),
        row.retransmission.into(),
        row.marked.into(),
        row.sent.as_secs_f64().into(),
        received.map(Time::as_secs_f64).into(),
        read.map(Time::as_secs_f64).into(),
        row.written.map(|written| micros(row.sent.since(written))).into(),
        received.map(|received| micros(received.since(row.sent))).into(),
        received.zip(read).map(|(received, read)| micros(read.since(received))).into(),
        Value::word(fate),
        dropped.map(Time::as_secs_f64).into(),
        place.map(String::as_str).into(),
        why.map_or(Value::Missing, Value::word),
    ]
}
