//! DualPI2, the coupled dual queue for L4S and classic traffic (RFC 9332; Linux `sch_dualpi2`).

use flowstart_random::{Rng, Stream, stream};
use flowstart_units::{Span, Time};

use super::fifo::{Fifo, counted};
use super::ticks::Ticks;
use super::{Constants, Dequeue, Discipline, DropReason, Limit, Order, QueueError, Tally};
use crate::{Ecn, Frame};

/// Which packets go to the low-latency queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum L4sClassifier {
    /// ECT(1) and CE (RFC 9331 section 5.1).
    #[default]
    L4s,
    /// Everything that is ECN-capable.
    AnyEct,
}

/// Constants of DualPI2; names in parentheses are those of tc-dualpi2(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DualPi2Config {
    /// Most packets in both queues; default 10 000 (`limit`).
    pub limit: u64,
    /// Most bytes in both queues; default two Ethernet frames per packet of the limit (`memlimit`).
    pub memory: Option<u64>,
    /// Queueing delay that the controller aims at; default 15 ms (`target`).
    pub target: Span,
    /// Time between two updates; default 16 ms (`tupdate`).
    pub update_interval: Span,
    /// Gain on the distance from the target, in 256ths per second of delay and update; default 41,
    /// that is 0.16 (`alpha`).
    pub alpha: u32,
    /// Gain on the change of the delay, in 256ths; default 819, that is 3.2 (`beta`).
    pub beta: u32,
    /// How many times the base probability L4S packets are marked with; default 2
    /// (`coupling_factor`).
    pub coupling: u32,
    /// L4S packets that waited strictly longer are marked; default 1 ms (`step_thresh`).
    pub step_threshold: Span,
    /// Unless fewer packets than this stood in the low-latency queue when they came; default 0
    /// (`min_qlen_step`).
    pub step_from_packets: u64,
    /// Share of the link kept for classic traffic while both wait, in percent, 0 ..= 100; default
    /// 10 (`classic_protection`).
    pub classic_protection: u32,
    /// Which packets go to the low-latency queue; default ECT(1) and CE.
    pub classifier: L4sClassifier,
    /// When marking is not enough, drop packets (default, `drop_on_overload`) rather than let the
    /// queues overflow.
    pub drop_on_overload: bool,
    /// No random marks or drops while less than this is stored; default 3028 bytes, two Ethernet
    /// frames.
    pub floor: u32,
    /// Packet size for which the scheduler's first credit is meant; default 1514, an Ethernet
    /// frame.
    pub packet: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            limit: 10_000,
            memory: None,
            target: Span::from_millis(15),
            update_interval: Span::from_millis(16),
            alpha: 41,
            beta: 819,
            coupling: 2,
            step_threshold: Span::from_millis(1),
            step_from_packets: 0,
            classic_protection: 10,
            classifier: L4sClassifier::default(),
            drop_on_overload: true,
            floor: 2 * 1514,
            packet: 1514,
            overhead: 14,
        }
    }
}

/// A probability of 1 in Linux's 32 bits.
const ONE: u64 = u32::MAX as u64;
/// Gains are given in 256ths, and kept as probability per nanosecond times 64.
const GAIN_UNIT: u64 = 256;
const GAIN_SCALE: u64 = 64;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// The whole link, in the unit of `classic_protection`.
const WHOLE: u32 = 100;

impl DualPi2Config {
    /// A gain as probability units per nanosecond, times `GAIN_SCALE`.
    fn gain(gain: u32) -> i128 {
        let scaled = u128::from(gain) * u128::from(ONE) * u128::from(GAIN_SCALE);
        // At most 2^32 times 2^32 times 2^6, divided.
        (scaled / u128::from(GAIN_UNIT * NANOS_PER_SECOND)) as i128
    }
}

/// The PI controller of the base probability (the RFC's p').
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Controller {
    probability: u64,
    last_delay: Span,
}

impl Controller {
    fn update(&mut self, config: &DualPi2Config, delay: Span) {
        let nanos = |span: Span| i128::from(span.as_nanos());
        let change = (nanos(delay) - nanos(config.target)) * DualPi2Config::gain(config.alpha)
            + (nanos(delay) - nanos(self.last_delay)) * DualPi2Config::gain(config.beta);
        // Division rounds towards zero, as Linux does by scaling the magnitude.
        let change = change / i128::from(GAIN_SCALE);
        let most = if config.drop_on_overload { ONE } else { ONE / u64::from(config.coupling.max(1)) };
        self.probability = (i128::from(self.probability) + change).clamp(0, i128::from(most)) as u64;
        self.last_delay = delay;
    }
}

/// An L4S packet, and whether the step applies to it.
#[derive(Clone, Copy, Debug)]
struct Classified<P> {
    packet: P,
    step: bool,
}

impl<P: Frame> Frame for Classified<P> {
    fn bytes(&self) -> u32 {
        self.packet.bytes()
    }

    fn flow(&self) -> u64 {
        self.packet.flow()
    }

    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }

    fn set_ce(&mut self) -> bool {
        self.packet.set_ce()
    }
}

impl Constants for DualPi2Config {
    type Queue<P: Frame> = DualPi2<P>;

    fn build<P: Frame>(self, seed: u64) -> DualPi2<P> {
        DualPi2::new(self, seed)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless(self.limit > 0 && self.memory != Some(0), "DualPI2 needs room for at least 1 packet")?;
        QueueError::unless(!self.update_interval.is_zero(), "DualPI2's update_interval must not be 0")?;
        QueueError::unless(self.coupling > 0, "DualPI2's coupling is at least 1")?;
        QueueError::unless(self.classic_protection <= WHOLE, "DualPI2's classic_protection lies between 0 and 100 %")
    }

    fn order(&self) -> Order {
        Order::PerFlowAndMark
    }

    fn is_random(&self) -> bool {
        true
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Packets(&mut self.limit)
    }

    fn largest_packet(&self) -> u64 {
        self.memory.map_or(u64::MAX, |memory| memory.saturating_sub(self.overhead.into()))
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// DualPI2 in operation.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    config: DualPi2Config,
    low_latency: Fifo<Classified<P>>,
    classic: Fifo<P>,
    controller: Controller,
    updates: Ticks,
    /// Positive when it is the classic queue's turn.
    credit: i64,
    random: Stream,
    marked: u64,
}

impl<P: Frame> DualPi2<P> {
    /// Two empty queues with their own random stream.
    #[must_use]
    pub fn new(config: DualPi2Config, seed: u64) -> Self {
        let mut queue = Self {
            config,
            low_latency: Fifo::new(),
            classic: Fifo::new(),
            controller: Controller { probability: 0, last_delay: Span::ZERO },
            updates: Ticks::new(Time::ZERO + config.update_interval, config.update_interval),
            credit: 0,
            random: stream(seed),
            marked: 0,
        };
        queue.reset_credit();
        queue
    }

    fn reset_credit(&mut self) {
        let classic = i64::from(self.config.classic_protection.min(WHOLE));
        self.credit = i64::from(self.config.packet) * (2 * classic - i64::from(WHOLE));
    }

    fn backlog(&self) -> u64 {
        self.low_latency.counted(self.config.overhead).saturating_add(self.classic.counted(self.config.overhead))
    }

    /// The longer of the two delays: how long the packets at the heads have waited.
    fn delay(&self, now: Time) -> Span {
        let low_latency = self.low_latency.head().map_or(Span::ZERO, |(_, arrived)| now.since(arrived));
        let classic = self.classic.head().map_or(Span::ZERO, |(_, arrived)| now.since(arrived));
        low_latency.max(classic)
    }

    /// Makes up for the updates that were due: nothing they depend on but time has changed since
    /// the last call.
    fn update(&mut self, now: Time) {
        while let Some(tick) = self.updates.next(now) {
            let before = self.controller;
            self.controller.update(&self.config, self.delay(tick));
            if self.controller == before && self.packets() == 0 {
                self.updates.skip_to(now);
            }
        }
    }

    fn mark(&mut self, packet: &mut P) -> bool {
        let done = packet.set_ce();
        self.marked += u64::from(done);
        done
    }

    fn roll(&mut self, probability: u64) -> bool {
        probability > 0 && self.random.next_u64() >> 32 <= probability
    }

    /// Acts with the square of the base probability: two rolls of it.
    fn rolls_twice(&mut self) -> bool {
        let probability = self.controller.probability;
        self.roll(probability) && self.roll(probability)
    }

    /// The coupled probability, which may exceed 1, unless little is stored.
    fn coupled(&self) -> Option<u64> {
        let stored = self.backlog() >= u64::from(self.config.floor);
        stored.then(|| self.controller.probability * u64::from(self.config.coupling))
    }

    /// Marks a classic packet or tells that it is to be dropped.
    fn drops_classic(&mut self, packet: &mut P) -> bool {
        let Some(coupled) = self.coupled() else { return false };
        if !self.rolls_twice() {
            return false;
        }
        let overload = coupled > ONE;
        overload || !self.mark(packet)
    }

    /// Marks a low-latency packet or tells that it is to be dropped.
    fn drops_low_latency(&mut self, packet: &mut P) -> bool {
        let Some(coupled) = self.coupled() else { return false };
        if coupled > ONE {
            if self.config.drop_on_overload && self.rolls_twice() {
                return true;
            }
            self.mark(packet);
            return false;
        }
        self.roll(coupled) && !self.mark(packet)
    }
}

impl<P: Frame> Discipline<P> for DualPi2<P> {
    // Stores the packet in its queue or drops it.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        self.update(now);
        let length = counted(&packet, self.config.overhead);
        let memory = self.config.memory.unwrap_or(self.config.limit.saturating_mul(2 * u64::from(self.config.packet)));
        if self.packets() >= self.config.limit || self.backlog().saturating_add(length) > memory {
            return dropped(packet, DropReason::Full);
        }
        let low_latency = match self.config.classifier {
            L4sClassifier::L4s => matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce),
            L4sClassifier::AnyEct => packet.ecn().is_capable(),
        };
        if low_latency {
            let step = self.low_latency.packets() >= self.config.step_from_packets;
            self.low_latency.push(Classified { packet, step }, now);
        } else {
            self.classic.push(packet, now);
        }
    }

    // The next packet: nine low-latency bytes for one classic byte while both wait.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        self.update(now);
        let (share, rest) = (
            i64::from(self.config.classic_protection.min(WHOLE)),
            i64::from(WHOLE - self.config.classic_protection.min(WHOLE)),
        );
        loop {
            let classic_waits = self.classic.packets() > 0;
            if self.low_latency.packets() > 0 && (!classic_waits || self.credit <= 0) {
                let Some((Classified { mut packet, step }, arrived)) = self.low_latency.pop() else { continue };
                if self.drops_low_latency(&mut packet) {
                    dropped(packet, DropReason::Early);
                    continue;
                }
                if step && now.since(arrived) > self.config.step_threshold {
                    self.mark(&mut packet);
                }
                if classic_waits {
                    self.credit += share * counted(&packet, self.config.overhead) as i64;
                }
                return Dequeue::Packet(packet, arrived);
            }
            let Some((mut packet, arrived)) = self.classic.pop() else {
                self.reset_credit();
                return Dequeue::Empty;
            };
            if self.drops_classic(&mut packet) {
                dropped(packet, DropReason::Early);
                continue;
            }
            if self.low_latency.packets() > 0 {
                self.credit -= rest * counted(&packet, self.config.overhead) as i64;
            }
            return Dequeue::Packet(packet, arrived);
        }
    }

    fn tally(&self) -> Tally {
        Tally {
            packets: self.low_latency.packets() + self.classic.packets(),
            bytes: self.low_latency.bytes() + self.classic.bytes(),
            marked: self.marked,
        }
    }
}

#[cfg(test)]
mod tests;
