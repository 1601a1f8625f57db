//! Built-in senders and receivers on the kernel's TCP and UDP: bulk, sized, paced and scripted,
//! like the simulator's applications, and users who ask servers for one reply after the other.

mod play;
mod scene;
mod session;
mod stamps;
mod tcp;
mod tcp_info;
mod udp;

use flowstart_random::{Stream, stream, unit};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::config::HostId;
use crate::wire::FlowKey;

pub use play::{MOST_CONNECTIONS, port_of, run, run_watched};
pub use tcp::{congestion_controls, has_congestion_control};
pub use tcp_info::TcpInfo;

/// A flow between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    /// Who sends.
    pub from: HostId,
    /// Who receives.
    pub to: HostId,
    /// When, on the world's clock.
    pub start: Time,
    /// What.
    pub traffic: Traffic,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// A TCP connection.
    Tcp {
        /// Congestion control of the kernel by name; `None` for the system's default.
        congestion: Option<String>,
        /// What the application writes.
        workload: Workload,
    },
    /// Datagrams.
    Udp {
        /// Mean rate, counted on IP packets.
        rate: Rate,
        /// Bytes of an IPv4 packet, at least 36.
        packet: u16,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// How long.
        lasting: Span,
        /// Send as ECN-capable (ECT(0)).
        ecn: bool,
    },
}

/// What an application writes into its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// As much as the connection takes.
    Greedy,
    /// This much, then the end.
    Sized(Bytes),
    /// Messages at a mean rate.
    Paced {
        /// Mean payload rate.
        rate: Rate,
        /// Bytes per message.
        message: Bytes,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// How long.
        lasting: Span,
    },
    /// Writes of these sizes at these times after the start, ascending.
    Script(Vec<(Span, Bytes)>),
}

impl Workload {
    /// Size of the whole stream, if it is known beforehand and ends.
    #[must_use]
    pub fn size(&self) -> Option<Bytes> {
        match self {
            Self::Greedy | Self::Paced { .. } => None,
            Self::Sized(size) => Some(*size),
            Self::Script(writes) => Some(writes.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum + *bytes)),
        }
    }
}

impl Traffic {
    /// Size of the transfer, if it is one and ends.
    #[must_use]
    pub fn size(&self) -> Option<Bytes> {
        match self {
            Self::Tcp { workload, .. } => workload.size(),
            Self::Udp { .. } => None,
        }
    }
}

/// A user who asks a server for one reply after the other: over real connections that the user's
/// host opens, with real requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Where the replies come from.
    pub server: HostId,
    /// Where the user is.
    pub user: HostId,
    /// When the first pause begins, on the world's clock.
    pub start: Time,
    /// Congestion control of the server's kernel by name; `None` for the system's default.
    pub congestion: Option<String>,
    /// All replies on one connection instead of a connection for each.
    pub persistent: bool,
    /// The pause before each request (from the end of the last reply), and the bytes of its reply.
    pub replies: Vec<(Span, Bytes)>,
}

/// How long, and what is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunConfig {
    /// When everything ends, on the world's clock.
    pub until: Time,
    /// The world's links end at the same time ([`World::end_at`](crate::World::end_at)), so that
    /// their sums and records are of exactly that time.
    pub ends_world: bool,
    /// End as soon as all sized transfers are complete and all users have all replies.
    pub stop_when_complete: bool,
    /// How often the kernel is asked about connections; zero for only at the end.
    pub sample: Span,
    /// Seed of random gaps, which are those of the simulator's flows of the same numbers.
    pub seed: u64,
    /// Number of the run. Each has random streams of its own.
    pub run: u64,
    /// The number of a paced TCP flow whose socket is asked when the kernel sends what was written;
    /// `None` for none.
    pub stamped: Option<usize>,
}

/// Who stamped what an application had written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampedBy {
    /// The kernel, as it handed the packet to the interface's queueing discipline.
    Scheduler,
    /// The interface's driver, as it took the packet from there.
    Driver,
}

/// When the kernel sent what was written up to some byte, by the socket's own word
/// (`SO_TIMESTAMPING`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketStamp {
    /// Bytes written up to there: the end of one of the application's writes. Writes that TCP
    /// joined in one buffer have the stamp of the last.
    pub written: u64,
    /// Who stamped it.
    pub by: StampedBy,
    /// When, on the world's clock. What is sent again is stamped again.
    pub at: Time,
}

/// What the kernel said of a connection at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Time,
    /// What.
    pub info: TcpInfo,
    /// Bytes that the receiving application had read.
    pub delivered: u64,
}

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowOutcome {
    /// Addresses and ports; `None` if it never began.
    pub key: Option<FlowKey>,
    /// When its SYN or first datagram left.
    pub started: Option<Time>,
    /// When the receiving application had read all of a sized transfer.
    pub completed: Option<Time>,
    /// Bytes that the receiving application read (datagrams: IP bytes).
    pub delivered: u64,
    /// What the kernel said at the end.
    pub info: Option<TcpInfo>,
    /// What it said meanwhile.
    pub samples: Vec<Sample>,
    /// When the kernel sent what was written, if that was asked for ([`RunConfig::stamped`]).
    pub stamps: Vec<SocketStamp>,
    /// Why the kernel refused to say so, if it did.
    pub unstamped: Option<String>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What became of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOutcome {
    /// When each reply was complete, in order; replies that were not are missing.
    pub done: Vec<Time>,
    /// Its connections, in order, with the size of those that carry one reply.
    pub connections: Vec<(Option<Bytes>, FlowOutcome)>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What became of everything.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Of the flows, in their order.
    pub flows: Vec<FlowOutcome>,
    /// Of the sessions, in their order.
    pub sessions: Vec<SessionOutcome>,
}

/// Gaps between messages.
struct Gaps {
    mean: Span,
    random: Option<Stream>,
}

impl Gaps {
    fn new(mean: Span, poisson: bool, seed: u64) -> Self {
        Self { mean, random: poisson.then(|| stream(seed)) }
    }

    fn next(&mut self) -> Span {
        let Some(random) = &mut self.random else { return self.mean };
        self.mean.mul_f64(-unit(random).ln())
    }
}
