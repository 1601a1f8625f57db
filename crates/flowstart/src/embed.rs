//! The commands inside another program: what they print is returned, how far they are is told, and
//! the program may stop them. The Python package is one such program.

use std::cell::RefCell;
use std::ffi::OsString;
use std::sync::Arc;

use clap::Parser;
use flowstart_parallel::Cancel;
use flowstart_race::RaceResult;
use flowstart_results::Results;

use crate::cli::{Cli, Command};
use crate::output::Failure;

/// Told how much is done, of how much.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// What the other program gives.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Asks to stop; what is finished is kept.
    pub cancel: Cancel,
    /// Told now and then how far a command is, from any thread.
    pub progress: Option<Progress>,
}

/// What a command did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Exit status, as the program `flowstart` would have it.
    pub status: u8,
    /// What went to standard output.
    pub output: Vec<u8>,
    /// What is wrong, in a sentence; empty if nothing is.
    pub message: String,
    /// What was said beside the data.
    pub notes: Vec<String>,
}

struct Session {
    hooks: Hooks,
    called: Called,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread as a part of another program.
fn within<T>(hooks: Hooks, work: impl FnOnce() -> Result<T, Failure>) -> (Option<T>, Called) {
    let before = SESSION.replace(Some(Session { hooks, called: Called::default() }));
    let outcome = work();
    let session = SESSION.replace(before);
    let mut called = session.map_or_else(Called::default, |session| session.called);
    match outcome {
        Ok(value) => (Some(value), called),
        Err(failure) => {
            (called.status, called.message) = failure.told();
            (None, called)
        }
    }
}

/// The hooks, if a command runs on this thread inside another program.
pub(crate) fn hooks() -> Option<Hooks> {
    SESSION.with_borrow(|session| session.as_ref().map(|session| session.hooks.clone()))
}

/// Takes what would be printed; false if this is the program `flowstart` itself.
pub(crate) fn take(bytes: &[u8]) -> bool {
    SESSION.with_borrow_mut(|session| {
        session.as_mut().map(|session| session.called.output.extend_from_slice(bytes)).is_some()
    })
}

/// Takes a remark; false if this is the program `flowstart` itself.
pub(crate) fn take_note(text: &str) -> bool {
    SESSION
        .with_borrow_mut(|session| session.as_mut().map(|session| session.called.notes.push(text.to_owned())).is_some())
}

fn parse(arguments: &[OsString]) -> Result<Cli, Failure> {
    let all = std::iter::once(OsString::from("flowstart")).chain(arguments.iter().cloned());
    Cli::try_parse_from(all).map_err(|error| crate::refused(&error))
}

/// A command with these arguments (`["compare", "--json"]`), on this thread.
#[must_use]
pub fn call(arguments: &[OsString], hooks: Hooks) -> Called {
    within(hooks, || crate::obey(&parse(arguments)?.command)).1
}

/// The race that `flowstart compare` runs with these arguments (`["compare", "-C", "cubic"]`).
/// Options about what is written and printed do nothing.
///
/// # Errors
/// What the command would say, with its status.
pub fn compare(arguments: &[OsString], hooks: Hooks) -> Result<RaceResult, Called> {
    let race = || match parse(arguments)?.command {
        Command::Compare(args) => {
            let (race, _) = crate::compare::race(&args)?;
            crate::compare::raced(&race, &args).map(|(result, _)| result)
        }
        _ => Err(Failure::usage("this is no race; the arguments must begin with \"compare\"")),
    };
    let (result, called) = within(hooks, race);
    result.ok_or(called)
}

/// The results of the scenario files that `flowstart run` runs with these arguments
/// (`["run", "a.toml"]`), each with its name. Options about what is written and printed do nothing.
///
/// # Errors
/// What the command would say, with its status.
pub fn run(arguments: &[OsString], hooks: Hooks) -> Result<Vec<(String, Results)>, Called> {
    let run = || match parse(arguments)?.command {
        Command::Run(args) if !args.real => crate::run_scenarios::ran(&args),
        _ => Err(Failure::usage("this runs no scenario; the arguments must begin with \"run\", without --real")),
    };
    let (results, called) = within(hooks, run);
    results.ok_or(called)
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
        let result = compare(&words, Hooks::default()).unwrap();
        let printed = call(&words, Hooks::default()).output;
        assert_eq!(format!("{:#}\n", result.to_json()).into_bytes(), printed);
    }

    #[test]
    fn a_race_that_is_stopped_says_so() {
        let hooks = Hooks::default();
        hooks.cancel.cancel();
        let result = compare(&words("compare -C cubic"), hooks.clone()).unwrap();
        assert!(!result.complete);
        assert_eq!(call(&words("compare -C cubic --json"), hooks).status, 130);
    }
}
