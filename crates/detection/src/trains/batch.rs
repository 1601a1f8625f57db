//! Batches of trains with lone packets behind them, and what the delays of the latter say.

use flowstart_units::{Span, Time};

use crate::Acked;
use crate::Isolation;

use super::Trains;
use super::side::round_trip;

/// Packets of a burst around a lone one.
pub(super) const FLANKS: u32 = 2;

/// Packets of both connections leave in this order.
const NEXT: Span = Span::from_nanos(1);

impl Trains {
    /// Another batch.
    pub(super) fn begin_batch(&mut self, now: Time) {
        self.batches += 1;
        self.highest = Span::ZERO;
        self.losses = false;
        self.weighed = false;
        self.overflowed = false;
        self.at_once = false;
        for side in &mut self.sides {
            side.plan.clear();
        }
        let sent = self.sides[0].sent;
        self.plan_batch(now, sent);
    }

    /// Trains from the time `begin` on, each with a lone packet behind it; `before` packets of connection 0 leave before.
    pub(super) fn plan_batch(&mut self, begin: Time, before: u64) {
        let service = self.service.unwrap_or(Span::from_micros(1));
        let apart = (service * u64::from(self.length + 1)).mul_f64(self.config.apart);
        let gap = service.mul_f64(1.0 / self.config.train_load);
        let patience = self.patience();
        let [trains, lone] = &mut self.sides;
        let mut at = begin;
        for _ in 0..self.config.batch {
            if self.bursts {
                trains.plan.push_back((at, self.length - 1));
                lone.plan.push_back((at + NEXT, 1));
                trains.plan.push_back((at + NEXT * 2, 1));
                // Nothing locks in phase.
                let random = self.config.burst_jitter * (2.0 * self.random.unit() - 1.0);
                at += apart.mul_f64(1.0 + random);
                continue;
            }
            for place in 0..self.length {
                trains.plan.push_back((at + gap * u64::from(place), 1));
            }
            if self.at_once {
                let places =
                    (0..self.config.lone).rev().map(|nth| self.length.saturating_sub(1 + nth * self.config.lone_apart));
                lone.plan.extend(places.map(|place| (at + gap * u64::from(place), 1)));
            } else {
                lone.plan.push_back((at + gap * u64::from(self.length - 1), self.config.lone));
            }
            at += apart;
        }
        // What follows finds the last losses; where bursts are called for the buffer may be full for a while.
        let after = at;
        let between = service * 2 + patience;
        for index in 0..self.config.followers {
            trains.plan.push_back((after + between * u64::from(index + u32::from(self.bursts)), 1));
        }
        lone.plan.push_back((after + patience, self.config.lone));
        self.batch_from = before;
        self.dispersion.begin_batch();
        self.batch_ends = before + u64::from(self.config.batch * self.length + self.config.followers) - 1;
    }

    pub(super) fn on_train(&mut self, connection: usize, acked: &Acked) {
        if connection == 0 {
            let smallest = self.smallest();
            let excess = round_trip(acked).checked_sub(smallest).unwrap_or(Span::ZERO);
            self.highest = self.highest.max(excess);
            if let Some(place) = acked.number.checked_sub(self.batch_from)
                && place < u64::from(self.config.batch * self.length)
            {
                let length = u64::from(self.length);
                // The first of a batch that follows at once may have had credit.
                let sums = if self.at_once && place < length { &mut self.with_credit } else { &mut self.dispersion };
                sums.add(acked.now, place, length);
            }
        }
        self.weigh();
        let over = connection == 0 && acked.number >= self.batch_ends;
        if (over || self.knows_rate()) && self.decide(acked.now) {
            return;
        }
        if over {
            self.next_batch(acked.now);
        }
    }

    /// True if the rate to go on with is known: in a queue of one's own it is a share if others are there.
    fn knows_rate(&self) -> bool {
        if self.answer() != Some(Isolation::Isolated) {
            return true;
        }
        let (least, service) = (self.config.least_gaps, self.service.unwrap_or(Span::ZERO));
        let lone = service * u64::from(self.config.lone);
        // What the first train took, if nobody else is served.
        let alone = service.mul_f64(self.config.alone_gaps);
        self.dispersion.per_packet(least, lone).is_some()
            || self.with_credit.per_packet(1, lone).is_some_and(|per_packet| per_packet <= alone)
    }

    /// Takes the lone packets whose neighbour's delay is known as evidence.
    fn weigh(&mut self) {
        let scale = self.scale();
        let [trains, lone] = &mut self.sides;
        while let Some(first) = lone.flying.front().copied() {
            let twin = lone.flying.get(1).copied().filter(|twin| twin.sent == first.sent);
            // Behind it no other is known as long as its own fate is open.
            if !first.is_settled() || twin.is_some_and(|twin| !twin.is_settled()) {
                break;
            }
            if let Some(neighbour) = trains.find(first.neighbour) {
                // The neighbour may be lost: then the last packet of the train that arrived counts.
                if !neighbour.is_settled() {
                    break;
                }
                let delay = trains.delay_before(first.neighbour, self.length, scale.service);
                let delay = delay.map_or(Span::ZERO, |rtt| scale.excess(rtt));
                if self.bursts {
                    let Some(behind) = trains.find(first.neighbour + 1).filter(|behind| behind.is_settled()) else {
                        break;
                    };
                    if behind.sent.since(neighbour.sent) <= scale.service {
                        self.overflowed |= neighbour.lost || behind.lost;
                        self.evidence.burst(neighbour.lost, first.lost, behind.lost);
                    }
                }
                // A lone packet that was held up, for instance because its connection was not open yet, met another queue.
                let together = first.sent.since(neighbour.sent) <= scale.service;
                if scale.is_queue(delay, &self.config) && together && !self.bursts {
                    self.weighed = true;
                    match scale.waited([first.rtt, twin.and_then(|twin| twin.rtt)]) {
                        None => self.evidence.lone_lost(),
                        Some(waited) => {
                            if let Some((ratio, noise)) = scale.ratio(waited, delay, &self.config) {
                                self.evidence.ratio(ratio, noise);
                            }
                        }
                    }
                }
            }
            lone.flying.drain(..1 + usize::from(twin.is_some()));
        }
    }

    /// A batch is over without an answer: longer trains if jitter hides them, bursts if the buffer is too small, or none.
    fn next_batch(&mut self, now: Time) {
        let service = self.service.unwrap_or(Span::ZERO);
        if self.batches >= self.config.most_batches {
            return self.conclude(now, Isolation::Unknown);
        }
        let queued = self.highest >= service.mul_f64(self.config.least_queue);
        if !self.sides[1].open {
            // Nothing could be compared yet. Its SYN may have been lost.
            let began = self.began.unwrap_or(now);
            return if now.since(began) > self.config.open_wait {
                self.conclude(now, Isolation::Unknown)
            } else {
                self.batches -= 1;
                self.begin_batch(now)
            };
        }
        if self.bursts && self.overflowed {
            // The next ones do so by more.
            self.length += FLANKS;
            return self.begin_batch(now);
        }
        if std::mem::take(&mut self.bursts) {
            self.length = self.length.max(self.config.shortest_train);
            return self.begin_again(now);
        }
        if self.losses && !(queued && self.weighed) {
            self.bursts = true;
            return self.begin_batch(now);
        }
        let wanted = self.jitter().mul_f64(self.config.least_jitters);
        let needed = if service.is_zero() { 0 } else { u32::try_from(wanted.whole(service)).unwrap_or(u32::MAX) };
        if !queued {
            self.length = self.length.saturating_mul(2);
        } else if self.highest < wanted {
            // Of a train at twice the rate half is queued, and so on.
            let queued = 1.0 - 1.0 / self.config.train_load;
            let reckoned = ((f64::from(needed) / queued) as u32).saturating_add(1);
            // If that was not enough the rate was misjudged.
            self.length = if reckoned > self.length { reckoned } else { self.length.saturating_mul(2) };
        }
        // Even, so that a receiver that acknowledges every second packet does not delay the ACK of the last.
        self.length = self.length.min(self.config.longest_train).next_multiple_of(2);
        self.begin_batch(now);
    }
}
