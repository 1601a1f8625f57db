//! `flowstart reproduce`: papers' figures and claims.

mod kept;

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use flowstart_pages::reproduce::{self as shown, Judged, chapters, tables};
use flowstart_report::side_by_side;
use flowstart_reproduce::{
    Figure, FigureResult, FirstRun, Origin, Paper, ReproduceOptions, Stability, Verdict, figures, first_runs, papers,
    reproduce as run,
};

use crate::args::ReproduceArgs;
use crate::compare::file_name;
use crate::interrupt;
use crate::output::{Done, Failure, note, prepare_folder, print, print_json, progress, terminal, write_file};
use crate::pages;
use crate::scenario::describe;
use crate::session::command_line;

/// The page with everything.
const PAGE: &str = "index.html";

/// What runs gave.
struct Ran {
    results: Vec<FigureResult>,
    /// Processor time of each figure, seconds.
    spent: Vec<f64>,
    /// Time by the clock, seconds.
    took: f64,
    /// What is missing, if it was interrupted.
    interrupted: Option<String>,
}

impl Ran {
    /// Everything; else nothing of it can be used.
    fn whole(self) -> Result<Self, Failure> {
        if self.interrupted.is_some() { Err(Failure::InterruptedEarly) } else { Ok(self) }
    }
}

/// Runs what is asked for and shows the verdicts.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Done {
    if let Some(runs) = args.real {
        return for_real(runs, args);
    }
    let papers = papers().map_err(|error| Failure::usage(describe(&error)))?;
    let mut wanted = wanted(&args.what)?;
    if args.list {
        return list(&papers, &wanted, args);
    }
    if let Some(file) = &args.verify {
        return kept::verify(file, wanted, args);
    }
    if let Some(file) = &args.recorded {
        let judged = kept::judge(file, &wanted)?;
        return show(&papers, &judged.results, Some(&judged), None, args);
    }
    if let Some(seeds) = args.stability {
        return stability(&wanted, seeds, args);
    }
    if let Some(file) = &args.record {
        kept::prepare(file)?;
    }
    if let Some(seed) = args.seed {
        wanted.iter_mut().for_each(|figure| figure.seed(seed));
    }
    if let Some(folder) = &args.plot {
        prepare_folder(folder)?;
    }
    pages::prepare(&args.page)?;
    let titles: Vec<String> = wanted.iter().flat_map(Figure::picture_titles).collect();
    pages::will_show(&titles, &args.page)?;
    let ran = make(&wanted, args.full, args)?;
    // What cannot be written is told after what was found.
    let write = || -> Done {
        if let Some(folder) = &args.plot {
            plot(&papers, &ran, folder)?;
        }
        if !args.page.pages.is_empty() {
            let sections: Vec<_> = ran.results.iter().map(|result| (result, shown::figures(result))).collect();
            let mut page = shown::page(&papers, &sections, &command_line());
            page.warnings.extend(ran.interrupted.clone());
            pages::write(&page, &args.page)?;
        }
        args.record.as_ref().map_or(Ok(()), |file| kept::keep(file, &ran, args.full))
    };
    let written = write();
    // The time of what was interrupted went into figures that are not among these.
    let took = ran.interrupted.is_none().then_some(ran.took);
    let shown = show(&papers, &ran.results, None, took, args);
    let quiet = args.json || args.markdown;
    if let Some(folder) = args.plot.as_ref().filter(|_| written.is_ok() && !quiet) {
        print(&format!("figures: {}\n", folder.join(PAGE).display()))?;
    }
    written?;
    if let Some(missing) = &ran.interrupted {
        note(missing);
        let kept = args.plot.is_some() || args.record.is_some() || !args.page.pages.is_empty();
        return Err(if kept { Failure::Interrupted } else { Failure::InterruptedUnkept("--record") });
    }
    shown
}

/// Quick-Start's testbed on this machine's kernel.
fn for_real(runs: u64, args: &ReproduceArgs) -> Done {
    if args.what.iter().any(|what| what != "quick-start") {
        let others = args.what.iter().find(|what| *what != "quick-start").map_or("", String::as_str);
        return Err(Failure::Usage(format!("--real is for quick-start as a whole, not for {others}")));
    }
    #[cfg(target_os = "linux")]
    return crate::real::testbed(runs, args);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (runs, args.quick);
        Err(Failure::NotPossible("real packets need Linux".to_owned()))
    }
}

/// Runs figures, perhaps with the whole budget. Who is interrupted gets those that were finished.
fn make(wanted: &[Figure], full: bool, args: &ReproduceArgs) -> Result<Ran, Failure> {
    let cancel = interrupt::listen();
    let bar = progress("reproducing");
    let tell = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let spent = Mutex::new(vec![0.0; wanted.len()]);
    let spend = |figure: usize, seconds: f64| {
        let mut spent = spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        spent[figure] += seconds;
    };
    let options = ReproduceOptions {
        threads: args.threads,
        pictures: args.plot.is_some() || !args.page.pages.is_empty(),
        full,
        runs: args.runs,
        cancel: Some(&cancel),
        spent: Some(&spend),
        progress: Some(&tell),
    };
    let began = std::time::Instant::now();
    let results = run(wanted, &options).map_err(Failure::usage)?;
    bar.finish_and_clear();
    let Some(results) = results else { return Err(Failure::InterruptedEarly) };
    let spent = spent.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let finished = |figure: &Figure| results.iter().any(|result| result.figure.name == figure.name);
    let spent = wanted.iter().zip(spent).filter(|(figure, _)| finished(figure)).map(|(_, spent)| spent).collect();
    let interrupted = (results.len() < wanted.len())
        .then(|| format!("Interrupted: {} of {} figures were finished.", results.len(), wanted.len()));
    Ok(Ran { results, spent, took: began.elapsed().as_secs_f64(), interrupted })
}

/// Makes the first run of one variant of each figure.
fn first_of(wanted: &[(&Figure, &str)], full: bool, args: &ReproduceArgs) -> Result<Vec<FirstRun>, Failure> {
    let cancel = interrupt::listen();
    let options =
        ReproduceOptions { threads: args.threads, full, cancel: Some(&cancel), ..ReproduceOptions::default() };
    first_runs(wanted, &options).map_err(Failure::usage)?.ok_or(Failure::InterruptedEarly)
}

/// Prints verdicts as asked for.
fn show(
    papers: &[Paper],
    results: &[FigureResult],
    kept: Option<&Judged>,
    took: Option<f64>,
    args: &ReproduceArgs,
) -> Done {
    if args.json {
        print_json(&document(papers, results))?;
    } else if args.markdown {
        print(&chapters::markdown(papers, results, kept))?;
    } else {
        print(&tables::text(terminal(), papers, results, took))?;
    }
    let differs = results.iter().flat_map(|result| &result.claims).any(|claim| claim.verdict == Verdict::Differs);
    if args.strict && differs { Err(Failure::Check) } else { Ok(()) }
}

/// Runs everything with several seeds and says which verdicts change.
fn stability(wanted: &[Figure], seeds: u64, args: &ReproduceArgs) -> Done {
    let of_seed = |seed: u64| {
        let mut figures = wanted.to_vec();
        figures.iter_mut().for_each(|figure| figure.seed(seed));
        Ok(make(&figures, args.full, args)?.whole()?.results)
    };
    let results = (1..=seeds).map(of_seed).collect::<Result<Vec<_>, Failure>>()?;
    let stability = Stability::of(&results, args.full);
    if let Some(file) = &args.record {
        kept::keep_stability(file, &stability)?;
    }
    if args.json {
        return print_json(&json!(stability));
    }
    print(&tables::stability(&stability))
}

/// The figures of the arguments, each once, in their order; all without arguments.
fn wanted(what: &[String]) -> Result<Vec<Figure>, Failure> {
    let wrong = |error: &flowstart_scenario::ScenarioError| Failure::usage(describe(error));
    if what.is_empty() {
        return figures("").map_err(|error| wrong(&error));
    }
    let mut all: Vec<Figure> = Vec::new();
    for name in what {
        // As from a shell's variable that is not set: not all papers, which take hours.
        if name.trim_matches('/').trim().is_empty() {
            return Err(Failure::Usage(
                "a paper, a figure or a file has a name; without any all papers are run".to_owned(),
            ));
        }
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

/// What there is.
fn list(papers: &[Paper], wanted: &[Figure], args: &ReproduceArgs) -> Done {
    if args.json {
        let one = |figure: &Figure| {
            json!({
                "figure": figure.name, "title": figure.title, "shows": figure.shows,
                "claims": figure.claims.len(), "simulations": figure.simulations(), "hash": figure.hash,
                "run_hash": figure.run_hash,
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
    print(&tables::list(terminal(), papers, wanted))
}

/// Counts of verdicts, by whose claims they are.
fn counts<'a>(results: impl Iterator<Item = &'a FigureResult> + Clone) -> Value {
    let of = |origin: Origin| {
        let one = |verdict: Verdict| (verdict.key().to_owned(), tables::count(results.clone(), origin, verdict).into());
        Verdict::ALL.into_iter().map(one).collect::<Map<String, Value>>()
    };
    Origin::ALL
        .into_iter()
        .map(|origin| (origin.key().to_owned(), Value::from(of(origin))))
        .collect::<Map<_, _>>()
        .into()
}

/// For machines.
fn document(papers: &[Paper], results: &[FigureResult]) -> Value {
    let of_paper = |paper: &Paper| {
        let figures = results.iter().filter(|result| paper.figures.contains(&result.figure.name));
        (figures.clone().count() > 0).then(|| (paper.name.clone(), counts(figures)))
    };
    json!({
        "flowstart_version": env!("CARGO_PKG_VERSION"),
        "all": counts(results.iter()),
        "papers": papers.iter().filter_map(of_paper).collect::<Map<_, _>>(),
        "figures": results.iter().map(FigureResult::to_json).collect::<Vec<_>>(),
    })
}

/// Writes the pictures, those of a figure together as well, and the page.
fn plot(papers: &[Paper], ran: &Ran, folder: &Path) -> Done {
    let command = command_line();
    let mut sections = Vec::new();
    for result in &ran.results {
        let pictures = shown::figures(result);
        for (number, (figure, picture)) in pictures.iter().zip(&result.pictures).enumerate() {
            let name = file_name(&format!("{}-{}-{}", result.figure.name, number + 1, picture.title));
            write_file(&folder.join(format!("{}.svg", name.trim_end_matches('.'))), figure.to_svg().as_bytes())?;
        }
        if pictures.len() > 1 {
            let name = file_name(&result.figure.name);
            write_file(&folder.join(format!("{name}.svg")), side_by_side(&shown::rows(result, &pictures)).as_bytes())?;
        }
        sections.push((result, pictures));
    }
    let mut page = shown::page(papers, &sections, &command);
    page.warnings.extend(ran.interrupted.clone());
    write_file(&folder.join(PAGE), page.to_html().as_bytes())
}
