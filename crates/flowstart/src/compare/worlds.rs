//! `flowstart compare --worlds`: the same race simulated, over this machine's kernel and over this
//! project's QUIC.

use std::path::Path;

use serde_json::json;

use flowstart_pages::compare::worlds::{self, World};
use flowstart_race::{Race, RaceResult};

use crate::args::CompareArgs;
use crate::output::{
    Done, Failure, ending, note, prepare_file, print, print_json, spare_inputs, take_folder, terminal, write_file,
};
use crate::session::command_line;

/// Formats of single files, by their endings.
const ENDINGS: [&str; 5] = ["html", "json", "csv", "md", "txt"];
/// Names of the files in the results' folder.
const REPORT: &str = "report.html";
const DOCUMENT: &str = "worlds.json";
const TABLE: &str = "worlds.csv";

/// The names of the worlds.
const SIMULATOR: &str = "simulator";
const KERNEL: &str = "kernel";
const QUIC: &str = "QUIC";

/// What came out in one of them.
struct Told {
    name: &'static str,
    result: RaceResult,
    /// What a real one was checked for.
    verdict: Done,
}

/// Runs the races and shows them.
pub(super) fn compare(args: &CompareArgs) -> Done {
    let (race, warnings) = super::race(args)?;
    warnings.iter().for_each(|warning| note(warning));
    let folder = super::folder(args);
    if let Some(folder) = &folder {
        spare_inputs([REPORT, DOCUMENT, TABLE].map(|name| folder.join(name)))?;
        take_folder(folder)?;
    }
    for file in &args.output.files {
        ending(file, &ENDINGS)?;
        prepare_file(file)?;
    }
    let mut races = Vec::new();
    for (name, world) in [(KERNEL, flowstart_race::World::Kernel), (QUIC, super::quic(args))] {
        races.extend(carried(Race { world, ..race.clone() }, name)?.map(|race| (name, race)));
    }
    if races.is_empty() {
        return Err(Failure::usage("no contestant runs over this machine's kernel or over QUIC; leave out --worlds"));
    }
    become_able()?;
    races.insert(0, (SIMULATOR, race));
    let mut told = Vec::new();
    let mut interrupted = false;
    let mut failed = Ok(());
    for (name, race) in races {
        let (result, verdict) = match super::raced(&race, args) {
            Ok(raced) => raced,
            Err(error) => {
                failed = Err(error);
                break;
            }
        };
        interrupted = !result.complete;
        if result.complete || result.simulations.0 > 0 {
            told.push(Told { name, result, verdict });
        }
        if interrupted {
            break;
        }
    }
    if told.len() < 2 {
        // One world alone is no comparison.
        failed?;
        told.pop().map_or(Ok(()), |told| told.verdict)?;
        return Err(Failure::InterruptedEarly);
    }
    show(&told, folder.as_deref(), args, warnings)?;
    failed?;
    told.into_iter().try_for_each(|told| told.verdict)?;
    if interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The race of those contestants that its world carries; `None` if it carries nobody. Who is left
/// out is said.
fn carried(mut race: Race, name: &str) -> Result<Option<Race>, Failure> {
    let mut kept = Vec::new();
    for contestant in &race.contestants {
        let refused = race.world.carrier().and_then(|carrier| carrier.check([contestant]).err());
        let refused = refused.map(|error| error.to_string());
        match refused.map_or_else(|| refusal(&race, contestant), |why| Ok(Some(why)))? {
            Some(why) => note(&format!("{name}: left out: {why}")),
            None => kept.push(contestant.clone()),
        }
    }
    race.contestants = kept;
    Ok((!race.contestants.is_empty()).then_some(race))
}

/// Asks for what the real ones need of this machine, before threads are started.
#[cfg(target_os = "linux")]
fn become_able() -> Done {
    crate::real::become_able()
}

#[cfg(not(target_os = "linux"))]
fn become_able() -> Done {
    Err(Failure::NotPossible(crate::output::NEEDS_LINUX.to_owned()))
}

#[cfg(target_os = "linux")]
fn refusal(race: &Race, contestant: &flowstart_race::Contestant) -> Result<Option<String>, Failure> {
    Ok(flowstart_real::refused(race, contestant, crate::real::transport(race)?))
}

#[cfg(not(target_os = "linux"))]
fn refusal(_: &Race, _: &flowstart_race::Contestant) -> Result<Option<String>, Failure> {
    Err(Failure::NotPossible(crate::output::NEEDS_LINUX.to_owned()))
}

/// Prints the table and writes the files.
fn show(told: &[Told], folder: Option<&Path>, args: &CompareArgs, notes: Vec<String>) -> Done {
    let list: Vec<World<'_>> = told.iter().map(|told| World { name: told.name, result: &told.result }).collect();
    let race = &told[0].result.race;
    let title = args.title.clone();
    let title =
        title.unwrap_or_else(|| format!("One race in {} worlds, {}, {}", list.len(), race.capacity(), race.path.rtt));
    let page = worlds::page(&list, title.clone(), command_line(), notes);
    let table = worlds::table(&list);
    let of = |told: &Told| (told.name.to_owned(), told.result.to_json());
    let document = json!({ "worlds": told.iter().map(of).collect::<serde_json::Map<_, _>>() });
    let plain = |terminal| {
        let lines = [worlds::sentences(&list), worlds::remarks(&list)].map(|lines| lines.join("\n"));
        format!("{title}\n\n{}\n{}\n", table.to_terminal(terminal), lines.join("\n\n"))
    };
    // What cannot be written is told after what was found.
    let write = || -> Done {
        if let Some(folder) = folder {
            write_file(&folder.join(DOCUMENT), format!("{document:#}\n").as_bytes())?;
            write_file(&folder.join(TABLE), table.to_csv().as_bytes())?;
            write_file(&folder.join(REPORT), page.to_html().as_bytes())?;
        }
        for file in &args.output.files {
            let text = match ending(file, &ENDINGS)? {
                "html" => page.to_html(),
                "json" => format!("{document:#}\n"),
                "csv" => table.to_csv(),
                "md" => page.to_markdown(),
                _ => plain(flowstart_report::Terminal::plain()),
            };
            write_file(file, text.as_bytes())?;
        }
        Ok(())
    };
    let written = write();
    if args.output.json {
        print_json(&document)?;
        return written;
    }
    let mut text = plain(terminal());
    if let Some(folder) = folder.filter(|_| written.is_ok()) {
        text.push_str(&format!("report: {}\n", folder.join(REPORT).display()));
    }
    print(&text)?;
    written
}
