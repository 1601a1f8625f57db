//! `flowstart frontier`: every flow start over a grid of paths.

mod args;

use std::path::Path;

use flowstart_frontier::{Frontier, Grid, Journal, Plan, RunOptions, Shown, Work};
use flowstart_pages::frontier::{self, tables};
use flowstart_parallel::Cancel;
use flowstart_report::Table;

use crate::interrupt;
use crate::output::{Done, Failure, note, prepare_folder, print, print_json, progress, write_around, write_file};
use crate::pages;
use crate::session::command_line;

pub(crate) use args::FrontierArgs;
use args::GridKind;

/// Whom the goals are for unless somebody else is named: the first of these that races.
const SUBJECTS: [&str; 3] = ["adaptive_chirping", "two_gap_chirping", "paced_chirping"];
/// Seeds of cells with randomness unless a number is given: of the whole grid, and of the quick
/// one.
const RUNS: u32 = 10;
const QUICK_RUNS: u32 = 1;

/// Names of the files in the results' folder, beside the records.
const REPORT: &str = "report.html";
const PARAMETERS: &str = "parameters.json";
const RESULT: &str = "result.json";
const CELLS: &str = "cells.csv";
const LOST: &str = "lost.csv";
const FRONT: &str = "front.svg";
const PATHS: [&str; 2] = ["paths.svg", "paths-delay.svg"];

/// Runs the grid.
pub(crate) fn frontier(args: &FrontierArgs) -> Done {
    crate::compare::once_each(&args.contestants)?;
    let frontier = planned(args);
    frontier.validate().map_err(Failure::usage)?;
    let races = |start: &&&str| frontier.contestants().iter().any(|contestant| contestant.start.name() == **start);
    let usual = SUBJECTS.iter().find(races).unwrap_or(&SUBJECTS[0]);
    let subject = args.subject.as_deref().unwrap_or(usual);
    if args.subject.is_some() {
        known_subject(&frontier, subject)?;
    }
    if let Some(left_out) = frontier.grid.left_out() {
        note(&left_out);
    }
    if args.plan {
        return plan(&Plan::new(&frontier, &frontier.works()), args);
    }
    if let Some(folder) = &args.out {
        prepare_folder(folder)?;
    }
    pages::prepare(&args.page)?;
    figure_is_there(&frontier, subject, args)?;
    let journal = args.out.as_deref().map(|folder| opened(folder, args)).transpose()?;
    let works = frontier.works();
    let packets = Frontier::packets(&works);
    note(&format!(
        "{} cells, {} contestants, {} seeds: {} simulated starts, about {} packets, {} of processor time",
        frontier.grid.cells().len(),
        frontier.contestants().len(),
        frontier.seeds.len(),
        works.len(),
        tables::large(packets),
        tables::duration(packets / frontier.packets_per_second()),
    ));
    let cancel = interrupt::listen();
    let bar = progress("million packets");
    let tell = |done: u64, of: u64| {
        bar.set_length(of.div_ceil(MILLION));
        // What is begun is not done, but the end is the end.
        bar.set_position(if done < of { done / MILLION } else { of.div_ceil(MILLION) });
    };
    let append = |work: &Work, record: &_| {
        if let Some(journal) = &journal {
            journal.append(work, record);
        }
    };
    let options = RunOptions {
        threads: args.threads,
        cancel: Some(&cancel),
        progress: Some(&tell),
        finished: Some(&append),
        known: journal.as_ref().map(|journal| journal.known().clone()).unwrap_or_default(),
        shard: args.shard,
    };
    let result = frontier.run(&options).map_err(Failure::usage)?;
    bar.finish_and_clear();
    if let Some(journal) = journal {
        journal.close(&result).map_err(Failure::usage)?;
    }
    if let Some(shard) = args.shard {
        // Tables of a part would be read as those of the whole.
        let (finished, of) = result.finished();
        print(&format!("shard {shard}: {finished} of all {of} simulated starts are there\n"))?;
        return if cancel.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) };
    }
    let shown = Shown::new(&result, subject);
    // What cannot be written is told after what was found.
    let files = args.out.as_ref().map_or(Ok(()), |folder| write(&shown, folder));
    let pages = match args.page.pages.as_slice() {
        [] => Ok(()),
        _ => pages::write(&frontier::page(&shown, &page_command(&command_line())), &args.page),
    };
    if args.json {
        print_json(&shown.to_json())?;
    } else {
        print(&text(&shown, args.all, args.out.as_deref().filter(|_| files.is_ok())))?;
    }
    files.and(pages)?;
    match (result.complete(), &args.out) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(Failure::Interrupted),
        (false, None) => Err(Failure::InterruptedUnkept("--out DIR")),
    }
}

/// Refuses the name of a figure that the report will not have, before anything costly is done.
fn figure_is_there(frontier: &Frontier, subject: &str, args: &FrontierArgs) -> Done {
    if args.page.figure.is_none() {
        return Ok(());
    }
    let stopped = Cancel::default();
    stopped.cancel();
    let nothing = RunOptions { cancel: Some(&stopped), ..RunOptions::default() };
    let result = frontier.run(&nothing).map_err(Failure::usage)?;
    pages::alone(&frontier::page(&Shown::new(&result, subject), ""), args.page.figure.as_deref()).map(drop)
}

/// Packets are told to people in millions.
const MILLION: u64 = 1_000_000;

/// Prints what the work costs, before any of it is done.
fn plan(plan: &Plan, args: &FrontierArgs) -> Done {
    if args.json {
        return print_json(&plan.to_json());
    }
    let terminal = crate::output::terminal();
    let tables = tables::plan(plan);
    print(&tables.each_ref().map(|table| table.to_terminal(terminal)).join("\n"))
}

/// What the options ask for.
fn planned(args: &FrontierArgs) -> Frontier {
    let half = args.half.unwrap_or(args.seeds);
    let rough = args.grid == GridKind::Rough || !args.profile.is_empty();
    let mut grid = match (rough, args.quick) {
        _ if args.as_is => Grid::profiles(),
        (false, false) => Grid::full(),
        (false, true) => Grid::quick(),
        (true, false) => Grid::rough(half),
        (true, true) => Grid::quick_rough(half),
    };
    replace(&mut grid.capacities, &args.capacity);
    replace(&mut grid.rtts, &args.rtt);
    replace(&mut grid.buffers, &args.buffer);
    replace(&mut grid.paths, if args.path.is_empty() { &args.profile } else { &args.path });
    replace(&mut grid.loads, &args.load);
    if !args.with.is_empty() {
        // Cells are copied: what they share stays as long as the program runs.
        grid.with = Box::leak(args.with.clone().into_boxed_slice());
    }
    let contestants =
        if args.contestants.is_empty() { Frontier::default_contestants() } else { args.contestants.clone() };
    let runs = args.runs.unwrap_or(if args.quick { QUICK_RUNS } else { RUNS });
    Frontier::new(grid, contestants, half.first(runs))
}

/// Other values, each once.
fn replace<T: Clone + PartialEq>(values: &mut Vec<T>, others: &[T]) {
    if !others.is_empty() {
        values.clear();
        for other in others {
            if !values.contains(other) {
                values.push(other.clone());
            }
        }
    }
}

fn known_subject(frontier: &Frontier, subject: &str) -> Done {
    let wanted = subject.trim().to_lowercase().replace('-', "_");
    let mut names = frontier.contestants().iter().map(|contestant| (contestant.to_string(), contestant.start.name()));
    if names.any(|(label, start)| label == subject || start == wanted) {
        return Ok(());
    }
    let racing: Vec<String> = frontier.contestants().iter().map(ToString::to_string).collect();
    Err(Failure::Usage(format!("\"{subject}\" does not race; there are {}", racing.join(", "))))
}

/// The records of the folder, with those of others that are to be taken in. If they cannot be,
/// records that this begun are gone again.
fn opened(folder: &Path, args: &FrontierArgs) -> Result<Journal, Failure> {
    if let Some(other) = args.merge.iter().find(|other| !Journal::exists(other)) {
        return Err(Failure::Usage(format!(
            "--merge {0}: there is no {1}; a folder is meant that flowstart frontier --out has filled",
            other.display(),
            other.join("records.csv").display()
        )));
    }
    let is_new = !Journal::exists(folder);
    let mut journal = journal(folder, args.resume)?;
    for other in &args.merge {
        match journal.take_in(other) {
            Ok(taken) => note(&format!("{}: {taken} results taken in", other.display())),
            Err(error) => {
                drop(journal);
                if is_new {
                    let _ = std::fs::remove_file(folder.join("records.csv"));
                }
                return Err(Failure::usage(error));
            }
        }
    }
    Ok(journal)
}

/// Opens the records of the folder.
fn journal(folder: &Path, resume: bool) -> Result<Journal, Failure> {
    if Journal::exists(folder) && !resume {
        return Err(Failure::Usage(format!(
            "{} has results already; --resume goes on with them, or choose another folder",
            folder.display()
        )));
    }
    let journal = Journal::open(folder).map_err(Failure::usage)?;
    for damage in journal.damaged() {
        note(&format!(
            "{}: line {} {}; it is measured again, the line is kept in records.damaged.csv and the file as it was in records.csv.backup",
            folder.join("records.csv").display(),
            damage.line,
            damage.reason
        ));
    }
    Ok(journal)
}

/// Writes the files.
fn write(shown: &Shown<'_>, folder: &Path) -> Done {
    let json = |value: &serde_json::Value| format!("{value:#}\n").into_bytes();
    write_around(&folder.join(RESULT), &shown.to_json(), || {
        write_file(&folder.join(PARAMETERS), &json(&shown.parameters()))?;
        write_file(&folder.join(CELLS), &shown.cells_csv())?;
        write_file(&folder.join(LOST), tables::lost(shown, None).to_csv().as_bytes())?;
        let command = page_command(&command_line());
        if let Some(front) = frontier::fronts(shown, &command).first() {
            write_file(&folder.join(FRONT), front.to_svg().as_bytes())?;
        }
        for (figure, name) in frontier::paths_figures(shown, &command).iter().zip(PATHS) {
            write_file(&folder.join(name), figure.to_svg().as_bytes())?;
        }
        write_file(&folder.join(REPORT), frontier::page(shown, &command).to_html().as_bytes())
    })
}

/// The command without what does not change the result, so that a resumed run writes the same page.
fn page_command(command: &str) -> String {
    command.replace(" --resume", "")
}

/// Worst cells that are named for every goal unless all are asked for.
const NAMED: usize = 8;

/// For the terminal; with the folder in which the report is.
fn text(shown: &Shown<'_>, all_cells: bool, folder: Option<&Path>) -> String {
    let terminal = crate::output::terminal();
    let mut text = String::new();
    let named = if all_cells { None } else { Some(NAMED) };
    let mut all: Vec<Table> = tables::main(shown);
    all.push(tables::goals(shown));
    all.push(tables::lost(shown, named));
    for table in all.iter().filter(|table| !table.rows.is_empty()) {
        text.push_str(&table.to_terminal(terminal));
        text.push('\n');
    }
    for remark in tables::remarks(shown) {
        text.push_str(&remark);
        text.push('\n');
    }
    if let Some(folder) = folder {
        text.push_str(&format!("report: {}\n", folder.join(REPORT).display()));
    }
    text
}
