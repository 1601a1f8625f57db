//! The page of verdicts in the documentation: a chapter per paper, differences first.

use flowstart_report::{Cell, Column, Table};
use flowstart_reproduce::{ClaimResult, FigureResult, Origin, Paper, Record, Stability, Verdict};

use super::tables::{citation, ratings, shares, tally};
use super::{Judged, paper_of};

/// A claim with the figure it belongs to.
type Of<'a> = (&'a FigureResult, &'a ClaimResult);

const HEAD: &str = "\
<!-- Made by `flowstart reproduce --record` and `flowstart reproduce --recorded --markdown > docs/reproduce.md`; do not edit. -->

# What papers claim, and what comes out here

";

const WORDS: &str = "
How to read it:

- *reproduced*: it comes out as claimed, and the 95 % interval over runs lies within the bound.
- *differs*: the interval lies outside. The page says by how much, and the cause: one that another claim shows, by a variant of \
the same runs that makes it hold. Otherwise the cause was not found, and what we think is called a guess.
- *undecided*: the interval straddles the bound after all runs that the figure's file allows, or some runs never got to what is measured.
- *under-specified*: it holds in a quarter of the readings of what the paper leaves open or more, but not in all, or something had to be assumed.

Nothing was tuned to get a verdict. Where a paper gives words only, the bound is our reading of them. A name like `fig9#network-least` is \
a figure and its claim. Every figure has a file in `experiments/` with all parameters; `flowstart reproduce PAPER/FIGURE --out DIR` runs it and draws its pictures.

Intervals (± or [low .. high]) hold at 95 % for all looks at a claim together: runs are added, twice as many each time, until the interval is clear \
of the bound. A claim about several cases is refuted by one of them only if that one is clear at 95 % for all of them together. \
A share of answers, each yes or no, has the wider of two intervals: that over runs and the exact one of the binomial distribution over all answers. \
So \"always\" and \"never\" can be refuted by one answer and are shown by no number of them; they stay undecided. \
The exact one counts the variants of a run as independent although they share random numbers. \
A number that is the same in six runs or more counts as always the same.
";

/// As a page of the documentation.
pub fn markdown(papers: &[Paper], results: &[FigureResult], kept: Option<&Judged>) -> String {
    let record = kept.map(|kept| &kept.record);
    let of = |paper: Option<&Paper>| -> Vec<&FigureResult> {
        results.iter().filter(|result| paper_of(papers, &result.figure) == paper).collect()
    };
    let mut page = HEAD.to_owned();
    page.push_str(&format!("{}.\n\n{}", tally(results.iter()), overview(papers, &of).to_markdown()));
    page.push_str(WORDS);
    if let Some(record) = record {
        page.push_str(&format!("\n{}\n", when(results, record)));
    }
    if let Some(missing) = kept.map(|kept| &kept.missing).filter(|missing| !missing.is_empty()) {
        let count = missing.len();
        page.push_str(&format!(
            "\nNot run by these rules yet, so that nothing is said of them ({count} figures): {}.\n",
            missing.join(", ")
        ));
    }
    if let Some(stability) = record.and_then(|record| record.stability.as_ref()) {
        page.push_str(&seeds(stability, results));
    }
    for paper in papers {
        let of_paper = of(Some(paper));
        if !of_paper.is_empty() {
            page.push_str(&chapter(Some(paper), &of_paper, record));
        }
    }
    let others = of(None);
    if !others.is_empty() {
        page.push_str(&chapter(None, &others, record));
    }
    page
}

/// Said of runs that are not all with the whole budget.
const BUDGET: &str = ", with the budget of runs that `reproduce` has without --full (where attainable rates are probed, 150 \
samples per rate instead of the paper's 750), but where it says otherwise below";

/// When it was run, with what, and how long it took.
fn when(results: &[FigureResult], record: &Record) -> String {
    let kept: Vec<_> = results.iter().filter_map(|result| record.figures.get(&result.figure.name)).collect();
    let span = |mut all: Vec<&str>| {
        all.sort_unstable();
        all.dedup();
        match all.as_slice() {
            [first, .., last] => format!("{first} to {last}"),
            [one] => (*one).to_owned(),
            [] => String::new(),
        }
    };
    let seconds: f64 = kept.iter().map(|kept| kept.seconds).sum();
    let packets: u64 = kept.iter().map(|kept| kept.data_packets).sum();
    format!(
        "Runs of {}, version {}{}: {} simulations with {:.1} billion data packets, {:.0} minutes by the clock, summed over threads.",
        span(kept.iter().map(|kept| kept.date.as_str()).collect()),
        span(kept.iter().map(|kept| kept.version.as_str()).collect()),
        if kept.iter().all(|kept| kept.full) { ", with the whole budget (--full)" } else { BUDGET },
        kept.iter().map(|kept| kept.simulations).sum::<usize>(),
        packets as f64 / 1e9,
        seconds / 60.0
    )
}

/// A row per paper.
fn overview<'a>(papers: &[Paper], of: &dyn Fn(Option<&Paper>) -> Vec<&'a FigureResult>) -> Table {
    let mut columns = vec![Column::key("paper")];
    columns.extend(Verdict::ALL.map(|verdict| Column::number(verdict.name(), "")));
    columns.push(Column::number("not examined", ""));
    columns.push(Column::text("beyond the paper: ours"));
    let mut table = Table::new("Claims of the papers", columns);
    for paper in papers {
        let results = of(Some(paper));
        if results.is_empty() {
            continue;
        }
        let count = |origin, verdict| super::tables::count(results.iter().copied(), origin, verdict);
        let mut cells = vec![Cell::text(&paper.about.title)];
        cells.extend(Verdict::ALL.map(|verdict| Cell::count(count(Origin::Paper, verdict) as u64)));
        cells.push(Cell::count(paper.about.not_examined.len() as u64));
        let ours: Vec<String> = Verdict::ALL
            .iter()
            .map(|verdict| (count(Origin::Ours, *verdict), verdict))
            .filter(|(count, _)| *count > 0)
            .map(|(count, verdict)| format!("{count} {}", verdict.name()))
            .collect();
        cells.push(Cell::text(ours.join(", ")));
        table.push(cells);
    }
    table
}

/// What other seeds say, and of which figures nothing is said.
fn seeds(stability: &Stability, results: &[FigureResult]) -> String {
    let stability = stability.clone().still_true(results);
    let mut text = format!("\n{}\n", super::tables::stability_sentence(&stability));
    let changed = super::tables::changed(&stability);
    if !changed.is_empty() {
        text.push_str(&format!("\n- {}\n", changed.join("\n- ")));
    }
    let names = results.iter().filter(|result| !result.looks.certain).map(|result| result.figure.name.as_str());
    let open: Vec<&str> = names.filter(|name| !stability.figures.contains_key(*name)).collect();
    if !open.is_empty() {
        text.push_str(&format!("\nNot run with other seeds, as they take long: {}.\n", open.join(", ")));
    }
    text
}

fn chapter(paper: Option<&Paper>, results: &[&FigureResult], record: Option<&Record>) -> String {
    let mut text = String::new();
    match paper {
        Some(paper) => text.push_str(&format!("\n## {}\n\n{}.\n", paper.about.title, citation(paper))),
        None => text.push_str("\n## Other files\n"),
    }
    let all: Vec<Of<'_>> =
        results.iter().flat_map(|result| result.claims.iter().map(move |claim| (*result, claim))).collect();
    for origin in Origin::ALL {
        let of: Vec<Of<'_>> = all.iter().copied().filter(|(_, claim)| claim.claim.origin == origin).collect();
        if of.is_empty() {
            continue;
        }
        let (heading, says) = match origin {
            Origin::Paper => ("What the paper says", "the paper says"),
            Origin::Ours => ("Beyond the paper: what we say", "we say"),
        };
        text.push_str(&format!("\n### {heading}\n\n{}.\n", ratings(results.iter().copied(), origin)));
        for verdict in [Verdict::Differs, Verdict::Undecided, Verdict::UnderSpecified] {
            text.push_str(&claims(&of, verdict, says));
        }
        let reproduced = claims(&of, Verdict::Reproduced, says);
        if !reproduced.is_empty() {
            let count = of.iter().filter(|(_, claim)| claim.verdict == Verdict::Reproduced).count();
            text.push_str(&folded(&format!("{count} reproduced"), &reproduced));
        }
    }
    if let Some(paper) = paper.filter(|paper| !paper.about.not_examined.is_empty()) {
        text.push_str("\n### Not examined\n\n");
        for claim in &paper.about.not_examined {
            text.push_str(&format!("- {} ({}) {}\n", claim.says, claim.source, claim.why));
        }
    }
    let mut notes = String::new();
    for note in paper.iter().flat_map(|paper| &paper.about.notes) {
        notes.push_str(&format!("\n{note}\n"));
    }
    for result in results {
        notes.push_str(&figure(result, record));
    }
    text.push_str(&folded("How it was run, figure by figure", &notes));
    text
}

/// What is shown only if asked for.
fn folded(summary: &str, text: &str) -> String {
    format!("\n<details>\n<summary>{summary}</summary>\n{text}\n</details>\n")
}

/// A table of the claims with a verdict, and a line for each with what belongs to it.
fn claims(all: &[Of<'_>], verdict: Verdict, says: &str) -> String {
    let columns = [Column::key("claim"), Column::text(says), Column::text("where"), Column::text("expected")];
    let ours = [Column::text("here"), Column::text("verdict")];
    let mut table = Table::new("", columns.into_iter().chain(ours).collect());
    let mut lines = String::new();
    for (result, claim) in all.iter().filter(|(_, claim)| claim.verdict == verdict) {
        let spec = &claim.claim.spec;
        let short = result.figure.name.rsplit('/').next().unwrap_or_default();
        let name = format!("{short}#{}", spec.id);
        let words =
            [spec.says.clone(), spec.source.clone(), claim.expected().to_owned(), claim.ours(), claim.conclusion()];
        table.push(std::iter::once(Cell::text(&name)).chain(words.into_iter().map(Cell::text)).collect());
        for (kind, line) in claim.explanation() {
            lines.push_str(&format!("- {name}, {kind}: {line}\n"));
        }
    }
    if table.rows.is_empty() {
        return String::new();
    }
    let gap = if lines.is_empty() { "" } else { "\n" };
    format!("\n{}{gap}{lines}", table.to_markdown())
}

/// What a figure is and how it was run.
fn figure(result: &FigureResult, record: Option<&Record>) -> String {
    let figure = &result.figure;
    let mut text = format!("\n**{}: {}.** {}\n", figure.name, figure.title, figure.shows);
    for table in shares(result) {
        text.push_str(&format!("\n{}\n", table.to_markdown()));
    }
    let replications = figure.replications.words();
    let run = match record.and_then(|record| record.figures.get(&figure.name)) {
        Some(kept) => {
            let budget = if kept.full { " with --full" } else { "" };
            format!(
                "{} simulations{budget} on {}, {:.0} s by the clock, summed over threads",
                result.simulations, kept.date, kept.seconds
            )
        }
        None => format!("{} simulations", result.simulations),
    };
    text.push('\n');
    for note in figure.notes.iter().chain([&replications]) {
        text.push_str(&format!("- {note}\n"));
    }
    text.push_str(&format!("- Parameters {}, {run}.\n", figure.hash));
    text
}
