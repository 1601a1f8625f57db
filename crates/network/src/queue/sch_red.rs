//! RED as Linux has it (`sch_red`, `red.h`): in bytes and integers, never gentle, with its own way
//! to the same uniform gaps.

use flowstart_random::{Rng, Stream, stream};
use flowstart_units::{Span, Time};

use super::fifo::{Fifo, counted};
use super::red::{first_step, power};
use super::{Constants, Dequeue, Discipline, DropReason, Limit, QueueError, Tally};
use crate::Frame;

/// Constants of Linux's RED, in bytes; names in parentheses are those of tc-red(8).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct SchRedConfig {
    /// Most bytes stored; default 400 000, the manual's example (`limit`).
    pub limit: u64,
    /// Average length from which packets are hit at random; default 30 000, the manual's example
    /// (`min`).
    pub min: u64,
    /// Average length from which every packet is hit; default 90 000, the manual's example (`max`).
    pub max: u64,
    /// Probability when the average is just below `max`, above 0 and at most 1; default 0.02
    /// (`probability`).
    pub probability: f64,
    /// The weight of one arrival in the average is 2 to the minus this, 1 ..= 31; default 9, about
    /// 0.002 (`Wlog`, which tc computes from `burst`).
    pub weight_log: u32,
    /// Transmission time of an average packet: how fast the average falls while the queue is empty.
    /// Default 0.8 ms, 1000 bytes at 10 Mbit/s (`avpkt`, `bandwidth`).
    pub packet_time: Span,
    /// Mark ECN-capable packets instead of dropping them; default false (`ecn`).
    pub ecn: bool,
    /// Drop, never mark, above `max`; default false (`harddrop`).
    pub hard_drop: bool,
    /// Queue packets that are not ECN-capable instead of dropping them; default false (`nodrop`).
    pub no_drop: bool,
    /// Adapt the probability every half second; default false (`adaptive`).
    pub adaptive: bool,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
}

impl Default for SchRedConfig {
    fn default() -> Self {
        Self {
            limit: 400_000,
            min: 30_000,
            max: 90_000,
            probability: 0.02,
            weight_log: 9,
            packet_time: Span::from_micros(800),
            ecn: false,
            hard_drop: false,
            no_drop: false,
            adaptive: false,
            overhead: 14,
        }
    }
}

/// Probabilities are held in 32 bits.
const ONE: u64 = 1 << 32;
/// Time between two steps of `adaptive`.
const ADAPT_INTERVAL: Span = Span::from_millis(500);
/// The probability is adapted between 1 % and 50 %, up by at most 1 % and at most a quarter, down
/// by a tenth.
const ADAPT_LOWEST: u64 = ONE / 100;
const ADAPT_HIGHEST: u64 = ONE / 2;
const ADAPT_INCREASE: u64 = ONE / 100;
/// Averages are kept with this many bits of fraction at most.
const MOST_WEIGHT_LOG: u32 = 31;
/// The largest threshold or limit; leaves room for the fraction.
const MOST_BYTES: u64 = u32::MAX as u64;

/// What RED decides for an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Spare,
    Hit,
    /// The average is above `max`.
    HitForCertain,
}

impl Constants for SchRedConfig {
    type Queue<P: Frame> = SchRed<P>;

    fn build<P: Frame>(self, seed: u64) -> SchRed<P> {
        SchRed::new(self, seed)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless((1..=MOST_BYTES).contains(&self.limit), "RED's limit lies between 1 byte and 4 GiB")?;
        let thresholds = self.min < self.max && self.max <= MOST_BYTES;
        QueueError::unless(thresholds, "RED's thresholds need min < max; step_mark has a single threshold")?;
        let probability = self.probability > 0.0 && self.probability <= 1.0;
        QueueError::unless(probability, "RED's probability lies above 0 and is at most 1")?;
        QueueError::unless((1..=MOST_WEIGHT_LOG).contains(&self.weight_log), "RED's weight_log lies between 1 and 31")?;
        QueueError::unless(!self.packet_time.is_zero(), "RED's packet_time must not be 0")
    }

    fn is_random(&self) -> bool {
        true
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Bytes(&mut self.limit)
    }

    fn largest_packet(&self) -> u64 {
        self.limit.saturating_sub(self.overhead.into())
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// Linux's RED in operation.
#[derive(Clone, Debug)]
pub struct SchRed<P> {
    fifo: Fifo<P>,
    config: SchRedConfig,
    /// Average length, times 2 to `weight_log`.
    average: u64,
    probability: u64,
    /// Packets since the last hit, -1 below `min` and after a hit for certain.
    count: i64,
    /// The uniform draw that the count is compared with.
    draw: u64,
    empty_since: Option<Time>,
    adapt_next: Time,
    random: Stream,
    marked: u64,
}

impl<P: Frame> SchRed<P> {
    /// An empty queue with its own random stream.
    #[must_use]
    pub fn new(config: SchRedConfig, seed: u64) -> Self {
        Self {
            fifo: Fifo::new(),
            config,
            average: 0,
            probability: ((config.probability * ONE as f64) as u64).max(1),
            count: -1,
            draw: 0,
            empty_since: None,
            adapt_next: if config.adaptive { Time::ZERO + ADAPT_INTERVAL } else { Time::NEVER },
            random: stream(seed),
            marked: 0,
        }
    }

    fn span(&self) -> u64 {
        self.config.max.saturating_sub(self.config.min).max(1)
    }

    fn average_in(&mut self, now: Time) {
        let weight_log = self.config.weight_log.min(MOST_WEIGHT_LOG);
        if self.empty_since.is_some() {
            self.average = self.average_at(now);
            self.empty_since = None;
            return;
        }
        let backlog = self.fifo.counted(self.config.overhead).min(MOST_BYTES);
        self.average = self.average - (self.average >> weight_log) + backlog;
    }

    /// The average at this moment: while the link is idle it decays, as if packets of 0 bytes left.
    fn average_at(&self, now: Time) -> u64 {
        let weight_log = self.config.weight_log.min(MOST_WEIGHT_LOG);
        let Some(since) = self.empty_since else { return self.average };
        // Linux reads this power from a table of tc's making.
        let missed = now.since(since).whole(self.config.packet_time);
        let weight = 1.0 / (1_u64 << weight_log) as f64;
        (self.average as f64 * power(1.0 - weight, missed)) as u64
    }

    /// The steps of the probability that were due (Linux `red_adaptative_algo`).
    fn adapt(&mut self, now: Time) {
        let span = self.span();
        let weight_log = self.config.weight_log.min(MOST_WEIGHT_LOG);
        // The target band in whole bytes, from two to three fifths of the way.
        let (from, to) = (self.config.min + 2 * (span / 5), self.config.min + 3 * (span / 5));
        while self.adapt_next <= now && self.adapt_next != Time::NEVER {
            let before = self.probability;
            let average = self.average_at(self.adapt_next) >> weight_log;
            if average > to && before <= ADAPT_HIGHEST {
                self.probability += ADAPT_INCREASE.min(before / 4);
            } else if average < from && before >= ADAPT_LOWEST {
                self.probability = before / 10 * 9;
            }
            if self.probability == before {
                // Nor do the steps after it change anything, until the average of an idle link is
                // below the band.
                let due = now.since(self.adapt_next).whole(ADAPT_INTERVAL);
                let below = |step| self.average_at(self.adapt_next + ADAPT_INTERVAL * step) >> weight_log < from;
                let idle = self.empty_since.is_some() && average >= from;
                self.adapt_next += ADAPT_INTERVAL * if idle { first_step(due, below) - 1 } else { due };
            }
            self.adapt_next += ADAPT_INTERVAL;
        }
    }

    /// A draw on 0 .. span / probability.
    fn new_draw(&mut self) -> u64 {
        let wide = u128::from(self.random.next_u64() >> 32) * u128::from(self.span()) / u128::from(self.probability);
        // At most 2^32 times 2^32.
        wide as u64
    }

    fn judge(&mut self) -> Decision {
        let weight_log = self.config.weight_log.min(MOST_WEIGHT_LOG);
        if self.average < self.config.min << weight_log {
            self.count = -1;
            return Decision::Spare;
        }
        if self.average >= self.config.max << weight_log {
            self.count = -1;
            return Decision::HitForCertain;
        }
        self.count += 1;
        if self.count == 0 {
            self.draw = self.new_draw();
            return Decision::Spare;
        }
        let above = (self.average - (self.config.min << weight_log)) >> weight_log;
        if above.saturating_mul(self.count.unsigned_abs()) < self.draw {
            return Decision::Spare;
        }
        self.count = 0;
        self.draw = self.new_draw();
        Decision::Hit
    }
}

impl<P: Frame> Discipline<P> for SchRed<P> {
    // Stores the packet, marked if RED says so and it can be, or drops it.
    fn enqueue(&mut self, now: Time, mut packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        self.adapt(now);
        self.average_in(now);
        let verdict = self.judge();
        if verdict != Decision::Spare {
            let may_mark = self.config.ecn && !(verdict == Decision::HitForCertain && self.config.hard_drop);
            if may_mark && packet.set_ce() {
                self.marked += 1;
            } else if !(may_mark && self.config.no_drop) {
                return dropped(packet, DropReason::Early);
            }
        }
        let length = counted(&packet, self.config.overhead);
        if self.fifo.counted(self.config.overhead).saturating_add(length) <= self.config.limit {
            self.fifo.push(packet, now);
        } else {
            dropped(packet, DropReason::Full);
        }
    }

    // The oldest packet.
    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        let head = self.fifo.pop();
        // Idle time counts from the dequeue that finds nothing.
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
