//! Offered load of random transfers: from a share of the capacity to the mean time between
//! arrivals.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use flowstart_units::{Rate, Span};

use super::{SizeSpec, SpecError};

/// A share of the capacity, above 0 and at most ten times the whole: more than it carries is a load
/// too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load(f64);

/// The largest share.
const MOST: f64 = 10.0;
const EXAMPLES: &str = "a share of the capacity such as \"50 %\"";

impl FromStr for Load {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim_end().parse().map(|percent: f64| percent / 100.0),
            None => text.parse(),
        };
        match share {
            Ok(0.0) => Err(SpecError::new("a load of 0 brings no arrivals; leave them out")),
            Ok(share) if share > 0.0 && share <= MOST => Ok(Self(share)),
            _ => Err(SpecError::new(format!(
                "\"{text}\" is no load; it is a share of the capacity, above 0 and at most {} %, such as \"50 %\" or 0.5",
                MOST * 100.0
            ))),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Load {
    /// Mean time between arrivals of transfers of these `sizes` on a link of this `capacity`.
    pub(super) fn mean_gap(self, sizes: &SizeSpec, capacity: Rate) -> Span {
        let seconds = sizes.mean_bytes() * 8.0 / (self.0 * capacity.as_bps().max(1) as f64);
        Span::from_secs_f64(seconds)
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::short::text(deserializer, EXAMPLES)
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Load {
    fn schema_name() -> Cow<'static, str> {
        "Load".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": EXAMPLES, "examples": ["50 %"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_load_of_100_kb_on_100_mbit_is_a_transfer_every_16_ms() {
        let load: Load = "50 %".parse().unwrap();
        let gap = load.mean_gap(&SizeSpec::Fixed { size: flowstart_units::Bytes::new(100_000) }, Rate::from_mbps(100));
        assert_eq!(gap, Span::from_millis(16));
        assert_eq!(load.to_string().parse(), Ok(load));
        assert!("0 %".parse::<Load>().is_err());
    }

    #[test]
    fn more_than_the_capacity_is_a_load_and_nonsense_is_told_what_would_be() {
        let gap = |text: &str| {
            let sizes = SizeSpec::Fixed { size: flowstart_units::Bytes::new(100_000) };
            text.parse::<Load>().map(|load| load.mean_gap(&sizes, Rate::from_mbps(100)))
        };
        assert_eq!((gap("200 %"), gap("2.0")), (Ok(Span::from_millis(4)), Ok(Span::from_millis(4))));
        assert_eq!(gap("1000%"), Ok(Span::from_micros(800)));
        for text in ["1001 %", "-1", "nan", "inf", "much", "%", ""] {
            let message = gap(text).unwrap_err().to_string();
            assert!(message.contains("at most 1000 %, such as \"50 %\""), "{message}");
        }
    }
}
