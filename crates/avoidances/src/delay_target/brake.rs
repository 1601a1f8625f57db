//! What cannot wait for the end of a round trip.

use super::DelayTarget;

impl DelayTarget {
    /// Brings the rate down at once, once per round, where so much more is sent than delivered, and
    /// the queue has become so long, that the end of the round would be too late.
    pub(super) fn brake(&mut self) {
        let (Some(rate), Some(delivery)) = (self.rate, self.path.delivery) else { return };
        let is_off = self.braked || self.settling || self.silent || self.after_silence || self.config.brake_rtts == 0.0;
        if is_off || rate < delivery.mul_f64(self.config.brake_excess) {
            return;
        }
        let queueing = self.queueing().as_secs_f64();
        let long = self.target_at(delivery) * self.config.foreign_targets + self.noise();
        if queueing > long.max(self.base().as_secs_f64() * self.config.brake_rtts) {
            let least = self.path.least_rate(self.config.min_packets);
            self.rate = Some(rate.min(delivery.mul_f64(self.config.brake_factor)).max(least));
            self.braked = true;
        }
    }
}
