//! Figures: axes, series, markers. Only what is shown, nothing about how.

use crate::color::Color;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal steps, equal lengths.
    #[default]
    Linear,
    /// Equal ratios, equal lengths. Values at or below zero have no place and leave a gap.
    Log,
}

/// One axis of a figure.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Axis {
    /// What is shown, e.g. `Queueing delay`.
    pub label: String,
    /// Its unit, e.g. `ms`; empty when there is none.
    pub unit: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Fixed lower end; from the data when `None`.
    pub min: Option<f64>,
    /// Fixed upper end; from the data when `None`.
    pub max: Option<f64>,
    /// Whether a linear axis without a fixed lower end starts at zero when the data is not
    /// negative.
    pub from_zero: bool,
    /// What stands at 0, 1, 2, ... of a horizontal axis instead of numbers; empty for numbers.
    pub places: Vec<String>,
    /// What is seen first, if not all there is: pages show the rest when asked, files never.
    pub window: Option<[f64; 2]>,
    /// The same quantity in another unit, for the read-out and the CSV file.
    pub also: Option<Also>,
}

/// Another unit of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Also {
    /// How many of it one of the axis' own units is.
    pub factor: f64,
    /// Its sign, e.g. `ms`.
    pub unit: String,
}

impl Axis {
    /// A linear axis that starts at zero if the data permits.
    #[must_use]
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), from_zero: true, ..Self::default() }
    }

    /// The same axis, logarithmic.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.scale = Scale::Log;
        self
    }

    /// The same axis with fixed ends.
    #[must_use]
    pub fn range(mut self, min: f64, max: f64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }

    /// The same axis with names at 0, 1, 2, ... instead of numbers, and room for each.
    #[must_use]
    pub fn named(mut self, places: Vec<String>) -> Self {
        let end = places.len() as f64 - 0.5;
        self.places = places;
        self.range(-0.5, end)
    }

    /// The same axis, of which this part is seen first.
    #[must_use]
    pub fn first_seen(mut self, from: f64, to: f64) -> Self {
        self.window = Some([from, to]);
        self
    }

    /// The same axis with a second unit; one of its own units is `factor` of that.
    #[must_use]
    pub fn also(mut self, factor: f64, unit: impl Into<String>) -> Self {
        self.also = Some(Also { factor, unit: unit.into() });
        self
    }

    /// The same axis, fitted to the data instead of starting at zero.
    #[must_use]
    pub fn fitted(mut self) -> Self {
        self.from_zero = false;
        self
    }
}

/// What a series draws. Points with a coordinate that is not finite leave a gap.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Straight lines from point to point, `[x, y]` in order of `x`.
    Line(Vec<[f64; 2]>),
    /// A value that holds until the next one, `[x, y]` in order of `x`.
    Steps(Vec<[f64; 2]>),
    /// Unconnected dots `[x, y]`.
    Points(Vec<[f64; 2]>),
    /// The area between two curves, `[x, low, high]` in order of `x` (e.g. a 95 % interval).
    Band(Vec<[f64; 3]>),
}

/// One curve of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in legend, read-out and CSV. Series of the same name are one entry of the legend (a
    /// line and its band).
    pub name: String,
    /// The contestant's colour.
    pub color: Color,
    /// The data.
    pub shape: Shape,
}

impl Series {
    /// A curve of straight lines.
    #[must_use]
    pub fn line(name: impl Into<String>, color: Color, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), color, shape: Shape::Line(points) }
    }

    /// A curve of steps.
    #[must_use]
    pub fn steps(name: impl Into<String>, color: Color, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), color, shape: Shape::Steps(points) }
    }

    /// Dots.
    #[must_use]
    pub fn points(name: impl Into<String>, color: Color, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), color, shape: Shape::Points(points) }
    }

    /// An area.
    #[must_use]
    pub fn band(name: impl Into<String>, color: Color, points: Vec<[f64; 3]>) -> Self {
        Self { name: name.into(), color, shape: Shape::Band(points) }
    }
}

/// Across or upright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A line at a value of the y axis.
    Horizontal,
    /// A line at a value of the x axis.
    Vertical,
}

/// A labelled line across the figure: a capacity, a threshold, a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// Across or upright.
    pub direction: Direction,
    /// Where, in the unit of its axis.
    pub at: f64,
    /// What it is.
    pub label: String,
    /// The contestant it belongs to; grey when `None`.
    pub color: Option<Color>,
}

/// Where the names of the series stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Legend {
    /// In rows above the plot.
    #[default]
    Above,
    /// Beside the right end of each curve.
    AtCurves,
    /// Beside the first dot of each cloud; names of curves in rows above the plot.
    AtPoints,
    /// Nowhere.
    None,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, drawn in this order.
    pub series: Vec<Series>,
    /// Lines with a meaning.
    pub markers: Vec<Marker>,
    /// Where the names of the series stand.
    pub legend: Legend,
    /// What is seen, in a sentence; empty for none.
    pub caption: String,
    /// The exact command that makes this figure; empty for none.
    pub command: String,
}

impl Figure {
    /// A figure without series yet.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Adds a line across the figure at a value of the y axis.
    pub fn mark_y(&mut self, at: f64, label: impl Into<String>) {
        self.markers.push(Marker { direction: Direction::Horizontal, at, label: label.into(), color: None });
    }

    /// Adds an upright line at a value of the x axis.
    pub fn mark_x(&mut self, at: f64, label: impl Into<String>) {
        self.markers.push(Marker { direction: Direction::Vertical, at, label: label.into(), color: None });
    }
}
