//! What an engine is made of, and what it says at the end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use flowstart_network::LinkConfig;
use flowstart_units::Span;

use super::LinkOutcome;
use crate::clock::Priority;
use crate::config::{HostId, Timing};
use crate::fidelity::Lateness;
use crate::netlink::Mac;
use crate::record::{Given, Recorder};
use crate::ring::{Exit, Ring};
use crate::wire::FlowKey;

/// Where packets of a host go.
#[derive(Debug)]
pub(crate) struct Entrance {
    /// Its interface.
    pub(crate) ring: Ring,
    /// By destination, the routes in this engine.
    pub(crate) routes: HashMap<IpAddr, Choice>,
}

/// Routes that connections are spread over: numbers that follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) first: u16,
    /// At least 1.
    pub(crate) count: u16,
}

impl Choice {
    /// That of a connection.
    pub(crate) fn of(self, key: &FlowKey, seed: u64) -> u16 {
        self.first + (key.hash(seed) % u64::from(self.count.max(1))) as u16
    }
}

/// A way through this engine.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Delay before the first link.
    pub(crate) before: Span,
    /// Numbers of the links in this engine.
    pub(crate) links: Vec<u16>,
    /// Delay after the last link.
    pub(crate) after: Span,
    /// Number of the exit in this engine.
    pub(crate) exit: u16,
}

/// A host that packets are given to.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) host: HostId,
    /// The router's interface towards it.
    pub(crate) exit: Exit,
    /// The address of the router's interface.
    pub(crate) from: Mac,
    /// The address of the host's.
    pub(crate) to: Mac,
}

/// Everything an engine needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) entrances: Vec<Entrance>,
    pub(crate) exits: Vec<Delivery>,
    pub(crate) routes: Vec<Route>,
    /// Number in the world and configuration of each link.
    pub(crate) links: Vec<(usize, LinkConfig)>,
    /// Seed and number of the run, which random streams come from.
    pub(crate) seed: u64,
    pub(crate) run: u64,
    pub(crate) mtu: u32,
    pub(crate) timing: Timing,
    /// Engines of the world, which share the processors.
    pub(crate) engines: usize,
    pub(crate) recorder: Option<Recorder>,
    /// When everything ends, in nanoseconds of the world's clock; it may still be told.
    pub(crate) end: Arc<AtomicU64>,
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
}

/// What a test lets an engine do once it has seen a packet.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A fault of the program.
    Panic,
    /// It never ends.
    Hang,
}

/// Whether an engine has begun never to end.
#[cfg(test)]
pub(crate) static HANGS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// What an engine did.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) links: Vec<(usize, LinkOutcome)>,
    pub(crate) lateness: Lateness,
    /// Packets that hosts were given, if that is wanted.
    pub(crate) given: Vec<Given>,
    pub(crate) counts: Counts,
    pub(crate) priority: Priority,
    /// Packets in queues and delays at the end.
    pub(crate) stored: u64,
    /// What it said if it ended by a fault of the program.
    pub(crate) fault: Option<String>,
}

/// Packets and mishaps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// IP packets for a known host.
    pub(crate) arrived: u64,
    /// Bytes of those whose way leads through no link.
    pub(crate) unlimited_bytes: u64,
    /// Packets for addresses that no host has.
    pub(crate) astray: u64,
    /// Packets given to hosts.
    pub(crate) delivered: u64,
    /// Packets that the kernel did not take.
    pub(crate) refused: u64,
    /// Packets that found no room in the engine or the ring.
    pub(crate) no_room: u64,
    pub(crate) above_mtu: u64,
    pub(crate) late_arrivals: u64,
    pub(crate) stalls: u64,
    pub(crate) longest_stall: Span,
}

/// Threads that close sockets at the same time.
const CLOSING: usize = 32;

/// Closes the sockets. The kernel waits for all processors with every ring (synchronize_net), one
/// after the other for those of one thread; several threads wait together.
pub(super) fn close(entrances: Vec<Entrance>, exits: Vec<Delivery>) {
    let mut parts: Vec<(Vec<Entrance>, Vec<Delivery>)> = (0..CLOSING).map(|_| Default::default()).collect();
    for (number, entrance) in entrances.into_iter().enumerate() {
        parts[number % CLOSING].0.push(entrance);
    }
    for (number, exit) in exits.into_iter().enumerate() {
        parts[number % CLOSING].1.push(exit);
    }
    parts.retain(|(entrances, exits)| entrances.len() + exits.len() > 0);
    std::thread::scope(|scope| {
        for part in parts {
            // Where no thread can be started the socket is closed here.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || drop(part));
        }
    });
}
