//! The normal distribution, from the C library's functions in portable code, so that results are
//! the same on every machine.

/// P[Z <= z] of a standard normal Z.
pub(crate) fn cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// P[|Z| >= |z|].
pub(crate) fn two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() / std::f64::consts::SQRT_2)
}
