//! Random early detection (Floyd and Jacobson 1993), its gentle variant (Floyd 2000) and Adaptive
//! RED (Floyd, Gummadi and Shenker 2001).

use flowstart_random::{Probability, Stream, stream};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::fifo::Fifo;
use super::{Constants, Dequeue, Discipline, DropReason, Limit, QueueError, Tally};
use crate::Frame;

/// Constants of RED, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct RedConfig {
    /// Most packets stored; default 100.
    pub limit: u64,
    /// Weight of one arrival in the average queue length, 0 ..= 1; default 0.002 (Floyd and
    /// Jacobson 1993, section 6).
    pub weight: f64,
    /// Average length from which packets are hit at random; default 5 packets (1993, section 8).
    pub min: f64,
    /// Average length from which every packet is hit (or hit with `max_probability`, if gentle);
    /// default 15 packets (1993, section 8).
    pub max: f64,
    /// Probability when the average is just below `max`, above 0 and at most 1; default 0.02 (1993,
    /// section 8).
    pub max_probability: f64,
    /// From `max` to twice `max` the probability rises to 1 instead of jumping (Floyd 2000);
    /// default false.
    pub gentle: bool,
    /// Hits are 1/p to 2/p packets apart instead of 1 to 1/p (`wait_` of ns-2, `Wait` of ns-3);
    /// default false, as published.
    pub wait: bool,
    /// Mark ECN-capable packets instead of dropping them; default false.
    pub ecn: bool,
    /// Small packets are hit less: the probability is multiplied by a packet's size over this many
    /// bytes. None by default.
    pub byte_mode: Option<u32>,
    /// Transmission time of a small packet: how fast the average falls while the queue is empty.
    /// Default 0.8 ms, 1000 bytes at 10 Mbit/s.
    pub packet_time: Span,
    /// Adapt `max_probability` so that the average stays half-way between `min` and `max` (Adaptive
    /// RED). None by default.
    pub adaptive: Option<RedAdaption>,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            limit: 100,
            weight: 0.002,
            min: 5.0,
            max: 15.0,
            max_probability: 0.02,
            gentle: false,
            wait: false,
            ecn: false,
            byte_mode: None,
            packet_time: Span::from_micros(800),
            adaptive: None,
        }
    }
}

/// Constants of Adaptive RED (Floyd, Gummadi and Shenker 2001, figure 1).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct RedAdaption {
    /// Time between two steps; default 0.5 s.
    pub interval: Span,
    /// The largest increase of the probability at once; default 0.01. An increase is also at most a
    /// quarter of it.
    pub increase: f64,
    /// Factor of a decrease; default 0.9.
    pub decrease: f64,
    /// No decrease below this probability; default 0.01.
    pub lowest: f64,
    /// No increase above this probability; default 0.5.
    pub highest: f64,
    /// The band that the average should stay in begins at this fraction of the way from `min` to
    /// `max`; default 0.4.
    pub band_from: f64,
    /// And ends at this one; default 0.6.
    pub band_to: f64,
}

impl Default for RedAdaption {
    fn default() -> Self {
        Self {
            interval: Span::from_millis(500),
            increase: 0.01,
            decrease: 0.9,
            lowest: 0.01,
            highest: 0.5,
            band_from: 0.4,
            band_to: 0.6,
        }
    }
}

/// An increase is at most this fraction of the probability (2001, section 3).
const LARGEST_RELATIVE_INCREASE: f64 = 0.25;
/// The least `min` that Adaptive RED chooses, in packets, and the ratio of its `max` to it (2001,
/// section 4).
const ADAPTIVE_LEAST_MIN: f64 = 5.0;
const ADAPTIVE_MAX_OVER_MIN: f64 = 3.0;

impl RedConfig {
    /// Adaptive RED with weight and thresholds chosen for a link of `capacity` and packets of
    /// `packet` bytes: w = 1 - e^(-1/C) for C packets per second, min half of what makes up `delay`
    /// (5 ms in the paper) but at least 5 packets, max three times min, gentle.
    #[must_use]
    pub fn adaptive(capacity: Rate, packet: Bytes, delay: Span) -> Self {
        let packet_time = capacity.transmission_time(packet);
        let per_second = 1.0 / packet_time.as_secs_f64().max(1e-9);
        let min = (delay.as_secs_f64() * per_second / 2.0).max(ADAPTIVE_LEAST_MIN);
        Self {
            weight: -libm::expm1(-1.0 / per_second),
            min,
            max: ADAPTIVE_MAX_OVER_MIN * min,
            gentle: true,
            packet_time,
            adaptive: Some(RedAdaption::default()),
            ..Self::default()
        }
    }
}

/// `base` to an integer power by repeated squaring: the same bits on every machine.
pub(super) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// The first of the steps 1 to `due` for which this holds, and for all after it; the one after the
/// last if it holds for none.
pub(super) fn first_step(due: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (1, due.saturating_add(1));
    while from < to {
        let middle = from.midpoint(to);
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

impl Constants for RedConfig {
    type Queue<P: Frame> = Red<P>;

    fn build<P: Frame>(self, seed: u64) -> Red<P> {
        Red::new(self, seed)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless(self.limit > 0, "RED needs room for at least 1 packet")?;
        QueueError::unless((0.0..=1.0).contains(&self.weight), "RED's weight lies between 0 and 1")?;
        let thresholds = self.min >= 0.0 && self.min < self.max && self.max.is_finite();
        QueueError::unless(thresholds, "RED's thresholds need 0 <= min < max; step_mark has a single threshold")?;
        let probability = self.max_probability > 0.0 && self.max_probability <= 1.0;
        QueueError::unless(probability, "RED's max_probability lies above 0 and is at most 1")?;
        QueueError::unless(!self.packet_time.is_zero(), "RED's packet_time must not be 0")?;
        QueueError::unless(
            self.byte_mode != Some(0),
            "RED's byte_mode needs the size of a large packet, such as 1500",
        )?;
        let Some(adaption) = self.adaptive else { return Ok(()) };
        QueueError::unless(!adaption.interval.is_zero(), "RED's adaption needs an interval, such as \"500 ms\"")?;
        let factors = adaption.increase >= 0.0 && (0.0..=1.0).contains(&adaption.decrease);
        QueueError::unless(factors, "RED adapts by an increase of at least 0 and a decrease between 0 and 1")?;
        let range = adaption.lowest > 0.0 && adaption.lowest <= adaption.highest && adaption.highest <= 1.0;
        QueueError::unless(range, "RED adapts its probability between a lowest above 0 and a highest of at most 1")?;
        let band = 0.0 <= adaption.band_from && adaption.band_from <= adaption.band_to && adaption.band_to <= 1.0;
        QueueError::unless(band, "RED's target band lies between 0 and 1")
    }

    fn is_random(&self) -> bool {
        true
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Packets(&mut self.limit)
    }
}

/// RED in operation.
#[derive(Clone, Debug)]
pub struct Red<P> {
    fifo: Fifo<P>,
    config: RedConfig,
    average: f64,
    max_probability: f64,
    /// Packets accepted since the last hit; `None` while the average is below `min` (the paper's
    /// -1).
    count: Option<u64>,
    empty_since: Option<Time>,
    adapt_next: Time,
    random: Stream,
    marked: u64,
}

impl<P: Frame> Red<P> {
    /// An empty queue with its own random stream.
    #[must_use]
    pub fn new(config: RedConfig, seed: u64) -> Self {
        Self {
            fifo: Fifo::new(),
            config,
            average: 0.0,
            max_probability: config.max_probability,
            count: None,
            empty_since: Some(Time::ZERO),
            adapt_next: Time::ZERO + config.adaptive.map_or(Span::MAX, |adaption| adaption.interval),
            random: stream(seed),
            marked: 0,
        }
    }

    /// Takes one more arrival into the average.
    fn average_in(&mut self, now: Time) {
        self.average = self.average_at(now);
        self.empty_since = None;
        self.average += self.config.weight * (self.fifo.packets() as f64 - self.average);
    }

    /// The average at this moment: while the link is idle it decays, as if as many small packets
    /// had come and found the queue empty.
    fn average_at(&self, now: Time) -> f64 {
        let Some(since) = self.empty_since else { return self.average };
        let missed = now.since(since).whole(self.config.packet_time);
        self.average * power(1.0 - self.config.weight, missed)
    }

    /// The steps of the probability that were due.
    fn adapt(&mut self, now: Time) {
        let Some(adaption) = self.config.adaptive else { return };
        let span = self.config.max - self.config.min;
        let (from, to) = (self.config.min + adaption.band_from * span, self.config.min + adaption.band_to * span);
        while self.adapt_next <= now {
            let before = self.max_probability;
            let average = self.average_at(self.adapt_next);
            if average > to && before <= adaption.highest {
                self.max_probability += adaption.increase.min(LARGEST_RELATIVE_INCREASE * before);
            } else if average < from && before >= adaption.lowest {
                self.max_probability *= adaption.decrease;
            }
            if self.max_probability.to_bits() == before.to_bits() {
                // Nor do the steps after it change anything, until the average of an idle link is
                // below the band.
                let due = now.since(self.adapt_next).whole(adaption.interval);
                let below = |step| self.average_at(self.adapt_next + adaption.interval * step) < from;
                let idle = self.empty_since.is_some() && average >= from;
                let steps = if idle { first_step(due, below) - 1 } else { due };
                self.adapt_next += adaption.interval * steps;
            }
            if self.adapt_next == Time::NEVER {
                return;
            }
            self.adapt_next += adaption.interval;
        }
    }

    /// The probability before it is spread evenly (the papers' `p_b`); 1 or more hits for certain.
    fn base_probability(&self) -> f64 {
        let RedConfig { min, max, gentle, .. } = self.config;
        if self.average < max {
            self.max_probability * (self.average - min) / (max - min)
        } else if gentle {
            self.max_probability + (1.0 - self.max_probability) * (self.average - max) / max
        } else {
            1.0
        }
    }

    /// True if this arrival is hit.
    fn hits(&mut self, bytes: u32) -> bool {
        if self.average < self.config.min {
            self.count = None;
            return false;
        }
        let base = self.base_probability();
        if base >= 1.0 {
            self.count = Some(0);
            return true;
        }
        let base = self.config.byte_mode.map_or(base, |large| base * f64::from(bytes) / f64::from(large.max(1)));
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        let left = 1.0 + f64::from(u8::from(self.config.wait)) - count as f64 * base;
        if self.config.wait && left > 1.0 {
            self.count = Some(count);
            return false;
        }
        let hit = left <= base || Probability::new(base / left).draw(&mut self.random);
        self.count = Some(if hit { 0 } else { count });
        hit
    }
}

impl<P: Frame> Discipline<P> for Red<P> {
    // Stores the packet, marked if RED says so and it can be, or drops it.
    fn enqueue(&mut self, now: Time, mut packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        self.adapt(now);
        self.average_in(now);
        if self.hits(packet.bytes()) {
            if !(self.config.ecn && packet.set_ce()) {
                return dropped(packet, DropReason::Early);
            }
            self.marked += 1;
        }
        if self.fifo.packets() < self.config.limit {
            self.fifo.push(packet, now);
        } else {
            dropped(packet, DropReason::Full);
        }
    }

    // The oldest packet.
    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        let head = self.fifo.pop();
        // Idle time counts from the dequeue that finds nothing: the last packet has left then.
        if head.is_none() && self.empty_since.is_none() {
            self.empty_since = Some(now);
        }
        head.into()
    }

    fn heeds_emptiness(&self) -> bool {
        self.empty_since.is_none()
    }

    #[inline]
    fn tally(&self) -> Tally {
        self.fifo.tally(self.marked)
    }
}

#[cfg(test)]
mod tests;
