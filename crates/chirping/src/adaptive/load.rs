//! How the first window leaves, and how fast the load grows: at least as slow start's while nothing
//! speaks against it, at most by a factor where chirps show room.

use flowstart_control::Ack;
use flowstart_units::Span;

use super::super::geometry::{RATIO_ONE, ratio_from_f64};
use super::super::schedule::packets_in;
use super::Adaptive;

/// Growth per round trip in slow start.
const DOUBLING: f64 = 2.0;

impl Adaptive {
    /// The first chirp spreads the initial window around a gap that the RTT suggests, and nothing
    /// follows before its first ACK is due.
    pub(super) fn begin(&mut self, srtt: Span, packets: u32) {
        let config = &self.config;
        let gap = if srtt.is_zero() { config.max_first_gap } else { srtt / u64::from(config.probe_divisor.max(1)) };
        let spread = if srtt.is_zero() { config.min_first_gap } else { srtt / u64::from(packets.max(1)) };
        // Packets that wait for their turn are packets that slow start would have sent.
        let longest = Span::from_nanos((spread.as_nanos() as f64 * config.first_spread) as u64);
        self.probe = gap.max(config.min_first_gap.min(longest)).min(config.max_first_gap).as_nanos().max(1);
        self.load = if srtt.is_zero() { self.probe } else { spread.as_nanos().max(1) };
    }

    /// Packets of the first chirp of a new flow: of a large initial window no more than of any
    /// other chirp.
    pub(super) fn first_packets(&self) -> u32 {
        let share = libm::round(f64::from(self.initial) * self.config.first_share) as u32;
        let share = if self.is_large() { share.min(self.config.packets) } else { share };
        share.max(self.config.min_points).min(self.initial)
    }

    /// True if a chirp of the whole initial window would take longer than a round trip.
    pub(super) fn is_large(&self) -> bool {
        self.load < self.probe
    }

    /// A chirp with load `left` could not be read: the load grows as slow start's all the same, as
    /// far as is not known to be vain.
    pub(super) fn unread(&mut self, left: u64) {
        (self.unclear, self.agreed, self.vain) = (self.unclear.saturating_add(1), 0, true);
        if !self.is_running() {
            self.keep_up(left);
        }
    }

    /// In the round trip after a chirp with load `left` slow start would send twice as many
    /// packets. Less has only what is known for a reason: the smallest gap that is plausible.
    pub(super) fn keep_up(&mut self, left: u64) {
        self.load = self.load.min(Self::divided(left, DOUBLING).max(self.least()));
    }

    /// The same from ACK to ACK, while a chirp takes a good part of a round trip: a window of all
    /// that was delivered, and the initial one, as slow start's would be. Where packets are marked
    /// it would end, and this waits for chirps, with the initial one.
    pub(super) fn follow(&mut self, ack: &Ack) {
        let base = *self.base.get_or_insert(ack.delivered.saturating_sub(u64::from(ack.acked)));
        self.delivered = ack.delivered.saturating_sub(base);
        if self.known.is_some() || self.is_unread() {
            return;
        }
        let window = if self.marked { u64::from(self.initial) } else { self.slow_start() };
        let window = window.min(u64::from(self.config.follow_packets));
        // Of a link that was silent while the flow began the smoothed RTT tells for long.
        let stale = |rtt: &Span| ack.srtt.as_nanos() as f64 > rtt.as_nanos() as f64 * self.config.stale_rtt;
        let rtt = ack.rtt.filter(stale).unwrap_or(ack.srtt);
        if let Some(gap) = rtt.as_nanos().checked_div(window) {
            self.load = self.load.min(gap.max(self.least()).max(1));
        }
    }

    /// Packets of slow start's window by now.
    pub(super) fn slow_start(&self) -> u64 {
        self.delivered.saturating_add(u64::from(self.initial))
    }

    pub(super) fn divided(gap: u64, by: f64) -> u64 {
        u64::try_from(u128::from(gap) * u128::from(RATIO_ONE) / u128::from(ratio_from_f64(by).max(1)))
            .unwrap_or(u64::MAX)
            .max(1)
    }

    /// Growth of the load per round trip at most, since a chirp with load `left`. Where noise
    /// leaves doubt many packets are not sent on the word of few.
    pub(super) fn growth(&self, left: u64) -> f64 {
        let many = packets_in(self.min_rtt, left) > self.config.growth_packets;
        let doubtful = many && self.all_noise() >= left as f64 * self.config.clear;
        // Behind a token bucket every chirp shows the wire while there are tokens, and a round trip
        // of packets leaves before that is known.
        if doubtful || packets_in(self.min_rtt, left) > self.config.leap_packets {
            self.config.growth.min(DOUBLING)
        } else {
            self.config.growth
        }
    }
}
