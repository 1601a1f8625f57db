//! Adding records up: links and flows, in total and over time.

use std::collections::HashMap;

use flowstart_network::{Ecn, LinkConfig};
use flowstart_units::{Span, Time};

use crate::config::LinkId;
use crate::fidelity::Lateness;
use crate::record::{Fate, PacketRecord};
use crate::wire::FlowKey;

/// What happened in a bin of time at a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBin {
    /// Transmissions begun.
    pub packets: u64,
    /// Their bytes on the wire, link overhead included.
    pub bytes: u64,
    /// Packets dropped or lost.
    pub dropped: u64,
    /// Packets that left with CE.
    pub marked: u64,
    /// Shortest wait of a packet whose transmission began; meaningless without packets.
    pub least: Span,
    /// Longest such wait.
    pub most: Span,
    /// Sum of such waits.
    pub sum: Span,
}

/// What happened at a link.
#[derive(Clone, Debug)]
pub struct LinkRecording {
    /// By number of the bin.
    pub bins: Vec<LinkBin>,
    /// How long each packet waited.
    waits: Lateness,
    overhead: u32,
}

impl LinkRecording {
    /// This share of the packets waited at most so long (three digits).
    #[must_use]
    pub fn wait_quantile(&self, share: f64) -> Span {
        self.waits.quantile(share)
    }
}

/// What happened to a flow, that is to the packets in one direction of a connection.
#[derive(Clone, Debug)]
pub struct FlowRecording {
    /// Whose packets.
    pub key: FlowKey,
    /// When the first arrived at its first link.
    pub first: Time,
    /// When the first with payload did; [`Time::NEVER`] if none did.
    pub first_data: Time,
    /// When the last did.
    pub last: Time,
    /// Packets that were sent to the flow's first link.
    pub packets: u64,
    /// Of those, packets with payload.
    pub data_packets: u64,
    /// IP bytes.
    pub bytes: u64,
    /// Of the packets, those that left the first link.
    pub left: u64,
    /// Their IP bytes.
    pub left_bytes: u64,
    /// When the last of them had left it; the time of [`first`](Self::first) if none did.
    pub last_left: Time,
    /// Packets that were still in a queue at the end, or on their way to the first.
    pub stayed: u64,
    /// Packets dropped or lost at any link.
    pub dropped: u64,
    /// Packets that were marked at any link.
    pub marked: u64,
    /// When the first of them was dropped or lost; [`Time::NEVER`] if none was.
    pub first_drop: Time,
    /// When the first of them was marked; [`Time::NEVER`] if none was.
    pub first_mark: Time,
    /// IP bytes by number of the bin, at the first link.
    pub bins: Vec<u64>,
    /// Drops by number of the bin.
    pub drop_bins: Vec<u32>,
    first_link: LinkId,
}

/// Adds records up.
#[derive(Clone, Debug)]
pub struct Recording {
    bin: Span,
    links: Vec<LinkRecording>,
    flows: Vec<FlowRecording>,
    numbers: HashMap<FlowKey, usize>,
}

/// Most bins per series, so that fine bins of a long run do not fill the memory; what comes later
/// is in the totals only.
const MOST_BINS: usize = 1 << 20;
/// Most flows told apart, as for bins.
const MOST_FLOWS: usize = 100_000;

/// The bin's place in a series, made if it is not there yet.
fn place<T: Clone + Default>(bins: &mut Vec<T>, number: usize) -> Option<&mut T> {
    if number >= MOST_BINS {
        return None;
    }
    if number >= bins.len() {
        bins.resize(number + 1, T::default());
    }
    bins.get_mut(number)
}

impl Recording {
    /// Of these links, in bins of this width (at least 1 us).
    #[must_use]
    pub fn new(links: &[LinkConfig], bin: Span) -> Self {
        let link =
            |link: &LinkConfig| LinkRecording { bins: Vec::new(), waits: Lateness::new(), overhead: link.overhead };
        Self {
            bin: bin.max(Span::from_micros(1)),
            links: links.iter().map(link).collect(),
            flows: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Width of the bins.
    #[must_use]
    pub fn bin(&self) -> Span {
        self.bin
    }

    /// The time of which there are bins; what comes later is in the totals only.
    #[must_use]
    pub fn covers(&self) -> Span {
        self.bin * MOST_BINS as u64
    }

    /// By number of the link.
    #[must_use]
    pub fn links(&self) -> &[LinkRecording] {
        &self.links
    }

    /// In order of their first packets.
    #[must_use]
    pub fn flows(&self) -> &[FlowRecording] {
        &self.flows
    }

    /// The flow with this key.
    #[must_use]
    pub fn flow(&self, key: &FlowKey) -> Option<&FlowRecording> {
        self.flows.get(*self.numbers.get(key)?)
    }

    /// Adds a record.
    pub fn add(&mut self, record: &PacketRecord<'_>) {
        let number = |time: Time| usize::try_from(time.since(Time::ZERO).whole(self.bin)).unwrap_or(usize::MAX);
        let (decided, arrived) = (number(record.time()), number(record.arrived));
        // What has not arrived yet has no part in when something did.
        let (there, since) = (record.arrived <= record.time(), record.arrived.min(record.time()));
        let link = &mut self.links[record.link];
        if let Some(waited) = record.waited() {
            link.waits.record(waited);
        }
        let stayed = matches!(record.fate, Fate::Stayed { .. });
        if !stayed && let Some(bin) = place(&mut link.bins, decided) {
            match record.waited() {
                None => bin.dropped += 1,
                Some(waited) => {
                    bin.least = if bin.packets == 0 { waited } else { bin.least.min(waited) };
                    bin.most = bin.most.max(waited);
                    bin.sum += waited;
                    bin.packets += 1;
                    bin.bytes += u64::from(record.bytes + link.overhead);
                    bin.marked += u64::from(record.ecn == Ecn::Ce);
                }
            }
        }
        let next = self.flows.len();
        if next >= MOST_FLOWS && !self.numbers.contains_key(&record.flow) {
            return;
        }
        let flow = *self.numbers.entry(record.flow).or_insert(next);
        if flow == next {
            self.flows.push(FlowRecording {
                key: record.flow,
                first: since,
                first_data: Time::NEVER,
                last: since,
                packets: 0,
                data_packets: 0,
                bytes: 0,
                left: 0,
                left_bytes: 0,
                last_left: since,
                stayed: 0,
                dropped: 0,
                marked: 0,
                first_drop: Time::NEVER,
                first_mark: Time::NEVER,
                bins: Vec::new(),
                drop_bins: Vec::new(),
                first_link: record.link,
            });
        }
        let flow = &mut self.flows[flow];
        flow.stayed += u64::from(stayed);
        if record.is_dropped() {
            flow.dropped += 1;
            flow.first_drop = flow.first_drop.min(record.time());
            if let Some(bin) = place(&mut flow.drop_bins, decided) {
                *bin += 1;
            }
        }
        if record.marked_here {
            flow.marked += 1;
            flow.first_mark = flow.first_mark.min(record.time());
        }
        if record.link == flow.first_link {
            flow.packets += 1;
            flow.bytes += u64::from(record.bytes);
            if let Fate::Sent { done, .. } = record.fate {
                flow.left += 1;
                flow.left_bytes += u64::from(record.bytes);
                flow.last_left = flow.last_left.max(done);
            }
            flow.first = flow.first.min(since);
            flow.last = flow.last.max(since);
            if record.tcp().is_none_or(|tcp| tcp.payload > 0) {
                flow.data_packets += 1;
                flow.first_data = flow.first_data.min(since);
            }
            if there && let Some(bin) = place(&mut flow.bins, arrived) {
                *bin += u64::from(record.bytes);
            }
        }
    }
}
