//! Limited slow start (RFC 3742): above a fixed window, slow start adds a constant number of
//! packets per round trip instead of doubling.
//!
//! It bounds the packets that are lost at once when slow start overshoots, but knows nothing of the
//! path: to large windows it is slow. Growth is counted in packets delivered, not in ACKs, as all
//! starts here do, so that delayed ACKs do not halve it.
//!
//! The RFC's int(MSS/K) bytes per ACK would be no growth at all above 72 400 packets of 1448 bytes;
//! here the fraction of a packet is kept whole, as the RFC's own examples assume.

use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, FlowStart, Window};

use crate::StartConstants;

/// The constant of limited slow start; the default is that of RFC 3742 section 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct LimitedSlowStartConfig {
    /// Up to this window, in packets, slow start is the standard one; above it, it adds about half
    /// as many packets per round trip. Default 100 (`max_ssthresh`). At least 2.
    pub max_ssthresh: u32,
}

impl Default for LimitedSlowStartConfig {
    fn default() -> Self {
        Self { max_ssthresh: 100 }
    }
}

impl StartConstants for LimitedSlowStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.max_ssthresh >= 2, "max_ssthresh", "at least 2")
    }
}

/// Parts of a packet that growth is counted in.
const PACKET: u64 = 1 << 32;

/// Limited slow start in operation.
#[derive(Clone, Copy, Debug)]
pub struct LimitedSlowStart {
    max_ssthresh: u32,
    /// Growth below a whole packet, in 1/2^32 packets.
    fraction: u64,
}

impl LimitedSlowStart {
    /// Limited slow start with this constant.
    #[must_use]
    pub fn new(config: &LimitedSlowStartConfig) -> Self {
        Self { max_ssthresh: config.max_ssthresh.max(2), fraction: 0 }
    }

    /// Growth per packet delivered: 1/K packets with K = int(cwnd / (0.5 max_ssthresh)).
    fn increment(&self, cwnd: u32) -> u64 {
        let k = u64::from(cwnd) * 2 / u64::from(self.max_ssthresh);
        PACKET / k.max(1)
    }
}

impl FlowStart for LimitedSlowStart {
    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        // The packet that takes the window over the limit still counts whole: the rule is "cwnd <=
        // max_ssthresh".
        let standard = ack.acked.min(self.max_ssthresh.saturating_add(1).saturating_sub(window.cwnd));
        let left = window.slow_start(standard);
        let limited = ack.acked - standard;
        if left > 0 || limited == 0 || !window.in_slow_start() {
            return left + limited;
        }
        let growth = self.increment(window.cwnd).saturating_mul(u64::from(limited)).saturating_add(self.fraction);
        let packets = growth / PACKET;
        self.fraction = growth % PACKET;
        window.slow_start(u32::try_from(packets).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    fn start() -> LimitedSlowStart {
        LimitedSlowStart::new(&LimitedSlowStartConfig::default())
    }

    fn round(start: &mut LimitedSlowStart, window: &mut Window, packets_per_ack: u32) {
        for _ in 0..window.cwnd / packets_per_ack {
            start.grow(&ack(packets_per_ack), window);
        }
    }

    fn rounds_from_10_to(goal: u32) -> u32 {
        let (mut start, mut window) = (start(), Window::new(10));
        let mut rounds = 0;
        while window.cwnd < goal {
            round(&mut start, &mut window, 1);
            rounds += 1;
        }
        rounds
    }

    #[test]
    fn up_to_the_limit_it_is_standard_slow_start() {
        let (mut start, mut window) = (start(), Window::new(10));
        for cwnd in [20, 40, 80] {
            round(&mut start, &mut window, 1);
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn above_the_limit_a_round_trip_adds_half_the_limit() {
        let (mut start, mut window) = (start(), Window::new(100));
        for expected in [150.3, 200.3, 250.2, 300.2] {
            round(&mut start, &mut window, 1);
            let exact = f64::from(window.cwnd) + start.fraction as f64 / PACKET as f64;
            // The vector cuts every growth to whole bytes, which makes it smaller by less than a
            // tenth of a packet.
            assert!((-0.05..0.15).contains(&(exact - expected)), "{exact} against {expected}");
        }
    }

    #[test]
    fn a_window_of_1000_takes_22_round_trips() {
        assert_eq!(rounds_from_10_to(1000), 22);
    }

    #[test]
    fn a_window_of_83000_takes_about_1660_round_trips() {
        let rounds = rounds_from_10_to(83_000);
        assert!((1640..=1680).contains(&rounds), "{rounds}");
    }

    #[test]
    fn delayed_acks_do_not_slow_it() {
        let mut flows = [(start(), Window::new(10)), (start(), Window::new(10))];
        for _ in 0..20 {
            for (packets_per_ack, (start, window)) in (1..).zip(&mut flows) {
                round(start, window, packets_per_ack);
            }
        }
        assert!(flows[0].1.cwnd.abs_diff(flows[1].1.cwnd) <= 20, "{} {}", flows[0].1.cwnd, flows[1].1.cwnd);
    }

    #[test]
    fn growth_stops_at_the_threshold_and_hands_the_rest_on() {
        let mut window = Window { cwnd: 60, ssthresh: 64 };
        assert_eq!(start().grow(&ack(10), &mut window), 6);
        let mut window = Window { cwnd: 200, ssthresh: 201 };
        assert_eq!(start().grow(&ack(40), &mut window), 9, "a quarter of 40, one of it used");
        assert_eq!(window.cwnd, 201);
    }

    #[test]
    fn a_limit_out_of_range_is_refused_and_harmless() {
        let config = LimitedSlowStartConfig { max_ssthresh: 0 };
        assert!(config.validate().is_err());
        LimitedSlowStart::new(&config).grow(&ack(u32::MAX), &mut Window::new(10));
        assert_eq!(LimitedSlowStartConfig::default().validate(), Ok(()));
    }
}
