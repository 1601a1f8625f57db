//! What happens in a run, summed up in bins of one width.

use std::collections::{BTreeMap, HashMap};

use flowstart_network::packet::Body;
use flowstart_network::{Ecn, Packet};
use flowstart_simulator::{FlowId, LinkId};
use flowstart_transport::Sender;
use flowstart_units::{Rate, Span, Time};

/// What happened to a flow in a bin.
#[derive(Clone, Debug, Default)]
pub struct FlowSample {
    /// Bytes of packets sent that are no ACKs (IP packets).
    pub sent: u64,
    /// Stream bytes that the receiving application read; of datagrams the bytes that arrived (IP
    /// packets).
    pub delivered: u64,
    /// The sender after its last event in the bin, if it had one.
    pub state: Option<SenderState>,
}

/// A sender at one time.
#[derive(Clone, Copy, Debug)]
pub struct SenderState {
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Slow-start threshold in packets.
    pub ssthresh: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Pacing rate, if it paces.
    pub pacing: Option<Rate>,
}

/// What happened at a link in a bin.
#[derive(Clone, Debug)]
pub struct LinkSample {
    /// Bytes of packets whose transmission began (IP packets).
    pub bytes: u64,
    /// Those packets.
    pub packets: u64,
    /// Shortest time one of them waited; [`Span::MAX`] if there was none.
    pub least: Span,
    /// Sum of these times.
    pub sum: Span,
    /// Longest.
    pub most: Span,
    /// Packets dropped, by the queue or a loss process.
    pub dropped: u64,
    /// Packets that left with a congestion mark.
    pub marked: u64,
}

impl Default for LinkSample {
    fn default() -> Self {
        Self { bytes: 0, packets: 0, least: Span::MAX, sum: Span::ZERO, most: Span::ZERO, dropped: 0, marked: 0 }
    }
}

/// All bins in which something happened, counted from time 0.
#[derive(Clone, Debug)]
pub struct Samples {
    bin: Span,
    flows: BTreeMap<(u64, FlowId), FlowSample>,
    links: BTreeMap<(u64, LinkId), LinkSample>,
    totals: HashMap<FlowId, u64>,
}

impl Samples {
    /// Bins of this width; none if it is zero.
    pub(super) fn new(bin: Span) -> Self {
        Self { bin, flows: BTreeMap::new(), links: BTreeMap::new(), totals: HashMap::new() }
    }

    /// Width of a bin.
    #[must_use]
    pub fn bin(&self) -> Span {
        self.bin
    }

    /// By number of the bin and of the flow.
    pub fn flows(&self) -> impl Iterator<Item = (u64, FlowId, &FlowSample)> {
        self.flows.iter().map(|((bin, flow), sample)| (*bin, *flow, sample))
    }

    /// By number of the bin and of the link.
    pub fn links(&self) -> impl Iterator<Item = (u64, LinkId, &LinkSample)> {
        self.links.iter().map(|((bin, link), sample)| (*bin, *link, sample))
    }

    fn flow(&mut self, now: Time, flow: FlowId) -> Option<&mut FlowSample> {
        let bin = now.as_nanos().checked_div(self.bin.as_nanos())?;
        Some(self.flows.entry((bin, flow)).or_default())
    }

    fn link(&mut self, now: Time, link: LinkId) -> Option<&mut LinkSample> {
        let bin = now.as_nanos().checked_div(self.bin.as_nanos())?;
        Some(self.links.entry((bin, link)).or_default())
    }

    pub(super) fn sent(&mut self, now: Time, packet: &Packet) {
        if !matches!(packet.body, Body::Ack(_))
            && let Some(sample) = self.flow(now, packet.flow)
        {
            sample.sent += u64::from(packet.bytes);
        }
    }

    pub(super) fn dropped(&mut self, now: Time, link: LinkId) {
        if let Some(sample) = self.link(now, link) {
            sample.dropped += 1;
        }
    }

    pub(super) fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time) {
        let Some(sample) = self.link(now, link) else { return };
        let sojourn = now.since(arrived);
        sample.bytes += u64::from(packet.bytes);
        sample.packets += 1;
        sample.least = sample.least.min(sojourn);
        sample.sum += sojourn;
        sample.most = sample.most.max(sojourn);
        sample.marked += u64::from(packet.ecn == Ecn::Ce);
    }

    /// A datagram is read when it arrives; a stream's bytes are counted when they can be.
    pub(super) fn received(&mut self, now: Time, packet: &Packet) {
        if matches!(packet.body, Body::Datagram(_))
            && let Some(sample) = self.flow(now, packet.flow)
        {
            sample.delivered += u64::from(packet.bytes);
        }
    }

    pub(super) fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        let before = self.totals.insert(flow, total).unwrap_or(0);
        if let Some(sample) = self.flow(now, flow) {
            sample.delivered += total - before;
        }
    }

    pub(super) fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        let Some(sample) = self.flow(now, flow) else { return };
        let (controller, stats) = (sender.controller(), sender.stats());
        sample.state = Some(SenderState {
            cwnd: controller.cwnd(),
            ssthresh: controller.ssthresh(),
            in_flight: stats.in_flight,
            srtt: stats.srtt,
            pacing: controller.pacing_rate(),
        });
    }
}
