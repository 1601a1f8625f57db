//! The commands inside another program: what they print is returned, how far they are is told, and
//! the program may stop them. The Python package is one such program.

use std::ffi::OsString;

use clap::Parser;
use flowstart_race::RaceResult;
use flowstart_results::Results;

use crate::cli::{Cli, Command};
use crate::output::{Failure, note};
use crate::session;

pub use crate::session::{Called, Hooks, Progress};

/// Runs `work` on this thread as a part of another program.
fn within<T>(arguments: &[OsString], hooks: Hooks, work: impl FnOnce() -> Result<T, Failure>) -> (Option<T>, Called) {
    let (outcome, mut called) = session::within(arguments, hooks, work);
    match outcome {
        Ok(value) => (Some(value), called),
        Err(failure) => {
            (called.status, called.message) = failure.told();
            (None, called)
        }
    }
}

fn parse(arguments: &[OsString]) -> Result<Cli, Failure> {
    let all = std::iter::once(OsString::from("flowstart")).chain(arguments.iter().cloned());
    Cli::try_parse_from(all).map_err(|error| {
        if error.use_stderr() {
            return crate::refused(&error);
        }
        // Help and version are what was asked for.
        session::take(error.to_string().as_bytes());
        Failure::Status(0)
    })
}

/// Refuses options that ask for files where a value is returned.
fn without_files(options: &[(&str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Failure::usage(format!(
            "{name} asks for files, and this call returns the result instead; as a command line it writes them"
        ))),
        None => Ok(()),
    }
}

/// A command with these arguments (`["compare", "--json"]`), on this thread.
#[must_use]
pub fn call(arguments: &[OsString], hooks: Hooks) -> Called {
    within(arguments, hooks, || crate::obey(&parse(arguments)?.command)).1
}

/// A race that was run.
#[derive(Debug)]
pub struct Raced {
    /// What it brought.
    pub result: RaceResult,
    /// What the command said beside the data.
    pub notes: Vec<String>,
    /// Why a real run was less faithful than its limit asks for, in a sentence, if it was.
    pub unfaithful: Option<String>,
}

/// The race that `flowstart compare` runs with these arguments (`["compare", "-C", "cubic"]`).
/// Options about what is printed do nothing; those that ask for files are refused. A real run that
/// was not faithful enough has its result, too.
///
/// # Errors
/// What the command would say, with its status.
pub fn compare(arguments: &[OsString], hooks: Hooks) -> Result<Raced, Called> {
    let race = || match parse(arguments)?.command {
        Command::Compare(args) => {
            let output = &args.output;
            without_files(&[
                ("--out", output.out.is_some()),
                ("--output", !output.files.is_empty()),
                ("--pcap", args.pcap.is_some()),
            ])?;
            if args.worlds {
                let why =
                    "--worlds is three races, and this call returns the result of one; as a command line it runs them";
                return Err(Failure::usage(why));
            }
            let (race, warnings) = crate::compare::race(&args)?;
            warnings.iter().for_each(|warning| note(warning));
            let (result, verdict) = crate::compare::raced(&race, &args)?;
            match verdict {
                Ok(()) => Ok((result, None)),
                Err(Failure::Fidelity(message)) => Ok((result, Some(message))),
                Err(other) => Err(other),
            }
        }
        _ => Err(Failure::usage("this is no race; the arguments must begin with \"compare\"")),
    };
    match within(arguments, hooks, race) {
        (Some((result, unfaithful)), called) => Ok(Raced { result, notes: called.notes, unfaithful }),
        (None, called) => Err(called),
    }
}

/// Scenarios that were run.
#[derive(Debug)]
pub struct Ran {
    /// What each brought, with its name.
    pub results: Vec<(String, Results)>,
    /// What the command said beside the data.
    pub notes: Vec<String>,
}

/// The results of the scenario files that `flowstart run` runs with these arguments
/// (`["run", "a.toml"]`). Options about what is printed do nothing; those that
/// ask for files are refused.
///
/// # Errors
/// What the command would say, with its status.
pub fn run(arguments: &[OsString], hooks: Hooks) -> Result<Ran, Called> {
    let run = || match parse(arguments)?.command {
        Command::Run(args) if !args.real => {
            without_files(&[
                ("--out", args.out.is_some()),
                ("--output", !args.page.pages.is_empty()),
                ("--pcap", args.pcap.is_some()),
            ])?;
            crate::run_scenarios::ran(&args)
        }
        _ => Err(Failure::usage("this runs no scenario; the arguments must begin with \"run\", without --real")),
    };
    match within(arguments, hooks, run) {
        (Some(results), called) => Ok(Ran { results, notes: called.notes }),
        (None, called) => Err(called),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_command_returns_what_it_would_print() {
        let called = call(&words("list --json"), Hooks::default());
        assert_eq!((called.status, called.message.as_str()), (0, ""));
        assert!(serde_json::from_slice::<serde_json::Value>(&called.output).is_ok());
    }

    #[test]
    fn help_and_version_are_what_was_asked_for() {
        let called = call(&words("--version"), Hooks::default());
        assert_eq!((called.status, called.message.as_str()), (0, ""));
        assert!(called.output.starts_with(b"flowstart "), "{called:?}");
    }

    #[test]
    fn files_are_not_promised_where_a_value_is_returned() {
        for wrong in ["compare --out folder", "compare -o a.html", "compare --pcap folder"] {
            let called = compare(&words(wrong), Hooks::default()).unwrap_err();
            assert!(called.status == 2 && called.message.contains("asks for files"), "{wrong}: {called:?}");
        }
        let called = run(&words("run a.toml --out folder"), Hooks::default()).unwrap_err();
        assert!(called.status == 2 && called.message.contains("asks for files"), "{called:?}");
    }

    #[test]
    fn what_is_shown_names_the_command_and_not_the_program_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let out = format!("compare -C reno -n 30kB --capacity 10Mbit/s --out {}", folder.path().display());
        assert_eq!(call(&words(&out), Hooks::default()).status, 0);
        let report = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert!(report.contains("flowstart compare -C reno -n 30kB"), "the command is not in the report");
    }

    #[test]
    fn a_scenario_may_be_a_text_whose_files_are_in_the_working_folder() {
        let text = "duration = \"1 s\"\n[path]\nrtt = \"20 ms\"\ncapacity = { trace = \"no-such.trace\" }\n[[flow]]\n";
        let hooks = Hooks { texts: vec![("mine".into(), text.to_owned())], ..Hooks::default() };
        let called = run(&words("run mine"), hooks).unwrap_err();
        assert!(called.message.contains("no-such.trace: cannot be read"), "{}", called.message);
        let text = "duration = \"1 s\"\n[path]\nrtt = \"20 ms\"\ncapcity = \"1 Mbit/s\"\n";
        let hooks = Hooks { texts: vec![("mine".into(), text.to_owned())], ..Hooks::default() };
        let called = run(&words("run mine"), hooks.clone()).unwrap_err();
        assert!(called.message.starts_with("mine") && called.message.contains("capcity"), "{}", called.message);
        let called = run(&words("run other"), hooks).unwrap_err();
        assert!(called.message.contains("cannot be read"), "{}", called.message);
    }

    #[test]
    fn what_is_wrong_is_the_sentence_of_the_command_line() {
        let called = call(&words("compare -C cubik"), Hooks::default());
        assert_eq!(called.status, 2);
        assert!(called.message.contains("did you mean \"cubic\"?"), "{}", called.message);
        let called = compare(&words("compare --capacity fast"), Hooks::default()).unwrap_err();
        assert_eq!(called.status, 2);
        assert!(called.message.starts_with("--capacity: "), "{}", called.message);
        assert!(run(&words("list"), Hooks::default()).is_err());
    }

    #[test]
    fn a_race_is_the_race_of_the_command_line() {
        let words = words("compare -C cubic,reno -n 30kB --capacity 10Mbit/s --json --no-report");
        let result = compare(&words, Hooks::default()).unwrap().result;
        let printed = call(&words, Hooks::default()).output;
        assert_eq!(format!("{:#}\n", result.to_json()).into_bytes(), printed);
    }

    #[test]
    fn what_a_command_says_beside_its_data_is_not_lost() {
        let text = "duration = \"1 s\"\n[path]\nrtt = \"20 ms\"\ncapacity = \"5 Mbit/s\"\n[[flow]]\nsize = \"9 kB\"\n";
        let hooks = || Hooks { texts: vec![("mine".into(), text.to_owned())], ..Hooks::default() };
        let ran = run(&words("run mine --runs 3"), hooks()).unwrap();
        assert_eq!(ran.notes, ["mine: no randomness in this scenario: one run is enough"]);
        let raced = compare(&words("compare mine -C reno -n 9kB"), hooks()).unwrap();
        assert!(raced.notes[0].contains("duration is for `flowstart run`"), "{:?}", raced.notes);
        let raced = compare(&words("compare -C dctcp --background cubic -n 9kB --runs 1"), Hooks::default()).unwrap();
        assert!(raced.notes[0].contains("not over a queue that marks"), "{:?}", raced.notes);
    }

    #[test]
    fn a_race_that_is_stopped_says_so() {
        let hooks = Hooks::default();
        hooks.cancel.cancel();
        let result = compare(&words("compare -C cubic"), hooks.clone()).unwrap().result;
        assert!(!result.complete);
        assert_eq!(call(&words("compare -C cubic --json"), hooks).status, 130);
    }
}
