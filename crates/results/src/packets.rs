//! The table `packets`, made from a recording.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Scope, ScopedJoinHandle};

use flowstart_measure::{Fate, PacketRecord, Packets};
use flowstart_network::DropReason;
use flowstart_simulator::FlowId;
use flowstart_units::{Span, Time};

use super::column::Value;
use super::portion::CsvPortion;
use super::schema::PACKETS;
use super::table::{MadeRows, Table};
use super::text;

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// The packets of a run.
#[derive(Debug)]
struct OfRun {
    run: u64,
    links: Arc<[String]>,
    portions: Vec<Portion>,
}

/// Some of them, and their text once it was asked for.
#[derive(Debug)]
struct Portion {
    rows: Vec<PacketRecord>,
    csv: OnceLock<Arc<CsvPortion>>,
}

impl Portion {
    fn new(rows: Vec<PacketRecord>) -> Self {
        Self { rows, csv: OnceLock::new() }
    }

    fn csv(&self, run: u64, links: &[String]) -> &Arc<CsvPortion> {
        self.csv.get_or_init(|| {
            let mut text = Vec::with_capacity(self.rows.len() * ROW);
            for row in &self.rows {
                write_row(run, row, links, &mut text);
            }
            Arc::new(CsvPortion::new(text))
        })
    }
}

/// What became of the data packets of run number `run`, given whether somebody reads what reaches a
/// flow, and the names of links. `early` has those that were [made ready](Early) before.
pub(crate) fn packet_table(
    run: u64,
    packets: Option<Packets>,
    early: Option<Early<'_>>,
    reads: impl Fn(FlowId) -> bool,
    links: &[String],
) -> Table {
    let Some(packets) = packets else { return Table::new(&PACKETS) };
    // This ends the channel, too.
    let mut rest = packets.into_portions();
    for row in rest.iter_mut().flatten() {
        if let Fate::Received { read, .. } = &mut row.fate
            && !reads(row.flow)
        {
            *read = None;
        }
    }
    let mut portions = early.map(Early::finish).unwrap_or_default();
    portions.extend(rest.into_iter().map(Portion::new));
    Table::made(&PACKETS, Arc::new(OfRun { run, links: links.into(), portions }))
}

/// A thread that makes the text of packets while their run goes on.
pub(crate) struct Early<'a> {
    thread: ScopedJoinHandle<'a, Vec<Portion>>,
    over: Arc<AtomicBool>,
}

impl<'a> Early<'a> {
    /// Starts it, and says where rows have to be sent, of which nothing changes any more. With
    /// `pack` it compresses the text, too. `None` if no thread can be started.
    pub(crate) fn start(
        scope: &'a Scope<'a, '_>,
        run: u64,
        links: &[String],
        pack: bool,
    ) -> Option<(Self, Sender<Vec<PacketRecord>>)> {
        let (to, from) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let (links, until) = (links.to_vec(), Arc::clone(&over));
        let work = move || make_ready(from, run, &links, pack, &until);
        let thread = std::thread::Builder::new().spawn_scoped(scope, work).ok()?;
        Some((Self { thread, over }, to))
    }

    /// The run is over: what is not begun is left to all cores.
    fn finish(self) -> Vec<Portion> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn make_ready(
    from: Receiver<Vec<PacketRecord>>,
    run: u64,
    links: &[String],
    pack: bool,
    over: &AtomicBool,
) -> Vec<Portion> {
    let ready = |rows| {
        let portion = Portion::new(rows);
        if !over.load(Ordering::Relaxed) {
            let csv = portion.csv(run, links);
            if pack {
                csv.packed();
            }
        }
        portion
    };
    from.into_iter().map(ready).collect()
}

impl MadeRows for OfRun {
    fn count(&self) -> usize {
        self.portions.iter().map(|portion| portion.rows.len()).sum()
    }

    fn each(&self, take: &mut dyn FnMut(&[Value])) {
        for row in self.portions.iter().flat_map(|portion| &portion.rows) {
            take(&cells(self.run, row, &self.links));
        }
    }

    fn portions(&self) -> usize {
        self.portions.len()
    }

    fn csv(&self, portion: usize) -> Arc<CsvPortion> {
        Arc::clone(self.portions[portion].csv(self.run, &self.links))
    }
}

fn write_row(run: u64, row: &PacketRecord, links: &[String], out: &mut Vec<u8>) {
    match row.fate {
        Fate::Received { at, read } => {
            write_begin(run, row, out);
            write_received(row, at, read, out);
        }
        // A link's name may need quotes.
        Fate::Dropped { .. } | Fate::InFlight => {
            let cells = cells(run, row, links);
            // Writing into memory does not fail.
            let _ = text::write_row(cells.len(), |cell, out| cells[cell].write_cell(out), out);
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
            let links = ["a".to_owned(), "b, \"c\"".to_owned()];
            let portions = [row.clone(), row].map(|row| Portion::new(vec![row])).into();
            let of_run = OfRun { run, portions, links: links.into() };
            let mut expected = Vec::new();
            of_run.each(&mut |cells| {
                text::write_row(cells.len(), |cell, out| cells[cell].write_cell(out), &mut expected).unwrap();
            });
            let written = [of_run.csv(0).text(), of_run.csv(1).text()].concat();
            prop_assert_eq!(String::from_utf8(written), String::from_utf8(expected));
        }
    }
}
