//! Links in parallel: which of them a connection takes.

use std::collections::HashMap;

use flowstart_random::{Purpose, SplitMix64};
use flowstart_units::Span;

use crate::route::Routes;
use crate::{FlowConfig, LinkId, SimulationConfig};

/// Most routes that one flow may have the choice of.
pub(crate) const MOST_ROUTES: usize = 4096;

/// The groups of links in parallel that a path leads through, by their numbers.
pub(crate) fn groups_of<'a>(ways: &'a [Vec<LinkId>], flow: &'a FlowConfig) -> impl Iterator<Item = usize> + 'a {
    let on_path = |links: &Vec<LinkId>| links.first().is_some_and(|first| named(flow, *first));
    ways.iter().enumerate().filter(move |(_, links)| on_path(links)).map(|(group, _)| group)
}

fn named(flow: &FlowConfig, link: LinkId) -> bool {
    flow.forward.contains(&link) || flow.reverse.contains(&link)
}

/// The choice that the connections of some flows have.
#[derive(Debug)]
struct Choice {
    groups: Vec<usize>,
    /// All routes, the way through the last group first to change.
    routes: Vec<u32>,
}

/// Which ways there are.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Of each group, how many links, and what they are drawn with.
    groups: Vec<(u32, u64)>,
    /// By the route over the first links.
    choices: HashMap<u32, Choice>,
}

impl Ways {
    /// Lays the routes of all flows over all links in parallel.
    pub(crate) fn new(config: &SimulationConfig, routes: &mut Routes, delays: &[Span]) -> Self {
        let seed = |group| Purpose::Way.seed(config.seed, config.run, group as u64);
        let groups = config.ways.iter().enumerate().map(|(group, links)| (links.len() as u32, seed(group)));
        let mut ways = Self { groups: groups.collect(), choices: HashMap::new() };
        if ways.groups.is_empty() {
            return ways;
        }
        let flows = config.flows.iter().chain(config.arrivals.iter().map(|arrivals| &arrivals.flow));
        for flow in flows.chain(config.sessions.iter().map(|session| &session.flow)) {
            let groups: Vec<usize> = groups_of(&config.ways, flow).collect();
            let first = routes.add(flow, delays);
            if groups.is_empty() || ways.choices.contains_key(&first) {
                continue;
            }
            let count = groups.iter().map(|group| config.ways[*group].len()).product();
            let route = |mut number: usize| {
                let mut flow = flow.clone();
                for group in groups.iter().rev() {
                    let links = &config.ways[*group];
                    let chosen = links[number % links.len()];
                    number /= links.len();
                    for link in flow.forward.iter_mut().chain(&mut flow.reverse).filter(|link| **link == links[0]) {
                        *link = chosen;
                    }
                }
                routes.add(&flow, delays)
            };
            let all = (0..count).map(route).collect();
            ways.choices.insert(first, Choice { groups, routes: all });
        }
        ways
    }

    /// The route of a connection of the flow that draws by this number; `first` is that over the
    /// first links.
    pub(crate) fn route(&self, first: u32, told: &[u32], flow: u64, connection: usize) -> u32 {
        let Some(choice) = self.choices.get(&first) else { return first };
        let number = choice.groups.iter().fold(0, |number, group| {
            let (count, seed) = self.groups[*group];
            let drawn = || SplitMix64::nth(seed, (flow << 1) | connection as u64) % u64::from(count);
            let way = told.get(connection).map_or_else(drawn, |way| u64::from(*way));
            number * count as usize + way as usize
        });
        choice.routes.get(number).copied().unwrap_or(first)
    }
}
