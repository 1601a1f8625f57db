//! Drawing one figure: where everything goes, and the SVG text for it.

use std::fmt::Write as _;

use super::labels::{Area, place};
use super::legend::{Entry, at_its_dot, beside, curve_labels, entries, legend};
use super::path::{Plot, data, reduce, values};
use super::point_labels::point_labels;
use super::shared::{BOLD, LEADING, SMALL, TEXT, coordinate, dashes, text};
use super::text_width::{fit, width, wrap};
use super::{shade, style};
use crate::axis::{Fitted, Ticks, superscript};
use crate::figure::{Axis, Direction, Figure, Legend, Marker, Series, Shape};
use crate::overlap;
use crate::text::escape;

/// Fonts of the reader's system.
const FONT: &str = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";
/// Fixed-width fonts for commands.
const FIXED_FONT: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";

/// Font sizes in pixels.
const TITLE: f64 = 17.0;
const COMMAND: f64 = 10.5;
/// Width of a character of a fixed-width font in units of its size.
const FIXED_EM: f64 = 0.61;

/// Widths of curves and dots, in pixels.
const LINE: f64 = 1.8;
const DOT: f64 = 4.5;

/// Least distance between the centres of two tick labels of the y axis.
const TICK_ROOM: f64 = 34.0;

/// How a figure is to look.
pub(crate) struct Look {
    width: f64,
    plot_height: f64,
    padding: f64,
    standalone: bool,
    columns: usize,
}

impl Look {
    /// A file of its own.
    pub(crate) const fn standalone() -> Self {
        Self { width: 800.0, plot_height: 360.0, padding: 20.0, standalone: true, columns: 1600 }
    }

    /// A part of a page, which shows title, caption and command itself; curves get this many
    /// columns of points.
    pub(crate) const fn embedded(columns: usize) -> Self {
        Self { width: 640.0, plot_height: 270.0, padding: 2.0, standalone: false, columns }
    }
}

/// A drawn figure.
pub(crate) struct Drawn {
    /// The SVG element.
    pub(crate) svg: String,
    /// Its width and height in pixels.
    pub(crate) size: [f64; 2],
    /// The fitted horizontal axis and the vertical one.
    pub(crate) x: Fitted,
    pub(crate) y: Fitted,
    /// What was drawn of each series.
    pub(crate) shapes: Vec<Shape>,
    /// Dashes of series that lie upon others; empty for none.
    pub(crate) dashes: Vec<String>,
}

/// Draws a figure.
pub(crate) fn draw(figure: &Figure, look: &Look) -> Drawn {
    let inner = look.width - 2.0 * look.padding;
    let (x, y) = fit_axes(figure);
    let entries = entries(figure);

    // Above the plot: title, caption, legend, name of the y axis.
    let mut head = String::new();
    let mut top = look.padding;
    if look.standalone {
        for line in wrap(&figure.title, TITLE * BOLD, inner) {
            top += TITLE * 1.15;
            text(&mut head, "ink", look.padding, top, TITLE, "start", "font-weight=\"600\"", &line);
        }
        for line in wrap(&figure.caption, TEXT, inner) {
            top += TEXT * LEADING;
            text(&mut head, "faint", look.padding, top, TEXT, "start", "", &line);
        }
        top += 8.0;
    }
    let beside = (figure.legend == Legend::AtCurves)
        .then(|| beside(figure, &entries, &x, &y, [look.width, look.plot_height]))
        .flatten();
    let legend_shown = match figure.legend {
        Legend::Above => true,
        Legend::AtCurves => beside.is_none(),
        Legend::AtPoints => true,
        Legend::None => false,
    };
    let above: Vec<&Entry<'_>> = entries.iter().filter(|entry| !at_its_dot(figure, entry)).collect();
    if legend_shown && !above.is_empty() {
        top = legend(&mut head, &above, look.padding, top, inner);
    }
    let y_ticks = y.ticks((look.plot_height / TICK_ROOM) as usize);
    top += TEXT * LEADING;
    text(&mut head, "faint", look.padding, top - 2.0, TEXT, "start", "", &axis_title(&figure.y, &y_ticks, inner));
    top += 8.0;

    // The plot between the labels of the y axis and those at the curves.
    let widest = y_ticks.ticks.iter().map(|tick| width(&tick.label, SMALL)).fold(0.0, f64::max);
    let left = look.padding + widest + 8.0;
    let right_room = beside.as_ref().map_or(0.0, |labels| labels.room);
    let x_ticks = if figure.x.places.is_empty() {
        x_ticks(&x, look.width - look.padding - left - right_room)
    } else {
        Ticks { ticks: Vec::new(), factor: 0 }
    };
    let last_label = x_ticks.ticks.last().map_or(0.0, |tick| width(&tick.label, SMALL) / 2.0 + 1.0);
    let plot_width = (look.width - look.padding - left - right_room.max(last_label)).max(40.0);
    let plot = Plot { x, y, width: plot_width, height: look.plot_height };
    let shapes: Vec<Shape> =
        figure.series.iter().map(|series| reduce(figure, &plot, look.columns, &series.shape)).collect();

    let mut body = String::new();
    axes(&mut body, &plot, &x_ticks, &y_ticks);
    let _ = write!(
        body,
        "<svg class=\"plot\" x=\"-2\" y=\"-2\" width=\"{w}\" height=\"{h}\" viewBox=\"-2 -2 {w} {h}\">",
        w = coordinate(plot.width + 4.0),
        h = coordinate(plot.height + 4.0),
    );
    marker_lines(&mut body, figure, &plot);
    let overlaps = overlap::dashes(figure, &plot.x, &plot.y);
    for ((series, shape), dashes) in figure.series.iter().zip(&shapes).zip(&overlaps) {
        match figure.x.window {
            Some(window) => curve(&mut body, &plot, series, &seen(shape, window), dashes),
            None => curve(&mut body, &plot, series, shape, dashes),
        }
    }
    marker_labels(&mut body, figure, &plot);
    if figure.legend == Legend::AtPoints {
        point_labels(&mut body, figure, &plot);
    }
    body.push_str("</svg>");
    if let Some(labels) = &beside {
        curve_labels(&mut body, &entries, labels, &plot);
    }
    let names = place_names(&mut body, &figure.x.places, &plot);
    let mut below = plot.height + 18.0 + TEXT * LEADING + SMALL * LEADING * names.saturating_sub(1) as f64;
    text(&mut body, "faint", plot.width, below, TEXT, "end", "", &axis_title(&figure.x, &x_ticks, plot_width));

    // Below it: the command.
    let mut foot = String::new();
    if look.standalone && !figure.command.is_empty() {
        below += 10.0;
        let per_line = (inner / (COMMAND * FIXED_EM)) as usize;
        for line in crate::text::wrap(&figure.command, per_line) {
            below += COMMAND * LEADING;
            let family = format!("font-family=\"{FIXED_FONT}\"");
            text(&mut foot, "faint", look.padding, top + below, COMMAND, "start", &family, &line);
        }
    }
    let height = (top + below + 5.0 + look.padding).ceil();
    let svg = wrap_up(figure, look, height, &head, &format!("{}{body}</g>{foot}", group(left, top)));
    Drawn { svg, size: [look.width, height], x: plot.x, y: plot.y, shapes, dashes: overlaps }
}

/// The `<svg>` element around everything.
fn wrap_up(figure: &Figure, look: &Look, height: f64, head: &str, body: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" role=\"img\" viewBox=\"0 0 {w} {height}\" \
         width=\"{w}\" height=\"{height}\" font-family=\"{FONT}\" aria-label=\"{}\">",
        escape(&figure.title),
        w = look.width,
    );
    if look.standalone {
        let _ = write!(
            svg,
            "<title>{}</title><style>{}</style><rect width=\"{}\" height=\"{height}\" rx=\"8\" {}/>",
            escape(&figure.title),
            style(),
            look.width,
            shade("paper")
        );
    }
    svg + head + body + "</svg>"
}

/// Axes that hold all series and markers.
fn fit_axes(figure: &Figure) -> (Fitted, Fitted) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    let seen = |x: f64| figure.x.window.is_none_or(|[from, to]| (from..=to).contains(&x));
    for series in &figure.series {
        let (x, y) = values(&series.shape, figure.y.scale);
        // Bands have two values at a place.
        let per_place = y.len() / x.len().max(1);
        ys.extend(y.iter().enumerate().filter(|(i, _)| per_place == 0 || seen(x[i / per_place])).map(|(_, y)| *y));
        xs.extend(x);
    }
    for marker in &figure.markers {
        match marker.direction {
            Direction::Horizontal => ys.push(marker.at),
            Direction::Vertical => xs.push(marker.at),
        }
    }
    let cloud = figure.series.iter().any(|series| matches!(series.shape, Shape::Points(_)));
    let x = match figure.x.window {
        Some([from, to]) => figure.x.clone().range(from, to),
        None => figure.x.clone(),
    };
    (Fitted::new(&x, xs.into_iter(), !cloud), Fitted::new(&figure.y, ys.into_iter(), false))
}

/// As many ticks as labels fit side by side.
fn x_ticks(x: &Fitted, room: f64) -> Ticks {
    let mut most = (room / 45.0) as usize;
    loop {
        let ticks = x.ticks(most);
        let labels: Vec<(f64, f64)> = ticks
            .ticks
            .iter()
            .filter(|tick| !tick.label.is_empty())
            .map(|tick| (x.place(tick.value) * room, width(&tick.label, SMALL)))
            .collect();
        if most <= 2 || labels.windows(2).all(|pair| pair[1].0 - pair[0].0 >= (pair[0].1 + pair[1].1) / 2.0 + 10.0) {
            return ticks;
        }
        most -= 1;
    }
}

/// The names below a horizontal axis, each as wide as its place. Returns how many lines they take.
fn place_names(out: &mut String, places: &[String], plot: &Plot) -> usize {
    let room = plot.across(1.0) - plot.across(0.0) - 6.0;
    let mut most = 0;
    for (place, name) in places.iter().enumerate() {
        let lines = wrap(name, SMALL, room);
        for (line, words) in lines.iter().enumerate() {
            let down = plot.height + 18.0 + SMALL * LEADING * line as f64;
            text(out, "faint", plot.across(place as f64), down, SMALL, "middle", "", &fit(words, SMALL, room));
        }
        most = most.max(lines.len());
    }
    most
}

/// Name, factor and unit of an axis: `Delivered (10⁶ byte)`.
fn axis_title(axis: &Axis, ticks: &Ticks, room: f64) -> String {
    let factor = if ticks.factor == 0 { String::new() } else { format!("10{}", superscript(ticks.factor)) };
    let unit = [factor.as_str(), axis.unit.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let title = if unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, unit.join(" ")) };
    fit(&title, TEXT, room)
}

/// Grid, ticks and their labels.
fn axes(out: &mut String, plot: &Plot, x_ticks: &Ticks, y_ticks: &Ticks) {
    let (w, h) = (coordinate(plot.width), coordinate(plot.height));
    let mut grid = String::new();
    let mut ticks = String::new();
    let mut labels = String::new();
    for tick in &x_ticks.ticks {
        let x = coordinate(plot.across(tick.value));
        if tick.label.is_empty() {
            let _ = write!(ticks, "M{x} {h}v3");
        } else {
            let _ = write!(grid, "M{x} 0V{h}");
            let _ = write!(ticks, "M{x} {h}v5");
            text(&mut labels, "faint", plot.across(tick.value), plot.height + 18.0, SMALL, "middle", "", &tick.label);
        }
    }
    for tick in &y_ticks.ticks {
        let y = coordinate(plot.down(tick.value));
        if tick.label.is_empty() {
            let _ = write!(ticks, "M0 {y}h-3");
        } else {
            let _ = write!(grid, "M0 {y}H{w}");
            text(&mut labels, "faint", -8.0, plot.down(tick.value) + SMALL * 0.35, SMALL, "end", "", &tick.label);
        }
    }
    let _ = write!(out, "<path {} d=\"{grid}\" fill=\"none\"/>", shade("grid"));
    let _ = write!(out, "<path {} d=\"M0 {h}H{w}{ticks}\" fill=\"none\"/>{labels}", shade("rule"));
}

/// One curve, area or cloud.
fn curve(out: &mut String, plot: &Plot, series: &Series, shape: &Shape, overlap: &str) {
    let data = data(plot, shape);
    if data.is_empty() {
        return;
    }
    let look = match shape {
        Shape::Line(_) | Shape::Steps(_) => format!(
            "fill=\"none\" stroke=\"currentColor\" stroke-width=\"{LINE}\" stroke-linejoin=\"round\" \
             stroke-linecap=\"{}\"{}",
            // Round ends would fill the gaps of short dashes.
            if series.color.dashes().is_empty() && overlap.is_empty() { "round" } else { "butt" },
            if overlap.is_empty() { dashes(series.color) } else { format!(" stroke-dasharray=\"{overlap}\"") }
        ),
        Shape::Points(_) => {
            format!(
                "fill=\"none\" stroke=\"currentColor\" stroke-width=\"{DOT}\" stroke-linecap=\"round\" opacity=\".8\""
            )
        }
        Shape::Band(_) => "fill=\"currentColor\" opacity=\".18\"".to_owned(),
    };
    let _ = write!(
        out,
        "<g class=\"series k{}\" color=\"{}\" data-name=\"{}\"><path {look} d=\"{data}\"/></g>",
        series.color.hue(),
        series.color.on_light(),
        escape(&series.name)
    );
}

/// What is seen of a shape, with one point more on both sides that lines lead to.
fn seen(shape: &Shape, [from, to]: [f64; 2]) -> Shape {
    fn cut<const N: usize>(points: &[[f64; N]], from: f64, to: f64) -> Vec<[f64; N]> {
        let first = points.iter().position(|point| point[0] >= from).unwrap_or(points.len());
        let last = points.iter().rposition(|point| point[0] <= to).map_or(0, |last| last + 1);
        points.get(first.saturating_sub(1)..(last + 1).min(points.len())).unwrap_or_default().to_vec()
    }
    match shape {
        Shape::Line(points) => Shape::Line(cut(points, from, to)),
        Shape::Steps(points) => Shape::Steps(cut(points, from, to)),
        Shape::Points(points) => Shape::Points(points.clone()),
        Shape::Band(points) => Shape::Band(cut(points, from, to)),
    }
}

/// Class, attributes and opening of a marker's group.
fn marker_group(marker: &Marker) -> String {
    match marker.color {
        Some(color) => format!("<g class=\"k{}\" color=\"{}\">", color.hue(), color.on_light()),
        None => "<g>".to_owned(),
    }
}

/// Where a marker lies on the plot, if it does.
fn marker_place(marker: &Marker, plot: &Plot) -> Option<f64> {
    let (at, length) = match marker.direction {
        Direction::Horizontal => (plot.down(marker.at), plot.height),
        Direction::Vertical => (plot.across(marker.at), plot.width),
    };
    (marker.at.is_finite() && at.is_finite() && (-0.5..=length + 0.5).contains(&at)).then_some(at)
}

/// The lines of all markers.
fn marker_lines(out: &mut String, figure: &Figure, plot: &Plot) {
    for marker in &figure.markers {
        let Some(at) = marker_place(marker, plot) else { continue };
        let line = match marker.direction {
            Direction::Horizontal => format!("M0 {}h{}", coordinate(at), coordinate(plot.width)),
            Direction::Vertical => format!("M{} 0v{}", coordinate(at), coordinate(plot.height)),
        };
        let stroke = if marker.color.is_some() { "stroke=\"currentColor\"".to_owned() } else { shade("rule") };
        let _ = write!(
            out,
            "{}<path {stroke} d=\"{line}\" fill=\"none\" stroke-width=\"1.2\" stroke-dasharray=\"5 4\"><title>{}</title></path></g>",
            marker_group(marker),
            escape(&marker.label)
        );
    }
}

/// The labels of all markers that find room; the others remain as tooltips of their lines.
fn marker_labels(out: &mut String, figure: &Figure, plot: &Plot) {
    let mut taken = Vec::new();
    for marker in &figure.markers {
        let Some(at) = marker_place(marker, plot) else { continue };
        if marker.label.is_empty() {
            continue;
        }
        let label = fit(&marker.label, SMALL, plot.width * 0.6);
        let (w, h) = (width(&label, SMALL) + 4.0, SMALL * 1.3);
        let area = |left, top| Area { left, top, width: w, height: h };
        let candidates: Vec<Area> = match marker.direction {
            Direction::Horizontal => {
                let (right, above, below) = (plot.width - w - 2.0, at - h - 2.0, at + 2.0);
                vec![area(right, above), area(right, below), area(2.0, above), area(2.0, below)]
            }
            Direction::Vertical => (0..6)
                .flat_map(|row| [(at + 3.0, row), (at - w - 3.0, row)])
                .map(|(left, row)| area(left, 2.0 + f64::from(row) * h))
                .collect(),
        };
        let Some(free) = place(&mut taken, (plot.width, plot.height), candidates) else { continue };
        let fill = if marker.color.is_some() { "fill=\"currentColor\"".to_owned() } else { shade("faint") };
        let (x, y) = (coordinate(free.left + 2.0), coordinate(free.top + SMALL));
        let label = escape(&label);
        // A veil keeps the label readable upon curves.
        let _ = write!(
            out,
            "{}<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" opacity=\".8\" {}/>\
             <text x=\"{x}\" y=\"{y}\" font-size=\"{SMALL}\" {fill}>{label}</text></g>",
            marker_group(marker),
            coordinate(free.left),
            coordinate(free.top),
            coordinate(free.width),
            coordinate(free.height),
            shade("paper"),
        );
    }
}

/// The opening of a group moved to a place.
fn group(x: f64, y: f64) -> String {
    format!("<g transform=\"translate({} {})\">", coordinate(x), coordinate(y))
}
