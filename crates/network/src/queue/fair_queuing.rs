//! Fair queuing as Linux `sch_fq` does it: deficit round robin over flows, new flows first (Dumazet
//! 2013; Shreedhar and Varghese 1995).

use std::collections::{BTreeSet, VecDeque};

use flowstart_units::{Bytes, Rate, Span, Time};

use super::fifo::{Fifo, counted};
use super::flow_table::{FlowTable, key};
use super::{Constants, Dequeue, Discipline, DropReason, Limit, Order, QueueError, Tally};
use crate::Frame;

/// Constants of fair queuing; names in parentheses are those of tc-fq(8) and `sch_fq`.
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
    /// Bytes of credit a new flow begins with; default 15 140, ten Ethernet frames
    /// (`initial_quantum`).
    pub initial_quantum: u32,
    /// A flow idle for longer gets its credit filled up to one quantum; default 40 ms
    /// (`refill_delay`).
    pub refill_delay: Span,
    /// A flow idle for longer may be forgotten, and begins anew if it comes back; default 3 s
    /// (`FQ_GC_AGE`).
    pub forget_after: Span,
    /// Idle flows are looked for when this many flows are known and half of them are idle; default
    /// 2048, two per Linux hash tree.
    pub forget_above: u32,
    /// Bytes counted for a packet beyond its IP length; default 14, the Ethernet header that Linux
    /// queues count.
    pub overhead: u32,
    /// Number of hash buckets over which flows are spread, so that two may share one; 0 (the
    /// default) for a queue per flow.
    pub buckets: u32,
    /// Each flow is paced to this rate; none by default (`maxrate`).
    pub max_rate: Option<Rate>,
    /// Up to this pacing rate every packet waits for its own length; above it a flow waits only
    /// when its credit is used up. Default 550 kbit/s (`low_rate_threshold`).
    pub low_rate_threshold: Rate,
    /// Longest wait that pacing imposes on a flow at once; default 1 s.
    pub longest_wait: Span,
    /// Packets that leave later than they were due by more than this are marked; none by default
    /// (`ce_threshold`).
    pub mark_threshold: Option<Span>,
}

impl Default for FairQueuingConfig {
    fn default() -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            quantum: 2 * 1514,
            initial_quantum: 10 * 1514,
            refill_delay: Span::from_millis(40),
            forget_after: Span::from_secs(3),
            forget_above: 2048,
            overhead: 14,
            buckets: 0,
            max_rate: None,
            low_rate_threshold: Rate::from_bps(550_000),
            longest_wait: Span::from_secs(1),
            mark_threshold: None,
        }
    }
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no list, since this time: it has no packets.
    Idle(Time),
    /// In the new or the old list.
    Listed,
    /// Waiting for its next departure time.
    Waiting,
}

/// One flow's queue.
#[derive(Clone, Debug)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    credit: i64,
    place: Place,
    /// Pacing: the next packet leaves no earlier.
    next: Time,
    key: u64,
}

impl Constants for FairQueuingConfig {
    type Queue<P: Frame> = FairQueuing<P>;

    fn build<P: Frame>(self, seed: u64) -> FairQueuing<P> {
        FairQueuing::new(self, seed)
    }

    fn validate(&self) -> Result<(), QueueError> {
        let room = self.limit > 0 && self.flow_limit > 0;
        QueueError::unless(room, "fair queuing needs room for at least 1 packet in all and per flow")?;
        QueueError::unless(self.quantum > 0, "a quantum of 0 bytes would never serve anybody; Linux has 3028")?;
        QueueError::unless(self.max_rate != Some(Rate::ZERO), "a flow paced to a rate of 0 would never be served")
    }

    fn order(&self) -> Order {
        Order::PerFlow
    }

    // A flow that is ahead of its rate is throttled.
    fn holds_back(&self) -> bool {
        true
    }

    fn is_random(&self) -> bool {
        self.buckets > 0
    }

    fn limit(&mut self) -> Limit<'_> {
        Limit::Packets(&mut self.limit)
    }

    fn overhead(&self) -> u32 {
        self.overhead
    }
}

/// Fair queuing in operation.
#[derive(Clone, Debug)]
pub struct FairQueuing<P> {
    config: FairQueuingConfig,
    seed: u64,
    flows: Vec<FlowQueue<P>>,
    known: FlowTable,
    /// Look for idle flows when there are this many.
    forget_at: usize,
    /// Flows with packets that have not used up their first credit yet, and the others.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Paced flows by the time when they may go on.
    waiting: BTreeSet<(Time, u32)>,
    packets: u64,
    bytes: u64,
    marked: u64,
}

impl<P: Frame> FairQueuing<P> {
    /// An empty queue; `seed` feeds the flow hash.
    #[must_use]
    pub fn new(config: FairQueuingConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            flows: Vec::new(),
            known: FlowTable::default(),
            forget_at: config.forget_above as usize,
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: BTreeSet::new(),
            packets: 0,
            bytes: 0,
            marked: 0,
        }
    }

    fn add(&mut self, now: Time, key: u64) -> u32 {
        let active = self.new.len() + self.old.len() + self.waiting.len();
        if self.flows.len() >= self.forget_at && active < self.flows.len() / 2 {
            self.forget(now);
        }
        let index = self.flows.len() as u32;
        self.flows.push(FlowQueue {
            fifo: Fifo::new(),
            credit: i64::from(self.config.initial_quantum),
            place: Place::Idle(now),
            next: Time::ZERO,
            key,
        });
        self.known.insert(key, index);
        index
    }

    /// Forgets flows that have been idle for long.
    fn forget(&mut self, now: Time) {
        let after = self.config.forget_after;
        let mut moved = vec![u32::MAX; self.flows.len()];
        let mut kept = Vec::new();
        for (index, flow) in std::mem::take(&mut self.flows).into_iter().enumerate() {
            if matches!(flow.place, Place::Idle(since) if now.since(since) > after) {
                self.known.remove(&flow.key);
            } else {
                moved[index] = kept.len() as u32;
                kept.push(flow);
            }
        }
        self.flows = kept;
        // Twice as many until the next look: it costs a constant per new flow then, however few it
        // finds.
        self.forget_at = (self.config.forget_above as usize).max(2 * self.flows.len());
        for index in self.known.values_mut().chain(&mut self.new).chain(&mut self.old) {
            *index = moved[*index as usize];
        }
        self.waiting = self.waiting.iter().map(|(time, index)| (*time, moved[*index as usize])).collect();
    }
}

impl<P: Frame> Discipline<P> for FairQueuing<P> {
    // Stores the packet or drops it.
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        if self.packets >= self.config.limit {
            return dropped(packet, DropReason::Full);
        }
        let key = key(packet.flow(), self.seed, self.config.buckets);
        let index = match self.known.get(&key) {
            Some(index) => *index,
            None => self.add(now, key),
        };
        let flow = &mut self.flows[index as usize];
        if flow.fifo.packets() >= self.config.flow_limit {
            return dropped(packet, DropReason::FlowFull);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
        flow.fifo.push(packet, now);
        if let Place::Idle(since) = flow.place {
            if now.since(since) > self.config.refill_delay {
                flow.credit = flow.credit.max(i64::from(self.config.quantum));
            }
            flow.place = Place::Listed;
            self.new.push_back(index);
        }
    }

    // The next packet in turn.
    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        while let Some(&(time, index)) = self.waiting.first()
            && time <= now
        {
            self.waiting.pop_first();
            self.flows[index as usize].place = Place::Listed;
            self.old.push_back(index);
        }
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&index) = list.front() else {
                return self.waiting.first().map_or(Dequeue::Empty, |(time, _)| Dequeue::NotBefore(*time));
            };
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            if flow.next > now && flow.fifo.packets() > 0 {
                list.pop_front();
                flow.place = Place::Waiting;
                self.waiting.insert((flow.next, index));
                continue;
            }
            let Some((mut packet, arrived)) = flow.fifo.pop() else {
                list.pop_front();
                // A new flow passes once through the old list, so that it cannot stay first by
                // sending one packet at a time.
                if from_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.place = Place::Idle(now);
                }
                continue;
            };
            self.packets -= 1;
            self.bytes -= u64::from(packet.bytes());
            // Lateness counts from the time when the packet was due: its arrival, or its flow's
            // turn if the flow is paced.
            if let Some(threshold) = self.config.mark_threshold
                && now.since(arrived.max(flow.next)) > threshold
            {
                self.marked += u64::from(packet.set_ce());
            }
            let length = counted(&packet, self.config.overhead);
            flow.credit -= length as i64;
            if let Some(rate) = self.config.max_rate {
                flow.pace(now, length, rate, &self.config);
            }
            return Dequeue::Packet(packet, arrived);
        }
    }

    fn tally(&self) -> Tally {
        Tally { packets: self.packets, bytes: self.bytes, marked: self.marked }
    }
}

impl<P> FlowQueue<P> {
    /// A packet of `length` left at `now`: when may the next one?
    fn pace(&mut self, now: Time, length: u64, rate: Rate, config: &FairQueuingConfig) {
        let waits_for = if rate <= config.low_rate_threshold {
            self.credit = 0;
            length
        } else if self.credit > 0 {
            return;
        } else {
            length.max(u64::from(config.quantum))
        };
        let mut wait = rate.transmission_time(Bytes::new(waits_for)).min(config.longest_wait);
        if self.next > Time::ZERO {
            // A late departure is made up for by at most half of the wait.
            wait = wait - now.since(self.next).min(wait / 2);
        }
        self.next = now + wait;
    }
}

#[cfg(test)]
mod tests;
