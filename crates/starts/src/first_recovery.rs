//! The one recovery that a start which sent more than the path holds manages by itself.

use flowstart_control::Ack;

/// A recovery that lasts until all that was outstanding at its beginning is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstRecovery {
    /// First byte of the stream that was not yet sent when it began.
    end: u64,
    /// Packets delivered since, those of the ACK that told of the loss included.
    pub(super) delivered: u64,
    /// Packets found lost since, the first included.
    pub(super) lost: u64,
}

impl FirstRecovery {
    /// A recovery that begins with this ACK.
    pub(super) fn new(ack: &Told) -> Self {
        Self { end: ack.next, delivered: u64::from(ack.acked), lost: u64::from(ack.lost) }
    }

    /// True once everything outstanding at its beginning is acknowledged.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> bool {
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked));
        self.lost = self.lost.saturating_add(u64::from(ack.lost));
        ack.una >= self.end
    }
}

/// What the last ACK told: a signal that follows it is about this.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) acked: u32,
    pub(super) lost: u32,
}

impl Told {
    #[inline]
    pub(super) fn by(ack: &Ack) -> Self {
        Self { una: ack.una, next: ack.next, acked: ack.acked, lost: ack.lost }
    }
}
