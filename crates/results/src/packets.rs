//! The table `packets`, made from a recording.

use std::ops::Range;
use std::sync::Arc;

use flowstart_measure::{Fate, PacketRecord, Packets};
use flowstart_network::DropReason;
use flowstart_simulator::FlowId;
use flowstart_units::{Span, Time};

use super::column::Value;
use super::schema::PACKETS;
use super::table::{MadeRows, Table};
use super::text;

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// What became of the data packets of run number `run`, given whether somebody reads what reaches a
/// flow, and the names of links.
pub(crate) fn packet_table(
    run: u64,
    packets: Option<Packets>,
    reads: impl Fn(FlowId) -> bool,
    links: &[String],
) -> Table {
    match packets.map(Packets::into_rows) {
        Some(mut rows) => {
            for row in &mut rows {
                if let Fate::Received { read, .. } = &mut row.fate
                    && !reads(row.flow)
                {
                    *read = None;
                }
            }
            Table::made(&PACKETS, Arc::new(OfRun { run, rows, links: links.to_vec() }))
        }
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

    fn write_csv(&self, rows: Range<usize>, out: &mut Vec<u8>) {
        let rows = &self.rows[rows];
        out.reserve(rows.len() * ROW);
        for row in rows {
            match row.fate {
                Fate::Received { at, read } => {
                    write_begin(self.run, row, out);
                    write_received(row, at, read, out);
                }
                // A link's name may need quotes.
                Fate::Dropped { .. } | Fate::InFlight => {
                    let cells = cells(self.run, row, &self.links);
                    // Writing into memory does not fail.
                    let _ = text::write_row(cells.len(), |cell, out| cells[cell].write_cell(out), out);
                }
            }
        }
    }
}

/// Bytes that are expected of a row.
const ROW: usize = 128;
/// Nanoseconds of the units of its columns.
const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;

/// The cells of every row that need no names, with a comma behind each.
fn write_begin(run: u64, row: &PacketRecord, out: &mut Vec<u8>) {
    for number in [Some(run), Some(row.flow.into()), Some(row.number), row.seq, Some(row.bytes.into())] {
        if let Some(number) = number {
            // As in the table ([`Value`]).
            text::write_whole(i64::try_from(number).unwrap_or(i64::MAX), out);
        }
        out.push(b',');
    }
    for flag in [row.retransmission, row.marked] {
        text::write_flag(flag, out);
        out.push(b',');
    }
    text::write_quotient(row.sent.as_nanos(), SECOND, out);
    out.push(b',');
}

/// The others of a packet that was received.
fn write_received(row: &PacketRecord, at: Time, read: Option<Time>, out: &mut Vec<u8>) {
    let times = [Some(at), read];
    for time in times {
        if let Some(time) = time {
            text::write_quotient(time.as_nanos(), SECOND, out);
        }
        out.push(b',');
    }
    let sender = row.written.map(|written| row.sent.since(written));
    for span in [sender, Some(at.since(row.sent)), read.map(|read| read.since(at))] {
        if let Some(span) = span {
            text::write_quotient(span.as_nanos(), MICROSECOND, out);
        }
        out.push(b',');
    }
    out.extend_from_slice(b"received,,,\n");
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time() -> impl Strategy<Value = Time> {
        prop_oneof![0_u64..100, 0..100_000_000_000_u64, any::<u64>()].prop_map(Time::from_nanos)
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![
            4 => (time(), proptest::option::of(time())).prop_map(|(at, read)| Fate::Received { at, read }),
            1 => (time(), 0_usize..3).prop_map(|(at, link)| Fate::Dropped { at, link, reason: None }),
            1 => Just(Fate::InFlight),
        ]
    }

    proptest! {
        #[test]
        fn packets_are_written_as_the_cells_of_their_rows(
            run in any::<u64>(), numbers in any::<(u32, u64, Option<u64>, u16)>(), flags in any::<(bool, bool)>(),
            times in (time(), proptest::option::of(time())), fate in fate(),
        ) {
            let (flow, number, seq, bytes) = numbers;
            let (retransmission, marked) = flags;
            let (sent, written) = times;
            let row = PacketRecord { flow, number, seq, bytes, retransmission, marked, sent, written, fate };
            let of_run = OfRun { run, rows: vec![row.clone(), row], links: vec!["a".to_owned(), "b, \"c\"".to_owned()] };
            let mut expected = Vec::new();
            of_run.each(&mut |cells| {
                text::write_row(cells.len(), |cell, out| cells[cell].write_cell(out), &mut expected).unwrap();
            });
            let mut written = Vec::new();
            of_run.write_csv(0..1, &mut written);
            of_run.write_csv(1..2, &mut written);
            prop_assert_eq!(String::from_utf8(written), String::from_utf8(expected));
        }
    }
}
