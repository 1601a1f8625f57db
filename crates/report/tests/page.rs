//! The page as one file: escaped, self-contained, small, written completely or not at all.

use std::fs;

use flowstart_report::{Axis, Cell, Column, Figure, Page, Palette, Section, Series, Table};

/// A text that breaks out of everything that is not escaped.
const HOSTILE: &str = "</script></style></title>\"'><img src=x onerror=alert(1)><!--\u{0}\u{1b}]]>&amp;";

/// A page with `text` everywhere.
fn page(text: &str) -> Page {
    let mut palette = Palette::new();
    let mut table = Table::new(text, vec![Column::key(text).help(text), Column::number(text, text).named(text)]);
    table.push_colored(palette.color(text), vec![Cell::text(text), Cell::quantity(1.0, 0.5, 1.5, 1)]);
    table.notes.push(text.into());
    let mut figure = Figure::new(text, Axis::new(text, text), Axis::new(text, text));
    figure.series.push(Series::line(text, palette.color(text), vec![[0.0, 1.0], [1.0, 2.0], [2.0, f64::NAN]]));
    figure.mark_y(1.5, text);
    (figure.caption, figure.command) = (text.into(), text.into());
    Page {
        title: text.into(),
        lead: vec![figure.clone()],
        warnings: vec![text.into()],
        answer: text.into(),
        command: text.into(),
        provenance: vec![(text.into(), text.into())],
        summary: vec![text.into()],
        sections: vec![Section {
            heading: text.into(),
            paragraphs: vec![text.into()],
            tables: vec![table],
            figures: vec![figure],
            folded: true,
        }],
        footnotes: vec![text.into()],
    }
}

/// How often `needle` occurs.
fn count(html: &str, needle: &str) -> usize {
    html.matches(needle).count()
}

#[test]
fn hostile_text_adds_no_element_and_closes_none() {
    let (plain, hostile) = (page("plain").to_html(), page(HOSTILE).to_html());
    for tag in ["<script", "</script", "<style", "</style", "</title", "<!--", "<img", "</svg", "<a "] {
        assert_eq!(count(&hostile, tag), count(&plain, tag), "{tag}");
    }
    assert_eq!(count(&hostile, "onerror=alert(1)>"), 0);
    assert!(hostile.contains("&lt;img src=x onerror=alert(1)&gt;"));
}

#[test]
fn everything_but_the_doctype_line_and_the_void_elements_is_well_formed_xml() {
    let html = page(HOSTILE).to_html();
    let body = html.find("<main>").zip(html.find("</main>")).map(|(from, to)| &html[from..to + "</main>".len()]);
    let body = body.expect("a page has a main part");
    // `hidden` alone is HTML's way to write hidden="".
    let document = body.replace(" hidden>", " hidden=\"\">");
    roxmltree::Document::parse(&document).unwrap_or_else(|error| panic!("{error}\n{document}"));
}

#[test]
fn the_data_of_a_figure_is_json_with_its_names_unchanged() {
    let html = page(HOSTILE).to_html();
    let start = "<script type=\"application/json\" class=\"data\">";
    let from = html.find(start).expect("embedded data") + start.len();
    let data = &html[from..from + html[from..].find("</script>").expect("an end")];
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["series"][0]["name"], HOSTILE);
    assert_eq!(data["series"][0]["x"], 0);
    assert_eq!(data["xs"], serde_json::json!([[0, 1, 2]]));
    assert_eq!(data["series"][0]["y"], serde_json::json!([1, 2, null]));
}

#[test]
fn the_page_loads_nothing_from_anywhere() {
    let html = page("plain").to_html();
    // A name space, and a place in the page itself.
    let addresses = html.replace("http://www.w3.org/2000/svg", "").replace("url(#", "");
    for outside in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert_eq!(count(&addresses, outside), 0, "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn the_command_and_where_the_numbers_come_from_stand_before_the_results() {
    let mut page = page("plain");
    page.command = "flowstart compare --seed 7".into();
    page.provenance = vec![("Seed".into(), "7".into())];
    let html = page.to_html();
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(place("flowstart compare --seed 7") < place("<dt>Seed</dt><dd>7</dd>"));
    assert!(place("<dt>Seed</dt><dd>7</dd>") < place("<section>"));
}

#[test]
fn a_large_race_stays_below_two_megabytes() {
    let mut palette = Palette::new();
    let figure = |title: &str, palette: &mut Palette| {
        let mut figure = Figure::new(title, Axis::new("Time", "ms"), Axis::new(title, "ms"));
        for contestant in 0..7u32 {
            let name = format!("contestant {contestant}");
            let noise = |i: u32| f64::from((i + contestant).wrapping_mul(2_654_435_761) >> 12) * 1e-3;
            let points = (0..100_000).map(|i| [f64::from(i) * 0.0371, noise(i)]).collect();
            figure.series.push(Series::line(name.clone(), palette.color(&name), points));
        }
        figure
    };
    for figures in [4, 10] {
        let figures = (0..figures).map(|i| figure(&format!("figure {i}"), &mut palette)).collect();
        let page = Page { sections: vec![Section { figures, ..Section::default() }], ..Page::default() };
        let size = page.to_html().len();
        assert!(size < 2_000_000, "{size}");
    }
}

#[test]
fn an_empty_page_is_a_page() {
    assert!(Page::default().to_html().ends_with("</html>\n"));
}

#[test]
fn writing_makes_folders_replaces_the_file_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/report.html");
    page("one").write(&path).expect("written");
    page("two").write(&path).expect("written again");
    assert!(fs::read_to_string(&path).expect("readable").contains("<title>two</title>"));
    assert_eq!(fs::read_dir(path.parent().expect("a parent")).expect("a folder").count(), 1);
}
