//! Every data packet: those that reached their receivers, those that were dropped, and those still
//! on their way.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use flowstart_network::packet::Body;
use flowstart_network::{DropReason, Ecn, Packet};
use flowstart_simulator::{FlowId, LinkId};
use flowstart_units::Time;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached its receiver.
    Received {
        /// When.
        at: Time,
        /// When the application read its last byte, if it has.
        read: Option<Time>,
    },
    /// A link dropped it.
    Dropped {
        /// When.
        at: Time,
        /// Which.
        link: LinkId,
        /// Why its queue did; `None` if its loss process did, or another part of the medium.
        reason: Option<DropReason>,
    },
    /// It was on its way at the end of the run.
    InFlight,
}

/// A data packet or datagram.
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
    /// It carried a congestion mark when it was last seen.
    pub marked: bool,
    /// When it was sent.
    pub sent: Time,
    /// When the sending application wrote its last byte, if that is known.
    pub written: Option<Time>,
    /// What became of it.
    pub fate: Fate,
}

/// What is remembered of a flow.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Ends of writes and when they happened, not yet sent past.
    writes: VecDeque<(u64, Time)>,
    /// Packets that came and whose last byte the application has not read: the end of their bytes
    /// and their row, in ascending order.
    waiting: VecDeque<(u64, usize)>,
    delivered: u64,
    /// One of two connections: what its packets carry is numbered otherwise than what is written
    /// and read.
    paired: bool,
    /// Sent packets from number `first_under_way` on; `None` for those received or dropped.
    under_way: VecDeque<Option<Packet>>,
    first_under_way: u64,
}

impl Stream {
    /// A packet is sent. Numbers ascend.
    fn set_out(&mut self, number: u64, packet: Packet) {
        if self.under_way.is_empty() {
            self.first_under_way = number;
        }
        let place = number.saturating_sub(self.first_under_way) as usize;
        if place >= self.under_way.len() {
            self.under_way.resize(place, None);
            self.under_way.push_back(Some(packet));
        }
    }

    /// A packet is received or dropped.
    fn arrive(&mut self, number: u64) {
        let place = number.checked_sub(self.first_under_way).map(|place| place as usize);
        if let Some(packet) = place.and_then(|place| self.under_way.get_mut(place)) {
            *packet = None;
        }
        while let Some(None) = self.under_way.front() {
            self.under_way.pop_front();
            self.first_under_way += 1;
        }
    }

    /// The bytes up to `end` came, in a packet with this row.
    fn wait(&mut self, end: u64, row: usize) {
        let after = self.waiting.back().is_none_or(|last| *last <= (end, row));
        let place = if after { self.waiting.len() } else { self.waiting.partition_point(|one| *one < (end, row)) };
        self.waiting.insert(place, (end, row));
    }

    /// When the byte before `end` was written: writes end in ascending order, and the one that
    /// holds it is the first that reaches it.
    fn wrote(&self, end: u64) -> Option<Time> {
        let place = self.writes.partition_point(|(total, _)| *total < end);
        self.writes.get(place).map(|(_, at)| *at)
    }

    /// What is known of a packet; `None` for what is neither data nor datagram.
    fn describe(&self, packet: &Packet, fate: Fate) -> Option<PacketRecord> {
        let mut row = PacketRecord {
            flow: packet.flow,
            number: number(packet)?,
            seq: None,
            bytes: packet.bytes,
            retransmission: false,
            marked: packet.ecn == Ecn::Ce,
            sent: Time::ZERO,
            written: None,
            fate,
        };
        match &packet.body {
            Body::Ack(_) => return None,
            Body::Datagram(datagram) => row.sent = datagram.sent_at,
            Body::Segment(segment) => {
                row.seq = Some(segment.seq);
                row.retransmission = segment.retransmission;
                row.sent = segment.sent_at;
                let end = segment.seq + u64::from(segment.payload);
                row.written = self.wrote(end).filter(|_| !self.paired);
            }
        }
        Some(row)
    }
}

/// The number of a data packet or datagram among those of its flow.
fn number(packet: &Packet) -> Option<u64> {
    match &packet.body {
        Body::Ack(_) => None,
        Body::Datagram(datagram) => Some(datagram.number),
        Body::Segment(segment) => (segment.payload > 0).then_some(segment.number),
    }
}

/// All data packets and datagrams.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    /// Rows in portions of [`PORTION`], but the last: those that are not handed on.
    portions: VecDeque<Vec<PacketRecord>>,
    /// Rows that were handed on.
    handed_on: usize,
    to: Option<Sender<Vec<PacketRecord>>>,
    /// By flow.
    streams: Vec<Stream>,
}

/// Rows of a portion ([`Packets::into_portions`]).
pub const PORTION: usize = 1 << 14;

impl Packets {
    fn stream(&mut self, flow: FlowId) -> &mut Stream {
        let index = flow as usize;
        if index >= self.streams.len() {
            self.streams.resize_with(index + 1, Stream::default);
        }
        &mut self.streams[index]
    }

    /// Rows so far, those handed on included.
    fn count(&self) -> usize {
        // All but the last are full.
        let full = self.portions.len().saturating_sub(1) * PORTION;
        self.handed_on + full + self.portions.back().map_or(0, Vec::len)
    }

    /// A row by its number, if it was not handed on.
    fn row(&mut self, number: usize) -> Option<&mut PacketRecord> {
        let place = number.checked_sub(self.handed_on)?;
        self.portions.get_mut(place / PORTION)?.get_mut(place % PORTION)
    }

    fn push(&mut self, row: PacketRecord) {
        if self.portions.back().is_none_or(|last| last.len() == PORTION) {
            self.hand_on();
            self.portions.push_back(Vec::with_capacity(PORTION));
        }
        if let Some(last) = self.portions.back_mut() {
            last.push(row);
        }
    }

    /// Hands on portions in which nothing changes any more. It is asked once per portion, as it has
    /// to look at all packets that were not read yet, and before a row is added: what is said of a
    /// packet's place in a stream is said of the last row.
    fn hand_on(&mut self) {
        let Some(to) = &self.to else { return };
        let unread = self.streams.iter().flat_map(|stream| &stream.waiting).map(|(_, row)| *row).min();
        let settled = unread.unwrap_or(usize::MAX).min(self.count());
        while self.handed_on + PORTION <= settled
            && let Some(portion) = self.portions.pop_front()
        {
            self.handed_on += portion.len();
            // Who does not listen any more does not want them.
            let _ = to.send(portion);
        }
    }

    /// Those received or dropped, in the order in which that happened; then those still on their
    /// way, by flow and number. In portions of [`PORTION`] rows, but the last, and without those
    /// that were handed on ([`Recording::hand_on_packets`](super::Recording::hand_on_packets)).
    #[must_use]
    pub fn into_portions(mut self) -> Vec<Vec<PacketRecord>> {
        self.to = None;
        for stream in std::mem::take(&mut self.streams) {
            for packet in stream.under_way.iter().flatten() {
                if let Some(row) = stream.describe(packet, Fate::InFlight) {
                    self.push(row);
                }
            }
        }
        self.portions.into()
    }

    pub(super) fn hand_on_to(&mut self, to: Sender<Vec<PacketRecord>>) {
        self.to = Some(to);
    }

    pub(super) fn written(&mut self, now: Time, flow: FlowId, total: u64) {
        self.stream(flow).writes.push_back((total, now));
    }

    pub(super) fn sent(&mut self, packet: &Packet) {
        if let Some(number) = number(packet) {
            self.stream(packet.flow).set_out(number, *packet);
        }
    }

    pub(super) fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, reason: Option<DropReason>) {
        self.ended(packet, Fate::Dropped { at: now, link, reason });
    }

    pub(super) fn received(&mut self, now: Time, packet: &Packet) {
        // The application reads a datagram at once.
        let read = matches!(packet.body, Body::Datagram(_)).then_some(now);
        self.ended(packet, Fate::Received { at: now, read });
    }

    /// What became of a packet is known.
    fn ended(&mut self, packet: &Packet, fate: Fate) {
        let Some(number) = number(packet) else { return };
        let next = self.count();
        let stream = self.stream(packet.flow);
        stream.arrive(number);
        let Some(row) = stream.describe(packet, fate) else { return };
        if let (Fate::Received { .. }, Body::Segment(segment)) = (fate, &packet.body) {
            let end = segment.seq + u64::from(segment.payload);
            if end > stream.delivered {
                stream.wait(end, next);
            }
        }
        self.push(row);
    }

    /// The packet that was just received is of a connection of two: in the stream that both carry
    /// its bytes end there.
    pub(super) fn placed(&mut self, packet: &Packet, flow: FlowId, end: u64) {
        let Some(row) = self.count().checked_sub(1) else { return };
        let own = self.stream(packet.flow);
        own.paired = true;
        if let Some(place) = own.waiting.iter().rposition(|(_, waiting)| *waiting == row) {
            own.waiting.remove(place);
        }
        let whole = self.stream(flow);
        let written = whole.wrote(end).filter(|_| end > whole.delivered);
        if end > whole.delivered {
            whole.wait(end, row);
        }
        if let Some(row) = self.row(row) {
            row.written = written;
        }
    }

    pub(super) fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        self.stream(flow).delivered = total;
        while let Some((_, row)) = self.stream(flow).waiting.front().copied().filter(|(end, _)| *end <= total) {
            self.stream(flow).waiting.pop_front();
            if let Some(Fate::Received { at, read }) = self.row(row).map(|row| &mut row.fate) {
                *read = Some(now.max(*at));
            }
        }
        let stream = self.stream(flow);
        while stream.writes.len() > 1 && stream.writes[0].0 <= total {
            stream.writes.pop_front();
        }
    }
}
