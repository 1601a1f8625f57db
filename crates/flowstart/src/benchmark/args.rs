//! The options.

use std::path::PathBuf;

use clap::Args;

use flowstart_race::{Background, Contestant, QueueChoice};
use flowstart_service_curve::Probability;
use flowstart_units::{Rate, Span, parse_fraction};

use crate::args::{ContestantParser, PageArgs, RacePathArgs, seed, threads};

const EXAMPLES: &str = "\
Examples:
  flowstart benchmark cubic
  flowstart benchmark reno --against cubic,scalable --capacity 100Mbit/s --rtt 20ms --buffer '1 BDP'
  flowstart benchmark hystart+cubic --against slow_start+cubic --peers 0 --background '3 reno'
  flowstart benchmark reno --measured testbed.csv --json | jq '.results[].attainable_rate'
  flowstart benchmark cubic --against bbr,dctcp --on drop_tail,codel,dual_pi2 --markdown
  flowstart benchmark cubic --film frames.txt --film-fps 30

The attainable rate a(t): what an interval of length t has at least, except with the stated probability. Each rate is probed
with a constant-rate application over one connection until 750 independent delays are there; the first rate that is
not stationary ends the curve, and one that the measurement does not decide is said to be undecided.
docs/service-curve.md explains it. Nine greedy flows of the contestant's own kind share the bottleneck unless --peers or
--background says otherwise.

A file of measurements has the columns sent_ns, received_ns and, with trains of several rates, rate_bps (or _us, _ms, _s).
A film has one number per line, the bytes of a frame; empty lines and those that begin with # do not count.";

/// A violation probability.
fn probability(text: &str) -> Result<Probability, String> {
    let p = parse_fraction(text).map_err(|error| error.to_string())?;
    Probability::new(p).map_err(|error| error.to_string())
}

/// Options of `flowstart benchmark`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchmarkArgs {
    /// Whose attainable rate: a contestant as in `flowstart compare` [default: cubic, unless
    /// --measured is given]
    pub(crate) contestant: Option<Contestant>,
    /// Others to put beside it, separated by commas
    #[arg(long, value_name = "CONTESTANT", value_delimiter = ',', value_parser = ContestantParser, hide_possible_values = true)]
    pub(crate) against: Vec<Contestant>,
    /// Put every contestant on each of these queues, separated by commas, instead of the one it
    /// names
    #[arg(long, value_name = "QUEUE", value_delimiter = ',')]
    pub(crate) on: Vec<QueueChoice>,
    /// A CSV file (or Parquet, if the program was built with it) of send and receive times to put
    /// beside them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) measured: Vec<PathBuf>,
    /// Rate at which the files of --measured that have no rate_bps were measured
    #[arg(long, value_name = "RATE", requires = "measured")]
    pub(crate) measured_rate: Option<Rate>,
    /// A scenario file with the path, and with the flows that are there before; options below
    /// override it
    #[arg(long, value_name = "FILE", help_heading = "Path")]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) path: RacePathArgs,
    /// Greedy flows of the contestant's own kind that are there before, with round trips of their
    /// own [default: 9]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Traffic",
          value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) peers: Option<u32>,
    /// Other greedy flows that are there before, such as "cubic" or "3 dctcp"; may be repeated
    #[arg(long, value_name = "FLOWS", allow_hyphen_values = true, help_heading = "Traffic")]
    pub(crate) background: Vec<Background>,
    /// Step between probing rates [default: a tenth of the fair share]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) step: Option<Rate>,
    /// Probability with which each rate's delay quantile may be exceeded [default: 1 %]
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "Procedure", value_parser = probability)]
    pub(crate) epsilon: Option<Probability>,
    /// Independent samples per rate [default: 750]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub(crate) samples: Option<u32>,
    /// How long each rate is measured at most, in simulated time [default: 3000 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) lasting: Option<Span>,
    /// How long each probe runs before its first sample [default: 10 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) warm_up: Option<Span>,
    /// Mean rate of the video whose delay is bounded [default: 0.4 fair shares]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) video: Option<Rate>,
    /// A film whose delay is bounded instead: a file with the size of a frame, in bytes, on every
    /// line
    #[arg(long, value_name = "FILE", help_heading = "Procedure", conflicts_with = "video")]
    pub(crate) film: Option<PathBuf>,
    /// Frames per second of the film [default: 24]
    #[arg(long, value_name = "N", help_heading = "Procedure", requires = "film",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) film_fps: Option<u16>,
    /// Bursts of 100 packets into an idle connection, 5 s apart, for a curve that need not be
    /// convex; 0 for none [default: 40]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) bursts: Option<u32>,
    /// New connections for the start-up curve; 0 for none [default: 20]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) connections: Option<u32>,
    /// Replicas in which all accepted rates meet the same random numbers, to calibrate them jointly
    /// instead of by the union bound; 0 for none [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) joint: Option<u32>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Folder for the page and the numbers [default: flowstart-benchmark]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Print one JSON document instead of tables; files are written only with --out
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print Markdown instead of tables; files are written only with --out
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Write no files
    #[arg(long, help_heading = "Output", conflicts_with = "out")]
    pub(crate) no_report: bool,
}
