//! Command line of flowstart.

mod cli;
mod compare;
mod docs;
mod doctor;
mod interrupt;
mod list;
mod output;
mod run;
mod scenario;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Compare(args) => compare::compare(args),
        Command::Run(args) => run::run(args),
        Command::Scenario(command) => scenario::scenario(command),
        Command::List(args) => list::list(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Docs(args) => docs::docs(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "flowstart", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
