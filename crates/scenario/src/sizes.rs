//! Distributions of transfer sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_units::Bytes;

/// A distribution of transfer sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizeSpec {
    /// Always the same.
    Fixed {
        /// Size.
        size: Bytes,
    },
    /// Pareto with this shape and scale, then clamped to min and max.
    Pareto {
        /// Shape (alpha).
        shape: f64,
        /// Smallest value before clamping.
        scale: Bytes,
        /// Smaller draws become this.
        min: Bytes,
        /// Larger draws become this.
        max: Bytes,
    },
    /// Pareto truncated to min and max.
    TruncatedPareto {
        /// Shape (alpha).
        shape: f64,
        /// Smallest value.
        min: Bytes,
        /// Largest value.
        max: Bytes,
    },
    /// Log-normal, clamped to min and max.
    LogNormal {
        /// Median.
        median: Bytes,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Smaller draws become this.
        min: Bytes,
        /// Larger draws become this.
        max: Bytes,
    },
}

impl SizeSpec {
    /// The mean in bytes. Powers come from `libm`, so that every machine has the same gaps.
    pub(super) fn mean_bytes(&self) -> f64 {
        let float = |bytes: Bytes| bytes.get() as f64;
        // The integral of x^-shape.
        let integral = |shape: f64, from: f64, to: f64| {
            if shape == 1.0 {
                libm::log(to / from)
            } else {
                (libm::pow(to, 1.0 - shape) - libm::pow(from, 1.0 - shape)) / (1.0 - shape)
            }
        };
        match *self {
            SizeSpec::Fixed { size } => float(size),
            SizeSpec::Pareto { shape, scale, min, max } => {
                // E = min + integral of P(X > x) from min to max; P(X > x) = (scale/x)^shape above
                // the scale and 1 below.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(n: u64) -> Bytes {
        Bytes::new(n)
    }

    #[test]
    fn means_of_the_distributions_are_those_of_the_closed_forms() {
        let (min, max) = (bytes(1_000), bytes(5_000_000));
        let near = |sizes: SizeSpec, expected: f64| {
            let mean = sizes.mean_bytes();
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
