//! Step marking: every ECN-capable packet above a threshold is marked. DCTCP's switch (Alizadeh et
//! al. 2010, RFC 8257 section 3.1) and Linux's `ce_threshold`.

use flowstart_units::{Span, Time};

use super::config::limit_of_a_fifo;
use super::{Constants, Dequeue, Discipline, DropReason, DropTail, DropTailConfig, Limit, QueueError, Tally};
use crate::{Ecn, Frame};

/// What is compared, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case"))]
pub enum Threshold {
    /// At dequeue: the packet waited strictly longer than this (Linux `ce_threshold` of fq_codel
    /// and fq).
    Sojourn(Span),
    /// At enqueue: the arriving packet finds more than this many packets stored (DCTCP's K; Linux
    /// and ns-3 RED with min = max compare the backlog without the arriving packet too).
    Packets(u64),
    /// At enqueue: the arriving packet finds more than this many bytes stored.
    Bytes(u64),
}

/// What may stand in the table of a threshold: one of these keys.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with one key, { sojourn = \"1 ms\" }, { packets = 20 } or { bytes = 12500 }"
)]
struct ThresholdKeys {
    sojourn: Option<Span>,
    packets: Option<u64>,
    bytes: Option<u64>,
}

// What serde would say of no key or of several names neither the keys nor how many are right.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Threshold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = ThresholdKeys::deserialize(deserializer)?;
        match (keys.sojourn, keys.packets, keys.bytes) {
            (Some(sojourn), None, None) => Ok(Self::Sojourn(sojourn)),
            (None, Some(packets), None) => Ok(Self::Packets(packets)),
            (None, None, Some(bytes)) => Ok(Self::Bytes(bytes)),
            _ => Err(serde::de::Error::custom(
                "a threshold has one key: { sojourn = \"1 ms\" }, { packets = 20 } or { bytes = 12500 }",
            )),
        }
    }
}

/// Constants of a step-marking queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct StepMarkConfig {
    /// The step. Default: a sojourn time of 1 ms (Misund and Briscoe 2019, section IV).
    pub threshold: Threshold,
    /// What the queue holds at most; arrivals beyond are dropped.
    pub limit: DropTailConfig,
    /// Drop packets above a length threshold that are not ECN-capable, as Linux RED emulating a
    /// step does; default false, as `ce_threshold`.
    pub drop_not_ect: bool,
}

impl Default for StepMarkConfig {
    fn default() -> Self {
        Self {
            threshold: Threshold::Sojourn(Span::from_millis(1)),
            limit: DropTailConfig::default(),
            drop_not_ect: false,
        }
    }
}

impl Constants for StepMarkConfig {
    type Queue<P: Frame> = StepMark<P>;

    fn build<P: Frame>(self, _seed: u64) -> StepMark<P> {
        StepMark::new(self)
    }

    limit_of_a_fifo!();
}

/// A FIFO that marks above a threshold.
#[derive(Clone, Debug)]
pub struct StepMark<P> {
    fifo: DropTail<P>,
    threshold: Threshold,
    drop_not_ect: bool,
    marked: u64,
}

impl<P: Frame> StepMark<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: StepMarkConfig) -> Self {
        Self {
            fifo: DropTail::new(config.limit),
            threshold: config.threshold,
            drop_not_ect: config.drop_not_ect,
            marked: 0,
        }
    }
}

impl<P: Frame> Discipline<P> for StepMark<P> {
    // Stores the packet, marked if the queue is long, or drops it.
    #[inline]
    fn enqueue(&mut self, now: Time, mut packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        let above = match self.threshold {
            Threshold::Sojourn(_) => false,
            Threshold::Packets(packets) => self.fifo.packets() > packets,
            Threshold::Bytes(bytes) => self.fifo.bytes() > bytes,
        };
        if above && self.fifo.has_room(&packet) {
            if self.drop_not_ect && packet.ecn() == Ecn::NotEct {
                return dropped(packet, DropReason::Early);
            }
            self.marked += u64::from(packet.set_ce());
        }
        self.fifo.enqueue(now, packet, dropped);
    }

    // The oldest packet, marked if it waited too long.
    #[inline]
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        let mut next = self.fifo.dequeue(now, dropped);
        if let (Threshold::Sojourn(limit), Dequeue::Packet(packet, arrived)) = (self.threshold, &mut next)
            && now.since(*arrived) > limit
        {
            self.marked += u64::from(packet.set_ce());
        }
        next
    }

    #[inline]
    fn tally(&self) -> Tally {
        Tally { marked: self.marked, ..self.fifo.tally() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::Box1;

    fn config(threshold: Threshold) -> StepMarkConfig {
        StepMarkConfig { threshold, ..StepMarkConfig::default() }
    }

    #[test]
    fn a_packet_is_marked_when_it_waited_strictly_longer_than_the_threshold() {
        for (waited, marked) in [(1_000_000, false), (1_000_001, true)] {
            let mut queue = StepMark::new(config(Threshold::Sojourn(Span::from_millis(1))));
            queue.enqueue(Time::ZERO, Box1::ect(0, 1500), &mut |_, _| panic!());
            let Dequeue::Packet(packet, _) = queue.dequeue(Time::from_nanos(waited), &mut |_, _| panic!()) else {
                panic!()
            };
            assert_eq!(packet.ecn() == Ecn::Ce, marked);
        }
    }

    #[test]
    fn with_k_20_a_packet_that_finds_21_is_marked_on_arrival() {
        let mut queue = StepMark::new(config(Threshold::Packets(20)));
        for _ in 0..22 {
            queue.enqueue(Time::ZERO, Box1::ect(0, 1500), &mut |_, _| panic!());
        }
        let marks: Vec<bool> = std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => Some(packet.ecn() == Ecn::Ce),
            _ => None,
        })
        .collect();
        assert_eq!(marks.iter().position(|marked| *marked), Some(21));
    }

    #[test]
    fn a_packet_that_is_not_ecn_capable_passes_or_is_dropped_as_configured() {
        for drop_not_ect in [false, true] {
            let mut queue = StepMark::new(StepMarkConfig { drop_not_ect, ..config(Threshold::Bytes(1000)) });
            let mut drops = 0;
            queue.enqueue(Time::ZERO, Box1::ect(0, 1500), &mut |_, _| panic!());
            queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| drops += 1);
            assert_eq!(drops, u32::from(drop_not_ect));
            assert_eq!(queue.packets(), 1 + u64::from(!drop_not_ect));
        }
    }
}
