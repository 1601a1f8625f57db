//! The observer of a reproduction: what its measures and pictures are made from.

use flowstart_network::packet::Body;
use flowstart_network::{DropReason, Ecn, Packet};
use flowstart_quick_start::RateCode;
use flowstart_simulator::{FlowId, LinkId, Observer, SimulationConfig, Traffic};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

use flowstart_measure::Egress;

/// One packet's wait at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// When it arrived at the queue.
    pub(super) arrived: Time,
    /// How long it waited until its transmission began.
    pub(super) waited: Span,
    /// Whose it was.
    pub(super) flow: FlowId,
    /// How long its transmission took, in nanoseconds.
    pub(super) transmission: u32,
}

/// Most waits kept per link (24 MB). When full, every second one is dropped and from then on only every second (fourth, …) is kept.
const MOST_WAITS: usize = 1 << 20;
/// Most bins of a series.
const MOST_BINS: usize = 1 << 16;
/// Bins per round-trip time, if they are not too many.
const BINS_PER_RTT: u64 = 16;
/// Flows with series of their own; those beyond, and all that arrive at random, share one.
const MOST_SERIES: usize = 64;

/// What happened at a link.
#[derive(Clone, Debug)]
pub(super) struct LinkRecord {
    /// Waits of data packets, in order of departure.
    pub(super) waits: Vec<Wait>,
    stride: u64,
    seen: u64,
    /// Longest wait by time of arrival, one per bin.
    pub(super) longest: Vec<Span>,
    /// Bytes that left the link (data packets on the wire), per flow; the last one is for all without a series of their own.
    pub(super) egress: Vec<Egress>,
    /// Data packets dropped, by queue or loss process.
    pub(super) drops: Egress,
    /// Data packets that left with a congestion mark.
    pub(super) marks: Egress,
    /// Requests for a rate that arrived, and the sum in bit/s of what was left of them when they departed.
    pub(super) requests: (u64, u64),
    overhead: u32,
}

/// Records one run.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    /// By link number; `None` for links that nobody asked about.
    pub(super) links: Vec<Option<LinkRecord>>,
    /// Congestion windows in packets at changes, at most one per bin, per flow with a series of its own.
    pub(super) cwnd: Vec<Vec<(Time, u32)>>,
    /// Smoothed RTTs in microseconds, likewise.
    pub(super) srtt: Vec<Vec<(Time, u32)>>,
    /// Width of a bin.
    pub(super) bin: Span,
    series: usize,
}

impl Recorder {
    /// For this simulation, its `links` of these numbers, until `end`; `rtt` is the shortest time of interest.
    pub(super) fn new(simulation: &SimulationConfig, links: &[LinkId], rtt: Span, end: Span) -> Self {
        let bin = (rtt / BINS_PER_RTT).max(end / MOST_BINS as u64).max(Span::from_micros(1));
        let companions = simulation.flows.iter().filter(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => tcp.controller.start.connections() > 1,
            Traffic::Udp(_) => false,
        });
        let series = (simulation.flows.len() + companions.count()).min(MOST_SERIES);
        let bins = Egress::new(bin, end, MOST_BINS);
        let record = |link: usize, overhead: u32| {
            links.contains(&link).then(|| LinkRecord {
                waits: Vec::new(),
                stride: 1,
                seen: 0,
                longest: vec![Span::ZERO; bins.bytes().len()],
                egress: vec![bins.clone(); series + 1],
                drops: bins.clone(),
                marks: bins.clone(),
                requests: (0, 0),
                overhead,
            })
        };
        let links = simulation.links.iter().enumerate().map(|(number, link)| record(number, link.overhead)).collect();
        Self { links, cwnd: vec![Vec::new(); series], srtt: vec![Vec::new(); series], bin, series }
    }

    /// The series of a flow: its own, or the common one.
    pub(super) fn series_of(&self, flow: FlowId) -> usize {
        (flow as usize).min(self.series)
    }

    /// Number of flows with a series of their own.
    pub(super) fn series(&self) -> usize {
        self.series
    }
}

impl LinkRecord {
    fn wait(&mut self, wait: Wait, bin: usize) {
        if let Some(longest) = self.longest.get_mut(bin) {
            *longest = (*longest).max(wait.waited);
        }
        if self.seen.is_multiple_of(self.stride) {
            if self.waits.len() == MOST_WAITS {
                let mut index = 0_usize;
                self.waits.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride = self.stride.saturating_mul(2);
            }
            if self.seen.is_multiple_of(self.stride) {
                self.waits.push(wait);
            }
        }
        self.seen += 1;
    }
}

/// Notes a value that changes at most once per bin.
#[inline]
fn note(changes: &mut Vec<(Time, u32)>, now: Time, value: u32, bin: Span) {
    if let Some((at, last)) = changes.last_mut()
        && (*last == value || now < *at + bin)
    {
        *last = value;
    } else if changes.len() < MOST_BINS {
        changes.push((now, value));
    }
}

/// True for packets that carry payload; ACKs and handshakes do not count.
#[inline]
fn is_data(packet: &Packet) -> bool {
    match &packet.body {
        Body::Segment(segment) => segment.payload > 0,
        Body::Datagram(_) => true,
        Body::Ack(_) => false,
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

impl Observer for Recorder {
    #[inline]
    fn arrived(&mut self, _now: Time, link: LinkId, packet: &Packet, _stored_packets: u64, _stored_bytes: u64) {
        if !request(packet).is_zero()
            && let Some(record) = self.links.get_mut(link).and_then(Option::as_mut)
        {
            record.requests.0 += 1;
        }
    }

    #[inline]
    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, done: Time) {
        let (series, bin) = (self.series_of(packet.flow), self.bin);
        let Some(record) = self.links.get_mut(link).and_then(Option::as_mut) else { return };
        record.requests.1 += request(packet).rate().as_bps();
        if !is_data(packet) {
            return;
        }
        let place = (arrived.as_nanos() / bin.as_nanos()) as usize;
        let transmission = u32::try_from(done.since(now).as_nanos()).unwrap_or(u32::MAX);
        record.wait(Wait { arrived, waited: now.since(arrived), flow: packet.flow, transmission }, place);
        let bytes = u64::from(packet.bytes) + u64::from(record.overhead);
        record.egress[series].spread(now.since(Time::ZERO), done.since(Time::ZERO), bytes);
        if packet.ecn == Ecn::Ce {
            record.marks.add(now.since(Time::ZERO), 1);
        }
    }

    fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, _reason: Option<DropReason>) {
        if let Some(record) = self.links.get_mut(link).and_then(Option::as_mut)
            && is_data(packet)
        {
            record.drops.add(now.since(Time::ZERO), 1);
        }
    }

    #[inline]
    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        let bin = self.bin;
        let Some(windows) = self.cwnd.get_mut(flow as usize) else { return };
        note(windows, now, sender.controller().cwnd(), bin);
        let srtt = sender.stats().srtt;
        if let Some(changes) = self.srtt.get_mut(flow as usize)
            && !srtt.is_zero()
        {
            note(changes, now, u32::try_from(srtt.as_nanos() / 1000).unwrap_or(u32::MAX), bin);
        }
    }
}
