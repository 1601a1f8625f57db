//! One number for many.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::quantity::{Bound, Measured, ReadError};

/// A number for many: "mean", "median", "min", "max" or a percentile such as "p99" or "p99.9"
/// (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Quantile, 0 ..= 1: the smallest value that is at least as large as this share of all.
    Quantile(f64),
}

const STATISTICS: &str = "\"mean\", \"median\", \"min\", \"max\" or a percentile such as \"p99\"";

impl FromStr for Statistic {
    type Err = ReadError;

    fn from_str(text: &str) -> Result<Self, ReadError> {
        let percentile = |digits: &str| digits.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        match text.trim() {
            "mean" => Ok(Self::Mean),
            "median" => Ok(Self::Quantile(0.5)),
            "min" => Ok(Self::Quantile(0.0)),
            "max" => Ok(Self::Quantile(1.0)),
            other => match other.strip_prefix(['p', 'P']).and_then(percentile) {
                Some(p) => Ok(Self::Quantile(p / 100.0)),
                None => Err(ReadError::new(format!("\"{text}\" is not a statistic; there are {STATISTICS}"))),
            },
        }
    }
}

impl Statistic {
    /// Of these values; `None` without any. Sorts them.
    #[must_use]
    pub fn of(self, values: &mut [f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        match self {
            Self::Mean => Some(values.iter().sum::<f64>() / values.len() as f64),
            Self::Quantile(p) => {
                values.sort_by(f64::total_cmp);
                let rank = (p * values.len() as f64).ceil() as usize;
                values.get(rank.max(1) - 1).copied()
            }
        }
    }

    /// Of these values, as what is measured.
    pub(crate) fn measured(self, values: impl Iterator<Item = f64>) -> Option<Measured> {
        self.of(&mut values.collect::<Vec<_>>()).map(Measured::exact)
    }

    /// Of values some of which may be known from one side only. So is the mean then; a quantile is,
    /// if it would be another one were they as far away as they can be. `None` without values, or
    /// if it is known from neither side.
    #[must_use]
    pub fn of_measured(self, values: &[Measured]) -> Option<Measured> {
        let known = |beyond: Option<Bound>| {
            let end = |one: &Measured| match one.bound {
                Bound::AtLeast if beyond == Some(Bound::AtLeast) => f64::INFINITY,
                Bound::AtMost if beyond == Some(Bound::AtMost) => f64::NEG_INFINITY,
                _ => one.value,
            };
            self.of(&mut values.iter().map(end).collect::<Vec<_>>())
        };
        let value = known(None)?;
        let moves = |bound| known(Some(bound)) != Some(value);
        match (moves(Bound::AtLeast), moves(Bound::AtMost)) {
            (false, false) => Some(Measured::exact(value)),
            (true, false) => Some(Measured { value, bound: Bound::AtLeast }),
            (false, true) => Some(Measured { value, bound: Bound::AtMost }),
            (true, true) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Statistic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Statistic {
    fn schema_name() -> Cow<'static, str> {
        "Statistic".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": STATISTICS, "examples": ["p99"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_values_known_from_one_side_a_statistic_is_known_from_it_unless_it_is_beside_them() {
        let exact = Measured::exact;
        let at_least = |value| Measured { value, bound: Bound::AtLeast };
        let at_most = |value| Measured { value, bound: Bound::AtMost };
        let late = [exact(1.0), exact(2.0), at_least(3.0)];
        assert_eq!(Statistic::Mean.of_measured(&late), Some(at_least(2.0)));
        assert_eq!(Statistic::Quantile(1.0).of_measured(&late), Some(at_least(3.0)));
        assert_eq!(Statistic::Quantile(0.5).of_measured(&late), Some(exact(2.0)));
        assert_eq!(Statistic::Quantile(0.0).of_measured(&late), Some(exact(1.0)));
        // Who is known to take half a second may take longer than everybody.
        let soon = [exact(1.0), exact(2.0), at_least(0.5)];
        assert_eq!(Statistic::Quantile(0.0).of_measured(&soon), Some(at_least(0.5)));
        assert_eq!(Statistic::Quantile(0.5).of_measured(&soon), Some(at_least(1.0)));
        assert_eq!(Statistic::Mean.of_measured(&[exact(1.0), at_most(3.0)]), Some(at_most(2.0)));
        assert_eq!(Statistic::Mean.of_measured(&[at_least(1.0), at_most(3.0)]), None);
        assert_eq!(Statistic::Mean.of_measured(&[exact(1.0), exact(3.0)]), Some(exact(2.0)));
        assert_eq!(Statistic::Mean.of_measured(&[]), None);
    }
}
