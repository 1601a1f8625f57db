//! From a compiled scenario to a world of hosts, links and routes.

use flowstart_emulator::{HostConfig, HostId, LinkId, RouteConfig, Timing, WorldConfig};
use flowstart_experiment::scenario::Compiled;
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_simulator::FlowConfig;
use flowstart_units::Span;

use super::perform::wants_ecn;
use crate::output::Failure;

/// The world of a scenario, and where its flows are in it.
pub(super) struct Layout {
    /// The world.
    pub(super) config: WorldConfig,
    /// Names of its links.
    pub(super) links: Vec<String>,
    /// Sending and receiving host of each flow, in the order of the simulation's.
    pub(super) flows: Vec<(HostId, HostId)>,
}

/// Most pairs of hosts: as many as have run on a small machine.
const MOST_PAIRS: usize = 100;
/// Largest IP packet.
const MTU: u32 = 1500;

impl Layout {
    /// Flows with the same way and the same delays share a pair of hosts; flows with an access link of their own have a pair each.
    pub(super) fn new(compiled: &Compiled) -> Result<Self, Failure> {
        let simulation = &compiled.simulation;
        let mut layout = Self {
            config: WorldConfig {
                hosts: Vec::new(),
                links: simulation.links.clone(),
                routes: Vec::new(),
                seed: simulation.seed.wrapping_add(simulation.run),
                mtu: MTU,
                timing: Timing::default(),
                lead: Span::ZERO,
            },
            links: compiled.links.clone(),
            flows: Vec::new(),
        };
        let mut pairs: Vec<&FlowConfig> = Vec::new();
        for flow in &simulation.flows {
            let alone = !flow.access.rate.is_unlimited();
            let known = pairs.iter().position(|other| !alone && same_way(other, flow));
            let pair = known.unwrap_or_else(|| {
                pairs.push(flow);
                pairs.len() - 1
            });
            layout.flows.push((2 * pair, 2 * pair + 1));
        }
        if pairs.len() > MOST_PAIRS {
            return Err(Failure::Usage(format!(
                "the flows have {} different ways or access links; at most {MOST_PAIRS} pairs of hosts are made",
                pairs.len()
            )));
        }
        let several = pairs.len() > 1;
        for (number, flow) in pairs.iter().enumerate() {
            let name = |who: &str| if several { format!("{who}{}", number + 1) } else { who.to_owned() };
            for who in ["client", "server"] {
                layout.config.hosts.push(HostConfig { name: name(who) });
            }
            layout.add_routes(number, flow);
        }
        Ok(layout)
    }

    fn add_routes(&mut self, pair: usize, flow: &FlowConfig) {
        let (client, server) = (2 * pair, 2 * pair + 1);
        let mut forward: Vec<LinkId> = flow.forward.clone();
        let mut before = flow.access.delay;
        if !flow.access.rate.is_unlimited() {
            let rate = RateSchedule::Constant(flow.access.rate);
            self.config.links.push(LinkConfig::new(rate, before, QueueConfig::DropTail(Default::default())));
            self.links.push(format!("access{}", pair + 1));
            forward.insert(0, self.config.links.len() - 1);
            before = Span::ZERO;
        }
        let routes = [
            RouteConfig { from: client, to: server, before, links: forward, after: flow.tail_delay },
            RouteConfig {
                from: server,
                to: client,
                before: Span::ZERO,
                links: flow.reverse.clone(),
                after: flow.return_delay,
            },
        ];
        self.config.routes.extend(routes);
    }
}

fn same_way(a: &FlowConfig, b: &FlowConfig) -> bool {
    // ECN is a setting of the host.
    let ecn = wants_ecn(&a.traffic) == wants_ecn(&b.traffic);
    ecn && (&a.forward, &a.reverse, a.access, a.tail_delay, a.return_delay)
        == (&b.forward, &b.reverse, b.access, b.tail_delay, b.return_delay)
}
