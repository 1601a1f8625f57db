//! Delivery rate (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate_gen`) and who limits the flow.

use flowstart_congestion::DeliveryRate;
use flowstart_units::{Span, Time};

use super::delivery::Flight;

/// The connection's part of the estimate; the packets' part is in their records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateEstimator {
    /// When the newest delivered packet was sent: the send phase of the next sample begins there.
    pub(super) first_sent_at: Time,
    /// When a packet was delivered last.
    pub(super) delivered_at: Time,
    /// Samples are limited by the application until this many packets are delivered; 0 if they are not.
    app_limited_until: u64,
}

impl RateEstimator {
    /// A packet leaves with nothing in flight: a new flight begins.
    #[inline]
    pub(super) fn begin_flight(&mut self, now: Time) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// The application has nothing more to send although the window is open.
    pub(super) fn mark_app_limited(&mut self, delivered: u64, in_flight: u32) {
        self.app_limited_until = (delivered + u64::from(in_flight)).max(1);
    }

    /// True if the application limits the samples of packets that leave now.
    #[inline]
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Takes the ACK's sample. `newest` is the newest packet it delivered (`None` if that is not known although something was delivered),
    /// `delivered` the connection's count, this ACK's packets included.
    #[inline]
    pub(super) fn sample(
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
