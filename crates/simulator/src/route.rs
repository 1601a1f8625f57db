//! Paths: which lane a packet enters after each hop.

use std::collections::HashMap;

use flowstart_units::Span;

use crate::lane::{Lane, Target};
use crate::{FlowConfig, LinkId};

/// The two directions of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Data.
    Forward,
    /// Acknowledgements.
    Reverse,
}

/// Index of a lane.
pub(crate) type LaneId = u32;

/// Where a packet goes from an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) enum First {
    /// Straight into a link's queue: no delay in between.
    Link(LinkId),
    /// Into a lane, to arrive after this delay.
    Lane(LaneId, Span),
}

/// Where a packet enters the network in each direction. Flows with the same links and delays share
/// a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) forward: First,
    pub(crate) reverse: First,
}

/// Where the packets of one route go after a link: a lane, and the delay until they arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) lane: LaneId,
    pub(crate) delay: Span,
}

impl Hop {
    /// True if the packets of this route do not come by in this direction.
    pub(crate) fn is_nowhere(self) -> bool {
        self.lane == LaneId::MAX
    }
}

/// Lanes are shared by all packets that leave the same place for the same place with the same
/// delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LaneKey {
    from: Option<LinkId>,
    to: Target,
    delay: Span,
}

/// All routes, and the lanes they need.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) routes: Vec<Route>,
    pub(crate) lanes: Vec<Lane>,
    /// `hops[link][2 * route + direction]`.
    pub(crate) hops: Vec<Vec<Hop>>,
    known_lanes: HashMap<LaneKey, LaneId>,
    known_routes: HashMap<RouteKey, u32>,
}

type RouteKey = (Vec<LinkId>, Vec<LinkId>, Span, bool, Span, Span);

/// A hop that is never taken.
const NOWHERE: Hop = Hop { lane: LaneId::MAX, delay: Span::ZERO };

impl Routes {
    pub(crate) fn new(links: usize) -> Self {
        Self { hops: vec![Vec::new(); links], ..Self::default() }
    }

    /// The route of a flow; `link_delays[link]` is the propagation delay of that link.
    pub(crate) fn add(&mut self, flow: &FlowConfig, link_delays: &[Span]) -> u32 {
        let key = (
            flow.forward.clone(),
            flow.reverse.clone(),
            flow.access.delay,
            flow.access.rate.is_unlimited(),
            flow.tail_delay,
            flow.return_delay,
        );
        if let Some(route) = self.known_routes.get(&key) {
            return *route;
        }
        let route = self.routes.len() as u32;
        for hops in &mut self.hops {
            hops.resize(2 * (route as usize + 1), NOWHERE);
        }
        let forward = self.direction(
            route,
            Direction::Forward,
            &flow.forward,
            (flow.access.delay, flow.access.rate.is_unlimited()),
            flow.tail_delay,
            link_delays,
        );
        let reverse = self.direction(
            route,
            Direction::Reverse,
            &flow.reverse,
            (Span::ZERO, true),
            flow.return_delay,
            link_delays,
        );
        self.routes.push(Route { forward, reverse });
        self.known_routes.insert(key, route);
        route
    }

    /// Lays one direction; `head` is the delay before the first link and whether packets enter it
    /// without waiting.
    fn direction(
        &mut self,
        route: u32,
        direction: Direction,
        links: &[LinkId],
        head: (Span, bool),
        tail: Span,
        link_delays: &[Span],
    ) -> First {
        for (position, &link) in links.iter().enumerate() {
            let (to, extra) = match links.get(position + 1) {
                Some(&next) => (Target::Link(next), Span::ZERO),
                None => (Target::Endpoint, tail),
            };
            let delay = link_delays[link] + extra;
            let lane = self.lane(LaneKey { from: Some(link), to, delay });
            self.hops[link][2 * route as usize + direction as usize] = Hop { lane, delay };
        }
        match (links.first(), head) {
            (Some(&link), (Span::ZERO, true)) => First::Link(link),
            (Some(&link), (delay, _)) => {
                First::Lane(self.lane(LaneKey { from: None, to: Target::Link(link), delay }), delay)
            }
            (None, (delay, _)) => {
                let delay = delay + tail;
                First::Lane(self.lane(LaneKey { from: None, to: Target::Endpoint, delay }), delay)
            }
        }
    }

    fn lane(&mut self, key: LaneKey) -> LaneId {
        let lanes = &mut self.lanes;
        *self.known_lanes.entry(key).or_insert_with(|| {
            lanes.push(Lane::new(key.to));
            (lanes.len() - 1) as LaneId
        })
    }
}
