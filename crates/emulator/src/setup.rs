//! Makes hosts and says what their engines need.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::config::{HostId, LinkId, WorldConfig};
use crate::engine::{Choice, Delivery, Entrance, Plan, Route};
use crate::host::{HOST_INTERFACE, Host, hosts_file};
use crate::names::{Name, WorldName};
use crate::namespace::NetNs;
use crate::netlink::{Mac, Netlink, index_of};
use crate::ring::{Exit, FEWER_FRAMES, FRAMES, Ring};
use crate::wire::ETHERNET;
use crate::{Error, ethtool};

/// Addresses are 10.77.x.y and fd77::x:y.
const NETWORK: [u8; 2] = [10, 77];

/// Locally administered addresses: number `n` of the router's (even) and hosts' (odd) interfaces.
fn mac(n: usize) -> Mac {
    let [.., a, b, c] = (n as u32).to_be_bytes();
    [0x02, 0xf5, 0x00, a, b, c]
}

/// Makes the hosts, each with an interface to the router; `made` hears of every namespace before
/// anything is in it.
pub(crate) fn make_hosts(
    config: &WorldConfig,
    router: &NetNs,
    name: &WorldName,
    mut made: impl FnMut(&NetNs),
) -> Result<Vec<Host>, Error> {
    let addresses: Vec<(Ipv4Addr, Ipv6Addr)> = (1..=config.hosts.len() as u16)
        .map(|n| {
            let [high, low] = n.to_be_bytes();
            let v4 = Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low);
            (v4, Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n))
        })
        .collect();
    let known = config.hosts.iter().map(|host| host.name.as_str()).zip(addresses.iter().copied());
    let file = Arc::new(hosts_file(name, known.clone())?);
    let mut hosts = Vec::new();
    for (number, (host, (v4, v6))) in config.hosts.iter().zip(&addresses).enumerate() {
        let namespace = NetNs::create()?;
        made(&namespace);
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
        let hosts_file = if host.aliases.is_empty() {
            file.clone()
        } else {
            let own = host.aliases.iter().map(|(name, other)| (name.as_str(), addresses[*other]));
            Arc::new(hosts_file(name, known.clone().chain(own))?)
        };
        let has_v6 = namespace.run(|| set_up_host(*v4, *v6, host.initial_window))??;
        hosts.push(Host {
            name: host.name.clone(),
            label: Name::give(name, &host.name, &namespace),
            namespace: Arc::new(namespace),
            v4: *v4,
            v6: has_v6.then_some(*v6),
            mac,
            router_mac,
            router_index,
            hosts_file,
        });
    }
    Ok(hosts)
}

/// Settings of a host: no memory of earlier connections, and windows for any path (the kernel tunes
/// itself below these; 6 MB is its default).
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_rmem", "4096 131072 67108864"),
    ("ipv4/tcp_wmem", "4096 16384 67108864"),
    ("ipv6/conf/all/accept_ra", "0"),
];

/// Configures the host whose namespace the calling thread is in. Returns whether it has IPv6.
fn set_up_host(v4: Ipv4Addr, v6: Ipv6Addr, initial_window: Option<u32>) -> Result<bool, Error> {
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
    netlink.add_default_route(index, v4.into(), initial_window)?;
    let v6 = netlink
        .add_address(index, v6.into())
        .and_then(|()| netlink.add_default_route(index, v6.into(), initial_window));
    Ok(v6.is_ok())
}

/// From this number of hosts on rings are smaller, for the memory they take together.
const MANY_HOSTS: usize = 16;

/// What the engine of these hosts needs; in the router's namespace.
pub(crate) fn plan(config: &WorldConfig, hosts: &[Host], group: &[HostId]) -> Result<Plan, Error> {
    let longest = config.mtu as usize + ETHERNET;
    let frames = if hosts.len() > MANY_HOSTS { FEWER_FRAMES } else { FRAMES };
    let mut plan = Plan {
        entrances: Vec::new(),
        exits: Vec::new(),
        routes: Vec::new(),
        links: Vec::new(),
        seed: config.seed,
        run: config.run,
        mtu: config.mtu,
        timing: config.timing,
        engines: 1,
        recorder: None,
        end: Arc::default(),
        #[cfg(test)]
        fault: None,
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
                    plan.exits.push(Delivery { host: route.to, exit, from: to.router_mac, to: to.mac });
                    exits.insert(route.to, plan.exits.len() as u16 - 1);
                    plan.exits.len() as u16 - 1
                }
            };
            let first = plan.routes.len() as u16;
            let variants = config.variants(route);
            for way in &variants {
                let mut numbers = Vec::new();
                for link in way {
                    let next = links.len() as u16;
                    let number = *links.entry(*link).or_insert(next);
                    if number == next {
                        plan.links.push((*link, config.links[*link].clone()));
                    }
                    numbers.push(number);
                }
                plan.routes.push(Route { before: route.before, links: numbers, after: route.after, exit });
            }
            let choice = Choice { first, count: variants.len() as u16 };
            routes.insert(hosts[route.to].v4.into(), choice);
            if let Some(v6) = hosts[route.to].v6 {
                routes.insert(v6.into(), choice);
            }
        }
        plan.entrances.push(Entrance { ring: Ring::open(hosts[*from].router_index, longest, frames)?, routes });
    }
    Ok(plan)
}
