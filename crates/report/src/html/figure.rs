//! Figures of a page: the drawing, and its data for the read-out and the CSV file.

use std::fmt::Write as _;

use super::{command, file_name};
use crate::axis::Fitted;
use crate::figure::{Axis, Figure, Scale, Series, Shape};
use crate::svg::{Drawn, Look, draw};
use crate::table::machine_name;
use crate::text::{escape, json, short};

/// Significant digits of embedded data, along the horizontal and the vertical axis.
const DIGITS: (usize, usize) = (7, 5);

/// Writes a figure with at most `columns` columns of pixels per curve.
pub(super) fn write(out: &mut String, figure: &Figure, columns: usize, count: usize) {
    let drawn = draw(figure, &Look::embedded(columns));
    let _ = write!(
        out,
        "<figure>\n<div class=\"bar\"><h3>{}</h3><a class=\"csv\" href=\"#\" hidden>CSV</a></div>\n<div class=\"drawing\">{}</div>\n",
        escape(&figure.title),
        drawn.svg
    );
    let points = |shape: &Shape| match shape {
        Shape::Line(points) | Shape::Steps(points) | Shape::Points(points) => points.len(),
        Shape::Band(points) => points.len(),
    };
    let (all, shown): (usize, usize) =
        (figure.series.iter().map(|series| points(&series.shape)).sum(), drawn.shapes.iter().map(points).sum());
    let reduced = if shown < all {
        format!("{shown} of {all} points are kept: of every pixel column the first, lowest, highest and last.")
    } else {
        String::new()
    };
    if !figure.caption.is_empty() || !reduced.is_empty() {
        let _ = write!(out, "<figcaption>{}", escape(&figure.caption));
        if !reduced.is_empty() {
            let _ = write!(out, " <small>{reduced}</small>");
        }
        out.push_str("</figcaption>\n");
    }
    if !figure.command.is_empty() {
        out.push_str(&command(&figure.command));
    }
    let _ = write!(
        out,
        "<script type=\"application/json\" class=\"data\">{}</script>\n</figure>\n",
        data(figure, &drawn, &file_name(&figure.title, count))
    );
}

/// Axes, area of the plot and points as JSON, for the script of the page.
fn data(figure: &Figure, drawn: &Drawn, file: &str) -> String {
    let area: Vec<String> = drawn.area.iter().map(|side| short(*side, 5)).collect();
    let mut out = format!(
        "{{\"file\":{},\"area\":[{}],\"x\":{},\"y\":{},\"series\":[",
        json(file),
        area.join(","),
        axis(&figure.x, &drawn.x),
        axis(&figure.y, &drawn.y)
    );
    for (i, (series, shape)) in figure.series.iter().zip(&drawn.shapes).enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&one(series, shape));
    }
    out.push_str("]}");
    out
}

/// An axis: what it shows, its ends, whether it is logarithmic.
fn axis(axis: &Axis, fitted: &Fitted) -> String {
    format!(
        "{{\"name\":{},\"unit\":{},\"column\":{},\"min\":{},\"max\":{},\"log\":{}}}",
        json(&axis.label),
        json(&axis.unit),
        json(&machine_name(&axis.label, &axis.unit)),
        short(fitted.min(), 12),
        short(fitted.max(), 12),
        axis.scale == Scale::Log
    )
}

/// One series: name, hue, kind, and its columns of numbers (`null` in gaps).
fn one(series: &Series, shape: &Shape) -> String {
    let column = |values: &mut dyn Iterator<Item = f64>, digits| {
        let values: Vec<String> =
            values.map(|value| if value.is_finite() { short(value, digits) } else { "null".to_owned() }).collect();
        format!("[{}]", values.join(","))
    };
    let (kind, x, y, high) = match shape {
        Shape::Band(points) => (
            "band",
            column(&mut points.iter().map(|point| point[0]), DIGITS.0),
            column(&mut points.iter().map(|point| point[1]), DIGITS.1),
            format!(",\"high\":{}", column(&mut points.iter().map(|point| point[2]), DIGITS.1)),
        ),
        Shape::Line(points) | Shape::Steps(points) | Shape::Points(points) => (
            match shape {
                Shape::Line(_) => "line",
                Shape::Steps(_) => "steps",
                _ => "points",
            },
            column(&mut points.iter().map(|point| point[0]), DIGITS.0),
            column(&mut points.iter().map(|point| point[1]), DIGITS.1),
            String::new(),
        ),
    };
    format!(
        "{{\"name\":{},\"hue\":{},\"kind\":\"{kind}\",\"x\":{x},\"y\":{y}{high}}}",
        json(&series.name),
        series.color.hue()
    )
}
