//! Fair queuing with CoDel in every queue (RFC 8290; Linux `sch_fq_codel`).

use std::collections::VecDeque;

use flowstart_units::{Span, Time};

use super::codel_law::{CodelArithmetic, Control, Law};
use super::fifo::{Fifo, counted};
use super::flow_table::key;
use super::many::{OneOfMany, Total};
use super::{Constants, Dequeue, Discipline, DropReason, Limit, Order, QueueError, Tally};
use crate::Frame;

/// Constants of fq_codel; names in parentheses are those of tc-fq_codel(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct FqCodelConfig {
    /// Most packets stored in all; default 10 240 (`limit`).
    pub limit: u64,
    /// Number of queues over which flows are spread by a hash; default 1024 (`flows`).
    pub queues: u32,
    /// Bytes of credit a queue gets per turn; default 1514, an Ethernet frame (`quantum`).
    pub quantum: u32,
    /// Sojourn time that is acceptable for ever; default 5 ms (`target`).
    pub target: Span,
    /// How long packets may wait longer than the target before the first is dropped; default 100 ms
    /// (`interval`).
    pub interval: Span,
    /// Most bytes stored; default 32 MiB (`memory_limit`). Linux counts whole buffers here, about
    /// 2300 bytes for a packet of 1500.
    pub memory: u64,
    /// Most packets dropped at once from the longest queue when there is no room; default 64
    /// (`drop_batch`).
    pub drop_batch: u32,
    /// Mark ECN-capable packets instead of dropping them; default true (`ecn`).
    pub ecn: bool,
    /// Packets that waited longer are marked whatever the law says; none by default
    /// (`ce_threshold`).
    pub mark_threshold: Option<Span>,
    /// No drops while the backlog of all queues together is at most this many bytes; default 1514,
    /// an Ethernet frame.
    pub floor: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
    /// Whose arithmetic; default Linux's.
    pub arithmetic: CodelArithmetic,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self {
            limit: 10_240,
            queues: 1024,
            quantum: 1514,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            memory: 32 << 20,
            drop_batch: 64,
            ecn: true,
            mark_threshold: None,
            floor: 1514,
            overhead: 14,
            arithmetic: CodelArithmetic::default(),
        }
    }
}

/// Most queues that can be had (`fq_codel_init`).
const MOST_QUEUES: u32 = 65_536;

#[derive(Clone, Debug)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    control: Control,
    deficit: i64,
    listed: bool,
}

impl Constants for FqCodelConfig {
    type Queue<P: Frame> = FqCodel<P>;

    fn build<P: Frame>(self, seed: u64) -> FqCodel<P> {
        FqCodel::new(self, seed)
    }

    fn validate(&self) -> Result<(), QueueError> {
        let room = self.limit > 0 && self.memory > 0 && self.drop_batch > 0;
        QueueError::unless(room, "fq_codel needs room for at least 1 packet and a drop batch of at least 1")?;
        QueueError::unless((1..=MOST_QUEUES).contains(&self.queues), "fq_codel has 1 to 65536 queues")?;
        QueueError::unless(self.quantum > 0, "a quantum of 0 bytes would never serve anybody; Linux has 1514")?;
        QueueError::unless(self.interval >= Span::from_micros(2), "CoDel needs an interval, such as \"100 ms\"")
    }

    fn order(&self) -> Order {
        Order::PerFlow
    }

    fn is_random(&self) -> bool {
        true
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Packets(&mut self.limit)
    }

    fn largest_packet(&self) -> u64 {
        self.memory.saturating_sub(self.overhead.into())
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// fq_codel in operation.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    config: FqCodelConfig,
    law: Law,
    seed: u64,
    queues: Vec<FlowQueue<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    total: Total,
    marked: u64,
}

impl<P: Frame> FqCodel<P> {
    /// An empty queue; `seed` feeds the flow hash.
    #[must_use]
    pub fn new(config: FqCodelConfig, seed: u64) -> Self {
        let FqCodelConfig { target, interval, ecn, mark_threshold, floor, arithmetic, .. } = config;
        let law = Law::new(arithmetic, target, interval, floor, ecn, mark_threshold);
        let queue = || FlowQueue { fifo: Fifo::new(), control: Control::default(), deficit: 0, listed: false };
        let queues = (0..config.queues.clamp(1, MOST_QUEUES)).map(|_| queue()).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Self { config, law, seed, queues, new, old, total: Total::default(), marked: 0 }
    }

    /// Drops from the head of the queue with most bytes until half of them or a batch is gone.
    fn drop_from_longest(&mut self, dropped: &mut dyn FnMut(P, DropReason)) {
        let overhead = self.config.overhead;
        // The first of equals, as a scan in order finds it.
        let longest = self.queues.iter_mut().rev().max_by_key(|queue| queue.fifo.counted(overhead));
        let Some(queue) = longest else { return };
        let enough = queue.fifo.counted(overhead) / 2;
        let (mut gone, mut count) = (0, 0);
        while count < self.config.drop_batch && (count == 0 || gone < enough) {
            let Some((packet, _)) = queue.fifo.pop() else { break };
            self.total.take(&packet);
            gone += counted(&packet, overhead);
            count += 1;
            dropped(packet, DropReason::Full);
        }
        queue.control.count = queue.control.count.saturating_add(u64::from(count));
    }
}

impl<P: Frame> Discipline<P> for FqCodel<P> {
    // Stores the packet; without room the longest queue loses packets from its head, which may or
    // may not be this one.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        let index = key(packet.flow(), self.seed, self.queues.len() as u32) as u32;
        self.total.add(&packet);
        let queue = &mut self.queues[index as usize];
        queue.fifo.push(packet, now);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.config.quantum);
            self.new.push_back(index);
        }
        if self.total.packets > self.config.limit || self.total.counted(self.config.overhead) > self.config.memory {
            self.drop_from_longest(dropped);
        }
    }

    // The next packet in turn that CoDel spares.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&index) = list.front() else { return Dequeue::Empty };
            let queue = &mut self.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let overhead = self.config.overhead;
            let mut source = OneOfMany { fifo: &mut queue.fifo, total: &mut self.total, overhead };
            match queue.control.dequeue(&self.law, now, &mut source, &mut self.marked, dropped) {
                Some((packet, arrived)) => {
                    queue.deficit -= counted(&packet, overhead) as i64;
                    return Dequeue::Packet(packet, arrived);
                }
                None => {
                    list.pop_front();
                    // A new queue passes once through the old list, so that it cannot stay first by
                    // sending one packet at a time.
                    if from_new && !self.old.is_empty() {
                        self.old.push_back(index);
                    } else {
                        queue.listed = false;
                    }
                }
            }
        }
    }

    // An emptied flow leaves its list when it is asked and has nothing; what it sends later is new.
    fn heeds_emptiness(&self) -> bool {
        !self.new.is_empty() || !self.old.is_empty()
    }

    fn tally(&self) -> Tally {
        Tally { packets: self.total.packets, bytes: self.total.bytes, marked: self.marked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::Box1;

    /// IP packets that count as `length` bytes.
    fn fill(queue: &mut FqCodel<Box1>, flow: u64, length: u32, count: usize) {
        for _ in 0..count {
            queue.enqueue(Time::ZERO, Box1::new(flow, length - 14), &mut |_, _| panic!());
        }
    }

    fn next(queue: &mut FqCodel<Box1>, now: Time) -> Option<u64> {
        match queue.dequeue(now, &mut |_, _| panic!()) {
            Dequeue::Packet(packet, _) => Some(packet.flow()),
            _ => None,
        }
    }

    #[test]
    fn four_full_packets_and_five_small_ones_leave_in_turns() {
        let mut queue = FqCodel::new(FqCodelConfig::default(), 0);
        fill(&mut queue, 0, 1514, 4);
        fill(&mut queue, 1, 500, 5);
        let order: Vec<u64> = std::iter::from_fn(|| next(&mut queue, Time::ZERO)).collect();
        assert_eq!(order, [0, 1, 1, 1, 1, 0, 1, 0, 0]);
    }

    #[test]
    fn a_sparse_flow_waits_for_at_most_one_packet_of_a_greedy_one() {
        let mut queue = FqCodel::new(FqCodelConfig::default(), 0);
        fill(&mut queue, 0, 1514, 200);
        for round in 0..20 {
            let now = Time::from_nanos(round * 1000);
            for _ in 0..4 {
                assert_eq!(next(&mut queue, now), Some(0));
            }
            queue.enqueue(now, Box1::new(1, 100), &mut |_, _| panic!());
            assert_eq!(next(&mut queue, now), Some(1), "round {round}");
        }
    }

    #[test]
    fn without_room_the_longest_queue_loses_its_oldest_packets_and_the_newcomer_stays() {
        let mut queue = FqCodel::new(FqCodelConfig { limit: 100, drop_batch: 8, ..FqCodelConfig::default() }, 0);
        fill(&mut queue, 0, 1514, 99);
        fill(&mut queue, 1, 1514, 1);
        let mut drops = Vec::new();
        queue.enqueue(Time::ZERO, Box1::new(1, 1500), &mut |packet, reason| drops.push((packet.flow(), reason)));
        assert_eq!(drops, [(0, DropReason::Full); 8]);
        assert_eq!(queue.packets(), 93);
        let longest = queue.queues.iter().map(|queue| queue.control.count).max();
        assert_eq!(longest, Some(8), "CoDel's count rises with the drops");
    }

    #[test]
    fn a_batch_ends_when_half_of_the_bytes_are_gone() {
        let mut queue = FqCodel::new(FqCodelConfig { limit: 9, ..FqCodelConfig::default() }, 0);
        fill(&mut queue, 0, 1514, 9);
        let mut drops = 0;
        queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| drops += 1);
        assert_eq!((drops, queue.packets()), (5, 5));
    }

    #[test]
    fn the_floor_is_the_backlog_of_all_queues() {
        // A flow with one packet left behind is spared in an otherwise empty queue, and dropped if
        // another has packets.
        for (others, spared) in [(0, true), (500, false)] {
            let mut queue = FqCodel::new(FqCodelConfig::default(), 0);
            fill(&mut queue, 1, 1514, others);
            fill(&mut queue, 0, 1514, 1);
            let mut drops = 0;
            for tick in 1..10 {
                let now = Time::ZERO + Span::from_millis(200 * tick);
                queue.enqueue(now, Box1::new(0, 1500), &mut |_, _| panic!());
                let before = drops;
                loop {
                    let next = queue.dequeue(now, &mut |packet, _| drops += u64::from(packet.flow() == 0));
                    if drops > before || matches!(next, Dequeue::Packet(packet, _) if packet.flow() == 0) {
                        break;
                    }
                }
            }
            assert_eq!(drops == 0, spared, "{others}");
        }
    }

    #[test]
    fn two_flows_meet_in_one_queue_once_in_1024() {
        let collisions = (0..1_000_000).filter(|seed| key(1, *seed, 1024) == key(2, *seed, 1024)).count();
        // Expected 976.6 with a deviation of 31.2.
        assert!((976 - 4 * 31..976 + 4 * 31).contains(&collisions), "{collisions}");
    }

    /// Linux `fq_codel_dequeue`, which `__qdisc_run` calls until there is nothing.
    #[test]
    fn what_a_flow_sends_after_the_queue_was_found_empty_is_new() {
        let ms = |ms| Time::ZERO + flowstart_units::Span::from_millis(ms);
        for (asked, first) in [(true, 1), (false, 2)] {
            let mut queue = FqCodel::new(FqCodelConfig::default(), 1);
            // The quantum of flow 1 is spent.
            fill(&mut queue, 1, 1514, 2);
            assert_eq!([next(&mut queue, ms(0)), next(&mut queue, ms(1))], [Some(1), Some(1)]);
            assert!(queue.heeds_emptiness());
            if asked {
                assert_eq!(next(&mut queue, ms(2)), None);
                assert!(!queue.heeds_emptiness());
            }
            fill(&mut queue, 1, 100, 1);
            fill(&mut queue, 2, 100, 1);
            assert_eq!(next(&mut queue, ms(3)), Some(first), "asked: {asked}");
        }
    }
}
