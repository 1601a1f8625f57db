//! Fewer points, the same picture.
//!
//! Within one pixel column a curve covers the span from its lowest to its highest point and enters
//! and leaves at its first and last one. Keeping those four and dropping the rest draws the same
//! pixels (the M4 aggregation of Jugel, Jerzak, Hackenbroich, Markl, "M4: A Visualization-Oriented
//! Time Series Data Aggregation", VLDB 2014). Unlike an average it never hides a spike.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A point that knows the lowest and the highest value drawn at its place.
pub trait Extent: Copy {
    /// The place along the axis.
    fn x(self) -> f64;
    /// The lowest value drawn there.
    fn low(self) -> f64;
    /// The highest value drawn there.
    fn high(self) -> f64;

    /// Whether the point can be drawn.
    fn is_finite(self) -> bool {
        self.x().is_finite() && self.low().is_finite() && self.high().is_finite()
    }
}

impl Extent for [f64; 2] {
    fn x(self) -> f64 {
        self[0]
    }
    fn low(self) -> f64 {
        self[1]
    }
    fn high(self) -> f64 {
        self[1]
    }
}

impl Extent for [f64; 3] {
    fn x(self) -> f64 {
        self[0]
    }
    fn low(self) -> f64 {
        self[1]
    }
    fn high(self) -> f64 {
        self[2]
    }
}

/// Keeps of every pixel column the first, the lowest, the highest and the last point, in their
/// order.
///
/// `place` tells how far along the axis an `x` is, 0 at its start and 1 at its end, and there are
/// `columns` columns. Points that are not finite stay as one gap where a column begins or ends with
/// them; a gap within a pixel vanishes. When `x` does not rise, equally many points form a column
/// instead. At most six points per column remain.
#[must_use]
pub fn keep_extremes<P: Extent>(points: &[P], columns: usize, place: impl Fn(f64) -> f64) -> Vec<P> {
    let columns = columns.max(1);
    if points.len() <= 2 * columns {
        return points.to_vec();
    }
    let rises = {
        let placed = || points.iter().map(|point| point.x()).filter(|x| x.is_finite());
        placed().zip(placed().skip(1)).all(|(a, b)| a <= b)
    };
    #[expect(clippy::cast_precision_loss, reason = "a share of a count of pixels or points")]
    let column = |i: usize| {
        let share = if rises { place(points[i].x()) } else { i as f64 / points.len() as f64 };
        share.is_finite().then(|| (share.clamp(-1.0, 2.0) * columns as f64).floor())
    };
    let mut kept = Vec::with_capacity(4 * columns);
    let mut start = 0;
    while start < points.len() {
        // A point without a place belongs to the column before it.
        let here = column(start);
        let end = (start + 1..points.len())
            .find(|&i| column(i).is_some_and(|there| here.is_none_or(|here| here != there)))
            .unwrap_or(points.len());
        push_column(&mut kept, points, start..end);
        start = end;
    }
    kept
}

/// Appends what is kept of one column.
fn push_column<P: Extent>(kept: &mut Vec<P>, points: &[P], range: Range<usize>) {
    let finite = || range.clone().filter(|&i| points[i].is_finite());
    let gap = |kept: &mut Vec<P>, i: usize| {
        if !points[i].is_finite() && kept.last().is_none_or(|last| last.is_finite()) {
            kept.push(points[i]);
        }
    };
    gap(kept, range.start);
    if let (Some(first), Some(last)) = (finite().next(), finite().next_back()) {
        let mut chosen = [first, first, first, last];
        for i in finite() {
            if points[i].low() < points[chosen[1]].low() {
                chosen[1] = i;
            }
            if points[i].high() > points[chosen[2]].high() {
                chosen[2] = i;
            }
        }
        chosen.sort_unstable();
        for (k, &i) in chosen.iter().enumerate() {
            if k == 0 || chosen[k - 1] != i {
                kept.push(points[i]);
            }
        }
    }
    if let Some(last) = range.clone().next_back() {
        gap(kept, last);
    }
}

/// Thins out a cloud of points: of those in one cell of a grid the first remains, and of every
/// column of cells the lowest and the highest. Points that are not finite vanish.
///
/// `cell` tells in which cell (column, row) a point lies.
#[must_use]
pub fn thin_cloud(points: &[[f64; 2]], cell: impl Fn([f64; 2]) -> (i32, i32)) -> Vec<[f64; 2]> {
    let mut keep = vec![false; points.len()];
    let mut taken = HashSet::new();
    let mut extremes: HashMap<i32, (usize, usize)> = HashMap::new();
    for (i, point) in points.iter().enumerate().filter(|(_, point)| point.is_finite()) {
        let at = cell(*point);
        keep[i] = taken.insert(at);
        let (low, high) = extremes.entry(at.0).or_insert((i, i));
        if point[1] < points[*low][1] {
            *low = i;
        }
        if point[1] > points[*high][1] {
            *high = i;
        }
    }
    for (low, high) in extremes.into_values() {
        (keep[low], keep[high]) = (true, true);
    }
    points.iter().zip(keep).filter(|(_, keep)| *keep).map(|(point, _)| *point).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rising() -> impl Strategy<Value = Vec<[f64; 2]>> {
        proptest::collection::vec((0.0..1.0f64, prop_oneof![9 => -1e3..1e3f64, 1 => Just(f64::NAN)]), 0..3000).prop_map(
            |mut points| {
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                points.into_iter().map(|(x, y)| [x, y]).collect()
            },
        )
    }

    fn range(points: &[[f64; 2]]) -> (f64, f64) {
        let y = || points.iter().map(|point| point[1]).filter(|y| y.is_finite());
        (y().fold(f64::INFINITY, f64::min), y().fold(f64::NEG_INFINITY, f64::max))
    }

    proptest! {
        #[test]
        fn every_column_keeps_its_lowest_and_highest_point(points in rising(), columns in 1usize..200) {
            let kept = keep_extremes(&points, columns, |x| x);
            for column in 0..columns {
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let inside = |points: &[[f64; 2]]| -> Vec<[f64; 2]> {
                    points.iter().copied().filter(|point| (point[0] * columns as f64).floor() == column as f64).collect()
                };
                prop_assert_eq!(range(&inside(&points)), range(&inside(&kept)));
            }
        }

        #[test]
        fn what_is_kept_is_a_subsequence(points in rising(), columns in 1usize..200) {
            let bits = |points: &[[f64; 2]]| -> Vec<[u64; 2]> { points.iter().map(|p| p.map(f64::to_bits)).collect() };
            let (all, kept) = (bits(&points), bits(&keep_extremes(&points, columns, |x| x)));
            let mut rest = all.iter();
            prop_assert!(kept.iter().all(|point| rest.any(|other| other == point)), "out of order");
        }

        #[test]
        fn what_is_kept_is_bounded_by_the_width_not_by_the_data(
            y in proptest::collection::vec(-1.0..1.0f64, 1000..5000), columns in 1usize..100, sorted: bool,
        ) {
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let x = |i: usize| if sorted { i as f64 / 5000.0 } else { (i * 7919 % 5000) as f64 / 5000.0 };
            let gap = |i: usize, y: f64| if i.is_multiple_of(3) { f64::NAN } else { y };
            let points: Vec<[f64; 2]> = y.iter().enumerate().map(|(i, y)| [x(i), gap(i, *y)]).collect();
            let kept = keep_extremes(&points, columns, |x| x);
            prop_assert!(kept.len() <= 6 * (columns + 1), "{} of {}", kept.len(), points.len());
        }

        #[test]
        fn a_cloud_keeps_one_point_per_cell_and_its_extremes(
            points in proptest::collection::vec((0.0..100.0f64, 0.0..100.0f64), 0..2000),
        ) {
            let points: Vec<[f64; 2]> = points.into_iter().map(|(x, y)| [x, y]).collect();
            #[expect(clippy::cast_possible_truncation, reason = "small")]
            let cell = |[x, y]: [f64; 2]| ((x / 10.0) as i32, (y / 10.0) as i32);
            let kept = thin_cloud(&points, cell);
            prop_assert!(kept.len() <= 100 + 20);
            prop_assert_eq!(range(&points), range(&kept));
        }
    }

    #[test]
    fn a_band_keeps_its_lowest_low_and_its_highest_high() {
        let band: Vec<[f64; 3]> =
            (0..100).map(|i| [f64::from(i) / 100.0, f64::from(-i % 7), f64::from(i % 11)]).collect();
        let kept = keep_extremes(&band, 1, |x| x);
        assert!(kept.len() <= 4);
        assert!(kept.iter().any(|point| point[1] == -6.0) && kept.iter().any(|point| point[2] == 10.0));
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let points: Vec<[f64; 2]> =
            (0..100).map(|i| [f64::from(i) / 100.0, if (40..60).contains(&i) { f64::NAN } else { 1.0 }]).collect();
        assert_eq!(keep_extremes(&points, 4, |x| x).iter().filter(|point| !point.is_finite()).count(), 1);
    }
}
