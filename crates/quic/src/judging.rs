//! Constants of what is said of a look in the end.

use std::net::IpAddr;

use crate::ledger::HEADER_BYTES;

/// Headers of IPv6 are longer by so much than those of IPv4: 40 bytes instead of 20.
const LONGER: u32 = 20;

/// Bytes of a datagram that has nothing but an ACK, as a rule.
pub(crate) const ACK: u32 = 34;

/// Bytes of IP and UDP headers on the way to an address. IPv4 in the clothes of IPv6 is IPv4.
#[must_use]
pub fn header_bytes(to: IpAddr) -> u32 {
    HEADER_BYTES + if to.to_canonical().is_ipv6() { LONGER } else { 0 }
}

/// Constants of what is said of a look in the end. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadingConfig {
    /// Trains whose rates differ by more than this factor were not all let through by the same
    /// thing: a token bucket that some did not empty, others' traffic, a rate that changes. Default
    /// 1.5.
    pub unsteady: f64,
    /// ... and so were those of which the middle half differs by more than this; default 1.1: the
    /// middle is within 5 % of both ends then.
    pub middle: f64,
    /// Two trains are enough if they differ by no more than this factor; default 1.02.
    pub alike: f64,
    /// Trains this much faster than the rate behind a token bucket were let pass by it; default
    /// 1.05.
    pub bears: f64,
    /// Bytes of an IP packet that has nothing but an ACK, as a rule; default 62, of IPv4.
    pub ack_bytes: f64,
    /// Bytes that a link adds to each IP packet, which are more of an ACK than of a full packet;
    /// default 18: header and check sequence of Ethernet (IEEE 802.3).
    pub link_bytes: f64,
    /// The ACKs of a way that take this share of the capacity of the way back may be all that it
    /// bears; default 0.8.
    pub acks_fill: f64,
}

impl ReadingConfig {
    /// The default.
    pub const USUAL: Self = Self {
        unsteady: 1.5,
        middle: 1.1,
        alike: 1.02,
        bears: 1.05,
        ack_bytes: (HEADER_BYTES + ACK) as f64,
        link_bytes: 18.0,
        acks_fill: 0.8,
    };

    /// The default for the way to this address.
    #[must_use]
    pub fn over(to: IpAddr) -> Self {
        Self { ack_bytes: Self::USUAL.ack_bytes + f64::from(header_bytes(to) - HEADER_BYTES), ..Self::USUAL }
    }

    /// True if the median of such rates, the least first, says little.
    pub(crate) fn unsteady(&self, rates: &[u64]) -> bool {
        let Some(last) = rates.len().checked_sub(1) else { return false };
        let apart = |from: usize, to: usize| rates[to] as f64 / rates[from].max(1) as f64;
        apart(0, last) > self.unsteady || apart(last / 4, (last * 3).div_ceil(4)) > self.middle
    }

    /// True if so few trains may agree by chance. One agrees with itself.
    pub(crate) fn few(&self, rates: &[u64]) -> bool {
        match rates {
            [] | [_] => true,
            [least, most] => *most as f64 > *least as f64 * self.alike,
            _ => false,
        }
    }
}

impl Default for ReadingConfig {
    fn default() -> Self {
        Self::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: ReadingConfig = ReadingConfig::USUAL;

    #[test]
    fn headers_are_those_of_the_family() {
        for (to, bytes, ack) in [("192.0.2.7", 28, 62.0), ("::ffff:192.0.2.7", 28, 62.0), ("2001:db8::7", 48, 82.0)] {
            let to: IpAddr = to.parse().unwrap();
            assert_eq!((header_bytes(to), ReadingConfig::over(to).ack_bytes), (bytes, ack), "{to}");
        }
    }

    #[test]
    fn rates_say_little_if_one_is_far_off_or_the_middle_half_is_wide() {
        let steady = [100, 100, 101, 102, 103, 103, 104, 120];
        assert!(!USUAL.unsteady(&steady) && !USUAL.unsteady(&[5]) && !USUAL.unsteady(&[]));
        assert!(USUAL.unsteady(&[60, 100, 100, 100, 100, 100, 100, 100]));
        assert!(USUAL.unsteady(&[100, 100, 101, 102, 103, 112, 115, 120]));
        // Of two trains neither is in the middle.
        assert!(USUAL.unsteady(&[298, 421]) && !USUAL.unsteady(&[298, 300]));
        assert!(
            USUAL.few(&[])
                && USUAL.few(&[5])
                && USUAL.few(&[298, 310])
                && !USUAL.few(&[298, 300])
                && !USUAL.few(&[1, 2, 3])
        );
    }
}
