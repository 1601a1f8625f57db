//! How a recording watches a simulation.

use flowstart_network::packet::Body;
use flowstart_network::{DropReason, Ecn, Packet};
use flowstart_quick_start::RateCode;
use flowstart_simulator::{FlowId, LinkId, Observer};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

use super::Recording;
use super::asked::{Asked, Flows, Parts};
use super::flow::FlowRecord;
use super::link::LinkRecord;
use crate::changes::note;
use crate::wait::Wait;

/// Payload bytes of a data packet or datagram; `None` for what carries none: ACKs and handshakes.
#[inline]
fn payload(packet: &Packet) -> Option<u32> {
    match &packet.body {
        Body::Segment(segment) => (segment.payload > 0).then_some(segment.payload),
        Body::Datagram(_) => Some(u32::from(packet.bytes)),
        Body::Ack(_) => None,
    }
}

/// The rate that a packet asks for, if it asks.
#[inline]
fn request(packet: &Packet) -> RateCode {
    match &packet.body {
        Body::Segment(segment) => segment.quick_start.asked(),
        _ => RateCode::ZERO,
    }
}

/// True if a wait is to be kept.
#[inline]
fn wants_wait<P: Parts>(asked: &Asked, origin: Option<Time>, flow: FlowId, arrived: Time) -> bool {
    if P::ONLY_WAITS {
        return asked.waits_of.iter().any(|flows| flows.contains(&flow));
    }
    arrived >= asked.waits_from && origin.is_none_or(|t0| arrived.since(t0) <= asked.record)
}

impl<P: Parts> Recording<P> {
    /// The flow that a connection belongs to, and a number that differs for equal sequence numbers
    /// of its connections.
    #[inline]
    fn owner(&self, flow: FlowId, seq: u64) -> (FlowId, u64) {
        let companions = &self.asked.companions;
        if companions.contains(&flow) {
            (self.asked.new_flows.start + (flow - companions.start), seq | 1 << 63)
        } else {
            (flow, seq)
        }
    }

    /// The record of a flow, if it has one.
    #[inline]
    fn record(&mut self, flow: FlowId) -> Option<&mut FlowRecord> {
        let index = self.owner(flow, 0).0 as usize;
        if index >= self.flows.len() {
            self.make_room(index);
        }
        self.flows.get_mut(index)
    }

    /// Records of all flows up to this one, if so many are wanted. Apart from
    /// [`record`](Self::record), so that what every packet needs of it is inlined.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, index: usize) {
        if index < self.asked.flow_limit {
            self.flows.resize_with(index + 1, || FlowRecord::new::<P>(&self.asked));
        }
    }

    #[inline]
    fn link_mut(&mut self, link: LinkId) -> Option<&mut LinkRecord> {
        self.links.get_mut(link)?.as_mut()
    }

    /// Time since t = 0, if that has come.
    #[inline]
    fn since_origin(&self, now: Time) -> Option<Span> {
        now.checked_since(self.origin?)
    }

    /// Time since t = 0, if `now` lies in what is recorded. What a new flow sends on its way to the
    /// bottleneck before t = 0 counts as sent at 0.
    #[inline]
    fn clock(&self, now: Time, flow: FlowId) -> Option<Span> {
        match self.since_origin(now) {
            Some(t) => (t <= self.asked.record).then_some(t),
            None => (self.origin.is_none() && self.is_new(flow)).then_some(Span::ZERO),
        }
    }

    /// What a packet that leaves the bottleneck means for its flow.
    #[inline]
    fn carried(&mut self, now: Time, packet: &Packet, done: Time, bytes: u64) {
        let (from, to) = (self.since_origin(now), self.since_origin(done));
        let (record_until, horizon) = (self.asked.record, self.asked.horizon);
        let key = match &packet.body {
            Body::Segment(segment) if segment.retransmission => self.owner(packet.flow, segment.seq).1,
            _ => 0,
        };
        let Some(record) = self.record(packet.flow) else {
            self.beyond += from.filter(|from| *from <= horizon).map_or(0, |_| bytes);
            return;
        };
        let first_copy = match &packet.body {
            Body::Segment(segment) if segment.retransmission => record.missing.remove(&key),
            _ => true,
        };
        let (Some(from), Some(to)) = (from, to) else { return };
        if from > record_until {
            return;
        }
        if first_copy {
            record.egress.spread(from, to, bytes);
        } else if from <= horizon {
            record.duplicate_bytes += bytes;
        }
        if from <= horizon && packet.ecn == Ecn::Ce {
            record.marked += 1;
        }
    }

    /// What a dropped packet means for its flow.
    fn lost(&mut self, packet: &Packet, at_recorded_link: bool, clock: Option<Span>) {
        let horizon = self.asked.horizon;
        let key = match &packet.body {
            Body::Segment(segment) => self.owner(packet.flow, segment.seq).1,
            _ => 0,
        };
        let Some(record) = self.record(packet.flow) else { return };
        let mut in_start = record.exited.is_none();
        if let Body::Segment(segment) = &packet.body {
            if at_recorded_link {
                record.missing.insert(key);
            }
            in_start = record.exited.is_none_or(|exit| segment.sent_at <= exit);
        }
        if clock.is_some_and(|t| t <= horizon) {
            if in_start {
                record.dropped_in_start += 1;
            } else {
                record.dropped_later += 1;
            }
        }
    }
}

impl<P: Parts> Observer for Recording<P> {
    #[inline]
    fn written(&mut self, now: Time, flow: FlowId, total: u64) {
        if P::TABLES
            && let Some(packets) = &mut self.packets
        {
            packets.written(now, flow, total);
        }
    }

    #[inline]
    fn received(&mut self, now: Time, packet: &Packet) {
        if P::TABLES {
            if let Some(samples) = &mut self.samples {
                samples.received(now, packet);
            }
            if let Some(packets) = &mut self.packets {
                packets.received(now, packet);
            }
        }
    }

    #[inline]
    fn sent(&mut self, now: Time, packet: &Packet) {
        if P::TABLES {
            if let Some(samples) = &mut self.samples {
                samples.sent(now, packet);
            }
            if let Some(packets) = &mut self.packets {
                packets.sent(packet);
            }
        }
        if P::FLOWS != Flows::Everything {
            return;
        }
        let Some(payload) = payload(packet) else { return };
        let Some(t) = self.clock(now, packet.flow) else { return };
        let inside = t <= self.asked.horizon;
        let Some(record) = self.record(packet.flow) else { return };
        record.sent.add(t, u64::from(packet.bytes));
        if inside {
            record.packets_sent += 1;
            record.payload_sent += u64::from(payload);
            if matches!(&packet.body, Body::Segment(segment) if segment.retransmission) {
                record.retransmitted += 1;
                record.payload_retransmitted += u64::from(payload);
            }
        }
    }

    #[inline]
    fn arrived(&mut self, now: Time, link: LinkId, packet: &Packet, _stored_packets: u64, _stored_bytes: u64) {
        if P::LINK_SERIES {
            if !request(packet).is_zero()
                && let Some(series) = self.link_mut(link).and_then(|record| record.series.as_mut())
            {
                series.requests.0 += 1;
            }
        } else if P::FLOWS == Flows::Everything
            && self.origin.is_none()
            && self.link(link).is_some()
            && self.is_new(packet.flow)
            && payload(packet).is_some()
        {
            self.origin = Some(now);
        }
    }

    fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, reason: Option<DropReason>) {
        if P::TABLES {
            if let Some(samples) = &mut self.samples {
                samples.dropped(now, link);
            }
            if let Some(packets) = &mut self.packets {
                packets.dropped(now, link, packet, reason);
            }
        }
        if P::ONLY_WAITS || payload(packet).is_none() {
            return;
        }
        let clock = self.clock(now, packet.flow);
        let counts = reason.is_some() || P::LINK_SERIES;
        let record = self.link_mut(link);
        let at_recorded_link = record.is_some();
        if let (Some(record), Some(t)) = (record, clock)
            && counts
        {
            record.drops.add(t, 1);
        }
        if P::FLOWS == Flows::Everything {
            self.lost(packet, at_recorded_link, clock);
        }
    }

    #[inline]
    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, done: Time) {
        if P::TABLES
            && let Some(samples) = &mut self.samples
        {
            samples.transmitted(now, link, packet, arrived);
        }
        // Where tables are all that is recorded there is no more to do.
        if P::TABLES && self.link(link).is_none() {
            return;
        }
        let (place, bin) = (self.series_of(packet.flow), self.asked.bin);
        let Some(record) = self.links.get_mut(link).and_then(Option::as_mut) else { return };
        if P::LINK_SERIES
            && let Some(series) = &mut record.series
        {
            series.requests.1 += request(packet).rate().as_bps();
        }
        if payload(packet).is_none() {
            return;
        }
        let waited = now.since(arrived);
        if wants_wait::<P>(&self.asked, self.origin, packet.flow, arrived) {
            let transmission = if P::LINK_SERIES { done.since(now).as_nanos() } else { 0 };
            let transmission = u32::try_from(transmission).unwrap_or(u32::MAX);
            record.waits.push(Wait { arrived, waited, flow: packet.flow, transmission });
        }
        let bytes = u64::from(packet.bytes) + u64::from(record.overhead);
        if P::LINK_SERIES
            && let Some(series) = &mut record.series
        {
            if let Some(longest) = series.longest.get_mut((arrived.as_nanos() / bin.as_nanos()) as usize) {
                *longest = (*longest).max(waited);
            }
            let from = now.since(Time::ZERO);
            series.egress[place].spread(from, done.since(Time::ZERO), bytes);
            if packet.ecn == Ecn::Ce {
                series.marks.add(from, 1);
            }
        }
        if P::FLOWS == Flows::Everything {
            self.carried(now, packet, done, bytes);
        }
    }

    /// What waits for its turn, for tokens or for the end of an outage waits in the queue, wherever
    /// the link keeps it meanwhile.
    fn transmitted_later(&mut self, _now: Time, link: LinkId, packet: &Packet, begun: Time, arrived: Time, done: Time) {
        self.transmitted(begun, link, packet, arrived, done);
    }

    fn placed(&mut self, packet: &Packet, flow: FlowId, end: u64) {
        if P::TABLES
            && let Some(packets) = &mut self.packets
        {
            packets.placed(packet, flow, end);
        }
    }

    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        if P::TABLES {
            if let Some(samples) = &mut self.samples {
                samples.delivered(now, flow, total);
            }
            if let Some(packets) = &mut self.packets {
                packets.delivered(now, flow, total);
            }
        }
        if P::FLOWS != Flows::Everything {
            return;
        }
        let t = self.since_origin(now);
        let (record_until, horizon) = (self.asked.record, self.asked.horizon);
        let Some(record) = self.record(flow) else { return };
        let bytes = total - record.read.min(total);
        record.read = total;
        let Some(t) = t.filter(|t| *t <= record_until) else { return };
        record.delivered.add(t, bytes);
        if t <= horizon {
            record.payload_delivered += bytes;
        }
    }

    #[inline]
    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        if P::TABLES
            && let Some(samples) = &mut self.samples
        {
            samples.sender(now, flow, sender);
        }
        if P::FLOWS == Flows::Nothing {
            return;
        }
        // The window of a flow is that of its first connection.
        let Some(t) = self.clock(now, flow).filter(|_| self.owner(flow, 0).0 == flow) else { return };
        let exited = sender.controller().start_exit().map(|exit| exit.now);
        let (bin, windows) = (self.asked.bin, P::FLOWS == Flows::Windows);
        let Some(record) = self.record(flow) else { return };
        record.window(t, sender.controller().cwnd(), exited, bin);
        let srtt = sender.stats().srtt;
        if windows && !srtt.is_zero() {
            note(&mut record.srtt, t, u32::try_from(srtt.as_nanos() / 1000).unwrap_or(u32::MAX), bin);
        }
    }

    fn hides_repairs(&mut self, flow: FlowId) {
        if P::FLOWS == Flows::Everything
            && self.is_new(flow)
            && let Some(record) = self.record(flow)
        {
            record.repairs_seen = false;
        }
    }

    fn foreign_sender(&mut self, now: Time, flow: FlowId, cwnd: u32, exited: Option<Time>) {
        let bin = self.asked.bin;
        if P::FLOWS != Flows::Nothing
            && let Some(t) = self.clock(now, flow)
            && let Some(record) = self.record(flow)
        {
            record.window(t, cwnd, exited, bin);
        }
    }
}
