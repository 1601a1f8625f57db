//! Student's distribution.

/// The probability that Student's t with `freedom` degrees of freedom (at least 1) is above `t`:
/// Abramowitz and Stegun, "Handbook of mathematical functions", 26.7.3 and 26.7.4.
pub(crate) fn student_above(t: f64, freedom: usize) -> f64 {
    let theta = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = (libm::sin(theta), libm::cos(theta));
    let odd = freedom % 2 == 1;
    // The terms of the sum: each is the one before times cos² and the next fraction.
    let (mut term, mut sum) = if odd { (cosine, if freedom > 1 { cosine } else { 0.0 }) } else { (1.0, 1.0) };
    let first = if odd { 2 } else { 1 };
    for above in (first..freedom.saturating_sub(2)).step_by(2) {
        term *= cosine * cosine * above as f64 / (above + 1) as f64;
        sum += term;
    }
    let within = if odd { (theta + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum };
    ((1.0 - within) / 2.0).clamp(0.0, 1.0)
}

/// The t that is exceeded with probability `above` (more than 0, at most a half) with `freedom`
/// degrees of freedom (at least 1).
pub(crate) fn student_quantile(above: f64, freedom: usize) -> f64 {
    /// That of one degree of freedom at one in a million.
    const LARGEST: f64 = 320_000.0;
    let (mut low, mut high) = (0.0, LARGEST);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if student_above(middle, freedom) > above { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One-sided, from tables of Student's t.
    const TABLE: [(usize, f64, f64); 11] = [
        (1, 1.0, 0.25),
        (1, 6.314, 0.05),
        (2, 2.920, 0.05),
        (3, 2.353, 0.05),
        (4, 7.173, 0.001),
        (5, 5.893, 0.001),
        (7, 4.785, 0.001),
        (8, 4.501, 0.001),
        (8, 1.860, 0.05),
        (19, 2.093, 0.025),
        (30, 3.385, 0.001),
    ];

    #[test]
    fn students_distribution_is_that_of_the_tables() {
        for (freedom, t, p) in TABLE {
            let found = student_above(t, freedom);
            assert!((found / p - 1.0).abs() < 2e-3, "{freedom} {t}: {found}");
            assert!((student_above(-t, freedom) - (1.0 - p)).abs() < 1e-4, "{freedom}");
            let back = student_quantile(p, freedom);
            assert!((back / t - 1.0).abs() < 1e-3, "{freedom} {p}: {back}");
        }
        assert_eq!(student_above(f64::INFINITY, 8), 0.0);
    }
}
