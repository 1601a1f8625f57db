//! The number that a quantity begins with.

use alloc::string::String;

/// The longest number that is read: enough for every u64 with nine decimals.
const MAX_DIGITS: usize = 30;
/// The most decimals that are kept apart.
const MAX_DECIMALS: i64 = 30;

/// A number that a text begins with, as every quantity has it: decimal, without a sign, and if need
/// be with a point, an exponent ("1e3") and underscores ("1_000").
///
/// ```
/// use flowstart_units::Number;
///
/// let (number, unit) = Number::split("2.5e3 packets").unwrap();
/// assert_eq!((number.to_f64(), number.to_whole(), unit), (2500.0, Some(2500), " packets"));
/// assert!(Number::split("packets").is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Number<'a> {
    /// All of it.
    text: &'a str,
    /// What stands before the exponent.
    mantissa: &'a str,
    exponent: i64,
}

impl<'a> Number<'a> {
    /// Splits `text` into its number and the rest; `None` if it does not begin with one.
    #[must_use]
    pub fn split(text: &'a str) -> Option<(Self, &'a str)> {
        let bytes = text.as_bytes();
        let (mut at, mut has_digit, mut seen_point) = (0, false, false);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => has_digit = true,
                b'_' if has_digit => {}
                b'.' if !seen_point => seen_point = true,
                _ => break,
            }
            at += 1;
        }
        if !has_digit {
            return None;
        }
        let mantissa = &text[..at];
        let mut exponent = 0_i64;
        // An exponent only if digits follow, so that no unit starting with "e" is eaten.
        if let [b'e' | b'E', tail @ ..] = &bytes[at..] {
            let (negative, tail) = match tail {
                [b'-', t @ ..] => (true, t),
                [b'+', t @ ..] => (false, t),
                t => (false, t),
            };
            let length = tail.iter().take_while(|b| b.is_ascii_digit()).count();
            if length > 0 && length <= 3 {
                for digit in &tail[..length] {
                    exponent = exponent * 10 + i64::from(digit - b'0');
                }
                if negative {
                    exponent = -exponent;
                }
                at = bytes.len() - tail.len() + length;
            }
        }
        Some((Self { text: &text[..at], mantissa, exponent }, &text[at..]))
    }

    /// The nearest float; infinite if it is larger than any.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let plain: String = self.text.chars().filter(|c| *c != '_').collect();
        plain.parse().unwrap_or(f64::NAN)
    }

    /// The number itself, if it is a whole one that can be held.
    #[must_use]
    pub fn to_whole(self) -> Option<u64> {
        let (value, is_exact) = self.decimal()?.times(1)?;
        is_exact.then_some(value)
    }

    /// `None` if it has too many digits, or is too large.
    pub(crate) fn decimal(self) -> Option<Decimal> {
        let (mut digits, mut count, mut decimals, mut seen_point) = (0_u128, 0, -self.exponent, false);
        for byte in self.mantissa.bytes() {
            match byte {
                b'0'..=b'9' => {
                    count += 1;
                    if count > MAX_DIGITS {
                        return None;
                    }
                    digits = digits * 10 + u128::from(byte - b'0');
                    decimals += i64::from(seen_point);
                }
                b'.' => seen_point = true,
                _ => {}
            }
        }
        while decimals < 0 {
            digits = digits.checked_mul(10)?;
            decimals += 1;
        }
        let mut is_cut = false;
        while decimals > MAX_DECIMALS {
            is_cut |= digits % 10 > 0;
            digits /= 10;
            decimals -= 1;
        }
        Some(Decimal { digits, decimals: decimals as u32, is_cut })
    }
}

/// A decimal number as a fraction `digits / 10^decimals`.
pub(crate) struct Decimal {
    pub(crate) digits: u128,
    pub(crate) decimals: u32,
    /// It is a little more than that: further decimals were cut off.
    is_cut: bool,
}

impl Decimal {
    pub(crate) fn is_zero(&self) -> bool {
        self.digits == 0 && !self.is_cut
    }

    /// So many times the number, rounded to the nearest whole one, and whether that is exact;
    /// `None` if it is too large.
    pub(crate) fn times(&self, factor: u64) -> Option<(u64, bool)> {
        let scale = 10_u128.pow(self.decimals);
        let product = self.digits.checked_mul(u128::from(factor))?;
        let (whole, rest) = (product / scale, product % scale);
        let value = u64::try_from(whole + u128::from(rest >= scale.div_ceil(2) && rest > 0)).ok()?;
        Some((value, rest == 0 && !self.is_cut))
    }

    /// True if so many times the number is above 0 and below 1.
    pub(crate) fn is_less_than_one(&self, factor: u64) -> bool {
        let product = self.digits.checked_mul(u128::from(factor));
        !self.is_zero() && product.is_some_and(|product| product < 10_u128.pow(self.decimals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_split_off_with_point_exponent_and_underscores() {
        for (text, float, whole, rest) in [
            ("1e0 BDP", 1.0, Some(1), " BDP"),
            ("2.5E1packets", 25.0, Some(25), "packets"),
            ("1_000.5", 1000.5, None, ""),
            ("1e-3 x", 0.001, None, " x"),
            ("3 eggs", 3.0, Some(3), " eggs"),
            ("3e", 3.0, Some(3), "e"),
            ("18446744073709551615", 18_446_744_073_709_551_615.0, Some(u64::MAX), ""),
            ("18446744073709551616", 18_446_744_073_709_551_616.0, None, ""),
            ("1e999", f64::INFINITY, None, ""),
        ] {
            let (number, after) = Number::split(text).unwrap();
            assert_eq!((number.to_f64(), number.to_whole(), after), (float, whole, rest), "{text}");
        }
        for text in ["", ".", "_1", "-1", "e3", "packets"] {
            assert!(Number::split(text).is_none(), "{text}");
        }
    }
}
