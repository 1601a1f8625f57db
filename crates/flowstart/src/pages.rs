//! Reports as files: whole pages as HTML or Markdown, single figures as SVG.

use std::path::PathBuf;

use flowstart_report::{Figure, Page};
use flowstart_scenario::nearest;

use crate::args::PageArgs;
use crate::output::{Done, Failure, ending, prepare_file, write_file};

/// Endings of the files that a page can be written as.
const ENDINGS: [&str; 3] = ["html", "md", "svg"];

/// Makes sure, before anything costly is done, that the files can be written.
pub(crate) fn prepare(args: &PageArgs) -> Done {
    figure_is_shown(args.figure.as_deref(), &args.pages)?;
    for file in &args.pages {
        ending(file, &ENDINGS)?;
        prepare_file(file)?;
    }
    Ok(())
}

/// Refuses, before anything costly is done, a file with a figure that the report will not have.
pub(crate) fn will_show(titles: &[String], args: &PageArgs) -> Done {
    let is_picture = |file: &PathBuf| file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    if !args.pages.iter().any(is_picture) {
        return Ok(());
    }
    if titles.is_empty() {
        return Err(Failure::usage("there is no figure in this report"));
    }
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    may_be_chosen(&titles, args)
}

/// Refuses, before anything is run, the name of a figure that no report of this kind has.
pub(crate) fn may_be_chosen(titles: &[&str], args: &PageArgs) -> Done {
    args.figure.as_deref().map_or(Ok(()), |name| chosen(titles, name).map(drop))
}

/// Refuses the name of a figure without a file that shows a single one.
pub(crate) fn figure_is_shown(figure: Option<&str>, files: &[PathBuf]) -> Done {
    match figure {
        Some(name)
            if !files.iter().any(|file| file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"))) =>
        {
            Err(Failure::Usage(format!(
                "--figure {name} says what .svg files show, and none is to be written: name one with --output"
            )))
        }
        _ => Ok(()),
    }
}

/// Writes the files that are asked for, and says so where it disturbs no output.
pub(crate) fn write(page: &Page, args: &PageArgs) -> Done {
    for file in &args.pages {
        let text = match ending(file, &ENDINGS)? {
            "html" => page.to_html(),
            "md" => page.to_markdown(),
            _ => alone(page, args.figure.as_deref())?.to_svg(),
        };
        write_file(file, text.as_bytes())?;
        eprintln!("report: {}", file.display());
    }
    Ok(())
}

/// A figure of a page as a file of its own: the named one, else the first.
pub(crate) fn alone(page: &Page, name: Option<&str>) -> Result<Figure, Failure> {
    let figures: Vec<&Figure> = page.lead.iter().chain(page.sections.iter().flat_map(|s| &s.figures)).collect();
    if figures.is_empty() {
        return Err(Failure::usage("there is no figure in this report"));
    }
    let titles: Vec<&str> = figures.iter().map(|figure| figure.title.as_str()).collect();
    let place = name.map_or(Ok(0), |name| chosen(&titles, name))?;
    let mut figure = figures[place].clone();
    // A file cannot rely on the page around it.
    let from: Vec<String> = page.provenance.iter().take(3).map(|(key, value)| format!("{key} {value}")).collect();
    let separator = if figure.caption.is_empty() { "" } else { " " };
    figure.caption.push_str(&format!("{separator}{}; {}.", page.title, from.join(", ")));
    figure.command.clone_from(&page.command);
    Ok(figure)
}

/// The place of the title that is meant by a name: the title itself, or words of it.
pub(crate) fn chosen(titles: &[&str], name: &str) -> Result<usize, Failure> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], " ");
    let wanted = plain(name);
    let found: Vec<usize> = (0..titles.len()).filter(|place| plain(titles[*place]).contains(&wanted)).collect();
    let exact = (0..titles.len()).find(|place| plain(titles[*place]) == wanted);
    match (exact, found.as_slice()) {
        (Some(place), _) => Ok(place),
        (None, [place]) if !wanted.trim().is_empty() => Ok(*place),
        (None, []) => Err(Failure::Usage(format!(
            "there is no figure \"{name}\"{}; there are: {}",
            meant(titles, &wanted).map_or(String::new(), |title| format!(", did you mean \"{title}\"?")),
            titles.join(", ")
        ))),
        (None, _) => Err(Failure::Usage(format!(
            "more than one is meant by the figure \"{name}\"; there are: {}",
            titles.join(", ")
        ))),
    }
}

/// The title that is near to a name, or has a word that is.
fn meant<'a>(titles: &[&'a str], wanted: &str) -> Option<&'a str> {
    nearest(wanted, titles.iter().copied()).or_else(|| {
        let word = nearest(wanted, titles.iter().flat_map(|title| title.split(' ')))?;
        titles.iter().find(|title| title.split(' ').any(|one| one == word)).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_words_of_its_title() {
        let titles = ["Delivered", "Queueing delay", "Sending rate", "Rate"];
        let place = |name| chosen(&titles, name).ok();
        assert_eq!(place("delay"), Some(1));
        assert_eq!(place("queueing-delay"), Some(1));
        assert_eq!(place("rate"), Some(3), "the exact title, though another has the word too");
        assert_eq!(place("e"), None, "several");
        assert_eq!(place("colour"), None);
        assert_eq!(place(""), None);
        assert_eq!(meant(&titles, "queing delay"), Some("Queueing delay"));
        assert_eq!(meant(&titles, "dealy"), Some("Queueing delay"), "by a word of it");
        assert_eq!(meant(&titles, "xyzzy"), None);
    }
}
