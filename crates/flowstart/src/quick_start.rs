//! `flowstart explain-quick-start`: the analytic model of what Quick-Start gains, as a table and a
//! picture.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use flowstart_quick_start::model::{Link, Start, Transfer};
use flowstart_report::{Axis, Cell, Color, Column, Figure, Legend, Series, Table};
use flowstart_units::{Bytes, Rate, Span};

use crate::output::{Done, Failure, prepare_file, print, print_json, write_file};
use crate::session::command_line;

const EXAMPLES: &str = "\
Examples:
  flowstart explain-quick-start
  flowstart explain-quick-start --initial-window 3 --rtt 50ms,100ms,200ms --out gain.svg
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
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    initial_window: u32,
    /// Threshold in packets from which on the window grows by one per round [default: none]
    #[arg(long, value_name = "N")]
    threshold: Option<u32>,
    /// Which packets are acknowledged
    #[arg(long, value_enum, default_value_t = Acks::Every)]
    acks: Acks,
    /// Bytes of a full packet, headers included
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    packet: u32,
    /// Bytes of headers of IP and TCP in each packet
    #[arg(long, value_name = "N", default_value_t = 40)]
    headers: u32,
    /// Write a picture: the gain by size, a line per round-trip time (SVG)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl QuickStartArgs {
    fn transfer(&self, rtt: Span) -> Transfer {
        let growth = match self.acks {
            Acks::Every => 2.0,
            Acks::Delayed => 1.5,
        };
        let link = Link { rate: self.capacity, rtt, packet: self.packet, headers: self.headers };
        Transfer::new(link, Start { initial_window: self.initial_window, growth, threshold: self.threshold })
    }

    fn check(&self) -> Done {
        let positive = [
            ("--capacity", self.capacity > Rate::ZERO, "a link of 0 bit/s carries nothing"),
            ("--grant", self.grant > Rate::ZERO, "a grant of 0 bit/s is a denial"),
            ("--rtt", self.rtt.iter().all(|rtt| !rtt.is_zero()), "without a round-trip time there is nothing to gain"),
            ("--size", self.size.iter().all(|size| *size > Bytes::ZERO), "a transfer has at least one byte"),
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
    if let Some(out) = &args.out {
        prepare_file(out)?;
        write_file(out, picture(args).to_svg().as_bytes())?;
    }
    if args.json {
        return print_json(&document(args));
    }
    let table = table(args);
    print(&if args.markdown { table.to_markdown() } else { table.to_terminal(crate::output::terminal()) })
}

/// Times in seconds with slow start and with Quick-Start.
fn times(args: &QuickStartArgs, rtt: Span, size: Bytes) -> (f64, f64) {
    let transfer = args.transfer(rtt);
    (transfer.slow_start(size), transfer.quick_start(size, args.grant))
}

fn table(args: &QuickStartArgs) -> Table {
    let seconds = |heading: &str| Column::number(heading, "s");
    let columns = vec![
        Column::key("size"),
        Column::key("RTT"),
        seconds("slow start").help("From the request to the last byte."),
        seconds("Quick-Start").help("The same with the grant."),
        Column::number("gain", "").help("How many times longer slow start takes."),
    ];
    let title = format!(
        "{} over {}, initial window {}: response times of the model",
        args.grant, args.capacity, args.initial_window
    );
    let mut table = Table::new(title, columns);
    for (size, rtt) in args.size.iter().flat_map(|size| args.rtt.iter().map(move |rtt| (*size, *rtt))) {
        let (slow, quick) = times(args, rtt, size);
        table.push(vec![
            Cell::text(size.to_string()),
            Cell::text(rtt.to_string()),
            Cell::number(slow, 3),
            Cell::number(quick, 3),
            Cell::number(slow / quick, 2),
        ]);
    }
    table.notes.push("One link without loss, from the request to the last byte, without the handshake.".to_owned());
    table
}

/// Sizes between two that are asked for, so that lines are curves.
const STEPS: u32 = 24;

fn picture(args: &QuickStartArgs) -> Figure {
    let mut figure = Figure::new(
        "Gain of Quick-Start by size",
        Axis::new("Size of the transfer", "kB").log(),
        Axis::new("Time with slow start over time with Quick-Start", ""),
    );
    figure.legend = Legend::Above;
    figure.command = command_line();
    figure.caption = format!(
        "Analytic model: {} granted of {}, initial window of {} packets, no loss.",
        args.grant, args.capacity, args.initial_window
    );
    let bytes = |size: &Bytes| size.get() as f64;
    let least = args.size.iter().map(bytes).fold(f64::INFINITY, f64::min);
    let most = args.size.iter().map(bytes).fold(0.0, f64::max);
    let steps = STEPS * args.size.len() as u32;
    for (number, rtt) in args.rtt.iter().enumerate() {
        let points = (0..=steps).map(|step| {
            let size = least * (most / least).powf(f64::from(step) / f64::from(steps.max(1)));
            let (slow, quick) = times(args, *rtt, Bytes::new(size.round() as u64));
            [size / 1e3, slow / quick]
        });
        figure.series.push(Series::line(format!("RTT {rtt}"), Color::new(number), points.collect()));
    }
    figure.mark_y(1.0, "no gain");
    figure
}

fn document(args: &QuickStartArgs) -> serde_json::Value {
    let rows = args.size.iter().flat_map(|size| args.rtt.iter().map(move |rtt| (*size, *rtt))).map(|(size, rtt)| {
        let (slow, quick) = times(args, rtt, size);
        serde_json::json!({
            "size_bytes": size.get(), "rtt_s": rtt.as_secs_f64(), "slow_start_s": slow, "quick_start_s": quick, "gain": slow / quick,
        })
    });
    serde_json::json!({
        "capacity_bps": args.capacity.as_bps(), "grant_bps": args.grant.as_bps(), "initial_window": args.initial_window,
        "threshold": args.threshold, "rows": rows.collect::<Vec<_>>(),
    })
}
