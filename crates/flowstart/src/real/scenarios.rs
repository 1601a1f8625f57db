//! `flowstart run --real`: scenario files on this machine.

use std::path::PathBuf;

use serde_json::json;

use flowstart_emulator::Fidelity;
use flowstart_real::{Runs, check_scenario, not_real};
use flowstart_results::{Format, Provenance, Results, to_json, write_results};
use flowstart_scenario::Scenario;
use flowstart_units::Span;

use super::{become_able, fidelity_limit, judge_all};
use crate::args::RunArgs;
use crate::formats::formats;
use crate::interrupt;
use crate::output::{Done, Failure, note, prepare_folder, print, print_json};
use crate::pages;
use crate::run_scenarios::{names, one_page, prepare_output};
use crate::scenario::load;
use crate::session::command_line;
use flowstart_pages::{emulated, scenario as pages_of};

/// Runs the files one after the other, their runs too.
pub(crate) fn run(args: &RunArgs) -> Done {
    let formats = formats(args.gzip, args.parquet)?;
    one_page(args)?;
    let scenarios = scenarios(args)?;
    become_able()?;
    // Whichever file cannot be run is told before the others have run.
    scenarios.iter().try_for_each(check_scenario)?;
    prepare_output(args)?;
    let cancel = interrupt::listen();
    let limit = fidelity_limit(args.fidelity);
    let (mut documents, mut written, mut verdict) = (Vec::new(), Ok(()), Ok(()));
    let mut ended = Ok(());
    for (scenario, name) in scenarios.iter().zip(names(&args.files)) {
        let left_out = not_real(scenario, &scenario.simulation(0).map_err(Failure::usage)?);
        for line in &left_out {
            note(&format!("{name}: not as in the simulator: {line}"));
        }
        let folder = args.pcap.as_ref().map(|folder| folder.join(&name));
        if let Some(folder) = &folder {
            prepare_folder(folder)?;
        }
        let done = |run: u64, fidelity: &Fidelity, faults: &[String]| {
            faults.iter().for_each(|fault| note(&format!("{name}, run {run}: {fault}")));
            if !args.json {
                note(&format!("{name}, run {run}: {fidelity}"));
            }
        };
        let Runs { results, fidelities, captured, failed } =
            match flowstart_real::run(scenario, folder.as_deref(), &cancel, done) {
                Ok(Some(runs)) => runs,
                Ok(None) => break,
                Err(error) => {
                    ended = Err(Failure::from(error));
                    break;
                }
            };
        verdict = verdict.and(judge_all(&limit, &fidelities));
        let provenance = Provenance::new(scenario, &results);
        // What cannot be written does not hide what was seen.
        let said = fidelities.iter().map(ToString::to_string);
        let remarks = said.chain(left_out.iter().map(|line| format!("Not as in the simulator: {line}."))).collect();
        written = write(args, &formats, (scenario, &name), (&results, &provenance), remarks);
        written = written.and(captured.map_err(Failure::from));
        ended = failed.map_or(Ok(()), |error| Err(error.into()));
        if args.json {
            let mut document = to_json(&results, &provenance);
            let list: Vec<_> = fidelities.iter().map(|fidelity| emulated::fidelity(fidelity, &limit)).collect();
            document["fidelity"] = json!(list);
            document["not_real"] = json!(left_out);
            documents.push(document);
        } else {
            print(&summary(scenario, &name, &results, &fidelities))?;
        }
        if written.is_err() || ended.is_err() {
            break;
        }
    }
    if args.json && (ended.is_ok() || !documents.is_empty()) {
        match documents.as_slice() {
            [one] if args.files.len() == 1 => print_json(one)?,
            several => print_json(&json!(several))?,
        }
    }
    written?;
    ended?;
    if cancel.is_cancelled() { Err(Failure::Interrupted) } else { verdict }
}

/// The files with the seed and the runs that are asked for.
fn scenarios(args: &RunArgs) -> Result<Vec<Scenario>, Failure> {
    let one = |file: &PathBuf| {
        let scenario = load(file)?;
        let (seed, runs) = (args.seed.unwrap_or(scenario.seed), args.runs.unwrap_or(scenario.runs));
        Ok(Scenario { seed, runs, ..scenario })
    };
    args.files.iter().map(one).collect()
}

/// Writes the tables and the report of a scenario, as far as they are asked for.
fn write(
    args: &RunArgs,
    formats: &[Format],
    (scenario, name): (&Scenario, &str),
    (results, provenance): (&Results, &Provenance),
    remarks: Vec<String>,
) -> Done {
    if let Some(folder) = &args.out {
        let folder = if args.files.len() > 1 { folder.join(name) } else { folder.clone() };
        write_results(&folder, results, provenance, formats).map_err(Failure::usage)?;
    }
    if !args.page.pages.is_empty() {
        let mut about = pages_of::about((scenario, name), command_line(), results, provenance, remarks);
        about.title.push_str(", on this machine's kernel");
        let page = pages_of::page(about, results.table("samples"), scenario.output.sample);
        pages::write(&page, &args.page)?;
    }
    Ok(())
}

fn summary(scenario: &Scenario, name: &str, results: &Results, fidelities: &[Fidelity]) -> String {
    let terminal = crate::output::terminal();
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    let mut text = format!("{title}, on this machine's kernel\n\n");
    if let (Some(flows), Some(links)) = (results.table("flows"), results.table("links")) {
        text.push_str(&format!("{}\n", pages_of::flow_table(flows).to_terminal(terminal)));
        text.push_str(&format!("{}\n", pages_of::link_table(links).to_terminal(terminal)));
    }
    if let Some(sentence) = pages_of::interrupted(results) {
        text.push_str(&format!("{sentence}\n"));
    }
    if fidelities.len() > 1 {
        let worst = fidelities.iter().map(|fidelity| fidelity.p99).max().unwrap_or(Span::ZERO);
        text.push_str(&format!("{} runs, 99 % of the packets of the worst within {worst}.\n", fidelities.len()));
    }
    text
}
