//! Who is beaten by nobody.

/// The Pareto front of points of which less is better in both numbers: those for which no other point is at least as good in both and better in one;
/// of equal points one. From left to right.
#[must_use]
pub fn front(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mut sorted: Vec<[f64; 2]> = points.iter().copied().filter(|[x, y]| !x.is_nan() && !y.is_nan()).collect();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    let mut front: Vec<[f64; 2]> = Vec::new();
    for point in sorted {
        if front.last().is_none_or(|last| point[1] < last[1]) {
            front.push(point);
        }
    }
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
