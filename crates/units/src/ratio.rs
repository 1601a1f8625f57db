//! Products and quotients of 64-bit numbers.

/// `(a * b + c) / d`, rounded down, saturating; `d` is not zero. What fits in 64 bits, as nearly
/// all packets' times do, is not divided in 128, which takes several times as long.
#[inline]
pub(crate) const fn mul_div(a: u64, b: u64, c: u64, d: u64) -> u64 {
    if let Some(product) = a.checked_mul(b)
        && let Some(sum) = product.checked_add(c)
    {
        return sum / d;
    }
    let wide = (a as u128 * b as u128 + c as u128) / d as u128;
    if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
}

/// The nearest whole number, from halves on the next, saturating; zero for what is negative or no
/// number. The same as `libm::round`, which takes several times as long.
#[inline]
pub(crate) fn rounded(number: f64) -> u64 {
    let whole = number as u64;
    // The difference is exact: from 2^53 on there is none.
    whole.saturating_add(u64::from(number - whole as f64 >= 0.5))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_count_is_rounded_to_the_nearest_that_is() {
        for (number, expected) in [
            (f64::NAN, 0),
            (f64::NEG_INFINITY, 0),
            (-0.5, 0),
            (-7.0, 0),
            (0.49999999999999994, 0),
            (0.5, 1),
            (1.5, 2),
            (2.5, 3),
            (4503599627370495.5, 4503599627370496),
            (9007199254740993.0, 9007199254740992),
            (18446744073709549568.0, 18446744073709549568),
            (18446744073709551616.0, u64::MAX),
            (f64::INFINITY, u64::MAX),
        ] {
            assert_eq!((rounded(number), libm::round(number) as u64), (expected, expected), "{number}");
        }
    }

    proptest! {
        /// Differential: any bits, and numbers around halves.
        #[test]
        fn numbers_are_rounded_as_libm_rounds_them(bits in any::<u64>(), halves in any::<u64>(), shift in 0_u32..64) {
            for number in [f64::from_bits(bits), (halves >> shift) as f64 / 2.0] {
                prop_assert_eq!(rounded(number), libm::round(number) as u64);
            }
        }

        /// Differential: numbers of all sizes, in 128 bits.
        #[test]
        fn what_fits_in_64_bits_is_what_128_give(
            numbers in proptest::array::uniform4((any::<u64>(), 0_u32..64).prop_map(|(n, bits)| n >> bits)),
        ) {
            let [a, b, c, d] = numbers;
            let d = d.max(1);
            let wide = (u128::from(a) * u128::from(b) + u128::from(c)) / u128::from(d);
            prop_assert_eq!(mul_div(a, b, c, d), u64::try_from(wide).unwrap_or(u64::MAX));
        }
    }

    #[test]
    fn the_edge_of_64_bits_is_no_edge_of_the_result() {
        assert_eq!(mul_div(u64::MAX, 1, 0, 2), u64::MAX / 2);
        assert_eq!(mul_div(u64::MAX, 1, 1, 2), 1 << 63);
        assert_eq!(mul_div(u64::MAX, 2, 1, 2), u64::MAX);
        assert_eq!(mul_div(u64::MAX, 2, 2, 2), u64::MAX, "saturated");
    }
}
