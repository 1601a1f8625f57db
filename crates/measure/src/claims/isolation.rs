//! What detectors of fair queuing answer, when, and from what.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_congestion::detection::Isolation as Found;
use flowstart_network::QueueConfig;
use flowstart_simulator::FlowOutcome;
use flowstart_units::{Span, Time};

use super::item::{Asks, ScenarioMeasure};
use super::run::{ScenarioRun, mean, time_dimension};
use crate::quantity::{Dimension, Measured};

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
    fn is(self, found: Option<Found>, queue: Option<&QueueConfig>) -> bool {
        match self {
            Self::Right if queue.is_some_and(QueueConfig::isolates) => Self::Isolated.is(found, queue),
            Self::Right => Self::Shared.is(found, queue),
            Self::Isolated => found == Some(Found::Isolated),
            Self::Shared => found == Some(Found::Shared),
            Self::Unknown => found == Some(Found::Unknown),
            Self::Undecided => matches!(found, None | Some(Found::Unknown)),
        }
    }
}

/// Share of flows whose detector of fair queuing gave this answer.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// Whose.
    flow: Option<String>,
    /// The answer; "right" is by the queue of the first link.
    is: Answer,
    /// The answer that holds at the end of the run, instead of the first.
    #[serde(default)]
    at_end: bool,
}

impl ScenarioMeasure for Isolation {
    fn dimension(&self) -> Dimension {
        Dimension::Share
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn is_share_of_answers(&self) -> bool {
        true
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let flows = run.flows(self.flow.as_deref()).filter(|(_, flow)| flow.companion_of.is_none());
        let later = |flow: &FlowOutcome| flow.revised.filter(|_| self.at_end);
        let found = |flow: &FlowOutcome| later(flow).or(flow.decision).map(|decision| decision.isolation);
        let queue = run.simulation.links.first().map(|link| &link.queue);
        mean(flows.map(|(_, flow)| f64::from(u8::from(self.is.is(found(flow), queue))))).map(Measured::exact)
    }
}

/// How long after a time a detector of fair queuing gave another answer than its first, for the
/// last time; of those that did.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationChange {
    /// Whose; the mean if there are several.
    flow: Option<String>,
    /// When something changed.
    after: Span,
}

impl ScenarioMeasure for IsolationChange {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let since = Time::ZERO + self.after;
        let late = |flow: &FlowOutcome| Some(flow.revised?.now.since(since).as_secs_f64());
        run.mean(self.flow.as_deref(), late).map(Measured::exact)
    }
}

/// When the detector of fair queuing gave its first answer, after the flow's first data packet; of
/// those that gave one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationTime {
    /// Whose; the mean if there are several.
    flow: Option<String>,
    /// Count in base RTTs instead of seconds.
    #[serde(default)]
    rtts: bool,
}

impl ScenarioMeasure for IsolationTime {
    fn dimension(&self) -> Dimension {
        time_dimension(self.rtts)
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).rtt(self.rtts)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let after = |flow: &FlowOutcome| Some(flow.decision?.now.since(flow.first_data).as_secs_f64());
        Some(Measured::exact(run.time(run.mean(self.flow.as_deref(), after)?, self.rtts)))
    }
}

/// The number that a detector of fair queuing gave its first answer from: the part of the first
/// connection that arrived over that of the second; of those that gave one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationRatio {
    /// Whose; the mean if there are several.
    flow: Option<String>,
}

impl ScenarioMeasure for IsolationRatio {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        run.mean(self.flow.as_deref(), |flow| Some(flow.decision?.ratio)).map(Measured::exact)
    }
}

/// The rate that a detector of fair queuing told with its first answer, as a share of the first
/// link's; of those that gave one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationRate {
    /// Whose; the mean if there are several.
    flow: Option<String>,
}

impl ScenarioMeasure for IsolationRate {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let peak = run.simulation.links.first()?.rate.peak().as_bps() as f64;
        let told = |flow: &FlowOutcome| Some(flow.decision?.rate.as_bps() as f64 / peak);
        run.mean(self.flow.as_deref(), told).map(Measured::exact)
    }
}
