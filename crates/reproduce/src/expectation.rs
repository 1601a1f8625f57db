//! What is expected of measured quantities.

use flowstart_measure::{Bound, Dimension, Measured};
use flowstart_units::parse_fraction;

/// One end of what is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
struct End {
    value: f64,
    /// The end itself counts too.
    included: bool,
}

/// What a value should be: a range with at least one end.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    low: Option<End>,
    high: Option<End>,
}

const FORMS: &str =
    "an expectation looks like \"<= 3 ms\", \"> 0.8\", \"= 0\", \"5 .. 8 RTT\" or \"15 s ± 20 %\" (also +-)";

impl Expectation {
    /// Reads an expectation of a measure of this dimension.
    ///
    /// # Errors
    /// What is wrong and what would be right.
    pub fn parse(text: &str, dimension: Dimension) -> Result<Self, String> {
        let text = text.trim();
        let end = |text: &str, included| dimension.read(text).map(|value| Some(End { value, included }));
        if let Some(rest) = text.strip_prefix("<=").or_else(|| text.strip_prefix('≤')) {
            return Ok(Self { low: None, high: end(rest, true)? });
        }
        if let Some(rest) = text.strip_prefix(">=").or_else(|| text.strip_prefix('≥')) {
            return Ok(Self { low: end(rest, true)?, high: None });
        }
        if let Some(rest) = text.strip_prefix('<') {
            return Ok(Self { low: None, high: end(rest, false)? });
        }
        if let Some(rest) = text.strip_prefix('>') {
            return Ok(Self { low: end(rest, false)?, high: None });
        }
        if let Some(rest) = text.strip_prefix('=') {
            let value = end(rest, true)?;
            return Ok(Self { low: value, high: value });
        }
        if let Some((low, high)) = text.split_once("..") {
            let unit: String = high.trim().chars().skip_while(|c| c.is_ascii_digit() || ".- ".contains(*c)).collect();
            // "5 .. 8 RTT": the unit stands once.
            let bare = low.trim().parse::<f64>().is_ok();
            let low = if bare { end(&format!("{} {unit}", low.trim()), true)? } else { end(low, true)? };
            let range = Self { low, high: end(high, true)? };
            return match (range.low, range.high) {
                (Some(a), Some(b)) if a.value > b.value => Err(format!("\"{text}\" ends below where it begins")),
                _ => Ok(range),
            };
        }
        if let Some((value, tolerance)) = text.split_once('±').or_else(|| text.split_once("+-")) {
            let value = dimension.read(value)?;
            let tolerance = match tolerance.trim().ends_with('%') && dimension != Dimension::Share {
                true => value.abs() * parse_fraction(tolerance).map_err(|error| error.to_string())?,
                false => dimension.read(tolerance)?,
            };
            let end = |value| Some(End { value, included: true });
            return Ok(Self { low: end(value - tolerance), high: end(value + tolerance) });
        }
        Err(format!("\"{text}\": {FORMS}"))
    }

    /// Whether the value is as expected; `None` if too little is known of it.
    #[must_use]
    pub fn holds(&self, measured: Measured) -> Option<bool> {
        let value = measured.value;
        let above = self.low.map(|end| if end.included { value >= end.value } else { value > end.value });
        let below = self.high.map(|end| if end.included { value <= end.value } else { value < end.value });
        // What is known from one side decides only where going further to that side would change
        // nothing.
        let above = match (above, measured.bound) {
            (None, _) => Some(true),
            (Some(true), Bound::AtMost) | (Some(false), Bound::AtLeast) => None,
            (above, _) => above,
        };
        let below = match (below, measured.bound) {
            (None, _) => Some(true),
            (Some(true), Bound::AtLeast) | (Some(false), Bound::AtMost) => None,
            (below, _) => below,
        };
        match (above, below) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// Whether all values between two are as expected, or none; `None` for some, or if too little
    /// is known of them.
    #[must_use]
    pub fn of_interval(&self, low: Measured, high: Measured) -> Option<bool> {
        match (self.holds(low)?, self.holds(high)?) {
            (true, true) => Some(true),
            // Below the one end and above the other.
            (false, false) if self.miss(low.value) * self.miss(high.value) < 0.0 => None,
            (false, false) => Some(false),
            _ => None,
        }
    }

    /// How far a value lies outside: from the nearer end, positive above, negative below; 0 inside.
    #[must_use]
    pub fn miss(&self, value: f64) -> f64 {
        match (self.low, self.high) {
            (Some(low), _) if value < low.value => value - low.value,
            (_, Some(high)) if value > high.value => value - high.value,
            _ => 0.0,
        }
    }

    /// How far a value is from the nearest end, inside or outside; `None` without an end.
    #[must_use]
    pub fn margin(&self, value: f64) -> Option<f64> {
        let ends = self.low.iter().chain(&self.high);
        ends.map(|end| (value - end.value).abs()).reduce(f64::min)
    }

    /// The end that a value outside is nearest to.
    #[must_use]
    pub fn nearest(&self, value: f64) -> f64 {
        value - self.miss(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, dimension: Dimension, value: f64) -> bool {
        Expectation::parse(text, dimension).unwrap().holds(Measured::exact(value)).unwrap()
    }

    #[test]
    fn expectations_read_in_every_form() {
        use Dimension::{Packets, Plain, Rate, Rtts, Share, Time};
        assert!(holds("<= 3 ms", Time, 0.003) && !holds("< 3 ms", Time, 0.003));
        assert!(holds(">= 50 Mbit/s", Rate, 50e6) && !holds("> 50 Mbit/s", Rate, 50e6));
        assert!(holds("= 0", Plain, 0.0) && !holds("= 0", Plain, 1.0));
        assert!(holds("5 .. 8 RTT", Rtts, 5.0) && holds("5 .. 8 RTT", Rtts, 8.0) && !holds("5 .. 8 RTT", Rtts, 8.1));
        assert!(holds("0.8 .. 1.25", Plain, 1.0) && !holds("0.8 .. 1.25", Plain, 0.7));
        assert!(holds("10 ms .. 1 s", Time, 0.5));
        assert!(holds("15 s ± 20 %", Time, 17.9) && !holds("15 s +- 20 %", Time, 18.1));
        assert!(holds("90 % ± 5 %", Share, 0.95) && !holds("90 % ± 5 %", Share, 0.96));
        assert!(holds("100 packets ± 3 packets", Packets, 98.0));
        assert!(holds("> -1 ms", Time, -0.0005) && !holds("> -1 ms", Time, -0.002));
    }

    #[test]
    fn a_wrong_unit_or_form_is_refused_with_what_would_be_right() {
        let error = |text, dimension| Expectation::parse(text, dimension).unwrap_err();
        assert!(error("about 3 ms", Dimension::Time).contains("an expectation looks like"));
        assert!(error("<= 3 Mbit/s", Dimension::Time).contains("is not a unit of time"));
        assert!(error("<= 3", Dimension::Time).contains("did you mean"));
        assert!(error("<= 3 ms", Dimension::Plain).contains("it looks like \"0.8\""));
        assert!(error("8 .. 5 RTT", Dimension::Rtts).contains("ends below"));
    }

    #[test]
    fn what_is_known_from_one_side_decides_only_what_it_can() {
        let late = Measured { value: 12.0, bound: Bound::AtLeast };
        let check = |text: &str| Expectation::parse(text, Dimension::Time).unwrap().holds(late);
        assert_eq!(check(">= 10 s"), Some(true));
        assert_eq!(check("<= 10 s"), Some(false));
        assert_eq!(check(">= 20 s"), None);
        assert_eq!(check("<= 20 s"), None);
        assert_eq!(late.show(Dimension::Time), "> 12 s");
    }

    #[test]
    fn an_interval_decides_only_if_all_of_it_lies_on_one_side() {
        let range = Expectation::parse("5 .. 8 RTT", Dimension::Rtts).unwrap();
        let of = |low, high| range.of_interval(Measured::exact(low), Measured::exact(high));
        assert_eq!(of(5.0, 8.0), Some(true));
        assert_eq!((of(1.0, 4.9), of(8.1, 9.0)), (Some(false), Some(false)));
        assert_eq!((of(4.0, 6.0), of(7.0, 9.0), of(4.0, 9.0)), (None, None, None));
    }

    #[test]
    fn a_miss_is_measured_from_the_nearer_end() {
        let range = Expectation::parse("5 .. 8 RTT", Dimension::Rtts).unwrap();
        assert_eq!((range.miss(4.0), range.miss(6.0), range.miss(10.0)), (-1.0, 0.0, 2.0));
        assert_eq!(range.nearest(10.0), 8.0);
        assert_eq!((range.margin(4.0), range.margin(6.0), range.margin(7.5)), (Some(1.0), Some(1.0), Some(0.5)));
    }
}
