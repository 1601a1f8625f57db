//! Who is beaten by nobody.

/// Which points are on the Pareto front: those for which no other is at least as good (small) in
/// all numbers and better in one. A point with a number that is none (NaN) is not.
#[must_use]
pub fn undominated<const N: usize>(points: &[[f64; N]]) -> Vec<bool> {
    let beats = |a: &[f64; N], b: &[f64; N]| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
    let known = |point: &[f64; N]| point.iter().all(|number| !number.is_nan());
    points.iter().map(|point| known(point) && !points.iter().any(|other| beats(other, point))).collect()
}

/// The Pareto front of points in the plane from left to right, of equal points one.
#[must_use]
pub fn front(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let on = undominated(points);
    let mut front: Vec<[f64; 2]> = points.iter().zip(on).filter(|(_, on)| *on).map(|(point, _)| *point).collect();
    front.sort_by(|a, b| a[0].total_cmp(&b[0]));
    front.dedup();
    front
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nobody_on_the_front_is_beaten_in_both() {
        let points = [[3.0, 1.0], [1.0, 3.0], [2.0, 3.5], [2.0, 2.0], [4.0, 1.0]];
        assert_eq!(front(&points), [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]);
        assert_eq!(
            front(&[[1.0, f64::INFINITY]]),
            [[1.0, f64::INFINITY]],
            "who never finishes may still be the shortest queue"
        );
    }

    #[test]
    fn a_third_number_can_save_a_point_and_one_that_is_unknown_cannot() {
        let points = [[1.0, 1.0, 5.0], [2.0, 2.0, 4.0], [2.0, 2.0, 6.0], [f64::NAN, 0.0, 0.0]];
        assert_eq!(undominated(&points), [true, true, false, false]);
    }

    fn beats(a: [f64; 2], b: [f64; 2]) -> bool {
        a[0] <= b[0] && a[1] <= b[1] && a != b
    }

    proptest! {
        #[test]
        fn a_point_is_on_the_front_if_and_only_if_none_beats_it(
            points in prop::collection::vec([0_u8..12, 0_u8..12].prop_map(|p| p.map(f64::from)), 0..40),
        ) {
            let front = front(&points);
            for point in &points {
                let beaten = points.iter().any(|other| beats(*other, *point));
                prop_assert_eq!(front.contains(point), !beaten);
            }
            prop_assert!(front.iter().all(|point| points.contains(point)));
            prop_assert!(front.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] > pair[1][1]));
        }
    }
}
