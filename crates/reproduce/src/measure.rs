//! What a claim measures in one run.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use flowstart_congestion::detection::Isolation;
use flowstart_network::QueueConfig;
use flowstart_units::{Bytes, Rate, Span};

use super::quantity::Dimension;
use flowstart_probing::Part;

/// A measure with its parameters. Times without another word count from the start of the run; `flow` is the name of a flow (or of arrivals)
/// and means all of that name; a missing `flow` means everybody; a missing `link` means the bottleneck (the first link).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Measure {
    /// Completion time of transfers: from the first data packet's departure to the last byte at the receiver.
    CompletionTime {
        /// Whose.
        flow: Option<String>,
        /// Only transfers of this size or more.
        smallest: Option<Bytes>,
        /// Only transfers of this size or less.
        largest: Option<Bytes>,
        /// Over the transfers.
        statistic: Statistic,
    },
    /// Completion time of a transfer, with half a base RTT for the request, over that of the analytic model of Quick-Start (every packet
    /// acknowledged, one link of the path's capacity); the mean of these over the transfers. Without a grant: over that of slow start.
    CompletionToModel {
        /// Whose.
        flow: Option<String>,
        /// What the routers grant.
        grant: Option<Rate>,
    },
    /// Time from a user's wish for a page until its last byte is there.
    PageTime {
        /// Whose.
        flow: Option<String>,
        /// Over the pages.
        statistic: Statistic,
    },
    /// Mean rate that a link's router granted per request (Quick-Start), denials counted as zero.
    GrantedRate {
        /// Where.
        link: Option<String>,
    },
    /// How many transfers were completed.
    Completed {
        /// Whose.
        flow: Option<String>,
    },
    /// Time that data packets waited at a link until their transmission began, by their time of arrival there.
    QueueDelay {
        /// Where.
        link: Option<String>,
        /// Whose.
        flow: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
        /// Over the packets.
        statistic: Statistic,
    },
    /// Mean rate at which data packets leave a link, counted on the wire.
    Throughput {
        /// Where.
        link: Option<String>,
        /// Whose.
        flow: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
    },
    /// Time until the throughput reaches a rate and keeps it; not before the end of the first averaging interval.
    TimeToRate {
        /// Where.
        link: Option<String>,
        /// Whose.
        flow: Option<String>,
        /// The rate, on the wire.
        rate: Rate,
        /// Counted from here; default: the flow's first data packet, without a flow the start of the run.
        since: Option<Span>,
        /// Length of the moving average that is compared; default: one base RTT.
        over: Option<Span>,
        /// How long it must stay there; default: two base RTTs.
        hold: Option<Span>,
        /// Count in base RTTs instead of seconds.
        #[serde(default)]
        rtts: bool,
    },
    /// When the flow start ended, after the flow's first data packet.
    ExitTime {
        /// Whose; the mean if there are several.
        flow: Option<String>,
        /// Count in base RTTs instead of seconds.
        #[serde(default)]
        rtts: bool,
    },
    /// Congestion window when the flow start ended, before a reduction.
    ExitWindow {
        /// Whose; the mean if there are several.
        flow: Option<String>,
        /// As a share of the bandwidth-delay product of this rate and the base RTT instead of in packets.
        of_bdp: Option<Rate>,
    },
    /// Congestion window, as it was at changes.
    Window {
        /// Whose.
        flow: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
        /// `mean` is weighted by time.
        statistic: Statistic,
    },
    /// Data packets dropped at a link.
    Drops {
        /// Where.
        link: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
    },
    /// Data packets that left a link with a congestion mark.
    Marks {
        /// Where.
        link: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
    },
    /// Mean time between two episodes of drops; drops within two base RTTs are one episode.
    DropInterval {
        /// Where.
        link: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
        /// Count in base RTTs instead of seconds.
        #[serde(default)]
        rtts: bool,
    },
    /// Round-trip time of data packets: the base RTT, the wait at the link and the transmission there, by their time of arrival. Nothing else on the
    /// way may hold packets or ACKs up.
    RoundTrip {
        /// Where.
        link: Option<String>,
        /// Whose.
        flow: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
        /// Over the packets.
        statistic: Statistic,
    },
    /// Smoothed RTT of senders, as it was at changes: weighted by time, not by packets.
    SmoothedRtt {
        /// Whose.
        flow: Option<String>,
        /// From this time on.
        from: Option<Span>,
        /// Up to this time.
        until: Option<Span>,
        /// `mean` is weighted by time.
        statistic: Statistic,
    },
    /// Share of flows whose detector of fair queuing gave this answer.
    Isolation {
        /// Whose.
        flow: Option<String>,
        /// The answer; "right" is by the queue of the first link.
        is: Answer,
        /// The answer that holds at the end of the run, instead of the first.
        #[serde(default)]
        at_end: bool,
    },
    /// How long after a time a detector of fair queuing gave another answer than its first, for the last time; of those that did.
    IsolationChange {
        /// Whose; the mean if there are several.
        flow: Option<String>,
        /// When something changed.
        after: Span,
    },
    /// When the detector of fair queuing gave its first answer, after the flow's first data packet; of those that gave one.
    IsolationTime {
        /// Whose; the mean if there are several.
        flow: Option<String>,
        /// Count in base RTTs instead of seconds.
        #[serde(default)]
        rtts: bool,
    },
    /// The number that a detector of fair queuing gave its first answer from: the part of the first connection that arrived over that of the
    /// second; of those that gave one.
    IsolationRatio {
        /// Whose; the mean if there are several.
        flow: Option<String>,
    },
    /// The rate that a detector of fair queuing told with its first answer, as a share of the first link's; of those that gave one.
    IsolationRate {
        /// Whose; the mean if there are several.
        flow: Option<String>,
    },
    /// Data packets of a flow dropped on the way that had left before its start ended, those of its second connection included.
    DropsInStart {
        /// Whose.
        flow: Option<String>,
    },
    /// Retransmissions in the whole run.
    Retransmissions {
        /// Whose.
        flow: Option<String>,
    },
    /// Retransmission timeouts in the whole run.
    Timeouts {
        /// Whose.
        flow: Option<String>,
    },
    /// By probing: the mean rate that an interval of this length has at least, payload.
    AttainableRate {
        /// Length of the interval.
        over: Span,
    },
    /// By probing: the largest rate that was accepted, payload; at least that if the next one was not refused for being too high.
    LongTermRate {},
    /// By probing: the shortest interval that has anything guaranteed.
    ServiceOrigin {},
    /// By probing: the shortest interval that has this share of the long-term rate.
    TimeToShare {
        /// The share, 0 to below 1.
        share: f64,
    },
    /// By probing: delay of messages at one of the rates.
    MessageDelay {
        /// The probing rate.
        rate: Rate,
        /// Which part of it; a loop has only the total.
        #[serde(default)]
        part: Part,
        /// Over all messages after the warm-up.
        statistic: Statistic,
    },
    /// By probing: the share of messages whose delay is longer than this.
    DelayShare {
        /// The probing rate.
        rate: Rate,
        /// Which part of the delay.
        #[serde(default)]
        part: Part,
        /// Longer than this.
        above: Span,
    },
    /// By probing: autocorrelation of the congestion window.
    WindowCorrelation {
        /// The probing rate.
        rate: Rate,
        /// The lag.
        lag: Span,
    },
    /// By probing: the lag at which the autocorrelation of the congestion window is largest.
    CorrelationPeak {
        /// The probing rate.
        rate: Rate,
        /// Lags from here.
        from: Span,
        /// Up to here.
        until: Span,
    },
    /// By probing a loop: the share of a film's packets that exceeded their delay bound more often than the curve promises, over many replays.
    FilmViolations {},
    /// By probing a loop: the mean delay bound of a film's packets over the mean of what they met with the probability that the curve promises.
    FilmLooseness {},
    /// By probing: the delay that frames of a synthetic film exceed at most with the curve's probability.
    FilmBound {
        /// Over the frames.
        statistic: Statistic,
    },
}

/// An answer to whether a flow has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It has.
    Isolated,
    /// It has not.
    Shared,
    /// The detector gave up.
    Unknown,
    /// No answer by the end of the run, or that it is not known.
    Undecided,
    /// The one that is true of the first link's queue.
    Right,
}

impl Answer {
    /// True if this is the answer of a detector, if it gave one, about this queue.
    pub(super) fn is(self, found: Option<Isolation>, queue: Option<&QueueConfig>) -> bool {
        match self {
            Self::Right if queue.is_some_and(QueueConfig::isolates) => Self::Isolated.is(found, queue),
            Self::Right => Self::Shared.is(found, queue),
            Self::Isolated => found == Some(Isolation::Isolated),
            Self::Shared => found == Some(Isolation::Shared),
            Self::Unknown => found == Some(Isolation::Unknown),
            Self::Undecided => matches!(found, None | Some(Isolation::Unknown)),
        }
    }
}

/// A number for many: "mean", "median", "min", "max" or a percentile such as "p99" or "p99.9" (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Quantile, 0 ..= 1: the smallest value that is at least as large as this share of all.
    Quantile(f64),
}

const STATISTICS: &str = "\"mean\", \"median\", \"min\", \"max\" or a percentile such as \"p99\"";

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percentile = |digits: &str| digits.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        match text.trim() {
            "mean" => Ok(Self::Mean),
            "median" => Ok(Self::Quantile(0.5)),
            "min" => Ok(Self::Quantile(0.0)),
            "max" => Ok(Self::Quantile(1.0)),
            other => match other.strip_prefix(['p', 'P']).and_then(percentile) {
                Some(p) => Ok(Self::Quantile(p / 100.0)),
                None => Err(format!("\"{text}\" is not a statistic; there are {STATISTICS}")),
            },
        }
    }
}

impl Statistic {
    /// Of these values; `None` without any. Sorts them.
    pub(super) fn of(self, values: &mut [f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        match self {
            Self::Mean => Some(values.iter().sum::<f64>() / values.len() as f64),
            Self::Quantile(p) => {
                values.sort_by(f64::total_cmp);
                let rank = (p * values.len() as f64).ceil() as usize;
                values.get(rank.max(1) - 1).copied()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Statistic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Statistic {
    fn schema_name() -> Cow<'static, str> {
        "Statistic".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": STATISTICS, "examples": ["p99"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl Measure {
    /// What its value is measured in.
    #[must_use]
    pub fn dimension(&self) -> Dimension {
        match self {
            Self::CompletionTime { .. }
            | Self::PageTime { .. }
            | Self::QueueDelay { .. }
            | Self::ServiceOrigin {}
            | Self::TimeToShare { .. }
            | Self::MessageDelay { .. }
            | Self::CorrelationPeak { .. }
            | Self::FilmBound { .. }
            | Self::IsolationChange { .. }
            | Self::RoundTrip { .. }
            | Self::SmoothedRtt { .. } => Dimension::Time,
            Self::Isolation { .. } => Dimension::Share,
            Self::TimeToRate { rtts, .. }
            | Self::ExitTime { rtts, .. }
            | Self::IsolationTime { rtts, .. }
            | Self::DropInterval { rtts, .. } => {
                if *rtts {
                    Dimension::Rtts
                } else {
                    Dimension::Time
                }
            }
            Self::Throughput { .. }
            | Self::GrantedRate { .. }
            | Self::AttainableRate { .. }
            | Self::LongTermRate {} => Dimension::Rate,
            Self::ExitWindow { of_bdp: Some(_), .. } | Self::DelayShare { .. } | Self::FilmViolations {} => {
                Dimension::Share
            }
            Self::ExitWindow { of_bdp: None, .. } | Self::Window { .. } => Dimension::Packets,
            Self::CompletionToModel { .. }
            | Self::Completed { .. }
            | Self::Drops { .. }
            | Self::Marks { .. }
            | Self::IsolationRatio { .. }
            | Self::IsolationRate { .. }
            | Self::DropsInStart { .. }
            | Self::Retransmissions { .. }
            | Self::Timeouts { .. }
            | Self::WindowCorrelation { .. }
            | Self::FilmLooseness {} => Dimension::Plain,
        }
    }

    /// The flow it names.
    pub(super) fn flow(&self) -> Option<&str> {
        match self {
            Self::CompletionTime { flow, .. }
            | Self::CompletionToModel { flow, .. }
            | Self::PageTime { flow, .. }
            | Self::Completed { flow }
            | Self::QueueDelay { flow, .. }
            | Self::RoundTrip { flow, .. }
            | Self::SmoothedRtt { flow, .. }
            | Self::Isolation { flow, .. }
            | Self::IsolationTime { flow, .. }
            | Self::IsolationRatio { flow }
            | Self::IsolationRate { flow }
            | Self::DropsInStart { flow }
            | Self::Throughput { flow, .. }
            | Self::TimeToRate { flow, .. }
            | Self::ExitTime { flow, .. }
            | Self::ExitWindow { flow, .. }
            | Self::Window { flow, .. }
            | Self::Retransmissions { flow }
            | Self::Timeouts { flow } => flow.as_deref(),
            _ => None,
        }
    }

    /// True if it is about probes at several rates instead of a simulation.
    pub(super) fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::AttainableRate { .. }
                | Self::LongTermRate {}
                | Self::ServiceOrigin {}
                | Self::TimeToShare { .. }
                | Self::MessageDelay { .. }
                | Self::DelayShare { .. }
                | Self::WindowCorrelation { .. }
                | Self::CorrelationPeak { .. }
                | Self::FilmBound { .. }
        ) || self.replays()
    }

    /// True if a film must be sent through a loop many times.
    pub(super) fn replays(&self) -> bool {
        matches!(self, Self::FilmViolations {} | Self::FilmLooseness {})
    }

    /// The probing rate it names.
    pub(super) fn probing_rate(&self) -> Option<Rate> {
        match self {
            Self::MessageDelay { rate, .. }
            | Self::DelayShare { rate, .. }
            | Self::WindowCorrelation { rate, .. }
            | Self::CorrelationPeak { rate, .. } => Some(*rate),
            _ => None,
        }
    }

    /// The link it names.
    pub(super) fn link(&self) -> Option<&str> {
        match self {
            Self::QueueDelay { link, .. }
            | Self::RoundTrip { link, .. }
            | Self::Throughput { link, .. }
            | Self::GrantedRate { link }
            | Self::TimeToRate { link, .. }
            | Self::Drops { link, .. }
            | Self::Marks { link, .. }
            | Self::DropInterval { link, .. } => link.as_deref(),
            _ => None,
        }
    }

    /// The window of time it looks at, as far as given.
    pub(super) fn window(&self) -> (Option<Span>, Option<Span>) {
        match self {
            Self::QueueDelay { from, until, .. }
            | Self::RoundTrip { from, until, .. }
            | Self::SmoothedRtt { from, until, .. }
            | Self::Throughput { from, until, .. }
            | Self::Window { from, until, .. }
            | Self::Drops { from, until, .. }
            | Self::Marks { from, until, .. }
            | Self::DropInterval { from, until, .. } => (*from, *until),
            Self::TimeToRate { since, .. } => (*since, None),
            _ => (None, None),
        }
    }

    /// True if it needs to know the base RTT, which only scenarios with a `[path]` have.
    pub(super) fn needs_rtt(&self) -> bool {
        match self {
            Self::TimeToRate { over, hold, rtts, .. } => *rtts || over.is_none() || hold.is_none(),
            Self::ExitTime { rtts, .. } | Self::IsolationTime { rtts, .. } => *rtts,
            Self::ExitWindow { of_bdp, .. } => of_bdp.is_some(),
            Self::CompletionToModel { .. } | Self::DropInterval { .. } | Self::RoundTrip { .. } => true,
            _ => false,
        }
    }
}
