//! From a compiled scenario to a world of hosts, links and routes.

use flowstart_emulator::{Fate, HostConfig, HostId, LinkId, PacketRecord, RouteConfig, Timing, WorldConfig};
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_scenario::Compiled;
use flowstart_simulator::{FlowConfig, SimulationConfig, Traffic};
use flowstart_transport::EcnMode;
use flowstart_units::{Span, Time};

use super::{Error, MOST_PAIRS};

/// The world of a scenario, and where its flows are in it.
pub(super) struct Layout {
    /// The world.
    pub(super) config: WorldConfig,
    /// Names of its links.
    pub(super) links: Vec<String>,
    /// Sending and receiving host of each flow, in the order of the simulation's: flows, then
    /// arrival processes, then sessions.
    pub(super) ways: Vec<(HostId, HostId)>,
}

/// The ends of a flow's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayEnds {
    first: LinkId,
    last: LinkId,
    /// From the sending host to the first link.
    before: Span,
}

impl WayEnds {
    /// When a packet left the sending host, if this is where that is seen, and when the other host
    /// gets it, if it does; `None` on links between, and of what still waits at the end.
    pub(super) fn seen(&self, record: &PacketRecord<'_>) -> Option<(Option<Time>, Option<Time>)> {
        let stayed = matches!(record.fate, Fate::Stayed { .. });
        if stayed || (record.link != self.first && record.link != self.last) {
            return None;
        }
        let left = (record.link == self.first).then(|| Time::ZERO + record.arrived.since(Time::ZERO + self.before));
        Some((left, record.delivery))
    }
}

/// What the names of senders' own links begin with; a number follows.
const ACCESS: &str = "access";
/// With how many packets the kernel begins unless a route says otherwise (`TCP_INIT_CWND`, RFC
/// 6928).
const KERNELS_WINDOW: u32 = 10;
/// Largest IP packet.
pub(super) const MTU: u32 = 1500;

impl Layout {
    /// Flows with the same way, delays and settings of hosts share a pair of hosts; flows with an
    /// access link of their own have a pair each.
    pub(super) fn new(compiled: &Compiled) -> Result<Self, Error> {
        Self::build(compiled, |a, b| {
            let settings = |flow: &FlowConfig| (wants_ecn(&flow.traffic), initial_window(&flow.traffic));
            same_way(a, b) && settings(a) == settings(b)
        })
    }

    /// Where the packets of a flow are seen to leave and to arrive; `None` if it has no way.
    pub(super) fn ends(&self, flow: usize) -> Option<WayEnds> {
        let (from, to) = *self.ways.get(flow)?;
        let way = self.config.routes.iter().find(|route| (route.from, route.to) == (from, to))?;
        Some(WayEnds { first: *way.links.first()?, last: *way.links.last()?, before: way.before })
    }

    /// Hosts for programs: a pair for every flow, or for every way if `shared`. Every client knows
    /// its own server as `server`, every server its client as `client`; where ways lead through the
    /// same links, every client reaches every server, too.
    pub(super) fn for_programs(compiled: &Compiled, shared: bool) -> Result<Self, Error> {
        let mut layout = Self::build(compiled, |a, b| shared && same_way(a, b))?;
        let pairs = layout.config.hosts.len() / 2;
        for pair in 0..pairs {
            let (client, server) = (2 * pair, 2 * pair + 1);
            if pairs > 1 {
                layout.config.hosts[client].aliases.push(("server".to_owned(), server));
                layout.config.hosts[server].aliases.push(("client".to_owned(), client));
            }
            for other in (0..pairs).filter(|other| *other != pair) {
                layout.cross(pair, other);
            }
        }
        Ok(layout)
    }

    /// Routes between the client of a pair and the server of another, if their ways lead through
    /// the same links: with the client's delays before the links and on the way back, and the
    /// server's behind them.
    fn cross(&mut self, pair: usize, other: usize) {
        let own = |link: &&LinkId| !self.links[**link].starts_with(ACCESS);
        let [there, back, there_of_other, back_of_other] =
            [2 * pair, 2 * pair + 1, 2 * other, 2 * other + 1].map(|route| &self.config.routes[route]);
        let shared = there.links.iter().filter(own).eq(there_of_other.links.iter().filter(own));
        if shared && back.links == back_of_other.links {
            let (client, server) = (there.from, there_of_other.to);
            let routes = [
                RouteConfig { to: server, after: there_of_other.after, ..there.clone() },
                RouteConfig { from: server, to: client, ..back.clone() },
            ];
            self.config.routes.extend(routes);
        }
    }

    fn build(compiled: &Compiled, same: impl Fn(&FlowConfig, &FlowConfig) -> bool) -> Result<Self, Error> {
        let simulation = &compiled.simulation;
        let mut layout = Self {
            config: WorldConfig {
                hosts: Vec::new(),
                links: simulation.links.clone(),
                ways: simulation.ways.clone(),
                routes: Vec::new(),
                seed: simulation.seed,
                run: simulation.run,
                mtu: MTU,
                timing: Timing::default(),
                lead: Span::ZERO,
            },
            links: compiled.links.clone(),
            ways: Vec::new(),
        };
        let mut pairs: Vec<&FlowConfig> = Vec::new();
        for flow in flows(simulation) {
            let alone = !flow.access.rate.is_unlimited();
            let known = pairs.iter().position(|other| !alone && same(other, flow));
            let pair = known.unwrap_or_else(|| {
                pairs.push(flow);
                pairs.len() - 1
            });
            layout.ways.push((2 * pair, 2 * pair + 1));
        }
        if pairs.len() > MOST_PAIRS as usize {
            return Err(Error::TooManyPairs(pairs.len()));
        }
        let several = pairs.len() > 1;
        for (number, flow) in pairs.iter().enumerate() {
            let name = |who: &str| if several { format!("{who}{}", number + 1) } else { who.to_owned() };
            layout
                .config
                .hosts
                .push(HostConfig { initial_window: initial_window(&flow.traffic), ..HostConfig::new(name("client")) });
            layout.config.hosts.push(HostConfig::new(name("server")));
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
            self.links.push(format!("{ACCESS}{}", pair + 1));
            forward.insert(0, self.config.links.len() - 1);
            before = Span::ZERO;
        }
        // All connections of a host take the way that the flow's first is told.
        let way = flow.place.ways.first().copied();
        let routes = [
            RouteConfig { from: client, to: server, before, links: forward, after: flow.tail_delay, way },
            RouteConfig {
                from: server,
                to: client,
                before: Span::ZERO,
                links: flow.reverse.clone(),
                after: flow.return_delay,
                way,
            },
        ];
        self.config.routes.extend(routes);
    }
}

/// Everything that sends: flows, then those of arrival processes, then those of sessions.
pub(super) fn flows(simulation: &SimulationConfig) -> impl Iterator<Item = &FlowConfig> {
    let arrivals = simulation.arrivals.iter().map(|arrivals| &arrivals.flow);
    simulation.flows.iter().chain(arrivals).chain(simulation.sessions.iter().map(|session| &session.flow))
}

/// Whether a flow wants marks instead of drops.
pub(super) fn wants_ecn(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::Tcp(tcp) if tcp.sender.ecn != EcnMode::Off)
}

/// The initial window in packets, if it is another than the kernel's.
fn initial_window(traffic: &Traffic) -> Option<u32> {
    match traffic {
        Traffic::Tcp(tcp) => Some(tcp.controller.initial_window).filter(|packets| *packets != KERNELS_WINDOW),
        Traffic::Udp(_) => None,
    }
}

fn same_way(a: &FlowConfig, b: &FlowConfig) -> bool {
    (&a.forward, &a.reverse, a.access, a.tail_delay, a.return_delay, &a.place)
        == (&b.forward, &b.reverse, b.access, b.tail_delay, b.return_delay, &b.place)
}

#[cfg(test)]
mod tests {
    use flowstart_scenario::Scenario;

    use super::*;

    fn layout(text: &str, shared: bool) -> Layout {
        let compiled = Scenario::parse("test", text).unwrap().simulation(0).unwrap();
        let layout = Layout::for_programs(&compiled, shared).unwrap_or_else(|_| panic!("no layout"));
        layout.config.validate().unwrap();
        layout
    }

    const PATH: &str = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"40 ms\"\ndelay = \"5 ms\"\n";

    #[test]
    fn programs_find_a_pair_of_hosts_for_every_way_and_their_partner_by_one_name() {
        let one = layout(&format!("{PATH}[[flow]]\n[[flow]]\n"), true).config;
        assert_eq!(one.hosts, ["client", "server"].map(HostConfig::new));
        let two = layout(&format!("{PATH}[[flow]]\n[[flow]]\n"), false).config;
        let names: Vec<&str> = two.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["client1", "server1", "client2", "server2"]);
        assert_eq!(two.hosts[2].aliases, [("server".to_owned(), 3)]);
        assert_eq!(two.hosts[3].aliases, [("client".to_owned(), 2)]);
    }

    #[test]
    fn every_client_reaches_every_server_with_its_own_delays() {
        let config =
            layout(&format!("{PATH}access = \"1 Gbit/s\"\n[[flow]]\n[[flow]]\nrtt = \"100 ms\"\n"), true).config;
        let round_trip = |client: HostId, server: HostId| -> Span {
            let ways = config.routes.iter().filter(|route| {
                (route.from, route.to) == (client, server) || (route.from, route.to) == (server, client)
            });
            let delays = ways.map(|way| {
                let links: Span = way.links.iter().map(|link| config.links[*link].delay).sum();
                way.before + links + way.after
            });
            delays.sum()
        };
        assert_eq!(config.routes.len(), 8);
        assert_eq!([round_trip(0, 1), round_trip(0, 3)], [Span::from_millis(40); 2]);
        assert_eq!([round_trip(2, 3), round_trip(2, 1)], [Span::from_millis(100); 2]);
    }

    #[test]
    fn pairs_whose_ways_lead_through_different_links_do_not_reach_each_other() {
        let links = "[[link]]\nname = \"a\"\ncapacity = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                     [[link]]\nname = \"b\"\ncapacity = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
        let flows = "[[flow]]\nforward = [\"a\", \"b\"]\n[[flow]]\nforward = [\"b\"]\n[[flow]]\nforward = [\"b\"]\nrtt = \"9 ms\"\n";
        let config = layout(&format!("{links}{flows}"), true).config;
        let pairs: Vec<(HostId, HostId)> = config.routes.iter().skip(6).map(|route| (route.from, route.to)).collect();
        assert_eq!(pairs, [(2, 5), (5, 2), (4, 3), (3, 4)], "only the second and the third share their links");
    }
}
