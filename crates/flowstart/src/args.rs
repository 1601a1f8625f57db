//! Options that several commands share, and those of commands with few.

mod compare;
mod emulate;
mod fidelity;
mod kernel;
mod names;
mod path;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use flowstart_scenario::MOST_SEED;
use flowstart_units::{Rate, Span};

pub(crate) use compare::CompareArgs;
pub(crate) use emulate::EmulateArgs;
pub(crate) use fidelity::FidelityArgs;
pub(crate) use kernel::KernelCommand;
pub(crate) use names::ContestantParser;
pub(crate) use path::{PathArgs, RacePathArgs};

/// A seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= MOST_SEED);
    seed.ok_or_else(|| format!("\"{text}\" is not a whole number between 0 and {MOST_SEED}"))
}

/// A number of runs.
pub(crate) fn runs(text: &str) -> Result<u64, String> {
    const MOST: u64 = 100_000;
    match text.parse() {
        Ok(runs) if (1..=MOST).contains(&runs) => Ok(runs),
        _ => Err(format!("\"{text}\" is not a number of runs between 1 and {MOST}")),
    }
}

/// Where what the papers' figures gave is kept.
pub(crate) const RECORD: &str = "docs/reproduce.json";

/// A rate, or none.
fn rate_or_unlimited(text: &str) -> Result<Rate, String> {
    if text.trim() == "unlimited" {
        return Ok(Rate::UNLIMITED);
    }
    text.parse::<Rate>().map_err(|error| format!("{error}; or \"unlimited\""))
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 1024;
    match text.parse() {
        Ok(threads) if (1..=MOST).contains(&threads) => Ok(threads),
        _ => Err(format!("\"{text}\" is not a number of threads between 1 and {MOST}")),
    }
}

/// Where results go.
#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// Folder for the results
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// One more result file; html, json, csv, md, svg or txt by its ending; may be repeated
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) files: Vec<PathBuf>,
    /// What .svg files show: a figure of the report by a word of its title, such as "delay"
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(crate) figure: Option<String>,
    /// Print one JSON document instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write no files beside those asked for
    #[arg(long, help_heading = "Output")]
    pub(crate) no_report: bool,
}

/// Where a page goes beside the results' folder.
#[derive(Args, Debug)]
pub(crate) struct PageArgs {
    /// Write the report: html, md, or svg (one figure of it), by the ending; may be repeated
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) pages: Vec<PathBuf>,
    /// What .svg files show: a figure of the report by words of its title
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(crate) figure: Option<String>,
}

/// Options of `flowstart run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  flowstart run dumbbell.toml
  flowstart run dumbbell.toml -o dumbbell.html
  flowstart run dumbbell.toml -o delay.svg --figure delay
  flowstart run dumbbell.toml --runs 30 --out results")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Seed of all random numbers, instead of the files'
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Independent repetitions, instead of the files'
    #[arg(long, alias = "seeds", value_name = "N", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) runs: Option<u64>,
    /// So many repetitions in which all flows but the first start later, by a random part of the
    /// base RTT, as the file's key phases says: means and intervals of what depends on phases
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with_all = ["runs", "real"],
          value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub(crate) phases: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Folder for the result tables; without it only the summary is printed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the table of packets compressed: packets.csv.gz, a sixth of packets.csv
    #[arg(long, requires = "out")]
    pub(crate) gzip: bool,
    /// Write the tables as Apache Parquet too (if the program was built with it)
    #[arg(long, requires = "out")]
    pub(crate) parquet: bool,
    /// Write the packets of every link of each scenario's first run into this folder, as pcapng
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Run the flows as connections of this machine's kernel, in real time (Linux)
    #[arg(long, conflicts_with = "threads")]
    pub(crate) real: bool,
    /// Most lateness of 99 % of the packets with --real; a run that is later fails with status 4
    /// [default: 1 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "real")]
    pub(crate) fidelity: Option<Span>,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  flowstart reproduce --list
  flowstart reproduce paced-chirping
  flowstart reproduce paced-chirping/fig6 rethinking-startup --out pictures
  flowstart reproduce my-figure.toml --strict
  flowstart reproduce quick-start/fig13 --seed 7 --full
  flowstart reproduce --recorded --markdown > docs/reproduce.md
  sudo flowstart reproduce quick-start --real --record

A claim is reproduced or differs (by how much, and why) if the 95 % interval over runs is clear of its bound,
undecided if it is not, and under-specified if the answer depends on what the paper leaves open. Runs are
added until every claim is decided or the budget is spent. A claim that differs is a result: the exit status
is 0 unless --strict is given; it is 2 if a name or a file is wrong.";

/// Options of `flowstart reproduce`.
#[derive(Args, Debug)]
#[command(after_help = REPRODUCE_EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Papers, figures (PAPER/FIGURE) or files of your own (.toml) [default: all papers]
    #[arg(value_name = "PAPER[/FIGURE]")]
    pub(crate) what: Vec<String>,
    /// Say what there is instead of running it
    #[arg(long, conflicts_with_all = ["full", "seed", "runs", "record", "recorded", "verify", "stability", "plot",
        "pages", "figure", "markdown", "strict", "threads"])]
    pub(crate) list: bool,
    /// Quick-Start's testbed (figures 6 and 9 to 11) with real packets of this machine's kernel
    /// over an emulated link, every transfer N times [default: 3]. The file of --record and
    /// --recorded is docs/quick-start-real.json then
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3",
        allow_hyphen_values = true, value_parser = runs,
        conflicts_with_all = ["list", "full", "seed", "runs", "verify", "stability", "plot", "threads"])]
    pub(crate) real: Option<u64>,
    /// With --real: only the transfers that the paper's claims and the completion times are about
    #[arg(long, requires = "real", conflicts_with = "recorded")]
    pub(crate) quick: bool,
    /// With --real and --record: keep the runs that the file holds and add to them, beginning with
    /// those transfers that have fewest; so the whole can be measured in parts
    #[arg(long, requires = "real", requires = "record")]
    pub(crate) add: bool,
    /// With --real and --recorded: simulate again, beside the kernel's runs of the file, and put
    /// that into it
    #[arg(long, requires = "real", requires = "recorded")]
    pub(crate) simulate: bool,
    /// Spend the whole budget of runs on claims that are not decided sooner, and probe attainable
    /// rates with as many samples as the papers did (much longer)
    #[arg(long)]
    pub(crate) full: bool,
    /// Seed of all random numbers, instead of those in the files
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Run every variant exactly so often, instead of until its claims are decided
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = runs)]
    pub(crate) runs: Option<u64>,
    /// Keep what the runs gave in this file (JSON); figures that were not run stay as they are
    /// there
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = RECORD, conflicts_with_all = ["seed", "runs"])]
    pub(crate) record: Option<PathBuf>,
    /// Run nothing: judge what this file holds
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = RECORD,
        conflicts_with_all = ["seed", "runs", "full", "record", "verify", "stability", "plot", "pages"])]
    pub(crate) recorded: Option<PathBuf>,
    /// Run again what took little of what this file holds, and one run of each other figure, and
    /// say where something else comes out
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = RECORD,
        conflicts_with_all = ["seed", "runs", "full", "record", "stability", "plot", "pages", "markdown", "json",
            "strict"])]
    pub(crate) verify: Option<PathBuf>,
    /// Run everything with the seeds 1 to N, and say which claims get another verdict. With
    /// --record the file keeps it; figures that were not run stay as they are there
    #[arg(long, value_name = "N", allow_hyphen_values = true,
        conflicts_with_all = ["seed", "runs", "plot", "pages", "markdown", "strict"],
        value_parser = clap::value_parser!(u64).range(2..=100))]
    pub(crate) stability: Option<u64>,
    /// Write the figures as SVG and a page with everything (index.html) into this folder
    #[arg(long = "out", alias = "plot", value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Print one JSON document instead of tables
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print Markdown instead of tables
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Exit with status 1 if a claim differs
    #[arg(long)]
    pub(crate) strict: bool,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

/// `flowstart scenario`.
#[derive(Debug, Subcommand)]
pub(crate) enum ScenarioCommand {
    /// Check scenario files and say what is wrong
    #[command(after_help = "Example: flowstart scenario lint *.toml")]
    Lint {
        /// Scenario files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print a scenario with every default filled in
    #[command(after_help = "Example: flowstart scenario show dumbbell.toml")]
    Show {
        /// Scenario file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the JSON Schema of scenario files, for editors
    #[command(after_help = "Example: flowstart scenario schema > scenario.schema.json")]
    Schema,
}

/// Options of `flowstart list`.
#[derive(Args, Debug)]
#[command(after_help = "Example: flowstart list --json")]
pub(crate) struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `flowstart doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Example: flowstart doctor")]
pub(crate) struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `flowstart docs`.
#[derive(Args, Debug)]
#[command(after_help = "Example: flowstart docs --check")]
pub(crate) struct DocsArgs {
    /// Folder of the generated pages
    #[arg(default_value = "docs", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Write nothing; fail if a page is not up to date
    #[arg(long)]
    pub(crate) check: bool,
}
