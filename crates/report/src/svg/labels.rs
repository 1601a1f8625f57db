//! Labels that do not lie upon each other.

/// A rectangle on the plot, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    fn overlaps(self, other: Self) -> bool {
        self.left < other.left + other.width
            && other.left < self.left + self.width
            && self.top < other.top + other.height
            && other.top < self.top + self.height
    }
}

/// The first of the candidates that lies within the plot and on no area taken; it is then taken.
pub(crate) fn place(
    taken: &mut Vec<Area>,
    (width, height): (f64, f64),
    candidates: impl IntoIterator<Item = Area>,
) -> Option<Area> {
    let free = candidates.into_iter().find(|area| {
        let inside =
            area.left >= 0.0 && area.top >= 0.0 && area.left + area.width <= width && area.top + area.height <= height;
        inside && !taken.iter().any(|other| area.overlaps(*other))
    })?;
    taken.push(free);
    Some(free)
}

/// Moves labels that want to stand at `wanted` apart until any two are at least `gap` apart and all
/// lie between 0 and `height`; their order stays. `None` when they do not fit.
pub(crate) fn spread(wanted: &[f64], gap: f64, height: f64) -> Option<Vec<f64>> {
    #[expect(clippy::cast_precision_loss, reason = "a handful of labels")]
    let needed = gap * wanted.len().saturating_sub(1) as f64;
    if needed > height {
        return None;
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Groups of labels that touch: where the first one stands and which they are.
    let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
    for i in order {
        groups.push((wanted[i].clamp(0.0, height), vec![i]));
        while let [.., (before, above), (start, below)] = groups.as_mut_slice() {
            #[expect(clippy::cast_precision_loss, reason = "a handful of labels")]
            let size = |count: usize| gap * count as f64;
            if *before + size(above.len()) <= *start {
                break;
            }
            // Joined, they stand where their mean displacement is zero.
            above.append(below);
            let wish = above.iter().enumerate().map(|(k, &i)| wanted[i] - size(k)).sum::<f64>();
            #[expect(clippy::cast_precision_loss, reason = "a handful of labels")]
            let mean = wish / above.len() as f64;
            *before = mean.clamp(0.0, height - size(above.len() - 1));
            groups.pop();
        }
    }
    let mut at = vec![0.0; wanted.len()];
    for (start, members) in groups {
        for (k, i) in members.into_iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "a handful of labels")]
            let offset = gap * k as f64;
            at[i] = start.min(height) + offset;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spread_labels_keep_their_order_their_distance_and_the_plot(
            wanted in proptest::collection::vec(-50.0..350.0f64, 0..12), gap in 1.0..20.0f64,
        ) {
            let Some(at) = spread(&wanted, gap, 300.0) else {
                prop_assert!(gap * (wanted.len() - 1) as f64 > 300.0);
                return Ok(());
            };
            let mut sorted = at.clone();
            sorted.sort_by(f64::total_cmp);
            for pair in sorted.windows(2) {
                prop_assert!(pair[1] - pair[0] >= gap - 1e-6, "{:?}", sorted);
            }
            prop_assert!(sorted.iter().all(|y| (-1e-6..=300.0 + 1e-6).contains(y)), "{:?}", sorted);
        }
    }

    #[test]
    fn labels_with_room_stay_where_they_want_to_be() {
        assert_eq!(spread(&[100.0, 10.0, 50.0], 14.0, 300.0), Some(vec![100.0, 10.0, 50.0]));
        assert_eq!(spread(&[50.0, 50.0], 10.0, 300.0), Some(vec![45.0, 55.0]));
    }

    #[test]
    fn a_label_takes_the_first_free_place() {
        let area = |left: f64| Area { left, top: 0.0, width: 10.0, height: 10.0 };
        let mut taken = vec![area(0.0)];
        assert_eq!(place(&mut taken, (100.0, 100.0), [area(5.0), area(95.0), area(20.0)]), Some(area(20.0)));
        assert_eq!(place(&mut taken, (100.0, 100.0), [area(25.0)]), None);
    }
}
