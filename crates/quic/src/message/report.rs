//! What a report says.

use serde::{Deserialize, Serialize};

use crate::judging::ReadingConfig;
use crate::learning::Observed;

use super::harmless;

/// What a detector of fair queuing found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Isolated {
    /// `isolated`, `shared` or `unknown`.
    pub isolation: String,
    /// Probability that this is right, if the detector reckons with one.
    pub confidence: Option<f64>,
    /// Rate that it found, in bit/s of IP packets.
    pub rate: u64,
    /// Nanoseconds after the first packet.
    pub after: u64,
}

/// A token bucket in front of the bottleneck, or what acts like one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Rate at which a burst arrives, in bit/s of IP packets.
    pub peak: u64,
    /// Bytes of IP packets that it has at most.
    pub bytes: u64,
}

/// What a lone packet was seen to take, which is not what others take at the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// The least and the most nanoseconds that a full packet takes longer than one of no length.
    pub takes: [u64; 2],
    /// Bytes of a token bucket that lets it pass, if it is one that holds a few packets.
    pub bucket: Option<u64>,
}

/// Why the median of the trains' rates is not said to be the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Too few trains had a rate.
    Few,
    /// Packets arrived in clumps, or late, or in another order, for so long that it matters to a
    /// train: slots, jitter, other stations, other traffic.
    Uneven,
    /// Many packets of trains were lost: senders of before say that.
    Losses,
    /// One that a later version knows.
    #[serde(other)]
    Other,
}

/// What a look at a path saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// Rate at which each train arrived, in bit/s of IP packets, least first.
    pub rates: Vec<u64>,
    /// Trains arrived faster at their beginning.
    pub burst: Option<Burst>,
    /// Rate behind a token bucket that some trains did not empty, in bit/s of IP packets, if it was
    /// found out. Otherwise rates that differ much say a range only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Bytes of the largest token bucket that would have been found, if what fills it is half of
    /// the capacity or less; 0 if the sender does not say. What holds more may hide a slower path.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tested: u64,
    /// Why no rate is said to be the capacity, although trains may agree on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// The least and the most that the capacity may be then, in bit/s of IP packets, if that is
    /// another range than that of the trains' rates. The greatest of all numbers: no most is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[u64; 2]>,
    /// What a packet takes that is alone, if another time than those of trains; none if the sender
    /// does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// Smallest RTT of a large packet in nanoseconds; 0 if nothing came back.
    pub rtt: u64,
    /// Bytes of that packet, with headers.
    pub packet: u32,
    /// Median difference of successive RTTs of packets that met no queue of the look, in
    /// nanoseconds.
    pub jitter: u64,
    /// Longest queue that the look met or built, in nanoseconds.
    pub queue: u64,
    /// By how many nanoseconds RTTs differ of packets that met no queue of the look; 0 if the
    /// sender does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub varied: u64,
    /// Packets of trains that were lost.
    pub lost: u64,
    /// They were lost where the queue was longest: that is the buffer.
    pub overflowed: bool,
    /// The longest time in nanoseconds in which the path was away, as far as can be told; 0 if it
    /// was not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub away: u64,
    /// The ECN field reaches the other end as it was sent.
    pub ecn: bool,
}

impl Looked {
    /// False if trains arrived at rates so different that no one of them is the capacity, or if
    /// there is another doubt.
    pub fn decided(&self) -> bool {
        self.doubt.is_none()
            && (self.behind.is_some()
                || !(ReadingConfig::USUAL.few(&self.rates) || ReadingConfig::USUAL.unsteady(&self.rates)))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Looked {
    /// In the words of a version: those of before 5 take the median of all rates for the capacity.
    pub(crate) fn in_version(self, version: u32) -> Self {
        if version >= 5 {
            return self;
        }
        let mut rates = self.rates;
        rates
            .retain(|rate| self.behind.is_none_or(|behind| *rate as f64 <= behind as f64 * ReadingConfig::USUAL.bears));
        Self { rates, behind: None, tested: 0, doubt: None, between: None, alone: None, varied: 0, away: 0, ..self }
    }
}

/// What the sender knows when all has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Bytes of the application.
    pub bytes: u64,
    /// Nanoseconds from the first packet until all was acknowledged.
    pub nanos: u64,
    /// Packets sent that ask for an ACK, repairs included.
    pub packets: u64,
    /// Packets deemed lost.
    pub lost: u64,
    /// Packets acknowledged with a congestion mark.
    pub marked: u64,
    /// ACKs that told of something new.
    pub acks: u64,
    /// Smallest RTT in nanoseconds.
    pub min_rtt: u64,
    /// Mean RTT in nanoseconds.
    pub mean_rtt: u64,
    /// Largest RTT in nanoseconds.
    pub max_rtt: u64,
    /// Mean difference of successive RTTs in nanoseconds.
    pub jitter: u64,
    /// Why the flow start ended, once it did.
    pub exit: Option<String>,
    /// Nanoseconds after the first packet at which it ended.
    pub exit_after: Option<u64>,
    /// Lateness of departures in nanoseconds: median and 99 %.
    pub late: [u64; 2],
    /// The sender had real-time priority. Without it departures are late when its machine is busy.
    pub real_time: bool,
    /// What a detector found, if there was one.
    pub queue: Option<Isolated>,
    /// What the start was told of an earlier transfer.
    #[serde(default)]
    pub resumed: Option<Observed>,
    /// What a look saw, if it was one.
    #[serde(default)]
    pub look: Option<Looked>,
}

impl Looked {
    /// False of what no look sees.
    fn is_possible(&self) -> bool {
        self.rates.is_sorted()
            && self.between.is_none_or(|[least, most]| least <= most)
            && self.alone.as_ref().is_none_or(|Alone { takes: [least, most], .. }| least <= most)
    }
}

impl Report {
    /// What the other end reports, which may be anything, as it may be shown; `None` if that cannot
    /// be.
    pub(crate) fn possible(mut self) -> Option<Self> {
        self.exit = self.exit.as_deref().map(harmless);
        if let Some(queue) = &mut self.queue {
            queue.isolation = harmless(&queue.isolation);
        }
        let looked = self.look.as_ref().is_none_or(Looked::is_possible);
        let certain = self.queue.as_ref().and_then(|queue| queue.confidence).unwrap_or_default();
        (looked && (0.0..=1.0).contains(&certain)).then_some(self)
    }
}
