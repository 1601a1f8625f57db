//! The one recovery that a start which sent more than the path holds manages by itself.

use flowstart_control::Ack;
use flowstart_units::Time;

/// A recovery that lasts until all that was outstanding at its beginning is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstRecovery {
    /// First byte of the stream that was not yet sent when it began.
    end: u64,
    /// Packets delivered since, those of the ACK that told of the loss and repairs included.
    delivered: u64,
    /// Packets found lost since, the first included.
    pub(super) lost: u64,
}

impl FirstRecovery {
    /// A recovery that begins now: with this ACK, or later because a packet was late.
    pub(super) fn new(now: Time, ack: &Told) -> Self {
        let (acked, lost) = if ack.now == now { (ack.acked, ack.lost) } else { (0, 0) };
        Self { end: ack.next, delivered: u64::from(acked), lost: u64::from(lost) }
    }

    /// True once everything outstanding at its beginning is acknowledged.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> bool {
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked));
        self.lost = self.lost.saturating_add(u64::from(ack.newly_lost()));
        ack.una >= self.end
    }

    /// What became of `outstanding` packets so far: how many were delivered the first time that
    /// they left, and how many were lost. Repairs are acknowledged too, but none of them is one of
    /// these.
    pub(super) fn fates(&self, outstanding: u64) -> (u64, u64) {
        let lost = self.lost.min(outstanding);
        (self.delivered.min(outstanding - lost), lost)
    }
}

/// What the last ACK told: a signal that follows it is about this.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    now: Time,
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) acked: u32,
    pub(super) lost: u32,
}

impl Told {
    #[inline]
    pub(super) fn by(ack: &Ack) -> Self {
        Self { now: ack.now, una: ack.una, next: ack.next, acked: ack.acked, lost: ack.newly_lost() }
    }
}
