//! Options of `flowstart compare`.

use std::path::PathBuf;

use clap::Args;

use flowstart_race::{Background, Contestant};
use flowstart_units::{Bytes, Span};

use crate::quic::StackName;

use super::{ContestantParser, OutputArgs, RacePathArgs, seed, threads};

const COMPARE_EXAMPLES: &str = "\
Examples:
  flowstart compare
  flowstart compare -C cubic,hystart++,reno --capacity 1Gbit/s --rtt 50ms --buffer '0.5 BDP'
  flowstart compare -C 'paced_chirping+dctcp@step_mark 1ms' -C 'dctcp@step_mark 1ms' --background '2 dctcp'
  flowstart compare --profile cable --with 'merged_acks = { within = \"2 ms\", most = 44 }' --with 'jitter = \"2 ms\"'
  flowstart compare --with 'medium.shaper = { burst = \"32 kB\", line = \"1 Gbit/s\" }' --with 'queue = \"fq_codel\"'
  flowstart compare -C cubic,reno --flows 2 --phases 20
  sudo flowstart compare --worlds -C cubic,reno --runs 5
  flowstart compare --json --no-report | jq '.contestants[].label'

A contestant is START+AVOIDANCE@QUEUE, for instance \"paced_chirping+cubic@drop_tail 1 BDP\", or a short
name; what it leaves open is run as its authors run it. `flowstart list` has all names.

Results go to the folder flowstart-report in the current directory unless --out, -o, --json or --no-report
says otherwise; files of an earlier race there are replaced.";

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
    /// Newcomers that start together; timed transfers are one alone [default: 1]
    #[arg(short = 'P', long, alias = "parallel", value_name = "N", allow_hyphen_values = true, help_heading = "Traffic",
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
    /// So many repetitions in which all newcomers but the first start later, by a random part of
    /// the base RTT, as the file's key phases says: means and intervals of what depends on phases
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Runs",
          conflicts_with = "runs", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) phases: Option<u32>,
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
    /// QUIC stack of both ends with --quic and --worlds [default: noq]
    #[arg(long, value_name = "STACK", help_heading = "Real")]
    pub(crate) stack: Option<StackName>,
    /// Most lateness of 99 % of the packets with --real, --quic and --worlds; a race that is later
    /// fails with status 4 [default: 1 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Real")]
    pub(crate) fidelity: Option<Span>,
    /// Write the bottleneck's packets of each contestant's first run into this folder, as pcapng
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
}
