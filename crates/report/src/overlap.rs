//! Curves that lie upon each other: told apart by dashes through which the ones below are seen.

use crate::axis::Fitted;
use crate::figure::{Figure, Shape};

/// At so many places of the horizontal axis curves are compared.
const PLACES: usize = 96;
/// Curves closer than this share of the plot's height look like one.
const CLOSE: f64 = 0.006;
/// Curves that look like one on more than this share of the places are told apart.
const SHARE: f64 = 0.5;
/// Length of a dash in pixels.
const DASH: usize = 7;

/// The dash pattern of every series, empty for none. Of curves upon each other the first is solid
/// and every further one a dash per period.
pub(crate) fn dashes(figure: &Figure, x: &Fitted, y: &Fitted) -> Vec<String> {
    let curves: Vec<Option<Vec<Option<f64>>>> = figure.series.iter().map(|s| sampled(&s.shape, x, y)).collect();
    // For every curve the first one that it lies upon.
    let mut below: Vec<usize> = (0..curves.len()).collect();
    for (index, curve) in curves.iter().enumerate() {
        let Some(curve) = curve else { continue };
        let upon = |other: &usize| curves[*other].as_ref().is_some_and(|other| alike(curve, other));
        if let Some(other) = (0..index).find(upon) {
            below[index] = below[other];
        }
    }
    (0..curves.len())
        .map(|index| {
            let members: Vec<usize> = (0..curves.len()).filter(|other| below[*other] == below[index]).collect();
            let place = members.iter().position(|member| *member == index).unwrap_or(0);
            if place == 0 {
                return String::new();
            }
            let (before, rest) = (DASH * (place - 1), DASH * (members.len() - place));
            if before == 0 { format!("{DASH} {rest}") } else { format!("0 {before} {DASH} {rest}") }
        })
        .collect()
}

/// Heights of a curve, as shares of the plot, at places from the left to the right.
fn sampled(shape: &Shape, x: &Fitted, y: &Fitted) -> Option<Vec<Option<f64>>> {
    let (Shape::Line(points) | Shape::Steps(points)) = shape else { return None };
    let steps = matches!(shape, Shape::Steps(_));
    let mut next = 0;
    let heights = (0..PLACES)
        .map(|place| {
            let share = (place as f64 + 0.5) / PLACES as f64;
            while points.get(next).is_some_and(|point| x.place(point[0]) <= share) {
                next += 1;
            }
            let (left, right) = (points.get(next.checked_sub(1)?)?, points.get(next)?);
            let (from, to) = (x.place(left[0]), x.place(right[0]));
            let part = if steps || to <= from { 0.0 } else { (share - from) / (to - from) };
            let height = y.place(left[1]) + part * (y.place(right[1]) - y.place(left[1]));
            height.is_finite().then_some(height)
        })
        .collect();
    Some(heights)
}

fn alike(a: &[Option<f64>], b: &[Option<f64>]) -> bool {
    let (mut close, mut both) = (0, 0);
    for (a, b) in a.iter().zip(b) {
        if let (Some(a), Some(b)) = (a, b) {
            both += 1;
            close += usize::from((a - b).abs() <= CLOSE);
        }
    }
    both > 0 && close as f64 > SHARE * f64::from(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::Color;
    use crate::figure::{Axis, Series};

    fn figure(curves: &[&[[f64; 2]]]) -> Vec<String> {
        let mut figure = Figure::new("", Axis::new("", ""), Axis::new("", ""));
        for (place, points) in curves.iter().enumerate() {
            figure.series.push(Series::line(place.to_string(), Color::new(place), points.to_vec()));
        }
        let axis = Axis::new("", "").range(0.0, 10.0);
        let fitted = Fitted::new(&axis, std::iter::empty(), true);
        dashes(&figure, &fitted, &fitted)
    }

    #[test]
    fn curves_upon_each_other_show_through_each_others_dashes() {
        let line: &[[f64; 2]] = &[[0.0, 0.0], [10.0, 10.0]];
        let other: &[[f64; 2]] = &[[0.0, 1.0], [10.0, 9.0]];
        assert_eq!(figure(&[line, other, line]), ["", "", "7 7"]);
        assert_eq!(figure(&[line, line, line]), ["", "7 14", "0 7 7 7"]);
        assert_eq!(figure(&[line, other]), ["", ""]);
    }

    #[test]
    fn a_curve_that_leaves_the_other_late_is_told_apart_and_one_that_leaves_early_is_not() {
        let line: &[[f64; 2]] = &[[0.0, 0.0], [10.0, 10.0]];
        let late: &[[f64; 2]] = &[[0.0, 0.0], [8.0, 8.0], [10.0, 1.0]];
        let early: &[[f64; 2]] = &[[0.0, 0.0], [2.0, 2.0], [10.0, 1.0]];
        assert_eq!(figure(&[line, late]), ["", "7 7"]);
        assert_eq!(figure(&[line, early]), ["", ""]);
    }
}
