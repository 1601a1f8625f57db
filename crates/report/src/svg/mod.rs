//! Figures as SVG.
//!
//! Written directly rather than with a plotting library: the page needs one group per contestant
//! (to hide and to highlight it), shades that follow the reader's light or dark setting, and paths
//! that stay short; the libraries at hand draw shapes without names in fixed colours.
//!
//! Shades are given twice: as attributes (light, for programs that know no style sheets) and in a
//! style sheet that has the dark ones too.

mod draw;
mod labels;
mod legend;
mod path;
mod point_labels;
mod shared;
mod text_width;

pub(crate) use draw::{Drawn, Look, draw};

use std::fmt::Write as _;

use crate::color::{Color, DARK_BACKGROUND, HUE_COUNT, LIGHT_BACKGROUND, Rgb, hex};
use crate::figure::Figure;

/// Shades of everything that belongs to no contestant, as (class, property, light, dark).
const SHADES: [(&str, &str, Rgb, Rgb); 5] = [
    ("ink", "fill", [0x1f, 0x23, 0x28], [0xe6, 0xed, 0xf3]),
    ("faint", "fill", [0x59, 0x63, 0x6e], [0x9a, 0xa3, 0xad]),
    ("grid", "stroke", [0xe6, 0xe9, 0xed], [0x2a, 0x30, 0x37]),
    ("rule", "stroke", [0x8c, 0x95, 0x9f], [0x6e, 0x76, 0x81]),
    ("paper", "fill", LIGHT_BACKGROUND, DARK_BACKGROUND),
];

/// The class of one kind of thing, as attributes.
pub(crate) fn shade(class: &str) -> String {
    SHADES.iter().find(|shade| shade.0 == class).map_or_else(String::new, |(class, property, light, _)| {
        format!("class=\"{class}\" {property}=\"{}\"", hex(*light))
    })
}

/// The style sheet for figures: dark shades for who prefers dark, except on paper.
pub(crate) fn style() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    for color in (0..HUE_COUNT).map(Color::new).chain([Color::neutral(0)]) {
        let hue = color.hue();
        light.push_str(&format!(".k{hue}{{color:{}}}", color.on_light()));
        dark.push_str(&format!(".k{hue}{{color:{}}}", color.on_dark()));
    }
    for (class, property, _, shade) in SHADES {
        dark.push_str(&format!(".figure .{class}{{{property}:{}}}", hex(shade)));
    }
    format!("{light}@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

/// Several figures as one SVG file, those of a row beside each other, as papers print them.
#[must_use]
pub fn side_by_side(rows: &[Vec<&Figure>]) -> String {
    let (mut body, mut width, mut height) = (String::new(), 0.0_f64, 0.0);
    for row in rows {
        let (mut left, mut highest) = (0.0, 0.0_f64);
        for figure in row {
            let Drawn { svg, size, .. } = draw(figure, &Look::standalone());
            let _ = write!(body, "<g transform=\"translate({left} {height})\">{svg}</g>");
            left += size[0];
            highest = highest.max(size[1]);
        }
        width = width.max(left);
        height += highest;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">{body}</svg>"
    )
}

impl Figure {
    /// The figure as an SVG file of its own, with title, caption and command, for a README or a
    /// paper.
    ///
    /// It follows the reader's light or dark setting where the viewer does, and is light elsewhere.
    #[must_use]
    pub fn to_svg(&self) -> String {
        draw(self, &Look::standalone()).svg
    }
}
