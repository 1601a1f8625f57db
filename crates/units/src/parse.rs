//! Reading quantities as people write them: "100 Mbit/s", "15 ms", "1.5 MB", "2 %".

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Number, Rate, Span};

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
    /// The smallest one, in words; what is less is not read as nothing.
    least: &'static str,
    /// There is no part of the smallest one. Others are measured: they are rounded to it.
    is_counted: bool,
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
    least: "1 bit/s",
    is_counted: false,
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
    least: "a nanosecond",
    is_counted: false,
    likely: "{} ms",
    likely_from_1000: "{} ms",
    examples: "\"20 ms\", \"150 us\" or \"30 s\"",
};

/// A moment of a run: whoever writes a bare number thinks of seconds.
const MOMENT: Kind = Kind { likely: "{} s", examples: "\"1.5 s\", \"200 ms\" or \"30 s\"", ..SPAN };

/// A limit of time: seconds, however many.
const LIMIT: Kind =
    Kind { likely: "{} s", likely_from_1000: "{} s", examples: "\"60 s\", \"500 ms\" or \"10 min\"", ..SPAN };

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
    least: "a byte",
    is_counted: true,
    likely: "{} kB",
    likely_from_1000: "{} B",
    examples: "\"100 kB\", \"10 MB\" or \"1500 B\"",
};

fn parse(kind: &Kind, text: &str) -> Result<u64, ParseUnitError> {
    parse_beside(kind, text, &[])
}

/// The same where the caller reads some units itself, which are named with the others.
fn parse_beside(kind: &Kind, text: &str, beside: &[&str]) -> Result<u64, ParseUnitError> {
    let trimmed = text.trim();
    let wrong = |why: String| ParseUnitError::new(format!("{why}; a {} looks like {}", kind.name, kind.examples));
    if trimmed.starts_with('-') {
        return Err(wrong(format!("\"{trimmed}\" is negative")));
    }
    let read = Number::split(trimmed).and_then(|(number, unit)| Some((number.decimal()?, unit)));
    let Some((number, unit)) = read else {
        return Err(wrong(format!("\"{trimmed}\" is not a {}", kind.name)));
    };
    let unit = unit.trim();
    let factor = if let Some((_, factor)) = kind.units.iter().find(|(name, _)| *name == unit) {
        *factor
    } else if unit.is_empty() {
        if number.is_zero() {
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
                .chain(beside.iter().copied())
                .collect()
        };
        return Err(wrong(format!("\"{unit}\" is not a unit of {}; known are {}", kind.name, known.join(", "))));
    };
    if number.is_less_than_one(factor) {
        return Err(wrong(format!("\"{trimmed}\" is less than {}, which is the least", kind.least)));
    }
    match number.times(factor) {
        // A decimal fraction of a power of two is hardly ever whole: whoever writes "0.1 MiB" means
        // the nearest.
        Some((value, false)) if kind.is_counted && (factor == 1 || !factor.is_power_of_two()) => Err(wrong(format!(
            "\"{trimmed}\" is no whole number of {}; did you mean \"{value} {}\"?",
            kind.units[1].0, kind.units[0].0
        ))),
        Some((value, _)) if value < u64::MAX => Ok(value),
        _ => Err(wrong(format!("\"{trimmed}\" is larger than any {} that can be simulated", kind.name))),
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;

    /// Reads "100 Mbit/s", "100Mbps", "12.5 MB/s"; bits without "/s", as `tc` has them ("100Mbit"),
    /// are per second too. A bare number is refused, and so are bytes without "/s". Rounded to the
    /// nearest bit/s; what is above zero and below one is refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(&RATE, text).map(Self::from_bps)
    }
}

impl FromStr for Span {
    type Err = ParseUnitError;

    /// Reads "20 ms", "1.5s", "150 us". A bare number other than 0 is refused. Rounded to the
    /// nearest nanosecond; what is above zero and below one is refused.
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

    /// Reads "100 kB", "1500B", "2 MiB". A bare number other than 0 is refused, and so is what is
    /// no whole number of bytes ("0.5 B"), but for powers of 1024: "0.1 MiB" is the nearest number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(&BYTES, text).map(Self::new)
    }
}

impl Bytes {
    /// As [`Bytes::from_str`], for whoever reads some more units itself: an unknown one is answered
    /// with those `beside`, too.
    ///
    /// # Errors
    /// As `from_str`.
    pub fn parse_beside(text: &str, beside: &[&str]) -> Result<Self, ParseUnitError> {
        parse_beside(&BYTES, text, beside).map(Self::new)
    }
}

/// Reads the most time that something may take: as a [`Span`], but whoever writes a bare number is
/// taken to think of seconds in the answer.
///
/// # Errors
/// As `Span::from_str`.
pub fn parse_time_limit(text: &str) -> Result<Span, ParseUnitError> {
    parse(&LIMIT, text).map(Span::from_nanos)
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
    let (number, unit) = Number::split(trimmed).ok_or_else(wrong)?;
    let scale = match unit.trim_start() {
        "%" => 100.0,
        "" => 1.0,
        _ => return Err(wrong()),
    };
    let share = number.to_f64() / scale;
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
        for bare in ["60", "3600"] {
            let message = parse_time_limit(bare).unwrap_err().to_string();
            assert!(message.contains(&format!("did you mean \"{bare} s\"?")), "{message}");
        }
        assert_eq!(parse_time_limit("500 ms"), Ok(Span::from_millis(500)));
        for (bare, likely) in
            [("32", "32 kB"), ("32.5", "32.5 kB"), ("999", "999 kB"), ("1000", "1000 B"), ("32000", "32000 B")]
        {
            let message = bare.parse::<Bytes>().unwrap_err().to_string();
            assert!(message.contains(&format!("did you mean \"{likely}\"?")), "{message}");
        }
    }

    /// "0.5B" was read as one byte.
    #[test]
    fn parts_of_a_byte_are_refused_and_parts_of_larger_units_are_not() {
        for (text, bytes) in [("0.5 kB", 500), ("1e-1 kB", 100), ("1.0 B", 1), ("10e-1 B", 1), ("1.5 KiB", 1536)] {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
        for (text, likely) in [("1.5 B", "2 B"), ("1.2345 kB", "1235 B"), ("1500.25 bytes", "1500 B")] {
            let message = text.parse::<Bytes>().unwrap_err().to_string();
            let sentence = format!("\"{text}\" is no whole number of bytes; did you mean \"{likely}\"?");
            assert!(message.starts_with(&sentence), "{message}");
        }
        assert_eq!("0.1 MiB".parse(), Ok(Bytes::new(104_858)), "104857.6");
    }

    #[test]
    fn what_is_less_than_the_smallest_unit_is_neither_nothing_nor_that_unit() {
        for text in ["0.5 B", "0.4B", "0.0001 KiB", "1e-40 B", "0.0001 kB"] {
            let message = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(message.contains("is less than a byte, which is the least"), "{message}");
        }
        for text in ["0.5 bit/s", "0.1 bit/s", "1e-4 kbit/s", "1e-99 Gbit/s"] {
            let message = text.parse::<Rate>().unwrap_err().to_string();
            assert!(message.contains("is less than 1 bit/s, which is the least"), "{message}");
        }
        for text in ["0.5 ns", "0.1ns", "1e-10 s", "1e-999 s"] {
            let message = text.parse::<Span>().unwrap_err().to_string();
            assert!(message.contains("is less than a nanosecond, which is the least"), "{message}");
        }
        // Rates and times are measured, not counted: they are rounded.
        assert_eq!("1.5 bit/s".parse(), Ok(Rate::from_bps(2)));
        assert_eq!("1.0004 us".parse(), Ok(Span::from_nanos(1000)));
        for nothing in ["0", "0.0 B", "0e5 B", "0e-99 B"] {
            assert_eq!(nothing.parse(), Ok(Bytes::ZERO), "{nothing}");
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
    fn an_unknown_unit_is_answered_with_all_that_are_read_there() {
        let message = Bytes::parse_beside("1x", &["K", "M"]).unwrap_err().to_string();
        let known = "known are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
        assert!(message.starts_with(&format!("\"x\" is not a unit of size; {known}, K, M; ")), "{message}");
        let message = "1x".parse::<Bytes>().unwrap_err().to_string();
        assert!(message.starts_with(&format!("\"x\" is not a unit of size; {known}; ")), "{message}");
        assert_eq!(Bytes::parse_beside("2 kB", &["K", "M"]), Ok(Bytes::new(2_000)));
    }

    #[test]
    fn shares_read_as_percent_or_number() {
        assert_eq!(parse_fraction("2 %"), Ok(0.02));
        assert_eq!(parse_fraction("0.01"), Ok(0.01));
        assert_eq!(parse_fraction("1_0%"), Ok(0.1));
        assert_eq!(parse_fraction("2e-1 %"), Ok(0.002));
        assert_eq!(parse_fraction("1 % "), Ok(0.01));
        for wrong in ["+5 %", "-0", "1 %%", "1 ppm", "", "%", "inf"] {
            assert!(parse_fraction(wrong).is_err(), "{wrong}");
        }
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
            let _ = Number::split(&text).map(|(number, _)| (number.to_f64(), number.to_whole()));
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
