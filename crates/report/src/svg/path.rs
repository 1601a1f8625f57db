//! Curves as SVG path data: relative steps in tenths of a pixel, the shortest form that stays
//! exact.

use crate::axis::{Fitted, drawable};
use crate::downsample::{Extent, keep_extremes, thin_cloud};
use crate::figure::{Figure, Scale, Shape};

/// How far outside of the plot a coordinate may lie, in widths or heights of it: far enough to keep
/// slopes.
const FAR: f64 = 20.0;

/// Side of the cells in which one point of a cloud remains, in pixels.
const CLOUD_CELL: f64 = 2.0;

/// Where values go: from both axes to pixels of the plot, the origin at its upper left corner.
pub(crate) struct Plot {
    pub(crate) x: Fitted,
    pub(crate) y: Fitted,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Plot {
    /// The pixel column of a value of the x axis.
    pub(crate) fn across(&self, x: f64) -> f64 {
        self.x.place(x).clamp(-FAR, FAR) * self.width
    }

    /// The pixel row of a value of the y axis.
    pub(crate) fn down(&self, y: f64) -> f64 {
        (1.0 - self.y.place(y).clamp(-FAR, FAR)) * self.height
    }
}

/// The shape with as few points as draw the same in `columns` columns; what the axes cannot show
/// becomes a gap.
pub(crate) fn reduce(figure: &Figure, plot: &Plot, columns: usize, shape: &Shape) -> Shape {
    let place = |x| plot.x.place(x);
    let pair = |[x, y]: [f64; 2]| if shown(figure, x, &[y]) { [x, y] } else { [x, f64::NAN] };
    match shape {
        Shape::Line(points) => Shape::Line(keep_extremes(&cleaned(points, pair), columns, place)),
        Shape::Steps(points) => Shape::Steps(keep_extremes(&cleaned(points, pair), columns, place)),
        Shape::Band(points) => {
            let triple = |[x, a, b]: [f64; 3]| {
                if shown(figure, x, &[a, b]) { [x, a.min(b), a.max(b)] } else { [x, f64::NAN, f64::NAN] }
            };
            Shape::Band(keep_extremes(&cleaned(points, triple), columns, place))
        }
        Shape::Points(points) => {
            #[expect(clippy::cast_possible_truncation, reason = "saturates, and the plot has a few thousand pixels")]
            let cell = |[x, y]: [f64; 2]| ((plot.across(x) / CLOUD_CELL) as i32, (plot.down(y) / CLOUD_CELL) as i32);
            Shape::Points(thin_cloud(&cleaned(points, pair), cell))
        }
    }
}

/// Whether the axes have a place for a point.
fn shown(figure: &Figure, x: f64, ys: &[f64]) -> bool {
    drawable(figure.x.scale, x) && ys.iter().all(|&y| drawable(figure.y.scale, y))
}

fn cleaned<P: Extent>(points: &[P], clean: impl Fn(P) -> P) -> Vec<P> {
    points.iter().map(|&point| clean(point)).collect()
}

/// Lowest and highest values of a shape along both axes, for fitting the axes.
pub(crate) fn values(shape: &Shape, scale: Scale) -> (Vec<f64>, Vec<f64>) {
    match shape {
        Shape::Line(points) | Shape::Steps(points) | Shape::Points(points) => {
            points.iter().filter(|[_, y]| drawable(scale, *y)).map(|[x, y]| (*x, *y)).unzip()
        }
        Shape::Band(points) => {
            let places = points.iter().map(|[x, ..]| *x).collect();
            (places, points.iter().flat_map(|[_, low, high]| [*low, *high]).collect())
        }
    }
}

/// Path data of a reduced shape.
pub(crate) fn data(plot: &Plot, shape: &Shape) -> String {
    let mut pen = Pen::default();
    match shape {
        Shape::Line(points) => {
            for run in runs(points) {
                pen.curve(run.iter().map(|[x, y]| [plot.across(*x), plot.down(*y)]));
            }
        }
        Shape::Steps(points) => {
            for run in runs(points) {
                let mut before = None;
                pen.curve(run.iter().flat_map(|[x, y]| {
                    let here = [plot.across(*x), plot.down(*y)];
                    let corner = before.map(|[_, y]: [f64; 2]| [here[0], y]);
                    before = Some(here);
                    corner.into_iter().chain([here])
                }));
            }
        }
        Shape::Points(points) => {
            for [x, y] in points {
                pen.curve([[plot.across(*x), plot.down(*y)]].into_iter());
            }
        }
        Shape::Band(points) => {
            for run in runs(points) {
                let above = run.iter().map(|[x, _, high]| [plot.across(*x), plot.down(*high)]);
                let below = run.iter().rev().map(|[x, low, _]| [plot.across(*x), plot.down(*low)]);
                pen.curve(above.chain(below));
                pen.out.push('z');
                pen.at = pen.start;
            }
        }
    }
    pen.out
}

/// The stretches between gaps.
fn runs<P: Extent>(points: &[P]) -> impl Iterator<Item = &[P]> {
    points.split(|point| !point.is_finite()).filter(|run| !run.is_empty())
}

/// Writes relative path data; it counts in whole tenths of a pixel so that rounding never adds up.
#[derive(Default)]
struct Pen {
    out: String,
    at: [i64; 2],
    start: [i64; 2],
}

impl Pen {
    /// A curve through points; a single one becomes a segment of no length, which round line caps
    /// make a dot.
    fn curve(&mut self, points: impl Iterator<Item = [f64; 2]>) {
        let mut drawn = 0;
        for (i, point) in points.enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "saturates; coordinates are bounded")]
            let to = point.map(|coordinate| (coordinate * 10.0).round() as i64);
            let step = [to[0] - self.at[0], to[1] - self.at[1]];
            if i == 0 {
                self.out.push('m');
                self.pair(step);
                self.start = to;
            } else if step != [0, 0] {
                match step {
                    [dx, 0] => self.one('h', dx),
                    [0, dy] => self.one('v', dy),
                    step => {
                        self.out.push('l');
                        self.pair(step);
                    }
                }
                drawn += 1;
            }
            self.at = to;
        }
        if drawn == 0 {
            self.out.push_str("h0");
        }
    }

    fn pair(&mut self, [dx, dy]: [i64; 2]) {
        self.out.push_str(&tenths(dx));
        let dy = tenths(dy);
        if !dy.starts_with('-') {
            self.out.push(' ');
        }
        self.out.push_str(&dy);
    }

    fn one(&mut self, command: char, step: i64) {
        self.out.push(command);
        self.out.push_str(&tenths(step));
    }
}

/// Tenths as a decimal number without needless zeros: `-.5`, `12`, `3.4`.
fn tenths(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let (whole, rest) = (value.unsigned_abs() / 10, value.unsigned_abs() % 10);
    match (whole, rest) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, rest) => format!("{sign}.{rest}"),
        (whole, rest) => format!("{sign}{whole}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;

    fn plot() -> Plot {
        let axis = Axis::new("", "").range(0.0, 10.0);
        let fitted = Fitted::new(&axis, std::iter::empty(), true);
        Plot { x: fitted.clone(), y: fitted, width: 100.0, height: 50.0 }
    }

    #[test]
    fn lines_are_relative_steps_and_gaps_lift_the_pen() {
        let line = Shape::Line(vec![[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [3.0, f64::NAN], [4.0, 0.0]]);
        assert_eq!(data(&plot(), &line), "m0 50l10-5h10m20 5h0");
    }

    #[test]
    fn steps_hold_their_value_until_the_next_one() {
        let steps = Shape::Steps(vec![[0.0, 0.0], [1.0, 2.0], [3.0, 0.0]]);
        assert_eq!(data(&plot(), &steps), "m0 50h10v-10h20v10");
    }

    #[test]
    fn a_band_is_closed_and_the_next_one_starts_where_it_began() {
        let band = Shape::Band(vec![[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [2.0, f64::NAN, 0.0], [0.0, 0.0, 1.0]]);
        assert_eq!(data(&plot(), &band), "m0 45h10v5h-10zm0 0v5z");
    }

    #[test]
    fn tenths_are_written_short() {
        assert_eq!([0, 5, -5, 10, -25].map(tenths), ["0", ".5", "-.5", "1", "-2.5"]);
    }
}
