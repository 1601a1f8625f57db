//! Queue disciplines. The names, constants and rules are those of Linux where Linux has the
//! discipline; lengths are IP lengths plus a configured link-layer overhead (14 bytes in Linux)
//! wherever a discipline compares or credits bytes.
//!
//! This page is the registry of all. To add a discipline: a file with its constants (`Constants`)
//! and what it does ([`Discipline`]), and an entry below.

mod codel_law;
mod config;
mod discipline;
mod fifo;
mod flow_table;
mod many;
#[cfg(test)]
mod ranges;
#[macro_use]
mod registry;
#[cfg(test)]
mod testing;
mod ticks;

use flowstart_units::Time;

use crate::Frame;

pub use codel_law::CodelArithmetic;
pub use config::{Limit, Order, QueueError};
pub use discipline::{Discipline, Hosts, Tally};
pub use dual_pi2::L4sClassifier;
pub use fifo::Fifo;
pub use host_fairness::HostShares;
pub use red::RedAdaption;
pub use step_mark::Threshold;

use config::Constants;
use registry::External;

queues! {
    drop_tail: DropTail(DropTailConfig) as DropTail<P>,
        "first in, first out; drops arrivals when full";
    step_mark: StepMark(StepMarkConfig) as StepMark<P>,
        "marks every packet above a threshold of waiting time or length; \"step_mark 1 ms\"";
    fair_queuing: FairQueuing(FairQueuingConfig) as Box<FairQueuing<P>>,
        "a queue per flow, served in turns, new flows first, as Linux's sch_fq";
    drr: Drr(DrrConfig) as Box<Drr<P>>,
        "a queue per flow, served in turns by deficit round robin, as Linux's sch_drr";
    codel: Codel(CodelConfig) as Box<Codel<P>>,
        "drops or marks at the head when packets keep waiting longer than a target (RFC 8289)";
    fq_codel: FqCodel(FqCodelConfig) as Box<FqCodel<P>>,
        "a queue per flow, each with CoDel (RFC 8290)";
    host_fairness: HostFairness(HostFairnessConfig) as Box<HostFairness<P>>,
        "equal shares per host, within them per flow, each with CoDel, as Linux's CAKE (triple-isolate)";
    red: Red(RedConfig) as Box<Red<P>>,
        "drops or marks at random, more often the longer the average queue (Floyd and Jacobson 1993)";
    sch_red: SchRed(SchRedConfig) as Box<SchRed<P>>,
        "RED in bytes and integers, as Linux's sch_red";
    pie: Pie(PieConfig) as Box<Pie<P>>,
        "drops or marks on arrival so that the delay meets a target (RFC 8033)";
    dual_pi2: DualPi2(DualPi2Config) as Box<DualPi2<P>>,
        "two coupled queues, one for scalable (L4S) flows, one for all others (RFC 9332)";
    ack_filter: AckFilter(AckFilterConfig) as Box<AckFilter<P>>,
        "first in, first out; an ACK takes the place of those it covers, as Linux's CAKE filters them";
}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue was full.
    Full,
    /// The flow's own share of the queue was full.
    FlowFull,
    /// An active queue management decided so.
    Early,
    /// A later acknowledgement says the same and more.
    Thinned,
}

impl DropReason {
    /// The reason as it stands in result tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FlowFull => "flow_full",
            Self::Early => "early",
            Self::Thinned => "thinned",
        }
    }
}

/// What a queue answers when asked for the next packet.
// The tag is a word of its own for the reason that TagWord has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Dequeue<P> {
    /// This one, which was enqueued at the time given (its sojourn time is now minus that).
    Packet(P, Time),
    /// Nothing is stored.
    Empty,
    /// Packets are stored, but none may leave before this time.
    NotBefore(Time),
}

impl<P> From<Option<(P, Time)>> for Dequeue<P> {
    #[inline]
    fn from(head: Option<(P, Time)>) -> Self {
        head.map_or(Self::Empty, |(packet, arrived)| Self::Packet(packet, arrived))
    }
}

/// What a queue has done so far, in packets. `enqueued` = `dequeued` + `dropped` + what is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets that arrived, dropped ones included.
    pub enqueued: u64,
    /// Packets that left for the link.
    pub dequeued: u64,
    /// Packets dropped, on arrival or later.
    pub dropped: u64,
    /// Packets that this queue marked (or would have marked, had they not carried the mark
    /// already).
    pub marked: u64,
}

/// A queue in operation. `P` is the packet type.
#[derive(Debug)]
pub struct Queue<P> {
    discipline: Installed<P>,
    enqueued: u64,
    dequeued: u64,
    dropped: u64,
}

impl<P: Frame> Queue<P> {
    /// A queue as configured; `seed` feeds its random decisions and its flow hash.
    #[must_use]
    pub fn new(config: &QueueConfig, seed: u64) -> Self {
        Self::of(config.install(seed))
    }

    /// A queue whose discipline comes from outside this crate.
    #[must_use]
    pub fn external(discipline: Box<dyn Discipline<P> + Send>) -> Self {
        Self::of(Installed::External(External::new(discipline)))
    }

    fn of(discipline: Installed<P>) -> Self {
        Self { discipline, enqueued: 0, dequeued: 0, dropped: 0 }
    }

    /// A flow whose packets may come belongs to these hosts.
    pub fn introduce(&mut self, flow: u64, hosts: Hosts) {
        self.discipline.introduce(flow, hosts);
    }

    /// A packet arrives. Dropped packets (this one or another) go to `dropped`.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, dropped: &mut impl FnMut(P, DropReason)) {
        self.enqueued += 1;
        let count = &mut self.dropped;
        let mut drop = |packet, reason| {
            *count += 1;
            dropped(packet, reason);
        };
        match &mut self.discipline {
            Installed::DropTail(queue) => queue.enqueue(now, packet, &mut drop),
            other => other.enqueue(now, packet, &mut drop),
        }
    }

    /// The link is free: the next packet. Packets dropped on the way go to `dropped`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, dropped: &mut impl FnMut(P, DropReason)) -> Dequeue<P> {
        let count = &mut self.dropped;
        let mut drop = |packet, reason| {
            *count += 1;
            dropped(packet, reason);
        };
        let next = match &mut self.discipline {
            Installed::DropTail(queue) => queue.dequeue(now, &mut drop),
            other => other.dequeue(now, &mut drop),
        };
        self.dequeued += u64::from(matches!(next, Dequeue::Packet(..)));
        next
    }

    /// Packets stored.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> u64 {
        // What came and is not gone: the same for every discipline, which need not be asked.
        self.enqueued.wrapping_sub(self.dequeued).wrapping_sub(self.dropped)
    }

    /// True if it is to be asked when the link is free: something is stored, or its discipline
    /// [heeds](Discipline::heeds_emptiness) that there is nothing.
    #[must_use]
    #[inline]
    pub fn waits_for_link(&self) -> bool {
        let heeds = || match &self.discipline {
            Installed::DropTail(_) => false,
            other => other.heeds_emptiness(),
        };
        self.packets() > 0 || heeds()
    }

    /// Bytes stored (IP lengths, without link-layer overhead).
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        match &self.discipline {
            Installed::DropTail(queue) => queue.bytes(),
            other => other.bytes(),
        }
    }

    /// What the queue has done so far.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let Self { enqueued, dequeued, dropped, .. } = *self;
        QueueStats { enqueued, dequeued, dropped, marked: self.discipline.marked() }
    }
}
