//! Options of `flowstart emulate`.

use std::path::PathBuf;

use clap::Args;

use flowstart_scenario::{Buffer, JitterSpec, LossSpec, QueueSpec};
use flowstart_units::{Rate, Span, parse_time_limit};

use super::{PageArgs, PathArgs, rate_or_unlimited, seed};

#[cfg(target_os = "linux")]
use flowstart_real::MOST_PAIRS;

/// Options are read everywhere, so that help is the same; hosts are only made on Linux.
#[cfg(not(target_os = "linux"))]
const MOST_PAIRS: u32 = 100;

const EMULATE_EXAMPLES: &str = "\
Examples:
  flowstart emulate --capacity 50Mbit/s --rtt 30ms -- ping -c 5 server
  flowstart emulate --capacity 20Mbit/s --server 'python3 -m http.server 80' -- curl -o /dev/null http://server/
  flowstart emulate --capacity 20Mbit/s --reverse-capacity 100Mbit/s -- bash
  flowstart emulate --queue 'step_mark 1ms' --server 'iperf3 -s' -- iperf3 -c server
  flowstart emulate --loss 0.5% --pcap captures
  flowstart emulate --profile wifi --with 'reverse_capacity = \"5 Mbit/s\"' -- ping -c 5 server
  flowstart emulate --self-test
  flowstart emulate --clean

COMMAND runs on the host client; the host server is at the other end of the path, also by that name. Both
have their addresses in FLOWSTART_CLIENT and FLOWSTART_SERVER (and _V6). What passes the bottleneck is
reported on standard error. The exit status is COMMAND's, 3 if this machine does not allow it, 4 if packets
were later than --fidelity allows.";

/// What a self-test does not heed: its links are always the same, and its result is a table or,
/// with
/// `--json`, a document.
const NOT_OF_SELF_TEST: [&str; 30] = [
    "command",
    "server",
    "ready_within",
    "time_limit",
    "scenario",
    "hosts",
    "host_rtt",
    "profile",
    "capacity",
    "rtt",
    "buffer",
    "ways",
    "with",
    "trace",
    "queue",
    "loss",
    "jitter",
    "reverse_capacity",
    "reverse_buffer",
    "reverse_loss",
    "seed",
    "fidelity",
    "pages",
    "figure",
    "sample",
    "out",
    "gzip",
    "parquet",
    "pcap",
    "clean",
];

/// Options of `flowstart emulate`.
#[derive(Args, Debug)]
#[command(after_help = EMULATE_EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read on Linux"))]
pub(crate) struct EmulateArgs {
    /// Program to run on the client (on every one of several), and its arguments [default: a shell
    /// on the first]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
    /// Shell command to start on the server (on every one of several) first; COMMAND waits until it
    /// listens on a port
    #[arg(long, value_name = "CMD")]
    pub(crate) server: Option<String>,
    /// How long the server may take to listen
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10 s", value_parser = parse_time_limit)]
    pub(crate) ready_within: Span,
    /// Longest run; then COMMAND is ended
    #[arg(long = "most-time", alias = "time-limit", value_name = "TIME", allow_hyphen_values = true,
          default_value = "3600 s", value_parser = parse_time_limit)]
    pub(crate) time_limit: Span,
    /// A scenario file with the path or links, and a pair of hosts for every way of its flows;
    /// options below override its path
    #[arg(long, value_name = "FILE", help_heading = "Path")]
    pub(crate) scenario: Option<PathBuf>,
    /// Pairs of hosts on the two sides of the bottleneck: client1 and server1, client2 and server2
    /// ... [default: 1, client and server]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Path",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PAIRS)))]
    pub(crate) hosts: Option<u32>,
    /// Base round-trip time of each pair, separated by commas: a pair for each [default: that of
    /// the path]
    #[arg(long, value_name = "TIME", value_delimiter = ',', allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) host_rtt: Vec<Span>,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// A Mahimahi trace of the bottleneck's rate, instead of a constant one
    #[arg(long, value_name = "FILE", conflicts_with = "capacity", help_heading = "Path")]
    pub(crate) trace: Option<PathBuf>,
    /// Queue of the bottleneck, such as "step_mark 1ms" or "fq_codel" [default: drop_tail]
    #[arg(long, value_name = "QUEUE", help_heading = "Path")]
    pub(crate) queue: Option<QueueSpec>,
    /// Packets lost on arrival at the bottleneck, such as "0.1 %" or "every 100"
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) loss: Option<LossSpec>,
    /// Largest random extra delay behind the bottleneck
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) jitter: Option<JitterSpec>,
    /// Rate of the way back, over which downloads come, or "unlimited" [default: --capacity; of a
    /// scenario, what it says]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Path",
        value_parser = rate_or_unlimited)]
    pub(crate) reverse_capacity: Option<Rate>,
    /// Buffer of the way back, if it has a rate [default: --buffer]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) reverse_buffer: Option<Buffer>,
    /// Packets lost on the way back, if it has a rate
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) reverse_loss: Option<LossSpec>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed, help_heading = "Path")]
    pub(crate) seed: Option<u64>,
    /// Most lateness of 99 % of the packets; a run that is later fails with status 4 [default: 1
    /// ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Output")]
    pub(crate) fidelity: Option<Span>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Width of the bins of the table of samples; 0 for none [default: 100 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Output")]
    pub(crate) sample: Option<Span>,
    /// Folder for the result tables
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Write the table of packets compressed: packets.csv.gz, a sixth of packets.csv
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) gzip: bool,
    /// Write the tables as Apache Parquet too (if the program was built with it)
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) parquet: bool,
    /// Write the packets of every link into this folder, as pcapng
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,
    /// Print one JSON document on standard output; COMMAND's output goes to standard error
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Measure how precise and how fast emulation is on this machine
    #[arg(long, conflicts_with_all = NOT_OF_SELF_TEST, help_heading = "Instead")]
    pub(crate) self_test: bool,
    /// Remove what a killed flowstart left behind
    #[arg(long, exclusive = true, help_heading = "Instead")]
    pub(crate) clean: bool,
}
