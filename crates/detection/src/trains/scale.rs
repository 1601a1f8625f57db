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
        let least = self.service.mul_f64(config.least_queue).max(self.jitter.mul_f64(config.counted_jitters));
        delay >= least && !delay.is_zero()
    }

    /// How long a pair of lone packets waited, by their RTTs; `None` if neither arrived. Of two in
    /// one ACK the second is known, which waited for the first. With jitter the quicker of both is
    /// not the truer one.
    pub(super) fn waited(&self, rtts: [Option<Span>; 2]) -> Option<Span> {
        let quickest = match rtts {
            [Some(first), Some(second)] if first == second => Some(second - self.service),
            [Some(first), Some(second)] if self.jitter > self.service => Some((first + second) / 2),
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

#[cfg(test)]
mod tests {
    use super::*;

    use flowstart_units::Time;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// A path of ten milliseconds, two for a packet, one of jitter.
    fn scale() -> Scale {
        Scale { smallest: ms(10), service: ms(2), jitter: ms(1) }
    }

    #[test]
    fn jitter_is_the_largest_difference_of_two_rtts_in_a_row_of_packets_that_were_sent_once() {
        let mut calm = Calm::default();
        let mut add = |rtt: Option<u64>| {
            let (now, rtt) = (Time::ZERO, rtt.map(ms));
            calm.add(&Acked { now, number: 0, bytes: 1448, sent_at: now, rtt, retransmitted: rtt.is_none() });
            calm.jitter()
        };
        let rtts = [Some(10), Some(13), None, Some(12), Some(8), Some(9)];
        assert_eq!(rtts.map(&mut add), [0, 3, 3, 3, 4, 4].map(ms));
    }

    #[test]
    fn a_queue_is_three_packets_and_three_times_the_jitter() {
        let config = TrainProbeConfig::default();
        assert!(scale().is_queue(ms(6), &config) && !scale().is_queue(ms(5), &config));
        let jittered = Scale { jitter: ms(8), ..scale() };
        assert!(jittered.is_queue(ms(24), &config) && !jittered.is_queue(ms(23), &config));
        let unknown = Scale { service: Span::ZERO, jitter: Span::ZERO, ..scale() };
        assert!(unknown.is_queue(Span::from_nanos(1), &config) && !unknown.is_queue(Span::ZERO, &config));
    }

    #[test]
    fn of_two_lone_packets_the_quicker_one_tells_how_long_they_waited() {
        assert_eq!(scale().waited([None, None]), None);
        assert_eq!(scale().waited([Some(ms(17)), None]), Some(ms(7)));
        assert_eq!(scale().waited([Some(ms(17)), Some(ms(15))]), Some(ms(5)));
        let jittered = Scale { jitter: ms(3), ..scale() };
        assert_eq!(jittered.waited([Some(ms(17)), Some(ms(15))]), Some(ms(6)), "with jitter their mean");
        // With one ACK both have the RTT of the second, which waited for the first.
        assert_eq!(scale().waited([Some(ms(17)), Some(ms(17))]), Some(ms(5)));
        assert_eq!(scale().excess(ms(9)), Span::ZERO);
    }

    #[test]
    fn an_ack_that_was_held_back_tells_nothing() {
        let config = TrainProbeConfig::default();
        // Four packets and the jitter more than the neighbour, or half as much again.
        assert_eq!(scale().ratio(ms(19), ms(10), &config), Some((1.9, 0.1)));
        assert_eq!(scale().ratio(ms(20), ms(10), &config), None);
        assert_eq!(scale().ratio(ms(60), ms(40), &config), Some((1.5, 0.025)));
        assert_eq!(scale().ratio(ms(61), ms(40), &config), None);
    }
}
