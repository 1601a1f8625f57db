//! What delays are measured by.

use flowstart_units::Span;

use crate::Acked;

use super::config::TrainProbeConfig;

/// How much RTTs vary while nothing of ours is queued.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calm {
    last: Option<Span>,
    jitter: Span,
}

impl Calm {
    /// A packet was delivered that met no queue of ours.
    pub(super) fn add(&mut self, acked: &Acked) {
        // That of a packet sent twice is not known.
        let Some(rtt) = acked.rtt else { return };
        if let Some(last) = self.last.replace(rtt) {
            self.jitter = self.jitter.max(rtt.max(last) - rtt.min(last));
        }
    }

    /// The largest difference between two in a row.
    pub(super) fn jitter(&self) -> Span {
        self.jitter
    }
}

/// Base and units of delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Smallest RTT of both connections.
    pub(super) smallest: Span,
    /// Time the bottleneck takes for a packet.
    pub(super) service: Span,
    /// Largest difference of two RTTs in a row without a queue.
    pub(super) jitter: Span,
}

impl Scale {
    /// The part of an RTT that is a queue.
    pub(super) fn excess(&self, rtt: Span) -> Span {
        rtt - self.smallest
    }

    /// True if a neighbour's delay is long enough to compare others with.
    pub(super) fn is_queue(&self, delay: Span, config: &TrainProbeConfig) -> bool {
        delay >= self.service.mul_f64(config.least_queue).max(self.jitter) && !delay.is_zero()
    }

    /// How long a pair of lone packets waited, by their RTTs; `None` if neither arrived. Of two in
    /// one ACK the second is known, which waited for the first.
    pub(super) fn waited(&self, rtts: [Option<Span>; 2]) -> Option<Span> {
        let quickest = match rtts {
            [Some(first), Some(second)] if first == second => Some(second - self.service),
            _ => rtts.into_iter().flatten().min(),
        };
        quickest.map(|rtt| self.excess(rtt))
    }

    /// A lone packet's delay over that of its neighbour, and the jitter over the latter; `None` if
    /// the receiver held back the ACK.
    pub(super) fn ratio(&self, waited: Span, delay: Span, config: &TrainProbeConfig) -> Option<(f64, f64)> {
        let tolerance = self.service.mul_f64(config.delayed_ack_packets) + self.jitter;
        let most = (delay + tolerance).max(delay.mul_f64(config.delayed_ack_growth));
        (waited <= most).then(|| (waited.ratio(delay), self.jitter.ratio(delay)))
    }
}
