//! The observer of a scenario's run, in absolute time: what claims and pictures are made from.

use flowstart_network::packet::Body;
use flowstart_network::{DropReason, Ecn, Packet};
use flowstart_quick_start::RateCode;
use flowstart_simulator::{FlowId, LinkId, Observer, SimulationConfig, Traffic};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

use crate::changes::note;
use crate::egress::Egress;
use crate::packet::payload;
use crate::thinned::Thinned;

/// One packet's wait at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When it arrived at the queue.
    pub arrived: Time,
    /// How long it waited until its transmission began.
    pub waited: Span,
    /// Whose it was.
    pub flow: FlowId,
    /// How long its transmission took, in nanoseconds.
    pub transmission: u32,
}

/// Most waits kept per link (24 MB), see [`Thinned`].
const MOST_WAITS: usize = 1 << 20;
/// Most bins of a series.
const MOST_BINS: usize = 1 << 16;
/// Bins per round-trip time, if they are not too many.
const BINS_PER_RTT: u64 = 16;
/// Flows with series of their own; those beyond, and all that arrive at random, share one.
const MOST_SERIES: usize = 64;

/// What happened at a link.
#[derive(Clone, Debug)]
pub struct LinkRecord {
    waits: Thinned<Wait>,
    longest: Vec<Span>,
    egress: Vec<Egress>,
    drops: Egress,
    marks: Egress,
    requests: (u64, u64),
    overhead: u32,
}

impl LinkRecord {
    /// Waits of data packets, in order of departure.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        self.waits.samples()
    }

    /// Longest wait by time of arrival, one per bin.
    #[must_use]
    pub fn longest(&self) -> &[Span] {
        &self.longest
    }

    /// Bytes that left the link (data packets on the wire), per flow; the last one is for all
    /// without a series of their own.
    #[must_use]
    pub fn egress(&self) -> &[Egress] {
        &self.egress
    }

    /// Data packets dropped, by queue or loss process.
    #[must_use]
    pub fn drops(&self) -> &Egress {
        &self.drops
    }

    /// Data packets that left with a congestion mark.
    #[must_use]
    pub fn marks(&self) -> &Egress {
        &self.marks
    }

    /// Requests for a rate that arrived, and the sum in bit/s of what was left of them when they
    /// departed.
    #[must_use]
    pub fn requests(&self) -> (u64, u64) {
        self.requests
    }
}

/// Records one run of a scenario.
#[derive(Clone, Debug)]
pub struct Recorder {
    links: Vec<Option<LinkRecord>>,
    cwnd: Vec<Vec<(Time, u32)>>,
    srtt: Vec<Vec<(Time, u32)>>,
    bin: Span,
    series: usize,
}

impl Recorder {
    /// For this simulation, its `links` of these numbers, until `end`; `rtt` is the shortest time
    /// of interest.
    #[must_use]
    pub fn new(simulation: &SimulationConfig, links: &[LinkId], rtt: Span, end: Span) -> Self {
        let bin = (rtt / BINS_PER_RTT).max(end / MOST_BINS as u64).max(Span::from_micros(1));
        let companions = simulation.flows.iter().filter(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => tcp.controller.start.connections() > 1,
            Traffic::Udp(_) => false,
        });
        let series = (simulation.flows.len() + companions.count()).min(MOST_SERIES);
        let bins = Egress::new(bin, end, MOST_BINS);
        let record = |link: usize, overhead: u32| {
            links.contains(&link).then(|| LinkRecord {
                waits: Thinned::new(MOST_WAITS),
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

    /// By link number; `None` for links that nobody asked about.
    #[must_use]
    pub fn links(&self) -> &[Option<LinkRecord>] {
        &self.links
    }

    /// Congestion windows in packets at changes, at most one per bin, per flow with a series of its
    /// own.
    #[must_use]
    pub fn cwnd(&self) -> &[Vec<(Time, u32)>] {
        &self.cwnd
    }

    /// Smoothed RTTs in microseconds, likewise.
    #[must_use]
    pub fn srtt(&self) -> &[Vec<(Time, u32)>] {
        &self.srtt
    }

    /// Width of a bin.
    #[must_use]
    pub fn bin(&self) -> Span {
        self.bin
    }

    /// The series of a flow: its own, or the common one.
    #[must_use]
    pub fn series_of(&self, flow: FlowId) -> usize {
        (flow as usize).min(self.series)
    }

    /// Number of flows with a series of their own.
    #[must_use]
    pub fn series(&self) -> usize {
        self.series
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
        if payload(packet).is_none() {
            return;
        }
        let waited = now.since(arrived);
        if let Some(longest) = record.longest.get_mut((arrived.as_nanos() / bin.as_nanos()) as usize) {
            *longest = (*longest).max(waited);
        }
        let transmission = u32::try_from(done.since(now).as_nanos()).unwrap_or(u32::MAX);
        record.waits.push(Wait { arrived, waited, flow: packet.flow, transmission });
        let bytes = u64::from(packet.bytes) + u64::from(record.overhead);
        record.egress[series].spread(now.since(Time::ZERO), done.since(Time::ZERO), bytes);
        if packet.ecn == Ecn::Ce {
            record.marks.add(now.since(Time::ZERO), 1);
        }
    }

    fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, _reason: Option<DropReason>) {
        if let Some(record) = self.links.get_mut(link).and_then(Option::as_mut)
            && payload(packet).is_some()
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
