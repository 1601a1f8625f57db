//! How fast data leave a link.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_units::{Rate, Span, Time};

use super::item::{Asks, ScenarioMeasure};
use super::run::{ScenarioRun, sum_within, time_dimension};
use crate::quantity::{Bound, Dimension, Measured};

/// Base RTTs that a rate must be kept unless something else is said.
const HOLD_RTTS: u64 = 2;

/// Mean rate at which data packets leave a link, counted on the wire.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// Where.
    link: Option<String>,
    /// Whose.
    flow: Option<String>,
    /// From this time on.
    from: Option<Span>,
    /// Up to this time.
    until: Option<Span>,
}

impl ScenarioMeasure for Throughput {
    fn dimension(&self) -> Dimension {
        Dimension::Rate
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).link(self.link.as_ref()).window(self.from, self.until)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.window(self.from, self.until);
        let link = run.link(self.link.as_deref())?;
        let series = run.egress(link, self.flow.as_deref());
        let bytes: f64 = series.into_iter().map(|egress| sum_within(egress, from, until)).sum();
        let seconds = (until - from).as_secs_f64();
        (seconds > 0.0).then(|| Measured::exact(bytes * 8.0 / seconds))
    }
}

/// Time until the throughput reaches a rate and keeps it; not before the end of the first averaging
/// interval.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeToRate {
    /// Where.
    link: Option<String>,
    /// Whose.
    flow: Option<String>,
    /// The rate, on the wire.
    rate: Rate,
    /// Counted from here; default: the flow's first data packet, without a flow the start of the
    /// run.
    since: Option<Span>,
    /// Length of the moving average that is compared; default: one base RTT.
    over: Option<Span>,
    /// How long it must stay there; default: two base RTTs.
    hold: Option<Span>,
    /// Count in base RTTs instead of seconds.
    #[serde(default)]
    rtts: bool,
}

impl ScenarioMeasure for TimeToRate {
    fn dimension(&self) -> Dimension {
        time_dimension(self.rtts)
    }

    fn asks(&self) -> Asks<'_> {
        let asks = Asks::flow(self.flow.as_ref()).link(self.link.as_ref());
        let rtt = self.rtts || self.over.is_none() || self.hold.is_none();
        Asks { from: self.since.map(|since| ("since", since)), ..asks.rtt(rtt) }
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let first = || run.flows(self.flow.as_deref()).map(|(_, flow)| flow.first_data).min();
        let since = match (self.since, &self.flow) {
            (Some(since), _) => since,
            (None, Some(_)) => first().filter(|at| *at != Time::NEVER)?.since(Time::ZERO),
            (None, None) => Span::ZERO,
        };
        let link = run.link(self.link.as_deref())?;
        let over = self.over.unwrap_or(run.rtt);
        let hold = self.hold.unwrap_or(run.rtt * HOLD_RTTS);
        let bin = run.record.bin();
        let series = run.egress(link, self.flow.as_deref());
        let bins = (run.end().as_nanos() / bin.as_nanos()) as usize;
        let width = (over.as_nanos() / bin.as_nanos()).max(1) as usize;
        let hold = hold.as_nanos().div_ceil(bin.as_nanos()) as usize;
        // Totals by the end of each bin.
        let mut totals = vec![0_u64; bins + 1];
        for index in 0..bins {
            let bytes: u64 = series.iter().filter_map(|egress| egress.bytes().get(index)).sum();
            totals[index + 1] = totals[index] + bytes;
        }
        let needed = self.rate.as_bps() as f64 / 8.0 * (bin * width as u64).as_secs_f64();
        let reached = |end: usize| (totals[end] - totals[end.saturating_sub(width)]) as f64 >= needed;
        let begin = since.as_nanos().div_ceil(bin.as_nanos()) as usize;
        let after = |end: usize| (bin * end as u64).as_secs_f64() - since.as_secs_f64();
        let mut kept = 0;
        for end in begin + width..=bins {
            kept = if reached(end) { kept + 1 } else { 0 };
            if kept > hold {
                return Some(Measured::exact(run.time(after(end - hold), self.rtts)));
            }
        }
        let left = run.end().as_secs_f64() - since.as_secs_f64();
        Some(Measured { value: run.time(left.max(0.0), self.rtts), bound: Bound::AtLeast })
    }
}
