//! The options.

use std::path::PathBuf;

use clap::Args;

use flowstart_explain::ChirpingStart;
use flowstart_race::Background;
use flowstart_scenario::Buffer;
use flowstart_units::{Bytes, Rate, Span, parse_fraction};

use crate::args::seed;

const EXAMPLES: &str = "\
Examples:
  flowstart explain-chirp
  flowstart explain-chirp --start paced_chirping --capacity 50Mbit/s --rtt 40ms --list
  flowstart explain-chirp --start paced_chirping --capacity 50Mbit/s --rtt 40ms --chirp 4 --out pictures
  flowstart explain-chirp --udp 20% --seed 7 --json
  flowstart explain-chirp trace.csv --packet 1500B --out delays.svg

A trace is a CSV file with the columns sent and acked: when each packet of one chirp left and when the ACK came
that told of it, in seconds since any moment, a line per packet in order of departure. Packets with the same time
in acked came in one ACK. Every packet must have been acknowledged, else the chirp says nothing.

docs/chirps.md explains what a chirp is.";

/// Options of `flowstart explain-chirp`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A CSV file with one chirp; without it a start is simulated
    #[arg(value_name = "FILE", conflicts_with_all = ["capacity", "rtt", "buffer", "start", "udp", "jitter", "background", "seed", "chirp", "list"])]
    pub(crate) file: Option<PathBuf>,
    /// Length of the file's packets on the wire, for rates [default: 1500 B]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, requires = "file")]
    pub(crate) packet: Option<Bytes>,
    /// Rate of the bottleneck [default: 100 Mbit/s]
    #[arg(long, alias = "rate", value_name = "RATE", allow_hyphen_values = true, help_heading = "Simulation")]
    pub(crate) capacity: Option<Rate>,
    /// Base round-trip time, propagation only [default: 20 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Simulation")]
    pub(crate) rtt: Option<Span>,
    /// Buffer of the bottleneck, in BDP, packets, bytes or time [default: 1 BDP]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Simulation")]
    pub(crate) buffer: Option<Buffer>,
    /// Who chirps: paced_chirping, two_gap_chirping, adaptive_chirping; /ack1 and /ack2 as for
    /// contestants [default: adaptive_chirping]
    #[arg(long, short = 'C', value_name = "START", help_heading = "Simulation")]
    pub(crate) start: Option<ChirpingStart>,
    /// Share of the capacity that datagrams at random moments take [default: 0 %]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Simulation", value_parser = share)]
    pub(crate) udp: Option<f64>,
    /// Longest extra delay of a packet behind the bottleneck, at random and without overtaking
    /// [default: 0 s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Simulation")]
    pub(crate) jitter: Option<Span>,
    /// Greedy flows that are there before, such as "cubic" or "3 dctcp"; may be repeated
    #[arg(long, value_name = "FLOWS", allow_hyphen_values = true, help_heading = "Simulation")]
    pub(crate) background: Vec<Background>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Simulation", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Which chirp, counted from 1 [default: the first that shows a knee]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Simulation",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) chirp: Option<u32>,
    /// List the chirps of the start instead of explaining one
    #[arg(long, conflicts_with_all = ["chirp", "out"], help_heading = "Simulation")]
    pub(crate) list: bool,
    /// Folder for three pictures (departures.svg, delays.svg, gaps.svg), or a file for the second
    /// (.svg)
    #[arg(long, value_name = "DIR|FILE.svg", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// A share below the whole.
fn share(text: &str) -> Result<f64, String> {
    let share = parse_fraction(text).map_err(|error| error.to_string())?;
    if share < 1.0 {
        Ok(share)
    } else {
        Err(format!("\"{text}\" leaves nothing to the chirps; write a share below 100 %"))
    }
}
