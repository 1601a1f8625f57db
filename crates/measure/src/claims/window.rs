//! The congestion window and what the sender knows, over time and at the end of its start.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_units::{Rate, Span};

use super::item::{Asks, ScenarioMeasure};
use super::run::{ScenarioRun, mean, time_dimension};
use crate::quantity::{Dimension, Measured};
use crate::statistic::Statistic;

/// When the flow start ended, after the flow's first data packet.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitTime {
    /// Whose; the mean if there are several.
    flow: Option<String>,
    /// Count in base RTTs instead of seconds.
    #[serde(default)]
    rtts: bool,
}

impl ScenarioMeasure for ExitTime {
    fn dimension(&self) -> Dimension {
        time_dimension(self.rtts)
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).rtt(self.rtts)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let after =
            run.mean(self.flow.as_deref(), |flow| Some(flow.start_exit?.now.since(flow.first_data).as_secs_f64()));
        Some(Measured::exact(run.time(after?, self.rtts)))
    }
}

/// Congestion window when the flow start ended, before a reduction.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitWindow {
    /// Whose; the mean if there are several.
    flow: Option<String>,
    /// As a share of the bandwidth-delay product of this rate and the base RTT instead of in
    /// packets.
    of_bdp: Option<Rate>,
}

impl ScenarioMeasure for ExitWindow {
    fn dimension(&self) -> Dimension {
        if self.of_bdp.is_some() { Dimension::Share } else { Dimension::Packets }
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).rtt(self.of_bdp.is_some())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let windows = run
            .flows(self.flow.as_deref())
            .filter_map(|(id, flow)| Some((f64::from(flow.start_exit?.cwnd), f64::from(run.packet_bytes(id)))));
        let values = windows.map(|(packets, bytes)| match self.of_bdp {
            None => packets,
            Some(rate) => packets * bytes * 8.0 / (rate.as_bps() as f64 * run.rtt.as_secs_f64()),
        });
        mean(values).map(Measured::exact)
    }
}

/// Congestion window, as it was at changes.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Whose.
    flow: Option<String>,
    /// From this time on.
    from: Option<Span>,
    /// Up to this time.
    until: Option<Span>,
    /// `mean` is weighted by time.
    statistic: Statistic,
}

impl ScenarioMeasure for Window {
    fn dimension(&self) -> Dimension {
        Dimension::Packets
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).window(self.from, self.until)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.window(self.from, self.until);
        let windows =
            run.flows(self.flow.as_deref()).filter_map(|(id, _)| Some(&run.record.flows().get(id as usize)?.cwnd));
        weighted(windows, from, until, self.statistic).map(Measured::exact)
    }
}

/// Smoothed RTT of senders, as it was at changes: weighted by time, not by packets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmoothedRtt {
    /// Whose.
    flow: Option<String>,
    /// From this time on.
    from: Option<Span>,
    /// Up to this time.
    until: Option<Span>,
    /// `mean` is weighted by time.
    statistic: Statistic,
}

impl ScenarioMeasure for SmoothedRtt {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).window(self.from, self.until)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.window(self.from, self.until);
        // Of the first connection: the second is over soon.
        let flows = run.flows(self.flow.as_deref()).filter(|(_, flow)| flow.companion_of.is_none());
        let changes = flows.filter_map(|(id, _)| Some(&run.record.flows().get(id as usize)?.srtt));
        Some(Measured::exact(weighted(changes, from, until, self.statistic)? / 1e6))
    }
}

/// A statistic of values that hold from one change to the next.
fn weighted<'a>(
    windows: impl Iterator<Item = &'a Vec<(Span, u32)>>,
    from: Span,
    until: Span,
    statistic: Statistic,
) -> Option<f64> {
    let mut pieces: Vec<(f64, f64)> = Vec::new();
    for changes in windows {
        for (index, (at, cwnd)) in changes.iter().enumerate() {
            let next = changes.get(index + 1).map_or(until, |next| next.0);
            let held = (next.min(until) - (*at).max(from)).as_secs_f64();
            if held > 0.0 {
                pieces.push((f64::from(*cwnd), held));
            }
        }
    }
    let total: f64 = pieces.iter().map(|(_, held)| held).sum();
    if total <= 0.0 {
        return None;
    }
    match statistic {
        Statistic::Mean => Some(pieces.iter().map(|(cwnd, held)| cwnd * held).sum::<f64>() / total),
        Statistic::Quantile(p) => {
            pieces.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut passed = 0.0;
            let reached = pieces.iter().find(|(_, held)| {
                passed += held;
                passed >= p * total * (1.0 - 1e-12)
            });
            reached.or(pieces.last()).map(|(cwnd, _)| *cwnd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_count_for_as_long_as_they_held() {
        let ms = Span::from_millis;
        let changes = vec![(ms(0), 10), (ms(100), 20), (ms(300), 40)];
        let of = |statistic| weighted([&changes].into_iter(), ms(0), ms(400), statistic).unwrap();
        assert!((of(Statistic::Mean) - (10.0 + 40.0 + 40.0) / 4.0).abs() < 1e-9);
        assert_eq!(of(Statistic::Quantile(0.0)), 10.0);
        assert_eq!(of(Statistic::Quantile(0.5)), 20.0);
        assert_eq!(of(Statistic::Quantile(1.0)), 40.0);
        assert_eq!(weighted([&changes].into_iter(), ms(500), ms(600), Statistic::Mean), Some(40.0));
        assert_eq!(weighted([&changes].into_iter(), ms(0), ms(0), Statistic::Mean), None);
    }
}
