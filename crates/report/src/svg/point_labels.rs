//! Names beside dots.

use std::fmt::Write as _;

use super::labels::{Area, place};
use super::path::Plot;
use super::shade;
use super::shared::{SMALL, coordinate};
use super::text_width::{fit, width};
use crate::figure::{Figure, Series, Shape};
use crate::text::escape;

/// Free pixels around a dot that no label enters.
const CLEAR: f64 = 5.0;
/// Labels are tried in this many rings around their dot, a text's height apart.
const RINGS: u32 = 12;
/// Most of the plot's width that a label takes.
const WIDEST: f64 = 0.4;

/// Writes the name of every cloud beside its first dot, tied to it by a line where there is no room
/// close by. A name that finds no room at all remains as a tooltip.
pub(super) fn point_labels(out: &mut String, figure: &Figure, plot: &Plot) {
    let dots: Vec<(&Series, f64, f64)> = figure.series.iter().filter_map(|series| first(series, plot)).collect();
    let mut taken: Vec<Area> = dots
        .iter()
        .map(|(_, x, y)| Area { left: x - CLEAR, top: y - CLEAR, width: 2.0 * CLEAR, height: 2.0 * CLEAR })
        .collect();
    for (series, x, y) in dots {
        let name = fit(&series.name, SMALL, plot.width * WIDEST);
        let (w, h) = (width(&name, SMALL) + 2.0, SMALL * 1.25);
        let free = place(&mut taken, (plot.width, plot.height), candidates(x, y, w, h));
        let _ = write!(
            out,
            "<g class=\"series k{}\" color=\"{}\" data-name=\"{}\"><title>{}</title>",
            series.color.hue(),
            series.color.on_light(),
            escape(&series.name),
            escape(&series.name),
        );
        if let Some(area) = free {
            let middle = area.top + h / 2.0;
            let near = x.clamp(area.left, area.left + w);
            if (near - x).abs() > CLEAR + 2.0 || (middle - y).abs() > h {
                let _ = write!(
                    out,
                    "<path d=\"M{} {}L{} {}\" stroke=\"currentColor\" stroke-width=\"1\" opacity=\".5\" fill=\"none\"/>",
                    coordinate(x),
                    coordinate(y),
                    coordinate(near),
                    coordinate(middle)
                );
            }
            // A veil keeps the name readable upon curves.
            let _ = write!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" opacity=\".7\" {}/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"{SMALL}\" fill=\"currentColor\">{}</text>",
                coordinate(area.left),
                coordinate(area.top),
                coordinate(w),
                coordinate(h),
                shade("paper"),
                coordinate(area.left + 1.0),
                coordinate(area.top + SMALL),
                escape(&name)
            );
        }
        out.push_str("</g>");
    }
}

/// Where the first dot of a cloud is, in pixels, if it lies on the plot.
fn first<'a>(series: &'a Series, plot: &Plot) -> Option<(&'a Series, f64, f64)> {
    let Shape::Points(points) = &series.shape else { return None };
    let [x, y] = *points.first()?;
    let (x, y) = (plot.across(x), plot.down(y));
    let inside = (0.0..=plot.width).contains(&x) && (0.0..=plot.height).contains(&y);
    inside.then_some((series, x, y))
}

/// Places around a dot, the nearest first.
fn candidates(x: f64, y: f64, w: f64, h: f64) -> impl Iterator<Item = Area> {
    (0..RINGS).flat_map(move |ring| {
        let away = f64::from(ring) * h;
        let (right, left, middle) = (x + CLEAR + 1.0, x - CLEAR - 1.0 - w, x - w / 2.0);
        // A little above or below, not on a level: curves through the dot leave it to the side.
        let (above, below) = (y - h - away, y + away);
        [(right, above), (left, above), (right, below), (left, below), (middle, above - CLEAR), (middle, below + CLEAR)]
            .map(|(left, top)| Area { left, top, width: w, height: h })
    })
}
