//! What is simulated.

use std::fmt;

use flowstart_congestion::ControllerConfig;
use flowstart_network::LinkConfig;
use flowstart_transport::{ReceiverConfig, SenderConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::SessionConfig;

/// Index of a link in [`SimulationConfig::links`].
pub type LinkId = usize;

/// A whole simulation: links, flows and how long it runs.
///
/// A path is a list of links. A packet of a flow crosses its access link, then the links of
/// `forward` in order (each: queue, transmitter, propagation), then `tail_delay`; its
/// acknowledgement crosses the links of `reverse` and then `return_delay`. So a dumbbell is one
/// link that all flows name, several bottlenecks in a row are several.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// Links in either direction.
    pub links: Vec<LinkConfig>,
    /// Links in parallel (load balancing): where the path of a flow names the first of such a
    /// group, each of its connections takes one of them, by a hash of its number and the seed or as
    /// [`Place::ways`] says. A path that names another of them takes that one. None by default.
    pub ways: Vec<Vec<LinkId>>,
    /// Flows known beforehand.
    pub flows: Vec<FlowConfig>,
    /// Processes that start flows while the simulation runs.
    pub arrivals: Vec<ArrivalConfig>,
    /// Users who ask for one reply after the other.
    pub sessions: Vec<SessionConfig>,
    /// When to stop.
    pub stop: Stop,
    /// Seed of all random streams. Every link, loss process, arrival process and flow has a stream
    /// of its own derived from it, so that adding one does not reshuffle the others.
    pub seed: u64,
    /// Number of the run: independent repetitions of one seed.
    pub run: u64,
}

impl SimulationConfig {
    /// True if a flow may ask routers for a rate (Quick-Start).
    pub(crate) fn asks_routers(&self) -> bool {
        let flows = self.flows.iter().chain(self.arrivals.iter().map(|arrivals| &arrivals.flow));
        let mut flows = flows.chain(self.sessions.iter().map(|session| &session.flow));
        flows.any(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => tcp.controller.start.asks_routers(),
            Traffic::Udp(_) => false,
        })
    }
}

/// When a simulation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At this time.
    At(Time),
    /// When every sized transfer is complete (and no arrivals or sessions are outstanding), or at
    /// this time at the latest.
    WhenComplete(Time),
}

/// The sender's own link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its rate; [`Rate::UNLIMITED`] for none. Its queue is unlimited.
    pub rate: Rate,
    /// One-way propagation delay up to the first link.
    pub delay: Span,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Links from sender to receiver, in order; may be empty.
    pub forward: Vec<LinkId>,
    /// Links from receiver to sender, in order; may be empty.
    pub reverse: Vec<LinkId>,
    /// The sender's access link.
    pub access: Access,
    /// One-way delay from the last forward link to the receiver.
    pub tail_delay: Span,
    /// One-way delay from the last reverse link to the sender.
    pub return_delay: Span,
    /// When it starts (the SYN or the first datagram leaves).
    pub start: Time,
    /// What it sends.
    pub traffic: Traffic,
    /// Any number, handed through to the outcome, for telling groups of flows apart.
    pub group: u32,
    /// Which ways its connections take, and between which hosts it runs.
    pub place: Place,
}

/// Where a flow runs, beyond the links of its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// For the first connection, the second and so on: which of the links in parallel it takes
    /// (their place in [`SimulationConfig::ways`], from 0). Those that nothing is said of are
    /// drawn.
    pub ways: Vec<u32>,
    /// The sender's host, for queues that share capacity between hosts: a number that all flows of
    /// the host have. `None` for a host of its own.
    pub source: Option<u32>,
    /// The receiver's host.
    pub destination: Option<u32>,
    /// The number that its random streams are derived from, which no other flow has; in an arrival
    /// process that of the first transfer, from which the others count on. `None` for how many
    /// flows without one were there before: those with a number leave the others' streams alone.
    pub number: Option<u64>,
}

/// What a flow sends.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// A TCP connection.
    Tcp(Box<TcpConfig>),
    /// Datagrams without acknowledgements.
    Udp(UdpConfig),
}

/// A TCP connection.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Flow start and congestion avoidance.
    pub controller: ControllerConfig,
    /// The sending endpoint.
    pub sender: SenderConfig,
    /// The receiving endpoint.
    pub receiver: ReceiverConfig,
    /// What the application writes.
    pub workload: Workload,
}

/// What an application writes into its socket.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// As much as the connection takes, for ever.
    Greedy,
    /// This much at once, then the end.
    Sized(Bytes),
    /// Messages of `message` bytes at a mean rate of `rate` (payload bits per second).
    Paced {
        /// Mean payload rate.
        rate: Rate,
        /// Bytes per message, at least 1.
        message: Bytes,
        /// How messages are spaced.
        spacing: Spacing,
        /// When the application stops writing, as time after its start; [`Span::MAX`] for never.
        lasting: Span,
    },
    /// The first reply of a [session](SimulationConfig::sessions) that keeps its connection; the
    /// session writes the others.
    Replies(Bytes),
    /// Writes of given sizes at given times after the start, ascending.
    Script(Vec<(Span, Bytes)>),
}

/// How messages or datagrams are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal gaps.
    Constant,
    /// Exponentially distributed gaps (a Poisson process).
    Poisson,
}

/// A datagram flow.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpConfig {
    /// Mean rate, counted on IP packets.
    pub rate: Rate,
    /// Bytes of an IP packet, 28 ..= 65535.
    pub packet: u16,
    /// How datagrams are spaced.
    pub spacing: Spacing,
    /// How long it sends; [`Span::MAX`] for ever.
    pub lasting: Span,
    /// True if datagrams are sent as ECT(0).
    pub ecn: bool,
}

/// A process that starts TCP transfers.
#[derive(Clone, Debug)]
pub struct ArrivalConfig {
    /// The flow each arrival starts; its `start` is when arrivals begin, its workload is replaced
    /// by a size drawn from `sizes`.
    pub flow: FlowConfig,
    /// Mean time between arrivals.
    pub mean_gap: Span,
    /// How arrivals are spaced.
    pub spacing: Spacing,
    /// Transfer sizes.
    pub sizes: Sizes,
    /// Last arrival at this time at the latest.
    pub until: Time,
    /// At most this many arrivals.
    pub count: u64,
}

/// A distribution of transfer sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Always the same.
    Fixed(Bytes),
    /// Pareto with the given shape and scale (smallest value), then clamped to `min ..= max`.
    Pareto {
        /// Shape (alpha) > 0; below 1 the unclamped distribution has no mean.
        shape: f64,
        /// Scale: the smallest value of the unclamped distribution.
        scale: Bytes,
        /// Smaller draws become this.
        min: Bytes,
        /// Larger draws become this.
        max: Bytes,
    },
    /// Pareto truncated to `min ..= max` (drawn by the inverse of the truncated distribution;
    /// nothing is clamped).
    TruncatedPareto {
        /// Shape (alpha) > 0.
        shape: f64,
        /// Smallest value.
        min: Bytes,
        /// Largest value.
        max: Bytes,
    },
    /// Log-normal: exp(N(ln median, sigma^2)), clamped to `min ..= max`.
    LogNormal {
        /// Median.
        median: Bytes,
        /// Standard deviation of the logarithm, >= 0.
        sigma: f64,
        /// Smaller draws become this.
        min: Bytes,
        /// Larger draws become this.
        max: Bytes,
    },
}

/// Why a configuration cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which part, for instance `flows[3].forward[0]`.
    pub place: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for ConfigError {}
