//! From data to an axis: its ends, its ticks, their labels, and where a value lies.

use crate::figure::{Axis, Scale};

/// Values beyond this are treated as not finite, so that differences of two values never overflow.
const LARGEST: f64 = 1e300;

/// The same for logarithmic axes, on both sides of 1, so that neither does a ratio.
const LARGEST_LOG: f64 = 1e100;

/// A span below this share of its values is no span: a double cannot resolve ticks within it.
const LEAST_SPAN: f64 = 1e-11;

/// Room left above (and below, when not starting at zero) the data, as a share of the span.
const MARGIN: f64 = 0.05;

/// From this power of ten on, and below the second one, a factor is taken out of the labels into
/// the title.
const FACTOR_FROM: i32 = 6;
const FACTOR_BELOW: i32 = -3;

/// Decades from which on a logarithmic axis has labels at powers of ten only.
const MANY_DECADES: f64 = 3.0;

/// Whether a value can be drawn on this kind of axis.
pub(crate) fn drawable(scale: Scale, value: f64) -> bool {
    match scale {
        Scale::Linear => value.abs() <= LARGEST,
        Scale::Log => (1.0 / LARGEST_LOG..=LARGEST_LOG).contains(&value),
    }
}

/// An axis with ends.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    scale: Scale,
    min: f64,
    max: f64,
}

/// A labelled place of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value it stands for.
    pub(crate) value: f64,
    /// What is written there; empty for a minor tick.
    pub(crate) label: String,
}

/// All ticks, and the power of ten taken out of their labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    /// From low to high.
    pub(crate) ticks: Vec<Tick>,
    /// Labels are to be multiplied by ten to this power.
    pub(crate) factor: i32,
}

impl Fitted {
    /// Ends that hold all drawable `values`; `tight` leaves no margin (time axes).
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, tight: bool) -> Self {
        let scale = axis.scale;
        let (low, high) = values
            .filter(|&value| drawable(scale, value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (fixed_min, fixed_max) =
            (axis.min.filter(|&value| drawable(scale, value)), axis.max.filter(|&value| drawable(scale, value)));
        let (low, high) = if low <= high { (low, high) } else { empty(scale, fixed_min, fixed_max) };
        let (mut min, mut max) = (fixed_min.unwrap_or(low), fixed_max.unwrap_or(high));
        if min > max {
            // Ends that exclude all data or contradict each other.
            (min, max) = match (fixed_min, fixed_max) {
                (Some(min), None) => (min, min),
                (None, Some(max)) => (max, max),
                _ => (low, high),
            };
        }
        match scale {
            Scale::Linear => {
                let zero = axis.from_zero && fixed_min.is_none() && min >= 0.0;
                if zero {
                    min = 0.0;
                }
                let constant = max - min <= LEAST_SPAN * min.abs().max(max.abs());
                if constant {
                    let room = if max == 0.0 { 1.0 } else { 0.1 * max.abs() };
                    min -= if fixed_min.is_some() || zero { 0.0 } else { room };
                    max += room;
                } else {
                    let margin = if tight { 0.0 } else { MARGIN * (max - min) };
                    min -= if fixed_min.is_some() || zero { 0.0 } else { margin };
                    max += if fixed_max.is_some() { 0.0 } else { margin };
                }
            }
            Scale::Log => {
                if max / min < 1.0 + 1e-9 {
                    (min, max) = (min / 2.0, max * 2.0);
                } else if !tight {
                    let margin = (max / min).powf(MARGIN).max(1.0);
                    min /= if fixed_min.is_some() { 1.0 } else { margin };
                    max *= if fixed_max.is_some() { 1.0 } else { margin };
                }
            }
        }
        Self { scale, min, max }
    }

    /// The lower end.
    pub(crate) fn min(&self) -> f64 {
        self.min
    }

    /// The upper end.
    pub(crate) fn max(&self) -> f64 {
        self.max
    }

    /// How far along the axis a value lies: 0 at the lower, 1 at the upper end; beyond them outside
    /// of that.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.min) / (self.max - self.min),
            Scale::Log => (value / self.min).ln() / (self.max / self.min).ln(),
        }
    }

    /// Ticks for at most about `most` labels.
    pub(crate) fn ticks(&self, most: usize) -> Ticks {
        let most = most.clamp(2, 50);
        match self.scale {
            Scale::Linear => self.linear_ticks(most),
            Scale::Log => self.log_ticks(most),
        }
    }

    fn linear_ticks(&self, most: usize) -> Ticks {
        let span = self.max - self.min;
        #[expect(clippy::cast_precision_loss, reason = "at most 50")]
        let step = nice_step(span / most as f64);
        let magnitude = exponent(self.min.abs().max(self.max.abs()));
        let factor = if (FACTOR_BELOW..FACTOR_FROM).contains(&magnitude) { 0 } else { magnitude.div_euclid(3) * 3 };
        let digits = decimals(step, factor);
        let (first, last) = ((self.min / step - 1e-6).ceil(), (self.max / step + 1e-6).floor());
        let mut ticks = Vec::new();
        let mut k = first;
        while k <= last && ticks.len() < 100 {
            let value = k * step;
            let scaled = value / 10f64.powi(factor);
            ticks.push(Tick { value, label: minus(&crate::text::number(scaled, digits).unwrap_or_default()) });
            k += 1.0;
        }
        Ticks { ticks, factor }
    }

    fn log_ticks(&self, most: usize) -> Ticks {
        let decades = (self.max / self.min).log10();
        if decades < 0.5 {
            // Less than a factor of three: powers of ten would say nothing.
            return Self { scale: Scale::Linear, ..self.clone() }.linear_ticks(most);
        }
        let (first, last) = (exponent(self.min), exponent(self.max));
        #[expect(clippy::cast_precision_loss, reason = "at most 50")]
        let fine = decades <= MANY_DECADES && most as f64 >= 3.0 * decades;
        let labelled: &[i32] = if fine { &[1, 2, 5] } else { &[1] };
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "at most 600 decades")]
        let every = ((decades / most as f64).ceil() as i32).max(1);
        let mut ticks = Vec::new();
        for power in first..=last {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(power);
                if value < self.min * (1.0 - 1e-9) || value > self.max * (1.0 + 1e-9) {
                    continue;
                }
                let label = labelled.contains(&digit) && power.rem_euclid(every) == 0;
                let minor = every == 1 && most >= 4;
                if label || minor {
                    ticks.push(Tick { value, label: if label { log_label(digit, power) } else { String::new() } });
                }
            }
        }
        Ticks { ticks, factor: 0 }
    }
}

/// Ends for an axis without data.
fn empty(scale: Scale, min: Option<f64>, max: Option<f64>) -> (f64, f64) {
    match (scale, min, max) {
        (_, Some(min), Some(max)) if min < max => (min, max),
        (Scale::Linear, Some(min), _) => (min, min + 1.0),
        (Scale::Linear, None, Some(max)) => ((max - 1.0).min(0.0), max),
        (Scale::Linear, None, None) => (0.0, 1.0),
        (Scale::Log, Some(min), _) => (min, min * 10.0),
        (Scale::Log, None, Some(max)) => (max / 10.0, max),
        (Scale::Log, None, None) => (1.0, 10.0),
    }
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10f64.powi(exponent(step));
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|nice| nice * power).find(|&nice| nice >= step * 0.999).unwrap_or(step)
}

/// The power of ten at or below a positive value (0 for zero).
fn exponent(value: f64) -> i32 {
    if !(value.is_finite() && value > 0.0) {
        return 0;
    }
    // The formatter rounds correctly where log10 may be off by one at powers of ten.
    format!("{value:e}").rsplit('e').next().and_then(|power| power.parse().ok()).unwrap_or(0)
}

/// Digits after the point that labels with this step need.
fn decimals(step: f64, factor: i32) -> u8 {
    let step = step / 10f64.powi(factor);
    (0..16u8)
        .find(|&digits| {
            let scaled = step * 10f64.powi(i32::from(digits));
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0) && scaled >= 0.999
        })
        .unwrap_or(16)
}

/// A label of a logarithmic axis.
fn log_label(digit: i32, power: i32) -> String {
    match power {
        0..=3 => format!("{digit}{}", "0".repeat(usize::try_from(power).unwrap_or(0))),
        -3..=-1 => format!("0.{}{digit}", "0".repeat(usize::try_from(-power - 1).unwrap_or(0))),
        _ if digit == 1 => format!("10{}", superscript(power)),
        _ => format!("{digit}·10{}", superscript(power)),
    }
}

/// A power in raised digits.
pub(crate) fn superscript(power: i32) -> String {
    power
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            c => c.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(c),
        })
        .collect()
}

/// The typographic minus sign.
fn minus(label: &str) -> String {
    label.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(axis: &Axis, values: &[f64], most: usize) -> Vec<String> {
        let fitted = Fitted::new(axis, values.iter().copied(), true);
        fitted.ticks(most).ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers_with_the_digits_they_need() {
        let axis = Axis::new("t", "s");
        assert_eq!(labels(&axis, &[0.3, 2.0], 5), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(labels(&axis, &[0.0, 100.0], 5), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&axis.clone().fitted(), &[-1.0, 1.0], 5), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&axis, &[0.0, 1.0], 4), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
    }

    #[test]
    fn large_and_small_numbers_have_their_power_of_ten_taken_out() {
        let fitted = Fitted::new(&Axis::new("b", "byte"), [0.0, 25e6].into_iter(), true);
        let ticks = fitted.ticks(5);
        assert_eq!(ticks.factor, 6);
        assert_eq!(
            ticks.ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>(),
            ["0", "5", "10", "15", "20", "25"]
        );
        assert_eq!(Fitted::new(&Axis::new("b", ""), [0.0, 4e-5].into_iter(), true).ticks(5).factor, -6);
    }

    #[test]
    fn a_logarithmic_axis_is_labelled_at_powers_of_ten_or_finer() {
        let axis = Axis::new("size", "byte").log();
        let shown = |values: &[f64], most| -> Vec<String> {
            labels(&axis, values, most).into_iter().filter(|label| !label.is_empty()).collect()
        };
        assert_eq!(shown(&[1.0, 1e6], 8), ["1", "10", "100", "1000", "10⁴", "10⁵", "10⁶"]);
        assert_eq!(shown(&[0.01, 1.0], 12), ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]);
        assert!(shown(&[1e-290, 1e290], 6).len() <= 7);
    }

    #[test]
    fn constant_empty_and_contradicting_input_gives_a_range_with_a_middle() {
        let axis = Axis::new("y", "");
        for (axis, values) in [
            (axis.clone(), vec![]),
            (axis.clone(), vec![0.0; 3]),
            (axis.clone(), vec![7.0; 3]),
            (axis.clone().fitted(), vec![-7.0; 3]),
            (axis.clone(), vec![1e15, 1e15 + 0.125]),
            (axis.clone(), vec![f64::NAN, f64::INFINITY]),
            (axis.clone().range(5.0, 1.0), vec![2.0, 3.0]),
            (axis.clone().range(f64::NAN, 1e308), vec![2.0, 3.0]),
            (axis.clone().range(5.0, 5.0), vec![]),
            (axis.clone().log(), vec![0.0, -1.0]),
            (axis.clone().log(), vec![3.0]),
        ] {
            let fitted = Fitted::new(&axis, values.into_iter(), false);
            assert!(fitted.min() < fitted.max(), "{fitted:?}");
            assert!(fitted.ticks(6).ticks.len() >= 2, "{fitted:?}");
        }
    }

    proptest! {
        #[test]
        fn any_data_gives_ends_around_it_and_a_readable_number_of_ticks(
            values in proptest::collection::vec(any::<f64>(), 0..5),
            log: bool, from_zero: bool, tight: bool,
            min in proptest::option::of(any::<f64>()), max in proptest::option::of(any::<f64>()),
            most in 0usize..30,
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let axis = Axis { scale, from_zero, min, max, ..Axis::default() };
            let fitted = Fitted::new(&axis, values.iter().copied(), tight);
            prop_assert!(fitted.min() < fitted.max(), "{:?}", fitted);
            prop_assert!(fitted.min().is_finite() && fitted.max().is_finite());
            let ticks = fitted.ticks(most).ticks;
            prop_assert!(ticks.iter().filter(|tick| !tick.label.is_empty()).count() <= most.max(2) + 4);
            prop_assert!(ticks.windows(2).all(|pair| pair[0].value < pair[1].value));
            for tick in ticks {
                let place = fitted.place(tick.value);
                prop_assert!((-1e-3..=1.001).contains(&place), "{} at {place} of {fitted:?}", tick.value);
            }
            if min.is_none() && max.is_none() {
                for value in values.into_iter().filter(|value| drawable(scale, *value)) {
                    prop_assert!((-1e-6..=1.000_001).contains(&fitted.place(value)));
                }
            }
        }
    }
}
