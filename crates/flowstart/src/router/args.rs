//! Options of `flowstart router`.

use clap::{Subcommand, ValueEnum};

use flowstart_units::{Rate, Span};

/// How a router measures its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouterAdmission {
    /// The mean of the last second; grants count for one to two seconds (Scharf and Strotbek)
    Mean,
    /// The peak of ten samples of 150 ms; grants count for 150 to 300 ms (RFC 4782 appendices C, D)
    Peak,
    /// The mean of the last second, and every grant by itself: unused ones are given back, none
    /// counts twice, and sources that ask for more than they use are refused for a minute (Extreme
    /// Quick-Start, RFC 4782 section 3.3)
    Flows,
}

/// `flowstart router`.
#[derive(Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// Meter what leaves at a device, and decide on Quick-Start requests there
    #[command(after_help = "Example: sudo flowstart router load --dev eth0 --capacity 1Gbit/s --threshold 90%")]
    Load {
        /// The device
        #[arg(long = "dev", value_name = "DEVICE")]
        device: String,
        /// Its network namespace, as `ip netns` knows it
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
        /// Capacity of the link, headers of IP included [default: what the device says]
        #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = some_rate)]
        capacity: Option<Rate>,
        /// How the load is measured and how long grants count
        #[arg(long, value_enum, default_value = "mean")]
        admission: RouterAdmission,
        /// Share of the capacity that load and grants may reach together
        #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = percent)]
        threshold: u32,
        /// Requests looked at per second at most; others are denied by doing nothing
        #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_second: u32,
        /// This machine does not lower the TTL of what it forwards: a bridge
        #[arg(long)]
        bridge: bool,
        /// Print what the kernel says if it refuses
        #[arg(short, long)]
        verbose: bool,
    },
    /// Take a router away; packets pass as if it had never been there
    #[command(after_help = "Example: sudo flowstart router unload --dev eth0")]
    Unload {
        /// Its device [default: all routers]
        #[arg(long = "dev", value_name = "DEVICE")]
        device: Option<String>,
        /// Its network namespace, as `ip netns` knows it
        #[arg(long, value_name = "NAME", requires = "device")]
        netns: Option<String>,
    },
    /// List routers: load, grants, and what was decided since they were loaded
    #[command(after_help = "Example: sudo flowstart router list --json")]
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Measure what a router costs on this machine: metering, 1 % and 100 % of requests
    #[command(after_help = "Example: sudo flowstart router cost")]
    Cost {
        /// Runs of 100,000 packets of each kind
        #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 15,
            value_parser = clap::value_parser!(u32).range(2..=1000))]
        runs: u32,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Watch a router: a line per second, until Ctrl-C
    #[command(after_help = "Example: sudo flowstart router watch --dev eth0")]
    Watch {
        /// Its device
        #[arg(long = "dev", value_name = "DEVICE")]
        device: String,
        /// Its network namespace, as `ip netns` knows it
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        /// Time between two lines
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s")]
        interval: Span,
    },
}

/// What a link can have.
fn some_rate(text: &str) -> Result<Rate, String> {
    let rate = text.parse().map_err(|error: flowstart_units::ParseUnitError| error.to_string())?;
    if rate > Rate::ZERO { Ok(rate) } else { Err("a link of 0 bit/s carries nothing".to_owned()) }
}

/// A share in percent, with or without its sign.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    number
        .parse()
        .ok()
        .filter(|percent| (1..=100).contains(percent))
        .ok_or_else(|| format!("\"{text}\" is no share; a whole number of percent is one, 1% to 100%"))
}
