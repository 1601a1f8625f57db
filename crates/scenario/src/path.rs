//! The path: a single bottleneck, or links with names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_network::MediumConfig;
use flowstart_units::{Rate, Span};

use super::{Buffer, JitterSpec, LossSpec, QueueSpec, QuickStartSpec, RateSpec, RcpSpec, WaySpec};

/// What flows call the link of a path.
pub(crate) const BOTTLENECK: &str = "bottleneck";
/// What flows call a path's way back.
pub(crate) const WAY_BACK: &str = "reverse";

/// One bottleneck that all flows share, with a way back that is never congested unless it has a
/// capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Capacity of the bottleneck, counted on IP packets plus `overhead`.
    pub capacity: RateSpec,
    /// Base round-trip time: propagation in both directions, without queueing and without
    /// transmission times.
    pub rtt: Span,
    /// One-way propagation delay of the bottleneck itself; the rest of the RTT lies before it (half
    /// of the way there) and on the way back. Default: half the RTT, so that the bottleneck is at
    /// the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Size of the bottleneck's buffer; the packet in transmission is not in it. A BDP is of the
    /// largest rate of a capacity that changes in steps, of the mean of a fading one. Default: 1
    /// BDP. Queues with a limit of their own (`fair_queuing`, `fq_codel`, `codel`, `red`,
    /// `sch_red`, `pie`, `dual_pi2`, and others whose table says one) have none beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Queue discipline of the bottleneck.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Bytes added to every packet on the wire.
    #[serde(default)]
    pub overhead: u32,
    /// Packets lost at random or periodically on arrival at the bottleneck.
    #[serde(default)]
    pub loss: LossSpec,
    /// ECN-capable packets marked at random or periodically on arrival at the bottleneck.
    #[serde(default)]
    pub mark: LossSpec,
    /// Random extra delay behind the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterSpec>,
    /// What kind of link the bottleneck is: shaper, policer, Wi-Fi, grants, slots, handovers,
    /// changes of route.
    #[serde(default, skip_serializing_if = "MediumConfig::is_plain")]
    pub medium: MediumConfig,
    /// Capacity of the way back; without it ACKs never wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_capacity: Option<RateSpec>,
    /// Buffer of the way back, which needs `reverse_capacity`; as `buffer`, but a BDP is counted in
    /// bytes, not in full packets: what waits there are ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_buffer: Option<Buffer>,
    /// ACKs lost on the way back; needs `reverse_capacity`.
    #[serde(default)]
    pub reverse_loss: LossSpec,
    /// Queue discipline of the way back; needs `reverse_capacity`.
    #[serde(default, skip_serializing_if = "is_default_queue")]
    pub reverse_queue: QueueSpec,
    /// Random extra delay on the way back; needs `reverse_capacity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_jitter: Option<JitterSpec>,
    /// What kind of link the way back is; needs `reverse_capacity`.
    #[serde(default, skip_serializing_if = "MediumConfig::is_plain")]
    pub reverse_medium: MediumConfig,
    /// The receivers' hosts merge ACKs, as with receive offload (GRO, LRO); flows whose receiver
    /// has an `ack_aggregation` keep that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_acks: Option<MergedAcks>,
    /// What the bottleneck's router knows of Quick-Start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quick_start: QuickStartSpec,
    /// The bottleneck's router knows RCP; default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcp: Option<RcpSpec>,
    /// Rate of every sender's own link, with an unlimited queue; without it packets enter the
    /// bottleneck's queue at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// Ways in parallel to the bottleneck (load balancing). Every connection takes one of them or
    /// the bottleneck itself, drawn by its number and the seed, or as its flow's `ways` says. In
    /// tables they are `bottleneck-2`, `bottleneck-3` and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<WaySpec>,
}

/// How receivers merge ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedAcks {
    /// ACKs are held back for this long and merged into one.
    pub within: Span,
    /// … but at most this many; default any number. They are counted from the first that is due,
    /// which with delayed ACKs is for two segments: an ACK is for up to one segment more. With
    /// receive offload one ACK is for at most 64
    /// kB, 44 segments of 1448 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

/// A link with a name, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// What flows call it in `forward` and `reverse`.
    pub name: String,
    /// Capacity, counted on IP packets plus `overhead`.
    pub capacity: RateSpec,
    /// One-way propagation delay.
    pub delay: Span,
    /// Buffer; a BDP here is of this link's capacity and `rtt`. Default: unlimited. Queues with a
    /// limit of their own have none beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Round-trip time that a buffer in BDP refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Span>,
    /// Queue discipline.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Bytes added to every packet on the wire.
    #[serde(default)]
    pub overhead: u32,
    /// Packets lost on arrival.
    #[serde(default)]
    pub loss: LossSpec,
    /// ECN-capable packets marked on arrival.
    #[serde(default)]
    pub mark: LossSpec,
    /// Random extra delay behind the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterSpec>,
    /// What kind of link it is: shaper, policer, Wi-Fi, grants, slots, handovers, changes of route.
    #[serde(default, skip_serializing_if = "MediumConfig::is_plain")]
    pub medium: MediumConfig,
    /// What the link's router knows of Quick-Start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quick_start: QuickStartSpec,
    /// The link's router knows RCP; default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcp: Option<RcpSpec>,
    /// Ways in parallel to it (load balancing): every connection whose flow names this link takes
    /// one of them or the link itself, drawn or as its flow's `ways` says. Their names are this
    /// one's with -2, -3 and so on; a flow may name one of them in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<WaySpec>,
}

fn is_default(spec: &QuickStartSpec) -> bool {
    *spec == QuickStartSpec::default()
}

fn is_default_queue(spec: &QueueSpec) -> bool {
    *spec == QueueSpec::default()
}

impl PathSpec {
    /// The buffer of a bottleneck that does not say its size.
    pub const USUAL_BUFFER: Buffer = Buffer::Bdp(1.0);

    /// Leaves out what a queue with a limit of its own does not heed.
    pub(super) fn heed_limits(&mut self) {
        self.buffer = self.buffer.filter(|_| self.queue.0.takes_buffer());
        self.reverse_buffer = self.reverse_buffer.filter(|_| self.reverse_queue.0.takes_buffer());
    }

    /// Writes down the sizes that follow from nothing being said.
    pub(super) fn settle(&mut self) {
        settle(&mut self.buffer, self.queue, Self::USUAL_BUFFER);
        settle(&mut self.reverse_buffer, self.reverse_queue, Self::USUAL_BUFFER);
    }
}

impl LinkSpec {
    /// Leaves out what a queue with a limit of its own does not heed.
    pub(super) fn heed_limits(&mut self) {
        self.buffer = self.buffer.filter(|_| self.queue.0.takes_buffer());
    }

    /// The buffer of a link that does not say its size.
    pub(super) const USUAL_BUFFER: Buffer = Buffer::Unlimited;

    /// Writes down the size that follows from nothing being said.
    pub(super) fn settle(&mut self) {
        settle(&mut self.buffer, self.queue, Self::USUAL_BUFFER);
    }
}

fn settle(buffer: &mut Option<Buffer>, queue: QueueSpec, usual: Buffer) {
    if queue.0.takes_buffer() {
        buffer.get_or_insert(usual);
    }
}
