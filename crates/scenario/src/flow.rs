//! Flows: who sends what, when, and over which way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, Pacing, StartConfig};
use flowstart_transport::{EcnMode, ReceiveWindow, ReceiverConfig, SenderConfig, WindowRules};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::{Dialect, Load, RateSpec, SizeSpec};

/// TCP flows: one, or `count` of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// What tables and pictures call it; default: its algorithm, with `run --real` its `kernel` if
    /// that is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Flow start and congestion avoidance as "START+AVOIDANCE", for instance "hystart+cubic"; the
    /// avoidance alone gets its own start (BBR), or slow start: "cubic" is slow_start+cubic here,
    /// and hystart+cubic as a contestant of a race. Default: "hystart+cubic".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Whose habits it has where nothing else is said: `linux` or `ns3`; default: the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// Congestion control of the Linux kernel that runs in its place with `run --real`; default:
    /// the kernel's own of the avoidance's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The flow start with constants of its own, instead of the one in `algorithm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_start: Option<StartConfig>,
    /// The congestion avoidance with constants of its own, instead of the one in `algorithm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avoidance: Option<AvoidanceConfig>,
    /// When it starts.
    #[serde(default, deserialize_with = "moment")]
    pub start: Span,
    /// How many flows of this kind.
    #[serde(default = "one")]
    pub count: u32,
    /// Time between the starts of the flows of this kind.
    #[serde(default)]
    pub every: Span,
    /// Bytes to transfer; without it, and without `paced` or `writes`, the flow is greedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// An application that writes at a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced: Option<PacedSpec>,
    /// An application that writes given amounts at given times after the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<WriteSpec>,
    /// A CSV file of transfers of this kind, relative to the scenario: columns `start` and `bytes`,
    /// for instance "0.5 s" and "100 kB" (bare numbers are seconds and bytes). One flow per line;
    /// replaces `start`, `count`, `every` and `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Base round-trip time, if it differs from the path's. With `[[link]]`: what the links on the
    /// way there and back leave of it lies half before the first and half on the way back. Without
    /// it, the round trip is that of those links alone: without `reverse` ACKs are back at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Span>,
    /// Names of the links from sender to receiver, at least one; default: the path's bottleneck.
    /// With `["reverse"]` it is sent over the path's way back, whose delay it has; its ACKs then
    /// cross the bottleneck unless `reverse` says otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "links")]
    pub forward: Vec<String>,
    /// Names of the links from receiver to sender; default, and of an empty list: the path's way
    /// back (its bottleneck for what is sent over the way back), with `[[link]]` none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverse: Vec<String>,
    /// Where there are ways in parallel: which one its connections take, 1 for the first. One
    /// number for each connection (a start that looks for fair queuing has two); those of which
    /// nothing is said are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<u32>,
    /// The host that sends: any name; flows with the same one are of one host, which matters to
    /// queues that share capacity between hosts (`host_fairness`). Default: every flow comes from a
    /// host of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The host that receives; as `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Initial window in packets.
    #[serde(default = "ten")]
    pub initial_window: u32,
    /// Slow-start threshold in packets the connection begins with, at least 2; default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<u32>,
    /// Spacing of packets by rate when neither start nor avoidance spaces them; default off, as
    /// Linux does with CUBIC and Reno.
    #[serde(default)]
    pub pacing: Pacing,
    /// A rate that a start leaves behind, which paces the flow until the avoidance or `pacing` has
    /// one of its own, holds for so many smoothed round-trip times at most; default 2: one to fill
    /// the window, one for what the estimate of the rate was too low. Needs a start that measures a
    /// rate (those that chirp, `bbr_start`, detectors of fair queuing), and no `pacing`.
    #[serde(default = "left_behind_rtts")]
    pub left_behind_rtts: u32,
    /// Congestion marks; default: as the avoidance wants it (DCTCP: `dctcp`, others: `off`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnMode>,
    /// A receive window that grows as that of a kernel does; default: it never limits, or
    /// `receiver.receive_buffer`. Figures of one's own: `receiver.window`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<ReceiveWindowKind>,
    /// New data leaves in bursts, as with the segmentation offload of a kernel; default: segment by
    /// segment. Figures of one's own: `sender.offload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadKind>,
    /// Segments that arrive close together are merged and acknowledged as one, as with the receive
    /// offload (GRO) of a kernel whose network card looks at them every 50 us; default: each is
    /// taken in as it arrives. Figures of one's own: `receiver.offload`. No dialect sets it: it
    /// depends on the network card, and the emulator's hosts have it switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_offload: Option<OffloadKind>,
    /// Everything else about the sending endpoint.
    #[serde(default)]
    pub sender: SenderConfig,
    /// Everything else about the receiving endpoint.
    #[serde(default)]
    pub receiver: ReceiverConfig,
}

/// A kernel whose receive window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReceiveWindowKind {
    /// Linux of today, that is 6.18.
    #[serde(rename = "linux")]
    Linux,
    /// Linux 6.1.
    #[serde(rename = "linux-6.1")]
    Linux6_1,
    /// It does not grow, whatever the dialect has; `receiver.receive_buffer` may limit it.
    #[serde(rename = "none")]
    None,
}

impl ReceiveWindowKind {
    /// The window by that kernel's default settings; `None` if it does not grow.
    #[must_use]
    pub fn window(self) -> Option<ReceiveWindow> {
        let rules = match self {
            Self::Linux => WindowRules::Linux6_18,
            Self::Linux6_1 => WindowRules::Linux6_1,
            Self::None => return None,
        };
        Some(ReceiveWindow::of(rules))
    }
}

/// A kernel whose hosts send or merge bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffloadKind {
    /// Linux of today, that is 6.18.
    Linux,
    /// Segment by segment, whatever the dialect has.
    None,
}

/// An application that writes messages at a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacedSpec {
    /// Mean payload rate.
    pub rate: Rate,
    /// Bytes per message.
    pub message: Bytes,
    /// How messages are spaced.
    #[serde(default)]
    pub spacing: SpacingSpec,
    /// How long it writes; default: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,
}

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteSpec {
    /// After the start of the flow.
    pub after: Span,
    /// How much.
    pub bytes: Bytes,
}

/// How messages, datagrams or arrivals are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpacingSpec {
    /// Equal gaps.
    #[default]
    Constant,
    /// Exponential gaps.
    Poisson,
}

/// Datagrams without acknowledgements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpSpec {
    /// What tables and pictures call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Mean rate, counted on IP packets.
    pub rate: Rate,
    /// Length of an IP packet.
    #[serde(default = "full_packet")]
    pub packet: Bytes,
    /// How datagrams are spaced.
    #[serde(default)]
    pub spacing: SpacingSpec,
    /// When it starts.
    #[serde(default, deserialize_with = "moment")]
    pub start: Span,
    /// How long it sends; default: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,
    /// Send as ECN-capable (ECT(0)).
    #[serde(default)]
    pub ecn: bool,
    /// Base round-trip time, if it differs from the path's: half of it is the way there (at least
    /// that of its links).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Span>,
    /// Names of the links on its way, at least one; default: the path's bottleneck. `["reverse"]`
    /// is the path's way back, with its delay.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "links")]
    pub forward: Vec<String>,
    /// Which of several ways in parallel it takes, 1 for the first; default: drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<u32>,
    /// The host that sends; default: one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The host that receives; default: one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl UdpSpec {
    /// Datagrams of this mean rate and size (IP packets) over the path, from the beginning to the
    /// end, with exponential gaps.
    #[must_use]
    pub fn poisson(rate: Rate, packet: Bytes) -> Self {
        Self {
            name: None,
            rate,
            packet,
            spacing: SpacingSpec::Poisson,
            start: Span::ZERO,
            lasting: None,
            ecn: false,
            rtt: None,
            forward: Vec::new(),
            way: None,
            from: None,
            to: None,
        }
    }
}

/// TCP transfers that arrive at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrivalSpec {
    /// Mean time between arrivals. Either this or `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_gap: Option<Span>,
    /// Offered load: mean of the sizes (stream bytes, headers not counted) over mean gap, as a
    /// share of the path's capacity, of one that changes of its mean while transfers arrive. Gives
    /// the mean gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// How arrivals are spaced; default Poisson.
    #[serde(default = "poisson")]
    pub spacing: SpacingSpec,
    /// Transfer sizes.
    pub sizes: SizeSpec,
    /// Last arrival at this time, after the `start` of its flow; default: the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Most arrivals; default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// The flow each arrival starts.
    pub flow: FlowSpec,
}

impl ArrivalSpec {
    /// The rate that `load` is a share of, in a run that is so long.
    pub(super) fn carried(&self, capacity: &RateSpec, duration: Span) -> Rate {
        let to = self.until.unwrap_or(duration).min(duration);
        capacity.mean(self.flow.start.min(to), to)
    }
}

fn one() -> u32 {
    1
}

fn left_behind_rtts() -> u32 {
    ControllerConfig::LEFT_BEHIND_RTTS
}

fn ten() -> u32 {
    10
}

fn full_packet() -> Bytes {
    Bytes::new(1500)
}

fn poisson() -> SpacingSpec {
    SpacingSpec::Poisson
}

/// Names of links, of which there is one at least: none would be as if nothing was said.
fn links<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let links = Vec::deserialize(deserializer)?;
    if links.is_empty() {
        return Err(serde::de::Error::custom(
            "an empty list names no link to be sent over; name one, or leave this out for the path's bottleneck",
        ));
    }
    Ok(links)
}

/// A time since the beginning of the run: of a bare number it is said that it may be of seconds.
fn moment<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    <Time as serde::Deserialize>::deserialize(deserializer).map(|moment| moment.since(Time::ZERO))
}
