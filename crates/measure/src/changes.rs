//! Values that change, noted at most once per bin.

use std::ops::Add;

use flowstart_units::Span;

/// Most changes that are noted.
const LIMIT: usize = 1 << 16;

/// Notes the `value` that holds from `at` on. What changes again within a `bin` replaces what was
/// noted last; 65 536 changes at most are noted.
#[inline]
pub(crate) fn note<T: Copy + PartialOrd + Add<Span, Output = T>>(
    changes: &mut Vec<(T, u32)>,
    at: T,
    value: u32,
    bin: Span,
) {
    if let Some((noted, last)) = changes.last_mut()
        && (*last == value || at < *noted + bin)
    {
        *last = value;
    } else if changes.len() < LIMIT {
        changes.push((at, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_changes_again_within_a_bin_is_noted_once() {
        let ms = Span::from_millis;
        let mut changes = Vec::new();
        for (at, value) in [(0, 10), (1, 12), (9, 11), (10, 20), (30, 20), (31, 5)] {
            note(&mut changes, ms(at), value, ms(10));
        }
        assert_eq!(changes, [(ms(0), 11), (ms(10), 20), (ms(31), 5)]);
    }
}
