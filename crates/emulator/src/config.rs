//! What a world is made of, and whether it makes sense.

use std::collections::HashSet;

use flowstart_network::LinkConfig;
use flowstart_units::Span;

use crate::Error;

/// Index of a host in [`WorldConfig::hosts`].
pub type HostId = usize;
/// Index of a link in [`WorldConfig::links`].
pub type LinkId = usize;

/// A host to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its name: letters, digits and hyphens, at most 32.
    pub name: String,
    /// Further names for hosts that only this one knows, as its programs' `/etc/hosts` says.
    pub aliases: Vec<(String, HostId)>,
    /// Initial window of its TCP connections in packets (the attribute `initcwnd` of its routes);
    /// `None` for the kernel's, which is 10.
    pub initial_window: Option<u32>,
}

impl HostConfig {
    /// A host with this name, that knows the others by theirs.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), aliases: Vec::new(), initial_window: None }
    }
}

/// True for letters, digits and hyphens, at most 32 of them.
fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// A way from one host to another; there is one way back for packets in the other direction, a
/// route of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// Who sends.
    pub from: HostId,
    /// Who receives.
    pub to: HostId,
    /// Delay before the first link.
    pub before: Span,
    /// Links in order; may be empty.
    pub links: Vec<LinkId>,
    /// Delay after the last link (beside the link's own).
    pub after: Span,
    /// Which of the links in parallel its packets take ([`WorldConfig::ways`], from 0); `None` for
    /// each connection one of them.
    pub way: Option<u32>,
}

/// How the engines keep time. The defaults are measured (docs/emulator.md says how).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long before a departure an engine stops sleeping and watches the clock. Default 12 us:
    /// waking a real-time thread takes less.
    pub spin: Span,
    /// Longest time for which packets are not looked at while there is delay to hide it. Default
    /// 250 us.
    pub nap: Span,
    /// How long decisions of a link wait for packets that were stamped but are not visible yet,
    /// where there is delay to hide it. Default 5 us.
    pub settle: Span,
    /// An engine that was away this much longer than it asked for has stalled. Default 1 ms.
    pub stall: Span,
    /// Every packet that a host was given is told with the outcome, with the time at which it was
    /// due ([`crate::WorldOutcome::given`]). Default false.
    pub tell_given: bool,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            spin: Span::from_micros(12),
            nap: Span::from_micros(250),
            settle: Span::from_micros(5),
            stall: Span::from_millis(1),
            tell_given: false,
        }
    }
}

/// What is to be made.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Hosts, at most 1000.
    pub hosts: Vec<HostConfig>,
    /// Links in one direction each.
    pub links: Vec<LinkConfig>,
    /// Links in parallel: where a route names the first of such a group, each of its connections
    /// takes one of them, by a hash of its addresses, ports and the seed.
    pub ways: Vec<Vec<LinkId>>,
    /// Routes, at most one for every ordered pair of hosts.
    pub routes: Vec<RouteConfig>,
    /// Seed of all random decisions of links. Links with the same place in `links` decide as those
    /// of the simulator with this seed in this run.
    pub seed: u64,
    /// Number of the run. Each has random streams of its own.
    pub run: u64,
    /// Largest IP packet. Default 1500 bytes, at least 1280 (what IPv6 needs), at most 9000.
    pub mtu: u32,
    /// How the engines keep time.
    pub timing: Timing,
    /// How long after the start the clock begins to run (rate schedules too), so that there is time
    /// to prepare. Default 0.
    pub lead: Span,
}

/// MTU range.
const MTUS: std::ops::RangeInclusive<u32> = 1280..=9000;
/// Most ways that a route may have the choice of.
const MOST_VARIANTS: usize = 256;
/// Most hosts: as many as a machine can bear.
const MOST_HOSTS: usize = 1000;

impl WorldConfig {
    /// Two hosts, `client` and `server`: what the client sends goes through `link`, what the server
    /// sends takes `back` and nothing else.
    #[must_use]
    pub fn pair(link: LinkConfig, back: Span) -> Self {
        let route = |from, to, links, after| RouteConfig { from, to, before: Span::ZERO, links, after, way: None };
        Self {
            hosts: vec![HostConfig::new("client"), HostConfig::new("server")],
            links: vec![link],
            ways: Vec::new(),
            routes: vec![route(0, 1, vec![0], Span::ZERO), route(1, 0, Vec::new(), back)],
            seed: 1,
            run: 0,
            mtu: 1500,
            timing: Timing::default(),
            lead: Span::ZERO,
        }
    }

    /// Checks that the world can be made.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::Config(message));
        if self.hosts.len() > MOST_HOSTS {
            return wrong(format!("a world has at most {MOST_HOSTS} hosts"));
        }
        if !MTUS.contains(&self.mtu) {
            return wrong(format!("an MTU lies between {} and {} bytes", MTUS.start(), MTUS.end()));
        }
        let mut names = HashSet::new();
        for host in &self.hosts {
            for name in host.aliases.iter().map(|(name, _)| name).chain([&host.name]) {
                if !is_name(name) {
                    return wrong(format!("\"{name}\" is not a host name of letters, digits and hyphens"));
                }
            }
            if let Some((name, _)) = host.aliases.iter().find(|(_, other)| *other >= self.hosts.len()) {
                return wrong(format!("\"{name}\" stands for a host that does not exist"));
            }
            if !names.insert(&host.name) {
                return wrong(format!("there are two hosts \"{}\"", host.name));
            }
        }
        for link in &self.links {
            link.validate().map_err(|error| Error::Config(error.to_string()))?;
        }
        let mut parallel = HashSet::new();
        for links in &self.ways {
            if links.is_empty() || links.iter().any(|link| *link >= self.links.len() || !parallel.insert(*link)) {
                return wrong("links in parallel are at least one, all exist, and none is in two groups".to_owned());
            }
        }
        let mut pairs = HashSet::new();
        for (index, route) in self.routes.iter().enumerate() {
            let hosts = self.hosts.len();
            if route.from >= hosts || route.to >= hosts || route.from == route.to {
                return wrong(format!("route {index} does not lead from one host to another"));
            }
            if route.links.iter().any(|link| *link >= self.links.len()) {
                return wrong(format!("route {index} names a link that does not exist"));
            }
            if self.variants(route).is_empty() {
                return wrong(format!("route {index} takes a way that does not exist, or has too many to choose from"));
            }
            if !pairs.insert((route.from, route.to)) {
                return wrong(format!("there are two routes from host {} to host {}", route.from, route.to));
            }
        }
        Ok(())
    }

    /// The links of a route: once for every way that a connection may take. None if there are more
    /// than an engine knows, or if the way it is told is not there.
    pub(crate) fn variants(&self, route: &RouteConfig) -> Vec<Vec<LinkId>> {
        let mut variants = vec![Vec::new()];
        for link in &route.links {
            let group = self.ways.iter().find(|links| links.first() == Some(link));
            let choice = match (group, route.way) {
                (None, _) => vec![*link],
                (Some(links), None) => links.clone(),
                (Some(links), Some(way)) => links.get(way as usize).copied().into_iter().collect(),
            };
            if variants.len() * choice.len() > MOST_VARIANTS {
                return Vec::new();
            }
            let longer = |before: &Vec<LinkId>| {
                choice.iter().map(|link| [before.as_slice(), &[*link]].concat()).collect::<Vec<_>>()
            };
            variants = variants.iter().flat_map(longer).collect();
        }
        variants
    }

    /// All links that packets of a route may cross.
    fn links_of(&self, route: &RouteConfig) -> Vec<LinkId> {
        self.variants(route).concat()
    }

    /// Which engine each host's packets go through: hosts whose packets meet at a link share one.
    pub(crate) fn engines(&self) -> Vec<Vec<HostId>> {
        let mut engine_of_link: Vec<Option<usize>> = vec![None; self.links.len()];
        let mut engines: Vec<Vec<HostId>> = Vec::new();
        for host in 0..self.hosts.len() {
            let own = self.routes.iter().filter(|route| route.from == host);
            let links: Vec<LinkId> = own.flat_map(|route| self.links_of(route)).collect();
            let mut met: Vec<usize> = links.iter().filter_map(|link| engine_of_link[*link]).collect();
            met.sort_unstable();
            met.dedup();
            let into = met.first().copied().unwrap_or_else(|| {
                engines.push(Vec::new());
                engines.len() - 1
            });
            engines[into].push(host);
            // Engines that this host's links join become one.
            for other in met.into_iter().skip(1) {
                let moved = std::mem::take(&mut engines[other]);
                engines[into].extend(moved);
                for engine in engine_of_link.iter_mut().filter(|engine| **engine == Some(other)) {
                    *engine = Some(into);
                }
            }
            for link in links {
                engine_of_link[link] = Some(into);
            }
        }
        // Hosts that meet nobody share one engine: ways back without links cost little.
        let mut joined: Vec<Vec<HostId>> = Vec::new();
        let mut alone = Vec::new();
        for mut engine in engines.into_iter().filter(|engine| !engine.is_empty()) {
            engine.sort_unstable();
            let meets = |host: &HostId| self.routes.iter().any(|route| route.from == *host && !route.links.is_empty());
            if engine.iter().any(meets) { joined.push(engine) } else { alone.extend(engine) }
        }
        if !alone.is_empty() {
            joined.push(alone);
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use flowstart_network::{DropTailConfig, QueueConfig, RateSchedule};
    use flowstart_units::Rate;

    use super::*;

    fn link() -> LinkConfig {
        let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(10), bytes: None });
        LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(10)), Span::from_millis(1), queue)
    }

    fn world(hosts: usize, links: usize, routes: &[(HostId, HostId, &[LinkId])]) -> WorldConfig {
        WorldConfig {
            hosts: (0..hosts).map(|n| HostConfig::new(format!("h{n}"))).collect(),
            links: vec![link(); links],
            routes: routes
                .iter()
                .map(|(from, to, links)| RouteConfig {
                    from: *from,
                    to: *to,
                    before: Span::ZERO,
                    links: links.to_vec(),
                    after: Span::ZERO,
                    way: None,
                })
                .collect(),
            ..WorldConfig::pair(link(), Span::ZERO)
        }
    }

    #[test]
    fn a_pair_has_an_engine_for_each_direction() {
        assert_eq!(WorldConfig::pair(link(), Span::ZERO).engines(), [vec![0], vec![1]]);
    }

    #[test]
    fn hosts_whose_packets_meet_at_a_link_share_an_engine_however_they_meet() {
        // 0 and 1 meet at link 0; 2 uses link 1; 3 uses both and joins them; 4 and 5 have ways
        // without links.
        let routes: [(HostId, HostId, &[LinkId]); 6] =
            [(0, 4, &[0]), (1, 4, &[0]), (2, 4, &[1]), (3, 4, &[1, 0]), (4, 0, &[]), (5, 0, &[])];
        assert_eq!(world(6, 2, &routes).engines(), [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(world(6, 2, &routes[..3]).engines(), [vec![0, 1], vec![2], vec![3, 4, 5]]);
    }

    #[test]
    fn connections_have_the_choice_of_links_in_parallel_unless_their_way_is_told() {
        let mut config = world(4, 4, &[(0, 1, &[0, 3]), (2, 3, &[2])]);
        config.ways = vec![vec![0, 1, 2]];
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.variants(&config.routes[0]), [[0, 3], [1, 3], [2, 3]]);
        assert_eq!(config.engines()[0], [0, 2], "they may meet at link 2");
        config.routes[0].way = Some(1);
        assert_eq!(config.variants(&config.routes[0]), [[1, 3]]);
        assert_eq!(config.engines().len(), 3);
        config.routes[0].way = Some(3);
        assert!(config.validate().unwrap_err().to_string().contains("does not exist"));
        config.ways = vec![vec![0, 1], vec![1, 2]];
        assert!(config.validate().unwrap_err().to_string().contains("in two groups"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        let good = WorldConfig::pair(link(), Span::ZERO);
        assert_eq!(good.validate(), Ok(()));
        let refused = |change: fn(&mut WorldConfig)| {
            let mut config = good.clone();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(refused(|c| c.mtu = 100).contains("between 1280 and 9000"));
        assert!(refused(|c| c.hosts[1].name = "client".to_owned()).contains("two hosts"));
        assert!(refused(|c| c.hosts[1].name = "a b".to_owned()).contains("not a host name"));
        assert!(refused(|c| c.hosts[0].aliases.push((String::new(), 1))).contains("not a host name"));
        assert!(refused(|c| c.hosts[0].aliases.push(("far".to_owned(), 2))).contains("does not exist"));
        assert!(refused(|c| c.routes[0].to = 0).contains("route 0"));
        assert!(refused(|c| c.routes[0].links = vec![7]).contains("does not exist"));
        assert!(refused(|c| c.routes.push(c.routes[0].clone())).contains("two routes"));
    }
}
