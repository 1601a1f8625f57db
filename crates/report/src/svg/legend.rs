//! The names of a figure's curves: in rows above the plot, or beside their ends.

use std::fmt::Write as _;

use super::labels::spread;
use super::path::Plot;
use super::shared::{BOLD, LEADING, TEXT, coordinate, dashes, text};
use super::text_width::{fit, width};
use crate::axis::Fitted;
use crate::color::Color;
use crate::figure::{Figure, Legend, Series, Shape};
use crate::text::escape;

/// Length of a line in a row, and distance between two entries.
const SWATCH: f64 = 20.0;
const ENTRY_GAP: f64 = 18.0;

/// One entry of the legend: series of one name.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) color: Color,
    pub(super) shape: &'a Shape,
}

/// The series by name, in order.
pub(super) fn entries(figure: &Figure) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for Series { name, color, shape } in &figure.series {
        match entries.iter_mut().find(|entry| entry.name == name) {
            // The curve speaks for its band.
            Some(entry) if matches!(entry.shape, Shape::Band(_)) => entry.shape = shape,
            Some(_) => {}
            None => entries.push(Entry { name, color: *color, shape }),
        }
    }
    entries
}

/// True if the name of this entry stands beside its dot.
pub(super) fn at_its_dot(figure: &Figure, entry: &Entry<'_>) -> bool {
    figure.legend == Legend::AtPoints && matches!(entry.shape, Shape::Points(_))
}

/// Rows of names above the plot; returns where they end.
pub(super) fn legend(out: &mut String, entries: &[&Entry<'_>], left: f64, mut top: f64, room: f64) -> f64 {
    let mut x = 0.0;
    top += TEXT * LEADING;
    for entry in entries {
        let name = fit(entry.name, TEXT, room - SWATCH - 6.0);
        let needed = SWATCH + 6.0 + width(&name, TEXT);
        if x > 0.0 && x + needed > room {
            x = 0.0;
            top += TEXT * 1.6;
        }
        let _ = write!(
            out,
            "<g class=\"entry k{}\" color=\"{}\" data-name=\"{}\" transform=\"translate({} {})\">",
            entry.color.hue(),
            entry.color.on_light(),
            escape(entry.name),
            coordinate(left + x),
            coordinate(top)
        );
        let _ = write!(out, "<title>{}</title>", escape(entry.name));
        // Something to hit with a finger.
        let _ = write!(
            out,
            "<rect x=\"-4\" y=\"-14\" width=\"{}\" height=\"19\" fill=\"none\" pointer-events=\"all\"/>",
            coordinate(needed + 8.0)
        );
        out.push_str(&swatch(entry));
        text(out, "ink", SWATCH + 6.0, 0.0, TEXT, "start", "", &name);
        out.push_str("</g>");
        x += needed + ENTRY_GAP;
    }
    top + 6.0
}

/// A small picture of the curve.
fn swatch(entry: &Entry<'_>) -> String {
    match entry.shape {
        Shape::Line(_) | Shape::Steps(_) => {
            format!("<path d=\"M0-4h{SWATCH}\" stroke=\"currentColor\" stroke-width=\"3\"{}/>", dashes(entry.color))
        }
        Shape::Points(_) => "<circle cx=\"10\" cy=\"-4\" r=\"4\" fill=\"currentColor\"/>".to_owned(),
        Shape::Band(_) => {
            "<rect x=\"2\" y=\"-10\" width=\"16\" height=\"11\" fill=\"currentColor\" opacity=\".25\"/>".to_owned()
        }
    }
}

/// Names beside the right ends of the curves.
pub(super) struct Beside {
    /// Pixels they need.
    pub(super) room: f64,
    /// For every entry, where its curve ends and where its label stands, in pixels from the top of
    /// the plot.
    rows: Vec<(f64, f64)>,
}

/// Where the names beside the curves of a plot so wide and high go; `None` when they do not fit or
/// a curve has no end.
pub(super) fn beside(
    figure: &Figure,
    entries: &[Entry<'_>],
    x: &Fitted,
    y: &Fitted,
    [wide, high]: [f64; 2],
) -> Option<Beside> {
    let plot = Plot { x: x.clone(), y: y.clone(), width: wide, height: high };
    let ends = entries
        .iter()
        .map(|entry| {
            let points = match entry.shape {
                Shape::Line(points) | Shape::Steps(points) | Shape::Points(points) => points,
                Shape::Band(_) => return None,
            };
            let within =
                |point: &&[f64; 2]| plot.x.place(point[0]) <= 1.0 && crate::axis::drawable(figure.y.scale, point[1]);
            let last = points.iter().rev().find(within)?;
            Some(plot.down(last[1]).clamp(0.0, plot.height))
        })
        .collect::<Option<Vec<f64>>>()?;
    let rows = spread(&ends, TEXT * 1.35, plot.height)?;
    let widest = entries.iter().map(|entry| width(entry.name, TEXT) * BOLD).fold(0.0, f64::max);
    if widest > wide * 0.35 {
        return None;
    }
    Some(Beside { room: widest + 22.0, rows: ends.into_iter().zip(rows).collect() })
}

/// Draws the names beside the curves, each tied to the end of its curve.
pub(super) fn curve_labels(out: &mut String, entries: &[Entry<'_>], labels: &Beside, plot: &Plot) {
    for (entry, (end, row)) in entries.iter().zip(&labels.rows) {
        let _ = write!(
            out,
            "<g class=\"entry k{}\" color=\"{}\" data-name=\"{}\"><path d=\"M{} {}L{} {}\" stroke=\"currentColor\" \
             stroke-width=\"1\" opacity=\".6\" fill=\"none\"/>",
            entry.color.hue(),
            entry.color.on_light(),
            escape(entry.name),
            coordinate(plot.width + 3.0),
            coordinate(*end),
            coordinate(plot.width + 16.0),
            coordinate(*row),
        );
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{TEXT}\" font-weight=\"600\" fill=\"currentColor\">{}</text></g>",
            coordinate(plot.width + 20.0),
            coordinate(row + TEXT * 0.35),
            escape(entry.name)
        );
    }
}
