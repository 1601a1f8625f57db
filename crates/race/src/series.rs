//! What the pictures of a race show.

use flowstart_units::{Span, Time};

use super::Race;
use flowstart_measure::{Egress, FlowRecord, Newcomers, Recording, Wait};

/// One newcomer over time; every point is `[time in RTT0 after t = 0, value]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Rate at which the sender sends, Mbit/s of IP packets, over RTT0/4.
    pub sending: Vec<[f64; 2]>,
    /// Rate at which its first copies leave the bottleneck, Mbit/s, over RTT0/4.
    pub throughput: Vec<[f64; 2]>,
    /// Longest wait of any data packet at the bottleneck that arrived within RTT0/8, ms.
    pub queue: Vec<[f64; 2]>,
    /// Congestion window, packets.
    pub cwnd: Vec<[f64; 2]>,
    /// Stream bytes read by the receiving application, MB.
    pub delivered: Vec<[f64; 2]>,
}

/// Bins of the record (RTT0/32) per point of a rate (RTT0/4) and of the queue (RTT0/8).
const RATE_BINS: usize = 8;
const QUEUE_POINTS_PER_RTT: u64 = 8;
/// Bins per point of the delivered bytes.
const DELIVERED_BINS: usize = 4;

impl Series {
    pub(crate) fn new(race: &Race, recording: &Recording<Newcomers>, flow: &FlowRecord) -> Self {
        let rtt = race.base_rtt();
        let horizon = race.horizon();
        let Some(origin) = recording.origin() else { return Self::default() };
        Self {
            sending: rates(&flow.sent, rtt, horizon),
            throughput: rates(&flow.egress, rtt, horizon),
            queue: longest_waits(recording.waits(), origin, rtt, horizon),
            cwnd: cwnd(flow, rtt, horizon),
            delivered: totals(&flow.delivered, rtt, horizon),
        }
    }
}

fn bins_in(egress: &Egress, horizon: Span) -> usize {
    usize::try_from(horizon.whole(egress.bin())).unwrap_or(usize::MAX).min(egress.bytes().len())
}

/// Each point stands at the middle of its interval.
fn rates(egress: &Egress, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let width = (egress.bin() * RATE_BINS as u64).as_secs_f64();
    egress.bytes()[..bins_in(egress, horizon)]
        .chunks_exact(RATE_BINS)
        .enumerate()
        .map(|(index, bins)| {
            let middle = width * (index as f64 + 0.5) / rtt.as_secs_f64();
            [middle, bins.iter().sum::<u64>() as f64 * 8.0 / width / 1e6]
        })
        .collect()
}

fn totals(egress: &Egress, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let mut total = 0_u64;
    let mut points = vec![[0.0, 0.0]];
    for (index, bins) in egress.bytes()[..bins_in(egress, horizon)].chunks_exact(DELIVERED_BINS).enumerate() {
        total += bins.iter().sum::<u64>();
        let end = egress.bin() * ((index + 1) * DELIVERED_BINS) as u64;
        points.push([end.ratio(rtt), total as f64 / 1e6]);
    }
    points
}

fn longest_waits(samples: &[Wait], origin: Time, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let width = rtt / QUEUE_POINTS_PER_RTT;
    let count = horizon.whole(width);
    let mut longest = vec![Span::ZERO; usize::try_from(count).unwrap_or(0)];
    for sample in samples {
        if let Some(t) = sample.arrived.checked_since(origin)
            && let Some(slot) = longest.get_mut(t.whole(width) as usize)
        {
            *slot = (*slot).max(sample.waited);
        }
    }
    longest
        .iter()
        .enumerate()
        .map(|(index, wait)| [(index as f64 + 0.5) / QUEUE_POINTS_PER_RTT as f64, wait.as_millis_f64()])
        .collect()
}

fn cwnd(flow: &FlowRecord, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let inside = flow.cwnd.iter().take_while(|(t, _)| *t <= horizon);
    let mut points: Vec<[f64; 2]> = inside.map(|(t, cwnd)| [t.ratio(rtt), f64::from(*cwnd)]).collect();
    if let Some([_, last]) = points.last().copied() {
        points.push([horizon.ratio(rtt), last]);
    }
    points
}
