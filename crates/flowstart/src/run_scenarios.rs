//! `flowstart run`: scenario files.

use std::path::{Path, PathBuf};

use flowstart_measure::Estimate;
use flowstart_parallel::Cancel;
use flowstart_report::{Cell, Column, Page, Table, one_line};
use flowstart_results::{
    Document, Format, Provenance, Results, Table as Rows, Value, run_scenario, run_to_write, write_results,
    written_names,
};
use flowstart_scenario::{Compiled, OutputSpec, Scenario};
use flowstart_simulator::Traffic;
use flowstart_units::Span;

use crate::args::RunArgs;
use crate::captures::capture;
use crate::formats::formats;
use crate::interrupt;
use crate::output::{Done, Failure, note, prepare_folder, print, print_document, progress, spare_inputs, take_folder};
use crate::pages;
use crate::scenario::{load, tell_ignorant};
use crate::session::command_line;
use flowstart_pages::scenario::{self as pages_of, About};

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
            print(&summary(scenario, name, &results, &provenance, began.elapsed().as_secs_f64()))?;
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
    let mut remarks = vec![chance(provenance).to_owned()];
    if results.asked > 1 {
        remarks.push("The pictures are of the first run.".to_owned());
    }
    let about = about(scenario, name, results, provenance, remarks);
    Ok(pages_of::page(about, drawn.table("samples"), fine.output.sample))
}

/// Words and tables of a report.
pub(crate) fn about(
    scenario: &Scenario,
    name: &str,
    results: &Results,
    provenance: &Provenance,
    remarks: Vec<String>,
) -> About {
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let mut tables = Vec::new();
    let mut summary = Vec::new();
    if let Some(flows) = results.table("flows") {
        summary.extend(flow_sentences(flows));
        tables.push(flow_table(flows));
    }
    if let Some(pages) = results.table("pages").filter(|pages| pages.rows() > 0) {
        tables.push(page_table(pages));
    }
    if let Some(links) = results.table("links") {
        summary.extend(link_sentences(links));
        tables.push(link_table(links));
    }
    About {
        title: if scenario.title.is_empty() { name.to_owned() } else { scenario.title.clone() },
        command: command_line(),
        provenance: vec![
            pair("seed", provenance.seed.to_string()),
            pair("runs", results.finished.to_string()),
            pair("flowstart", provenance.version.clone()),
            pair("scenario", provenance.scenario_hash.clone()),
            pair("results", provenance.results_hash.clone()),
        ],
        warnings: interrupted(results).into_iter().collect(),
        summary,
        tables,
        remarks,
        runs: results.finished,
    }
}

/// How many runs there are, if there are not all.
pub(crate) fn interrupted(results: &Results) -> Option<String> {
    let Results { finished, asked, .. } = results;
    (finished < asked).then(|| format!("Interrupted: {finished} of {asked} runs were finished."))
}

/// Flows and links that are named in sentences; more are in the tables.
const NAMED: usize = 5;

/// What became of the flows.
fn flow_sentences(flows: &Rows) -> Vec<String> {
    let groups = groups(flows, "name");
    let sentence = |(name, members): &(String, Vec<usize>)| {
        let average = |column: &str, scale: f64, digits: u8| mean(flows, members, column, scale, digits).main();
        let rate = average("goodput_bps", 1e-6, 2)?;
        let lost = average("dropped", 1.0, 0).filter(|lost| lost != "0");
        let lost = lost.map_or(String::new(), |lost| format!(", {lost} of its packets dropped"));
        let exit = average("exit_s", 1e3, 0);
        let exit =
            exit.map_or(String::new(), |ms| format!("; its start ended after {ms} ms ({})", reasons(flows, members)));
        Some(format!("{name}: {rate} Mbit/s of goodput{lost}{exit}."))
    };
    groups.iter().take(NAMED).filter_map(sentence).collect()
}

/// What became of the links.
fn link_sentences(links: &Rows) -> Vec<String> {
    let sentence = |(name, members): &(String, Vec<usize>)| {
        let average = |column: &str, scale: f64, digits: u8| mean(links, members, column, scale, digits).main();
        Some(format!(
            "Link {name}: used to {} %, at most {} ms of waiting, {} packets dropped.",
            average("utilisation", 100.0, 1)?,
            average("sojourn_max_us", 1e-3, 2)?,
            average("dropped", 1.0, 0)?
        ))
    };
    groups(links, "link").iter().take(NAMED).filter_map(sentence).collect()
}

/// Whether chance plays a part.
fn chance(provenance: &Provenance) -> &'static str {
    if provenance.random {
        "Means over flows and runs, ± 95 % interval over runs where there are several."
    } else {
        "No randomness in this scenario: one run is enough."
    }
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

/// Flows by name and links, for the terminal.
fn summary(scenario: &Scenario, name: &str, results: &Results, provenance: &Provenance, took: f64) -> String {
    let terminal = crate::output::terminal();
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    let mut text = format!("{}\n\n", one_line(title));
    if let Some(flows) = results.table("flows") {
        text.push_str(&flow_table(flows).to_terminal(terminal));
        text.push('\n');
    }
    if let Some(pages) = results.table("pages").filter(|pages| pages.rows() > 0) {
        text.push_str(&page_table(pages).to_terminal(terminal));
        text.push('\n');
    }
    if let Some(links) = results.table("links") {
        text.push_str(&link_table(links).to_terminal(terminal));
        text.push('\n');
    }
    if let Some(sentence) = interrupted(results) {
        text.push_str(&format!("{sentence}\n"));
    }
    text.push_str(&format!("{}\n", chance(provenance)));
    let packets = results.data_packets as f64;
    text.push_str(&format!(
        "{packets:.0} data packets in {took:.2} s ({:.1} million packets/s)\nseed {}, scenario {}, results {}\n",
        packets / took.max(1e-9) / 1e6,
        provenance.seed,
        provenance.scenario_hash,
        provenance.results_hash
    ));
    text
}

/// The number in a cell.
fn number(rows: &Rows, row: usize, column: &str) -> Option<f64> {
    match rows.get(row, column) {
        Value::Integer(n) => Some(n as f64),
        Value::Float(x) => Some(x),
        _ => None,
    }
}

fn text(rows: &Rows, row: usize, column: &str) -> String {
    match rows.get(row, column) {
        Value::Text(text) => text.into_owned(),
        _ => String::new(),
    }
}

/// Rows of the same name together, in order of appearance.
fn groups(rows: &Rows, column: &str) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for row in 0..rows.rows() {
        let name = text(rows, row, column);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// The mean of a column over the rows of each run, then over runs with an interval.
fn mean(rows: &Rows, members: &[usize], column: &str, scale: f64, digits: u8) -> Cell {
    let mut runs: Vec<(f64, f64, f64)> = Vec::new();
    for row in members {
        let Some(value) = number(rows, *row, column).filter(|value| value.is_finite()) else { continue };
        let run = number(rows, *row, "run").unwrap_or(0.0);
        match runs.last_mut().filter(|(known, ..)| *known == run) {
            Some((_, sum, count)) => {
                *sum += value * scale;
                *count += 1.0;
            }
            None => runs.push((run, value * scale, 1.0)),
        }
    }
    let means: Vec<f64> = runs.iter().map(|(_, sum, count)| sum / count).collect();
    match Estimate::of(&means) {
        None => Cell::Missing,
        Some(Estimate { mean, half_width: Some(half), .. }) => Cell::quantity(mean, mean - half, mean + half, digits),
        Some(Estimate { mean, .. }) => Cell::number(mean, digits),
    }
}

/// A column of a summary: heading, unit, column of the rows, factor to the unit, digits.
type Summed = (&'static str, &'static str, &'static str, f64, u8);

const FLOW_COLUMNS: &[Summed] = &[
    ("goodput", "Mbit/s", "goodput_bps", 1e-6, 2),
    ("completion", "ms", "completion_time_s", 1e3, 1),
    ("with handshake", "ms", "completion_with_handshake_s", 1e3, 1),
    ("exit", "ms", "exit_s", 1e3, 1),
    ("window at exit", "packets", "exit_cwnd_pkts", 1.0, 0),
    ("sent", "packets", "data_segs_out", 1.0, 0),
    ("retransmitted", "packets", "total_retrans", 1.0, 0),
    ("dropped", "packets", "dropped", 1.0, 0),
    ("marked", "packets", "delivered_ce", 1.0, 0),
    ("srtt", "ms", "srtt_us", 1e-3, 2),
];

const LINK_COLUMNS: &[Summed] = &[
    ("utilisation", "%", "utilisation", 100.0, 2),
    ("mean wait", "ms", "sojourn_mean_us", 1e-3, 3),
    ("longest wait", "ms", "sojourn_max_us", 1e-3, 3),
    ("dropped", "packets", "dropped", 1.0, 0),
    ("lost", "packets", "lost", 1.0, 0),
    ("marked", "packets", "marked", 1.0, 0),
];

const PAGE_COLUMNS: &[Summed] =
    &[("page time", "ms", "page_time_s", 1e3, 1), ("files", "", "files", 1.0, 2), ("size", "kB", "bytes", 1e-3, 1)];

/// Pages by the name of their users' flows.
fn page_table(pages: &Rows) -> Table {
    let mut columns = vec![Column::key("pages of"), Column::number("count", "")];
    columns.extend(PAGE_COLUMNS.iter().map(|(heading, unit, ..)| Column::number(*heading, *unit)));
    let mut table = Table::new("Pages", columns);
    for (name, members) in groups(pages, "name") {
        let mut cells = vec![Cell::text(name), Cell::count(members.len() as u64)];
        cells.extend(
            PAGE_COLUMNS.iter().map(|(_, _, column, scale, digits)| mean(pages, &members, column, *scale, *digits)),
        );
        table.push(cells);
    }
    table
}

pub(crate) fn flow_table(flows: &Rows) -> Table {
    let mut columns = vec![Column::key("flow"), Column::number("count", ""), Column::text("exit reason")];
    columns.extend(FLOW_COLUMNS.iter().map(|(heading, unit, ..)| Column::number(*heading, *unit)));
    let mut table = Table::new("Flows", columns);
    for (name, members) in groups(flows, "name") {
        // Datagrams have no start that could end.
        let datagrams = members.iter().all(|row| text(flows, *row, "algorithm") == "udp");
        let reasons = if datagrams { Cell::Missing } else { Cell::text(reasons(flows, &members)) };
        let mut cells = vec![Cell::text(name), Cell::count(members.len() as u64), reasons];
        cells.extend(
            FLOW_COLUMNS.iter().map(|(_, _, column, scale, digits)| mean(flows, &members, column, *scale, *digits)),
        );
        table.push(cells);
    }
    table.notes.extend(unfinished(flows));
    table
}

/// Which transfers had not all of their bytes at the end: means of completion times leave them out.
fn unfinished(flows: &Rows) -> Option<String> {
    let mut parts = Vec::new();
    for (name, members) in groups(flows, "name") {
        let sized = || members.iter().filter(|row| number(flows, **row, "size_bytes").is_some());
        let complete = sized().filter(|row| number(flows, **row, "completed_s").is_some()).count();
        let all = sized().count();
        if complete < all {
            parts.push(format!("{name} {complete} of {all}"));
        }
    }
    let more = parts.len().saturating_sub(NAMED);
    parts.truncate(NAMED);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    (!parts.is_empty())
        .then(|| format!("Completion times are of the transfers that were complete at the end: {}.", parts.join(", ")))
}

/// Why starts ended, with counts if they differ.
fn reasons(flows: &Rows, members: &[usize]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for row in members {
        let reason = text(flows, *row, "exit_reason");
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = |reason: &str| if reason.is_empty() { "not yet".to_owned() } else { reason.replace('_', " ") };
    match counts.as_slice() {
        [(one, _)] => named(one),
        several => {
            several.iter().map(|(reason, count)| format!("{count} {}", named(reason))).collect::<Vec<_>>().join(", ")
        }
    }
}

pub(crate) fn link_table(links: &Rows) -> Table {
    let mut columns = vec![Column::key("link")];
    columns.extend(LINK_COLUMNS.iter().map(|(heading, unit, ..)| Column::number(*heading, *unit)));
    let mut table = Table::new("Links", columns);
    for (name, members) in groups(links, "link") {
        let mut cells = vec![Cell::text(name)];
        cells.extend(
            LINK_COLUMNS.iter().map(|(_, _, column, scale, digits)| mean(links, &members, column, *scale, *digits)),
        );
        table.push(cells);
    }
    table
}
