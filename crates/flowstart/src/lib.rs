//! The command line of flowstart, as a library: a program of one's own with an algorithm of one's
//! own gets all of its commands, the algorithm among those of the project.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use flowstart::congestion::{Ack, FlowStart, StartConfig, Window};
//!
//! /// Three times the window every round trip.
//! #[derive(Clone)]
//! struct Triple;
//!
//! impl FlowStart for Triple {
//!     fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
//!         window.slow_start(2 * ack.acked)
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     let about = "three times the window every round trip";
//!     let own = StartConfig::own("triple", about, |_| Box::new(Triple));
//!     match own.and_then(StartConfig::register) {
//!         // From now on "triple+cubic" is a contestant.
//!         Ok(()) => flowstart::main(),
//!         Err(error) => {
//!             eprintln!("{error}");
//!             ExitCode::FAILURE
//!         }
//!     }
//! }
//! ```

mod args;
mod benchmark;
mod captures;
mod cli;
mod compare;
mod docs;
mod doctor;
pub mod embed;
mod explain;
mod formats;
mod frontier;
mod interrupt;
mod kernel;
mod list;
mod man;
mod new_algorithm;
mod output;
mod pages;
mod quic;
mod quick_start;
#[cfg(target_os = "linux")]
mod real;
mod reproduce;
mod router;
mod run_scenarios;
mod scenario;
mod session;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};

pub use flowstart_congestion as congestion;
pub use flowstart_race as race;
pub use flowstart_race::contract;
pub use flowstart_units as units;

/// What the program `flowstart` does with the arguments of this process. Gives the status to end
/// with: 0, 2 for arguments that are wrong, 3 for what this machine cannot do, 1 else.
pub fn main() -> ExitCode {
    main_with(std::env::args_os())
}

/// The same with these arguments, the first of which is the name of the program.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    interrupt::heed_nohup();
    interrupt::survive_limits_of_files();
    // Options name files that are read with them.
    flowstart_files::heeding_inputs(|| status_of(arguments))
}

fn status_of(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = match Cli::try_parse_from(arguments) {
        Ok(cli) => obey(&cli.command),
        Err(error) if is_a_value(&error) => Err(refused(&error)),
        Err(error) if error.use_stderr() => {
            // Nothing can be done if nobody reads it.
            let _ = error.print();
            return ExitCode::from(2);
        }
        // Help and the version.
        Err(error) => output::printed(error.print()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Does what a command says; one that fails leaves no empty folders behind.
fn obey(command: &Command) -> output::Done {
    output::leaving_nothing(|| dispatch(command))
}

fn dispatch(command: &Command) -> output::Done {
    match command {
        Command::Compare(args) => compare::compare(args),
        Command::Frontier(args) => frontier::frontier(args),
        Command::Benchmark(args) => benchmark::benchmark(args),
        #[cfg(target_os = "linux")]
        Command::Run(args) if args.real => real::run(args),
        #[cfg(not(target_os = "linux"))]
        Command::Run(args) if args.real => Err(output::Failure::NotPossible(output::NEEDS_LINUX.to_owned())),
        Command::Run(args) => run_scenarios::run(args),
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => real::emulate(args),
        #[cfg(not(target_os = "linux"))]
        Command::Emulate(_) => Err(output::Failure::NotPossible(output::NEEDS_LINUX.to_owned())),
        #[cfg(target_os = "linux")]
        Command::Fidelity(args) => real::fidelity(args),
        #[cfg(not(target_os = "linux"))]
        Command::Fidelity(_) => Err(output::Failure::NotPossible(output::NEEDS_LINUX.to_owned())),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::ExplainChirp(args) => explain::explain(args),
        Command::ExplainQuickStart(args) => quick_start::explain(args),
        Command::Scenario(command) => scenario::scenario(command),
        Command::Kernel(command) => kernel::kernel(command),
        Command::Router(command) => router::router(command),
        Command::Serve(args) => quic::serve(args),
        Command::Fetch(args) => quic::fetch(args),
        Command::Path(args) => quic::look(args),
        Command::List(args) => list::list(args),
        Command::NewAlgorithm(args) => new_algorithm::new_algorithm(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Docs(args) => docs::docs(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "flowstart", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
        Command::Man { dir } => man::man(dir.as_deref()),
    }
}

fn is_a_value(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::ValueValidation && error.source().is_some()
}

/// What a range refused, without the largest number of its type, which is nobody's limit.
fn within_limits(reason: &str) -> String {
    let open = |limit: String| reason.strip_suffix(&limit).and_then(|rest| rest.split_once(" is not in "));
    match open(format!("..={}", u32::MAX)).or_else(|| open(format!("..{}", u64::MAX))) {
        Some((value, least)) if value.parse().ok() < least.parse::<i128>().ok() => {
            format!("{value} is less than {least}")
        }
        Some((value, _)) => format!("{value} is too large a number"),
        None => reason.to_owned(),
    }
}

/// What is wrong with the arguments, in one sentence; help and version as they are.
fn refused(error: &clap::Error) -> output::Failure {
    use clap::error::ContextKind;
    use std::num::IntErrorKind;
    if is_a_value(error)
        && let (Some(option), Some(reason)) = (error.get(ContextKind::InvalidArg), error.source())
    {
        let option = option.to_string();
        let name = option.split_whitespace().next().unwrap_or_default();
        let number = reason.downcast_ref::<std::num::ParseIntError>().map(std::num::ParseIntError::kind);
        let text = error.get(ContextKind::InvalidValue).map(ToString::to_string).unwrap_or_default();
        return output::Failure::Usage(match number {
            Some(IntErrorKind::PosOverflow) => format!("{name}: {text} is too large a number"),
            Some(_) => format!("{name}: \"{text}\" is not a whole number"),
            None => format!("{name}: {}", within_limits(&reason.to_string())),
        });
    }
    let text = error.to_string();
    output::Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}

#[doc = include_str!("../../../docs/own-algorithm.md")]
#[cfg(doctest)]
struct OwnAlgorithmPage;
