//! Draws from the distributions of traffic, the same bits on every machine (logarithms and powers come from `libm`, not the platform).

use flowstart_random::{Stream, unit};
use flowstart_units::{Bytes, Span};

use crate::{Sizes, Spacing};

/// The next gap of a process with this mean gap.
pub(crate) fn gap(spacing: Spacing, mean: Span, random: &mut Stream) -> Span {
    match spacing {
        Spacing::Constant => mean,
        Spacing::Poisson => mean.mul_f64(-libm::log(unit(random))),
    }
}

/// A transfer size.
pub(crate) fn size(sizes: &Sizes, random: &mut Stream) -> Bytes {
    match *sizes {
        Sizes::Fixed(bytes) => bytes,
        Sizes::Pareto { shape, scale, min, max } => {
            let value = scale.get() as f64 * libm::pow(unit(random), -1.0 / shape);
            clamp(value, min, max)
        }
        Sizes::TruncatedPareto { shape, min, max } => {
            // Inverse of F(x) = (1 - (min/x)^a) / (1 - (min/max)^a).
            let tail = libm::pow(min.get() as f64 / max.get() as f64, shape);
            let upper = 1.0 - (1.0 - unit(random)) * (1.0 - tail);
            clamp(min.get() as f64 * libm::pow(upper, -1.0 / shape), min, max)
        }
        Sizes::LogNormal { median, sigma, min, max } => {
            clamp(median.get() as f64 * libm::exp(sigma * normal(random)), min, max)
        }
    }
}

fn clamp(value: f64, min: Bytes, max: Bytes) -> Bytes {
    // `as` saturates; NaN cannot occur for validated parameters and would become zero.
    Bytes::new((value.round() as u64).clamp(min.get().max(1), max.get().max(min.get()).max(1)))
}

/// A standard normal number (Box and Muller, the cosine branch).
fn normal(random: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(unit(random)));
    radius * libm::cos(std::f64::consts::TAU * unit(random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_random::Purpose;

    fn mean(count: u32, mut draw: impl FnMut() -> f64) -> f64 {
        (0..count).map(|_| draw()).sum::<f64>() / f64::from(count)
    }

    #[test]
    fn poisson_gaps_have_their_mean_and_constant_gaps_are_constant() {
        let mut random = Purpose::Spacing.stream(1, 0, 0);
        let wanted = Span::from_millis(3);
        assert_eq!(gap(Spacing::Constant, wanted, &mut random), wanted);
        let seen = mean(200_000, || gap(Spacing::Poisson, wanted, &mut random).as_millis_f64());
        assert!((seen / 3.0 - 1.0).abs() < 0.01, "{seen}");
    }

    #[test]
    fn the_papers_two_readings_of_pareto_have_the_means_computed_from_their_distributions() {
        // Clamped at 1 kB .. 5 MB with scale 900 B: E = 1000*P(X<1000) + integral + 5e6*P(X>5e6) = 133 kB; truncated on the same
        // interval: min * (max/min)^0.5 = 70.7 kB.
        let (min, max) = (Bytes::new(1_000), Bytes::new(5_000_000));
        let mut random = Purpose::Sizes.stream(1, 0, 0);
        let clamped = Sizes::Pareto { shape: 0.5, scale: Bytes::new(900), min, max };
        let seen = mean(400_000, || size(&clamped, &mut random).get() as f64);
        assert!((seen / 133_000.0 - 1.0).abs() < 0.03, "{seen}");
        let truncated = Sizes::TruncatedPareto { shape: 0.5, min, max };
        let seen = mean(400_000, || size(&truncated, &mut random).get() as f64);
        assert!((seen / 70_700.0 - 1.0).abs() < 0.03, "{seen}");
    }

    #[test]
    fn log_normal_sizes_have_their_median() {
        let mut random = Purpose::Sizes.stream(1, 0, 1);
        let sizes = Sizes::LogNormal { median: Bytes::new(10_000), sigma: 1.0, min: Bytes::new(1), max: Bytes::MAX };
        let below = (0..100_000).filter(|_| size(&sizes, &mut random).get() < 10_000).count();
        assert!((49_000..51_000).contains(&below), "{below}");
    }
}
