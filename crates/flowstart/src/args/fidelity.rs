//! Options of `flowstart fidelity`.

use std::path::PathBuf;

use clap::Args;

use flowstart_scenario::{QueueSpec, SpecError};
use flowstart_units::Span;

use super::{PageArgs, runs};

/// Where what the documentation shows is kept.
const RECORD: &str = "docs/fidelity.json.gz";

const EXAMPLES: &str = "\
Examples:
  sudo flowstart fidelity --quick
  sudo flowstart fidelity -C cubic,bbr --runs 5 -o fidelity.html
  sudo flowstart fidelity -C cubic --queue codel,red --duration 10s
  sudo flowstart fidelity --record=docs/fidelity.json.gz
  sudo flowstart fidelity -C bbr --record=docs/fidelity.json.gz --keep
  flowstart fidelity --recorded --markdown

One flow at a time over paths on which nothing was ever tuned, in the simulator with dialect =
\"linux\" and the ticks of this machine's kernel, and on that kernel over the emulator with its own
defaults. The same code measures both. A goal is met or missed if the whole 95 % interval over the
runs is on one side of it, else undecided. --quick takes about three and a half minutes, everything
about fifty. DCTCP needs a kernel that has it, or flowstart kernel load dctcp. The exit status is 3
if this machine does not allow real runs, 4 if no run was as punctual as --fidelity asks for.";

/// Options of `flowstart fidelity`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read on Linux"))]
pub(crate) struct FidelityArgs {
    /// Fewer paths, shorter runs, no references
    #[arg(long)]
    pub(crate) quick: bool,
    /// Congestion controls, separated by commas
    #[arg(short = 'C', long = "control", alias = "controls", value_name = "NAMES", value_delimiter = ',', default_value = "cubic,reno,bbr,dctcp",
        value_parser = ["cubic", "reno", "bbr", "dctcp"])]
    pub(crate) controls: Vec<String>,
    /// Only these queues, such as "codel,red" or "step_mark 3 ms", with every control over one path
    /// [default: the paths with the controls' own queue, then codel, fq_codel, pie and dual_pi2;
    /// with --quick only the former]
    #[arg(long = "queue", alias = "queues", value_name = "QUEUES", value_delimiter = ',', value_parser = queue)]
    pub(crate) queues: Vec<String>,
    /// Runs of each case; one decides nothing
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = runs, default_value = "3")]
    pub(crate) runs: u64,
    /// Length of a run, of which the first quarter counts for drops and the start only [default: 20
    /// s, references as they were; with --quick 8 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<Span>,
    /// Leave out runs in which 1 % of the packets were later than this [default: 1 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) fidelity: Option<Span>,
    /// Keep what came out in this file (JSON, compressed if its name ends in .gz)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = RECORD)]
    pub(crate) record: Option<PathBuf>,
    /// With --record: rows of the file that are not run now stay, so that it can be made part by
    /// part; the kernel and the number of runs must be the same
    #[arg(long, requires = "record")]
    pub(crate) keep: bool,
    /// With --record: runs are added to those of the same cases in the file, other rows stay; the
    /// kernel must be the same
    #[arg(long, requires = "record", conflicts_with = "keep")]
    pub(crate) add: bool,
    /// Run nothing: show what this file holds
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = RECORD,
        conflicts_with_all = ["quick", "controls", "queues", "runs", "duration", "fidelity", "record", "keep", "add"])]
    pub(crate) recorded: Option<PathBuf>,
    /// With --recorded: simulate again, beside the kernel's runs of the file, and put that into it
    #[arg(long, requires = "recorded")]
    pub(crate) simulate: bool,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Print one JSON document instead of tables
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print the generated part of docs/fidelity.md instead
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Exit with status 1 if a goal is missed
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A queue, in the words in which it was given.
fn queue(text: &str) -> Result<String, SpecError> {
    text.parse::<QueueSpec>()?;
    Ok(text.trim().to_owned())
}
