//! Delivery rate (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate_gen`) and who limits
//! the flow.

use flowstart_congestion::DeliveryRate;
use flowstart_units::{Span, Time};

use super::delivery::Flight;

/// The connection's part of the estimate; the packets' part is in their records.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateEstimator {
    /// When the newest delivered packet was sent: the send phase of the next sample begins there.
    pub first_sent_at: Time,
    /// When a packet was delivered last.
    pub delivered_at: Time,
    /// Samples are limited by the application until this many packets are delivered; 0 if they are
    /// not.
    app_limited_until: u64,
}

impl RateEstimator {
    /// A packet leaves with nothing in flight: a new flight begins.
    #[inline]
    pub fn begin_flight(&mut self, now: Time) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// The application has nothing more to send although the window is open.
    pub fn mark_app_limited(&mut self, delivered: u64, in_flight: u32) {
        self.app_limited_until = (delivered + u64::from(in_flight)).max(1);
    }

    /// True if the application limits the samples of packets that leave now.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Takes the ACK's sample. `newest` is the newest packet it delivered (`None` if that is not
    /// known although something was delivered), `delivered` the connection's count, this ACK's
    /// packets included.
    #[inline]
    pub fn sample(
        &mut self,
        now: Time,
        newest: Option<&Flight>,
        delivered: u64,
        min_rtt: Span,
    ) -> Option<DeliveryRate> {
        if self.app_limited_until != 0 && delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.delivered_at = now;
        let newest = newest?;
        self.first_sent_at = newest.sent_at;
        let ack_elapsed = now.since(newest.sent_at) + newest.delivered_elapsed?;
        let interval = newest.send_elapsed?.max(ack_elapsed);
        // Shorter than any round trip: packets of a compressed burst, no measure of the path.
        if interval.is_zero() || (min_rtt != Span::MAX && interval < min_rtt) {
            return None;
        }
        Some(DeliveryRate {
            delivered: u32::try_from(delivered - newest.prior_delivered).unwrap_or(u32::MAX),
            interval,
            prior_delivered: newest.prior_delivered,
            app_limited: newest.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A packet that left at 100 ms, when 7 had been delivered.
    fn flight(send_ms: u64, delivered_ms: u64) -> Flight {
        Flight {
            sent_at: at(100),
            send_elapsed: Some(Span::from_millis(send_ms)),
            delivered_elapsed: Some(Span::from_millis(delivered_ms)),
            prior_delivered: 7,
            app_limited: false,
        }
    }

    #[test]
    fn the_interval_is_the_longer_of_the_send_and_the_ack_phase_and_no_shorter_than_a_round_trip() {
        let min_rtt = Span::from_millis(50);
        let sample = |now, flight: Flight| {
            let rate = RateEstimator::default().sample(at(now), Some(&flight), 17, min_rtt);
            rate.map(|rate| (rate.delivered, rate.prior_delivered, rate.interval.as_nanos() / 1_000_000))
        };
        // The ACK phase is from the delivery before the packet left to now.
        assert_eq!(sample(150, flight(20, 10)), Some((10, 7, 60)));
        assert_eq!(sample(150, flight(80, 10)), Some((10, 7, 80)));
        assert_eq!(sample(150, flight(0, 0)), Some((10, 7, 50)));
        assert_eq!(sample(149, flight(0, 0)), None);
        assert_eq!(sample(150, Flight { send_elapsed: None, ..flight(20, 10) }), None);
        assert_eq!(sample(150, Flight { delivered_elapsed: None, ..flight(20, 10) }), None);
        // Before any round trip is known.
        let first = RateEstimator::default().sample(at(101), Some(&flight(0, 0)), 8, Span::MAX);
        assert_eq!(first.map(|rate| (rate.delivered, rate.interval)), Some((1, Span::from_millis(1))));
        assert_eq!(RateEstimator::default().sample(at(100), Some(&flight(0, 0)), 8, Span::MAX), None);
    }

    #[test]
    fn the_next_flight_begins_where_the_newest_delivered_packet_left() {
        let mut estimator = RateEstimator::default();
        estimator.begin_flight(at(30));
        assert_eq!((estimator.first_sent_at, estimator.delivered_at), (at(30), at(30)));
        estimator.sample(at(160), Some(&flight(20, 10)), 17, Span::ZERO);
        assert_eq!((estimator.first_sent_at, estimator.delivered_at), (at(100), at(160)));
        assert_eq!(estimator.sample(at(170), None, 18, Span::ZERO), None);
        assert_eq!((estimator.first_sent_at, estimator.delivered_at), (at(100), at(170)));
    }

    #[test]
    fn the_application_is_the_limit_until_all_that_was_in_flight_is_delivered() {
        let mut estimator = RateEstimator::default();
        assert!(!estimator.is_app_limited());
        estimator.mark_app_limited(10, 5);
        for (delivered, limited) in [(11, true), (15, true), (16, false)] {
            estimator.sample(at(200), None, delivered, Span::ZERO);
            assert_eq!(estimator.is_app_limited(), limited, "{delivered}");
        }
        // Also before anything was sent.
        estimator.mark_app_limited(0, 0);
        assert!(estimator.is_app_limited());
    }
}
