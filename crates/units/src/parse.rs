//! Reading quantities as people write them: "100 Mbit/s", "15 ms", "1.5 MB", "2 %".

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Rate, Span};

/// Why a text is not the quantity that was asked for. Its `Display` is one sentence that also says
/// what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    message: String,
}

impl ParseUnitError {
    pub(crate) fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ParseUnitError {}

/// What a kind of quantity is called, its units with their size in the smallest one, and two
/// examples.
struct Kind {
    name: &'static str,
    /// Spelling and factor; the first spelling with a given factor is the one suggested.
    units: &'static [(&'static str, u64)],
    /// Offered when a bare number was given, with `{}` for the number.
    likely: &'static str,
    /// Offered in its place from 1000 on.
    likely_from_1000: &'static str,
    examples: &'static str,
}

const RATE: Kind = Kind {
    name: "rate",
    units: &[
        ("bit/s", 1),
        ("bps", 1),
        ("b/s", 1),
        ("kbit/s", 1_000),
        ("kbps", 1_000),
        ("kb/s", 1_000),
        ("kbit", 1_000),
        ("Mbit/s", 1_000_000),
        ("Mbps", 1_000_000),
        ("Mb/s", 1_000_000),
        ("Mbit", 1_000_000),
        ("mbit", 1_000_000),
        ("mbps", 1_000_000),
        ("mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("Gbit", 1_000_000_000),
        ("gbit", 1_000_000_000),
        ("gbps", 1_000_000_000),
        ("gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("B/s", 8),
        ("Bps", 8),
        ("kB/s", 8_000),
        ("kBps", 8_000),
        ("MB/s", 8_000_000),
        ("MBps", 8_000_000),
        ("GB/s", 8_000_000_000),
        ("GBps", 8_000_000_000),
        ("Kib/s", 1 << 10),
        ("Mib/s", 1 << 20),
        ("Gib/s", 1 << 30),
    ],
    likely: "{} Mbit/s",
    likely_from_1000: "{} Mbit/s",
    examples: "\"100 Mbit/s\", \"2.5 Gbit/s\" or \"800 kbit/s\"",
};

const SPAN: Kind = Kind {
    name: "time",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("sec", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    likely: "{} ms",
    likely_from_1000: "{} ms",
    examples: "\"20 ms\", \"150 us\" or \"30 s\"",
};

/// A moment of a run: whoever writes a bare number thinks of seconds.
const MOMENT: Kind = Kind { likely: "{} s", examples: "\"1.5 s\", \"200 ms\" or \"30 s\"", ..SPAN };

const BYTES: Kind = Kind {
    name: "size",
    units: &[
        ("B", 1),
        ("bytes", 1),
        ("byte", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("kiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    likely: "{} kB",
    likely_from_1000: "{} B",
    examples: "\"100 kB\", \"10 MB\" or \"1500 B\"",
};

/// A decimal number as an exact fraction `digits / 10^decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

/// The longest number that is read: enough for every u64 with nine decimals.
const MAX_DIGITS: usize = 30;

/// Splits `text` into a non-negative decimal number (with an optional exponent) and the rest.
fn split_number(text: &str) -> Option<(Decimal, &str)> {
    let bytes = text.as_bytes();
    let mut digits: u128 = 0;
    let mut count = 0;
    let mut decimals = 0_i64;
    let mut seen_point = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            digit @ b'0'..=b'9' => {
                count += 1;
                if count > MAX_DIGITS {
                    return None;
                }
                digits = digits * 10 + u128::from(digit - b'0');
                decimals += i64::from(seen_point);
            }
            b'_' if count > 0 => {}
            b'.' if !seen_point => seen_point = true,
            _ => break,
        }
        at += 1;
    }
    if count == 0 {
        return None;
    }
    // An exponent only if digits follow, so that no unit starting with "e" is eaten.
    let rest = &bytes[at..];
    if let [b'e' | b'E', tail @ ..] = rest {
        let (negative, tail) = match tail {
            [b'-', t @ ..] => (true, t),
            [b'+', t @ ..] => (false, t),
            t => (false, t),
        };
        let length = tail.iter().take_while(|b| b.is_ascii_digit()).count();
        if length > 0 && length <= 3 {
            let mut exponent = 0_i64;
            for digit in &tail[..length] {
                exponent = exponent * 10 + i64::from(digit - b'0');
            }
            at = bytes.len() - tail.len() + length;
            decimals -= if negative { -exponent } else { exponent };
        }
    }
    while decimals < 0 {
        digits = digits.checked_mul(10)?;
        decimals += 1;
    }
    while decimals > 30 {
        digits /= 10;
        decimals -= 1;
    }
    Some((Decimal { digits, decimals: decimals as u32 }, &text[at..]))
}

fn parse(kind: &Kind, text: &str) -> Result<u64, ParseUnitError> {
    let trimmed = text.trim();
    let wrong = |why: String| ParseUnitError::new(format!("{why}; a {} looks like {}", kind.name, kind.examples));
    if trimmed.starts_with('-') {
        return Err(wrong(format!("\"{trimmed}\" is negative")));
    }
    let Some((number, unit)) = split_number(trimmed) else {
        return Err(wrong(format!("\"{trimmed}\" is not a {}", kind.name)));
    };
    let unit = unit.trim();
    let factor = if let Some((_, factor)) = kind.units.iter().find(|(name, _)| *name == unit) {
        *factor
    } else if unit.is_empty() {
        if number.digits == 0 {
            return Ok(0);
        }
        let large = number.digits >= 1000 * 10_u128.pow(number.decimals);
        let likely = if large { kind.likely_from_1000 } else { kind.likely }.replace("{}", trimmed);
        return Err(wrong(format!("\"{trimmed}\" has no unit; did you mean \"{likely}\"?")));
    } else {
        let known: Vec<&str> = {
            let mut seen = Vec::new();
            kind.units
                .iter()
                .filter(|(_, factor)| {
                    let new = !seen.contains(factor);
                    seen.push(*factor);
                    new
                })
                .map(|(name, _)| *name)
                .collect()
        };
        return Err(wrong(format!("\"{unit}\" is not a unit of {}; known are {}", kind.name, known.join(", "))));
    };
    let scale = 10_u128.pow(number.decimals);
    let value = number.digits.checked_mul(u128::from(factor)).map(|product| (product + scale / 2) / scale);
    match value.map(u64::try_from) {
        Some(Ok(value)) if value < u64::MAX => Ok(value),
        _ => Err(wrong(format!("\"{trimmed}\" is larger than any {} that can be simulated", kind.name))),
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;

    /// Reads "100 Mbit/s", "100Mbps", "12.5 MB/s"; bits without "/s", as `tc` has them ("100Mbit"),
    /// are per second too. A bare number is refused, and so are bytes without "/s".
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(&RATE, text).map(Self::from_bps)
    }
}

impl FromStr for Span {
    type Err = ParseUnitError;

    /// Reads "20 ms", "1.5s", "150 us". A bare number other than 0 is refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(&SPAN, text).map(Self::from_nanos)
    }
}

impl FromStr for crate::Time {
    type Err = ParseUnitError;

    /// Reads a time since the start of the run, written as a [`Span`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(&MOMENT, text).map(Self::from_nanos)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Reads "100 kB", "1500B", "2 MiB". A bare number other than 0 is refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(&BYTES, text).map(Self::new)
    }
}

/// Reads a share between 0 and 1 as "2 %", "0.1%" or "0.02".
///
/// # Errors
/// Anything that is not a number between 0 and 1 (0 % and 100 %).
pub fn parse_fraction(text: &str) -> Result<f64, ParseUnitError> {
    let trimmed = text.trim();
    let wrong = || {
        ParseUnitError::new(format!(
            "\"{trimmed}\" is not a share; write it as \"1 %\" or 0.01, between 0 and 1 (100 %)"
        ))
    };
    let (digits, scale) = match trimmed.strip_suffix('%') {
        Some(rest) => (rest.trim_end(), 100.0),
        None => (trimmed, 1.0),
    };
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let share = value / scale;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_people_write_them() {
        for (text, bps) in [
            ("100 Mbit/s", 100_000_000),
            ("100Mbps", 100_000_000),
            ("100Mbit", 100_000_000),
            ("2.5 Gbit/s", 2_500_000_000),
            ("12.5 MB/s", 100_000_000),
            ("0.5 kbit/s", 500),
            ("1e3 bit/s", 1_000),
            ("1_000 bit/s", 1_000),
            ("1 Mib/s", 1_048_576),
        ] {
            assert_eq!(text.parse(), Ok(Rate::from_bps(bps)), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_with_the_likely_meaning() {
        let message = "100".parse::<Rate>().unwrap_err().to_string();
        assert!(message.contains("did you mean \"100 Mbit/s\"?"), "{message}");
        let message = "20".parse::<Span>().unwrap_err().to_string();
        assert!(message.contains("did you mean \"20 ms\"?"), "{message}");
        for (bare, likely) in [("1", "1 s"), ("1.5", "1.5 s"), ("1000", "1000 ms")] {
            let message = bare.parse::<crate::Time>().unwrap_err().to_string();
            assert!(message.contains(&format!("did you mean \"{likely}\"?")), "{message}");
        }
        for (bare, likely) in
            [("32", "32 kB"), ("32.5", "32.5 kB"), ("999", "999 kB"), ("1000", "1000 B"), ("32000", "32000 B")]
        {
            let message = bare.parse::<Bytes>().unwrap_err().to_string();
            assert!(message.contains(&format!("did you mean \"{likely}\"?")), "{message}");
        }
    }

    #[test]
    fn negative_huge_and_nonsense_are_refused() {
        assert!("-5 ms".parse::<Span>().unwrap_err().to_string().contains("negative"));
        assert!("1e18 GB".parse::<Bytes>().unwrap_err().to_string().contains("larger"));
        assert!("1e999 B".parse::<Bytes>().is_err());
        assert!("".parse::<Bytes>().is_err());
        assert!("fast".parse::<Rate>().is_err());
        assert!("100 MB".parse::<Rate>().is_err(), "a size is no rate");
        assert!("3 parsec".parse::<Span>().unwrap_err().to_string().contains("known are ns, us, ms, s"));
        assert!(".".parse::<Rate>().is_err());
    }

    #[test]
    fn shares_read_as_percent_or_number() {
        assert_eq!(parse_fraction("2 %"), Ok(0.02));
        assert_eq!(parse_fraction("0.01"), Ok(0.01));
        assert!(parse_fraction("120 %").is_err());
        assert!(parse_fraction("-1").is_err());
        assert!(parse_fraction("nan").is_err());
    }

    proptest::proptest! {
        #[test]
        fn parsing_is_total(text in "\\PC{0,24}") {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Span>();
            let _ = text.parse::<Bytes>();
            let _ = parse_fraction(&text);
        }

        #[test]
        fn what_is_printed_reads_back(n in 0..u64::MAX) {
            proptest::prop_assert_eq!(Span::from_nanos(n).to_string().parse(), Ok(Span::from_nanos(n)));
            proptest::prop_assert_eq!(Rate::from_bps(n).to_string().parse(), Ok(Rate::from_bps(n)));
            proptest::prop_assert_eq!(Bytes::new(n).to_string().parse(), Ok(Bytes::new(n)));
        }
    }
}
