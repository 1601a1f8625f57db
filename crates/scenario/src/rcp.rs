//! Which routers know RCP.

use flowstart_network::RcpConfig;
use flowstart_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A router in front of a link that knows RCP (Dukkipati and McKeown 2006): it has one rate for all
/// flows, which it corrects so that the link is full and its queue empty. Only flows with the start
/// `rcp` ask for it. The defaults are those of the authors' simulations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RcpSpec {
    /// Capacity it is configured with; default: that of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Rate>,
    /// Share of the free capacity that the next round trip hands out, above 0 and at most 1.
    pub alpha: f64,
    /// Share of the queue that is to be gone in the next round trip, above 0 and at most 1.
    pub beta: f64,
    /// Time between corrections, but at most a round trip.
    pub interval: Span,
    /// Rate at first, in percent of the capacity, 1 to 100.
    pub initial_percent: u32,
    /// Round-trip time that is assumed until packets tell one.
    pub assumed_rtt: Span,
}

impl Default for RcpSpec {
    fn default() -> Self {
        let RcpConfig { alpha, beta, interval, initial_percent, assumed_rtt, .. } = RcpConfig::new(Rate::ZERO);
        Self { capacity: None, alpha, beta, interval, initial_percent, assumed_rtt }
    }
}

impl RcpSpec {
    /// The router in front of a link that carries `rate`.
    pub(super) fn config(&self, rate: Rate) -> RcpConfig {
        let Self { capacity, alpha, beta, interval, initial_percent, assumed_rtt } = *self;
        RcpConfig { capacity: capacity.unwrap_or(rate), alpha, beta, interval, initial_percent, assumed_rtt }
    }
}
