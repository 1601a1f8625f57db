//! Watches a simulation and fills the tables `samples` and `packets`.

use std::collections::{BTreeMap, HashMap, VecDeque};

use flowstart_congestion::INFINITE_SSTHRESH;
use flowstart_network::{DropReason, Ecn, Packet, packet::Body};
use flowstart_simulator::{FlowId, LinkId, Observer};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

use super::schema::{PACKETS, SAMPLES};
use super::table::{Table, Value};

/// What happened to a flow in a bin.
#[derive(Clone, Debug, Default)]
struct FlowBin {
    sent: u64,
    delivered: u64,
    state: Option<SenderState>,
}

/// A sender after the last event of a bin.
#[derive(Clone, Copy, Debug)]
struct SenderState {
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    srtt: Span,
    pacing: Option<u64>,
}

/// What happened at a link in a bin.
#[derive(Clone, Debug)]
struct LinkBin {
    bytes: u64,
    packets: u64,
    least: Span,
    sum: Span,
    most: Span,
    dropped: u64,
    marked: u64,
}

impl Default for LinkBin {
    fn default() -> Self {
        Self { bytes: 0, packets: 0, least: Span::MAX, sum: Span::ZERO, most: Span::ZERO, dropped: 0, marked: 0 }
    }
}

/// A packet that reached the receiver and whose last byte the application has not read.
#[derive(Clone, Debug)]
struct Arrived {
    row: usize,
    at: Time,
}

/// What is remembered of a flow for the table `packets`.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Ends of writes and when they happened, not yet sent past.
    writes: VecDeque<(u64, Time)>,
    /// Packets by the end of their bytes, waiting to be read.
    waiting: BTreeMap<u64, Vec<Arrived>>,
    delivered: u64,
}

/// Fills `samples` in bins of one width and, if asked, `packets`.
#[derive(Debug)]
pub struct Sampler {
    run: u64,
    bin: Span,
    flows: BTreeMap<(u64, FlowId), FlowBin>,
    links: BTreeMap<(u64, LinkId), LinkBin>,
    totals: HashMap<FlowId, u64>,
    packets: Option<(Vec<PacketRow>, HashMap<FlowId, Stream>)>,
}

#[derive(Clone, Debug)]
struct PacketRow {
    flow: FlowId,
    number: u64,
    seq: Option<u64>,
    bytes: u16,
    retransmission: bool,
    marked: bool,
    sent: Time,
    received: Time,
    read: Option<Time>,
    written: Option<Time>,
}

impl Sampler {
    /// For run number `run`; a `bin` of zero records no samples, `packets` asks for the table of
    /// packets.
    #[must_use]
    pub fn new(run: u64, bin: Span, packets: bool) -> Self {
        Self {
            run,
            bin,
            flows: BTreeMap::new(),
            links: BTreeMap::new(),
            totals: HashMap::new(),
            packets: packets.then(Default::default),
        }
    }

    fn flow(&mut self, now: Time, flow: FlowId) -> Option<&mut FlowBin> {
        let bin = now.as_nanos().checked_div(self.bin.as_nanos())?;
        Some(self.flows.entry((bin, flow)).or_default())
    }

    fn link(&mut self, now: Time, link: LinkId) -> Option<&mut LinkBin> {
        let bin = now.as_nanos().checked_div(self.bin.as_nanos())?;
        Some(self.links.entry((bin, link)).or_default())
    }

    /// The tables, given the names of flows and links.
    #[must_use]
    pub fn tables(&self, flow_name: impl Fn(FlowId) -> String, link_names: &[String]) -> (Table, Table) {
        let mut samples = Table::new(&SAMPLES);
        let seconds = self.bin.as_secs_f64();
        let rate = |bytes: u64| Value::from(bytes as f64 * 8.0 / seconds);
        for ((bin, flow), seen) in &self.flows {
            let state = seen.state;
            samples.push([
                self.run.into(),
                (*bin as f64 * seconds).into(),
                Value::Text(format!("{} #{flow}", flow_name(*flow))),
                rate(seen.sent),
                rate(seen.delivered),
                state.map(|state| state.cwnd).into(),
                state.map(|state| state.ssthresh).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH).into(),
                state.map(|state| state.in_flight).into(),
                state.map(|state| micros(state.srtt)).into(),
                state.and_then(|state| state.pacing).map(|bps| bps as f64).into(),
            ]);
        }
        for ((bin, link), seen) in &self.links {
            let some = seen.packets > 0;
            let mean = seen.sum.as_nanos() as f64 / 1e3 / seen.packets as f64;
            let mut row = vec![Value::Missing; 10];
            row[0] = self.run.into();
            row[1] = (*bin as f64 * seconds).into();
            row[2] = link_names.get(*link).map(String::as_str).into();
            row.extend([
                rate(seen.bytes),
                some.then(|| micros(seen.least)).into(),
                some.then_some(mean).into(),
                some.then(|| micros(seen.most)).into(),
                seen.dropped.into(),
                seen.marked.into(),
            ]);
            samples.push(row);
        }
        (samples, self.packet_table())
    }

    fn packet_table(&self) -> Table {
        let mut table = Table::new(&PACKETS);
        for row in self.packets.iter().flat_map(|(rows, _)| rows) {
            table.push([
                self.run.into(),
                row.flow.into(),
                row.number.into(),
                row.seq.into(),
                u32::from(row.bytes).into(),
                row.retransmission.into(),
                row.marked.into(),
                row.sent.as_secs_f64().into(),
                row.received.as_secs_f64().into(),
                row.read.map(Time::as_secs_f64).into(),
                row.written.map(|written| micros(row.sent.since(written))).into(),
                micros(row.received.since(row.sent)).into(),
                row.read.map(|read| micros(read.since(row.received))).into(),
            ]);
        }
        table
    }
}

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

impl Observer for Sampler {
    fn written(&mut self, now: Time, flow: FlowId, total: u64) {
        if let Some((_, streams)) = &mut self.packets {
            streams.entry(flow).or_default().writes.push_back((total, now));
        }
    }

    fn sent(&mut self, now: Time, packet: &Packet) {
        if !matches!(packet.body, Body::Ack(_))
            && let Some(bin) = self.flow(now, packet.flow)
        {
            bin.sent += u64::from(packet.bytes);
        }
    }

    fn dropped(&mut self, now: Time, link: LinkId, _packet: &Packet, _reason: Option<DropReason>) {
        if let Some(bin) = self.link(now, link) {
            bin.dropped += 1;
        }
    }

    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, _done: Time) {
        let Some(bin) = self.link(now, link) else { return };
        let sojourn = now.since(arrived);
        bin.bytes += u64::from(packet.bytes);
        bin.packets += 1;
        bin.least = bin.least.min(sojourn);
        bin.sum += sojourn;
        bin.most = bin.most.max(sojourn);
        bin.marked += u64::from(packet.ecn == Ecn::Ce);
    }

    fn received(&mut self, now: Time, packet: &Packet) {
        let Some((rows, streams)) = &mut self.packets else { return };
        let mut row = PacketRow {
            flow: packet.flow,
            number: 0,
            seq: None,
            bytes: packet.bytes,
            retransmission: false,
            marked: packet.ecn == Ecn::Ce,
            sent: now,
            received: now,
            read: None,
            written: None,
        };
        match &packet.body {
            Body::Ack(_) => return,
            Body::Datagram(datagram) => {
                row.number = datagram.number;
                row.sent = datagram.sent_at;
                row.read = Some(now);
            }
            Body::Segment(segment) if segment.payload == 0 => return,
            Body::Segment(segment) => {
                let end = segment.seq + u64::from(segment.payload);
                let stream = streams.entry(packet.flow).or_default();
                row.number = segment.number;
                row.seq = Some(segment.seq);
                row.retransmission = segment.retransmission;
                row.sent = segment.sent_at;
                // Writes end in ascending order; the one that holds the last byte is the first that
                // reaches it.
                let place = stream.writes.partition_point(|(total, _)| *total < end);
                row.written = stream.writes.get(place).map(|(_, at)| *at);
                if end > stream.delivered {
                    stream.waiting.entry(end).or_default().push(Arrived { row: rows.len(), at: now });
                }
            }
        }
        rows.push(row);
    }

    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        let before = self.totals.insert(flow, total).unwrap_or(0);
        if let Some(bin) = self.flow(now, flow) {
            bin.delivered += total - before;
        }
        let Some((rows, streams)) = &mut self.packets else { return };
        let stream = streams.entry(flow).or_default();
        stream.delivered = total;
        let later = stream.waiting.split_off(&(total + 1));
        for arrived in std::mem::replace(&mut stream.waiting, later).into_values().flatten() {
            rows[arrived.row].read = Some(now.max(arrived.at));
        }
        while stream.writes.len() > 1 && stream.writes[0].0 <= total {
            stream.writes.pop_front();
        }
    }

    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        let Some(bin) = self.flow(now, flow) else { return };
        let (controller, stats) = (sender.controller(), sender.stats());
        bin.state = Some(SenderState {
            cwnd: controller.cwnd(),
            ssthresh: controller.ssthresh(),
            in_flight: stats.in_flight,
            srtt: stats.srtt,
            pacing: controller.pacing_rate().map(flowstart_units::Rate::as_bps),
        });
    }
}
