//! The observer of runs: it records what is asked for, in bounded memory.

mod asked;
mod flow;
mod link;
mod observe;
mod packets;
mod samples;

use std::marker::PhantomData;
use std::sync::mpsc::Sender;

use flowstart_simulator::{FlowId, LinkId};
use flowstart_units::{Span, Time};

use crate::wait::Wait;

pub use asked::{Asked, Flows, LinkAsked, LinksAndWindows, Newcomers, Origin, Parts, SamplesAndPackets, TransferWaits};
pub use flow::FlowRecord;
pub use link::{LinkRecord, LinkSeries};
pub use packets::{Fate, PORTION, PacketRecord, Packets};
pub use samples::{FlowSample, LinkSample, Samples, SenderState};

/// Most bins per series.
pub(crate) const BIN_LIMIT: usize = 1 << 16;

/// What was asked for of one run, in parts.
#[derive(Clone, Debug)]
pub struct Recording<P> {
    parts: PhantomData<P>,
    asked: Asked,
    origin: Option<Time>,
    /// By link number; `None` for links that nobody asked about.
    links: Vec<Option<LinkRecord>>,
    flows: Vec<FlowRecord>,
    /// Bytes of flows without a record that left the bottleneck within the horizon.
    beyond: u64,
    samples: Option<Box<Samples>>,
    packets: Option<Box<Packets>>,
}

impl<P: Parts> Recording<P> {
    /// An empty recording of what is asked for.
    #[must_use]
    pub fn new(asked: Asked) -> Self {
        let origin = match asked.origin {
            Origin::FirstData => None,
            Origin::At(time) => Some(time),
        };
        let count = asked.links.iter().map(|link| link.link + 1).max().unwrap_or(0);
        let mut links: Vec<Option<LinkRecord>> = (0..count).map(|_| None).collect();
        for link in &asked.links {
            links[link.link] = Some(LinkRecord::new::<P>(&asked, link));
        }
        let samples = (P::TABLES && !asked.bin.is_zero()).then(|| Box::new(Samples::new(asked.bin)));
        let packets = (P::TABLES && asked.packets).then(Box::default);
        Self { parts: PhantomData, asked, origin, links, flows: Vec::new(), beyond: 0, samples, packets }
    }

    /// t = 0; `None` if no data of a new flow reached the bottleneck.
    #[must_use]
    pub fn origin(&self) -> Option<Time> {
        self.origin
    }

    /// What was asked for.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Width of a bin.
    #[must_use]
    pub fn bin(&self) -> Span {
        self.asked.bin
    }

    /// The record of a link, if it was asked for.
    #[must_use]
    #[inline]
    pub fn link(&self, link: LinkId) -> Option<&LinkRecord> {
        self.links.get(link)?.as_ref()
    }

    /// The record of the first link that was asked for.
    #[must_use]
    pub fn bottleneck(&self) -> Option<&LinkRecord> {
        self.links.iter().flatten().next()
    }

    /// Waits of data packets there, in order of departure.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        self.bottleneck().map_or(&[], LinkRecord::waits)
    }

    /// The records of the flows, by flow number; flows that never did anything may be missing at
    /// the end.
    #[must_use]
    pub fn flows(&self) -> &[FlowRecord] {
        &self.flows
    }

    /// Makes records of the first so many flows, empty ones of those that never did anything.
    pub fn complete_flows(&mut self, flows: usize) {
        if flows > self.flows.len() {
            self.make_room(flows - 1);
        }
    }

    /// Bytes of data that left the bottleneck within the horizon and belong to flows beyond the
    /// [limit](Asked::flow_limit), which have no records.
    #[must_use]
    pub fn carried_beyond(&self) -> u64 {
        self.beyond
    }

    /// What happened in bins, with [`Parts::TABLES`] and a width other than zero.
    #[must_use]
    pub fn samples(&self) -> Option<&Samples> {
        self.samples.as_deref()
    }

    /// What became of all data packets, with [`Parts::TABLES`] and if they were asked for.
    #[must_use]
    pub fn into_packets(self) -> Option<Packets> {
        self.packets.map(|packets| *packets)
    }

    /// From now on the packets' rows are sent there in portions as soon as nothing about them
    /// changes any more, and [`into_packets`](Self::into_packets) has the others.
    pub fn hand_on_packets(&mut self, to: Sender<Vec<PacketRecord>>) {
        if let Some(packets) = &mut self.packets {
            packets.hand_on_to(to);
        }
    }

    /// The series of a flow at a link: its own, or the common one.
    #[must_use]
    #[inline]
    pub fn series_of(&self, flow: FlowId) -> usize {
        (flow as usize).min(self.series())
    }

    /// Number of flows with a series of their own.
    #[must_use]
    pub fn series(&self) -> usize {
        self.asked.flow_limit
    }

    /// True for the new flows and their second connections.
    #[must_use]
    #[inline]
    pub fn is_new(&self, flow: FlowId) -> bool {
        self.asked.new_flows.contains(&flow) || self.asked.companions.contains(&flow)
    }
}

#[cfg(test)]
mod tests;
