//! Which routers know Quick-Start, and how they decide.

use flowstart_network::QuickStartHop;
use flowstart_quick_start::router::{AdmissionConfig, FlowsConfig, MemoryConfig, ShareConfig};
use flowstart_random::{Purpose, below};
use flowstart_units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Problem;

/// How a router measures its load and remembers what it granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionSpec {
    /// Mean load of the last second; grants remembered for one to two seconds (Scharf and
    /// Strotbek).
    #[default]
    Mean,
    /// Peak load of ten samples of 150 ms; grants remembered for 150 to 300 ms (RFC 4782 appendices
    /// C and D).
    Peak,
    /// Mean load of the last second; grants remembered flow by flow, given back if unused, and not
    /// counted again once their data is in the load (Extreme Quick-Start).
    Flows,
    /// As `flows`, but what a flow sends counts again beside its grant, as with `mean` and `peak`:
    /// to see what counting twice costs.
    FlowsTwice,
    /// As `flows`, and no flow is granted more than its fair share, the capacity divided by the
    /// flows that sent data in the last 200 ms: for fair queuing.
    Fair,
    /// Every flow is granted its fair share, even on a full link: the fair queue in front of it
    /// enforces shares anyway.
    Share,
}

/// A tunnel on the way to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TunnelSpec {
    /// It hides the TTL, and nobody within is asked: requests pass as if they had been approved
    /// (RFC 4782 section 6).
    Hidden,
    /// Its entry knows that, and denies.
    Denying,
}

/// A middlebox on the way to a link that does not like options of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MiddleboxSpec {
    /// It drops packets with a Quick-Start option, SYN and data alike; they are sent again without
    /// it (RFC 4782 section 4.7.2).
    Drops,
    /// It takes the option away, which denies.
    Strips,
}

/// The router in front of a link, as far as Quick-Start (RFC 4782) is concerned. Only flows with
/// the start `quick_start`, or `careful_resume` with a `request`, ask it anything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuickStartSpec {
    /// Share of routers that know Quick-Start, in percent: the probability that this one does in a
    /// run. One that does not denies every request.
    pub aware_percent: u32,
    /// How it decides.
    pub admission: AdmissionSpec,
    /// Capacity it is configured with; default: that of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Rate>,
    /// Share of the capacity in percent that load and grants may reach together.
    pub threshold_percent: u32,
    /// The link is within a tunnel, in which the router sees no requests; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelSpec>,
    /// A middlebox on the way to the link, in place of a router that could know Quick-Start;
    /// default none. Not beside a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middlebox: Option<MiddleboxSpec>,
}

impl Default for QuickStartSpec {
    fn default() -> Self {
        Self {
            aware_percent: 100,
            admission: AdmissionSpec::Mean,
            capacity: None,
            threshold_percent: 100,
            tunnel: None,
            middlebox: None,
        }
    }
}

impl QuickStartSpec {
    /// True if chance says which routers know it.
    pub(super) fn is_random(&self) -> bool {
        (1..100).contains(&self.aware_percent)
    }

    /// What becomes of requests on the way to link number `link` of capacity `rate` in this run.
    pub(super) fn hop(&self, rate: Rate, (seed, run, link): (u64, u64, usize)) -> Result<QuickStartHop, Problem> {
        for (name, percent) in [("aware_percent", self.aware_percent), ("threshold_percent", self.threshold_percent)] {
            if percent > 100 {
                return Err(Problem::at(format!("quick_start.{name}"), "a share is 0 to 100 percent"));
            }
        }
        match (self.tunnel, self.middlebox) {
            (Some(_), Some(_)) => {
                return Err(Problem::at("quick_start.middlebox", "a link has a tunnel or a middlebox, not both"));
            }
            (Some(TunnelSpec::Hidden), None) => return Ok(QuickStartHop::Tunnel),
            (Some(TunnelSpec::Denying), None) => return Ok(QuickStartHop::AwareTunnel),
            (None, Some(MiddleboxSpec::Drops)) => return Ok(QuickStartHop::DropsOptions),
            (None, Some(MiddleboxSpec::Strips)) => return Ok(QuickStartHop::StripsOptions),
            (None, None) => {}
        }
        let random = &mut Purpose::Aware.stream(seed, run, link as u64);
        if below(random, 100) >= u64::from(self.aware_percent) {
            return Ok(QuickStartHop::Unaware);
        }
        let capacity = self.capacity.unwrap_or(rate);
        let base = match self.admission {
            AdmissionSpec::Mean => AdmissionConfig::paper(capacity),
            AdmissionSpec::Peak => AdmissionConfig::rfc(capacity),
            AdmissionSpec::Flows | AdmissionSpec::FlowsTwice | AdmissionSpec::Fair | AdmissionSpec::Share => {
                let count_once = self.admission != AdmissionSpec::FlowsTwice;
                let flows = FlowsConfig { count_once, ..FlowsConfig::default() };
                let share = match self.admission {
                    AdmissionSpec::Fair => Some(ShareConfig::default()),
                    AdmissionSpec::Share => Some(ShareConfig { alone: true, ..ShareConfig::default() }),
                    _ => None,
                };
                AdmissionConfig { memory: MemoryConfig::Flows(flows), share, ..AdmissionConfig::paper(capacity) }
            }
        };
        Ok(QuickStartHop::Aware(AdmissionConfig { threshold_percent: self.threshold_percent, ..base }))
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Span;

    use super::*;

    fn aware(aware_percent: u32) -> usize {
        let spec = QuickStartSpec { aware_percent, ..QuickStartSpec::default() };
        let knows = |run| spec.hop(Rate::from_mbps(10), (1, run, 0)).unwrap() != QuickStartHop::Unaware;
        (0..1000).filter(|run| knows(*run)).count()
    }

    #[test]
    fn the_share_of_routers_that_know_quick_start_is_drawn_run_by_run() {
        assert_eq!((aware(0), aware(100)), (0, 1000));
        assert!((450..550).contains(&aware(50)), "{}", aware(50));
    }

    #[test]
    fn shares_above_100_percent_are_refused() {
        let spec = QuickStartSpec { threshold_percent: 101, ..QuickStartSpec::default() };
        assert!(spec.hop(Rate::from_mbps(10), (1, 0, 0)).is_err());
    }

    #[test]
    fn a_link_is_in_a_tunnel_or_behind_a_middlebox_and_not_both() {
        let hop = |tunnel, middlebox| {
            let spec = QuickStartSpec { tunnel, middlebox, ..QuickStartSpec::default() };
            spec.hop(Rate::from_mbps(10), (1, 0, 0)).ok()
        };
        assert_eq!(hop(None, Some(MiddleboxSpec::Drops)), Some(QuickStartHop::DropsOptions));
        assert_eq!(hop(None, Some(MiddleboxSpec::Strips)), Some(QuickStartHop::StripsOptions));
        assert_eq!(hop(Some(TunnelSpec::Hidden), None), Some(QuickStartHop::Tunnel));
        assert_eq!(hop(Some(TunnelSpec::Denying), None), Some(QuickStartHop::AwareTunnel));
        assert_eq!(hop(Some(TunnelSpec::Hidden), Some(MiddleboxSpec::Drops)), None);
    }

    #[test]
    fn every_kind_of_admission_is_what_it_says() {
        let of = |admission| {
            let spec = QuickStartSpec { admission, ..QuickStartSpec::default() };
            match spec.hop(Rate::from_mbps(10), (1, 0, 0)).unwrap() {
                QuickStartHop::Aware(admission) => admission,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of(AdmissionSpec::Mean), AdmissionConfig::paper(Rate::from_mbps(10)));
        assert_eq!(of(AdmissionSpec::Peak).meter.interval(), Span::from_millis(150));
        let once = |admission| matches!(of(admission).memory, MemoryConfig::Flows(flows) if flows.count_once);
        assert_eq!(
            [AdmissionSpec::Flows, AdmissionSpec::FlowsTwice, AdmissionSpec::Fair].map(once),
            [true, false, true]
        );
        let share = |admission| of(admission).share.map(|share| share.alone);
        let kinds = [AdmissionSpec::Flows, AdmissionSpec::Fair, AdmissionSpec::Share];
        assert_eq!(kinds.map(share), [None, Some(false), Some(true)]);
    }
}
