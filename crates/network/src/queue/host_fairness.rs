//! Fairness per host and per flow within it, as CAKE has it (Høiland-Jørgensen, Täht and Morton
//! 2018, "Piece of CAKE", section III.C): deficit round robin over flows, in which a flow's quantum
//! is divided by how many flows keep its busier host's queue filled.
//!
//! What is not CAKE's: its shaper, its tins, and the hash; every flow has a queue of its own. Where
//! CAKE has COBALT there is CoDel (RFC 8289): no BLUE beside it, and packets may be dropped from
//! the target on, where CAKE lets them wait for four packet times, and for two per flow that keeps
//! a queue (`cobalt_should_drop`). With 20 such flows at 10 Mbit/s that is 48 ms in CAKE and 5 ms
//! here.

use std::collections::VecDeque;

use flowstart_units::{Span, Time};

use super::codel_law::{CodelArithmetic, Control, Law};
use super::fifo::{Fifo, counted};
use super::flow_table::FlowTable;
use super::many::{OneOfMany, Total};
use super::{Constants, Dequeue, Discipline, DropReason, Hosts, Limit, Order, QueueError, Tally};
use crate::Frame;

/// Between which hosts capacity is shared before it is shared between flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum HostShares {
    /// Between those who send (`dual-srchost`).
    Sources,
    /// Between those who receive (`dual-dsthost`).
    Destinations,
    /// Between both: a flow counts with the one of its hosts that has more flows
    /// (`triple-isolate`).
    #[default]
    Both,
    /// Between nobody: only flows (`flows`).
    None,
}

/// Constants of fairness per host; names in parentheses are those of tc-cake(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct HostFairnessConfig {
    /// Between which hosts capacity is shared first; default both.
    pub hosts: HostShares,
    /// Most bytes stored; default 4 MiB, the least that CAKE has by itself (`memlimit`).
    pub memory: u64,
    /// Bytes of credit that a flow gets per turn when it is the only one of its hosts; default
    /// 1514, an Ethernet frame.
    pub quantum: u32,
    /// Sojourn time that is acceptable for ever; default 5 ms.
    pub target: Span,
    /// How long packets may wait longer than the target before the first is dropped; default 100 ms
    /// (`rtt`).
    pub interval: Span,
    /// Mark ECN-capable packets instead of dropping them; default true.
    pub ecn: bool,
    /// No drops while the backlog of all queues together is at most this many bytes; default 1514,
    /// an Ethernet frame.
    pub floor: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
    /// Whose arithmetic CoDel has; default Linux's.
    pub arithmetic: CodelArithmetic,
}

impl Default for HostFairnessConfig {
    fn default() -> Self {
        Self {
            hosts: HostShares::default(),
            memory: 4 << 20,
            quantum: 1514,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            floor: 1514,
            overhead: 14,
            arithmetic: CodelArithmetic::default(),
        }
    }
}

/// Queues that are kept with what CoDel remembers of them; those that have been empty for longest
/// are given to new flows beyond this (CAKE has as many in all).
const KEPT: usize = 1024;
/// Credit is counted in parts of a byte, so that shares of a quantum are exact enough.
const PARTS: i64 = 1 << 16;

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no list: it is empty.
    Idle,
    /// It came anew and has credit.
    Sparse,
    /// It has used up its credit and is empty; it waits for its turn before it may be new again.
    Waiting,
    /// It has used up its credit and has packets: it counts with its hosts.
    Bulk,
}

#[derive(Clone, Debug)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    control: Control,
    /// In parts of a byte.
    credit: i64,
    place: Place,
    flow: u64,
    hosts: Hosts,
    /// It stands in `spare`.
    spared: bool,
}

/// How many bulk flows hosts have.
#[derive(Clone, Debug, Default)]
struct Load {
    sources: FlowTable,
    destinations: FlowTable,
}

impl Load {
    fn of(&self, shares: HostShares, hosts: Hosts) -> u32 {
        let count = |table: &FlowTable, host| table.get(&host).copied().unwrap_or(0);
        let sources = || count(&self.sources, hosts.source);
        let destinations = || count(&self.destinations, hosts.destination);
        match shares {
            HostShares::Sources => sources(),
            HostShares::Destinations => destinations(),
            HostShares::Both => sources().max(destinations()),
            HostShares::None => 1,
        }
        .max(1)
    }

    fn add(&mut self, hosts: Hosts) {
        *self.sources.entry(hosts.source).or_insert(0) += 1;
        *self.destinations.entry(hosts.destination).or_insert(0) += 1;
    }

    fn remove(&mut self, hosts: Hosts) {
        for (table, host) in [(&mut self.sources, hosts.source), (&mut self.destinations, hosts.destination)] {
            let Some(count) = table.get_mut(&host) else { continue };
            *count -= 1;
            if *count == 0 {
                table.remove(&host);
            }
        }
    }
}

impl Constants for HostFairnessConfig {
    type Queue<P: Frame> = HostFairness<P>;

    fn build<P: Frame>(self, _seed: u64) -> HostFairness<P> {
        HostFairness::new(self)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless(self.memory > 0, "fairness per host needs room for at least 1 byte")?;
        QueueError::unless(self.quantum > 0, "a quantum of 0 bytes would never serve anybody; CAKE has 1514")?;
        QueueError::unless(self.interval >= Span::from_micros(2), "CoDel needs an interval, such as \"100 ms\"")
    }

    fn order(&self) -> Order {
        Order::PerFlow
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Bytes(&mut self.memory)
    }

    fn largest_packet(&self) -> u64 {
        self.memory.saturating_sub(self.overhead.into())
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// Fairness per host in operation.
#[derive(Clone, Debug)]
pub struct HostFairness<P> {
    config: HostFairnessConfig,
    law: Law,
    queues: Vec<FlowQueue<P>>,
    /// Flow to the index of its queue.
    known: FlowTable,
    /// Hosts of the flows that were introduced.
    hosts: std::collections::HashMap<u64, Hosts>,
    /// Queues that became empty, the one that did so first at the front; some are in use again.
    spare: VecDeque<u32>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    load: Load,
    total: Total,
    marked: u64,
}

impl<P: Frame> HostFairness<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: HostFairnessConfig) -> Self {
        let HostFairnessConfig { target, interval, ecn, floor, arithmetic, .. } = config;
        Self {
            config,
            law: Law::new(arithmetic, target, interval, floor, ecn, None),
            queues: Vec::new(),
            known: FlowTable::default(),
            hosts: std::collections::HashMap::new(),
            spare: VecDeque::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            load: Load::default(),
            total: Total::default(),
            marked: 0,
        }
    }

    /// A queue for a flow that has none.
    fn open(&mut self, flow: u64) -> u32 {
        let own = Hosts { source: flow, destination: flow };
        let hosts = self.hosts.get(&flow).copied().unwrap_or(own);
        let queue = FlowQueue {
            fifo: Fifo::new(),
            control: Control::default(),
            credit: 0,
            place: Place::Idle,
            flow,
            hosts,
            spared: false,
        };
        let index = if self.queues.len() < KEPT { None } else { self.reuse() };
        let index = match index {
            Some(index) => {
                self.known.remove(&self.queues[index as usize].flow);
                self.queues[index as usize] = queue;
                index
            }
            None => {
                self.queues.push(queue);
                (self.queues.len() - 1) as u32
            }
        };
        self.known.insert(flow, index);
        index
    }

    /// The queue that has been empty for longest.
    fn reuse(&mut self) -> Option<u32> {
        while let Some(index) = self.spare.pop_front() {
            let queue = &mut self.queues[index as usize];
            queue.spared = false;
            if queue.place == Place::Idle {
                return Some(index);
            }
        }
        None
    }

    /// A flow's credit for one turn.
    fn quantum(&self, index: u32) -> i64 {
        let load = self.load.of(self.config.hosts, self.queues[index as usize].hosts);
        // At least a byte, so that turns come to an end.
        (i64::from(self.config.quantum) * PARTS / i64::from(load)).max(PARTS)
    }

    /// The flow with most bytes loses its oldest packet.
    fn shorten(&mut self, dropped: &mut dyn FnMut(P, DropReason)) {
        let overhead = self.config.overhead;
        let listed = self.new.iter().chain(&self.old).copied();
        let longest = listed.max_by_key(|index| self.queues[*index as usize].fifo.counted(overhead));
        let Some(queue) = longest.map(|index| &mut self.queues[index as usize]) else { return };
        let Some((packet, _)) = queue.fifo.pop() else { return };
        self.total.take(&packet);
        dropped(packet, DropReason::Full);
    }

    /// A flow has nothing more to send and leaves its list.
    fn rest(&mut self, index: u32) {
        let queue = &mut self.queues[index as usize];
        if queue.place == Place::Bulk {
            self.load.remove(queue.hosts);
        }
        queue.place = Place::Idle;
        if !queue.spared {
            queue.spared = true;
            self.spare.push_back(index);
        }
    }

    /// A flow counts with its hosts from now on.
    fn count(&mut self, index: u32) {
        let queue = &mut self.queues[index as usize];
        queue.place = Place::Bulk;
        self.load.add(queue.hosts);
    }
}

impl<P: Frame> Discipline<P> for HostFairness<P> {
    fn introduce(&mut self, flow: u64, hosts: Hosts) {
        self.hosts.insert(flow, hosts);
    }

    // Stores the packet; without room the longest flow loses its oldest ones.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        let flow = packet.flow();
        let index = match self.known.get(&flow) {
            Some(index) => *index,
            None => self.open(flow),
        };
        self.total.add(&packet);
        let queue = &mut self.queues[index as usize];
        queue.fifo.push(packet, now);
        match queue.place {
            Place::Idle => {
                queue.place = Place::Sparse;
                self.new.push_back(index);
                self.queues[index as usize].credit = self.quantum(index);
            }
            Place::Waiting => self.count(index),
            Place::Sparse | Place::Bulk => {}
        }
        while self.total.counted(self.config.overhead) > self.config.memory {
            self.shorten(dropped);
        }
    }

    // The next packet in turn that CoDel spares.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let Some(&index) = list.front() else { return Dequeue::Empty };
            let queue = &mut self.queues[index as usize];
            if queue.credit <= 0 {
                list.pop_front();
                self.old.push_back(index);
                if queue.place == Place::Sparse {
                    match queue.fifo.packets() {
                        0 => queue.place = Place::Waiting,
                        _ => self.count(index),
                    }
                }
                let quantum = self.quantum(index);
                self.queues[index as usize].credit += quantum;
                continue;
            }
            let overhead = self.config.overhead;
            let mut source = OneOfMany { fifo: &mut queue.fifo, total: &mut self.total, overhead };
            match queue.control.dequeue(&self.law, now, &mut source, &mut self.marked, dropped) {
                Some((packet, arrived)) => {
                    queue.credit -= counted(&packet, overhead) as i64 * PARTS;
                    return Dequeue::Packet(packet, arrived);
                }
                None => {
                    list.pop_front();
                    self.rest(index);
                }
            }
        }
    }

    fn tally(&self) -> Tally {
        Tally { packets: self.total.packets, bytes: self.total.bytes, marked: self.marked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::Box1;

    /// Packets that left, by flow, of flows between these hosts that always have packets of their
    /// own size waiting.
    fn sent(hosts: HostShares, flows: &[(u64, u64, u32)], packets: usize) -> Vec<u64> {
        let mut queue =
            HostFairness::new(HostFairnessConfig { hosts, interval: Span::from_secs(1000), ..Default::default() });
        let put = |queue: &mut HostFairness<Box1>, flow: usize| {
            queue.enqueue(Time::ZERO, Box1::new(flow as u64, flows[flow].2), &mut |_, _| panic!("there is room"));
        };
        for (flow, (source, destination, _)) in flows.iter().enumerate() {
            queue.introduce(flow as u64, Hosts { source: *source, destination: *destination });
            (0..20).for_each(|_| put(&mut queue, flow));
        }
        let mut bytes = vec![0; flows.len()];
        for _ in 0..packets {
            let Dequeue::Packet(packet, _) = queue.dequeue(Time::ZERO, &mut |_, _| panic!("nothing is dropped")) else {
                panic!("packets wait")
            };
            bytes[packet.flow() as usize] += u64::from(packet.bytes() + 14);
            put(&mut queue, packet.flow() as usize);
        }
        bytes
    }

    /// Parts of a thousand of all bytes.
    fn shares(bytes: &[u64]) -> Vec<u64> {
        let all: u64 = bytes.iter().sum();
        bytes.iter().map(|bytes| (bytes * 1000 + all / 2) / all).collect()
    }

    #[track_caller]
    fn assert_near(found: &[u64], expected: &[u64]) {
        let near = found.iter().zip(expected).all(|(found, expected)| found.abs_diff(*expected) <= 8);
        assert!(near && found.len() == expected.len(), "{found:?}, expected {expected:?}");
    }

    #[test]
    fn hosts_have_equal_shares_however_many_flows_they_have_and_flows_of_a_host_too() {
        // One flow of host 1, three of host 2, all to hosts of their own.
        let flows = [(1, 11, 1000), (2, 12, 1000), (2, 13, 1000), (2, 14, 1000)];
        assert_near(&shares(&sent(HostShares::Both, &flows, 8000)), &[500, 167, 167, 167]);
        assert_near(&shares(&sent(HostShares::Sources, &flows, 8000)), &[500, 167, 167, 167]);
        assert_near(&shares(&sent(HostShares::Destinations, &flows, 8000)), &[250, 250, 250, 250]);
        assert_near(&shares(&sent(HostShares::None, &flows, 8000)), &[250, 250, 250, 250]);
    }

    #[test]
    fn where_both_hosts_count_a_flow_counts_with_the_busier_one() {
        // Three flows to host 9 from three hosts, and one from one of them to another host.
        let flows = [(1, 9, 1000), (2, 9, 1000), (3, 9, 1000), (3, 8, 1000)];
        // Weights 1/3, 1/3, 1/3 and 1/2 (two flows of host 3).
        assert_near(&shares(&sent(HostShares::Both, &flows, 8000)), &[222, 222, 222, 333]);
        assert_near(&shares(&sent(HostShares::Sources, &flows, 8000)), &[333, 333, 167, 167]);
    }

    #[test]
    fn shares_are_of_bytes_and_not_of_packets() {
        let flows = [(1, 11, 1486), (2, 12, 286), (2, 13, 686)];
        assert_near(&shares(&sent(HostShares::Both, &flows, 20_000)), &[500, 250, 250]);
    }

    #[test]
    fn flows_that_nobody_introduced_are_hosts_of_their_own() {
        let mut queue = HostFairness::new(HostFairnessConfig::default());
        for flow in [0, 1, 2, 0, 1, 2] {
            queue.enqueue(Time::ZERO, Box1::new(flow, 1500), &mut |_, _| panic!());
        }
        let order = std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => Some(packet.flow()),
            _ => None,
        });
        assert_eq!(order.collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        assert!(queue.load.sources.is_empty() && queue.load.destinations.is_empty(), "{:?}", queue.load);
    }

    #[test]
    fn a_sparse_flow_of_a_busy_host_does_not_wait_for_the_others() {
        let mut queue = HostFairness::new(HostFairnessConfig::default());
        for flow in 0..4 {
            queue.introduce(flow, Hosts { source: 1, destination: 100 + flow });
        }
        for flow in 0..3 {
            (0..50).for_each(|_| queue.enqueue(Time::ZERO, Box1::new(flow, 1500), &mut |_, _| panic!()));
        }
        let next = |queue: &mut HostFairness<Box1>| match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => packet.flow(),
            _ => panic!(),
        };
        (0..9).for_each(|_| assert_ne!(next(&mut queue), 3));
        queue.enqueue(Time::ZERO, Box1::new(3, 100), &mut |_, _| panic!());
        assert_eq!(next(&mut queue), 3);
    }

    #[test]
    fn queues_of_flows_that_are_gone_are_used_again() {
        let mut queue = HostFairness::new(HostFairnessConfig::default());
        for flow in 0..5 * KEPT as u64 {
            queue.enqueue(Time::ZERO, Box1::new(flow, 1500), &mut |_, _| panic!());
            assert!(matches!(queue.dequeue(Time::ZERO, &mut |_, _| panic!()), Dequeue::Packet(..)));
            assert_eq!(queue.dequeue(Time::ZERO, &mut |_, _| panic!()), Dequeue::Empty);
        }
        assert_eq!((queue.queues.len(), queue.known.len()), (KEPT, KEPT));
    }
}
