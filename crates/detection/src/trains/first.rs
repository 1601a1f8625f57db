//! The first train, whose arrivals tell how fast the bottleneck is, and what follows it: packets spread in time, or a chirp if too few arrived.

use flowstart_units::{Span, Time};

use crate::Acked;
use crate::Isolation;

use super::batch::FLANKS;
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
                self.slowest = self.slowest.max(gap);
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
            let through = first + service * u64::from(self.config.train + 1);
            if self.follows_at_once(acked, service) {
                self.plan_at_once(acked.now, service);
            } else if f64::from(self.with_first + self.after_first) <= self.config.least_queue {
                // Jitter may hold back the rest.
                self.plan_followers(through.max(acked.now + self.smallest().mul_f64(self.config.follow_rtts)));
            } else {
                self.plan_first(through, service);
            }
        } else if acked.number <= self.spread_ends && self.batch_from != u64::MAX {
            // The spread packets met no queue of ours.
            self.note_calm(acked);
        }
        if acked.number >= self.spread_ends {
            if self.batch_from == u64::MAX {
                return self.after_followers(acked.now, service);
            }
            self.stage = Stage::Trains;
            if self.at_once {
                self.uneven = self.unevenness(service);
            }
            if acked.number > self.spread_ends {
                self.on_train(0, acked);
            }
        }
    }

    /// True if the first train arrives packet by packet and evenly: then nothing is to be learnt of packets spread in time.
    fn follows_at_once(&self, acked: &Acked, service: Span) -> bool {
        let in_order = self.with_first == 1 && acked.number == self.first_from + u64::from(self.after_first);
        let even = self.unevenness(service) <= service.mul_f64(self.config.even_gaps);
        in_order && even && self.after_first >= self.config.enough_gaps && self.sides[1].open
    }

    /// By how much gaps of the first train differ at most from what they should be.
    fn unevenness(&self, service: Span) -> Span {
        let quickest = self.quickest.unwrap_or(Span::ZERO);
        (self.slowest - service).max(service - quickest)
    }

    /// A batch as soon as the first train has left the bottleneck's queue; the first packets of its first train use up a new flow's credit.
    fn plan_at_once(&mut self, now: Time, service: Span) {
        if self.spread_begun {
            return;
        }
        let through = self.began.unwrap_or(now) + service * u64::from(self.config.train);
        for side in &mut self.sides {
            side.plan.clear();
        }
        self.at_once = true;
        self.batches = self.batches.max(1);
        let before = self.sides[0].sent;
        self.spread_ends = before - 1;
        self.plan_batch(now.max(through), before);
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
        self.slowest = Span::ZERO;
        self.chirp = true;
    }

    /// What arrived of a chirp tells how fast packets may follow each other; so small a buffer shows no delays.
    fn read_chirp(&mut self, now: Time) {
        match self.quickest {
            Some(quickest) => {
                self.service = Some(quickest.max(Span::from_micros(1)));
                self.stage = Stage::Trains;
                self.bursts = true;
                self.length = FLANKS * 2;
                self.begin_batch(now);
            }
            None => self.send_chirp(now),
        }
    }

    /// As long as no more of the first train has arrived than a buffer holds that shows no delays, only a few packets follow, which find out whether the rest
    /// was lost.
    fn plan_followers(&mut self, begin: Time) {
        let apart = self.smallest().mul_f64(self.config.follow_rtts);
        let [trains, lone] = &mut self.sides;
        if self.spread_begun {
            return;
        }
        self.at_once = false;
        self.batch_from = u64::MAX;
        trains.plan.clear();
        lone.plan.clear();
        for index in 0..self.config.followers {
            trains.plan.push_back((begin + apart * u64::from(index), 1));
        }
        self.spread_ends = trains.sent + u64::from(self.config.followers) - 1;
    }

    /// What was missing of the first train has arrived late, or the path holds no more than what arrived.
    fn after_followers(&mut self, now: Time, service: Span) {
        let arrived = self.with_first + self.after_first;
        self.service = Some(service);
        let last = self.sides[0].find(self.first_until - 1);
        if arrived >= self.config.train || last.is_some_and(|packet| packet.rtt.is_some()) {
            // What is missing was not lost because the buffer was full.
            return self.begin_again(now);
        }
        self.stage = Stage::Trains;
        self.bursts = true;
        self.length = (arrived + FLANKS).max(FLANKS * 2).min(self.length);
        self.begin_batch(now);
    }

    /// Spread packets, which tell the jitter, and a batch behind them.
    pub(super) fn begin_again(&mut self, now: Time) {
        self.stage = Stage::First;
        (self.spread_begun, self.chirp) = (false, false);
        self.batches += 1;
        (self.highest, self.losses, self.weighed) = (Span::ZERO, false, false);
        self.plan_first(now, self.service.unwrap_or(Span::from_micros(1)));
    }

    /// The spread packets and the first batch behind them.
    fn plan_first(&mut self, begin: Time, service: Span) {
        let apart = self.config.spread_apart;
        let [trains, lone] = &mut self.sides;
        if self.spread_begun {
            return;
        }
        self.at_once = false;
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
