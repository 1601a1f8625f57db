//! What a round says, and the rate that follows.

use flowstart_units::{Rate, Span, Time};

use super::DelayTarget;
use super::brake::Brake;

impl DelayTarget {
    pub(super) fn take_sample(&mut self, now: Time, rtt: Span) {
        let half = self.config.min_rtt_window / 2;
        self.drain |= self.smallest.add(now, rtt, half);
        (self.round_least, self.round_most) = (self.round_least.min(rtt), self.round_most.max(rtt));
        let samples = self.config.delay_samples as usize;
        self.latest[self.next_sample] = rtt;
        self.next_sample = (self.next_sample + 1) % samples;
        self.rtt = self.latest[..samples].iter().copied().min().unwrap_or(rtt);
        self.round_sum += self.rtt.as_secs_f64();
        self.round_samples += 1;
    }

    /// The rate for the next round trip, after one at `rate`. `foreseen` is the delay of what has
    /// been sent and does not show yet.
    pub(super) fn next_rate(&mut self, rate: Rate, delivery: Rate, foreseen: f64) -> Rate {
        let loss = self.loss();
        if loss > self.config.overflow {
            self.shallow[0] = self.shallow[0].min(self.longest);
        }
        let rtt = self.rtt.as_secs_f64().max(1e-9);
        let queueing = self.queueing().as_secs_f64();
        let target = self.target_at(delivery).max(self.least_target());
        self.watch_queue(rate);
        let least = self.path.least_rate(self.config.min_packets);
        if loss > self.config.loss_threshold || queueing > target / 2.0 {
            // Of a round trip most of which was lost little is delivered, whatever the path
            // carries.
            let hidden = self.quiet == 0 && loss > self.config.overflow;
            self.known = if hidden { self.known.max(delivery) } else { delivery };
        }
        if loss > self.config.loss_threshold {
            self.quiet = 0;
            // In a round with losses an ACK may say little of what has arrived, and the next one
            // all the more.
            return rate.min(delivery.max(self.counted)).max(least);
        }
        let aim = if core::mem::take(&mut self.drain) { 0.0 } else { target };
        let expected = (queueing + foreseen).max(0.0);
        let is_quiet = expected < target / 2.0 && self.congested == 0;
        self.quiet = if is_quiet { self.quiet.saturating_add(1) } else { 0 };
        let mut change = self.config.gain * (aim - expected) / rtt;
        if change > 0.0 {
            let boost = f64::from(1_u32 << self.quiet.saturating_sub(self.config.patience).min(16));
            change = (change.max(self.config.min_growth) * boost).min(self.config.max_growth);
            // Up to what the path is known to carry there is no need to feel one's way.
            if is_quiet {
                let room = self.known.as_bps() as f64 * self.config.known_share / rate.as_bps().max(1) as f64 - 1.0;
                change = change.max(room.min(self.config.max_growth));
            }
        }
        // With a queue, what is delivered is the capacity; without, it is what was sent. Where a
        // round trip is shorter than the target a full path has no long queue for several of them.
        let hidden = self.full && self.base().as_secs_f64() < target;
        let base = if queueing > target / 2.0 || hidden { delivery } else { rate };
        // What is sent again although it had arrived is not delivered.
        let known = if self.repairs && is_quiet { delivery.max(rate) } else { delivery };
        let next = base.mul_f64((1.0 + change).max(0.0)).min(known.mul_f64(self.config.ceiling)).max(least);
        if next <= least && queueing > self.config.target.as_secs_f64() {
            self.smallest.reset(self.rtt);
            self.calm.reset(self.rtt);
            // So few packets have no queue of their own; a short delay may be jitter.
            if queueing > self.config.target.as_secs_f64() * self.config.foreign_targets + self.noise() {
                self.foreign = self.foreign.max(self.config.foreign_rounds);
            }
        }
        next
    }

    /// Share of this round's packets that was lost or marked.
    pub(super) fn loss(&self) -> f64 {
        self.congested as f64 / (self.congested + self.delivered).max(1) as f64
    }

    /// The target in seconds for a flow of this rate on a path without noise.
    pub(super) fn target_at(&self, rate: Rate) -> f64 {
        let second = Span::from_secs(1);
        let packet = self.path.rate_of(1, second).as_bps() as f64 / rate.as_bps().max(1) as f64;
        let room = self.shallow[0].min(self.shallow[1]) * self.config.buffer_share;
        self.config.target.as_secs_f64().min(room).max(packet * self.config.target_packets)
    }

    /// The most that was delivered of late.
    pub(super) fn peak(&self) -> Rate {
        self.peaks[0].max(self.peaks[1])
    }

    /// What the path is thought to carry: the most that was delivered of late, or for some time
    /// what the start measured, on a path so noisy that nothing was ever delivered at that rate.
    pub(super) fn hoped_for(&self, now: Time) -> Rate {
        let (promised, until) = self.promised;
        if now < until { self.peak().max(promised) } else { self.peak() }
    }

    /// Notes what was delivered in a round trip.
    pub(super) fn note_delivery(&mut self, now: Time, delivery: Rate) {
        if now >= self.peak_turns {
            self.peaks = [Rate::ZERO, self.peaks[0]];
            self.shallow = [f64::INFINITY, self.shallow[0]];
            self.peak_turns = now + self.config.min_rtt_window / 2;
        }
        self.peaks[0] = self.peaks[0].max(delivery);
    }

    pub(super) fn on_round(&mut self, now: Time) {
        let lasted = now.since(core::mem::replace(&mut self.round_began, now));
        self.counted = self.path.rate_of(core::mem::take(&mut self.arrived), lasted.max(Span::from_nanos(1)));
        let range = self.round_most.checked_sub(self.round_least).unwrap_or(Span::ZERO);
        self.longest = self.round_most.checked_sub(self.base()).unwrap_or(Span::ZERO).as_secs_f64();
        let least = core::mem::replace(&mut self.round_least, Span::MAX);
        self.round_most = Span::ZERO;
        let mean = Span::from_secs_f64(
            core::mem::take(&mut self.round_sum) / f64::from(core::mem::take(&mut self.round_samples).max(1)),
        );
        let silent = self.silent > 0;
        self.silent = self.silent.saturating_sub(1);
        // What the round after a silence delivers began in it.
        let braked = self.release_brake(if self.silent > 0 { Brake::Off } else { Brake::Ready });
        if silent {
            (self.delivered, self.congested) = (0, 0);
            self.before = self.rate.unwrap_or(self.before);
        }
        if core::mem::take(&mut self.settling) || silent {
            self.foreseen.skip();
            return;
        }
        // What others delivered before counts: one bad sample may be the first rate.
        if let Some(delivery) = self.path.delivery {
            self.note_delivery(now, delivery);
        }
        // The rate of a trial tells nothing of how low it is without.
        if self.rate.is_some() && self.path.delivery.is_some() && !self.trial.is_offered() {
            self.watch_rate(now);
        }
        let drift = self.rtt.max(self.began_at).checked_sub(self.rtt.min(self.began_at)).unwrap_or(Span::ZERO);
        self.unrest[self.next_range] = range.checked_sub(drift).unwrap_or(Span::ZERO);
        self.began_at = self.rtt;
        self.ranges[self.next_range] = range;
        self.next_range = (self.next_range + 1) % self.config.noise_rounds as usize;
        if !mean.is_zero() {
            self.calm.add(now, mean, self.config.min_rtt_window / 2);
        }
        if let (Some(rate), Some(delivery)) = (self.rate, self.path.delivery) {
            self.watch_bursts(delivery, least, range);
            // What is delivered now was sent at the rate of the round before. If all of it arrives
            // and there is no queue, the path is not full.
            let full = delivery < self.before.mul_f64(1.0 - self.config.loss_threshold)
                || self.queueing().as_secs_f64() > self.target_at(delivery).max(self.least_target()) / 2.0;
            let excess = rate.as_bps() as f64 / delivery.as_bps().max(1) as f64 - 1.0;
            // Of a round in which the rate was brought down nobody knows how much was sent too
            // much.
            let foreseen = if full && !braked { excess.clamp(-1.0, 1.0) * self.rtt.as_secs_f64() } else { 0.0 };
            let (full, foreseen) = if self.is_in_vain(delivery, foreseen) { (false, 0.0) } else { (full, foreseen) };
            self.full = full;
            self.before = rate;
            // Where losses come that no queue announces more is not to be had by sending more.
            let hoped_for = if self.uneven && self.unannounced == 0 { self.hoped_for(now) } else { Rate::ZERO };
            let tried = self.trial.on_round(&self.config, (rate, delivery, hoped_for), self.loss());
            self.rate = Some(tried.unwrap_or_else(|| self.next_rate(rate, delivery, foreseen)));
            self.watch_length(delivery, least);
        }
        (self.delivered, self.congested) = (0, 0);
    }
}
