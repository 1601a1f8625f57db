//! The first train, whose arrivals tell how fast the bottleneck is, and what follows it: packets spread in time, or a chirp if too few arrived.

use flowstart_units::{Span, Time};

use crate::Acked;
use crate::detection::Isolation;

use super::side::round_trip;
use super::{Stage, Trains};

impl Trains {
    /// The first train comes in: how fast the bottleneck is.
    pub(super) fn on_first(&mut self, acked: &Acked) {
        let of_train = (self.first_from..self.first_until).contains(&acked.number);
        match self.first_ack {
            _ if !of_train => {}
            Some(first) if acked.now > first => {
                self.after_first += 1;
                let gap = acked.now.since(self.last_ack);
                if !gap.is_zero() {
                    self.quickest = Some(self.quickest.map_or(gap, |quickest| quickest.min(gap)));
                }
                self.last_ack = acked.now;
            }
            first => {
                self.first_ack = Some(first.unwrap_or(acked.now));
                self.with_first += 1;
                self.last_ack = acked.now;
                if self.with_first == 1 && !self.chirp {
                    // If no other arrives this one tells so.
                    self.sides[0].plan.push_back((acked.now + round_trip(acked).mul_f64(self.config.follow_rtts), 1));
                }
            }
        }
        let over = acked.number >= self.first_until;
        if self.chirp {
            if over {
                self.read_chirp(acked.now);
            }
            return;
        }
        if self.after_first == 0 && self.with_first < self.config.train {
            if over {
                self.send_chirp(acked.now);
            }
            return;
        }
        let Some(first) = self.first_ack else { return };
        // Of a train with losses, the time that those take that arrived next to each other; a train that arrived at once is faster than can be measured.
        let mean = self.last_ack.since(first) / u64::from(self.after_first.max(1));
        let service = self.quickest.filter(|_| self.losses).unwrap_or(mean).max(Span::from_micros(1));
        if of_train {
            self.service = Some(service);
            // Planned anew with every ACK, as the estimate improves, until the first of them has left.
            self.plan_first(first + service * u64::from(self.config.train + 1), service);
        } else {
            // The spread packets met no queue of ours.
            self.note_calm(acked);
        }
        if acked.number >= self.spread_ends {
            self.stage = Stage::Trains;
        }
    }

    /// Too little of the first train arrived to tell a rate: packets follow whose gaps shrink, so that some are as far apart as the bottleneck needs.
    fn send_chirp(&mut self, now: Time) {
        self.batches += 1;
        if self.batches >= self.config.most_batches {
            return self.conclude(now, Isolation::Unknown);
        }
        let rtt = self.smallest();
        let count = self.config.train * 2;
        let train = &mut self.sides[0];
        train.plan.clear();
        let (mut at, mut gap) = (now, rtt / u64::from(self.config.train));
        for _ in 0..count {
            train.plan.push_back((at, 1));
            at += gap;
            gap = gap.mul_f64(self.config.chirp_shrink);
        }
        for index in 1..=self.config.followers {
            train.plan.push_back((at + rtt.mul_f64(self.config.follow_rtts) * u64::from(index), 1));
        }
        (self.first_from, self.first_until) = (train.sent, train.sent + u64::from(count));
        (self.first_ack, self.with_first, self.after_first, self.quickest) = (None, 0, 0, None);
        self.chirp = true;
    }

    /// What arrived of a chirp tells how fast packets may follow each other; so small a buffer shows no delays.
    fn read_chirp(&mut self, now: Time) {
        match self.quickest {
            Some(quickest) => {
                self.service = Some(quickest.max(Span::from_micros(1)));
                self.begin_contrast(now);
            }
            None => self.send_chirp(now),
        }
    }

    /// The spread packets and the first batch behind them.
    fn plan_first(&mut self, begin: Time, service: Span) {
        let apart = self.config.spread_apart;
        let [trains, lone] = &mut self.sides;
        if self.spread_begun {
            return;
        }
        trains.plan.clear();
        for index in 0..self.config.spread {
            trains.plan.push_back((begin + service * u64::from(apart * index), 1));
        }
        if lone.sent == 0 {
            // Between two of them: it tells the delay of its own path.
            lone.plan.clear();
            lone.plan.push_back((begin + service * u64::from(self.config.spread) + service, self.config.lone));
        }
        self.batches = self.batches.max(1);
        let before = trains.sent + u64::from(self.config.spread);
        self.spread_ends = before - 1;
        self.plan_batch(begin + service * u64::from(apart * self.config.spread), before);
    }
}
