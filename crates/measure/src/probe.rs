//! The observer that records what the measures need, in bounded memory.

use std::collections::BTreeSet;
use std::ops::Range;

use flowstart_network::packet::Body;
use flowstart_network::{DropReason, Packet};
use flowstart_simulator::{FlowId, LinkId, Observer};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

use super::changes::note;
use super::delay::{BEFORE_RTTS, DelaySample, DelaySamples};
use super::egress::Egress;
use super::packet::payload;

/// When t = 0 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// When the first data bit of a new flow reaches the bottleneck's queue.
    FirstData,
    /// At a known time: for the paired run without the new flows.
    At(Time),
}

/// What a [`Probe`] watches.
#[derive(Clone, Debug)]
pub struct ProbeConfig {
    /// The bottleneck.
    pub link: LinkId,
    /// Bytes the link adds to every IP packet.
    pub link_overhead: u32,
    /// Numbers of the new flows; all others were there before.
    pub new_flows: Range<FlowId>,
    /// Numbers of their second connections, in the same order; what those do counts as done by the flow.
    pub companions: Range<FlowId>,
    /// When t = 0 is.
    pub origin: Origin,
    /// Not later than t = 0; waits are recorded from 10 RTT0 before on.
    pub not_before: Time,
    /// RTT0.
    pub base_rtt: Span,
    /// How long after t = 0 packets are counted as lost, sent and delivered (H).
    pub horizon: Span,
    /// How long after t = 0 bins and waits are recorded; at least the horizon.
    pub record: Span,
    /// Flows of their own record; the packets of those beyond only count as waits. Default 1100.
    pub flow_limit: usize,
    /// Most waits kept, see [`DelaySamples`]. Default 2^18 (6 MB).
    pub sample_limit: usize,
}

impl ProbeConfig {
    /// Bins per RTT0.
    pub const BINS_PER_RTT: u64 = 32;
    /// Most bins per flow and series.
    const BIN_LIMIT: usize = 1 << 16;

    /// Watches `link` from `not_before` on, for `horizon` and `extra` more.
    #[must_use]
    pub fn new(
        link: LinkId,
        new_flows: Range<FlowId>,
        not_before: Time,
        base_rtt: Span,
        horizon: Span,
        extra: Span,
    ) -> Self {
        Self {
            link,
            link_overhead: 0,
            new_flows,
            companions: 0..0,
            origin: Origin::FirstData,
            not_before,
            base_rtt,
            horizon,
            record: horizon + extra,
            flow_limit: 1100,
            sample_limit: 1 << 18,
        }
    }
}

/// What is recorded of one flow. Times are relative to t = 0, bytes counted on the wire unless stated.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// Bytes that left the sender's stack (IP packets).
    pub sent: Egress,
    /// Bytes that left the bottleneck, each byte of the stream the first time it does.
    pub egress: Egress,
    /// Stream bytes that the receiving application read.
    pub delivered: Egress,
    /// Congestion window in packets, at changes (at most one per bin).
    pub cwnd: Vec<(Span, u32)>,
    /// Bytes that left the bottleneck again, within the horizon.
    pub duplicate_bytes: u64,
    /// Data packets sent within the horizon.
    pub packets_sent: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Payload bytes sent within the horizon.
    pub payload_sent: u64,
    /// Payload bytes sent again within the horizon.
    pub payload_retransmitted: u64,
    /// Stream bytes delivered within the horizon.
    pub payload_delivered: u64,
    /// Packets dropped within the horizon that were sent before the start ended.
    pub dropped_in_start: u64,
    /// Packets dropped within the horizon that were sent later.
    pub dropped_later: u64,
    /// Packets that left the bottleneck marked, within the horizon.
    pub marked: u64,
    /// When the start ended.
    exited: Option<Time>,
    /// First bytes of segments dropped at the bottleneck that have not left it since.
    missing: BTreeSet<u64>,
    read: u64,
}

impl FlowRecord {
    fn new(config: &ProbeConfig) -> Self {
        let bin = config.base_rtt / ProbeConfig::BINS_PER_RTT;
        let bins = Egress::new(bin, config.record, ProbeConfig::BIN_LIMIT);
        Self {
            sent: bins.clone(),
            egress: bins.clone(),
            delivered: bins,
            cwnd: Vec::new(),
            duplicate_bytes: 0,
            packets_sent: 0,
            retransmitted: 0,
            payload_sent: 0,
            payload_retransmitted: 0,
            payload_delivered: 0,
            dropped_in_start: 0,
            dropped_later: 0,
            marked: 0,
            exited: None,
            missing: BTreeSet::new(),
            read: 0,
        }
    }

    /// Packets dropped within the horizon.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_in_start + self.dropped_later
    }
}

/// Records one simulation.
#[derive(Clone, Debug)]
pub struct Probe {
    config: ProbeConfig,
    origin: Option<Time>,
    samples_from: Time,
    flows: Vec<FlowRecord>,
    samples: DelaySamples,
    queue_drops: Egress,
}

impl Probe {
    /// An empty record.
    #[must_use]
    pub fn new(config: ProbeConfig) -> Self {
        let origin = match config.origin {
            Origin::FirstData => None,
            Origin::At(time) => Some(time),
        };
        let samples_from = config.not_before - config.base_rtt * BEFORE_RTTS;
        let samples = DelaySamples::new(config.sample_limit);
        let queue_drops =
            Egress::new(config.base_rtt / ProbeConfig::BINS_PER_RTT, config.record, ProbeConfig::BIN_LIMIT);
        Self { config, origin, samples_from, flows: Vec::new(), samples, queue_drops }
    }

    /// t = 0; `None` if no data of a new flow reached the bottleneck.
    #[must_use]
    pub fn origin(&self) -> Option<Time> {
        self.origin
    }

    /// The records of the flows, by flow number; flows that never did anything may be missing at the end.
    #[must_use]
    pub fn flows(&self) -> &[FlowRecord] {
        &self.flows
    }

    /// Waits of all data packets at the bottleneck.
    #[must_use]
    pub fn samples(&self) -> &DelaySamples {
        &self.samples
    }

    /// Packets of all flows that the bottleneck's queue dropped (not those a loss process took), counted instead of bytes.
    #[must_use]
    pub fn queue_drops(&self) -> &Egress {
        &self.queue_drops
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ProbeConfig {
        &self.config
    }

    #[inline]
    fn is_new(&self, flow: FlowId) -> bool {
        self.config.new_flows.contains(&flow) || self.config.companions.contains(&flow)
    }

    /// The flow that a connection belongs to, and a number that differs for equal sequence numbers of its connections.
    #[inline]
    fn owner(&self, flow: FlowId, seq: u64) -> (FlowId, u64) {
        let companions = &self.config.companions;
        if companions.contains(&flow) {
            (self.config.new_flows.start + (flow - companions.start), seq | 1 << 63)
        } else {
            (flow, seq)
        }
    }

    /// The record of a flow, if it has one.
    #[inline]
    fn record(&mut self, flow: FlowId) -> Option<&mut FlowRecord> {
        let index = self.owner(flow, 0).0 as usize;
        if index >= self.flows.len() {
            if index >= self.config.flow_limit {
                return None;
            }
            self.flows.resize_with(index + 1, || FlowRecord::new(&self.config));
        }
        self.flows.get_mut(index)
    }

    /// Time since t = 0, if that has come.
    #[inline]
    fn since_origin(&self, now: Time) -> Option<Span> {
        now.checked_since(self.origin?)
    }

    /// Time since t = 0, if `now` lies in what is recorded. What a new flow sends on its way to the bottleneck before t = 0 counts as sent at 0.
    #[inline]
    fn clock(&self, now: Time, flow: FlowId) -> Option<Span> {
        match self.since_origin(now) {
            Some(t) => (t <= self.config.record).then_some(t),
            None => (self.origin.is_none() && self.is_new(flow)).then_some(Span::ZERO),
        }
    }
}

impl Observer for Probe {
    #[inline]
    fn sent(&mut self, now: Time, packet: &Packet) {
        let Some(payload) = payload(packet) else { return };
        let Some(t) = self.clock(now, packet.flow) else { return };
        let inside = t <= self.config.horizon;
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
        if self.origin.is_none() && link == self.config.link && self.is_new(packet.flow) && payload(packet).is_some() {
            self.origin = Some(now);
        }
    }

    fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, reason: Option<DropReason>) {
        if payload(packet).is_none() {
            return;
        }
        let at_bottleneck = link == self.config.link;
        let clock = self.clock(now, packet.flow);
        if let Some(t) = clock.filter(|_| at_bottleneck && reason.is_some()) {
            self.queue_drops.add(t, 1);
        }
        let horizon = self.config.horizon;
        let key = match &packet.body {
            Body::Segment(segment) => self.owner(packet.flow, segment.seq).1,
            _ => 0,
        };
        let Some(record) = self.record(packet.flow) else { return };
        let mut in_start = record.exited.is_none();
        if let Body::Segment(segment) = &packet.body {
            if at_bottleneck {
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

    #[inline]
    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, done: Time) {
        if link != self.config.link || payload(packet).is_none() {
            return;
        }
        if arrived >= self.samples_from && self.origin.is_none_or(|t0| arrived.since(t0) <= self.config.record) {
            let own = self.is_new(packet.flow);
            self.samples.push(DelaySample { arrived, waited: now.since(arrived), own });
        }
        let bytes = u64::from(packet.bytes) + u64::from(self.config.link_overhead);
        let (from, to) = (self.since_origin(now), self.since_origin(done));
        let (record_until, horizon) = (self.config.record, self.config.horizon);
        let key = match &packet.body {
            Body::Segment(segment) if segment.retransmission => self.owner(packet.flow, segment.seq).1,
            _ => 0,
        };
        let Some(record) = self.record(packet.flow) else { return };
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
        if from <= horizon && packet.ecn == flowstart_network::Ecn::Ce {
            record.marked += 1;
        }
    }

    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        let t = self.since_origin(now);
        let (record_until, horizon) = (self.config.record, self.config.horizon);
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
        // The window of a flow is that of its first connection.
        let Some(t) = self.clock(now, flow).filter(|_| self.owner(flow, 0).0 == flow) else { return };
        let exited = sender.controller().start_exit().map(|exit| exit.now);
        self.window(t, flow, sender.controller().cwnd(), exited);
    }

    fn foreign_sender(&mut self, now: Time, flow: FlowId, cwnd: u32, exited: Option<Time>) {
        if let Some(t) = self.clock(now, flow) {
            self.window(t, flow, cwnd, exited);
        }
    }
}

impl Probe {
    #[inline]
    fn window(&mut self, t: Span, flow: FlowId, cwnd: u32, exited: Option<Time>) {
        let bin = self.config.base_rtt / ProbeConfig::BINS_PER_RTT;
        let Some(record) = self.record(flow) else { return };
        record.exited = record.exited.or(exited);
        note(&mut record.cwnd, t, cwnd, bin);
    }
}
