//! `flowstart docs`: the generated part of the documentation.

use std::path::Path;

use clap::{CommandFactory, Parser};

use flowstart_race::measures_page;
use flowstart_reproduce::figures_page;
use flowstart_results::results_page;
use flowstart_scenario::{GENERATED, scenario_page};

use crate::args::DocsArgs;
use crate::cli::{Cli, Command};
use crate::explain::pictures_of;
use crate::list::catalogue;
use crate::output::{Done, Failure, note, prepare_folder, print, write_file};

/// The pictures of `chirps.md`: name, arguments of `flowstart explain-chirp`, and which of its
/// pictures.
const CHIRPS: &[(&str, &[&str], &[&str])] = &[
    (
        "chirp",
        &["--start", "paced_chirping", "--capacity", "50Mbit/s", "--rtt", "40ms", "--chirp", "6"],
        &["departures", "delays", "gaps"],
    ),
    (
        "chirp-noise",
        &["--start", "paced_chirping", "--capacity", "50Mbit/s", "--rtt", "40ms", "--udp", "20%", "--chirp", "7"],
        &["delays"],
    ),
    (
        "chirp-acks",
        &["--start", "paced_chirping/ack2", "--capacity", "50Mbit/s", "--rtt", "40ms", "--chirp", "9"],
        &["delays"],
    ),
    ("chirp-crowded", &["--capacity", "50Mbit/s", "--rtt", "40ms", "--background", "cubic", "--chirp", "3"], &["gaps"]),
];

/// The pictures with their paths.
fn chirp_pictures() -> Result<Vec<(String, String)>, Failure> {
    let mut pictures = Vec::new();
    for (name, arguments, wanted) in CHIRPS {
        let words: Vec<&str> = ["flowstart", "explain-chirp"].iter().chain(*arguments).copied().collect();
        let Ok(Cli { command: Command::ExplainChirp(args) }) = Cli::try_parse_from(&words) else {
            return Err(Failure::Usage(format!("not a command: {}", words.join(" "))));
        };
        for (picture, svg) in pictures_of(&args, &words.join(" "))? {
            if wanted.contains(&picture) {
                pictures.push((format!("pictures/{name}-{picture}.svg"), svg));
            }
        }
    }
    Ok(pictures)
}

/// Writes the pages, or checks that they are up to date.
pub(crate) fn docs(args: &DocsArgs) -> Done {
    let mut pages = [
        ("scenario.md", scenario_page()),
        ("figures.md", figures_page()),
        ("results.md", results_page()),
        ("measures.md", measures_page()),
        ("names.md", names_page()),
        ("command-line.md", command_page()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec();
    pages.extend(chirp_pictures()?);
    if args.check {
        let stale: Vec<&str> = pages
            .iter()
            .filter(|(name, text)| !is_current(&args.dir.join(name), text))
            .map(|(name, _)| name.as_str())
            .collect();
        if stale.is_empty() {
            return Ok(());
        }
        note(&format!("{} not up to date in {}; run `flowstart docs`", stale.join(", "), args.dir.display()));
        return Err(Failure::Check);
    }
    // First of all: who keeps pages of their own by such a name has none of them replaced.
    let is_foreign = |(name, _): &&(String, String)| is_foreign(&args.dir.join(name));
    if let Some((name, _)) = pages.iter().find(is_foreign) {
        return Err(Failure::Usage(format!(
            "{} was not written by `flowstart docs`: move it, or name another folder",
            args.dir.join(name).display()
        )));
    }
    prepare_folder(&args.dir)?;
    for (name, text) in &pages {
        let path = args.dir.join(name);
        if !is_current(&path, text) {
            write_file(&path, text.as_bytes())?;
            print(&format!("{}\n", path.display()))?;
        }
    }
    Ok(())
}

fn is_current(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|old| old == text)
}

/// The words in a picture that an earlier one has, too: its command is in it.
const OF_PICTURES: &str = "flowstart explain-chirp";

/// Whether there is a file that this command did not write.
fn is_foreign(path: &Path) -> bool {
    if path.symlink_metadata().is_err() {
        return false;
    }
    let is_picture = path.extension().is_some_and(|ending| ending == "svg");
    let ours =
        |text: &str| if is_picture { text.contains(OF_PICTURES) } else { text.starts_with(GENERATED.trim_end()) };
    !std::fs::read_to_string(path).is_ok_and(|text| ours(&text))
}

/// Everything that has a name.
fn names_page() -> String {
    let mut page = format!("{GENERATED}\n# Names\n");
    for (kind, entries) in catalogue() {
        page.push_str(&format!("\n## {}{}\n\n", kind[..1].to_uppercase(), &kind[1..]));
        for (name, about) in entries {
            let about = if about.is_empty() { String::new() } else { format!(": {about}") };
            page.push_str(&format!("- `{name}`{about}\n"));
        }
    }
    page
}

/// The help of every command.
fn command_page() -> String {
    let mut page = format!("{GENERATED}\n# Command line\n");
    let mut command = Cli::command();
    command.build();
    help(&mut page, command, "flowstart");
    page
}

fn help(page: &mut String, mut command: clap::Command, name: &str) {
    let text = command.render_long_help().to_string();
    page.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", text.trim_end()));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        help(page, sub.clone(), &format!("{name} {}", sub.get_name()));
    }
}
