//! The command line, in types.

use clap::{Parser, Subcommand};

use crate::args::{
    CompareArgs, DocsArgs, DoctorArgs, EmulateArgs, KernelCommand, ListArgs, ReproduceArgs, RunArgs, ScenarioCommand,
};
use crate::benchmark::BenchmarkArgs;
use crate::explain::ExplainArgs;
use crate::frontier::FrontierArgs;
use crate::new_algorithm::NewAlgorithmArgs;
use crate::quic::{FetchArgs, PathArgs, ServeArgs};
use crate::quick_start::QuickStartArgs;
use crate::router::RouterCommand;

/// Race flow starts over a described path.
#[derive(Debug, Parser)]
#[command(
    name = "flowstart",
    version,
    about,
    long_about = "Race flow starts over a described path: how fast does a new flow get up to speed, and at whose cost in delay?",
    after_help = "Example: flowstart compare -C cubic,hystart++,paced_chirping --capacity 100Mbit/s --rtt 20ms",
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Race flow starts over one path: a table and a report
    Compare(Box<CompareArgs>),
    /// Race flow starts over a grid of paths: who is fast without delay, and where
    Frontier(Box<FrontierArgs>),
    /// Measure what rate a congestion control can be relied on for, over intervals of every length
    Benchmark(Box<BenchmarkArgs>),
    /// Run scenario files
    Run(RunArgs),
    /// Run programs on two hosts with a described path between them, in real time (Linux)
    Emulate(Box<EmulateArgs>),
    /// Reproduce papers: their figures, and a verdict on every claim
    Reproduce(ReproduceArgs),
    /// Explain one chirp: what its delays show, and what is read from them
    ExplainChirp(Box<ExplainArgs>),
    /// Explain what Quick-Start gains: response times of the analytic model, by size and round-trip
    /// time
    ExplainQuickStart(Box<QuickStartArgs>),
    /// Look at a scenario file without running it
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// Load flow starts into this machine's Linux kernel, and watch them
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Make devices of this machine Quick-Start routers (Linux)
    #[command(subcommand)]
    Router(RouterCommand),
    /// Serve transfers over QUIC, and looks at the path to here
    Serve(Box<ServeArgs>),
    /// Transfer over QUIC, with any flow start and congestion avoidance
    Fetch(Box<FetchArgs>),
    /// Look at the path to a server: rate, delay, and whether your queue is your own
    Path(Box<PathArgs>),
    /// List flow starts, congestion avoidances, queues and contestants
    List(ListArgs),
    /// Make a crate for a flow start of your own, which races beside those of the project
    NewAlgorithm(NewAlgorithmArgs),
    /// Say what this machine can do, and what is missing
    Doctor(DoctorArgs),
    /// Write the generated part of the documentation
    Docs(DocsArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example: flowstart completions bash > ~/.local/share/bash-completion/completions/flowstart"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}
