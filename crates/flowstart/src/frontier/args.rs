//! The options.

use std::path::PathBuf;

use clap::Args;

use flowstart_frontier::{FrontierError, LoadKind, PathKind, Seeds, Shard};
use flowstart_race::Contestant;
use flowstart_scenario::{Buffer, PathPart, Profile};
use flowstart_units::{Rate, Span};

use crate::args::{ContestantParser, PageArgs, threads};

const EXAMPLES: &str = "\
Examples:
  flowstart frontier --quick
  flowstart frontier --quick -C search+cubic,paced_chirping+cubic --capacity 100Mbit/s --load idle
  flowstart frontier --grid rough --quick --half development
  flowstart frontier --profile wifi,lte -C adaptive_chirping+cubic,oracle+cubic
  flowstart frontier --quick --load idle --with 'merged_acks = { within = \"2 ms\", most = 44 }'
  flowstart frontier --as-is -C adaptive_chirping+cubic,suss+cubic,oracle+cubic
  flowstart frontier --out frontier-results
  flowstart frontier --out frontier-results --resume
  flowstart frontier --plan
  flowstart frontier --quick --seeds held-out --runs 10 --json | jq '.contestants[].medians.completion_ratio'

The grid: 5, 20, 100, 500 Mbit/s, 1, 10 Gbit/s; 5, 20, 50, 100, 300 ms; buffers of 0.25, 1, 4 BDP; paths that are clean
(an ACK for every segment), with 0.1 % loss, with jitter of 5 % of the RTT, with delayed ACKs; idle, with one greedy
flow (CUBIC, or DCTCP over a marking queue), with 20 % of Poisson datagrams: 1080 cells. Cells without randomness run
with one seed. The options under \"Grid\" choose other values than these.

--quick is 20, 100 and 500 Mbit/s; 20 and 100 ms; buffers of 0.25 and 1 BDP; every path and load: 144 cells. The
whole grid takes hours: Ctrl-C keeps what is finished, --resume goes on from there.

--grid rough: kinds of paths as people have them (docs/rough-paths.md) at 5 to 1000 Mbit/s and 10 to 150 ms, each
with one of eight queues and one of five loads, drawn once and for all. --half chooses half of its cells and of the
seeds: constants are chosen on one half and judged on the other.

Contestants are those of `flowstart compare`; when the receiver acknowledges is the path's business here.
hystart+cubic, which the others are compared with, always races.";

/// Which grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GridKind {
    /// Smooth links: the grid above
    Smooth,
    /// Links as people have them: merged ACKs, bunches, jitter, shapers, Wi-Fi, LTE, slow ways back
    Rough,
}

/// Options of `flowstart frontier`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FrontierArgs {
    /// Who races; repeat it, or separate several by commas [default: every start with cubic, and
    /// those used with dctcp]
    #[arg(short = 'C', long = "contestant", value_name = "CONTESTANT", value_delimiter = ',', value_parser = ContestantParser, hide_possible_values = true)]
    pub(crate) contestants: Vec<Contestant>,
    /// Whom the goals are for: a contestant, or a flow start for all contestants that have it
    /// [default: the chirping start that is furthest developed]
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<String>,
    /// A subset of the grid that takes less than three minutes on two cores, of the rough one less
    /// than five
    #[arg(long, help_heading = "Grid")]
    pub(crate) quick: bool,
    /// Which grid: smooth, or rough for paths as people have them
    #[arg(long, value_enum, default_value_t = GridKind::Smooth, help_heading = "Grid")]
    pub(crate) grid: GridKind,
    /// Which half of seeds and, in the rough grid, of cells: development, held-out (not to be
    /// looked at while tuning), all [default: as --seeds]
    #[arg(long, value_name = "HALF", conflicts_with = "seeds", help_heading = "Runs")]
    pub(crate) half: Option<Seeds>,
    /// Profiles such as wifi or lte (`flowstart list` has all), separated by commas: their paths at
    /// the capacities and round trips of the rough grid
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "path", value_parser = profile,
          help_heading = "Grid")]
    pub(crate) profile: Vec<PathKind>,
    /// Profiles with the capacity, round-trip time and queue of their own, and nobody else unless
    /// --load says so: those of --profile, or all
    #[arg(long, conflicts_with_all = ["path", "capacity", "rtt", "buffer", "grid", "quick"], help_heading = "Grid")]
    pub(crate) as_is: bool,
    /// Rates of the bottleneck, separated by commas
    #[arg(long, value_name = "RATE", value_delimiter = ',', allow_hyphen_values = true, help_heading = "Grid")]
    pub(crate) capacity: Vec<Rate>,
    /// Base round-trip times
    #[arg(long, value_name = "TIME", value_delimiter = ',', allow_hyphen_values = true, help_heading = "Grid")]
    pub(crate) rtt: Vec<Span>,
    /// Buffers of drop-tail queues
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_hyphen_values = true, help_heading = "Grid")]
    pub(crate) buffer: Vec<Buffer>,
    /// Paths: clean, loss, jitter, delayed-acks; of the rough grid its kinds and the profiles
    #[arg(long, value_name = "PATH", value_delimiter = ',', help_heading = "Grid")]
    pub(crate) path: Vec<PathKind>,
    /// Set any key of every cell's path as a profile's file would have it, in TOML, such as 'jitter
    /// = "2 ms"'; may be repeated, and counts whatever the path says
    #[arg(long = "with", value_name = "KEY = VALUE", allow_hyphen_values = true, help_heading = "Grid")]
    pub(crate) with: Vec<PathPart>,
    /// Loads: idle, greedy, udp, bbr, dctcp, web
    #[arg(long, value_name = "LOAD", value_delimiter = ',', help_heading = "Grid")]
    pub(crate) load: Vec<LoadKind>,
    /// Which seeds: development (even ones), held-out (odd ones, not to be looked at while tuning),
    /// all
    #[arg(long, value_name = "HALF", default_value = "development", help_heading = "Runs")]
    pub(crate) seeds: Seeds,
    /// How many seeds [default: 10, with --quick 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Runs",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: Option<u32>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Runs", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Folder for the results: every cell, contestant and seed, the medians, and a report
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the results that are in the folder; what ran with the same parameters is not run
    /// again
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) resume: bool,
    /// Do only a part of the work, such as 3/16: for one of several machines
    #[arg(long, value_name = "K/N", requires = "out", conflicts_with_all = ["json", "pages"], help_heading = "Output")]
    pub(crate) shard: Option<Shard>,
    /// Take in the results of this folder, as another machine or a shard left it; may be repeated
    #[arg(long, value_name = "DIR", requires = "out", help_heading = "Output")]
    pub(crate) merge: Vec<PathBuf>,
    /// Do nothing but say what it costs: packets and processor time by capacity and RTT (with
    /// --json by cell), and how long so many cores need
    #[arg(long, conflicts_with_all = ["out", "resume", "merge", "shard", "pages"], help_heading = "Output")]
    pub(crate) plan: bool,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Print one JSON document instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Name every lost cell in the tables, not only the worst
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

/// The path of a profile; a wrong name is answered with those of profiles, not with all kinds.
fn profile(text: &str) -> Result<PathKind, String> {
    let named = text.parse::<Profile>();
    text.parse().map_err(|error: FrontierError| named.map_or_else(|wrong| wrong.to_string(), |_| error.to_string()))
}
