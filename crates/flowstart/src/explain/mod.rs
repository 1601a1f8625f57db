//! `flowstart explain-chirp`: what one chirp says and why.

mod args;

use std::path::Path;

use flowstart_explain::{Explanation, Simulated, SimulatedStart, read_trace};
use flowstart_pages::explain::{Case, DELAYS, Truth, figures, words};
use flowstart_race::{DEFAULT_SEED, Race};
use flowstart_units::Bytes;

use crate::output::{Done, Failure, prepare_file, prepare_folder, print, print_json, write_file};
use crate::session::command_line;

pub(crate) use args::ExplainArgs;

/// What the length of an IP packet can say.
const LARGEST_PACKET: Bytes = Bytes::new(65_535);

/// Bytes of a packet on the wire of which nothing is said.
const USUAL_PACKET: u64 = 1500;
/// Who chirps unless somebody is named.
const USUAL_START: &str = "adaptive_chirping";

/// Explains a chirp, or lists those there are.
pub(crate) fn explain(args: &ExplainArgs) -> Done {
    if args.list {
        let (simulated, start) = simulate(args)?;
        return if args.json {
            print_json(&words::list_document(&start))
        } else {
            print(&words::list(&simulated, &start, crate::output::terminal()))
        };
    }
    if let Some(file) = &args.file {
        flowstart_files::reads(file);
    }
    if let Some(out) = &args.out {
        if is_picture(out) {
            prepare_file(out)?;
        } else {
            no_other_file(out)?;
            prepare_folder(out)?;
        }
    }
    let case = case(args)?;
    if let Some(out) = &args.out {
        for (name, figure) in figures(&case, &command_line()) {
            if !is_picture(out) {
                write_file(&out.join(format!("{name}.svg")), figure.to_svg().as_bytes())?;
            } else if name == DELAYS {
                write_file(out, figure.to_svg().as_bytes())?;
            }
        }
    }
    if args.json {
        return print_json(&words::document(&case));
    }
    let mut text = words::text(&case, crate::output::terminal());
    if let Some(out) = &args.out {
        text.push_str(&format!("\npictures: {}\n", out.display()));
    }
    print(&text)
}

/// The pictures that a command makes, each with its name, as SVG.
pub(crate) fn pictures_of(args: &ExplainArgs, command: &str) -> Result<Vec<(&'static str, String)>, Failure> {
    let case = case(args)?;
    Ok(figures(&case, command).map(|(name, figure)| (name, figure.to_svg())).to_vec())
}

/// Endings of files that somebody may want, and that are no names of folders.
const OTHER_FILES: [&str; 12] = ["png", "jpg", "jpeg", "gif", "webp", "pdf", "eps", "ps", "html", "md", "csv", "json"];

/// Refuses what is not a folder and looks like a file of another format than can be written.
fn no_other_file(path: &Path) -> Done {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    if path.exists() || !OTHER_FILES.contains(&ending.as_str()) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--out: cannot write {}: a single picture is an .svg file; a name without an ending is a folder for all three",
        path.display()
    )))
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"))
}

fn case(args: &ExplainArgs) -> Result<Case, Failure> {
    if let Some(file) = &args.file {
        let chirp = read_trace(file).map_err(Failure::usage)?;
        let packet = args.packet.unwrap_or(Bytes::new(USUAL_PACKET));
        if packet == Bytes::ZERO {
            return Err(Failure::Usage(
                "--packet: a packet of 0 bytes has no rate; the usual one is \"1500 B\"".to_owned(),
            ));
        }
        if packet > LARGEST_PACKET {
            return Err(Failure::Usage(format!(
                "--packet: no IP packet has {packet}, but {LARGEST_PACKET} at most; the usual one is \"1500 B\""
            )));
        }
        let explanation = Explanation::new(&chirp);
        return Ok(Case { title: format!("A chirp from {}", file.display()), chirp, explanation, packet, truth: None });
    }
    let (simulated, start) = simulate(args)?;
    let observed = start.choose(args.chirp).map_err(Failure::usage)?.clone();
    Ok(Case {
        title: format!("Chirp {} of {}", observed.number, words::path(&simulated)),
        chirp: observed.chirp.clone(),
        explanation: observed.explanation.clone(),
        packet: start.packet,
        truth: Some(Truth { simulated, observed }),
    })
}

fn simulate(args: &ExplainArgs) -> Result<(Simulated, SimulatedStart), Failure> {
    let usual = Race::default();
    let start = match &args.start {
        Some(start) => start.clone(),
        None => USUAL_START.parse().map_err(Failure::usage)?,
    };
    let simulated = Simulated {
        capacity: args.capacity.unwrap_or(usual.capacity()),
        rtt: args.rtt.unwrap_or(usual.path.rtt),
        buffer: args.buffer.unwrap_or(usual.buffer()),
        start,
        udp: args.udp.unwrap_or(0.0),
        jitter: args.jitter.unwrap_or_default(),
        background: args.background.clone(),
        seed: args.seed.unwrap_or(DEFAULT_SEED),
    };
    let sent = simulated.run().map_err(Failure::usage)?;
    Ok((simulated, sent))
}
