//! A world: hosts, links, routes, and the engines that run them.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use flowstart_network::LinkConfig;
use flowstart_units::{Span, Time};

use crate::clock::{Clock, Priority};
use crate::engine::{Delivery, Engine, Entrance, LinkOutcome, Plan, Report, Route};
use crate::fidelity::{Fidelity, Lateness};
use crate::host::{Host, hosts_file};
use crate::names::{Name, WorldName, end_processes_in};
use crate::namespace::NetNs;
use crate::netlink::{Mac, Netlink, index_of};
use crate::record::{self, PacketRecord, Reader};
use crate::ring::{Exit, FEWER_FRAMES, FRAMES, Ring};
use crate::wire::ETHERNET;
use crate::{Error, ethtool};

/// Index of a host in [`WorldConfig::hosts`].
pub type HostId = usize;
/// Index of a link in [`WorldConfig::links`].
pub type LinkId = usize;

/// A host to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its name: letters, digits and hyphens, at most 32.
    pub name: String,
}

/// A way from one host to another; there is one way back for packets in the other direction, a route of its own.
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
}

/// How the engines keep time. The defaults are measured (docs/emulator.md says how).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long before a departure an engine stops sleeping and watches the clock. Default 12 us: waking a real-time thread takes less.
    pub spin: Span,
    /// Longest time for which packets are not looked at while there is delay to hide it. Default 250 us.
    pub nap: Span,
    /// How long decisions of a link wait for packets that were stamped but are not visible yet, where there is delay to hide it. Default 5 us.
    pub settle: Span,
    /// An engine that was away this much longer than it asked for has stalled. Default 1 ms.
    pub stall: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            spin: Span::from_micros(12),
            nap: Span::from_micros(250),
            settle: Span::from_micros(5),
            stall: Span::from_millis(1),
        }
    }
}

/// What is to be made.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Hosts, at most 1000.
    pub hosts: Vec<HostConfig>,
    /// Links in one direction each. Quick-Start admission is not emulated.
    pub links: Vec<LinkConfig>,
    /// Routes, at most one for every ordered pair of hosts.
    pub routes: Vec<RouteConfig>,
    /// Seed of all random decisions of links.
    pub seed: u64,
    /// Largest IP packet. Default 1500 bytes, at least 1280 (what IPv6 needs), at most 9000.
    pub mtu: u32,
    /// How the engines keep time.
    pub timing: Timing,
    /// How long after the start the clock begins to run (rate schedules too), so that there is time to prepare. Default 0.
    pub lead: Span,
}

/// MTU range.
const MTUS: std::ops::RangeInclusive<u32> = 1280..=9000;
/// Most hosts: as many as a machine can bear.
const MOST_HOSTS: usize = 1000;
/// Addresses are 10.77.x.y and fd77::x:y.
const NETWORK: [u8; 2] = [10, 77];

impl WorldConfig {
    /// Two hosts, `client` and `server`: what the client sends goes through `link`, what the server sends takes `back` and nothing else.
    #[must_use]
    pub fn pair(link: LinkConfig, back: Span) -> Self {
        let host = |name: &str| HostConfig { name: name.to_owned() };
        let route = |from, to, links, after| RouteConfig { from, to, before: Span::ZERO, links, after };
        Self {
            hosts: vec![host("client"), host("server")],
            links: vec![link],
            routes: vec![route(0, 1, vec![0], Span::ZERO), route(1, 0, Vec::new(), back)],
            seed: 1,
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
        for (index, host) in self.hosts.iter().enumerate() {
            let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if host.name.is_empty() || host.name.len() > 32 || !host.name.chars().all(good) {
                return wrong(format!("\"{}\" is not a host name of letters, digits and hyphens", host.name));
            }
            if self.hosts[..index].contains(host) {
                return wrong(format!("there are two hosts \"{}\"", host.name));
            }
        }
        for link in &self.links {
            link.validate().map_err(|error| Error::Config(error.to_string()))?;
        }
        for (index, route) in self.routes.iter().enumerate() {
            let hosts = self.hosts.len();
            if route.from >= hosts || route.to >= hosts || route.from == route.to {
                return wrong(format!("route {index} does not lead from one host to another"));
            }
            if route.links.iter().any(|link| *link >= self.links.len()) {
                return wrong(format!("route {index} names a link that does not exist"));
            }
            if self.routes[..index].iter().any(|other| (other.from, other.to) == (route.from, route.to)) {
                return wrong(format!("there are two routes from host {} to host {}", route.from, route.to));
            }
        }
        Ok(())
    }

    /// Which engine each host's packets go through: hosts whose packets meet at a link share one.
    fn engines(&self) -> Vec<Vec<HostId>> {
        let mut engine_of_link: Vec<Option<usize>> = vec![None; self.links.len()];
        let mut engines: Vec<Vec<HostId>> = Vec::new();
        for host in 0..self.hosts.len() {
            let links = self.routes.iter().filter(|route| route.from == host).flat_map(|route| &route.links);
            let mut met: Vec<usize> = links.clone().filter_map(|link| engine_of_link[*link]).collect();
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
                engine_of_link[*link] = Some(into);
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

/// What happened in a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time at the end.
    pub ended: Time,
    /// What each link did.
    pub links: Vec<LinkOutcome>,
    /// How faithful it was.
    pub fidelity: Fidelity,
    /// IP packets that hosts sent to each other, as the engines saw them.
    pub arrived: u64,
    /// Packets still in queues and delays at the end.
    pub stored: u64,
    /// Packets for addresses that no host has.
    pub astray: u64,
    /// Processes that were still running in the hosts and have been ended.
    pub ended_processes: usize,
}

/// A world in operation. Dropping it ends everything in it; [`World::finish`] does the same and says what happened.
#[derive(Debug)]
pub struct World {
    hosts: Vec<Host>,
    router: NetNs,
    clock: Clock,
    stop: Arc<AtomicBool>,
    wakers: Vec<Arc<EventFd>>,
    engines: Vec<JoinHandle<Report>>,
    records: Option<JoinHandle<()>>,
    links: usize,
    over: bool,
}

/// How long an engine's records are waited for before the next engine's are looked at.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long the end of the engines is waited for.
const END_WITHIN: Duration = Duration::from_secs(5);

impl World {
    /// Makes a world and starts its engines. Nobody is told about packets.
    ///
    /// # Errors
    /// A configuration that makes no sense, or a machine that does not allow it.
    pub fn start(config: WorldConfig) -> Result<Self, Error> {
        Self::build(config, None::<fn(&PacketRecord<'_>)>)
    }

    /// Makes a world and starts its engines; `sink` is told what became of every packet at every link, on a thread of its own, soon after
    /// it happened (within about 50 ms). Records of one link come in order of [`PacketRecord::time`].
    ///
    /// # Errors
    /// A configuration that makes no sense, or a machine that does not allow it.
    pub fn start_with(
        config: WorldConfig,
        sink: impl FnMut(&PacketRecord<'_>) + Send + 'static,
    ) -> Result<Self, Error> {
        Self::build(config, Some(sink))
    }

    fn build(config: WorldConfig, sink: Option<impl FnMut(&PacketRecord<'_>) + Send + 'static>) -> Result<Self, Error> {
        config.validate()?;
        let router = NetNs::create()?;
        router.run(|| {
            // The router must not speak for itself. A kernel without IPv6 has nothing to switch off.
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        })?;
        let hosts = make_hosts(&config, &router)?;
        let engines = config.engines();
        let stop = Arc::new(AtomicBool::new(false));
        let (mut readers, mut plans, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        for group in &engines {
            let mut plan = router.run(|| plan(&config, &hosts, group))??;
            if sink.is_some() {
                let (recorder, reader) = record::way();
                plan.recorder = Some(recorder);
                readers.push(reader);
            }
            plans.push(plan);
            let waker = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
                .map_err(|error| Error::doing("make an eventfd", error))?;
            wakers.push(Arc::new(waker));
        }
        let clock = Clock::start(config.lead);
        let mut world = Self {
            hosts,
            router,
            clock,
            stop,
            wakers,
            engines: Vec::new(),
            records: None,
            links: config.links.len(),
            over: false,
        };
        for (plan, waker) in plans.into_iter().zip(world.wakers.clone()) {
            let engine = Engine::new(plan, clock);
            let stop = world.stop.clone();
            let thread = std::thread::Builder::new()
                .name("fs-engine".to_owned())
                .spawn(move || engine.run(&stop, &waker))
                .map_err(|error| Error::doing("start a thread", error))?;
            world.engines.push(thread);
        }
        if let Some(sink) = sink {
            let thread = std::thread::Builder::new()
                .name("fs-records".to_owned())
                .spawn(move || hand_on(readers, sink))
                .map_err(|error| Error::doing("start a thread", error))?;
            world.records = Some(thread);
        }
        Ok(world)
    }

    /// The hosts, in the order of the configuration.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The world's clock, for stamps to compare with records.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// True if an engine has ended by itself, which is a fault of the program; [`World::finish`] says more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        !self.over && self.engines.iter().any(JoinHandle::is_finished)
    }

    /// Ends what runs in the hosts, stops the engines, and says what happened. All records have been handed on when it returns.
    ///
    /// # Errors
    /// If an engine ended by a fault of the program.
    pub fn finish(mut self) -> Result<Outcome, Error> {
        let ended = self.clock.now();
        let lost_outside = self.lost_outside();
        let reports = self.stop();
        let ended_processes = self.end_processes();
        if let Some(records) = self.records.take()
            && let Err(panic) = records.join()
        {
            std::panic::resume_unwind(panic);
        }
        let mut links = vec![LinkOutcome::default(); self.links];
        let mut lateness = Lateness::new();
        let mut fidelity = Fidelity { unasked_drops: lost_outside, real_time: true, ..Fidelity::default() };
        let (mut arrived, mut stored, mut astray) = (0, 0, 0);
        for report in reports {
            let report = report?;
            for (number, outcome) in report.links {
                links[number] = outcome;
            }
            lateness.add(&report.lateness);
            let counts = report.counts;
            fidelity.packets += counts.delivered;
            fidelity.unasked_drops += counts.refused + counts.no_room;
            fidelity.above_mtu += counts.above_mtu;
            fidelity.late_arrivals += counts.late_arrivals;
            fidelity.stalls += counts.stalls;
            fidelity.longest_stall = fidelity.longest_stall.max(counts.longest_stall);
            fidelity.real_time &= report.priority == Priority::RealTime;
            arrived += counts.arrived;
            stored += report.stored;
            astray += counts.astray;
        }
        fidelity.median = lateness.quantile(0.5);
        fidelity.p99 = lateness.quantile(0.99);
        fidelity.worst = lateness.worst();
        Ok(Outcome { ended, links, fidelity, arrived, stored, astray, ended_processes })
    }

    /// Packets that interfaces or the kernel's backlog dropped on the way between hosts and engines.
    fn lost_outside(&self) -> u64 {
        let router = || {
            let mut netlink = Netlink::open()?;
            self.hosts
                .iter()
                .map(|host| netlink.statistics(host.router_index).map(|stats| stats.rx_dropped + stats.tx_dropped))
                .sum::<Result<u64, Error>>()
        };
        let lost = self.router.run(router).and_then(|lost| lost).unwrap_or(0);
        let at_hosts = self.hosts.iter().map(|host| {
            let count = || {
                let stats = Netlink::open()?.statistics(index_of(HOST_INTERFACE)?)?;
                // What a host receives and does not want (for a closed port, say) is no loss of ours; its counters do not hold that.
                Ok(stats.rx_missed_errors + stats.tx_dropped)
            };
            host.run(count).and_then(|lost: Result<u64, Error>| lost).unwrap_or(0)
        });
        lost + at_hosts.sum::<u64>()
    }

    fn stop(&mut self) -> Vec<Result<Report, Error>> {
        self.over = true;
        self.stop.store(true, Ordering::Relaxed);
        for waker in &self.wakers {
            // A full counter wakes too.
            let _ = waker.write(1);
        }
        let began = Instant::now();
        self.engines
            .drain(..)
            .map(|engine| {
                while !engine.is_finished() && began.elapsed() < END_WITHIN {
                    std::thread::sleep(Duration::from_micros(200));
                }
                if !engine.is_finished() {
                    return Err(Error::Failed("an engine did not end".to_owned()));
                }
                engine.join().map_err(|_| Error::Failed("an engine ended by a fault of the program".to_owned()))
            })
            .collect()
    }

    fn end_processes(&self) -> usize {
        let inodes: Vec<u64> = self
            .hosts
            .iter()
            .map(|host| host.namespace.inode())
            .chain([self.router.inode()])
            .filter(|n| *n != 0)
            .collect();
        end_processes_in(&inodes)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.over {
            self.stop();
            self.end_processes();
        }
        if let Some(records) = self.records.take() {
            // A panic of the sink has been reported by the thread itself.
            let _ = records.join();
        }
    }
}

/// Hands records of all engines on until all have ended.
fn hand_on(mut readers: Vec<Reader>, mut sink: impl FnMut(&PacketRecord<'_>)) {
    while !readers.is_empty() {
        readers.retain_mut(|reader| reader.read(PATIENCE, &mut sink));
    }
}

/// The one interface of a host.
const HOST_INTERFACE: &str = "fs-0";

/// Locally administered addresses: number `n` of the router's (even) and hosts' (odd) interfaces.
fn mac(n: usize) -> Mac {
    let [.., a, b, c] = (n as u32).to_be_bytes();
    [0x02, 0xf5, 0x00, a, b, c]
}

fn make_hosts(config: &WorldConfig, router: &NetNs) -> Result<Vec<Host>, Error> {
    let name = WorldName::next();
    let addresses: Vec<(Ipv4Addr, Ipv6Addr)> = (1..=config.hosts.len() as u16)
        .map(|n| {
            let [high, low] = n.to_be_bytes();
            let v4 = Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low);
            (v4, Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n))
        })
        .collect();
    let names = config.hosts.iter().map(|host| host.name.as_str());
    let file = Arc::new(hosts_file(names.zip(&addresses).map(|(name, (v4, v6))| (name, *v4, Some(*v6))))?);
    let mut hosts = Vec::new();
    for (number, (host, (v4, v6))) in config.hosts.iter().zip(&addresses).enumerate() {
        let namespace = NetNs::create()?;
        let (router_mac, mac) = (mac(2 * number), mac(2 * number + 1));
        let router_interface = format!("fs-{number}");
        let router_index = router.run(|| {
            let mut netlink = Netlink::open()?;
            let there = (HOST_INTERFACE, mac);
            netlink.add_veth((&router_interface, router_mac), there, namespace.fd(), config.mtu)?;
            ethtool::no_offloads(&router_interface)?;
            let index = index_of(&router_interface)?;
            netlink.up(index, true)?;
            Ok(index)
        })??;
        let has_v6 = namespace.run(|| set_up_host(*v4, *v6))??;
        hosts.push(Host {
            name: host.name.clone(),
            label: Name::give(&name, &host.name, &namespace),
            namespace: Arc::new(namespace),
            v4: *v4,
            v6: has_v6.then_some(*v6),
            mac,
            router_mac,
            router_index,
            hosts_file: file.clone(),
        });
    }
    Ok(hosts)
}

/// Settings of a host: no memory of earlier connections, and windows for any path (the kernel tunes itself below these; 6 MB is its default).
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_rmem", "4096 131072 67108864"),
    ("ipv4/tcp_wmem", "4096 16384 67108864"),
    ("ipv6/conf/all/accept_ra", "0"),
];

/// Configures the host whose namespace the calling thread is in. Returns whether it has IPv6.
fn set_up_host(v4: Ipv4Addr, v6: Ipv6Addr) -> Result<bool, Error> {
    for (setting, value) in SETTINGS {
        // A kernel without one of them goes without.
        let _ = std::fs::write(format!("/proc/sys/net/{setting}"), value);
    }
    let mut netlink = Netlink::open()?;
    netlink.up(index_of("lo")?, false)?;
    let index = index_of(HOST_INTERFACE)?;
    ethtool::no_offloads(HOST_INTERFACE)?;
    netlink.up(index, true)?;
    netlink.add_address(index, v4.into())?;
    netlink.add_default_route(index, v4.into())?;
    let v6 = netlink.add_address(index, v6.into()).and_then(|()| netlink.add_default_route(index, v6.into()));
    Ok(v6.is_ok())
}

/// From this number of hosts on rings are smaller, for the memory they take together.
const MANY_HOSTS: usize = 16;

/// What the engine of these hosts needs; in the router's namespace.
fn plan(config: &WorldConfig, hosts: &[Host], group: &[HostId]) -> Result<Plan, Error> {
    let longest = config.mtu as usize + ETHERNET;
    let frames = if hosts.len() > MANY_HOSTS { FEWER_FRAMES } else { FRAMES };
    let mut plan = Plan {
        entrances: Vec::new(),
        exits: Vec::new(),
        routes: Vec::new(),
        links: Vec::new(),
        mtu: config.mtu,
        timing: config.timing,
        recorder: None,
    };
    let mut exits: HashMap<HostId, u16> = HashMap::new();
    let mut links: HashMap<LinkId, u16> = HashMap::new();
    for from in group {
        let mut routes = HashMap::new();
        for route in config.routes.iter().filter(|route| route.from == *from) {
            let exit = match exits.get(&route.to) {
                Some(exit) => *exit,
                None => {
                    let to = &hosts[route.to];
                    let exit = Exit::open(to.router_index)?;
                    plan.exits.push(Delivery { exit, from: to.router_mac, to: to.mac });
                    exits.insert(route.to, plan.exits.len() as u16 - 1);
                    plan.exits.len() as u16 - 1
                }
            };
            let mut numbers = Vec::new();
            for link in &route.links {
                let next = links.len() as u16;
                let number = *links.entry(*link).or_insert(next);
                if number == next {
                    let seed = config.seed.wrapping_mul(0x0001_0001).wrapping_add(*link as u64);
                    plan.links.push((*link, config.links[*link].clone(), seed));
                }
                numbers.push(number);
            }
            let number = plan.routes.len() as u16;
            plan.routes.push(Route { before: route.before, links: numbers, after: route.after, exit });
            routes.insert(hosts[route.to].v4.into(), number);
            if let Some(v6) = hosts[route.to].v6 {
                routes.insert(v6.into(), number);
            }
        }
        plan.entrances.push(Entrance { ring: Ring::open(hosts[*from].router_index, longest, frames)?, routes });
    }
    Ok(plan)
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
            hosts: (0..hosts).map(|n| HostConfig { name: format!("h{n}") }).collect(),
            links: vec![link(); links],
            routes: routes
                .iter()
                .map(|(from, to, links)| RouteConfig {
                    from: *from,
                    to: *to,
                    before: Span::ZERO,
                    links: links.to_vec(),
                    after: Span::ZERO,
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
        // 0 and 1 meet at link 0; 2 uses link 1; 3 uses both and joins them; 4 and 5 have ways without links.
        let routes: [(HostId, HostId, &[LinkId]); 6] =
            [(0, 4, &[0]), (1, 4, &[0]), (2, 4, &[1]), (3, 4, &[1, 0]), (4, 0, &[]), (5, 0, &[])];
        assert_eq!(world(6, 2, &routes).engines(), [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(world(6, 2, &routes[..3]).engines(), [vec![0, 1], vec![2], vec![3, 4, 5]]);
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
        assert!(refused(|c| c.routes[0].to = 0).contains("route 0"));
        assert!(refused(|c| c.routes[0].links = vec![7]).contains("does not exist"));
        assert!(refused(|c| c.routes.push(c.routes[0].clone())).contains("two routes"));
    }
}
