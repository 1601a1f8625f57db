//! Packets that leave in bursts wait for each other, which is no queue.

use flowstart_units::{Rate, Span};

use super::DelayTarget;

impl DelayTarget {
    /// How long a packet of a burst waits for the others of it at most, in seconds.
    pub(super) fn longest_burst(&self) -> f64 {
        let delivery = self.path.delivery.unwrap_or(Rate::ZERO).as_bps().max(1) as f64;
        let packet = self.path.rate_of(1, Span::from_secs(1)).as_bps() as f64 / delivery;
        self.config.burst.as_secs_f64().max(packet * self.config.burst_packets)
    }

    /// If more was delivered than in the round before as more was sent, the path was not full, and
    /// the `least` RTT that it had is one without a queue. One that comes or goes makes RTTs
    /// differ.
    pub(super) fn watch_bursts(&mut self, delivery: Rate, least: Span, range: Span) {
        let before = core::mem::replace(&mut self.delivered_before, delivery);
        let more = before > Rate::ZERO && delivery > before.mul_f64(1.0 + self.config.loss_threshold);
        let all = delivery >= self.before.mul_f64(1.0 - self.config.follow_share);
        let steady = range <= self.config.target / 2;
        if steady
            && more
            && all
            && delivery <= self.before.mul_f64(1.0 + self.config.follow_share)
            && self.congested == 0
        {
            self.in_bursts = least;
        }
    }
}
