//! The one flow control whose service curve is known in closed form.

use flowstart_units::{Bytes, Rate, Span};

/// A fixed window in front of a link: never more than the window is on its way or unacknowledged
/// (Chang, "Performance guarantees in communication networks", 2000; Agrawal, Cruz, Okino and
/// Rajan, "Performance bounds for flow control protocols", ToN 7(3), 1999).
///
/// Fluid: packets are infinitely small. S(t) = min over n of C [t - T - n R]^+ + n w.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticWindow {
    /// The capacity C of the link; [`Rate::UNLIMITED`] if only the window limits.
    pub capacity: Rate,
    /// The latency T from sender to receiver.
    pub latency: Span,
    /// The round trip R, T and the way back of the ACKs.
    pub round_trip: Span,
    /// The window w.
    pub window: Bytes,
}

impl StaticWindow {
    /// S(t), bits: a staircase if the window is smaller than the bandwidth-delay product, the
    /// link's own curve otherwise.
    #[must_use]
    pub fn service(&self, t: Span) -> f64 {
        let Some(after) = t.checked_sub(self.latency) else { return 0.0 };
        let window = self.window.bits() as f64;
        let rounds = if self.fills_the_link() { 0 } else { after.whole(self.round_trip) };
        let rest = after - self.round_trip * rounds;
        let in_round = if self.capacity.is_unlimited() {
            if rest.is_zero() { 0.0 } else { f64::INFINITY }
        } else {
            self.capacity.as_bps() as f64 * rest.as_secs_f64()
        };
        let in_round = if self.fills_the_link() { in_round } else { in_round.min(window) };
        rounds as f64 * window + in_round
    }

    /// The window is at least the bandwidth-delay product C R, or there is no round trip to wait
    /// for.
    fn fills_the_link(&self) -> bool {
        self.round_trip.is_zero()
            || (!self.capacity.is_unlimited()
                && self.window.bits() as f64 >= self.capacity.as_bps() as f64 * self.round_trip.as_secs_f64())
    }

    /// The largest rate that is served for ever, bit/s: C or one window per round trip.
    #[must_use]
    pub fn long_term_rate(&self) -> f64 {
        let link = if self.capacity.is_unlimited() { f64::INFINITY } else { self.capacity.as_bps() as f64 };
        if self.fills_the_link() { link } else { link.min(self.window.bits() as f64 / self.round_trip.as_secs_f64()) }
    }

    /// The largest convex curve below [`Self::service`], which is all that constant-rate probes can
    /// find: the long-term rate after the latency. Bits.
    #[must_use]
    pub fn convex_service(&self, t: Span) -> f64 {
        t.checked_sub(self.latency).filter(|after| !after.is_zero()).map_or(0.0, |after| {
            let rate = self.long_term_rate();
            rate * after.as_secs_f64()
        })
    }

    /// The largest delay of a constant-rate flow: the latency, up to the long-term rate (each
    /// round's window is there when the round's fluid comes); `None` beyond, where it grows without
    /// bound.
    #[must_use]
    pub fn constant_rate_delay(&self, rate: Rate) -> Option<Span> {
        (rate.as_bps() as f64 <= self.long_term_rate()).then_some(self.latency)
    }
}
