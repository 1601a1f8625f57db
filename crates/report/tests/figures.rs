//! Figures as SVG: well-formed whatever the data, and what a reader should see.

use flowstart_report::{Axis, Direction, Figure, Legend, Marker, Palette, Series, side_by_side};
use proptest::prelude::*;

/// Parses the drawing and checks that no coordinate is broken.
fn parse(svg: &str) -> roxmltree::Document<'_> {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    for node in document.descendants() {
        for attribute in node.attributes().filter(|attribute| !matches!(attribute.name(), "data-name" | "aria-label")) {
            for broken in ["NaN", "inf", "–"] {
                assert!(!attribute.value().contains(broken), "{attribute:?}");
            }
        }
    }
    document
}

/// All text of the drawing.
fn words(svg: &str) -> Vec<String> {
    let document = parse(svg);
    document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_figure_shows_its_title_axes_with_units_names_and_command() {
    let mut palette = Palette::new();
    let mut figure = Figure::new("Queue", Axis::new("Time", "ms"), Axis::new("Queueing delay", "ms"));
    figure.command = "flowstart compare --seed 1".into();
    figure.caption = "At the bottleneck.".into();
    figure.series.push(Series::line("cubic", palette.color("cubic"), vec![[0.0, 1.0], [100.0, 3.0]]));
    figure.series.push(Series::steps("reno", palette.color("reno"), vec![[0.0, 2.0], [100.0, 2.0]]));
    figure.mark_y(2.5, "threshold");
    figure.mark_x(50.0, "exit");
    let words = words(&figure.to_svg());
    for expected in
        ["Queue", "At the bottleneck.", "Time (ms)", "Queueing delay (ms)", "cubic", "reno", "threshold", "exit", "100"]
    {
        assert!(words.iter().any(|word| word == expected), "{expected} in {words:?}");
    }
    assert!(words.iter().any(|word| word.starts_with("flowstart compare")));
}

#[test]
fn an_axis_of_names_shows_them_broken_between_words_and_no_numbers() {
    let names = ["shared queue, alone", "fair queuing, beside datagrams", "x"].map(str::to_owned).to_vec();
    let mut figure = Figure::new("Answers", Axis::new("The queue", "").named(names), Axis::new("Answers", "%"));
    figure.y = figure.y.range(0.0, 100.0);
    figure.series.push(Series::band("right", Palette::new().color("right"), vec![[-0.3, 0.0, 90.0], [0.3, 0.0, 90.0]]));
    let shown = words(&figure.to_svg());
    for name in ["shared queue, alone", "fair queuing, beside datagrams"] {
        let found = shown.join(" ");
        assert!(found.contains(name), "{found}");
    }
    assert!(!shown.iter().any(|word| word == "0.5" || word == "1.5"), "{shown:?}");
}

#[test]
fn figures_beside_each_other_do_not_overlap() {
    let figures: Vec<Figure> =
        (0..3).map(|k| Figure::new(format!("figure {k}"), Axis::new("x", ""), Axis::new("y", ""))).collect();
    let svg = side_by_side(&[vec![&figures[0], &figures[1]], vec![&figures[2]]]);
    let document = parse(&svg);
    let number = |node: &roxmltree::Node<'_, '_>, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let mut boxes = Vec::new();
    for part in document.root_element().children() {
        let moved = part.attribute("transform").unwrap().trim_start_matches("translate(").trim_end_matches(')');
        let (x, y) = moved.split_once(' ').unwrap();
        let inner = part.first_element_child().unwrap();
        boxes.push((
            x.parse::<f64>().unwrap(),
            y.parse::<f64>().unwrap(),
            number(&inner, "width"),
            number(&inner, "height"),
        ));
    }
    let [one, two, three] = boxes[..] else { panic!("{boxes:?}") };
    assert_eq!((one.0, one.1, two.1, three.0), (0.0, 0.0, 0.0, 0.0));
    assert_eq!((two.0, three.1), (one.2, one.3.max(two.3)));
    assert_eq!(number(&document.root_element(), "width"), two.0 + two.2);
    assert_eq!(number(&document.root_element(), "height"), three.1 + three.3);
}

#[test]
fn the_same_contestant_has_the_same_colour_in_every_figure() {
    let mut palette = Palette::new();
    let (cubic, reno) = (palette.color("cubic"), palette.color("reno"));
    let mut one = Figure::new("one", Axis::new("x", ""), Axis::new("y", ""));
    one.series.push(Series::line("cubic", cubic, vec![[0.0, 1.0]]));
    let mut other = Figure::new("other", Axis::new("x", ""), Axis::new("y", ""));
    other.series.push(Series::line("reno", reno, vec![[0.0, 1.0]]));
    other.series.push(Series::line("cubic", cubic, vec![[0.0, 1.0]]));
    let color = |svg: &str| {
        let document = parse(svg);
        let curve = |node: &roxmltree::Node<'_, '_>| {
            node.attribute("data-name") == Some("cubic")
                && node.attribute("class").is_some_and(|c| c.starts_with("series"))
        };
        document.descendants().find(curve).and_then(|node| node.attribute("color")).map(str::to_owned)
    };
    assert_eq!(color(&one.to_svg()), Some(cubic.on_light()));
    assert_eq!(color(&one.to_svg()), color(&other.to_svg()));
}

#[test]
fn a_line_and_its_band_are_one_entry_of_the_legend() {
    let color = Palette::new().color("cubic");
    let mut figure = Figure::new("t", Axis::new("x", ""), Axis::new("y", ""));
    figure.series.push(Series::band("cubic", color, vec![[0.0, 1.0, 2.0], [1.0, 1.0, 2.0]]));
    figure.series.push(Series::line("cubic", color, vec![[0.0, 1.5], [1.0, 1.5]]));
    assert_eq!(words(&figure.to_svg()).iter().filter(|word| *word == "cubic").count(), 1);
}

#[test]
fn names_that_do_not_fit_beside_the_curves_move_above_the_plot() {
    let mut palette = Palette::new();
    let mut figure = Figure::new("t", Axis::new("x", ""), Axis::new("y", ""));
    figure.legend = Legend::AtCurves;
    for i in 0..60 {
        let name = format!("contestant {i}");
        figure.series.push(Series::line(name.clone(), palette.color(&name), vec![[0.0, f64::from(i)]]));
    }
    assert_eq!(words(&figure.to_svg()).iter().filter(|word| word.starts_with("contestant")).count(), 60);
}

#[test]
fn dots_at_the_same_place_are_all_named_beside_it() {
    let mut palette = Palette::new();
    let mut figure = Figure::new("t", Axis::new("x", ""), Axis::new("y", ""));
    figure.legend = Legend::AtPoints;
    for i in 0..8 {
        let name = format!("contestant {i}");
        figure.series.push(Series::points(name.clone(), palette.color(&name), vec![[1.0, 1.0]]));
    }
    figure.series.push(Series::steps("front", palette.color("front"), vec![[0.0, 2.0], [1.0, 1.0]]));
    let words = words(&figure.to_svg());
    assert_eq!(words.iter().filter(|word| word.starts_with("contestant")).count(), 8, "{words:?}");
    assert_eq!(words.iter().filter(|word| *word == "front").count(), 1);
}

#[test]
fn a_figure_without_data_still_has_axes() {
    let figure = Figure::new("", Axis::new("", ""), Axis::new("", "").log());
    assert!(words(&figure.to_svg()).iter().any(|word| word == "10"));
}

#[test]
fn a_million_points_make_a_small_drawing() {
    let color = Palette::new().color("cubic");
    let mut figure = Figure::new("t", Axis::new("x", "s"), Axis::new("y", ""));
    let point = |i: u32| [f64::from(i) * 1e-6, f64::from(i.wrapping_mul(2_654_435_761) >> 8)];
    figure.series.push(Series::line("cubic", color, (0..1_000_000).map(point).collect()));
    assert!(figure.to_svg().len() < 100_000);
}

fn any_series() -> impl Strategy<Value = (u8, Vec<[f64; 3]>)> {
    let value = || prop_oneof![4 => any::<f64>(), 4 => -1e3..1e3f64, 1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)];
    (0..4u8, proptest::collection::vec((value(), value(), value()).prop_map(|(a, b, c)| [a, b, c]), 0..40))
}

proptest! {
    #[test]
    fn whatever_the_data_and_the_names_the_drawing_is_well_formed(
        title in ".{0,40}", label in ".{0,20}", name in ".{0,40}",
        all in proptest::collection::vec(any_series(), 0..5),
        (log_x, log_y) in any::<(bool, bool)>(),
        legend in 0..4u8,
        marks in proptest::collection::vec((any::<bool>(), any::<f64>(), ".{0,20}"), 0..4),
        ends in proptest::option::of((any::<f64>(), any::<f64>())),
    ) {
        let mut palette = Palette::new();
        let mut x = Axis::new(label.clone(), "ms");
        let mut y = Axis::new(label, "");
        if log_x { x = x.log(); }
        if log_y { y = y.log(); }
        if let Some((low, high)) = ends { y = y.range(low, high); }
        let mut figure = Figure::new(title.clone(), x, y);
        figure.caption = title.clone();
        figure.command = title;
        figure.legend = [Legend::Above, Legend::AtCurves, Legend::AtPoints, Legend::None][usize::from(legend)];
        for (i, (kind, points)) in all.into_iter().enumerate() {
            let name = format!("{name}{i}");
            let color = palette.color(&name);
            let pairs = || points.iter().map(|[x, y, _]| [*x, *y]).collect();
            figure.series.push(match kind {
                0 => Series::line(name, color, pairs()),
                1 => Series::steps(name, color, pairs()),
                2 => Series::points(name, color, pairs()),
                _ => Series::band(name, color, points),
            });
        }
        for (across, at, label) in marks {
            let direction = if across { Direction::Horizontal } else { Direction::Vertical };
            figure.markers.push(Marker { direction, at, label, color: None });
        }
        parse(&figure.to_svg());
    }
}
