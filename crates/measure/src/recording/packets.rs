//! Every packet that reached its receiver.

use std::collections::{BTreeMap, HashMap, VecDeque};

use flowstart_network::packet::Body;
use flowstart_network::{Ecn, Packet};
use flowstart_simulator::FlowId;
use flowstart_units::Time;

/// A data packet that reached its receiver.
#[derive(Clone, Debug)]
pub struct PacketRecord {
    /// Its flow.
    pub flow: FlowId,
    /// Its number among the packets of the flow.
    pub number: u64,
    /// First byte of the stream in it; `None` for datagrams.
    pub seq: Option<u64>,
    /// Bytes of the IP packet.
    pub bytes: u16,
    /// It carries bytes that were sent before.
    pub retransmission: bool,
    /// It came with a congestion mark.
    pub marked: bool,
    /// When it was sent.
    pub sent: Time,
    /// When it came.
    pub received: Time,
    /// When the application read its last byte, if it has.
    pub read: Option<Time>,
    /// When the sending application wrote its last byte, if that is known.
    pub written: Option<Time>,
}

/// A packet that reached the receiver and whose last byte the application has not read.
#[derive(Clone, Debug)]
struct Arrived {
    row: usize,
    at: Time,
}

/// What is remembered of a flow.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Ends of writes and when they happened, not yet sent past.
    writes: VecDeque<(u64, Time)>,
    /// Packets by the end of their bytes, waiting to be read.
    waiting: BTreeMap<u64, Vec<Arrived>>,
    delivered: u64,
}

/// All packets that reached their receivers, in that order.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    rows: Vec<PacketRecord>,
    streams: HashMap<FlowId, Stream>,
}

impl Packets {
    /// In order of arrival.
    #[must_use]
    pub fn rows(&self) -> &[PacketRecord] {
        &self.rows
    }

    pub(super) fn written(&mut self, now: Time, flow: FlowId, total: u64) {
        self.streams.entry(flow).or_default().writes.push_back((total, now));
    }

    pub(super) fn received(&mut self, now: Time, packet: &Packet) {
        let mut row = PacketRecord {
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
                let stream = self.streams.entry(packet.flow).or_default();
                row.number = segment.number;
                row.seq = Some(segment.seq);
                row.retransmission = segment.retransmission;
                row.sent = segment.sent_at;
                // Writes end in ascending order; the one that holds the last byte is the first that
                // reaches it.
                let place = stream.writes.partition_point(|(total, _)| *total < end);
                row.written = stream.writes.get(place).map(|(_, at)| *at);
                if end > stream.delivered {
                    stream.waiting.entry(end).or_default().push(Arrived { row: self.rows.len(), at: now });
                }
            }
        }
        self.rows.push(row);
    }

    pub(super) fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        let stream = self.streams.entry(flow).or_default();
        stream.delivered = total;
        let later = stream.waiting.split_off(&(total + 1));
        for arrived in std::mem::replace(&mut stream.waiting, later).into_values().flatten() {
            self.rows[arrived.row].read = Some(now.max(arrived.at));
        }
        while stream.writes.len() > 1 && stream.writes[0].0 <= total {
            stream.writes.pop_front();
        }
    }
}
