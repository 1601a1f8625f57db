//! Pictures of a figure: what is to be drawn, and what comes of it.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_probing::Part;
use flowstart_units::{Rate, Span};

use super::measure::Measure;
use super::variants::Levels;

/// What is drawn from which variants.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureSpec {
    /// What is drawn.
    pub kind: PictureKind,
    /// Its heading.
    pub title: String,
    /// What is seen, in a sentence.
    #[serde(default)]
    pub caption: String,
    /// The variants: names of levels; of a factor of which none is named, all.
    #[serde(default)]
    pub of: Levels,
    /// Names of factors that get a picture per level; the others share one.
    #[serde(default)]
    pub apart: Vec<String>,
    /// A curve for every flow instead of one for all (`throughput`, `window`).
    #[serde(default)]
    pub each_flow: bool,
    /// Only these flows, by name.
    #[serde(default)]
    pub flows: Vec<String>,
    /// From this time of the run on.
    #[serde(default)]
    pub from: Option<Span>,
    /// Up to this time.
    #[serde(default)]
    pub until: Option<Span>,
    /// Length of the moving average of a throughput; default: one base RTT.
    #[serde(default)]
    pub over: Option<Span>,
    /// Logarithmic axis of delays (`queue_delay_distribution`).
    #[serde(default)]
    pub log: bool,
    /// Only these probing rates (`delay_ccdf`, `delay_parts`, `window_correlation`); default: all.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// These parts of the delay (`delay_ccdf`, `delay_parts`, `waiting_share`); default: the total.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// What is averaged over the variants (`by_level`).
    #[serde(default)]
    pub measure: Option<Measure>,
    /// The factor whose levels are the points (`by_level`) or rows (`confusion`).
    #[serde(default)]
    pub by: Option<String>,
    /// The factor whose levels are the curves (`by_level`), or further rows (`confusion`).
    #[serde(default)]
    pub curve: Option<String>,
}

/// Kinds of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PictureKind {
    /// Throughput at the bottleneck over time, first run.
    Throughput,
    /// Longest wait at the bottleneck over time, first run.
    QueueDelay,
    /// Congestion window over time, first run.
    Window,
    /// Completion time against size: every transfer of all runs, and the medians of size classes.
    CompletionBySize,
    /// Distribution of the waits at the bottleneck, first run.
    QueueDelayDistribution,
    /// By probing: attainable rate against the length of the interval, `from` to `until`.
    AttainableRate,
    /// By probing: the service curve, `from` to `until`; of a static window its fluid form too.
    ServiceCurve,
    /// By probing: share of messages with a longer delay, against the delay.
    DelayCcdf,
    /// By probing: delays of the first messages after the warm-up, over time.
    DelayParts,
    /// By probing: share of messages whose delay in a part is above its least, against the probing
    /// rate.
    WaitingShare,
    /// By probing: autocorrelation of the congestion window, up to `until`; of several runs the
    /// mean and its 95 % interval.
    WindowCorrelation,
    /// By probing: delay bounds of the film's frames over time.
    FilmBound,
    /// By probing a loop: delay bounds of the packets of a film that is sent through it, over time,
    /// and the delay that each exceeds with the curve's probability, over many replays.
    FilmReplay,
    /// The mean of a `measure` over all variants that have the same level of the factor `by`,
    /// against the number in that level's title; all runs.
    ByLevel,
    /// How often detectors of fair queuing gave which answer, for every level of the factors `by`
    /// and `curve`; all runs.
    Confusion,
}

impl PictureKind {
    /// True if its numbers are also shown as a table.
    #[must_use]
    pub fn is_table(self) -> bool {
        self == Self::Confusion
    }

    /// True if it is made from probes at several rates instead of a simulation.
    pub(super) fn is_probing(self) -> bool {
        use PictureKind::{AttainableRate, DelayCcdf, DelayParts, FilmBound, ServiceCurve, WaitingShare};
        matches!(self, AttainableRate | DelayCcdf | DelayParts | FilmBound | ServiceCurve | WaitingShare)
            || self == Self::WindowCorrelation
            || self.replays()
    }

    /// True if a film must be sent through a loop many times.
    pub(super) fn replays(self) -> bool {
        self == Self::FilmReplay
    }

    /// True if it is made from all runs instead of the first.
    pub(super) fn takes_all_runs(self) -> bool {
        matches!(self, Self::CompletionBySize | Self::ByLevel | Self::WindowCorrelation | Self::Confusion)
    }
}

/// How a curve is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// Connected.
    Line,
    /// Dots.
    Points,
    /// The area between the points, at each of which it begins, and as many values at which it
    /// ends.
    Band(Vec<f64>),
    /// Bars, those of all curves on top of each other.
    Bars,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it shows. Curves of the same name belong together.
    pub name: String,
    /// How it is drawn.
    pub drawn: Drawn,
    /// Its points in the units of the axes.
    pub points: Vec<[f64; 2]>,
}

/// An axis: what it shows, its unit, whether it is logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureAxis {
    /// What is shown.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Equal ratios have equal lengths.
    pub log: bool,
}

/// A picture with its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Number of its description in the file.
    pub spec: usize,
    /// Heading, with the levels it is about if there are several pictures of a kind.
    pub title: String,
    /// The sentence below.
    pub caption: String,
    /// Across.
    pub x: PictureAxis,
    /// Upright.
    pub y: PictureAxis,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Names of the places 0, 1, … across, where they are not numbers.
    pub places: Vec<String>,
}
