//! What protects a request: the nonce against a receiver that claims more, the TTL difference
//! against routers that did not look.

use rand_core::Rng;

use crate::RateCode;

/// Bits of a nonce.
const BITS: u32 = 30;
const MASK: u32 = (1 << BITS) - 1;

/// The 30-bit Quick-Start nonce. Two bits belong to each step of the rate; a router that lowers the
/// rate makes the bits of the steps it takes away random, so that a receiver that claims a step
/// more has to guess them (RFC 4782 section 3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nonce(u32);

impl Nonce {
    /// The low 30 bits of `bits`.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self(bits & MASK)
    }

    /// A nonce that the receiver cannot predict, if it cannot predict `random`.
    #[must_use]
    pub fn random(random: &mut impl Rng) -> Self {
        Self::new(random.next_u32())
    }

    /// The bits, 0 .. 2^30.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The low bits that tell rates up to `rate`: two per step.
    const fn bits_of(rate: RateCode) -> u32 {
        (1 << (2 * rate.get() as u32)) - 1
    }

    /// What a router makes of the nonce when it lowers `from` to `to`: bits 2 `to` .. 2 `from`,
    /// from the least significant, are those of `random`; all others stay. The nonce itself if `to`
    /// is not lower.
    #[must_use]
    pub const fn lowered(self, from: RateCode, to: RateCode, random: u32) -> Self {
        let taken = Self::bits_of(from) & !Self::bits_of(to);
        Self((self.0 & !taken) | (random & taken))
    }

    /// True if this nonce, reported together with `rate`, can stem from `sent`: the bits of all
    /// steps up to `rate` are equal.
    #[must_use]
    pub const fn agrees_with(self, sent: Self, rate: RateCode) -> bool {
        (self.0 ^ sent.0) & Self::bits_of(rate) == 0
    }
}

/// The TTL difference: the TTL of IP minus that of Quick-Start, modulo 256 (RFC 4782 section 3.1).
/// A router that knows Quick-Start lowers both, any other only the first.
///
/// RFC 4782 prints 28 for TTL 63 and Quick-Start TTL 91 in its figures 1 and 2, which is the
/// opposite sign; its equation gives 228.
#[must_use]
pub const fn ttl_difference(ip_ttl: u8, quick_start_ttl: u8) -> u8 {
    ip_ttl.wrapping_sub(quick_start_ttl)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code() -> impl Strategy<Value = RateCode> {
        (0_u8..=15).prop_map(|n| RateCode::new(n).unwrap())
    }

    #[test]
    fn two_bits_belong_to_each_step() {
        // K = 15 -> 14 takes the two most significant bits of the 30, K = 1 -> 0 the two least
        // significant.
        let step =
            |from, to| Nonce::new(0).lowered(RateCode::new(from).unwrap(), RateCode::new(to).unwrap(), u32::MAX).get();
        assert_eq!(step(15, 14), 0x3000_0000);
        assert_eq!(step(7, 6), 0x3000);
        assert_eq!(step(1, 0), 0b11);
        assert_eq!(step(15, 0), MASK);
    }

    #[test]
    fn the_equation_of_the_rfc_gives_228_where_its_figures_print_28() {
        assert_eq!(ttl_difference(63, 91), 228);
        assert_eq!(ttl_difference(91, 63), 28);
    }

    proptest! {
        #[test]
        fn lowering_leaves_the_bits_of_the_rate_that_is_left(bits: u32, random: u32, from in code(), to in code()) {
            let sent = Nonce::new(bits);
            let lowered = sent.lowered(from, to, random);
            prop_assert!(lowered.agrees_with(sent, from.min(to)));
            if to >= from {
                prop_assert_eq!(lowered, sent);
            }
            let taken = (lowered.get() ^ sent.get()).checked_ilog2();
            prop_assert!(taken.is_none_or(|bit| bit < 2 * u32::from(from.get()) && bit >= 2 * u32::from(to.get())));
        }
    }
}
