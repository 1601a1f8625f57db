//! What cannot wait for the end of a round trip.

use super::DelayTarget;

/// Whether the rate may be brought down in this round before it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brake {
    /// Not in this one: what is delivered was sent before the control took over, or began in a
    /// silence.
    Off,
    Ready,
    /// It was.
    Used,
}

impl DelayTarget {
    /// Brings the rate down at once, once per round, where so much more is sent than delivered, and
    /// the queue has become so long, that the end of the round would be too late.
    pub(super) fn brake(&mut self) {
        let (Some(rate), Some(delivery)) = (self.rate, self.path.delivery) else { return };
        let is_off = self.brake != Brake::Ready || self.config.brake_rtts == 0.0;
        if is_off || rate < delivery.mul_f64(self.config.brake_excess) {
            return;
        }
        let queueing = self.queueing().as_secs_f64();
        let long = self.target_at(delivery) * self.config.foreign_targets + self.noise();
        if queueing > long.max(self.base().as_secs_f64() * self.config.brake_rtts) {
            let least = self.path.least_rate(self.config.min_packets);
            self.rate = Some(rate.min(delivery.mul_f64(self.config.brake_factor)).max(least));
            self.brake = Brake::Used;
        }
    }

    /// A round is over; true if the rate was brought down in it.
    pub(super) fn release_brake(&mut self, next: Brake) -> bool {
        core::mem::replace(&mut self.brake, next) == Brake::Used
    }
}
