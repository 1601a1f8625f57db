//! What all parts of a picture share.

use crate::text::number;

/// Size of small text in pixels.
pub(super) const SMALL: f64 = 11.0;

/// A coordinate with one digit after the point.
pub(super) fn coordinate(value: f64) -> String {
    number(value, 1).map_or_else(|| "0".to_owned(), |text| text.trim_end_matches(".0").to_owned())
}
