//! What several round trips in a row tell: whose the queue is, how long the path is, and whether
//! the rate starves.

use flowstart_units::{Rate, Span, Time};

use super::DelayTarget;
use super::config::MOST_ROUNDS;
use super::foreseen::Foreseen;
use super::longer::Longer;

impl DelayTarget {
    /// True if no queue of `foreseen` seconds will come, for those foreseen before did not.
    pub(super) fn is_in_vain(&mut self, delivery: Rate, foreseen: f64) -> bool {
        let target = self.target_at(delivery).max(self.least_target());
        // Where a round trip is shorter than the target a queue takes several of them to come.
        if self.smallest.get().as_secs_f64() < target {
            self.foreseen = Foreseen::NEW;
            return false;
        }
        self.foreseen.on_round(&self.config, self.queueing().as_secs_f64(), foreseen, target)
    }

    /// Counts round trips in which the queue is long although it was to be emptied, from one on at
    /// `rate`.
    pub(super) fn watch_queue(&mut self, rate: Rate) {
        // Whoever starves has a long time per packet, and must not take a long queue for a short
        // one.
        let own = if self.foreign == 0 { rate } else { self.undoubted };
        if self.queueing().as_secs_f64() < self.target_at(own) * self.config.foreign_targets + self.noise() {
            self.foreign = 0;
        } else {
            self.undoubted = own;
            self.foreign += 1;
        }
    }

    /// Watches whether the path has become longer, after a round trip with this smallest RTT.
    pub(super) fn watch_length(&mut self, delivery: Rate, least: Span) {
        let above = least.checked_sub(self.smallest.get()).unwrap_or(Span::ZERO).as_secs_f64();
        if self.congested > 0 || above <= self.target_at(delivery).max(self.least_target()) {
            self.longer = Longer::NEW;
            return;
        }
        self.longer.on_round(&self.config, least, above, delivery);
        if self.foreign == 0 {
            self.take_for_longer();
        }
    }

    /// If the path has become longer its RTT is that, and what it carried it carries again.
    pub(super) fn take_for_longer(&mut self) {
        let Some((rtt, carried)) = self.longer.found(&self.config) else { return };
        self.smallest.reset(rtt);
        self.calm.reset(rtt);
        (self.in_bursts, self.known, self.longer) = (Span::ZERO, carried, Longer::NEW);
    }

    /// Notes whether the rate of this round trip is too low for a path with so much noise.
    pub(super) fn watch_rate(&mut self, now: Time) {
        // Their median: a queue that is emptied makes a few rounds differ by much.
        let middle = |mut ranges: [Span; MOST_ROUNDS]| {
            let ranges = &mut ranges[..self.config.noise_rounds as usize];
            ranges.sort_unstable();
            ranges[ranges.len() / 2].as_secs_f64()
        };
        let range = middle(self.ranges);
        // Whoever has a start's long queue behind it swings for some time.
        let unrest = if self.unasked { middle(self.unrest) } else { range };
        // Where every RTT is longer than the smallest, that is noise, too.
        let offset = self.calm.get().checked_sub(self.smallest.get()).unwrap_or(Span::ZERO);
        let noise = range.max(if self.calm.get() == Span::MAX { 0.0 } else { offset.as_secs_f64() });
        let peak = self.hoped_for(now).as_bps().max(1) as f64;
        let packet = self.path.rate_of(1, Span::from_secs(1)).as_bps() as f64 / peak;
        self.uneven = noise >= self.config.give_up_noise.as_secs_f64();
        let is_noisy = noise >= self.config.give_up_noise.as_secs_f64().max(packet * self.config.give_up_packets);
        let is_low = self.rate.is_some_and(|rate| (rate.as_bps() as f64) < peak * self.config.give_up_share);
        // No target is as long as that, so that the rate may never have been what it could be.
        let too_noisy = unrest > self.config.max_noise.as_secs_f64().max(packet * self.config.turn_packets);
        let target = self.target_at(self.path.delivery.unwrap_or(Rate::ZERO)).max(self.least_target());
        let is_unannounced = self.loss() > self.config.loss_threshold && self.queueing().as_secs_f64() <= target;
        self.unannounced =
            if is_unannounced { self.config.noise_rounds - 1 } else { self.unannounced.saturating_sub(1) };
        self.starved =
            if (is_noisy || self.unannounced > 0) && is_low || too_noisy { self.starved.saturating_add(1) } else { 0 };
    }
}
