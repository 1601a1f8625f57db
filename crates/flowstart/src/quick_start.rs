//! `flowstart explain-quick-start`: the analytic model of what Quick-Start gains, as a table and a
//! picture.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use flowstart_pages::quick_start::Gain;
use flowstart_quick_start::model::Start;
use flowstart_units::{Bytes, Rate, Span};

use crate::output::{Done, Failure, prepare_file, print, print_json, write_file};
use crate::session::command_line;

const EXAMPLES: &str = "\
Examples:
  flowstart explain-quick-start
  flowstart explain-quick-start --initial-window 3 --rtt 50ms,100ms,200ms -o gain.svg
  flowstart explain-quick-start --capacity 1Gbit/s --grant 655.36Mbit/s --acks delayed --markdown

`flowstart reproduce quick-start/model` sets the model against simulations.";

/// When the receiver acknowledges, as far as the model is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Acks {
    /// Every packet: the window doubles per round
    Every,
    /// Every second packet, and the sender counts ACKs: the window grows by half per round
    Delayed,
}

/// Options of `flowstart explain-quick-start`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QuickStartArgs {
    /// Rate of the bottleneck, in bits of IP packets per second
    #[arg(long, alias = "rate", value_name = "RATE", allow_hyphen_values = true, default_value = "10 Mbit/s")]
    capacity: Rate,
    /// Rate that the routers grant
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, default_value = "5.12 Mbit/s")]
    grant: Rate,
    /// Round-trip times without queue and transmission, separated by commas
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        allow_hyphen_values = true,
        default_value = "10 ms,20 ms,50 ms,100 ms,200 ms,500 ms"
    )]
    rtt: Vec<Span>,
    /// Sizes of transfers, separated by commas
    #[arg(
        short = 'n',
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        allow_hyphen_values = true,
        default_value = "1 kB,3 kB,10 kB,30 kB,100 kB,300 kB,1 MB,3 MB,10 MB"
    )]
    size: Vec<Bytes>,
    /// Initial window in packets
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    initial_window: u32,
    /// Threshold in packets from which on the window grows by one per round [default: none]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    threshold: Option<u32>,
    /// Which packets are acknowledged
    #[arg(long, value_enum, default_value_t = Acks::Every)]
    acks: Acks,
    /// Bytes of a full packet, headers included
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1500,
        value_parser = clap::value_parser!(u32).range(1..=65_535))]
    packet: u32,
    /// Bytes of headers of IP and TCP in each packet
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 40)]
    headers: u32,
    /// Write a picture: the gain by size, a line per round-trip time (SVG)
    #[arg(short = 'o', long = "output", alias = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl QuickStartArgs {
    fn gain(&self) -> Gain {
        let growth = match self.acks {
            Acks::Every => 2.0,
            Acks::Delayed => 1.5,
        };
        Gain {
            capacity: self.capacity,
            grant: self.grant,
            rtts: self.rtt.clone(),
            sizes: self.size.clone(),
            start: Start { initial_window: self.initial_window, growth, threshold: self.threshold },
            packet: self.packet,
            headers: self.headers,
        }
    }

    fn check(&self) -> Done {
        let positive = [
            ("--capacity", self.capacity > Rate::ZERO, "a link of 0 bit/s carries nothing"),
            ("--grant", self.grant > Rate::ZERO, "a grant of 0 bit/s is a denial"),
            ("--grant", self.grant <= self.capacity, "routers cannot grant more than the bottleneck has"),
            ("--rtt", self.rtt.iter().all(|rtt| !rtt.is_zero()), "without a round-trip time there is nothing to gain"),
            ("--size", self.size.iter().all(|size| *size > Bytes::ZERO), "a transfer has at least one byte"),
            (
                "--output",
                self.out.as_ref().is_none_or(|out| out.extension() == Some("svg".as_ref())),
                "the picture is an .svg file",
            ),
            ("--headers", self.headers < self.packet, "a packet has room for a byte beside its headers"),
        ];
        match positive.iter().find(|(_, holds, _)| !holds) {
            Some((option, _, why)) => Err(Failure::Usage(format!("{option}: {why}"))),
            None => Ok(()),
        }
    }
}

/// Prints the model.
pub(crate) fn explain(args: &QuickStartArgs) -> Done {
    args.check()?;
    let gain = args.gain();
    if let Some(out) = &args.out {
        prepare_file(out)?;
        write_file(out, gain.picture(&command_line()).to_svg().as_bytes())?;
    }
    if args.json {
        return print_json(&gain.to_json());
    }
    let table = gain.table();
    print(&if args.markdown { table.to_markdown() } else { table.to_terminal(crate::output::terminal()) })
}
