//! `flowstart reproduce`: papers' figures and claims.

mod page;
mod tables;

use std::path::Path;

use serde_json::json;

use flowstart_report::side_by_side;
use flowstart_reproduce::{Figure, FigureResult, Paper, ReproduceOptions, Verdict, figures, papers, reproduce as run};

use crate::args::ReproduceArgs;
use crate::compare::{command_line, file_name};
use crate::interrupt;
use crate::output::{Failure, Outcome, prepare_folder, print, print_json, progress, write_file};
use crate::pages;
use crate::scenario::describe;

/// The page with everything.
const PAGE: &str = "index.html";

/// Runs what is asked for and shows the verdicts.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Outcome {
    let papers = papers().map_err(|error| Failure::usage(describe(&error)))?;
    let wanted = wanted(&args.what)?;
    if args.list {
        return list(&papers, &wanted, args);
    }
    pages::prepare(&args.page)?;
    if let Some(folder) = &args.plot {
        prepare_folder(folder)?;
    }
    let cancel = interrupt::listen();
    let bar = progress("reproducing");
    let tell = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let options = ReproduceOptions {
        threads: args.threads,
        pictures: args.plot.is_some() || !args.page.pages.is_empty(),
        full: args.full,
        cancel: Some(&cancel),
        progress: Some(&tell),
    };
    let began = std::time::Instant::now();
    let results = run(&wanted, &options).map_err(Failure::usage)?;
    bar.finish_and_clear();
    let Some(results) = results else { return Err(Failure::Interrupted) };
    let took = began.elapsed().as_secs_f64();
    if let Some(folder) = &args.plot {
        plot(&papers, &results, folder)?;
    }
    if !args.page.pages.is_empty() {
        let sections: Vec<_> = results.iter().map(|result| (result, page::figures(result))).collect();
        pages::write(&page::page(&papers, &sections, &command_line()), &args.page)?;
    }
    if args.json {
        print_json(&document(&results))?;
    } else if args.markdown {
        print(&tables::markdown(&papers, &results))?;
    } else {
        print(&tables::text(&papers, &results, took))?;
        if let Some(folder) = &args.plot {
            print(&format!("figures: {}\n", folder.join(PAGE).display()))?;
        }
    }
    let differs = results.iter().flat_map(|result| &result.claims).any(|claim| claim.verdict == Verdict::Differs);
    if args.strict && differs { Err(Failure::Check) } else { Ok(()) }
}

/// The figures of the arguments, each once, in their order; all without arguments.
fn wanted(what: &[String]) -> Result<Vec<Figure>, Failure> {
    let wrong = |error: &flowstart_scenario::ScenarioError| Failure::usage(describe(error));
    if what.is_empty() {
        return figures("").map_err(|error| wrong(&error));
    }
    let mut all: Vec<Figure> = Vec::new();
    for name in what {
        let is_file = Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
        let more = if is_file { Figure::load(Path::new(name)).map(|figure| vec![figure]) } else { figures(name) };
        for figure in more.map_err(|error| wrong(&error))? {
            if all.iter().all(|known| known.name != figure.name) {
                all.push(figure);
            }
        }
    }
    Ok(all)
}

/// The paper that a figure is of, and those without one last.
fn paper_of<'a>(papers: &'a [Paper], figure: &Figure) -> Option<&'a Paper> {
    papers.iter().find(|paper| paper.figures.contains(&figure.name))
}

/// What there is.
fn list(papers: &[Paper], wanted: &[Figure], args: &ReproduceArgs) -> Outcome {
    if args.json {
        let one = |figure: &Figure| {
            json!({
                "figure": figure.name, "title": figure.title, "shows": figure.shows,
                "claims": figure.claims.len(), "simulations": figure.simulations(), "hash": figure.hash,
            })
        };
        let papers: Vec<_> = papers
            .iter()
            .map(|paper| {
                let about = &paper.about;
                json!({
                    "paper": paper.name, "title": about.title, "authors": about.authors, "year": about.year,
                    "venue": about.venue, "link": about.link,
                })
            })
            .collect();
        return print_json(&json!({ "papers": papers, "figures": wanted.iter().map(one).collect::<Vec<_>>() }));
    }
    print(&tables::list(papers, wanted))
}

/// For machines.
fn document(results: &[FigureResult]) -> serde_json::Value {
    let count = |verdict: Verdict| tables::count(results, verdict);
    json!({
        "flowstart_version": env!("CARGO_PKG_VERSION"),
        "reproduced": count(Verdict::Reproduced),
        "differs": count(Verdict::Differs),
        "under_specified": count(Verdict::UnderSpecified),
        "figures": results.iter().map(FigureResult::to_json).collect::<Vec<_>>(),
    })
}

/// Writes the pictures, those of a figure together as well, and the page.
fn plot(papers: &[Paper], results: &[FigureResult], folder: &Path) -> Outcome {
    let command = command_line();
    let mut sections = Vec::new();
    for result in results {
        let pictures = page::figures(result);
        for (number, (figure, picture)) in pictures.iter().zip(&result.pictures).enumerate() {
            let name = file_name(&format!("{}-{}-{}", result.figure.name, number + 1, picture.title));
            write_file(&folder.join(format!("{}.svg", name.trim_end_matches('.'))), figure.to_svg().as_bytes())?;
        }
        if pictures.len() > 1 {
            let name = file_name(&result.figure.name);
            write_file(&folder.join(format!("{name}.svg")), side_by_side(&page::rows(result, &pictures)).as_bytes())?;
        }
        sections.push((result, pictures));
    }
    write_file(&folder.join(PAGE), page::page(papers, &sections, &command).to_html().as_bytes())
}
