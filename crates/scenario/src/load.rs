//! Offered load of random transfers: from a share of the capacity to the mean time between arrivals.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use flowstart_units::{Bytes, Rate, Span, parse_fraction};

use super::SizeSpec;

/// A share of the capacity, above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load(f64);

const EXAMPLES: &str = "a share of the capacity such as \"50 %\"";

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = parse_fraction(text).map_err(|error| error.to_string())?;
        if share > 0.0 { Ok(Self(share)) } else { Err("a load of 0 brings no arrivals; leave them out".to_owned()) }
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
        let seconds = mean_bytes(sizes) * 8.0 / (self.0 * capacity.as_bps().max(1) as f64);
        Span::from_secs_f64(seconds)
    }
}

/// The mean of a distribution of sizes in bytes. Powers come from `libm`, so that every machine has the same gaps.
fn mean_bytes(sizes: &SizeSpec) -> f64 {
    let float = |bytes: Bytes| bytes.get() as f64;
    // The integral of x^-shape.
    let integral = |shape: f64, from: f64, to: f64| {
        if shape == 1.0 {
            libm::log(to / from)
        } else {
            (libm::pow(to, 1.0 - shape) - libm::pow(from, 1.0 - shape)) / (1.0 - shape)
        }
    };
    match *sizes {
        SizeSpec::Fixed { size } => float(size),
        SizeSpec::Pareto { shape, scale, min, max } => {
            // E = min + integral of P(X > x) from min to max; P(X > x) = (scale/x)^shape above the scale and 1 below.
            let (scale, min, max) = (float(scale), float(min), float(max));
            let certain = (scale.min(max) - min).max(0.0);
            let from = scale.max(min).min(max);
            min + certain + libm::pow(scale, shape) * integral(shape, from, max)
        }
        SizeSpec::TruncatedPareto { shape, min, max } => {
            let (min, max) = (float(min), float(max));
            if min >= max {
                return min;
            }
            let scale = libm::pow(min, shape);
            shape * scale * integral(shape, min, max) / (1.0 - libm::pow(min / max, shape))
        }
        SizeSpec::LogNormal { median, sigma, min, max } => {
            let (median, min, max) = (float(median), float(min), float(max));
            if sigma == 0.0 {
                return median.clamp(min, max.max(min));
            }
            let normal = |z: f64| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            let (low, high) = (libm::log(min / median) / sigma, libm::log(max / median) / sigma);
            let middle = median * libm::exp(sigma * sigma / 2.0) * (normal(high - sigma) - normal(low - sigma));
            min * normal(low) + middle + max * (1.0 - normal(high))
        }
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::spec::text(deserializer, EXAMPLES)
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

    fn bytes(n: u64) -> Bytes {
        Bytes::new(n)
    }

    #[test]
    fn half_a_load_of_100_kb_on_100_mbit_is_a_transfer_every_16_ms() {
        let load: Load = "50 %".parse().unwrap();
        let gap = load.mean_gap(&SizeSpec::Fixed { size: bytes(100_000) }, Rate::from_mbps(100));
        assert_eq!(gap, Span::from_millis(16));
        assert_eq!(load.to_string().parse(), Ok(load));
        assert!("0 %".parse::<Load>().is_err());
    }

    #[test]
    fn means_of_the_distributions_are_those_of_the_closed_forms() {
        let (min, max) = (bytes(1_000), bytes(5_000_000));
        let near = |sizes: SizeSpec, expected: f64| {
            let mean = mean_bytes(&sizes);
            assert!((mean / expected - 1.0).abs() < 1e-3, "{sizes:?}: {mean}");
        };
        near(SizeSpec::Pareto { shape: 0.5, scale: bytes(900), min, max }, 133_267.0);
        // sqrt(min max) for shape 1/2.
        near(SizeSpec::TruncatedPareto { shape: 0.5, min, max }, 70_711.0);
        // min ln(max/min) / (1 - min/max) for shape 1.
        near(SizeSpec::TruncatedPareto { shape: 1.0, min, max }, 8518.9);
        near(
            SizeSpec::Pareto { shape: 2.0, scale: bytes(1_000), min: bytes(1), max: Bytes::new(u64::MAX / 2) },
            2000.0,
        );
        near(
            SizeSpec::LogNormal { median: bytes(10_000), sigma: 1.0, min: bytes(1), max: Bytes::new(1 << 50) },
            16_487.2,
        );
        near(SizeSpec::LogNormal { median: bytes(10_000), sigma: 0.0, min: bytes(1), max }, 10_000.0);
    }
}
