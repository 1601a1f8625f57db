//! When packets are handed to a flow control.

use flowstart_units::{Bytes, Rate, Time};

/// The packets of a constant-rate flow: packet i at floor(i L / r), without rounding errors adding
/// up. Endless.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    rate: u64,
    whole: u64,
    /// Of a nanosecond, in units of 1/rate.
    part: u64,
    next: u64,
    rest: u64,
}

impl ConstantRate {
    /// Packets of this size at this rate. At rate zero the first packet is the only one that ever
    /// comes (the others come at the end of time).
    #[must_use]
    pub fn new(rate: Rate, packet: Bytes) -> Self {
        const NANOS: u128 = 1_000_000_000;
        let rate = rate.as_bps();
        let gap = u128::from(packet.bits()) * NANOS;
        let whole = gap.checked_div(u128::from(rate)).unwrap_or(u128::MAX);
        // Below `rate`.
        let part = gap.checked_rem(u128::from(rate)).unwrap_or(0) as u64;
        Self { rate, whole: u64::try_from(whole).unwrap_or(u64::MAX), part, next: 0, rest: 0 }
    }
}

impl Iterator for ConstantRate {
    type Item = Time;
    fn next(&mut self) -> Option<Time> {
        let now = Time::from_nanos(self.next);
        self.next = self.next.saturating_add(self.whole);
        // rest + part < 2 rate; written without overflow.
        if self.rest >= self.rate - self.part {
            self.rest -= self.rate - self.part;
            self.next = self.next.saturating_add(1);
        } else {
            self.rest += self.part;
        }
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_come_when_they_should_to_the_nanosecond(rate in 1_u64..u64::MAX, size in 0_u64..100_000, n in 0_usize..300) {
            let found = ConstantRate::new(Rate::from_bps(rate), Bytes::new(size)).nth(n).unwrap();
            let exact = n as u128 * u128::from(size) * 8 * 1_000_000_000 / u128::from(rate);
            prop_assert_eq!(u128::from(found.as_nanos()), exact.min(u128::from(u64::MAX)));
        }
    }

    #[test]
    fn at_rate_zero_one_packet_comes() {
        let mut none = ConstantRate::new(Rate::ZERO, Bytes::new(1));
        assert_eq!(none.next(), Some(Time::ZERO));
        assert_eq!(none.next(), Some(Time::from_nanos(u64::MAX)));
    }
}
