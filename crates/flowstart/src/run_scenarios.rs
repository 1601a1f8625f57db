//! `flowstart run`: scenario files.

use std::path::{Path, PathBuf};

use flowstart_parallel::Cancel;
use flowstart_report::Page;
use flowstart_results::{
    Document, Format, Provenance, Results, run_scenario, run_to_write, write_results, written_names,
};
use flowstart_scenario::{Compiled, OutputSpec, Scenario};
use flowstart_simulator::Traffic;
use flowstart_units::Span;

use crate::args::RunArgs;
use crate::captures::capture;
use crate::formats::formats;
use crate::interrupt;
use crate::output::{
    Done, Failure, note, prepare_folder, print, print_document, progress, spare_inputs, take_folder, terminal,
};
use crate::pages;
use crate::scenario::{load, tell_ignorant};
use crate::session::command_line;
use flowstart_pages::scenario as pages_of;

/// Runs the files one after the other, each with all its runs in parallel.
pub(crate) fn run(args: &RunArgs) -> Done {
    let formats = formats(args.gzip, args.parquet)?;
    one_page(args)?;
    let scenarios = scenarios(args)?;
    prepare_output(args)?;
    let names = names(&args.files);
    let cancel = interrupt::listen();
    let (mut documents, mut done, mut written) = (Vec::new(), 0, Ok(()));
    let write = |scenario: &Scenario, name: &str, results: &Results, provenance: &Provenance| -> Done {
        if let Some(folder) = &args.out {
            let folder = if names.len() > 1 { folder.join(name) } else { folder.clone() };
            write_results(&folder, results, provenance, &formats).map_err(Failure::usage)?;
        }
        if !args.page.pages.is_empty() {
            pages::write(&report(scenario, name, results, provenance, &cancel)?, &args.page)?;
        }
        Ok(())
    };
    let to_write = if args.out.is_some() { formats.as_slice() } else { &[] };
    for (scenario, name) in scenarios.iter().zip(&names) {
        if cancel.is_cancelled() {
            break;
        }
        if let Some(folder) = &args.pcap {
            match capture(scenario, folder, name) {
                Err(Failure::Interrupted) => break,
                captured => captured?,
            }
        }
        let began = std::time::Instant::now();
        let results = results(scenario, name, args, to_write, &cancel)?;
        if results.finished == 0 && cancel.is_cancelled() {
            // Nothing would take the place of an earlier run's tables.
            break;
        }
        done += 1;
        let provenance = Provenance::new(scenario, &results);
        // What cannot be written does not hide what was found.
        written = write(scenario, name, &results, &provenance);
        if args.json {
            documents.push((results, provenance));
        } else {
            let took = began.elapsed().as_secs_f64();
            print(&pages_of::summary((scenario, name), &results, &provenance, took, terminal()))?;
        }
        if written.is_err() {
            break;
        }
    }
    if done == 0 {
        return Err(Failure::InterruptedEarly);
    }
    if let (false, true, Some(folder)) = (args.json, written.is_ok(), &args.out) {
        print(&format!("results: {}\n", folder.display()))?;
    }
    if args.json {
        let documents: Vec<Document<'_>> =
            documents.iter().map(|(results, provenance)| Document { results, provenance, packets: true }).collect();
        match documents.as_slice() {
            [one] if names.len() == 1 => print_document(one)?,
            several => print_document(&several)?,
        }
    }
    written?;
    if cancel.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Makes sure that all that is asked for can be written. Folders first: a page may be in one of
/// them.
pub(crate) fn prepare_output(args: &RunArgs) -> Done {
    pages::may_be_chosen(&pages_of::TITLES, &args.page)?;
    if let Some(folder) = &args.out {
        let names = names(&args.files);
        let several = names.len() > 1;
        let folders = names.iter().map(|name| if several { folder.join(name) } else { folder.clone() });
        spare_inputs(folders.flat_map(|folder| written_names().into_iter().map(move |name| folder.join(name))))?;
        take_folder(folder)?;
    }
    if let Some(folder) = &args.pcap {
        prepare_folder(folder)?;
    }
    pages::prepare(&args.page)
}

/// A page is of one scenario.
pub(crate) fn one_page(args: &RunArgs) -> Done {
    if args.files.len() > 1 && !args.page.pages.is_empty() {
        return Err(Failure::usage("-o writes the report of one scenario; give one file"));
    }
    Ok(())
}

/// Bins of the pictures over the whole time.
const BINS: u64 = 1000;

/// The report. Its pictures are of the first run, once more in finer bins unless the file says how
/// fine. Who was interrupted before still gets them.
fn report(
    scenario: &Scenario,
    name: &str,
    results: &Results,
    provenance: &Provenance,
    cancel: &Cancel,
) -> Result<Page, Failure> {
    let mut fine = scenario.clone();
    let usual = OutputSpec::default().sample;
    if fine.output.sample == usual {
        fine.output.sample = (fine.duration / BINS).clamp(Span::from_millis(1), usual);
    }
    fine.runs = 1;
    let cancel = if cancel.is_cancelled() { Cancel::default() } else { cancel.clone() };
    let drawn = run_scenario(&fine, Some(1), &cancel, |_| ()).map_err(Failure::usage)?;
    if drawn.finished == 0 {
        return Err(Failure::Interrupted);
    }
    let mut remarks = vec![pages_of::chance(provenance).to_owned()];
    if results.asked > 1 {
        remarks.push("The pictures are of the first run.".to_owned());
    }
    let about = pages_of::about((scenario, name), command_line(), results, provenance, remarks);
    Ok(pages_of::page(about, drawn.table("samples"), fine.output.sample))
}

/// What [`run`] would show and write.
pub(crate) fn ran(args: &RunArgs) -> Result<Vec<(String, Results)>, Failure> {
    let cancel = interrupt::listen();
    let all = scenarios(args)?.into_iter().zip(names(&args.files));
    all.map(|(scenario, name)| Ok((name.clone(), results(&scenario, &name, args, &[], &cancel)?))).collect()
}

fn scenarios(args: &RunArgs) -> Result<Vec<Scenario>, Failure> {
    args.files.iter().map(|file| prepared(file, args)).collect()
}

fn results(
    scenario: &Scenario,
    name: &str,
    args: &RunArgs,
    formats: &[Format],
    cancel: &Cancel,
) -> Result<Results, Failure> {
    let bar = progress("running");
    bar.set_length(scenario.runs);
    let results = run_to_write(scenario, formats, args.threads, cancel, |done| bar.set_position(done as u64))
        .map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    bar.finish_and_clear();
    Ok(results)
}

fn prepared(file: &Path, args: &RunArgs) -> Result<Scenario, Failure> {
    let mut scenario = load(file)?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.runs = args.runs.or(args.phases).unwrap_or(scenario.runs);
    if args.phases.is_some() {
        let usual = scenario.usual_phases();
        scenario.phases.get_or_insert(usual);
        // One flow has no phases.
        scenario.simulation(0).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    }
    for sentence in scenario.without_influence() {
        note(&format!("{}: {sentence}", file.display()));
    }
    if let Ok(Compiled { simulation, .. }) = scenario.simulation(0) {
        let arriving = simulation.arrivals.iter().map(|arrivals| &arrivals.flow);
        let users = simulation.sessions.iter().map(|session| &session.flow);
        tell_ignorant(simulation.flows.iter().chain(arriving).chain(users).filter_map(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => Some(&tcp.controller.start),
            Traffic::Udp(_) => None,
        }));
    }
    if scenario.runs > 1 && !scenario.is_random() {
        note(&format!("{}: no randomness in this scenario: one run is enough", file.display()));
        scenario.runs = 1;
    }
    Ok(scenario)
}

/// The files' names without folder and ending, made different where they are the same.
pub(crate) fn names(files: &[PathBuf]) -> Vec<String> {
    let stems: Vec<String> = files
        .iter()
        .map(|file| file.file_stem().map_or_else(|| "scenario".to_owned(), |stem| stem.to_string_lossy().into_owned()))
        .collect();
    stems
        .iter()
        .enumerate()
        .map(|(index, stem)| {
            let before = stems[..index].iter().filter(|other| *other == stem).count();
            if before == 0 { stem.clone() } else { format!("{stem}-{}", before + 1) }
        })
        .collect()
}
