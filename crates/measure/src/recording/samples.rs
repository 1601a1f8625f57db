//! What happens in a run, summed up in bins of one width.

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
    flows: Bins<FlowSample>,
    links: Bins<LinkSample>,
    /// Bytes that each flow had delivered by its last event.
    totals: Vec<u64>,
}

impl Samples {
    /// Bins of this width; none if it is zero.
    pub(super) fn new(bin: Span) -> Self {
        Self { bin, flows: Bins::default(), links: Bins::default(), totals: Vec::new() }
    }

    /// Width of a bin.
    #[must_use]
    pub fn bin(&self) -> Span {
        self.bin
    }

    /// By number of the bin and of the flow.
    pub fn flows(&self) -> impl Iterator<Item = (u64, FlowId, &FlowSample)> {
        self.flows.sorted().map(|(bin, flow, sample)| (bin, flow as FlowId, sample))
    }

    /// By number of the bin and of the link.
    pub fn links(&self) -> impl Iterator<Item = (u64, LinkId, &LinkSample)> {
        self.links.sorted()
    }

    #[inline]
    fn flow(&mut self, now: Time, flow: FlowId) -> Option<&mut FlowSample> {
        let bin = now.as_nanos().checked_div(self.bin.as_nanos())?;
        Some(self.flows.at(bin, flow as usize))
    }

    #[inline]
    fn link(&mut self, now: Time, link: LinkId) -> Option<&mut LinkSample> {
        let bin = now.as_nanos().checked_div(self.bin.as_nanos())?;
        Some(self.links.at(bin, link))
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
        let before = match self.totals.get_mut(flow as usize) {
            Some(before) => std::mem::replace(before, total),
            None => self.first_delivered(flow, total),
        };
        if let Some(sample) = self.flow(now, flow) {
            sample.delivered += total - before;
        }
    }

    /// The first bytes of a flow: nothing was delivered before.
    #[cold]
    #[inline(never)]
    fn first_delivered(&mut self, flow: FlowId, total: u64) -> u64 {
        self.totals.resize(flow as usize + 1, 0);
        self.totals[flow as usize] = total;
        0
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

/// What was seen in bins of those that are numbered from 0. Time hardly ever runs back, so what is
/// looked for is the latest bin of its number.
#[derive(Clone, Debug)]
struct Bins<T> {
    /// By bin and number, in the order in which something first happened.
    rows: Vec<((u64, usize), T)>,
    /// The latest bin of each number.
    latest: Vec<Latest>,
}

/// A bin and where in the rows it is. Before a number has one both are the largest there is, which
/// no bin of a run has.
#[derive(Clone, Copy, Debug)]
struct Latest {
    bin: u64,
    place: usize,
}

impl Latest {
    const NONE: Self = Self { bin: u64::MAX, place: usize::MAX };
}

impl<T> Default for Bins<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), latest: Vec::new() }
    }
}

impl<T: Default> Bins<T> {
    #[inline]
    fn at(&mut self, bin: u64, number: usize) -> &mut T {
        let place = match self.latest.get(number) {
            Some(latest) if latest.bin == bin => latest.place,
            _ => self.open(bin, number),
        };
        &mut self.rows[place].1
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, bin: u64, number: usize) -> usize {
        if self.latest.len() <= number {
            self.latest.resize(number + 1, Latest::NONE);
        }
        let latest = self.latest[number];
        let is_earlier = latest.place != usize::MAX && latest.bin > bin;
        if is_earlier && let Some(place) = self.rows.iter().rposition(|(key, _)| *key == (bin, number)) {
            return place;
        }
        let place = self.rows.len();
        self.rows.push(((bin, number), T::default()));
        if !is_earlier {
            self.latest[number] = Latest { bin, place };
        }
        place
    }

    /// By bin, then by number.
    fn sorted(&self) -> impl Iterator<Item = (u64, usize, &T)> {
        let mut rows: Vec<_> = self.rows.iter().map(|((bin, number), seen)| (*bin, *number, seen)).collect();
        rows.sort_unstable_by_key(|(bin, number, _)| (*bin, *number));
        rows.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    proptest::proptest! {
        #[test]
        fn bins_are_those_of_a_map_even_if_time_runs_back(
            steps in proptest::collection::vec((0_u64..3, 0_u64..2, 0_usize..4), 0..200),
        ) {
            let (mut bins, mut map, mut bin) = (Bins::<u64>::default(), BTreeMap::new(), 5_u64);
            for (value, (ahead, back, number)) in (1..).zip(steps) {
                bin = (bin + ahead).saturating_sub(back);
                *bins.at(bin, number) += value;
                *map.entry((bin, number)).or_insert(0) += value;
            }
            let expected: Vec<(u64, usize, u64)> = map.iter().map(|((bin, number), sum)| (*bin, *number, *sum)).collect();
            let found: Vec<_> = bins.sorted().map(|(bin, number, sum)| (bin, number, *sum)).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
