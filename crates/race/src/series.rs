//! What the pictures of a race show.

use flowstart_units::{Span, Time};

use super::Race;
use flowstart_measure::{Egress, FlowRecord, Newcomers, Recording, Wait};

/// One newcomer over time; every point is `[time in RTT0 after t = 0, value]`.
///
/// Of several runs, each value is the median over them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Rate at which the sender sends, Mbit/s of IP packets, over the RTT0 before.
    pub sending: Vec<[f64; 2]>,
    /// Rate at which its first copies leave the bottleneck, Mbit/s, over the RTT0 before.
    pub throughput: Vec<[f64; 2]>,
    /// Longest wait of any data packet at the bottleneck that arrived within the RTT0/8 before, ms.
    pub queue: Vec<[f64; 2]>,
    /// Congestion window, packets.
    pub cwnd: Vec<[f64; 2]>,
    /// Stream bytes read by the receiving application, MB.
    pub delivered: Vec<[f64; 2]>,
    /// Between what the runs lie, if there are several.
    pub spread: Option<Box<Spread>>,
}

/// Between which values most of the runs lie, `[time in RTT0, low, high]`: from the tenth to the
/// ninetieth percentile, of fewer than ten runs from the lowest to the highest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Runs.
    pub runs: usize,
    /// Of [`Series::sending`].
    pub sending: Vec<[f64; 3]>,
    /// Of [`Series::throughput`].
    pub throughput: Vec<[f64; 3]>,
    /// Of [`Series::queue`].
    pub queue: Vec<[f64; 3]>,
    /// Of [`Series::cwnd`].
    pub cwnd: Vec<[f64; 3]>,
    /// Of [`Series::delivered`].
    pub delivered: Vec<[f64; 3]>,
}

/// Points per RTT0 of every series.
const POINTS_PER_RTT: usize = 8;

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
            spread: None,
        }
    }

    /// The median of several runs with its spread; of one run, that run. `None` of none.
    pub(crate) fn over_runs(mut runs: Vec<Self>) -> Option<Self> {
        if runs.len() < 2 {
            return runs.pop();
        }
        let of = |pick: fn(&Self) -> &Vec<[f64; 2]>| over_runs(&runs.iter().map(pick).collect::<Vec<_>>());
        let (sending, of_sending) = of(|s| &s.sending);
        let (throughput, of_throughput) = of(|s| &s.throughput);
        let (queue, of_queue) = of(|s| &s.queue);
        let (cwnd, of_cwnd) = of(|s| &s.cwnd);
        let (delivered, of_delivered) = of(|s| &s.delivered);
        let spread = Spread {
            runs: runs.len(),
            sending: of_sending,
            throughput: of_throughput,
            queue: of_queue,
            cwnd: of_cwnd,
            delivered: of_delivered,
        };
        Some(Self { sending, throughput, queue, cwnd, delivered, spread: Some(Box::new(spread)) })
    }
}

/// Runs from which on the extremes of a spread are left out.
const MANY_RUNS: usize = 10;

/// At every place (which runs share) the median over the runs that have it, and the spread.
fn over_runs(runs: &[&Vec<[f64; 2]>]) -> (Vec<[f64; 2]>, Vec<[f64; 3]>) {
    let places = runs.iter().map(|points| points.len()).max().unwrap_or(0);
    (0..places)
        .map(|place| {
            let here: Vec<[f64; 2]> = runs.iter().filter_map(|points| points.get(place)).copied().collect();
            let mut values: Vec<f64> = here.iter().map(|point| point[1]).collect();
            values.sort_by(f64::total_cmp);
            // Linear between order statistics (Hyndman and Fan 1996, type 7).
            let quantile = |share: f64| {
                let at = share * (values.len() - 1) as f64;
                let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
                below + (above - below) * at.fract()
            };
            let outer = if values.len() < MANY_RUNS { 0.0 } else { 0.1 };
            let time = here[0][0];
            ([time, quantile(0.5)], [time, quantile(outer), quantile(1.0 - outer)])
        })
        .unzip()
}

fn bins_in(egress: &Egress, horizon: Span) -> usize {
    usize::try_from(horizon.whole(egress.bin())).unwrap_or(usize::MAX).min(egress.bytes().len())
}

/// Bins of a record per RTT0.
fn bins_per_rtt(egress: &Egress, rtt: Span) -> usize {
    (rtt.ratio(egress.bin()).round() as usize).max(POINTS_PER_RTT)
}

/// Each point stands at the end of its RTT0; those of the first count what was before t = 0 as
/// nothing.
fn rates(egress: &Egress, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let per_rtt = bins_per_rtt(egress, rtt);
    let bins = &egress.bytes()[..bins_in(egress, horizon)];
    let width = (egress.bin() * per_rtt as u64).as_secs_f64();
    let mut points = vec![[0.0, 0.0]];
    for end in (1..=bins.len()).filter(|end| end.is_multiple_of(per_rtt / POINTS_PER_RTT)) {
        let sum: u64 = bins[end.saturating_sub(per_rtt)..end].iter().sum();
        points.push([(egress.bin() * end as u64).ratio(rtt), sum as f64 * 8.0 / width / 1e6]);
    }
    points
}

fn totals(egress: &Egress, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let mut total = 0_u64;
    let mut points = vec![[0.0, 0.0]];
    let stretch = bins_per_rtt(egress, rtt) / POINTS_PER_RTT;
    for (index, bins) in egress.bytes()[..bins_in(egress, horizon)].chunks_exact(stretch).enumerate() {
        total += bins.iter().sum::<u64>();
        let end = egress.bin() * ((index + 1) * stretch) as u64;
        points.push([end.ratio(rtt), total as f64 / 1e6]);
    }
    points
}

fn longest_waits(samples: &[Wait], origin: Time, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let width = rtt / POINTS_PER_RTT as u64;
    let count = horizon.whole(width);
    let mut longest = vec![Span::ZERO; usize::try_from(count).unwrap_or(0)];
    for sample in samples {
        if let Some(t) = sample.arrived.checked_since(origin)
            && let Some(slot) = longest.get_mut(t.whole(width) as usize)
        {
            *slot = (*slot).max(sample.waited);
        }
    }
    let points = longest.iter().enumerate().map(|(index, wait)| [place(index + 1), wait.as_millis_f64()]);
    std::iter::once([0.0, 0.0]).chain(points).collect()
}

/// The window at every point of time.
fn cwnd(flow: &FlowRecord, rtt: Span, horizon: Span) -> Vec<[f64; 2]> {
    let width = rtt / POINTS_PER_RTT as u64;
    let Some((_, first)) = flow.cwnd.first() else { return Vec::new() };
    let (mut changes, mut now) = (flow.cwnd.iter().peekable(), *first);
    (0..=horizon.whole(width))
        .map(|index| {
            let until = width * index;
            while let Some((_, cwnd)) = changes.next_if(|(t, _)| *t <= until) {
                now = *cwnd;
            }
            [place(index as usize), f64::from(now)]
        })
        .collect()
}

/// Point number `index` in RTT0.
fn place(index: usize) -> f64 {
    index as f64 / POINTS_PER_RTT as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: &[f64]) -> Series {
        let delivered = values.iter().enumerate().map(|(index, value)| [place(index), *value]).collect();
        Series { delivered, ..Series::default() }
    }

    #[test]
    fn several_runs_are_their_median_between_lowest_and_highest() {
        let median = Series::over_runs(vec![run(&[0.0, 1.0]), run(&[0.0, 5.0]), run(&[0.0, 2.0, 7.0])]).unwrap();
        assert_eq!(median.delivered, [[0.0, 0.0], [0.125, 2.0], [0.25, 7.0]]);
        let spread = median.spread.unwrap();
        assert_eq!(spread.delivered, [[0.0, 0.0, 0.0], [0.125, 1.0, 5.0], [0.25, 7.0, 7.0]]);
        assert_eq!(spread.runs, 3);
    }

    #[test]
    fn of_many_runs_the_outer_tenths_are_left_out() {
        let runs = (0..=10).map(|value| run(&[f64::from(value)])).collect();
        let spread = Series::over_runs(runs).unwrap().spread.unwrap();
        assert_eq!(spread.delivered, [[0.0, 1.0, 9.0]]);
    }

    #[test]
    fn one_run_is_itself() {
        assert_eq!(Series::over_runs(vec![run(&[3.0])]), Some(run(&[3.0])));
        assert_eq!(Series::over_runs(Vec::new()), None);
    }
}
