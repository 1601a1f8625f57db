//! The receiver of a request.

use flowstart_units::{Rate, Span, Time};

use crate::wire::{IpOption, TcpResponse};
use crate::{RateCode, ttl_difference};

/// The receiver: answers a request once, on the ACK of the packet that carried it (RFC 4782 section
/// 4.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Receiver {
    limit: Option<RateCode>,
    answer: Option<TcpResponse>,
}

impl Receiver {
    /// A receiver that allows no more than `limit`, if it has one.
    #[must_use]
    pub fn new(limit: Option<Rate>) -> Self {
        Self { limit: limit.map(RateCode::floor), answer: None }
    }

    /// A packet came with this TTL of IP and this option. Nothing answers a report or a request
    /// that was denied.
    pub fn on_packet(&mut self, ip_ttl: u8, option: &IpOption) {
        let IpOption::Request { rate, ttl, nonce } = *option else { return };
        let rate = rate.min(self.limit.unwrap_or(RateCode::MAX));
        self.answer =
            (!rate.is_zero()).then_some(TcpResponse { rate, ttl_difference: ttl_difference(ip_ttl, ttl), nonce });
    }

    /// The answer for the ACK that is about to leave and covers that packet. Only once: a lost
    /// answer is a denial.
    #[must_use]
    pub fn response(&mut self) -> Option<TcpResponse> {
        self.answer.take()
    }
}

/// Constants of thinned ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinningConfig {
    /// Pure ACKs per RTT at most; default 100 (RFC 4782 section 4.5).
    pub acks_per_rtt: u32,
    /// An ACK covers at least this many packets; default 2 (delayed ACKs, RFC 5681 section 4.2).
    pub least: u32,
}

impl Default for ThinningConfig {
    fn default() -> Self {
        Self { acks_per_rtt: 100, least: 2 }
    }
}

/// Fewer ACKs in a Quick-Start phase, so that they do not fill a slow way back (RFC 4782 section
/// 4.5): one for every K packets, the first packet at once; K halves with every RTT that passes.
#[derive(Clone, Copy, Debug)]
pub struct AckThinning {
    config: ThinningConfig,
    began: Time,
    rtt: Span,
    first: u32,
    waiting: u32,
    any: bool,
}

impl AckThinning {
    /// For a phase at `rate` with packets of `mss` bytes.
    #[must_use]
    pub fn new(config: ThinningConfig, now: Time, rate: Rate, rtt: Span, mss: u32) -> Self {
        let bytes = rate.bytes_in(rtt).get();
        let per_ack = u64::from(config.acks_per_rtt.max(1)) * u64::from(mss.max(1));
        let first = u32::try_from(bytes / per_ack).unwrap_or(u32::MAX).max(config.least.max(1));
        Self { config, began: now, rtt, first, waiting: 0, any: false }
    }

    /// Packets per ACK at `now`.
    #[must_use]
    pub fn packets_per_ack(&self, now: Time) -> u32 {
        let rounds = now.since(self.began).whole(self.rtt);
        let halved = u32::try_from(rounds).ok().and_then(|rounds| self.first.checked_shr(rounds)).unwrap_or(0);
        halved.max(self.config.least.max(1))
    }

    /// A data packet came. True if an ACK is due.
    pub fn on_packet(&mut self, now: Time) -> bool {
        self.waiting = self.waiting.saturating_add(1);
        let due = !self.any || self.waiting >= self.packets_per_ack(now);
        if due {
            (self.any, self.waiting) = (true, 0);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nonce;

    #[test]
    fn an_answer_is_given_once_and_none_to_reports_and_denials() {
        let (nonce, code) = (Nonce::new(5), RateCode::new(7).unwrap());
        let mut receiver = Receiver::new(None);
        receiver.on_packet(60, &IpOption::Request { rate: code, ttl: 91, nonce });
        assert_eq!(receiver.response(), Some(TcpResponse { rate: code, ttl_difference: 225, nonce }));
        assert_eq!(receiver.response(), None);
        receiver.on_packet(60, &IpOption::Report { rate: code, nonce });
        receiver.on_packet(60, &IpOption::Request { rate: RateCode::ZERO, ttl: 0, nonce });
        assert_eq!(receiver.response(), None);
    }

    #[test]
    fn a_receiver_may_allow_less_and_the_nonce_stays() {
        let mut receiver = Receiver::new(Some(Rate::from_mbps(1)));
        receiver.on_packet(60, &IpOption::Request { rate: RateCode::MAX, ttl: 60, nonce: Nonce::new(77) });
        let response = receiver.response().unwrap();
        assert_eq!((response.rate.get(), response.nonce, response.ttl_difference), (4, Nonce::new(77), 0));
    }

    #[test]
    fn thinned_acks_of_1_3_gbit_and_200_ms_cover_216_packets_and_half_of_that_an_rtt_later() {
        let rtt = Span::from_millis(200);
        let mut thinning = AckThinning::new(ThinningConfig::default(), Time::ZERO, Rate::from_mbps(1300), rtt, 1500);
        assert_eq!(thinning.packets_per_ack(Time::ZERO), 216);
        assert_eq!(thinning.packets_per_ack(Time::ZERO + rtt), 108);
        assert_eq!(thinning.packets_per_ack(Time::ZERO + rtt * 100), 2);
        assert!(thinning.on_packet(Time::ZERO), "the first packet is acknowledged at once");
        let acks = (0..2160).filter(|_| thinning.on_packet(Time::ZERO)).count();
        assert_eq!(acks, 10);
    }
}
