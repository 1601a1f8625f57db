//! A flow in operation: its two endpoints, its application and its access link.

use flowstart_random::{Purpose, Stream};
use flowstart_transport::{Receiver, Sender};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::app::App;
use crate::draw::gap;
use crate::{FlowConfig, FlowId, Traffic, UdpConfig, Workload};
use flowstart_congestion::{Controller, ControllerConfig};

/// Makes the controller of a flow from its number and configuration; see
/// [`Simulation::with_controllers`](crate::Simulation::with_controllers).
pub type MakeController = Box<dyn Fn(FlowId, &ControllerConfig) -> Controller + Send>;

/// A flow that is running, or waiting for its start.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    pub(crate) route: u32,
    pub(crate) access: AccessLink,
    pub(crate) endpoints: Endpoints,
    /// The session whose replies it carries.
    pub(crate) session: Option<u32>,
    /// The pair it is a connection of, and which (0 or 1).
    pub(crate) pair: Option<(u32, u8)>,
}

/// What runs at the two ends.
#[derive(Debug)]
pub(crate) enum Endpoints {
    Tcp(Box<Tcp>),
    Udp(Udp),
}

/// A TCP connection with its application.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) app: App,
    pub(crate) opens: Time,
    pub(crate) opened: bool,
    /// Bytes the receiving application had read when last looked.
    pub(crate) delivered: u64,
    /// Bytes written so far.
    pub(crate) written: u64,
    /// Payload bytes of a full segment.
    pub(crate) mss: u64,
    /// Bytes of its IP packet.
    pub(crate) packet: u32,
    /// When the receiver has this many bytes, what was asked for is complete; [`u64::MAX`] if
    /// nothing in particular is waited for.
    pub(crate) awaited: u64,
}

/// A datagram source with its sink.
#[derive(Debug)]
pub(crate) struct Udp {
    pub(crate) packet: u16,
    pub(crate) ecn: bool,
    pub(crate) deadline: Time,
    pub(crate) sent: u64,
    pub(crate) received: Bytes,
    mean: Span,
    until: Time,
    spacing: crate::Spacing,
    random: Stream,
}

impl Udp {
    /// A datagram has just left; schedules the next one.
    pub(crate) fn advance(&mut self) {
        self.sent += 1;
        let next = self.deadline + gap(self.spacing, self.mean, &mut self.random).max(Span::from_nanos(1));
        self.deadline = if next < self.until { next } else { Time::NEVER };
    }
}

/// The sender's own link: a serializer with an unlimited queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessLink {
    rate: Rate,
    free: Time,
    /// The packet length seen last and its transmission time.
    last: (u16, Span),
}

impl AccessLink {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, free: Time::ZERO, last: (0, Span::ZERO) }
    }

    /// When the last bit of a packet leaves that is sent now.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, bytes: u16) -> Time {
        if self.rate.is_unlimited() {
            return now;
        }
        if self.last.0 != bytes {
            self.last = (bytes, self.rate.transmission_time(Bytes::new(u64::from(bytes))));
        }
        self.free = self.free.max(now) + self.last.1;
        self.free
    }
}

impl Flow {
    /// A flow that starts at `start`, and draws by this number.
    pub(crate) fn new(
        (id, number): (FlowId, u64),
        config: &FlowConfig,
        start: Time,
        route: u32,
        (seed, run): (u64, u64),
        make_controller: &MakeController,
    ) -> Self {
        let stream = || Purpose::Spacing.stream(seed, run, number);
        let endpoints = match &config.traffic {
            Traffic::Tcp(tcp) => {
                let mut controller = tcp.controller.clone();
                controller.seed = Purpose::Controller.seed(seed, run, number);
                Endpoints::Tcp(Box::new(Tcp {
                    sender: Sender::new(&tcp.sender, make_controller(id, &controller)),
                    receiver: Receiver::new(&tcp.receiver),
                    app: App::new(&tcp.workload, start, stream),
                    opens: start,
                    opened: false,
                    delivered: 0,
                    written: 0,
                    mss: u64::from(tcp.sender.mss),
                    packet: tcp.sender.mss.saturating_add(u32::from(tcp.sender.header_bytes)),
                    awaited: match &tcp.workload {
                        Workload::Replies(bytes) => bytes.get(),
                        other => App::size(other).map_or(u64::MAX, Bytes::get),
                    },
                }))
            }
            Traffic::Udp(udp) => Endpoints::Udp(Self::datagrams(udp, start, stream())),
        };
        Self { id, route, access: AccessLink::new(config.access.rate), endpoints, session: None, pair: None }
    }

    fn datagrams(config: &UdpConfig, start: Time, random: Stream) -> Udp {
        Udp {
            packet: config.packet,
            ecn: config.ecn,
            deadline: start,
            sent: 0,
            received: Bytes::ZERO,
            mean: config.rate.transmission_time(Bytes::new(u64::from(config.packet))),
            until: start + config.lasting,
            spacing: config.spacing,
            random,
        }
    }

    /// When this flow next wants to act of itself.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        match &self.endpoints {
            Endpoints::Tcp(tcp) if tcp.opened => {
                tcp.sender.deadline().min(tcp.receiver.deadline()).min(tcp.app.deadline)
            }
            Endpoints::Tcp(tcp) => tcp.opens,
            Endpoints::Udp(udp) => udp.deadline,
        }
    }

    /// When the host that sends next wants to act of itself: its transport or its application.
    #[inline]
    pub(crate) fn sender_deadline(&self) -> Time {
        match &self.endpoints {
            Endpoints::Tcp(tcp) if tcp.opened => tcp.sender.deadline().min(tcp.app.deadline),
            Endpoints::Tcp(tcp) => tcp.opens,
            Endpoints::Udp(udp) => udp.deadline,
        }
    }

    /// When the host that receives next wants to act of itself.
    #[inline]
    pub(crate) fn receiver_deadline(&self) -> Time {
        match &self.endpoints {
            Endpoints::Tcp(tcp) if tcp.opened => tcp.receiver.deadline(),
            _ => Time::NEVER,
        }
    }
}
