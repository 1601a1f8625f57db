//! Options that several commands share, and those of commands with few.

mod emulate;
mod fidelity;
mod names;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use flowstart_kernel::Algorithm;
use flowstart_race::{Background, Contestant, MarkThreshold};
use flowstart_scenario::{Buffer, PathPart, PathSpec, Profile, WaySpec};
use flowstart_units::{Bytes, Rate, Span};

use crate::output::{Failure, note};

pub(crate) use emulate::EmulateArgs;
pub(crate) use fidelity::FidelityArgs;
pub(crate) use names::ContestantParser;
use names::ProfileParser;

/// A seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a whole number between 0 and {}", u64::MAX))
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

const COMPARE_EXAMPLES: &str = "\
Examples:
  flowstart compare
  flowstart compare -C cubic,hystart++,reno --capacity 1Gbit/s --rtt 50ms --buffer '0.5 BDP'
  flowstart compare -C 'paced_chirping+dctcp@step_mark 1ms' -C 'dctcp@step_mark 1ms' --background '2 dctcp'
  flowstart compare --profile cable --with 'merged_acks = { within = \"2 ms\", most = 44 }' --with 'jitter = \"2 ms\"'
  flowstart compare --with 'medium.shaper = { burst = \"32 kB\", line = \"1 Gbit/s\" }' --with 'queue = \"fq_codel\"'
  sudo flowstart compare --worlds -C cubic,reno --runs 5
  flowstart compare --json --no-report | jq '.contestants[].label'

A contestant is START+AVOIDANCE@QUEUE, for instance \"paced_chirping+cubic@drop_tail 1 BDP\", or a short
name; what it leaves open is run as its authors run it. `flowstart list` has all names.

Results go to the folder flowstart-report in the current directory unless --out, -o, --json or --no-report
says otherwise; files of an earlier race there are replaced.";

/// Options about a path: they override a scenario file's.
#[derive(Args, Debug)]
pub(crate) struct PathArgs {
    /// A path as people have it, by name or in a file of one's own (.toml); options below override
    /// it
    #[arg(long, value_name = "NAME", help_heading = "Path", value_parser = ProfileParser)]
    pub(crate) profile: Option<Profile>,
    /// Rate of the bottleneck; the mean of a profile's that changes [default: 100 Mbit/s]
    #[arg(long, alias = "rate", value_name = "RATE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) capacity: Option<Rate>,
    /// Base round-trip time, propagation only [default: 20 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) rtt: Option<Span>,
    /// Buffer of queues that do not name their own, in BDP, packets, bytes or time [default: 1 BDP]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) buffer: Option<Buffer>,
    /// This many bottlenecks in parallel: connections are spread over them (load balancing)
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = ways, allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) ways: Option<usize>,
    /// Set any key of the path as a profile's file would have it, in TOML, such as 'jitter = "2
    /// ms"' or 'medium.shaper.burst = "32 kB"'; may be repeated, and goes before all other options
    #[arg(long = "with", value_name = "KEY = VALUE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) with: Vec<PathPart>,
}

/// A number of ways in parallel.
fn ways(text: &str) -> Result<usize, String> {
    const MOST: usize = 64;
    match text.parse() {
        Ok(ways) if (1..=MOST).contains(&ways) => Ok(ways),
        _ => Err(format!("\"{text}\" is not a number of ways between 1 and {MOST}")),
    }
}

impl PathArgs {
    /// Lays what was said over a path: its profile first, single keys last.
    pub(crate) fn lay_over(&self, path: &mut PathSpec) -> Result<(), Failure> {
        if let Some(profile) = &self.profile {
            *path = profile.path.clone();
        }
        if let Some(rtt) = self.rtt {
            // Ways that are longer or shorter than the first stay so by as much.
            let before = path.delay.unwrap_or(path.rtt / 2);
            for delay in path.ways.iter_mut().filter_map(|way| way.delay.as_mut()) {
                *delay = (rtt / 2 + *delay) - before;
            }
            path.rtt = rtt;
            // It was half of the other RTT, or stood in the file for that one.
            path.delay = None;
        }
        // After the RTT, over which the mean of a capacity may be taken.
        match (self.profile.is_some(), self.capacity) {
            (true, Some(capacity)) => *path = path.scaled_to(capacity),
            (false, Some(capacity)) => path.capacity = path.capacity.with_nominal(capacity),
            (_, None) => {}
        }
        path.buffer = self.buffer.or(path.buffer);
        if let Some(ways) = self.ways {
            path.ways = vec![WaySpec::default(); ways - 1];
        }
        self.set_keys(path)
    }

    /// Sets the keys of `--with`.
    pub(crate) fn set_keys(&self, path: &mut PathSpec) -> Result<(), Failure> {
        *path = path.with(&self.with).map_err(|error| Failure::Usage(format!("--with {error}")))?;
        Ok(())
    }

    /// Whether `--with` names this key of the path.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.with.iter().any(|part| part.name() == key)
    }

    /// Says which options count for nothing, as `--with` says otherwise: of these keys, and of
    /// those that every path has options for.
    pub(crate) fn tell_overridden(&self, more: &[(&str, bool)]) {
        let own = [
            ("capacity", self.capacity.is_some()),
            ("rtt", self.rtt.is_some()),
            ("buffer", self.buffer.is_some()),
            ("ways", self.ways.is_some()),
        ];
        for (key, _) in own.iter().chain(more).filter(|(key, given)| *given && self.sets(key)) {
            note(&format!("--with {key} counts, and not --{}", key.replace('_', "-")));
        }
    }
}

/// Options about the path of a race.
#[derive(Args, Debug)]
pub(crate) struct RacePathArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Threshold of marking queues, in time, packets or bytes [default: 1 ms]
    #[arg(long, value_name = "THRESHOLD", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) mark: Option<MarkThreshold>,
}

/// Options of `flowstart compare`.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// A scenario file with the path, and with the flows that are there before; options below
    /// override it
    pub(crate) scenario: Option<PathBuf>,
    /// Who races; repeat it, or separate several by commas
    #[arg(short = 'C', long = "contestant", value_name = "CONTESTANT", value_delimiter = ',',
          value_parser = ContestantParser, hide_possible_values = true)]
    pub(crate) contestants: Vec<Contestant>,
    #[command(flatten)]
    pub(crate) path: RacePathArgs,
    /// Newcomers that start together [default: 1]
    #[arg(short = 'P', long, value_name = "N", allow_hyphen_values = true, help_heading = "Traffic",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) flows: Option<u32>,
    /// Greedy flows that are there before, such as "cubic", "3 dctcp" or "2 cubic/ecn", which
    /// answers marks; may be repeated
    #[arg(long, value_name = "FLOWS", allow_hyphen_values = true, help_heading = "Traffic")]
    pub(crate) background: Vec<Background>,
    /// Sizes of the timed transfers, separated by commas [default: 100 kB,1 MB,10 MB]
    #[arg(
        short = 'n',
        long = "size",
        value_name = "SIZE",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Traffic"
    )]
    pub(crate) sizes: Vec<Bytes>,
    /// How long after its first bit a newcomer is watched [default: 40 round trips]
    #[arg(short = 't', long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Traffic")]
    pub(crate) horizon: Option<Span>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Runs", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Independent repetitions [default: 10 if anything is random, else 1]
    #[arg(long, alias = "seeds", value_name = "N", allow_hyphen_values = true, help_heading = "Runs",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: Option<u32>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Runs", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Title of the report
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,
    /// Print the table with every measure
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    /// Race the congestion controls of this machine's kernel, in real time (Linux) [default
    /// contestants: cubic, reno]
    #[arg(long, conflicts_with = "threads", help_heading = "Real")]
    pub(crate) real: bool,
    /// Race over this project's QUIC instead, with the contestants' own starts and avoidances
    #[arg(long, conflicts_with_all = ["threads", "real"], help_heading = "Real")]
    pub(crate) quic: bool,
    /// Race in the simulator, over this machine's kernel and over this project's QUIC: one table of
    /// the three
    #[arg(long, conflicts_with_all = ["real", "quic", "pcap", "figure", "all"], help_heading = "Real")]
    pub(crate) worlds: bool,
    /// Most lateness of 99 % of the packets with --real, --quic and --worlds; a race that is later
    /// fails with status 4 [default: 1 ms]
    #[arg(long, value_name = "TIME", help_heading = "Real")]
    pub(crate) fidelity: Option<Span>,
    /// Write the bottleneck's packets of each contestant's first run into this folder, as pcapng
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
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
    /// What .svg files show: a figure of the report by a word of its title, such as "delay"
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
    #[arg(long, value_name = "TIME", requires = "real")]
    pub(crate) fidelity: Option<Span>,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  flowstart reproduce --list
  flowstart reproduce paced-chirping
  flowstart reproduce paced-chirping/fig6 rethinking-startup --plot pictures
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
    #[arg(long)]
    pub(crate) list: bool,
    /// Quick-Start's testbed (figures 6 and 9 to 11) with real packets of this machine's kernel
    /// over an emulated link, every transfer N times [default: 3]. The file of --record and
    /// --recorded is docs/quick-start-real.json then
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3",
        allow_hyphen_values = true, value_parser = runs,
        conflicts_with_all = ["list", "full", "seed", "runs", "verify", "stability", "plot", "threads"])]
    pub(crate) real: Option<u64>,
    /// With --real: only the transfers that the paper's claims and the completion times are about
    #[arg(long, requires = "real")]
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
    /// Run again what took little of what this file holds, and say where something else comes out
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = RECORD,
        conflicts_with_all = ["seed", "runs", "full", "record", "stability", "plot", "pages", "markdown", "json"])]
    pub(crate) verify: Option<PathBuf>,
    /// Run everything with the seeds 1 to N, and say which claims get another verdict. With
    /// --record the file keeps it; figures that were not run stay as they are there
    #[arg(long, value_name = "N", conflicts_with_all = ["seed", "runs", "plot", "pages", "markdown"],
        value_parser = clap::value_parser!(u64).range(2..=100))]
    pub(crate) stability: Option<u64>,
    /// Write the figures as SVG and a page with everything (index.html) into this folder
    #[arg(long, value_name = "DIR")]
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

const KERNEL_LOAD_EXAMPLES: &str = "\
Examples:
  sudo flowstart kernel load paced_chirping
  sudo flowstart kernel load paced_chirping --param ecn=off --param max_first_gap=500us

It stays loaded until it is unloaded or the machine restarts. The system's default congestion control stays
what it is: choose the new one for a socket (TCP_CONGESTION), a route (`ip route … congctl NAME`) or all
(`sysctl net.ipv4.tcp_congestion_control=NAME`). `flowstart kernel list` has all names and parameters.";

/// `flowstart kernel`.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Register an algorithm as a congestion control
    #[command(after_help = KERNEL_LOAD_EXAMPLES)]
    Load {
        /// Name of the algorithm
        #[arg(value_name = "NAME")]
        algorithm: Algorithm,
        /// Set a parameter; may be repeated
        #[arg(long = "param", value_name = "NAME=VALUE")]
        parameters: Vec<String>,
        /// quick_start: device whose packets carry requests and answers; may be repeated, also
        /// later for more devices [default: all that are up]
        #[arg(long = "dev", value_name = "DEVICE")]
        devices: Vec<String>,
        /// quick_start: network namespace of the devices, as `ip netns` knows it
        #[arg(long, value_name = "NAME", requires = "devices")]
        netns: Option<String>,
        /// Print what the kernel says if it refuses
        #[arg(short, long)]
        verbose: bool,
    },
    /// Take an algorithm away; connections that use it keep it until they end
    #[command(after_help = "Example: sudo flowstart kernel unload paced_chirping")]
    Unload {
        /// Names of algorithms [default: all that are loaded]
        #[arg(value_name = "NAME")]
        algorithms: Vec<Algorithm>,
    },
    /// List algorithms for the kernel, their parameters, and what is loaded
    #[command(after_help = "Example: flowstart kernel list --json")]
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Watch Paced Chirping: every chirp, what is read from it, and how starts end, until Ctrl-C
    #[command(after_help = "Example: sudo flowstart kernel watch --json | jq 'select(.event == \"end\")'")]
    Watch {
        /// Print one JSON object per line instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Say what this kernel lacks; exit status 1 if something is missing
    #[command(after_help = "Example: flowstart kernel check")]
    Check {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
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
