//! What all parts of a picture share.

use std::fmt::Write as _;

use super::shade;
use crate::color::Color;
use crate::text::{escape, number};

/// Size of text in pixels.
pub(super) const TEXT: f64 = 12.0;
/// How much wider bold text is.
pub(super) const BOLD: f64 = 1.1;
/// Distance between two lines of text, in units of the font size.
pub(super) const LEADING: f64 = 1.45;
/// Size of small text in pixels.
pub(super) const SMALL: f64 = 11.0;

/// A coordinate with one digit after the point.
pub(super) fn coordinate(value: f64) -> String {
    number(value, 1).map_or_else(|| "0".to_owned(), |text| text.trim_end_matches(".0").to_owned())
}

/// A text element.
#[expect(clippy::too_many_arguments, reason = "the attributes of one element")]
pub(super) fn text(out: &mut String, class: &str, x: f64, y: f64, size: f64, anchor: &str, more: &str, words: &str) {
    let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    let more = if more.is_empty() { String::new() } else { format!(" {more}") };
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" {}{anchor}{more}>{}</text>",
        coordinate(x),
        coordinate(y),
        shade(class),
        escape(words)
    );
}

/// The dash attribute of a colour's curves.
pub(super) fn dashes(color: Color) -> String {
    let dashes = color.dashes();
    if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") }
}
