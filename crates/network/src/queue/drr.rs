//! Deficit round robin (Shreedhar and Varghese 1995; Linux `sch_drr`), a class per flow.

use std::collections::VecDeque;

use flowstart_units::Time;

use super::fifo::{Fifo, counted};
use super::flow_table::FlowTable;
use super::{Constants, Dequeue, Discipline, DropReason, DropTailConfig, Limit, Order, QueueError, Tally};
use crate::Frame;

/// Constants of deficit round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DrrConfig {
    /// Bytes a flow may send per turn; default 1514, an Ethernet frame (Linux `drr_change_class`).
    pub quantum: u32,
    /// Most packets stored of one flow; default 1000, the transmit queue length of a Linux device
    /// (the class's pfifo).
    pub flow_limit: u64,
    /// Most stored of all flows; default none, as in Linux, where nobody gives the link a buffer
    /// (on the `[path]` of a scenario, `buffer`: 1 BDP). When it is exceeded the longest flow in
    /// bytes loses its oldest packet (as in Linux's fq_codel; the paper steals buffers from the
    /// longest, too). A packet that alone is larger is dropped on arrival.
    pub limit: DropTailConfig,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
}

impl Default for DrrConfig {
    fn default() -> Self {
        Self { quantum: 1514, flow_limit: 1000, limit: DropTailConfig { packets: None, bytes: None }, overhead: 14 }
    }
}

#[derive(Clone, Debug)]
struct Class<P> {
    fifo: Fifo<P>,
    deficit: u64,
    flow: u64,
}

impl Constants for DrrConfig {
    type Queue<P: Frame> = Drr<P>;

    fn build<P: Frame>(self, _seed: u64) -> Drr<P> {
        Drr::new(self)
    }

    fn validate(&self) -> Result<(), QueueError> {
        QueueError::unless(self.flow_limit > 0, "deficit round robin needs room for at least 1 packet per flow")?;
        self.limit.validate()?;
        QueueError::unless(self.quantum > 0, "a quantum of 0 bytes would never serve anybody; Linux has 1514")
    }

    fn order(&self) -> Order {
        Order::PerFlow
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Either(&mut self.limit)
    }

    fn largest_packet(&self) -> u64 {
        self.limit.largest_packet()
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// Deficit round robin in operation.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    config: DrrConfig,
    classes: Vec<Class<P>>,
    /// Only flows that have packets: an empty class leaves nothing behind that would have to be
    /// remembered.
    known: FlowTable,
    /// Classes without a flow.
    unused: Vec<u32>,
    active: VecDeque<u32>,
    packets: u64,
    bytes: u64,
}

impl<P: Frame> Drr<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: DrrConfig) -> Self {
        Self {
            config,
            classes: Vec::new(),
            known: FlowTable::default(),
            unused: Vec::new(),
            active: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    fn activate(&mut self, flow: u64) -> u32 {
        let deficit = u64::from(self.config.quantum);
        let index = if let Some(index) = self.unused.pop() {
            let class = &mut self.classes[index as usize];
            (class.deficit, class.flow) = (deficit, flow);
            index
        } else {
            self.classes.push(Class { fifo: Fifo::new(), deficit, flow });
            (self.classes.len() - 1) as u32
        };
        self.known.insert(flow, index);
        self.active.push_back(index);
        index
    }

    fn is_overfull(&self) -> bool {
        let DropTailConfig { packets, bytes } = self.config.limit;
        packets.is_some_and(|limit| self.packets > limit) || bytes.is_some_and(|limit| self.bytes > limit)
    }

    /// The longest flow loses its oldest packet.
    fn shorten(&mut self, dropped: &mut dyn FnMut(P, DropReason)) {
        let bytes = |index: &u32| self.classes[*index as usize].fifo.bytes();
        let longest = (0..self.active.len()).max_by_key(|place| self.active.get(*place).map(bytes));
        let Some((place, index)) = longest.and_then(|place| Some((place, *self.active.get(place)?))) else { return };
        let class = &mut self.classes[index as usize];
        let Some((packet, _)) = class.fifo.pop() else { return };
        if class.fifo.packets() == 0 {
            self.known.remove(&class.flow);
            self.unused.push(index);
            self.active.remove(place);
        }
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes());
        dropped(packet, DropReason::Full);
    }
}

impl<P: Frame> Discipline<P> for Drr<P> {
    // Stores the packet or drops it.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        if u64::from(packet.bytes()) > self.config.limit.largest_packet() {
            return dropped(packet, DropReason::Full);
        }
        let index = match self.known.get(&packet.flow()) {
            Some(index) => *index,
            None => self.activate(packet.flow()),
        };
        let class = &mut self.classes[index as usize];
        if class.fifo.packets() >= self.config.flow_limit {
            return dropped(packet, DropReason::FlowFull);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
        class.fifo.push(packet, now);
        while self.is_overfull() {
            self.shorten(dropped);
        }
    }

    // The next packet in turn.
    fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        while let Some(&index) = self.active.front() {
            let class = &mut self.classes[index as usize];
            // An active class has a packet; if it had none it would leave.
            let length = class.fifo.head().map_or(0, |(packet, _)| counted(packet, self.config.overhead));
            if length > class.deficit {
                class.deficit += u64::from(self.config.quantum);
                self.active.rotate_left(1);
                continue;
            }
            class.deficit -= length;
            let head = class.fifo.pop();
            if class.fifo.packets() == 0 {
                self.known.remove(&class.flow);
                self.unused.push(index);
                self.active.pop_front();
            }
            if let Some((packet, arrived)) = head {
                self.packets -= 1;
                self.bytes -= u64::from(packet.bytes());
                return Dequeue::Packet(packet, arrived);
            }
        }
        Dequeue::Empty
    }

    fn tally(&self) -> Tally {
        Tally { packets: self.packets, bytes: self.bytes, marked: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::Box1;

    const NONE: DropTailConfig = DropTailConfig { packets: None, bytes: None };
    const PLAIN: DrrConfig = DrrConfig { quantum: 1500, flow_limit: 1000, limit: NONE, overhead: 0 };

    fn fill(queue: &mut Drr<Box1>, flow: u64, bytes: u32, count: usize) {
        for _ in 0..count {
            queue.enqueue(Time::ZERO, Box1::new(flow, bytes), &mut |_, _| panic!());
        }
    }

    #[test]
    fn four_packets_of_1000_and_five_of_600_leave_in_deficit_order() {
        let mut queue = Drr::new(PLAIN);
        fill(&mut queue, 0, 1000, 4);
        fill(&mut queue, 1, 600, 5);
        let order: Vec<(u64, u64)> = std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => Some((packet.flow(), queue.classes[packet.flow() as usize].deficit)),
            _ => None,
        })
        .collect();
        // Each packet's flow, and what its deficit is then.
        let expected = [(0, 500), (1, 900), (1, 300), (0, 1000), (0, 0), (1, 1200), (1, 600), (1, 0), (0, 500)];
        assert_eq!(order, expected);
    }

    #[test]
    fn beyond_the_limit_the_longest_flow_loses_its_oldest_packet() {
        let mut queue = Drr::new(DrrConfig { limit: DropTailConfig { packets: Some(4), bytes: None }, ..PLAIN });
        let mut dropped = Vec::new();
        for flow in [0, 1, 1, 1, 2, 3] {
            queue.enqueue(Time::ZERO, Box1::new(flow, 1000), &mut |packet, reason| {
                assert_eq!(reason, DropReason::Full);
                dropped.push(packet.flow());
            });
        }
        assert_eq!(dropped, [1, 1]);
        let mut left: Vec<u64> = std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => Some(packet.flow()),
            _ => None,
        })
        .collect();
        left.sort_unstable();
        assert_eq!((left, queue.packets(), queue.bytes()), (vec![0, 1, 2, 3], 0, 0));
    }

    #[test]
    fn beyond_a_limit_in_bytes_as_many_leave_as_make_room() {
        let mut queue = Drr::new(DrrConfig { limit: DropTailConfig { packets: None, bytes: Some(3000) }, ..PLAIN });
        fill(&mut queue, 0, 100, 20);
        let mut dropped = Vec::new();
        let mut enqueue = |queue: &mut Drr<Box1>, flow, bytes| {
            queue.enqueue(Time::ZERO, Box1::new(flow, bytes), &mut |packet, _| {
                dropped.push((packet.flow(), packet.bytes()))
            });
        };
        enqueue(&mut queue, 1, 1500);
        // It would never fit, so nobody else need go.
        enqueue(&mut queue, 2, 3001);
        assert_eq!(dropped, [vec![(0, 100); 5], vec![(2, 3001)]].concat());
        assert_eq!((queue.packets(), queue.bytes()), (16, 3000));
    }

    #[test]
    fn a_class_that_empties_starts_again_with_one_quantum_at_the_tail() {
        let mut queue = Drr::new(PLAIN);
        fill(&mut queue, 7, 100, 1);
        fill(&mut queue, 8, 1500, 2);
        let mut next = || match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => packet.flow(),
            _ => panic!(),
        };
        assert_eq!(next(), 7);
        assert_eq!(next(), 8);
        fill(&mut queue, 7, 1500, 1);
        let class = queue.known[&7] as usize;
        assert_eq!(queue.classes[class].deficit, 1500);
        assert_eq!(queue.active.back(), queue.known.get(&7));
    }

    proptest::proptest! {
        /// Shreedhar and Varghese 1995, theorem 4: after k visits a backlogged flow has sent
        /// between kQ - (Max - 1) and kQ bytes, so that any two differ by at most Q + 2 Max at any
        /// time.
        #[test]
        fn backlogged_flows_differ_by_at_most_a_quantum_and_two_packets(
            sizes in proptest::collection::vec(40_u32..1_500, 2..5),
            quantum in 500_u32..3_000,
        ) {
            let mut queue = Drr::new(DrrConfig { quantum, ..PLAIN });
            for (flow, bytes) in (0..).zip(&sizes) {
                fill(&mut queue, flow, *bytes, 1000);
            }
            let mut sent = vec![0_u64; sizes.len()];
            for _ in 0..900 {
                let Dequeue::Packet(packet, _) = queue.dequeue(Time::ZERO, &mut |_, _| panic!()) else { panic!() };
                sent[packet.flow() as usize] += u64::from(packet.bytes());
                let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
                let bound = quantum + 2 * sizes.iter().max().unwrap();
                proptest::prop_assert!(spread <= u64::from(bound), "{:?}", sent);
            }
        }
    }
}
