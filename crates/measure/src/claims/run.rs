//! One run of a scenario, over: what the measures of claims are computed from.

use flowstart_simulator::{FlowId, FlowOutcome, Outcome, SimulationConfig, Traffic};
use flowstart_units::{Span, Time};

use crate::egress::Egress;
use crate::quantity::{Dimension, Measured};
use crate::recording::{LinkRecord, LinksAndWindows, Recording};
use crate::statistic::Statistic;

/// One run, over.
#[derive(Debug)]
pub struct ScenarioRun<'a> {
    /// The base RTT of the path; zero without one.
    pub rtt: Span,
    /// What was simulated.
    pub simulation: &'a SimulationConfig,
    /// Names of the groups of flows, by number.
    pub groups: Vec<&'a str>,
    /// Names of the links, by number.
    pub links: &'a [String],
    /// What became of it.
    pub outcome: &'a Outcome,
    /// What was recorded.
    pub record: &'a Recording<LinksAndWindows>,
}

impl ScenarioRun<'_> {
    /// How long it lasted.
    #[must_use]
    pub fn end(&self) -> Span {
        self.outcome.ended.since(Time::ZERO)
    }

    /// The name of a flow.
    #[must_use]
    pub fn name(&self, flow: &FlowOutcome) -> &str {
        self.groups.get(flow.group as usize).copied().unwrap_or_default()
    }

    /// The flows of a name, all for `None`.
    pub fn flows<'b>(&'b self, name: Option<&'b str>) -> impl Iterator<Item = (FlowId, &'b FlowOutcome)> + 'b {
        let all = self.outcome.flows.iter().enumerate();
        all.map(|(id, flow)| (id as u32, flow)).filter(move |(_, flow)| name.is_none_or(|name| self.name(flow) == name))
    }

    /// True if the flow of this number has this name; with `None` it always has.
    pub(super) fn is_of(&self, id: FlowId, name: Option<&str>) -> bool {
        name.is_none_or(|name| self.outcome.flows.get(id as usize).is_some_and(|flow| self.name(flow) == name))
    }

    /// What was recorded of a link; of the first without a name.
    #[must_use]
    pub fn link(&self, name: Option<&str>) -> Option<&LinkRecord> {
        let number = name.map_or(Some(0), |name| self.links.iter().position(|known| known == name))?;
        self.record.link(number)
    }

    /// The series of egress that belong to a name.
    pub(super) fn egress<'b>(&self, link: &'b LinkRecord, name: Option<&str>) -> Vec<&'b Egress> {
        let mut wanted: Vec<usize> = match name {
            None => (0..=self.record.series()).collect(),
            Some(_) => self.flows(name).map(|(id, _)| self.record.series_of(id)).collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        wanted.into_iter().filter_map(|series| link.series()?.egress.get(series)).collect()
    }

    /// A window of time within the run.
    pub(super) fn window(&self, from: Option<Span>, until: Option<Span>) -> (Span, Span) {
        (from.unwrap_or(Span::ZERO), until.unwrap_or(Span::MAX).min(self.end()))
    }

    /// The same as times.
    pub(super) fn times(&self, from: Option<Span>, until: Option<Span>) -> (Time, Time) {
        let (from, until) = self.window(from, until);
        (Time::ZERO + from, Time::ZERO + until)
    }

    /// Seconds, or how many base RTTs they are.
    pub(super) fn time(&self, seconds: f64, rtts: bool) -> f64 {
        if rtts { seconds / self.rtt.as_secs_f64() } else { seconds }
    }

    /// The sum of a number over the flows of a name.
    pub(super) fn sum(&self, name: Option<&str>, of: impl Fn(&FlowOutcome) -> u64) -> Option<Measured> {
        Some(Measured::exact(self.flows(name).map(|(_, flow)| of(flow)).sum::<u64>() as f64))
    }

    /// The mean over the flows of a name that have a value.
    pub(super) fn mean(&self, name: Option<&str>, of: impl Fn(&FlowOutcome) -> Option<f64>) -> Option<f64> {
        mean(self.flows(name).filter_map(|(_, flow)| of(flow)))
    }

    /// What a flow sends.
    pub(super) fn traffic(&self, flow: FlowId) -> Option<&Traffic> {
        let configs =
            self.simulation.flows.iter().chain(self.simulation.arrivals.iter().map(|arrivals| &arrivals.flow));
        let group = self.outcome.flows.get(flow as usize).map(|flow| flow.group);
        configs.into_iter().find(|config| Some(config.group) == group).map(|config| &config.traffic)
    }

    /// Bytes of a full packet of a flow on the wire.
    pub(super) fn packet_bytes(&self, flow: FlowId) -> u32 {
        match self.traffic(flow) {
            Some(Traffic::Tcp(tcp)) => tcp.sender.mss.saturating_add(tcp.sender.header_bytes.into()),
            Some(Traffic::Udp(udp)) => u32::from(udp.packet),
            None => 0,
        }
    }
}

/// What a time is measured in.
pub(super) fn time_dimension(rtts: bool) -> Dimension {
    if rtts { Dimension::Rtts } else { Dimension::Time }
}

/// The mean; `None` without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    Statistic::Mean.of(&mut values.collect::<Vec<_>>())
}

/// What lies in bins within [from, until), those at the edges in proportion.
pub(super) fn sum_within(egress: &Egress, from: Span, until: Span) -> f64 {
    let bin = egress.bin().as_nanos().max(1) as f64;
    let (from, until) = (from.as_nanos() as f64 / bin, until.as_nanos() as f64 / bin);
    let first = from as usize;
    let inside = egress.bytes().iter().enumerate().skip(first).take_while(|(index, _)| (*index as f64) < until);
    inside.map(|(index, bytes)| ((index as f64 + 1.0).min(until) - (index as f64).max(from)) * *bytes as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_at_the_edges_of_a_window_count_in_proportion() {
        let mut egress = Egress::new(Span::from_millis(10), Span::from_millis(40), 100);
        for index in 0..4 {
            egress.add(Span::from_millis(10 * index), 100);
        }
        let sum = |from, until| sum_within(&egress, Span::from_millis(from), Span::from_millis(until));
        assert!((sum(0, 40) - 400.0).abs() < 1e-9);
        assert!((sum(5, 25) - 200.0).abs() < 1e-9);
        assert!((sum(12, 15) - 30.0).abs() < 1e-9);
        assert_eq!(sum(50, 60), 0.0);
    }
}
