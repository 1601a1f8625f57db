//! Figures of a page: the drawing for those without a script, and its data for the script, which
//! draws them at the width there is.

use std::fmt::Write as _;

use super::{command, file_name};
use crate::axis::Fitted;
use crate::figure::{Axis, Direction, Figure, Legend, Scale, Series, Shape};
use crate::svg::{Drawn, Look, draw};
use crate::table::machine_name;
use crate::text::{escape, json, short};

/// Significant digits of embedded data, along the horizontal and the vertical axis.
const DIGITS: (usize, usize) = (7, 5);

/// Where a figure stands, which says how high it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The first of a page's lead.
    Lead,
    /// Below the first, over the same axis.
    Joined,
    /// Among others, under a heading.
    Grid,
    /// Among others, without one.
    Alone,
}

impl Place {
    const fn class(self) -> &'static str {
        match self {
            Self::Lead => " class=\"lead\"",
            Self::Joined => " class=\"lead joined\"",
            Self::Grid | Self::Alone => "",
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Lead | Self::Joined | Self::Alone => "h2",
            Self::Grid => "h3",
        }
    }

    /// Height of the plot in pixels.
    const fn height(self) -> u32 {
        match self {
            Self::Lead => 260,
            Self::Joined => 130,
            Self::Grid | Self::Alone => 260,
        }
    }
}

/// The page around a figure.
pub(super) struct Around<'a> {
    /// At most so many columns of pixels per curve.
    pub(super) columns: usize,
    /// The page's command, which its figures need not repeat.
    pub(super) command: &'a str,
}

/// Writes a figure.
pub(super) fn write(out: &mut String, figure: &Figure, place: Place, around: &Around<'_>, count: usize) {
    let drawn = draw(figure, &Look::embedded(around.columns));
    let heading = place.heading();
    let _ = write!(
        out,
        "<figure{}>\n<div class=\"bar\"><{heading}>{}{}</{heading}><div class=\"tools\"></div></div>\n<div class=\"legend\"></div>\n\
         <div class=\"drawing\">{}</div>\n",
        place.class(),
        escape(&figure.title),
        unit(figure),
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
    if !figure.command.is_empty() && figure.command != around.command {
        out.push_str(&command(&figure.command));
    }
    let _ = write!(
        out,
        "<script type=\"application/json\" class=\"data\">{}</script>\n</figure>\n",
        data(figure, &drawn, place, &file_name(&figure.title, count))
    );
}

/// The unit beside the title, if that is what the vertical axis shows.
fn unit(figure: &Figure) -> String {
    if figure.title != figure.y.label || figure.y.unit.is_empty() {
        return String::new();
    }
    format!(" <small>{}</small>", escape(&figure.y.unit))
}

/// Axes, markers and points as JSON, for the script of the page.
fn data(figure: &Figure, drawn: &Drawn, place: Place, file: &str) -> String {
    let legend = match figure.legend {
        Legend::AtCurves => "curves",
        Legend::AtPoints => "points",
        Legend::Above => "above",
        Legend::None => "none",
    };
    let mut places = Places::default();
    let series: Vec<String> = figure
        .series
        .iter()
        .zip(&drawn.shapes)
        .zip(&drawn.dashes)
        .map(|((series, shape), dashes)| one(series, shape, dashes, &mut places))
        .collect();
    format!(
        "{{\"title\":{},\"describe\":{},\"file\":{},\"height\":{},\"lead\":{},\"legend\":\"{legend}\",\"x\":{},\"y\":{},\
         \"markers\":[{}],\"xs\":[{}],\"series\":[{}]}}",
        json(&figure.title),
        json(&describe(figure)),
        json(file),
        place.height(),
        matches!(place, Place::Lead | Place::Joined),
        x_axis(figure, &drawn.x),
        y_axis(&figure.y, &drawn.y),
        markers(figure).join(","),
        places.0.join(","),
        series.join(",")
    )
}

/// What a figure shows, for those who hear it.
fn describe(figure: &Figure) -> String {
    let parts = [&figure.title, &figure.caption];
    parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(". ")
}

/// What both axes have: what they show, their ends, whether they are logarithmic.
fn axis(axis: &Axis, min: f64, max: f64) -> String {
    format!(
        "\"name\":{},\"unit\":{},\"column\":{},\"min\":{},\"max\":{},\"log\":{}",
        json(&axis.label),
        json(&axis.unit),
        json(&machine_name(&axis.label, &axis.unit)),
        short(min, 12),
        short(max, 12),
        axis.scale == Scale::Log
    )
}

/// The horizontal axis: all there is, and what is seen first.
fn x_axis(figure: &Figure, first: &Fitted) -> String {
    let shown = &figure.x;
    let (mut min, mut max) = (first.min(), first.max());
    if shown.window.is_some() {
        let ends = figure.series.iter().flat_map(|series| match &series.shape {
            Shape::Line(points) | Shape::Steps(points) | Shape::Points(points) => {
                points.iter().map(|point| point[0]).collect::<Vec<_>>()
            }
            Shape::Band(points) => points.iter().map(|point| point[0]).collect(),
        });
        let drawable = |value: &f64| value.is_finite() && (shown.scale == Scale::Linear || *value > 0.0);
        for value in ends.filter(drawable) {
            (min, max) = (min.min(value), max.max(value));
        }
    }
    let also = shown.also.as_ref().map_or("null".to_owned(), |also| {
        format!(
            "{{\"factor\":{},\"unit\":{},\"column\":{}}}",
            short(also.factor, 12),
            json(&also.unit),
            json(&machine_name(&shown.label, &also.unit))
        )
    });
    let places: Vec<String> = shown.places.iter().map(|place| json(place)).collect();
    format!(
        "{{{},\"view\":[{},{}],\"also\":{also},\"places\":[{}]}}",
        axis(shown, min, max),
        short(first.min(), 12),
        short(first.max(), 12),
        places.join(",")
    )
}

/// The vertical axis: whether the script may fit it to what is seen, and whether from zero.
fn y_axis(shown: &Axis, fitted: &Fitted) -> String {
    let fixed = shown.min.is_some() && shown.max.is_some();
    format!("{{{},\"fixed\":{fixed},\"zero\":{}}}", axis(shown, fitted.min(), fitted.max()), shown.from_zero)
}

fn markers(figure: &Figure) -> Vec<String> {
    let finite = figure.markers.iter().filter(|marker| marker.at.is_finite());
    finite
        .map(|marker| {
            let hue = marker.color.map_or("null".to_owned(), |color| color.hue().to_string());
            format!(
                "{{\"vertical\":{},\"at\":{},\"label\":{},\"hue\":{hue}}}",
                marker.direction == Direction::Vertical,
                short(marker.at, 12),
                json(&marker.label)
            )
        })
        .collect()
}

/// Columns of places that series share, each once.
#[derive(Default)]
struct Places(Vec<String>);

impl Places {
    fn number(&mut self, column: String) -> usize {
        self.0.iter().position(|known| *known == column).unwrap_or_else(|| {
            self.0.push(column);
            self.0.len() - 1
        })
    }
}

/// One series: name, hue, kind, and its columns of numbers (`null` in gaps).
fn one(series: &Series, shape: &Shape, dashes: &str, places: &mut Places) -> String {
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
    let dashes = if dashes.is_empty() { series.color.dashes() } else { dashes };
    format!(
        "{{\"name\":{},\"hue\":{},\"dash\":{},\"kind\":\"{kind}\",\"x\":{},\"y\":{y}{high}}}",
        json(&series.name),
        series.color.hue(),
        json(dashes),
        places.number(x)
    )
}
