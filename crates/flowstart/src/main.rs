//! Command line of flowstart.

mod args;
mod benchmark;
mod cli;
mod compare;
mod docs;
mod doctor;
mod explain;
mod formats;
mod frontier;
mod interrupt;
mod kernel;
mod list;
mod man;
mod output;
mod pages;
mod quick_start;
#[cfg(target_os = "linux")]
mod real;
mod reproduce;
mod run_scenarios;
mod scenario;
mod scenario_page;

use std::error::Error;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let outcome = match &cli.command {
        Command::Compare(args) => compare::compare(args),
        Command::Frontier(args) => frontier::frontier(args),
        Command::Benchmark(args) => benchmark::benchmark(args),
        Command::Run(args) => run_scenarios::run(args),
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => real::emulate(args),
        #[cfg(not(target_os = "linux"))]
        Command::Emulate(_) => Err(output::Failure::NotPossible(output::NEEDS_LINUX.to_owned())),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::ExplainChirp(args) => explain::explain(args),
        Command::ExplainQuickStart(args) => quick_start::explain(args),
        Command::Scenario(command) => scenario::scenario(command),
        Command::Kernel(command) => kernel::kernel(command),
        Command::List(args) => list::list(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Docs(args) => docs::docs(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "flowstart", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
        Command::Man { dir } => man::man(dir.as_deref()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Help and version as they are; what is wrong in one sentence.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ErrorKind};
    if error.kind() == ErrorKind::ValueValidation
        && let (Some(option), Some(reason)) = (error.get(ContextKind::InvalidArg), error.source())
    {
        let option = option.to_string();
        let name = option.split_whitespace().next().unwrap_or_default();
        return output::Failure::Usage(format!("{name}: {reason}")).report();
    }
    // Nothing can be done if nobody reads it.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
