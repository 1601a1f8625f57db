//! Options of the commands over QUIC.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use flowstart_race::Contestant;
use flowstart_units::{Bytes, Span, parse_time_limit};

use super::listening::Listening;

/// Port of `serve`, unless another one is named.
pub(crate) const PORT: u16 = 4433;

/// A QUIC stack by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackName {
    #[default]
    Noq,
    Quinn,
}

impl StackName {
    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Noq => "noq",
            Self::Quinn => "quinn",
        }
    }
}

#[cfg(feature = "quic")]
impl From<StackName> for flowstart_quic::Stack {
    fn from(name: StackName) -> Self {
        match name {
            StackName::Noq => Self::Noq,
            StackName::Quinn => Self::Quinn,
        }
    }
}

const SERVE_EXAMPLES: &str = "Examples:
  flowstart serve
  flowstart serve --bind 0.0.0.0 --identity flowstart.identity
  flowstart serve --root public --most-bytes 1GB
  flowstart serve --memory paths.json

The fingerprint that it prints is what clients name with --fingerprint. Without --identity every start
has a new one, and clients of a server that was killed are not told when it is started anew.";

/// Options of `flowstart serve`.
#[derive(Args, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
pub(crate) struct ServeArgs {
    /// Address to listen at; 0.0.0.0 or :: for all, a link-local one with its interface (as in
    /// fe80::7%eth0)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind: Listening,
    /// UDP port
    #[arg(short, long, allow_hyphen_values = true, default_value_t = PORT)]
    pub(crate) port: u16,
    /// File with the certificate and its key; made if it is not there
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Folder whose files may be fetched [default: no files]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Most bytes of one transfer
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "10GB")]
    pub(crate) most_bytes: Bytes,
    /// Most time of one transfer
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "60s", value_parser = parse_time_limit)]
    pub(crate) most_time: Span,
    /// Most connections at the same time
    #[arg(long = "most-connections", alias = "connections", value_name = "N", allow_hyphen_values = true,
          default_value_t = 64,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) connections: usize,
    /// Most connections of one address at the same time; over IPv6, of one /64
    #[arg(long = "peer-connections", alias = "per-peer", value_name = "N", allow_hyphen_values = true,
          default_value_t = 8,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) per_peer: usize,
    /// Most bytes of all transfers of one address (over IPv6, of one /64) in an hour
    #[arg(long, value_name = "SIZE", default_value = "100GB", allow_hyphen_values = true)]
    pub(crate) peer_bytes: Bytes,
    /// Most time of all of them in an hour; of those at the same time each counts
    #[arg(long, value_name = "TIME", default_value = "3600s", allow_hyphen_values = true, value_parser = parse_time_limit)]
    pub(crate) peer_time: Span,
    /// Folder for a qlog of every connection, a file each
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Most bytes of all qlogs together; then they end, and the transfers go on
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "1GB", requires = "qlog")]
    pub(crate) qlog_most: Bytes,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// QUIC stack; with quinn a transfer may pause for a second when its client's port changes
    #[arg(long, value_name = "STACK", default_value = "noq")]
    pub(crate) stack: StackName,
    /// End after one transfer, even if it breaks off; a look of `flowstart path` is two
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
}

/// Where what transfers teach about paths is kept.
#[derive(Args, Debug)]
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
pub(crate) struct MemoryArgs {
    /// File of what each path carried, for the start careful_resume; made once something is learnt
    #[arg(long, value_name = "FILE")]
    pub(crate) memory: Option<PathBuf>,
    /// Time after which what is known of a path counts no more
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "3600s", requires = "memory",
          value_parser = parse_time_limit)]
    pub(crate) memory_lifetime: Span,
    /// Round trips in which a queue must have stood until what arrived in them is what the path
    /// carries, 2 to 16
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 4, requires = "memory",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=16))]
    pub(crate) memory_standing: usize,
    /// ... if no more than so many times as much arrived in the later half of them, 1 to 1000
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, default_value_t = 1.25, requires = "memory",
          value_parser = growth)]
    pub(crate) memory_growth: f64,
}

/// The server that a command speaks to, and how it is known.
#[derive(Args, Debug)]
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
pub(crate) struct ServerArgs {
    /// Where `flowstart serve` runs: HOST or HOST:PORT; an address of IPv6 with a port is in
    /// brackets
    pub(crate) host: String,
    /// UDP port [default: 4433]
    #[arg(short, long, allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Fingerprint of the server's certificate, as `serve` prints it; needed beyond this machine
    #[arg(long, value_name = "HEX")]
    pub(crate) fingerprint: Option<String>,
    /// Accept any certificate: nobody knows who answers
    #[arg(long, conflicts_with = "fingerprint")]
    pub(crate) insecure: bool,
    /// QUIC stack of this end; the other end may have either
    #[arg(long, value_name = "STACK", default_value = "noq")]
    pub(crate) stack: StackName,
}

const FETCH_EXAMPLES: &str = "Examples:
  flowstart fetch 127.0.0.1
  flowstart fetch 192.0.2.7 --fingerprint 5e1f... -t 5 -C fair_queuing_probe+delay_or_cubic
  flowstart fetch localhost -n 100MB -R -C hystart++
  flowstart fetch localhost --file notes.txt -o notes.txt
  flowstart fetch localhost -R -n 20MB -C careful_resume+cubic --memory paths.json

Without --size, --duration and --file it lasts 10 seconds. A contestant has no queue behind an @ here and
no words behind a slash: the path is what it is, and packets are always paced.";

/// Options of `flowstart fetch`.
#[derive(Args, Debug)]
#[command(after_help = FETCH_EXAMPLES)]
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Bytes to transfer; a bare number is bytes, and K, M, G and T are those of iperf3, of 1024
    #[arg(short = 'n', long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size)]
    pub(crate) size: Option<Bytes>,
    /// Time to transfer for; a bare number is seconds, and 0 for as long as the server lets it, or
    /// until Ctrl-C
    #[arg(short = 't', long = "duration", alias = "time", value_name = "TIME", allow_hyphen_values = true,
          value_parser = seconds)]
    pub(crate) time: Option<Span>,
    /// Time after which the transfer is given up if it is not over; a bare number is seconds
    /// [default: none]
    #[arg(short = 'm', long, alias = "max-time", value_name = "TIME", allow_hyphen_values = true,
          value_parser = seconds)]
    pub(crate) most_time: Option<Span>,
    /// Streams that carry the data; 16 carry it if fewer are named
    #[arg(short = 'P', long = "streams", alias = "parallel", value_name = "N", allow_hyphen_values = true,
          default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) parallel: u8,
    /// This end sends (otherwise the server does)
    #[arg(short = 'R', long)]
    pub(crate) reverse: bool,
    /// Flow start and congestion avoidance of the sender
    #[arg(short = 'C', long, value_name = "CONTESTANT", default_value = "adaptive_chirping+cubic")]
    pub(crate) contestant: Contestant,
    /// File of the server to fetch instead of test data
    #[arg(long, value_name = "NAME", conflicts_with_all = ["size", "time", "reverse"], requires = "out")]
    pub(crate) file: Option<String>,
    /// File to write what was fetched to; without --file the result as a JSON document (.json)
    #[arg(short = 'o', long = "output", alias = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Folder for a qlog of every connection, a file each (for qvis and the like)
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Most bytes of all qlogs together; then they end, and the transfer goes on
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "1GB", requires = "qlog")]
    pub(crate) qlog_most: Bytes,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// True if it is a number without a unit.
fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A time, or a bare number of seconds as in iperf3.
fn seconds(text: &str) -> Result<Span, flowstart_units::ParseUnitError> {
    if is_bare(text) { format!("{text} s").parse() } else { text.parse() }
}

/// A size, or as in iperf3 a bare number of bytes, or one with K, M, G or T for powers of 1024.
fn size(text: &str) -> Result<Bytes, flowstart_units::ParseUnitError> {
    if is_bare(text) {
        return format!("{text} B").parse();
    }
    let prefix = text.chars().last().map(|last| last.to_ascii_uppercase()).filter(|last| "KMGT".contains(*last));
    match prefix {
        Some(prefix) if is_bare(&text[..text.len() - 1]) => format!("{} {prefix}iB", &text[..text.len() - 1]).parse(),
        _ => Bytes::parse_beside(text, &["K", "M", "G", "T"]),
    }
}

/// A factor by which what arrives may grow.
fn growth(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (1.0..=1000.0).contains(factor));
    factor.ok_or_else(|| format!("\"{text}\" is no number between 1 and 1000"))
}

const PATH_EXAMPLES: &str = "Examples:
  flowstart path 127.0.0.1
  flowstart path 192.0.2.7 --fingerprint 5e1f... --json

At most a megabyte each time, against `flowstart serve` at the other end: in about a second where
packets are there and back in 50 ms, later where they take longer, or the path has less than 1 Mbit/s.";

/// Options of `flowstart path`.
#[derive(Args, Debug)]
#[command(after_help = PATH_EXAMPLES)]
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
pub(crate) struct PathArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_as_iperf3_reads_them_and_with_units() {
        for (text, bytes) in [
            ("1000", 1000),
            ("1", 1),
            ("10K", 10_240),
            ("10k", 10_240),
            ("10M", 10 << 20),
            ("1.5G", 3 << 29),
            ("1t", 1 << 40),
            ("10MB", 10_000_000),
            ("10 MiB", 10 << 20),
            ("7B", 7),
        ] {
            assert_eq!(size(text), Ok(Bytes::new(bytes)), "{text}");
        }
        for (text, millis) in [("5", 5000), ("0.5", 500), ("1.25", 1250), ("20ms", 20), ("2 min", 120_000)] {
            assert_eq!(seconds(text), Ok(Span::from_millis(millis)), "{text}");
        }
        let said = size("1x").unwrap_err().to_string();
        assert!(said.contains("GiB, TiB, K, M, G, T;"), "{said}");
        assert_eq!(seconds("0"), Ok(Span::ZERO));
        assert_eq!(seconds("0.000000001"), Ok(Span::from_nanos(1)));
        for less in ["0.0000000001", "0.1ns"] {
            assert!(seconds(less).unwrap_err().to_string().contains("less than a nanosecond"), "{less}");
        }
        for wrong in ["", "K", "M", "1.2.3", "1.2.3K", "10X", "-1", "10 Mbit", ".", "\u{212a}", "1\u{212a}"] {
            assert!(size(wrong).is_err() && seconds(wrong).is_err(), "{wrong}");
        }
    }
}
