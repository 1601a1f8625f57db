//! The sixteen rates that can be asked for.

use flowstart_units::{Rate, Span};

/// Half of the smallest rate: code N stands for this times 2^N (RFC 4782 section 3.1).
const UNIT_BPS: u64 = 40_000;
/// Bits in a byte times nanoseconds in a second, in window computations.
const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// A rate as Quick-Start writes it: 0 for none, otherwise 40 kbit/s * 2^N, N = 1 ..= 15, headers of
/// IP and TCP included (RFC 4782 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateCode(u8);

impl RateCode {
    /// Nothing: a denial.
    pub const ZERO: Self = Self(0);
    /// The smallest rate, 80 kbit/s.
    pub const MIN: Self = Self(1);
    /// The largest rate, 1.31072 Gbit/s.
    pub const MAX: Self = Self(15);

    /// The code `n`; `None` above 15.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if n <= Self::MAX.0 { Some(Self(n)) } else { None }
    }

    /// The low four bits of a byte.
    pub(crate) const fn of_nibble(byte: u8) -> Self {
        Self(byte & 0x0f)
    }

    /// The largest code whose rate is at most `rate`; zero below 80 kbit/s. What a router offers
    /// (RFC 4782 section 3.1).
    #[must_use]
    pub const fn floor(rate: Rate) -> Self {
        match (rate.as_bps() / UNIT_BPS).checked_ilog2() {
            // `units` is at least 1: its logarithm is the code, but 40 kbit/s itself has none.
            Some(n) if n < Self::MAX.0 as u32 => Self(n as u8),
            Some(_) => Self::MAX,
            None => Self::ZERO,
        }
    }

    /// The smallest code whose rate is at least `rate`, the largest if there is none; zero only for
    /// no rate at all. What a sender may ask for (RFC 4782 section 3.1).
    #[must_use]
    pub fn ceil(rate: Rate) -> Self {
        if rate == Rate::ZERO {
            return Self::ZERO;
        }
        let below = Self::floor(rate);
        if below.rate() >= rate { below } else { Self((below.0 + 1).min(Self::MAX.0)) }
    }

    /// The code itself, 0 ..= 15.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// True if this is a denial.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The rate, in bits of IP packets per second.
    #[must_use]
    pub const fn rate(self) -> Rate {
        if self.0 == 0 { Rate::ZERO } else { Rate::from_bps(UNIT_BPS << self.0) }
    }

    /// The window in packets of `packet` bytes (headers of IP and TCP included) that makes this
    /// rate over `rtt`, rounded down (RFC 4782 section 4.4: R * T / (MSS + H)).
    #[must_use]
    pub fn window(self, rtt: Span, packet: u32) -> u32 {
        let bit_nanos = u128::from(self.rate().as_bps()) * u128::from(rtt.as_nanos());
        let packets = bit_nanos / (BIT_NANOS_PER_BYTE * u128::from(packet.max(1)));
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_codes_are_the_rates_of_the_table() {
        let kbps = [
            0, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240, 20_480, 40_960, 81_920, 163_840, 327_680, 655_360,
            1_310_720,
        ];
        for (n, kbps) in kbps.into_iter().enumerate() {
            assert_eq!(RateCode::new(n as u8).unwrap().rate(), Rate::from_bps(kbps * 1000));
        }
        assert_eq!(RateCode::new(16), None);
    }

    #[test]
    fn windows_of_1500_byte_packets() {
        let window = |n, ms| RateCode::new(n).unwrap().window(Span::from_millis(ms), 1500);
        let times = [10, 20, 50, 100, 200, 500];
        assert_eq!(times.map(|ms| window(7, ms)), [4, 8, 21, 42, 85, 213]);
        assert_eq!(times.map(|ms| window(6, ms)), [2, 4, 10, 21, 42, 106]);
        assert_eq!(window(8, 100), 85);
        assert_eq!(RateCode::MAX.window(Span::MAX, 0), u32::MAX);
        assert_eq!(RateCode::ZERO.window(Span::from_secs(1), 1500), 0);
    }

    #[test]
    fn below_the_smallest_rate_a_router_offers_nothing_and_a_sender_asks_for_the_smallest() {
        for bps in [1, 39_999, 40_000, 79_999] {
            assert_eq!(RateCode::floor(Rate::from_bps(bps)), RateCode::ZERO);
            assert_eq!(RateCode::ceil(Rate::from_bps(bps)), RateCode::MIN);
        }
        assert_eq!(RateCode::floor(Rate::UNLIMITED), RateCode::MAX);
        assert_eq!(RateCode::ceil(Rate::UNLIMITED), RateCode::MAX);
        assert_eq!(RateCode::ceil(Rate::ZERO), RateCode::ZERO);
    }

    proptest! {
        #[test]
        fn floor_and_ceil_enclose_the_rate(bps in 80_000_u64..1_310_720_000) {
            let rate = Rate::from_bps(bps);
            let (floor, ceil) = (RateCode::floor(rate), RateCode::ceil(rate));
            prop_assert!(floor.rate() <= rate && rate <= ceil.rate());
            prop_assert!(ceil.get() - floor.get() <= 1);
            prop_assert_eq!(floor == ceil, floor.rate() == rate);
        }
    }
}
