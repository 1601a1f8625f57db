//! The options.

use std::path::PathBuf;

use clap::Args;

use flowstart_race::{Background, Contestant, QueueChoice};
use flowstart_service_curve::Probability;
use flowstart_service_curve::stats::{Level, Sides};
use flowstart_units::{Bytes, ParseUnitError, Rate, Span, parse_fraction, parse_time_limit};

use super::place::Place;
use crate::args::{ContestantParser, PageArgs, RacePathArgs, seed, threads};
use crate::quic::StackName;

/// Whose rate is measured if nobody is named.
pub(super) const DEFAULT_CONTESTANT: &str = "cubic";

const EXAMPLES: &str = "\
Examples:
  flowstart benchmark cubic
  flowstart benchmark reno --against cubic,scalable --capacity 100Mbit/s --rtt 20ms --buffer '1 BDP'
  flowstart benchmark hystart+cubic --against slow_start+cubic --peers 0 --background '3 reno'
  flowstart benchmark reno --measured testbed.csv --json | jq '.results[].attainable_rate'
  flowstart benchmark cubic --against bbr,dctcp --on drop_tail,codel,dual_pi2 --markdown
  flowstart benchmark cubic --against reno --runs 5 --curve-epsilon '10 %'
  flowstart benchmark cubic --film frames.txt --film-fps 30
  flowstart benchmark cubic --profile cable --with 'medium.shaper.burst = \"32 kB\"'
  flowstart benchmark cubic --delays delays.csv
  flowstart benchmark --measured delays.csv
  flowstart benchmark --real cubic,reno,bbr --delays kernel.csv
  flowstart benchmark cubic --real cubic --seed 2
  flowstart benchmark --quic cubic,adaptive_chirping+delay_target
  flowstart benchmark --command 'probe --rate {rate} --for {seconds}' --server 'probe --listen'
  flowstart benchmark bbr --to 192.0.2.7 --fingerprint 5e1f... --capacity 50Mbit/s

The attainable rate a(t): what an interval of length t has at least, except with the stated probability. Each rate is probed
with a constant-rate application over one connection until 750 independent delays are there, or as many as are worth so
many. A rate is too high if its delays are seen to grow; one that the measurement does not decide is said to be undecided.
docs/service-curve.md explains it. Nine greedy flows of the contestant's own kind share the bottleneck unless --peers or
--background says otherwise.

With --real the congestion controls of this machine's kernel are probed in real time, with --quic contestants over this
project's QUIC, and with --command a program, each rate on an emulated path of its own; contestants are simulated beside them only if they are named, over the same path by the same procedure. The defaults are
then such that a curve takes less than five minutes: 10 Mbit/s and 40 ms, four greedy flows of the same kind, a fifth of the fair share
as step, 150 samples and a quantile of 5 %, 240 s at most per rate, evidence that a rate is too high after 120 s, no bursts
and no new connections.

With --to contestants (cubic unless others are named) are probed over this project's QUIC across a real path, from here to
`flowstart serve` there, one rate after another, at rates up to --capacity, or to what a look at the path finds. Nobody is put
beside them, and each rate is measured for 45 s: five minutes per contestant. No rights are needed at either end.

A file of measurements has the columns sent_ns (the write), received_ns (the other application's read) and, with trains of
several rates, rate_bps (or _us, _ms, _s in place of _ns); left_ns and arrived_ns, when a message left the sender's stack and
arrived at the receiver's, tell where its delay arises.
A film has one number per line, the bytes of a frame; empty lines and those that begin with # do not count.";

/// A violation probability.
fn probability(text: &str) -> Result<Probability, String> {
    let p = parse_fraction(text).map_err(|error| error.to_string())?;
    Probability::new(p).map_err(|error| error.to_string())
}

/// One that something may share: what is certain is nobody's to share.
fn shared(text: &str) -> Result<Probability, String> {
    let whole = probability(text)?;
    if whole.get() < 1.0 { Ok(whole) } else { Err("a curve that may always be violated says nothing".to_owned()) }
}

/// Which deviations from independence count.
fn sides(text: &str) -> Result<Sides, String> {
    match text {
        "two" => Ok(Sides::Two),
        "few" => Ok(Sides::TooFew),
        _ => Err("known are two (too few runs and too many) and few (too few only)".to_owned()),
    }
}

/// The level of a test: how often it fails where nothing is wrong.
fn test_level(text: &str) -> Result<Probability, String> {
    let level = probability(text)?;
    let percent = (level.get() * 1e8).round() / 1e6;
    let right = "name a level above 0 % and of at most 50 %, such as 1 % or 5 %";
    match level.get() {
        0.0 => Err(format!("a test at 0 % never fails: {right}")),
        at if at > 0.5 => {
            Err(format!("a test at {percent} % fails as often as not, or more often, where nothing is wrong: {right}"))
        }
        _ => Ok(level),
    }
}

/// For how long delays must have grown.
fn overload_after(text: &str) -> Result<Span, String> {
    let after: Span = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if after >= Span::from_secs(1) {
        return Ok(after);
    }
    Err(format!("delays rise and fall within {after}: name at least 1 s (the default is 600 s)"))
}

/// A level with tabulated critical values.
fn level(text: &str) -> Result<Level, String> {
    let percent = probability(text)?.get() * 100.0;
    let known = [(1.0, Level::One), (5.0, Level::Five), (10.0, Level::Ten)];
    let found = known.into_iter().find(|(known, _)| (percent - known).abs() < 1e-9);
    found.map(|(_, level)| level).ok_or_else(|| "known are 1 %, 5 % and 10 %".to_owned())
}

/// Options of `flowstart benchmark`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("stacks").args(["real", "quic", "command", "to"]).multiple(true)))]
pub(crate) struct BenchmarkArgs {
    /// Whose attainable rate: a contestant as in `flowstart compare` [default: cubic, unless
    /// --measured, --real, --quic or --command is given]
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
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, requires = "measured")]
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
    /// Probability with which the whole curve may be violated, in equal shares for all probing
    /// rates (union bound), in place of --epsilon
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "Procedure", value_parser = shared,
          conflicts_with = "epsilon")]
    pub(crate) curve_epsilon: Option<Probability>,
    /// The paper's procedure: thinned until independent whatever it takes, no least time, and the
    /// first rate that is not accepted ends the curve; options below override it
    #[arg(long, help_heading = "Procedure")]
    pub(crate) paper: bool,
    /// Independent samples per rate [default: 750]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub(crate) samples: Option<u32>,
    /// How long each rate is measured at most, in simulated time [default: 3000 s]
    #[arg(long, alias = "duration", value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = parse_time_limit)]
    pub(crate) lasting: Option<Span>,
    /// Measure every simulated rate that is not decided to the end of --lasting; without it a rate
    /// that the rest of the time will not decide is given up
    #[arg(long, help_heading = "Procedure")]
    pub(crate) to_the_end: bool,
    /// How long each probe runs before its first sample [default: 10 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) warm_up: Option<Span>,
    /// How long each rate is watched at least before it is accepted [default: 60 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) least: Option<Span>,
    /// How long delays must have grown before a rate is too high, at least 1 s [default: 600 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure", value_parser = overload_after)]
    pub(crate) overload_after: Option<Span>,
    /// Mean time between samples, which are packets at random and two apart in the mean at least
    /// [default: 10 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) gap: Option<Span>,
    /// A series that is not accepted is made so many times longer and thinned [default: 2]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) growth: Option<u32>,
    /// Sides of the runs test for independence: two, or few for too few runs only [default: two]
    #[arg(long, value_name = "SIDES", help_heading = "Procedure", value_parser = sides)]
    pub(crate) sides: Option<Sides>,
    /// Level of the runs test, 50 % at most [default: 5 %]
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "Procedure", value_parser = test_level)]
    pub(crate) independence_level: Option<Probability>,
    /// Level of the test for stationarity: 1, 5 or 10 % [default: 5 %]
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "Procedure", value_parser = level)]
    pub(crate) stationarity_level: Option<Level>,
    /// Level of the test for growth, 50 % at most [default: 1 %; 0.1 % with --real]
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "Procedure", value_parser = test_level)]
    pub(crate) growth_level: Option<Probability>,
    /// Mean rate of the video whose delay is bounded [default: 0.4 fair shares]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) video: Option<Rate>,
    /// A film whose delay is bounded instead: a file with the size of a frame, in bytes, on every
    /// line
    #[arg(long, value_name = "FILE", help_heading = "Procedure", conflicts_with = "video")]
    pub(crate) film: Option<PathBuf>,
    /// Frames per second of the film [default: 24]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure", requires = "film",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) film_fps: Option<u16>,
    /// A burst of this size into the steady state whose delay is bounded, such as "100 kB"
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Procedure")]
    pub(crate) burst: Option<Bytes>,
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
    /// Congestion controls of this machine's kernel to probe, in real time (Linux), separated by
    /// commas: those of `sysctl net.ipv4.tcp_available_congestion_control`
    #[arg(long, value_name = "CONTROLS", value_delimiter = ',', help_heading = "Real")]
    pub(crate) real: Vec<String>,
    /// Contestants to probe over this project's QUIC, in real time (Linux), separated by commas,
    /// such as cubic or adaptive_chirping+delay_target
    #[arg(long, value_name = "CONTESTANTS", value_delimiter = ',', value_parser = ContestantParser, hide_possible_values = true,
          help_heading = "Real")]
    pub(crate) quic: Vec<Contestant>,
    /// QUIC stack of both ends with --quic
    #[arg(long, value_name = "STACK", default_value = "noq", requires = "quic", help_heading = "Real")]
    pub(crate) stack: StackName,
    /// A program to probe in the kernel's place: a shell command that sends messages of 1448 bytes
    /// at {rate} bit/s for {seconds} s to FLOWSTART_SERVER and then writes their times on standard
    /// output, as --measured reads them (Linux)
    #[arg(long, value_name = "CMD", help_heading = "Real")]
    pub(crate) command: Option<String>,
    /// Shell command to start on the receiving host before it; it is ready when it listens
    #[arg(long, value_name = "CMD", requires = "command", help_heading = "Real")]
    pub(crate) server: Option<String>,
    /// Probe across the real path to `flowstart serve` there, over QUIC: a host, and a UDP port if
    /// it is not 4433 (lab:5000)
    #[arg(long, value_name = "HOST", help_heading = "Real")]
    pub(crate) to: Option<Place>,
    /// Fingerprint of that server's certificate, as `serve` prints it; needed beyond this machine
    #[arg(long, value_name = "HEX", requires = "to", help_heading = "Real")]
    pub(crate) fingerprint: Option<String>,
    /// Accept any certificate there: nobody knows who answers
    #[arg(long, requires = "to", conflicts_with = "fingerprint", help_heading = "Real")]
    pub(crate) insecure: bool,
    /// Go on with what the folder of the results has: rates that were finished there with the same
    /// options are not probed again
    #[arg(long, requires = "stacks", conflicts_with = "no_report", help_heading = "Real")]
    pub(crate) resume: bool,
    /// So many rates are probed at once, each on a path of its own [default: as many as have
    /// 60 Mbit/s of capacity together]
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "stacks", help_heading = "Real",
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) at_once: Option<u16>,
    /// Most lateness of 99 % of the packets with --real or --command; with a path that is later the
    /// status is 4, after the results [default: 1 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "stacks", help_heading = "Real")]
    pub(crate) fidelity: Option<Span>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Measure so many times, with the seed and those after it: medians, with the lowest and the
    /// highest [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure",
          value_parser = clap::value_parser!(u16).range(1..=1000),
          conflicts_with_all = ["stacks", "measured", "delays", "joint"])]
    pub(crate) runs: Option<u16>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Procedure", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Folder for the page and the numbers [default: flowstart-benchmark]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Write when every message was handed over and read to this CSV file (or Parquet, if the
    /// program was built with it), which --measured reads, by the command that is printed then; of
    /// several contestants one file each, with their names after this one
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) delays: Option<PathBuf>,
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

impl BenchmarkArgs {
    /// True if anything is probed in real time.
    pub(super) fn is_real(&self) -> bool {
        self.to.is_some() || !self.real.is_empty() || !self.quic.is_empty() || self.command.is_some()
    }
}
