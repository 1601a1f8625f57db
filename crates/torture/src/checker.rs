//! An observer to which nothing must look wrong.

use std::collections::BTreeMap;
use std::panic::panic_any;

use flowstart_congestion::ControllerConfig;
use flowstart_network::{DropReason, Ecn, Packet, packet::Body};
use flowstart_simulator::{FlowId, LinkId, Observer, Outcome, SimulationConfig, Traffic};
use flowstart_transport::Sender;
use flowstart_units::Time;

use crate::links::LinkView;

/// What a checker panics with when it has seen more than it was asked to: not a violation.
#[derive(Clone, Copy, Debug)]
pub struct Enough;

/// What was seen of a flow.
#[derive(Debug, Default)]
struct FlowView {
    started: Option<Time>,
    /// Packets that left the endpoints and have neither arrived nor been dropped.
    in_network: u64,
    data_sent: u64,
    retransmitted: u64,
    /// Packets with data that were dropped, and that arrived with a mark.
    dropped: u64,
    marked: u64,
    /// IP bytes of datagrams that arrived.
    datagram_bytes: u64,
    /// Next new byte of the stream.
    next: u64,
    /// The stream arrived up to here, and these pieces beyond.
    whole: u64,
    pieces: BTreeMap<u64, u64>,
    delivered: u64,
    completed: Option<Time>,
    /// Packets with data since the sender was seen last.
    burst: u64,
    /// Tail loss probes when it was seen last.
    probes: u64,
    /// When the sender wants to act, and whether something happened since it said so.
    deadline: Time,
    woken: bool,
}

impl FlowView {
    /// Bytes of the stream that arrived, counted once where they did so in one piece.
    fn received(&self) -> u64 {
        self.whole + self.pieces.iter().map(|(from, to)| to - from.max(&self.whole)).sum::<u64>()
    }

    fn arrived(&mut self, from: u64, to: u64) {
        let entry = self.pieces.entry(from).or_insert(to);
        *entry = (*entry).max(to);
        while let Some((from, to)) = self.pieces.first_key_value().map(|(from, to)| (*from, *to))
            && from <= self.whole
        {
            self.whole = self.whole.max(to);
            self.pieces.remove(&from);
        }
    }
}

/// Checks as it watches; panics with what is wrong.
#[derive(Debug)]
pub struct Checker {
    now: Time,
    links: Vec<LinkView>,
    flows: Vec<FlowView>,
    /// Some flow is two connections, which act on what the other one hears.
    pairs: bool,
    /// Packets that left endpoints.
    packets: u64,
    /// Times something was seen.
    seen: u64,
    /// More than this is [`Enough`].
    most: u64,
}

impl Checker {
    /// For a simulation of this configuration, of which at most `most` happenings are to be
    /// watched.
    #[must_use]
    pub fn new(config: &SimulationConfig, most: u64) -> Self {
        let sessions = config.sessions.iter().map(|session| &session.flow);
        let flows = config.flows.iter().chain(config.arrivals.iter().map(|arrivals| &arrivals.flow)).chain(sessions);
        let pairs = flows.into_iter().any(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => is_pair(&tcp.controller),
            Traffic::Udp(_) => false,
        });
        Self {
            now: Time::ZERO,
            links: config.links.iter().map(LinkView::new).collect(),
            flows: Vec::new(),
            pairs,
            packets: 0,
            seen: 0,
            most,
        }
    }

    /// Packets that left endpoints so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Happenings so far.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn at(&mut self, now: Time) {
        assert!(now >= self.now, "time went back");
        self.now = now;
        self.seen += 1;
        if self.seen > self.most {
            panic_any(Enough);
        }
    }

    fn flow(&mut self, flow: FlowId) -> &mut FlowView {
        let index = flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, FlowView::default);
        }
        &mut self.flows[index]
    }

    /// The simulation is over with `stored` packets in the network: what it says must be what was
    /// seen.
    ///
    /// # Panics
    /// If it is not.
    pub fn ended(&mut self, outcome: &Outcome, stored: u64) {
        let on_their_way: u64 = self.flows.iter().map(|flow| flow.in_network).sum();
        assert_eq!(on_their_way, stored, "packets are not conserved");
        let waiting: u64 = self.links.iter().map(LinkView::stored).sum();
        assert!(waiting <= stored, "more packets wait at links than there are");
        for (link, said) in self.links.iter().zip(&outcome.links) {
            link.ended(outcome.ended, said);
        }
        let sent: u64 = self.flows.iter().map(|flow| flow.data_sent).sum();
        assert_eq!(outcome.data_packets, sent, "data packets of the whole simulation");
        assert!(self.flows.len() <= outcome.flows.len(), "a flow nobody knows");
        self.flows.resize_with(outcome.flows.len(), FlowView::default);
        let mut paired = vec![false; outcome.flows.len()];
        for (number, flow) in outcome.flows.iter().enumerate() {
            if let Some(first) = flow.companion_of {
                (paired[number], paired[first as usize]) = (true, true);
                // What is lost on one may be repeated on the other: pieces count as well.
                let whole = self.flows[number].received() + self.flows[first as usize].received();
                assert!(
                    outcome.flows[first as usize].delivered.get() <= whole,
                    "two connections delivered more than arrived"
                );
            }
        }
        for ((view, said), paired) in self.flows.iter().zip(&outcome.flows).zip(paired) {
            assert_eq!(said.packets_sent, view.data_sent, "a flow's packets");
            assert_eq!(said.retransmitted, view.retransmitted, "a flow's retransmissions");
            assert_eq!(said.dropped, view.dropped, "a flow's drops");
            assert!(said.dropped_in_start <= said.dropped, "more drops in the start than in all");
            assert_eq!(said.marked, view.marked, "a flow's marks");
            assert_eq!(said.completed, view.completed, "when a flow was complete");
            if view.datagram_bytes > 0 {
                assert_eq!(said.delivered.get(), view.datagram_bytes, "a flow's datagrams");
                continue;
            }
            assert_eq!(said.delivered.get(), view.delivered, "a flow's bytes");
            if let (Some(size), Some(_)) = (said.size, said.completed) {
                assert_eq!(said.delivered, size, "a complete transfer is not its size");
                assert!(paired || view.whole >= size.get(), "a complete transfer did not arrive");
            }
            assert!(paired || view.delivered <= view.whole, "a flow delivered more than arrived");
        }
    }
}

fn is_pair(config: &ControllerConfig) -> bool {
    config.start.connections() > 1
}

impl Observer for Checker {
    fn written(&mut self, now: Time, flow: FlowId, _total: u64) {
        self.at(now);
        self.flow(flow).woken = true;
    }

    fn sent(&mut self, now: Time, packet: &Packet) {
        self.at(now);
        self.packets += 1;
        let timeless = self.pairs;
        let flow = self.flow(packet.flow);
        flow.in_network += 1;
        match &packet.body {
            Body::Segment(segment) => {
                assert_eq!(segment.sent_at, now, "a segment carries another time than that at which it left");
                if segment.payload == 0 {
                    return;
                }
                flow.data_sent += 1;
                flow.burst += 1;
                let end = segment.seq + u64::from(segment.payload);
                if segment.retransmission {
                    flow.retransmitted += 1;
                    assert!(end <= flow.next, "a retransmission of what was never sent");
                } else {
                    assert_eq!(segment.seq, flow.next, "new data that is not the next of the stream");
                    flow.next = end;
                }
                assert!(timeless || flow.woken || now >= flow.deadline, "a packet left before its time");
            }
            Body::Datagram(datagram) => {
                assert_eq!(datagram.sent_at, now, "a datagram carries another time than that at which it left");
                assert_eq!(datagram.number, flow.data_sent, "datagrams are not counted in order");
                flow.data_sent += 1;
            }
            Body::Ack(_) => {}
        }
    }

    fn arrived(&mut self, now: Time, link: LinkId, packet: &Packet, packets: u64, bytes: u64) {
        self.at(now);
        self.links[link].arrived(now, packet, packets, bytes);
    }

    fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, reason: Option<DropReason>) {
        self.at(now);
        self.links[link].dropped(now, packet, reason.is_none());
        let flow = self.flow(packet.flow);
        flow.in_network -= 1;
        match &packet.body {
            Body::Segment(segment) => flow.dropped += u64::from(segment.payload > 0),
            Body::Datagram(_) => flow.dropped += 1,
            Body::Ack(_) => {}
        }
    }

    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, done: Time) {
        self.at(now);
        self.links[link].transmitted(now, now, packet, arrived, done);
    }

    fn transmitted_later(&mut self, now: Time, link: LinkId, packet: &Packet, begun: Time, arrived: Time, done: Time) {
        self.at(now);
        self.links[link].transmitted(now, begun, packet, arrived, done);
    }

    fn received(&mut self, now: Time, packet: &Packet) {
        self.at(now);
        let flow = self.flow(packet.flow);
        assert!(flow.in_network > 0, "a packet arrived that nobody sent");
        flow.in_network -= 1;
        match &packet.body {
            Body::Segment(segment) => {
                assert!(segment.sent_at <= now, "a segment arrived before it was sent");
                if segment.payload > 0 {
                    flow.arrived(segment.seq, segment.seq + u64::from(segment.payload));
                }
            }
            Body::Datagram(_) => flow.datagram_bytes += u64::from(packet.bytes),
            Body::Ack(ack) => {
                flow.woken = true;
                assert!(ack.ack <= flow.next, "an ACK of what was never sent");
                return;
            }
        }
        let data = !matches!(&packet.body, Body::Segment(segment) if segment.payload == 0);
        flow.marked += u64::from(data && packet.ecn == Ecn::Ce);
    }

    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        self.at(now);
        let flow = self.flow(flow);
        assert!(total > flow.delivered, "an application read less than before");
        flow.delivered = total;
    }

    fn sender(&mut self, now: Time, id: FlowId, sender: &Sender) {
        self.at(now);
        let flow = self.flow(id);
        let (stats, cwnd) = (sender.stats(), sender.controller().cwnd());
        assert!(cwnd >= 1, "a window of nothing");
        // A tail loss probe leaves whatever the window is (RFC 8985 section 7.3), and nothing more
        // with it if that is shut.
        let probe = stats.tail_loss_probes > flow.probes;
        flow.probes = stats.tail_loss_probes;
        let burst = std::mem::take(&mut flow.burst);
        assert!(
            burst == 0 || stats.in_flight <= cwnd || (probe && burst == 1),
            "{} packets in flight with a window of {cwnd}",
            stats.in_flight
        );
        // A packet that was sent again counts twice where it did not count as lost, or does no
        // longer (a probe, a loss that was undone), as in Linux (`tcp_packets_in_flight`): so at
        // most as many more as were sent again. Which of them are meant cannot be seen from
        // outside; the tests of the scoreboard hold every counter against a model.
        let out = u64::from(stats.packets_out);
        assert!(
            u64::from(stats.in_flight) <= out + out.min(flow.retransmitted),
            "{} packets in flight, {out} out, {} sent again",
            stats.in_flight,
            flow.retransmitted
        );
        assert_eq!(stats.packets_sent, flow.data_sent, "a sender's packets");
        assert!(stats.una <= stats.next && stats.next == flow.next, "a sender's place in the stream");
        flow.deadline = sender.deadline();
        flow.woken = false;
    }

    fn started(&mut self, now: Time, flow: FlowId) {
        self.at(now);
        let flow = self.flow(flow);
        assert_eq!(flow.started, None, "a flow started twice");
        flow.started = Some(now);
    }

    fn completed(&mut self, now: Time, flow: FlowId) {
        self.at(now);
        let flow = self.flow(flow);
        assert_eq!(flow.completed, None, "a transfer was completed twice");
        flow.completed = Some(now);
    }
}
