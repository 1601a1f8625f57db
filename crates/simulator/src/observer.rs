//! Watching a simulation.

use flowstart_network::{DropReason, Packet};
use flowstart_transport::Sender;
use flowstart_units::Time;

use crate::LinkId;

/// Number of a flow: its index in [`crate::SimulationConfig::flows`]; flows that arrive while the
/// simulation runs follow in order of arrival.
pub type FlowId = u32;

/// Sees what happens in a simulation. Every method has an empty default, so an observer pays only
/// for what it watches.
///
/// An observer of one's own, here the longest queue of every link:
///
/// ```
/// use flowstart_network::{LinkConfig, Packet, QueueConfig, RateSchedule};
/// use flowstart_simulator::{
///     Access, FlowConfig, LinkId, Observer, Simulation, SimulationConfig, Spacing, Stop, Traffic,
///     UdpConfig,
/// };
/// use flowstart_units::{Rate, Span, Time};
///
/// #[derive(Default)]
/// struct LongestQueue(Vec<u64>);
///
/// impl Observer for LongestQueue {
///     fn arrived(&mut self, _: Time, link: LinkId, _: &Packet, packets: u64, _bytes: u64) {
///         self.0.resize(self.0.len().max(link + 1), 0);
///         self.0[link] = self.0[link].max(packets);
///     }
/// }
///
/// // Datagrams at 20 Mbit/s into a link of 10 Mbit/s that stores 30 packets.
/// let rate = RateSchedule::Constant(Rate::from_mbps(10));
/// let link = LinkConfig::new(rate, Span::from_millis(5), QueueConfig::drop_tail(30));
/// let udp = UdpConfig {
///     rate: Rate::from_mbps(20),
///     packet: 1500,
///     spacing: Spacing::Constant,
///     lasting: Span::from_secs(1),
///     ecn: false,
/// };
/// let flow = FlowConfig {
///     forward: vec![0],
///     reverse: vec![],
///     return_delay: Span::from_millis(5),
///     access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
///     tail_delay: Span::ZERO,
///     start: Time::ZERO,
///     traffic: Traffic::Udp(udp),
///     group: 0,
///     place: Default::default(),
/// };
/// let config = SimulationConfig {
///     links: vec![link],
///     ways: vec![],
///     flows: vec![flow],
///     arrivals: vec![],
///     sessions: vec![],
///     stop: Stop::At(Time::ZERO + Span::from_secs(2)),
///     seed: 1,
///     run: 0,
/// };
/// let (outcome, longest) = Simulation::new(&config, LongestQueue::default())?.run();
/// assert_eq!(longest.0, [30]);
/// assert!(outcome.links[0].dropped > 700);
/// # Ok::<(), flowstart_simulator::ConfigError>(())
/// ```
pub trait Observer {
    /// The application at the sender has written `total` bytes into the socket so far; not called
    /// for endless writes.
    #[inline]
    fn written(&mut self, _now: Time, _flow: FlowId, _total: u64) {}

    /// A packet (data, ACK or datagram) left an endpoint's stack.
    #[inline]
    fn sent(&mut self, _now: Time, _packet: &Packet) {}

    /// A packet arrived at a link's queue, before the queue decides. `stored_packets`,
    /// `stored_bytes`: what it finds there.
    #[inline]
    fn arrived(&mut self, _now: Time, _link: LinkId, _packet: &Packet, _stored_packets: u64, _stored_bytes: u64) {}

    /// A link dropped a packet: its queue, or with `reason` `None` its loss process.
    #[inline]
    fn dropped(&mut self, _now: Time, _link: LinkId, _packet: &Packet, _reason: Option<DropReason>) {}

    /// The transmission of a packet began: it left the queue (on links that may not begin at once
    /// see [`transmitted_later`](Self::transmitted_later)). It arrived there at `arrived`; its
    /// last bit leaves at `done`. `packet.ecn` tells whether it is marked.
    #[inline]
    fn transmitted(&mut self, _now: Time, _link: LinkId, _packet: &Packet, _arrived: Time, _done: Time) {}

    /// [`transmitted`](Self::transmitted) on a link that may not begin at once: `begun` is when it
    /// does, after the wait for its turn, for tokens or for the end of an outage. What the packet
    /// waited is from `arrived` to `begun`. Without a method of its own it is as if the
    /// transmission had begun at `now`, so that time never goes back.
    #[inline]
    fn transmitted_later(&mut self, now: Time, link: LinkId, packet: &Packet, _begun: Time, arrived: Time, done: Time) {
        self.transmitted(now, link, packet, arrived, done);
    }

    /// A packet reached its endpoint.
    #[inline]
    fn received(&mut self, _now: Time, _packet: &Packet) {}

    /// The packet that was just [received](Self::received) came on one of two connections that
    /// carry one stream: its bytes end there in the stream of `flow`, whose
    /// [`delivered`](Self::delivered) says when they are read.
    #[inline]
    fn placed(&mut self, _packet: &Packet, _flow: FlowId, _end: u64) {}

    /// The application at the receiver has read `total` bytes of the stream so far. Called when
    /// that grows.
    #[inline]
    fn delivered(&mut self, _now: Time, _flow: FlowId, _total: u64) {}

    /// A sender has processed an ACK, a timer or a write, and sent what it could.
    #[inline]
    fn sender(&mut self, _now: Time, _flow: FlowId, _sender: &Sender) {}

    /// What is known of a sender that is not this crate's (a kernel's, in the emulator): its window
    /// in packets, and when its start ended. Called instead of [`sender`](Self::sender).
    #[inline]
    fn foreign_sender(&mut self, _now: Time, _flow: FlowId, _cwnd: u32, _exited: Option<Time>) {}

    /// What this flow sends again cannot be told from what it sends for the first time (QUIC's
    /// packets, from outside). Said before anything of it is sent.
    #[inline]
    fn hides_repairs(&mut self, _flow: FlowId) {}

    /// A flow began (its first packet is about to leave).
    #[inline]
    fn started(&mut self, _now: Time, _flow: FlowId) {}

    /// A sized transfer is complete: the receiver has all of its bytes.
    #[inline]
    fn completed(&mut self, _now: Time, _flow: FlowId) {}
}

/// Watches nothing, for free.
impl Observer for () {}

/// Two observers at once.
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn written(&mut self, now: Time, flow: FlowId, total: u64) {
        self.0.written(now, flow, total);
        self.1.written(now, flow, total);
    }

    #[inline]
    fn sent(&mut self, now: Time, packet: &Packet) {
        self.0.sent(now, packet);
        self.1.sent(now, packet);
    }

    #[inline]
    fn arrived(&mut self, now: Time, link: LinkId, packet: &Packet, stored_packets: u64, stored_bytes: u64) {
        self.0.arrived(now, link, packet, stored_packets, stored_bytes);
        self.1.arrived(now, link, packet, stored_packets, stored_bytes);
    }

    #[inline]
    fn dropped(&mut self, now: Time, link: LinkId, packet: &Packet, reason: Option<DropReason>) {
        self.0.dropped(now, link, packet, reason);
        self.1.dropped(now, link, packet, reason);
    }

    #[inline]
    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, done: Time) {
        self.0.transmitted(now, link, packet, arrived, done);
        self.1.transmitted(now, link, packet, arrived, done);
    }

    #[inline]
    fn transmitted_later(&mut self, now: Time, link: LinkId, packet: &Packet, begun: Time, arrived: Time, done: Time) {
        self.0.transmitted_later(now, link, packet, begun, arrived, done);
        self.1.transmitted_later(now, link, packet, begun, arrived, done);
    }

    #[inline]
    fn received(&mut self, now: Time, packet: &Packet) {
        self.0.received(now, packet);
        self.1.received(now, packet);
    }

    #[inline]
    fn placed(&mut self, packet: &Packet, flow: FlowId, end: u64) {
        self.0.placed(packet, flow, end);
        self.1.placed(packet, flow, end);
    }

    #[inline]
    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        self.0.delivered(now, flow, total);
        self.1.delivered(now, flow, total);
    }

    #[inline]
    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        self.0.sender(now, flow, sender);
        self.1.sender(now, flow, sender);
    }

    #[inline]
    fn foreign_sender(&mut self, now: Time, flow: FlowId, cwnd: u32, exited: Option<Time>) {
        self.0.foreign_sender(now, flow, cwnd, exited);
        self.1.foreign_sender(now, flow, cwnd, exited);
    }

    #[inline]
    fn hides_repairs(&mut self, flow: FlowId) {
        self.0.hides_repairs(flow);
        self.1.hides_repairs(flow);
    }

    #[inline]
    fn started(&mut self, now: Time, flow: FlowId) {
        self.0.started(now, flow);
        self.1.started(now, flow);
    }

    #[inline]
    fn completed(&mut self, now: Time, flow: FlowId) {
        self.0.completed(now, flow);
        self.1.completed(now, flow);
    }
}
