//! Measured quantities and what they are measured in.

use std::fmt;

use flowstart_units::{Rate, Span, parse_fraction};

/// Why a text is no value or statistic. Its `Display` is one sentence that also says what would be
/// right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(String);

impl ReadError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for String {
    fn from(error: ReadError) -> Self {
        error.0
    }
}

/// What a measure is measured in. Values are kept as floats in the base unit named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Seconds.
    Time,
    /// Bits per second.
    Rate,
    /// A share, 1 is 100 %.
    Share,
    /// Packets.
    Packets,
    /// Base round-trip times.
    Rtts,
    /// A plain number: counts and ratios.
    Plain,
}

impl Dimension {
    /// The value in the unit people use, with three significant digits.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        let (value, unit) = match self {
            Self::Time if value.abs() >= 1.0 => (value, " s"),
            Self::Time => (value * 1e3, " ms"),
            Self::Rate => (value / 1e6, " Mbit/s"),
            Self::Share => (value * 100.0, " %"),
            Self::Packets => (value, " packets"),
            Self::Rtts => (value, " RTT"),
            Self::Plain => (value, ""),
        };
        format!("{}{unit}", short(value))
    }

    /// Reads a number with its unit.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn read(self, text: &str) -> Result<f64, ReadError> {
        let text = text.trim();
        let (sign, size) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest.trim_start()));
        let number = |unit: &str| {
            let digits = size.strip_suffix(unit).unwrap_or(size).trim_end();
            let wrong = || {
                let example = self.example();
                ReadError::new(format!("\"{text}\" is not what this measure gives; it looks like \"{example}\""))
            };
            digits.parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(wrong)
        };
        let value = match self {
            Self::Time => size.parse::<Span>().map_err(|error| ReadError::new(error.to_string()))?.as_secs_f64(),
            Self::Rate => size.parse::<Rate>().map_err(|error| ReadError::new(error.to_string()))?.as_bps() as f64,
            Self::Share => parse_fraction(size).map_err(|error| ReadError::new(error.to_string()))?,
            Self::Packets => number("packets")?,
            Self::Rtts => number("RTT")?,
            Self::Plain => number("")?,
        };
        Ok(sign * value)
    }

    fn example(self) -> &'static str {
        match self {
            Self::Time => "3 ms",
            Self::Rate => "50 Mbit/s",
            Self::Share => "90 %",
            Self::Packets => "125 packets",
            Self::Rtts => "5 RTT",
            Self::Plain => "0.8",
        }
    }
}

/// Three significant digits, no exponent below a million.
fn short(value: f64) -> String {
    /// Digits that are shown.
    const DIGITS: i32 = 3;
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = libm::log10(value.abs()).floor() as i32;
    let decimals = (DIGITS - 1 - magnitude).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value that may be known only from one side, because a run ended before the thing happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// In the base unit of its dimension.
    pub value: f64,
    /// From which side it is known.
    pub bound: Bound,
}

/// From which side a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is this.
    Exact,
    /// It is this or more.
    AtLeast,
    /// It is this or less.
    AtMost,
}

impl Measured {
    /// A value that is known.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, bound: Bound::Exact }
    }

    /// The quotient; `None` if it is not defined or not known from either side.
    #[must_use]
    pub fn over(self, other: Self) -> Option<Self> {
        let bound = match (self.bound, other.bound) {
            (bound, Bound::Exact) => bound,
            (Bound::Exact | Bound::AtMost, Bound::AtLeast) => Bound::AtMost,
            (Bound::Exact | Bound::AtLeast, Bound::AtMost) => Bound::AtLeast,
            _ => return None,
        };
        let value = self.value / other.value;
        value.is_finite().then_some(Self { value, bound })
    }

    /// The difference; `None` if it is not known from either side.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        let bound = match (self.bound, other.bound) {
            (bound, Bound::Exact) => bound,
            (Bound::Exact | Bound::AtMost, Bound::AtLeast) => Bound::AtMost,
            (Bound::Exact | Bound::AtLeast, Bound::AtMost) => Bound::AtLeast,
            _ => return None,
        };
        Some(Self { value: self.value - other.value, bound })
    }

    /// The value with its unit, behind ">" or "<" if it is known only from one side.
    #[must_use]
    pub fn show(self, dimension: Dimension) -> String {
        let sign = match self.bound {
            Bound::Exact => "",
            Bound::AtLeast => "> ",
            Bound::AtMost => "< ",
        };
        format!("{sign}{}", dimension.show(self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_half_known_values_are_half_known() {
        let late = Measured { value: 12.0, bound: Bound::AtLeast };
        let known = Measured::exact(3.0);
        assert_eq!(known.over(late), Some(Measured { value: 0.25, bound: Bound::AtMost }));
        assert_eq!(late.over(known), Some(Measured { value: 4.0, bound: Bound::AtLeast }));
        assert_eq!(late.over(late), None);
        assert_eq!(known.over(Measured::exact(0.0)), None);
        assert_eq!(late.minus(known), Some(Measured { value: 9.0, bound: Bound::AtLeast }));
    }

    #[test]
    fn what_is_no_value_is_an_error_that_says_what_would_be_right() {
        let error: Box<dyn std::error::Error> = Box::new(Dimension::Rtts.read("x RTT").unwrap_err());
        assert_eq!(error.to_string(), "\"x RTT\" is not what this measure gives; it looks like \"5 RTT\"");
        let error: Box<dyn std::error::Error> = Box::new("mode".parse::<crate::Statistic>().unwrap_err());
        assert!(error.to_string().starts_with("\"mode\" is not a statistic; there are \"mean\""), "{error}");
    }

    #[test]
    fn numbers_show_three_digits_in_the_unit_of_their_size() {
        assert_eq!(Dimension::Time.show(0.000_321_9), "0.322 ms");
        assert_eq!(Dimension::Time.show(15.04), "15 s");
        assert_eq!(Dimension::Rate.show(48_260_000.0), "48.3 Mbit/s");
        assert_eq!(Dimension::Share.show(0.954), "95.4 %");
        assert_eq!(Dimension::Plain.show(0.0), "0");
        assert_eq!(Dimension::Packets.show(1234.4), "1234 packets");
    }
}
