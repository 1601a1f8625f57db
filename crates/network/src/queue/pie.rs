//! PIE (Pan et al. 2013, RFC 8033; Linux `sch_pie`): a controller of the queueing delay that drops
//! or marks at the tail.

use flowstart_random::{Probability, Stream, stream};
use flowstart_units::{Span, Time};

use super::fifo::Fifo;
use super::ticks::Ticks;
use super::{Constants, Dequeue, Discipline, DropReason, Limit, QueueError, Tally};
use crate::Frame;

/// Constants of PIE; names in parentheses are those of tc-pie(8). The delay is that of the last
/// packet that left, as Linux measures it by default.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct PieConfig {
    /// Queueing delay aimed at; default 15 ms (RFC 8033 section 4.2).
    pub target: Span,
    /// Time between two updates of the probability; default 15 ms (`tupdate`). Linux rounds it up
    /// to its timer's ticks.
    pub update_interval: Span,
    /// When the first update is; default 0.5 s, as in Linux.
    pub first_update: Span,
    /// Gain on the distance from the target, per second; default 0.125 (RFC 8033 section 4.2).
    pub alpha: f64,
    /// Gain on the change of the delay, per second; default 1.25 (RFC 8033 section 4.2).
    pub beta: f64,
    /// Most packets stored; default 1000 (`limit`).
    pub limit: u64,
    /// A burst after idle time passes untouched for so long; default 150 ms (RFC 8033 section 4.4).
    pub burst_allowance: Span,
    /// Mark ECN-capable packets instead of dropping them; default false (`ecn`).
    pub ecn: bool,
    /// Above this probability ECN-capable packets are dropped too; default 0.1 (RFC 8033 section
    /// 5.1).
    pub mark_up_to: f64,
    /// The probability is multiplied by this at every update while the queue is empty; default
    /// 63/64 as in Linux (RFC 8033: 0.98).
    pub idle_decay: f64,
    /// No drops while less than this is stored; default 3028 bytes, two Ethernet frames.
    pub floor: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            update_interval: Span::from_millis(15),
            first_update: Span::from_millis(500),
            alpha: 0.125,
            beta: 1.25,
            limit: 1000,
            burst_allowance: Span::from_millis(150),
            ecn: false,
            mark_up_to: 0.1,
            idle_decay: 63.0 / 64.0,
            floor: 2 * 1514,
            overhead: 14,
        }
    }
}

/// Below each probability the gains are divided by so much (RFC 8033 section 4.2).
const GENTLER_BELOW: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// From this probability on it rises by at most this much per update (RFC 8033 section 5.5).
const CAP_FROM: f64 = 0.1;
const CAP: f64 = 0.02;
/// A longer delay than this raises the probability by `CAP` more (RFC 8033 section 5.5).
const VERY_LONG: Span = Span::from_millis(250);
/// Nothing is hit while the delay is below half the target and the probability below this (RFC 8033
/// section 5.1).
const SPARE_BELOW: f64 = 0.2;
/// Random hits are kept from coming too close or too far apart: none until the probabilities since
/// the last add up to the first, one for certain when they do to the second (RFC 8033 section 5.4).
const NONE_BEFORE: f64 = 0.85;
const ONE_AFTER: f64 = 8.5;
/// A probability below the resolution of Linux's 56 bits is none.
const NEGLIGIBLE: f64 = 1.0 / (1_u64 << 56) as f64;

/// What an update works on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Controlled {
    probability: f64,
    old_delay: Span,
    burst_allowance: Span,
    /// Sum of the probabilities since the last hit.
    accumulated: f64,
    last_dequeue: Option<Time>,
}

impl Controlled {
    /// One update; `empty` if nothing is stored.
    fn update(&mut self, config: &PieConfig, delay: Span, empty: bool) {
        let seconds = delay.as_secs_f64();
        let mut change = config.alpha * (seconds - config.target.as_secs_f64())
            + config.beta * (seconds - self.old_delay.as_secs_f64());
        if let Some((_, divisor)) = GENTLER_BELOW.iter().find(|(below, _)| self.probability < *below) {
            change /= divisor;
        }
        if self.probability >= CAP_FROM {
            change = change.min(CAP);
        }
        if delay > VERY_LONG {
            change += CAP;
        }
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        if delay.is_zero() && self.old_delay.is_zero() && empty {
            self.probability *= config.idle_decay;
        }
        if self.probability < NEGLIGIBLE {
            self.probability = 0.0;
        }
        let half = config.target / 2;
        if self.probability == 0.0 && delay < half && self.old_delay < half {
            self.burst_allowance = config.burst_allowance;
            self.accumulated = 0.0;
            self.last_dequeue = None;
        }
        self.old_delay = delay;
    }
}

impl Constants for PieConfig {
    type Queue<P: Frame> = Pie<P>;

    fn build<P: Frame>(self, seed: u64) -> Pie<P> {
        Pie::new(self, seed)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless(self.limit > 0, "PIE needs room for at least 1 packet")?;
        QueueError::unless(!self.update_interval.is_zero(), "PIE's update_interval must not be 0")?;
        let gains = self.alpha.is_finite() && self.alpha >= 0.0 && self.beta.is_finite() && self.beta >= 0.0;
        QueueError::unless(gains, "PIE's gains alpha and beta are numbers of at least 0")?;
        let factors = (0.0..=1.0).contains(&self.mark_up_to) && (0.0..=1.0).contains(&self.idle_decay);
        QueueError::unless(factors, "PIE's mark_up_to and idle_decay lie between 0 and 1")
    }

    fn is_random(&self) -> bool {
        true
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Packets(&mut self.limit)
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// PIE in operation.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    fifo: Fifo<P>,
    config: PieConfig,
    state: Controlled,
    /// Sojourn time of the last packet that left, zero if the queue is empty.
    delay: Span,
    updates: Ticks,
    random: Stream,
    marked: u64,
}

impl<P: Frame> Pie<P> {
    /// An empty queue with its own random stream.
    #[must_use]
    pub fn new(config: PieConfig, seed: u64) -> Self {
        let state = Controlled {
            probability: 0.0,
            old_delay: Span::ZERO,
            burst_allowance: config.burst_allowance,
            accumulated: 0.0,
            last_dequeue: None,
        };
        Self {
            fifo: Fifo::new(),
            config,
            state,
            delay: Span::ZERO,
            updates: Ticks::new(Time::ZERO + config.first_update, config.update_interval),
            random: stream(seed),
            marked: 0,
        }
    }

    /// Makes up for the updates that were due: nothing they depend on has changed since the last
    /// call.
    fn update(&mut self, now: Time) {
        while self.updates.next(now).is_some() {
            let before = self.state;
            self.state.update(&self.config, self.delay, self.fifo.packets() == 0);
            if self.state == before {
                self.updates.skip_to(now);
            }
        }
    }

    /// True if this arrival is hit.
    fn hits(&mut self) -> bool {
        let probability = self.state.probability;
        let calm = self.delay < self.config.target / 2 && probability < SPARE_BELOW;
        let short = self.fifo.counted(self.config.overhead) < u64::from(self.config.floor);
        if !self.state.burst_allowance.is_zero() || calm || short {
            return false;
        }
        if probability == 0.0 {
            self.state.accumulated = 0.0;
            return false;
        }
        self.state.accumulated += probability;
        if self.state.accumulated < NONE_BEFORE {
            return false;
        }
        let hit = self.state.accumulated >= ONE_AFTER || Probability::new(probability).draw(&mut self.random);
        if hit {
            self.state.accumulated = 0.0;
        }
        hit
    }
}

impl<P: Frame> Discipline<P> for Pie<P> {
    // Stores the packet, marked if PIE says so and it can be, or drops it.
    fn enqueue(&mut self, now: Time, mut packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        self.update(now);
        if self.fifo.packets() >= self.config.limit {
            // So that no early drop follows at once (RFC 8033 appendix A, Linux
            // `pie_drop_early`'s callers).
            self.state.accumulated = 0.0;
            return dropped(packet, DropReason::Full);
        }
        if self.hits() {
            let may_mark = self.config.ecn && self.state.probability <= self.config.mark_up_to;
            if !(may_mark && packet.set_ce()) {
                return dropped(packet, DropReason::Early);
            }
            self.marked += 1;
        }
        self.fifo.push(packet, now);
    }

    // The oldest packet.
    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        self.update(now);
        let head = self.fifo.pop();
        if let Some((_, arrived)) = &head {
            // The allowance runs out by the time between departures.
            let elapsed = self.state.last_dequeue.map_or(Span::ZERO, |last| now.since(last));
            self.state.burst_allowance -= elapsed;
            self.state.last_dequeue = Some(now);
            self.delay = if self.fifo.packets() == 0 { Span::ZERO } else { now.since(*arrived) };
        }
        head.into()
    }

    #[inline]
    fn tally(&self) -> Tally {
        self.fifo.tally(self.marked)
    }
}

#[cfg(test)]
mod tests;
