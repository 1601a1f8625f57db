//! How long packets wait and travel.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_units::Span;

use super::item::{Asks, ScenarioMeasure};
use super::run::ScenarioRun;
use crate::quantity::{Dimension, Measured};
use crate::statistic::Statistic;

/// Time that data packets waited at a link until their transmission began, by their time of
/// arrival there.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueDelay {
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
}

impl ScenarioMeasure for QueueDelay {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).link(self.link.as_ref()).window(self.from, self.until)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.times(self.from, self.until);
        let waits = run.link(self.link.as_deref())?.waits().iter();
        let inside = waits.filter(|wait| (from..until).contains(&wait.arrived));
        let own = inside.filter(|wait| run.is_of(wait.flow, self.flow.as_deref()));
        self.statistic.measured(own.map(|wait| wait.waited.as_secs_f64()))
    }
}

/// Round-trip time of data packets: the base RTT, the wait at the link and the transmission there,
/// by their time of arrival. Nothing else on the way may hold packets or ACKs up.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundTrip {
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
}

impl ScenarioMeasure for RoundTrip {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).link(self.link.as_ref()).window(self.from, self.until).rtt(true)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.times(self.from, self.until);
        let waits = run.link(self.link.as_deref())?.waits().iter();
        let inside = waits.filter(|wait| (from..until).contains(&wait.arrived));
        let own = inside.filter(|wait| run.is_of(wait.flow, self.flow.as_deref()));
        let trip = |transmission: u32, waited: Span| run.rtt + waited + Span::from_nanos(transmission.into());
        self.statistic.measured(own.map(|wait| trip(wait.transmission, wait.waited).as_secs_f64()))
    }
}
