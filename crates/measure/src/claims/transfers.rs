//! How long transfers and pages take.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_simulator::FlowOutcome;
use flowstart_units::{Bytes, Time};

use super::item::{Asks, ScenarioMeasure};
use super::run::ScenarioRun;
use crate::quantity::{Bound, Dimension, Measured};
use crate::statistic::Statistic;

/// Completion time of transfers: from the first data packet's departure to the last byte at the
/// receiver. One that is not complete when the run ends takes at least until then.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionTime {
    /// Whose.
    flow: Option<String>,
    /// Only transfers of this size or more.
    smallest: Option<Bytes>,
    /// Only transfers of this size or less.
    largest: Option<Bytes>,
    /// Over the transfers.
    statistic: Statistic,
}

impl ScenarioMeasure for CompletionTime {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let fits = |flow: &&FlowOutcome| {
            flow.size.is_some_and(|size| {
                self.smallest.is_none_or(|least| size >= least) && self.largest.is_none_or(|most| size <= most)
            })
        };
        let end = Time::ZERO + run.end();
        let begun = |flow: &&FlowOutcome| flow.started <= end;
        let flows = run.flows(self.flow.as_deref()).map(|(_, flow)| flow).filter(fits).filter(begun);
        let time = |flow: &FlowOutcome| {
            let lasting = |at: Time| at.since(flow.first_data).as_secs_f64();
            match flow.completed {
                Some(done) => Measured::exact(lasting(done)),
                // Of one whose first data did not leave nothing is known but that it takes time.
                None => Measured { value: lasting(end.max(flow.first_data)), bound: Bound::AtLeast },
            }
        };
        self.statistic.of_measured(&flows.map(time).collect::<Vec<_>>())
    }
}

/// Time from a user's wish for a page until its last byte is there. The page that a user still
/// waits for when the run ends does not count.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageTime {
    /// Whose.
    flow: Option<String>,
    /// Over the pages.
    statistic: Statistic,
}

impl ScenarioMeasure for PageTime {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let name = |group: u32| run.groups.get(group as usize).copied();
        let wanted = self.flow.as_deref();
        let sessions = run.outcome.sessions.iter();
        let sessions = sessions.filter(|session| wanted.is_none() || name(session.group) == wanted);
        let pages = sessions.flat_map(|session| &session.pages);
        self.statistic.measured(pages.map(|page| page.done.since(page.began).as_secs_f64()))
    }
}

/// How many transfers were completed.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completed {
    /// Whose.
    flow: Option<String>,
}

impl ScenarioMeasure for Completed {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        run.sum(self.flow.as_deref(), |flow| u64::from(flow.completed.is_some()))
    }
}
