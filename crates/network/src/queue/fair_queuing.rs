//! Fair queuing as Linux `sch_fq` does it: deficit round robin over flows, new flows first (Dumazet 2013; Shreedhar and Varghese 1995).

use std::collections::{HashMap, VecDeque};

use flowstart_units::{Span, Time};

use super::{Dequeue, DropReason, QueueError};
use crate::Frame;

/// Constants of fair queuing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct FairQueuingConfig {
    /// Most packets stored in all; default 10 000 (`limit`).
    pub limit: u64,
    /// Most packets stored of one flow; default 100 (`flow_limit`).
    pub flow_limit: u64,
    /// Bytes of credit a flow gets per turn; default 3028, two Ethernet frames (`quantum`).
    pub quantum: u32,
    /// Bytes of credit a new flow begins with; default 15 140, ten Ethernet frames (`initial_quantum`).
    pub initial_quantum: u32,
    /// A flow idle for longer gets its credit filled up to one quantum; default 40 ms (`refill_delay`).
    pub refill_delay: Span,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux queues count.
    pub overhead: u32,
    /// Number of hash buckets over which flows are spread, so that two may share one; 0 (the default) for a queue per flow.
    pub buckets: u32,
}

impl Default for FairQueuingConfig {
    fn default() -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            quantum: 2 * 1514,
            initial_quantum: 10 * 1514,
            refill_delay: Span::from_millis(40),
            overhead: 14,
            buckets: 0,
        }
    }
}

impl FairQueuingConfig {
    pub(crate) fn validate(&self) -> Result<(), QueueError> {
        let fail = |message: &str| Err(QueueError(message.to_owned()));
        if self.limit == 0 || self.flow_limit == 0 {
            return fail("fair queuing needs room for at least 1 packet in all and per flow");
        }
        if self.quantum == 0 {
            return fail("a quantum of 0 bytes would never serve anybody; Linux has 3028");
        }
        Ok(())
    }
}

/// One flow's queue.
#[derive(Clone, Debug)]
struct FlowQueue<P> {
    stored: VecDeque<(P, Time)>,
    credit: i64,
    /// When it was last served empty; credit is refilled after a long rest.
    detached_at: Option<Time>,
    key: u64,
}

/// Fair queuing in operation.
#[derive(Clone, Debug)]
pub struct FairQueuing<P> {
    config: FairQueuingConfig,
    seed: u64,
    flows: Vec<FlowQueue<P>>,
    /// Flow key (or bucket) to index in `flows`.
    known: HashMap<u64, u32>,
    /// Flows with packets that have not had a full turn yet, and the others.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
}

/// Flows that rest are forgotten once there are this many times more of them than of those with packets, and more than this number.
const FORGET_ABOVE: usize = 1024;

impl<P: Frame> FairQueuing<P> {
    /// An empty queue; `seed` feeds the flow hash.
    #[must_use]
    pub fn new(config: FairQueuingConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            flows: Vec::new(),
            known: HashMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    fn key(&self, flow: u64) -> u64 {
        if self.config.buckets == 0 {
            return flow;
        }
        // The finalizer of SplitMix64 as a hash of flow and seed.
        let mut bits = flow ^ self.seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % u64::from(self.config.buckets)
    }

    fn length(&self, packet: &P) -> u32 {
        packet.bytes() + self.config.overhead
    }

    /// Stores the packet or drops it.
    pub fn enqueue(&mut self, now: Time, packet: P, dropped: &mut impl FnMut(P, DropReason)) {
        if self.packets >= self.config.limit {
            return dropped(packet, DropReason::Full);
        }
        let key = self.key(packet.flow());
        let index = match self.known.get(&key) {
            Some(index) => *index,
            None => self.add(now, key),
        };
        let flow = &mut self.flows[index as usize];
        if flow.stored.len() as u64 >= self.config.flow_limit {
            return dropped(packet, DropReason::FlowFull);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
        flow.stored.push_back((packet, now));
        if let Some(since) = flow.detached_at.take() {
            if now.since(since) > self.config.refill_delay {
                flow.credit = flow.credit.max(i64::from(self.config.quantum));
            }
            self.new.push_back(index);
        }
    }

    fn add(&mut self, now: Time, key: u64) -> u32 {
        if self.flows.len() >= FORGET_ABOVE && self.new.len() + self.old.len() < self.flows.len() / 2 {
            self.forget(now);
        }
        let index = self.flows.len() as u32;
        self.flows.push(FlowQueue {
            stored: VecDeque::new(),
            credit: i64::from(self.config.initial_quantum),
            detached_at: Some(now),
            key,
        });
        self.known.insert(key, index);
        index
    }

    /// Forgets flows that have rested for longer than the refill delay; like in Linux they begin anew if they come back.
    fn forget(&mut self, now: Time) {
        let delay = self.config.refill_delay;
        let mut moved = vec![u32::MAX; self.flows.len()];
        let mut kept = Vec::new();
        for (index, flow) in std::mem::take(&mut self.flows).into_iter().enumerate() {
            if flow.detached_at.is_some_and(|since| now.since(since) > delay) {
                self.known.remove(&flow.key);
            } else {
                moved[index] = kept.len() as u32;
                kept.push(flow);
            }
        }
        self.flows = kept;
        for index in self.known.values_mut().chain(&mut self.new).chain(&mut self.old) {
            *index = moved[*index as usize];
        }
    }

    /// The next packet in turn.
    pub fn dequeue(&mut self, now: Time) -> Dequeue<P> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&index) = list.front() else { return Dequeue::Empty };
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            match flow.stored.pop_front() {
                Some((packet, arrived)) => {
                    let length = self.length(&packet);
                    self.flows[index as usize].credit -= i64::from(length);
                    self.packets -= 1;
                    self.bytes -= u64::from(packet.bytes());
                    return Dequeue::Packet(packet, arrived);
                }
                None => {
                    list.pop_front();
                    // A new flow passes once through the old list, so that it cannot stay first by sending one packet at a time.
                    if from_new && !self.old.is_empty() {
                        self.old.push_back(index);
                    } else {
                        flow.detached_at = Some(now);
                    }
                }
            }
        }
    }

    /// Packets stored.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::Box1;

    fn drain(queue: &mut FairQueuing<Box1>) -> Vec<u64> {
        std::iter::from_fn(|| match queue.dequeue(Time::ZERO) {
            Dequeue::Packet(packet, _) => Some(packet.flow()),
            _ => None,
        })
        .collect()
    }

    /// IP packets that count as 1514 bytes.
    fn fill(queue: &mut FairQueuing<Box1>, flow: u64, count: usize) {
        for _ in 0..count {
            queue.enqueue(Time::ZERO, Box1::new(flow, 1500), &mut |_, _| panic!());
        }
    }

    #[test]
    fn twelve_packets_of_a_and_three_of_b_leave_ten_of_a_then_b_then_the_rest() {
        let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
        fill(&mut queue, 1, 12);
        fill(&mut queue, 2, 3);
        let order = drain(&mut queue);
        assert_eq!(order, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1]);
        let credit = |key| queue.flows[queue.known[&key] as usize].credit;
        assert_eq!((credit(1), credit(2)), (3028, 10_598));
    }

    #[test]
    fn backlogged_equal_flows_differ_by_less_than_a_quantum_and_a_packet() {
        let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
        let mut sent = [0_i64; 3];
        for flow in 0..3 {
            fill(&mut queue, flow, 100);
        }
        for _ in 0..240 {
            let Dequeue::Packet(packet, _) = queue.dequeue(Time::ZERO) else { panic!() };
            sent[packet.flow() as usize] += 1514;
        }
        let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
        assert!(spread < 3028 + 1514, "{sent:?}");
    }

    #[test]
    fn the_first_ten_packets_of_a_new_flow_pass_ahead_of_old_ones() {
        let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
        fill(&mut queue, 1, 90);
        for _ in 0..20 {
            queue.dequeue(Time::ZERO);
        }
        fill(&mut queue, 2, 15);
        let order = drain(&mut queue);
        assert_eq!(order[..10], [2; 10]);
        assert!(order[10..14].contains(&1));
    }

    #[test]
    fn a_flow_holds_at_most_its_limit_and_others_still_get_in() {
        let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
        fill(&mut queue, 1, 100);
        let mut reasons = Vec::new();
        queue.enqueue(Time::ZERO, Box1::new(1, 1500), &mut |_, reason| reasons.push(reason));
        queue.enqueue(Time::ZERO, Box1::new(2, 1500), &mut |_, reason| reasons.push(reason));
        assert_eq!(reasons, [DropReason::FlowFull]);
    }

    #[test]
    fn resting_flows_are_forgotten_and_memory_stays_bounded() {
        let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
        for flow in 0..100_000 {
            let now = Time::ZERO + Span::from_millis(flow);
            queue.enqueue(now, Box1::new(flow, 1500), &mut |_, _| panic!());
            assert!(matches!(queue.dequeue(now), Dequeue::Packet(..)));
            assert_eq!(queue.dequeue(now), Dequeue::Empty);
        }
        assert!(queue.flows.len() <= 2 * FORGET_ABOVE);
    }

    #[test]
    fn flows_share_a_queue_when_their_hashes_collide() {
        let mut queue = FairQueuing::new(FairQueuingConfig { buckets: 1, ..FairQueuingConfig::default() }, 0);
        fill(&mut queue, 1, 12);
        fill(&mut queue, 2, 3);
        assert_eq!(drain(&mut queue), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
    }
}
