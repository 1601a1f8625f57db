//! What routers grant, and what that is worth (Quick-Start, RFC 4782).

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_quick_start::model::{Link, Start, Transfer};
use flowstart_simulator::{FlowId, FlowOutcome, Traffic};
use flowstart_units::Rate;

use super::item::{Asks, ScenarioMeasure};
use super::run::{ScenarioRun, mean};
use crate::quantity::{Dimension, Measured};

/// Completion time of a transfer, with half a base RTT for the request, over that of the analytic
/// model of Quick-Start (every packet acknowledged, one link of the path's capacity); the mean of
/// these over the transfers. Without a grant: over that of slow start.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionToModel {
    /// Whose.
    flow: Option<String>,
    /// What the routers grant.
    grant: Option<Rate>,
}

impl CompletionToModel {
    /// How many times as long as by the model a transfer took.
    fn ratio(&self, run: &ScenarioRun<'_>, id: FlowId, flow: &FlowOutcome) -> Option<f64> {
        let Some(Traffic::Tcp(tcp)) = run.traffic(id) else { return None };
        let (packet, headers) = (run.packet_bytes(id), u32::from(tcp.sender.header_bytes));
        let rate = run.simulation.links.first()?.rate.peak();
        let link = Link { rate, rtt: run.rtt, packet, headers };
        let start = Start { initial_window: tcp.controller.initial_window, growth: 2.0, threshold: None };
        let (model, size) = (Transfer::new(link, start), flow.size?);
        let expected = self.grant.map_or(model.slow_start(size), |grant| model.quick_start(size, grant));
        let took = flow.completed?.since(flow.first_data) + run.rtt / 2;
        Some(took.as_secs_f64() / expected)
    }
}

impl ScenarioMeasure for CompletionToModel {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref()).rtt(true)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let flows = run.flows(self.flow.as_deref());
        mean(flows.filter_map(|(id, flow)| self.ratio(run, id, flow))).map(Measured::exact)
    }
}

/// Mean rate that a link's router granted per request (Quick-Start), denials counted as zero.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantedRate {
    /// Where.
    link: Option<String>,
}

impl ScenarioMeasure for GrantedRate {
    fn dimension(&self) -> Dimension {
        Dimension::Rate
    }

    fn asks(&self) -> Asks<'_> {
        Asks::default().link(self.link.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (requests, granted) = run.link(self.link.as_deref())?.series()?.requests;
        (requests > 0).then(|| Measured::exact(granted as f64 / requests as f64))
    }
}
