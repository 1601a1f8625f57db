//! Pictures and the page with everything.

use flowstart_report::{Axis, Figure, Page, Palette, Section, Series, thin_cloud};
use flowstart_reproduce::{Drawn, FigureResult, Paper, PictureAxis};

use super::paper_of;
use super::tables::{citation, claims, remarks, shares, tally};

/// Cells of a cloud of points per factor of ten, in either direction: finer than a dot.
const CELLS_PER_DECADE: f64 = 40.0;

/// The pictures of a figure. A curve has the same colour in all of them.
pub fn figures(result: &FigureResult) -> Vec<Figure> {
    let mut palette = Palette::new();
    let mut figures = Vec::new();
    for picture in &result.pictures {
        let mut figure = Figure::new(&picture.title, axis(picture.x), axis(picture.y));
        figure.caption.clone_from(&picture.caption);
        figure.command = format!("flowstart reproduce {} --out DIR", result.figure.name);
        if !picture.places.is_empty() {
            figure.x = figure.x.named(picture.places.clone());
            figure.y = figure.y.range(0.0, 100.0);
        }
        let mut below = vec![0.0; picture.places.len()];
        for curve in &picture.curves {
            let color = palette.color(&curve.name);
            figure.series.push(match &curve.drawn {
                Drawn::Band(highs) => {
                    let band = curve.points.iter().zip(highs).map(|([x, low], high)| [*x, *low, *high]);
                    Series::band(&curve.name, color, band.collect())
                }
                Drawn::Line => Series::line(&curve.name, color, curve.points.clone()),
                Drawn::Bars => Series::band(&curve.name, color, bars(&curve.points, &mut below)),
                Drawn::Points => Series::points(&curve.name, color, thin_cloud(&curve.points, cell)),
            });
        }
        figures.push(figure);
    }
    figures
}

/// The pictures as rows of one drawing: a column for each kind, or two if there is but one.
pub fn rows<'a>(result: &FigureResult, pictures: &'a [Figure]) -> Vec<Vec<&'a Figure>> {
    let mut kinds: Vec<(usize, Vec<&Figure>)> = Vec::new();
    for (figure, picture) in pictures.iter().zip(&result.pictures) {
        match kinds.iter_mut().find(|(spec, _)| *spec == picture.spec) {
            Some((_, column)) => column.push(figure),
            None => kinds.push((picture.spec, vec![figure])),
        }
    }
    if let [(_, column)] = &kinds[..] {
        return column.chunks(2).map(<[&Figure]>::to_vec).collect();
    }
    let rows = kinds.iter().map(|(_, column)| column.len()).max().unwrap_or(0);
    (0..rows).map(|row| kinds.iter().filter_map(|(_, column)| column.get(row).copied()).collect()).collect()
}

/// Half the width of a bar; places are 1 apart.
const HALF_BAR: f64 = 0.3;

/// Bars on top of those that are there, as areas with gaps between them.
fn bars(points: &[[f64; 2]], below: &mut [f64]) -> Vec<[f64; 3]> {
    let mut area = Vec::new();
    for ([at, height], low) in points.iter().zip(below) {
        let high = *low + height;
        area.extend([[at - HALF_BAR, *low, high], [at + HALF_BAR, *low, high], [at + HALF_BAR, f64::NAN, f64::NAN]]);
        *low = high;
    }
    area
}

/// The cell of a point on logarithmic axes.
fn cell(point: [f64; 2]) -> (i32, i32) {
    let [x, y] = point.map(|value| (value.max(f64::MIN_POSITIVE).log10() * CELLS_PER_DECADE).floor() as i32);
    (x, y)
}

fn axis(axis: PictureAxis) -> Axis {
    let shown = Axis::new(axis.label, axis.unit);
    if axis.log { shown.log() } else { shown }
}

/// The page.
pub fn page(papers: &[Paper], results: &[(&FigureResult, Vec<Figure>)], command: &str) -> Page {
    let all: Vec<FigureResult> = results.iter().map(|(result, _)| (*result).clone()).collect();
    let mut sections = Vec::new();
    let mut footnotes = Vec::new();
    let mut paper = None;
    for (result, figures) in results {
        let figure = &result.figure;
        let of = paper_of(papers, figure);
        let mut paragraphs = Vec::new();
        if let Some(of) = of.filter(|_| of != paper) {
            paragraphs.push(format!("{}.", citation(of)));
            footnotes.extend(of.about.notes.iter().map(|note| format!("{}: {note}", of.name)));
        }
        paper = of;
        paragraphs.push(figure.shows.clone());
        paragraphs.extend(figure.notes.iter().cloned());
        let mut table = claims(result, true);
        table.notes = result.claims.iter().flat_map(remarks).collect();
        let tables = std::iter::once(table).chain(shares(result)).collect();
        sections.push(Section {
            heading: format!("{}: {}", figure.name, figure.title),
            paragraphs,
            tables,
            figures: figures.clone(),
            folded: false,
        });
    }
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let hashes: Vec<String> =
        all.iter().map(|result| format!("{} {}", result.figure.name, result.figure.hash)).collect();
    Page {
        lead: Vec::new(),
        warnings: Vec::new(),
        answer: String::new(),
        title: "What papers claim, and what comes out here".to_owned(),
        command: command.to_owned(),
        provenance: vec![
            pair("flowstart", env!("CARGO_PKG_VERSION").to_owned()),
            pair("scenarios", hashes.join(", ")),
            pair("simulations", all.iter().map(|result| result.simulations).sum::<usize>().to_string()),
        ],
        summary: vec![format!("{}.", tally(all.iter()))],
        sections,
        footnotes,
    }
}
