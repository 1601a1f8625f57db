//! One chirp explained: what each of its packets shows, what the published rule makes of it, and
//! what this project's own rule reads.
//!
//! A chirp comes from a file ([`read_trace`]) or from a simulated start ([`Simulated`]);
//! [`Explanation::new`] applies both rules to it, whichever start sent it.

mod simulate;
mod trace;

use std::fmt;

use flowstart_congestion::start::AdaptiveChirpingConfig;
use flowstart_congestion::start::paced_chirping::Measured;
use flowstart_congestion::start::paced_chirping::analysis::{Excursion, ExcursionRule, estimate, excursions, label};
use flowstart_congestion::start::paced_chirping::reading::{Judged, Point, read};
use flowstart_units::{Bytes, Rate, Span};

pub use simulate::{ChirpingStart, Observed, Simulated, SimulatedStart};
pub use trace::{FEWEST_PACKETS, MOST_PACKETS, parse_trace, read_trace};

/// Why there is nothing to explain. Its `Display` is one sentence that also says what would be
/// right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainError(String);

impl ExplainError {
    fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for ExplainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExplainError {}

/// A chirp all of whose packets were acknowledged. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chirp {
    /// From each packet's predecessor to it, as they left; entry 0 is not used.
    pub gaps: Vec<u64>,
    /// Queueing delays above the smallest of the chirp; packets that one ACK told of have the delay
    /// of the newest of them.
    pub delays: Vec<u64>,
    /// The packets whose delay is their own, because an ACK told of them as its newest.
    pub points: Vec<Point>,
}

impl From<&Measured> for Chirp {
    fn from(chirp: &Measured) -> Self {
        Self { gaps: chirp.gaps().to_vec(), delays: chirp.delays().to_vec(), points: chirp.points().to_vec() }
    }
}

impl Chirp {
    /// Mean gap as the packets left; zero for fewer than two.
    #[must_use]
    pub fn mean_gap(&self) -> Span {
        let gaps = self.gaps.get(1..).unwrap_or_default();
        let sum = gaps.iter().fold(0_u64, |sum, gap| sum.saturating_add(*gap));
        Span::from_nanos(sum) / (gaps.len() as u64).max(1)
    }

    /// The packets that the points are, in order.
    fn point_packets(&self) -> impl Iterator<Item = usize> + '_ {
        self.points.iter().scan(0_usize, |packets, point| {
            *packets += point.packets as usize;
            Some(*packets - 1)
        })
    }
}

/// Where a packet lies, by the published rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// In no excursion.
    Quiet,
    /// In an excursion too short to count.
    Spike,
    /// In an excursion that came down again within the chirp.
    Ended,
    /// In the excursion that lasts to the end of the chirp.
    Open,
}

impl Part {
    /// Name in tables and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Spike => "spike",
            Self::Ended => "excursion",
            Self::Open => "excursion to the end",
        }
    }
}

/// One packet of a chirp. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Since the first packet left.
    pub sent: u64,
    /// Since the packet before left; `None` for the first.
    pub gap: Option<u64>,
    /// Between its ACK and the one before, per packet, less what the way back took; `None` without
    /// an ACK of its own, and for the first ACK.
    pub received: Option<u64>,
    /// Queueing delay above the smallest of the chirp.
    pub delay: u64,
    /// True if an ACK told of it as its newest.
    pub own: bool,
    /// Where it lies.
    pub part: Part,
    /// The gap the published rule labels it with; `None` for the first.
    pub label: Option<u64>,
}

/// What one chirp says, by two rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Its packets in order.
    pub packets: Vec<PacketRow>,
    /// Its excursions in order.
    pub excursions: Vec<Excursion>,
    /// The label of packets that no excursion labels, in ns.
    pub rest: u64,
    /// The published estimate in ns: the mean of all labels.
    pub estimate: Option<u64>,
    /// What this project's rule reads.
    pub judged: Judged,
    /// The packet of the knee: the last that did not queue.
    pub knee: Option<usize>,
    /// By how many times the delays must rise over the noise.
    pub contrast: u64,
}

impl Explanation {
    /// Explains a chirp by the rules' usual constants.
    #[must_use]
    pub fn new(chirp: &Chirp) -> Self {
        let published = ExcursionRule::PUBLISHED;
        let config = AdaptiveChirpingConfig::default();
        let own = config.reading();
        let mut rows = rows(chirp);
        let found: Vec<Excursion> = excursions(&chirp.delays, published).collect();
        for excursion in &found {
            let part = match excursion {
                Excursion { terminated: false, .. } => Part::Open,
                Excursion { packets, .. } if *packets >= published.min_packets => Part::Ended,
                _ => Part::Spike,
            };
            for row in rows.iter_mut().skip(excursion.start).take(excursion.packets) {
                row.part = part;
            }
        }
        let mut own_labels = Vec::new();
        let rest = label(&chirp.gaps, &chirp.delays, published, |packet| own_labels.push(packet));
        for row in rows.iter_mut().skip(1) {
            row.label = Some(rest);
        }
        for packet in own_labels {
            rows[packet].label = rows[packet].gap;
        }
        let judged = read(&chirp.points, own, 0);
        Self {
            packets: rows,
            excursions: found,
            rest,
            estimate: estimate(&chirp.gaps, &chirp.delays, published),
            knee: judged.knee.and_then(|point| chirp.point_packets().nth(point)),
            judged,
            contrast: own.contrast,
        }
    }
}

/// The rate at which packets of this length follow each other at a gap in ns.
#[must_use]
pub fn rate(packet: Bytes, gap: u64) -> Rate {
    Rate::of(packet, Span::from_nanos(gap))
}

/// The packets without what the rules say.
fn rows(chirp: &Chirp) -> Vec<PacketRow> {
    let mut sent = 0_u64;
    let mut rows: Vec<PacketRow> = chirp
        .gaps
        .iter()
        .zip(&chirp.delays)
        .enumerate()
        .map(|(packet, (gap, delay))| {
            let gap = (packet > 0).then_some(*gap);
            sent = sent.saturating_add(gap.unwrap_or(0));
            PacketRow { sent, gap, received: None, delay: *delay, own: false, part: Part::Quiet, label: None }
        })
        .collect();
    let mut before: Option<&Point> = None;
    for (packet, point) in chirp.point_packets().zip(&chirp.points) {
        if let Some(row) = rows.get_mut(packet) {
            row.own = true;
            row.received = before.map(|before| {
                let time = point.gaps.saturating_add(point.delay).saturating_sub(before.delay);
                time / u64::from(point.packets.max(1))
            });
        }
        before = Some(point);
    }
    rows
}

#[cfg(test)]
mod tests;
