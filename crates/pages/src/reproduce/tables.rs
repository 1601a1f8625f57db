//! Claims and verdicts for the terminal and as Markdown.

use flowstart_report::{Cell, Column, Table, Terminal};
use flowstart_reproduce::{
    ClaimResult, Figure, FigureResult, FigureStability, Origin, Paper, ShareTable, Stability, Verdict,
};

use super::paper_of;

/// How many claims of an origin have a verdict.
pub fn count<'a>(results: impl Iterator<Item = &'a FigureResult>, origin: Origin, verdict: Verdict) -> usize {
    let claims = results.flat_map(|result| &result.claims);
    claims.filter(|claim| claim.claim.origin == origin && claim.verdict == verdict).count()
}

/// "12 claims: 9 reproduced, 2 differ, 0 undecided, 1 under-specified" of an origin.
pub fn ratings<'a>(results: impl Iterator<Item = &'a FigureResult> + Clone, origin: Origin) -> String {
    let counts = Verdict::ALL.map(|verdict| count(results.clone(), origin, verdict));
    let [reproduced, differs, undecided, open] = counts;
    let all: usize = counts.iter().sum();
    format!(
        "{all} claim{}: {reproduced} reproduced, {differs} differ{}, {undecided} undecided, {open} under-specified",
        if all == 1 { "" } else { "s" },
        if differs == 1 { "s" } else { "" },
    )
}

/// The papers' claims, and ours, apart.
pub fn tally<'a>(results: impl Iterator<Item = &'a FigureResult> + Clone) -> String {
    let of = |origin| ratings(results.clone(), origin);
    format!("The papers: {}. Beyond them, ours: {}", of(Origin::Paper), of(Origin::Ours))
}

/// What other seeds say, in a sentence.
pub fn stability_sentence(stability: &Stability) -> String {
    let (decided, same, opposite) = stability.counts();
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let share = stability.share().map_or(String::new(), |(share, low, high)| {
        format!(
            " ({} %, 95 % interval {} to {} % as if claims were independent)",
            percent(share),
            percent(low),
            percent(high)
        )
    });
    format!(
        "Seeds 1 to {} {}over {} figures with anything random: of {decided} claims decided with at least one of them {same} \
         have the same verdict with all{share}, {opposite} were reproduced with one and different with another.",
        stability.seeds,
        if stability.full { "with the whole budget of runs " } else { "without --full " },
        stability.figures.len(),
    )
}

/// The claims that other seeds give another verdict, and the verdict with each.
pub fn changed(stability: &Stability) -> Vec<String> {
    let of_figure = |(figure, of): (&String, &FigureStability)| -> Vec<String> {
        of.changed.iter().map(|(id, words)| format!("{figure}#{id}: {}", words.join(", "))).collect()
    };
    stability.figures.iter().flat_map(of_figure).collect()
}

/// What other seeds say, for the terminal.
pub fn stability(stability: &Stability) -> String {
    let mut lines = changed(stability);
    lines.push(stability_sentence(stability));
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// Title, authors, venue, year.
pub fn citation(paper: &Paper) -> String {
    let about = &paper.about;
    format!("{}: \"{}\", {} {}", about.authors.join(", "), about.title, about.venue, about.year)
}

/// The claims of a figure; `says` adds what the paper says and where.
pub fn claims(result: &FigureResult, says: bool) -> Table {
    let mut columns = vec![
        Column::key("claim").help("Its name in the file of the figure."),
        Column::text("whose").help("The paper's claim, or one of this project beyond it."),
    ];
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
        let mut cells = vec![Cell::text(&spec.id), Cell::text(claim.claim.origin.key())];
        if says {
            cells.extend([Cell::text(&spec.says), Cell::text(&spec.source)]);
        }
        cells.extend([Cell::text(claim.expected()), Cell::text(claim.ours()), Cell::text(claim.conclusion())]);
        table.push(cells);
    }
    table
}

/// Shares of answers of a figure.
pub fn shares(result: &FigureResult) -> Vec<Table> {
    let one = |shares: &ShareTable| {
        let answers = shares.columns.iter().map(|(name, _)| Column::number(name, &shares.unit));
        let columns = std::iter::once(Column::key(&shares.by)).chain(answers).collect();
        let mut table = Table::new(&shares.title, columns);
        for (place, name) in shares.rows.iter().enumerate() {
            let value = |values: &[f64]| Cell::number_or_missing(values.get(place).copied(), 2);
            let cells = shares.columns.iter().map(|(_, values)| value(values));
            table.push(std::iter::once(Cell::text(name)).chain(cells).collect());
        }
        table
    };
    result.tables.iter().map(one).collect()
}

/// What belongs to a verdict, as "id: kind: text".
pub fn remarks(claim: &ClaimResult) -> Vec<String> {
    claim.explanation().into_iter().map(|(kind, text)| format!("{}, {kind}: {text}", claim.claim.spec.id)).collect()
}

/// For the terminal.
pub fn text(terminal: Terminal, papers: &[Paper], results: &[FigureResult], took: Option<f64>) -> String {
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
        for table in shares(result) {
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
    for paper in papers {
        let of = results.iter().filter(|result| paper.figures.contains(&result.figure.name));
        if of.clone().count() > 0 {
            text.push_str(&format!("{}: {}\n", paper.name, tally(of)));
        }
    }
    text.push_str(&format!("{}\n", tally(results.iter())));
    if let Some(took) = took {
        text.push_str(&format!(
            "{seconds:.0} simulated seconds and {packets} data packets in {took:.1} s ({:.1} million packets/s)\n",
            packets as f64 / took.max(1e-9) / 1e6
        ));
    }
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

/// Papers and figures with their sizes.
pub fn list(terminal: Terminal, papers: &[Paper], figures: &[Figure]) -> String {
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
        text.push_str(&table.to_terminal(terminal));
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
