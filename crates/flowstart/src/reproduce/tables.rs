//! Claims and verdicts for the terminal and as Markdown.

use flowstart_report::{Cell, Column, Table};
use flowstart_reproduce::{ClaimResult, Curve, Figure, FigureResult, Paper, Picture, Verdict};

use super::paper_of;

/// How many claims have a verdict.
pub(super) fn count(results: &[FigureResult], verdict: Verdict) -> usize {
    results.iter().flat_map(|result| &result.claims).filter(|claim| claim.verdict == verdict).count()
}

/// "12 claims: 9 reproduced, 2 differ, 1 under-specified".
pub(super) fn tally(results: &[FigureResult]) -> String {
    let claims: usize = results.iter().map(|result| result.claims.len()).sum();
    format!(
        "{claims} claim{}: {} reproduced, {} differ{}, {} under-specified",
        if claims == 1 { "" } else { "s" },
        count(results, Verdict::Reproduced),
        count(results, Verdict::Differs),
        if count(results, Verdict::Differs) == 1 { "s" } else { "" },
        count(results, Verdict::UnderSpecified)
    )
}

/// Title, authors, venue, year.
pub(super) fn citation(paper: &Paper) -> String {
    let about = &paper.about;
    format!("{}: \"{}\", {} {}", about.authors.join(", "), about.title, about.venue, about.year)
}

/// The claims of a figure; `says` adds what the paper says and where.
pub(super) fn claims(result: &FigureResult, says: bool) -> Table {
    let mut columns = vec![Column::key("claim").help("Its name in the file of the figure.")];
    if says {
        columns.push(Column::text("the paper says"));
        columns.push(Column::text("where"));
    }
    columns.extend([
        Column::text("paper").help("The paper's value or relation; where it gives none, how its words are read."),
        Column::text("ours")
            .help("What was measured: mean over runs ± 95 % interval, or the range over several variants."),
        Column::text("verdict"),
    ]);
    let mut table = Table::new("", columns);
    for claim in &result.claims {
        let spec = &claim.claim.spec;
        let mut cells = vec![Cell::text(&spec.id)];
        if says {
            cells.extend([Cell::text(&spec.says), Cell::text(&spec.source)]);
        }
        cells.extend([Cell::text(claim.expected()), Cell::text(claim.ours()), Cell::text(claim.conclusion())]);
        table.push(cells);
    }
    table
}

/// The pictures of a figure that are tables as well: shares in percent.
pub(super) fn confusions(result: &FigureResult) -> Vec<Table> {
    let tables = result.pictures.iter().filter(|picture| !picture.places.is_empty());
    let one = |picture: &Picture| {
        let answers = picture.curves.iter().map(|curve| Column::number(&curve.name, picture.y.unit));
        let columns = std::iter::once(Column::key(picture.x.label)).chain(answers).collect();
        let mut table = Table::new(&picture.title, columns);
        for (place, name) in picture.places.iter().enumerate() {
            let value = |curve: &Curve| curve.points.get(place).map(|point| point[1]);
            let shares = picture.curves.iter().map(|curve| Cell::number_or_missing(value(curve), 2));
            table.push(std::iter::once(Cell::text(name)).chain(shares).collect());
        }
        table
    };
    tables.map(one).collect()
}

/// What belongs to a verdict, as "id: kind: text".
pub(super) fn remarks(claim: &ClaimResult) -> Vec<String> {
    claim.explanation().into_iter().map(|(kind, text)| format!("{}, {kind}: {text}", claim.claim.spec.id)).collect()
}

/// For the terminal.
pub(super) fn text(papers: &[Paper], results: &[FigureResult], took: f64) -> String {
    let terminal = crate::output::terminal();
    let width = if terminal.width == usize::MAX { PLAIN_WIDTH } else { terminal.width };
    let mut text = String::new();
    let mut paper = None;
    for result in results {
        let of = paper_of(papers, &result.figure);
        if let Some(of) = of.filter(|_| of != paper) {
            text.push_str(&format!("{}\n\n", wrapped(&citation(of), width, "")));
        }
        paper = of;
        text.push_str(&format!("{}: {}\n", result.figure.name, result.figure.title));
        text.push_str(&format!("{}\n\n", wrapped(&result.figure.shows, width, "  ")));
        text.push_str(&claims(result, false).to_terminal(terminal));
        text.push('\n');
        for table in confusions(result) {
            text.push_str(&table.to_terminal(terminal));
            text.push('\n');
        }
        for claim in &result.claims {
            let spec = &claim.claim.spec;
            let says = format!("{} ({}): {}", spec.id, spec.source, spec.says);
            text.push_str(&format!("{}\n", wrapped(&says, width, "  ")));
            for (kind, line) in claim.explanation() {
                text.push_str(&format!("{}\n", wrapped(&format!("{kind}: {line}"), width, "      ")));
            }
        }
        for note in &result.figure.notes {
            text.push_str(&format!("{}\n", wrapped(&format!("Note: {note}"), width, "  ")));
        }
        text.push('\n');
    }
    let packets: u64 = results.iter().map(|result| result.data_packets).sum();
    let seconds: f64 = results.iter().map(|result| result.simulated_seconds).sum();
    text.push_str(&format!("{}\n", tally(results)));
    text.push_str(&format!(
        "{seconds:.0} simulated seconds and {packets} data packets in {took:.1} s ({:.1} million packets/s)\n",
        packets as f64 / took.max(1e-9) / 1e6
    ));
    text
}

/// Width of text that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

/// Text broken into lines of at most `width` columns, each behind `indent`.
fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines.join("\n")
}

/// As a page of the documentation.
pub(super) fn markdown(papers: &[Paper], results: &[FigureResult]) -> String {
    let mut page = format!(
        "<!-- Made by `flowstart reproduce --markdown > docs/reproduce.md`; do not edit. -->\n\n# What papers claim, and what comes out here\n\n{}.\n\n\
         *Reproduced*: ours is as the paper says. *Differs*: it is not, by how much and, where known, why. *Under-specified*: the claim holds in \
         some readings of what the paper leaves open and not in others, or something had to be assumed; notes below the table say what. Nothing was tuned to get a verdict. The column *paper* has the paper's value or relation; where a paper gives words only, it \
         has our reading of them. Every figure has a file in `experiments/` with all parameters; `flowstart reproduce PAPER/FIGURE --plot DIR` runs \
         it and draws its pictures.\n",
        tally(results)
    );
    let mut paper = None;
    for result in results {
        let figure = &result.figure;
        let of = paper_of(papers, figure);
        if let Some(of) = of.filter(|_| of != paper) {
            page.push_str(&format!("\n## {}\n\n{}.\n", of.about.title, citation(of)));
            for note in &of.about.notes {
                page.push_str(&format!("\n{note}\n"));
            }
        }
        paper = of;
        page.push_str(&format!("\n### {}: {}\n\n{}\n\n", figure.name, figure.title, figure.shows));
        page.push_str(&claims(result, true).to_markdown());
        for table in confusions(result) {
            page.push_str(&format!("\n{}\n", table.to_markdown()));
        }
        let mut remarks: Vec<String> = result.claims.iter().flat_map(remarks).collect();
        remarks.extend(figure.notes.iter().cloned());
        if !remarks.is_empty() {
            page.push('\n');
        }
        for remark in remarks {
            page.push_str(&format!("- {remark}\n"));
        }
        page.push_str(&format!("\nFile {}, {} simulations.\n", figure.file_hash, figure.simulations()));
    }
    page
}

/// Papers and figures with their sizes.
pub(super) fn list(papers: &[Paper], figures: &[Figure]) -> String {
    let columns = vec![
        Column::key("name"),
        Column::text("what"),
        Column::number("claims", ""),
        Column::number("simulations", ""),
    ];
    let mut text = String::new();
    let mut done: Vec<Option<&Paper>> = Vec::new();
    for figure in figures {
        let paper = paper_of(papers, figure);
        if done.contains(&paper) {
            continue;
        }
        done.push(paper);
        let mut table = Table::new(paper.map(citation).unwrap_or_default(), columns.clone());
        for figure in figures.iter().filter(|figure| paper_of(papers, figure) == paper) {
            let counts = [figure.claims.len(), figure.simulations()].map(|count| Cell::count(count as u64));
            table.push([Cell::text(&figure.name), Cell::text(&figure.title)].into_iter().chain(counts).collect());
        }
        text.push_str(&table.to_terminal(crate::output::terminal()));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_indented() {
        assert_eq!(wrapped("one two three four", 10, "  "), "  one two\n  three\n  four");
        assert_eq!(wrapped("", 10, "  "), "");
    }
}
