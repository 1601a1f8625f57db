//! A look at a path: what its sender sends, and when. First a pair of packets, whose distance on
//! arrival says how much the path bears; a short train, for a token bucket lets a pair pass much
//! faster than what follows; then a detector of fair queuing by trains that build no
//! long queue; then trains that tell the capacity, and lone packets that meet no queue.
//!
//! What was seen is made of it in `findings`.

use std::collections::VecDeque;
use std::ops::Range;

use flowstart_congestion::detection::{Decision, Isolation, PairDetector, Trains};
use flowstart_congestion::{Acked, Departure, Sent};
use flowstart_units::{Rate, Span, Time};

use crate::ledger::{Counts, HEADER_BYTES};
use crate::message::Looked;

mod bucket;
mod config;
mod detecting;
mod findings;
mod first;
mod outage;
mod plan;
mod slowing;
mod spending;

pub use config::{FindingsConfig, LookConfig};
use detecting::detector;
use spending::Spending;

/// What a packet was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// One of a pair, of what follows it, or of the detector.
    Before,
    /// A train, by its number.
    Train(u32),
    /// ... and ahead of what counts of it, to take what a token bucket has saved.
    Lead(u32),
    /// It met no queue of ours.
    Calm,
    /// What was not delivered at first.
    After,
}

impl Part {
    /// The train that it is of, if it is of one.
    fn train(self) -> Option<u32> {
        match self {
            Self::Train(train) | Self::Lead(train) => Some(train),
            Self::Before | Self::Calm | Self::After => None,
        }
    }
}

/// A packet of the first connection.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    at: Time,
    /// With headers.
    bytes: u32,
    part: Part,
    /// When its ACK came.
    acked: Option<Time>,
    /// It was the newest that this ACK told of: nothing was lost on the way back, or waited, for
    /// which it waited, too.
    direct: bool,
}

#[derive(Clone, Debug)]
enum LookStage {
    /// So many pairs were sent; the current one began with this number.
    Pairs(u32, u64),
    /// A train that began with this number.
    Settling(u64),
    Detection(Box<PairDetector>),
    /// Trains in groups, a lone packet behind each, planned by what the group before says.
    Trains,
    /// Nothing more is asked for.
    Over,
}

/// A look in progress.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    config: LookConfig,
    /// Bytes of a full packet with its headers.
    packet: u32,
    /// Bytes of the headers of IP and UDP.
    headers: u32,
    seed: u64,
    stage: LookStage,
    began: Option<Time>,
    packets: Vec<Packet>,
    plan: VecDeque<(Time, u32, Part)>,
    /// Number of the first packet of the detector.
    offset: u64,
    /// Time that the bottleneck takes for a packet; zero if it is not known.
    service: Span,
    /// ... while a token bucket lets packets pass, if there is one.
    fast: Option<Span>,
    /// A train ended slower than that of the pair before.
    slower: bool,
    /// Packets that a token bucket was seen to let pass at once, and has none left behind; at least
    /// the first, which waits for nothing anyway.
    saved: u32,
    /// What arrived over both connections, in the order of its ACKs.
    ways: Vec<bucket::Way>,
    smallest: Span,
    /// Bytes of the packet with the smallest RTT, with its headers.
    quickest: u32,
    /// Of each connection when ACKs came, and the RTT of the newest full packet in each.
    rtts: [Vec<(Time, Span)>; 2],
    /// Place of the packet acknowledged last.
    newest: Option<usize>,
    /// Packets that pass one right behind the other, if fewer than were sent.
    room: Option<u32>,
    /// Packets arrived behind others that had left later.
    overtaken: bool,
    /// How many packets passed of trains whose end was lost.
    ends_lost: Vec<u32>,
    last: Time,
    ends: Time,
    decision: Option<Decision>,
    /// Bytes on the wire of both connections.
    sent: u64,
    /// When the detector has no more time, for it has sent what it may.
    exhausted: Time,
    /// Of every train planned, whether it is the first of its group, and its packets.
    trains: Vec<(bool, u32)>,
    /// The last train's end arrived at the rate that the path is taken for.
    confirmed: bool,
    /// When the first train was planned.
    tried: Time,
    /// Numbers of the packets of the train behind the first pair.
    settled: Option<Range<u64>>,
    /// Number of the lone packet behind the trains sent last, until the next are planned.
    lone: Option<u64>,
    /// Small packets, each with a lone one behind it.
    lights: bucket::Lights,
    spending: Spending,
}

/// Two packets of a pair.
const PAIR: u64 = 2;
impl Look {
    /// A look with so many bytes of data at the most.
    pub(crate) fn new(config: LookConfig, mtu: u32, seed: u64, size: Option<u64>) -> Self {
        let limit = size.map_or(u64::MAX, |size| (size as f64 * config.costs) as u64);
        Self {
            config,
            packet: mtu.saturating_add(HEADER_BYTES),
            headers: HEADER_BYTES,
            seed,
            stage: LookStage::Pairs(1, 0),
            began: None,
            packets: Vec::new(),
            plan: VecDeque::new(),
            offset: 0,
            service: Span::ZERO,
            fast: None,
            slower: false,
            saved: 1,
            ways: Vec::new(),
            smallest: Span::MAX,
            quickest: 0,
            rtts: Default::default(),
            newest: None,
            room: None,
            overtaken: false,
            ends_lost: Vec::new(),
            last: Time::ZERO,
            ends: Time::NEVER,
            decision: None,
            sent: 0,
            exhausted: Time::NEVER,
            trains: Vec::new(),
            confirmed: false,
            tried: Time::ZERO,
            settled: None,
            lone: None,
            lights: bucket::Lights::default(),
            spending: Spending { limit, carried: [0; 2], counts: Default::default(), given: 0 },
        }
    }

    /// Full packets have so many bytes of payload, for the other end may take smaller ones only,
    /// and these headers.
    pub(crate) fn sized(&mut self, mtu: u32, headers: u32) {
        if self.packets.is_empty() {
            (self.packet, self.headers) = (mtu.saturating_add(headers), headers);
        }
    }

    /// True as long as a connection has nothing to send: what it is given before leaves in place of
    /// a small packet, or when all is over.
    pub(crate) fn waits(&mut self, connection: usize, now: Time) -> bool {
        connection > 0
            && match &mut self.stage {
                LookStage::Detection(detector) => detector.departure(connection, now) == Departure::Hold,
                _ => true,
            }
    }

    /// True as long as what a connection has left is for trains that are about to be planned.
    pub(crate) fn saves(&self, connection: usize, now: Time) -> bool {
        connection == 0 && matches!(self.stage, LookStage::Trains) && self.plan.is_empty() && now < self.ends
    }

    /// When the next packet of a connection leaves.
    pub(crate) fn departure(&mut self, connection: usize, now: Time) -> Departure {
        self.began.get_or_insert(now);
        let departure = match &mut self.stage {
            LookStage::Pairs(_, first) => match self.packets.last() {
                _ if connection > 0 => Departure::Hold,
                Some(last) if last.number + 1 >= *first + PAIR => Departure::Hold,
                _ => Departure::Now,
            },
            LookStage::Settling(first) => match self.packets.last() {
                Some(last) if connection == 0 && last.number + 1 < *first + self.settling() => Departure::Now,
                _ => Departure::Hold,
            },
            LookStage::Detection(_) if self.exhausted < Time::NEVER => Departure::Hold,
            LookStage::Detection(detector) => detector.departure(connection, now),
            LookStage::Trains => match self.plan.front() {
                Some((at, ..)) if connection == 0 => Departure::At(*at),
                _ if connection > 0 => self.light_leaves(),
                _ => Departure::Hold,
            },
            LookStage::Over => self.rest(now),
        };
        match departure {
            Departure::At(at) if at <= now => Departure::Now,
            other => other,
        }
    }

    /// When the next of those leaves that are left when all is over: one after another, as the path
    /// bears them.
    pub(crate) fn rest(&self, now: Time) -> Departure {
        let service = match (self.service.is_zero(), self.smallest) {
            // What it seems to bear may be what one moment of it bears.
            (false, smallest) if smallest < Span::MAX => {
                self.service.max(self.room.map_or(Span::ZERO, |room| smallest / (2 * u64::from(room.max(1)))))
            }
            (false, _) => self.service,
            (true, Span::MAX) => self.config.unknown,
            (true, smallest) => (smallest / 8).min(self.config.unknown),
        };
        match self.last + service.mul_f64(self.config.repairs) {
            at if at <= now => Departure::Now,
            at => Departure::At(at),
        }
    }

    /// A packet of a connection left.
    pub(crate) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        self.last = self.last.max(sent.now);
        self.sent += u64::from(sent.bytes + self.headers);
        let mut part = Part::Before;
        let enough = self.sent >= self.config.detection_bytes || self.spends(self.config.detection_share);
        match &mut self.stage {
            LookStage::Detection(detector) => {
                detector.on_sent(connection, &shifted(connection, self.offset, sent));
                if enough && self.exhausted == Time::NEVER {
                    self.exhausted = sent.now + self.patience() + self.service * 4;
                }
            }
            LookStage::Trains if connection == 0 => {
                if let Some((_, count, what)) = self.plan.front_mut() {
                    part = *what;
                    *count -= 1;
                    if *count == 0 {
                        self.plan.pop_front();
                    }
                }
                if self.plan.is_empty() {
                    // What was queued arrives before that.
                    self.ends = sent.now + self.patience() + self.service * 4;
                }
            }
            LookStage::Over => part = Part::After,
            LookStage::Pairs(..) | LookStage::Settling(_) | LookStage::Trains => {}
        }
        if connection == 0 {
            let (Sent { number, now, .. }, bytes) = (*sent, sent.bytes + self.headers);
            if part == Part::Calm {
                self.lone.get_or_insert(number);
            }
            self.packets.push(Packet { number, at: now, bytes, part, acked: None, direct: false });
        } else {
            self.second_left(sent.number, sent.bytes + self.headers);
        }
    }

    /// A packet of a connection was delivered.
    pub(crate) fn on_acked(&mut self, connection: usize, acked: &Acked) {
        let (rtt, bytes) = (acked.now.since(acked.sent_at), acked.bytes + self.headers);
        // Full ones: others cross the path faster.
        if u64::from(bytes) * 10 >= u64::from(self.packet) * 9 {
            if rtt < self.smallest {
                (self.smallest, self.quickest) = (rtt, bytes);
            }
            match self.rtts[connection.min(1)].last_mut() {
                Some((at, newest)) if *at == acked.now => *newest = rtt,
                _ => self.rtts[connection.min(1)].push((acked.now, rtt)),
            }
        }
        self.ways.push((acked.sent_at, acked.now, u64::from(bytes)));
        if connection > 0 {
            self.light_arrived(acked.number, rtt);
        }
        if connection == 0
            && let Ok(at) = self.packets.binary_search_by_key(&acked.number, |packet| packet.number)
        {
            self.packets[at].acked.get_or_insert(acked.now);
            let overtook = |newest: usize| newest > at && self.packets[newest].acked < Some(acked.now);
            self.overtaken |= self.newest.is_some_and(overtook);
            // Of one ACK the newest comes last.
            let before = self.newest.replace(at).filter(|before| self.packets[*before].acked == Some(acked.now));
            if let Some(before) = before {
                self.packets[before].direct = false;
            }
            self.packets[at].direct = acked.rtt.is_none_or(|newest| rtt <= newest);
        }
        match &mut self.stage {
            LookStage::Pairs(count, first) if connection == 0 => {
                let (count, first) = (*count, *first);
                self.on_pair(acked, count, first);
            }
            LookStage::Settling(first) if connection == 0 => {
                let first = *first;
                // It, or one sent in place of its last.
                if acked.number + 1 >= first + self.settling() {
                    self.settled(first, acked.now);
                }
            }
            LookStage::Detection(detector) => {
                if connection > 0 || acked.number >= self.offset {
                    let number = if connection == 0 { acked.number - self.offset } else { acked.number };
                    detector.on_acked(connection, &Acked { number, ..*acked });
                }
                self.decision = detector.decision().copied();
                if self.decision.is_some() {
                    self.slow_down();
                    self.plan_trains(acked.now);
                }
            }
            LookStage::Trains if self.lone.is_some_and(|lone| connection == 0 && acked.number >= lone) => {
                self.plan_next(acked.now);
            }
            _ => {}
        }
    }

    fn detect(&mut self, now: Time) {
        if self.alone() {
            return self.plan_trains(now);
        }
        self.offset = self.next();
        // Of a bucket that is not quite empty more passes than trains are told to build a queue of.
        let share = if self.fast.is_some() { self.config.behind } else { 1.0 };
        let detection_queue = self.config.detection_queue.mul_f64(share);
        match detector(&LookConfig { detection_queue, ..self.config }, self.service, self.room) {
            Some(mut config) => {
                if self.fast.is_some() {
                    // The first gaps of a train are those that a bucket lets pass.
                    config.enough_gaps = config.train.saturating_sub(1).max(config.enough_gaps);
                }
                // The first of its trains may pass on what a bucket has saved since.
                let known = if self.slower { self.service } else { Span::ZERO };
                let trains = Trains::new(&config, self.packet, self.seed).knowing(known);
                self.stage = LookStage::Detection(Box::new(PairDetector::Trains(Box::new(trains))));
            }
            None => self.plan_trains(now),
        }
    }

    fn next(&self) -> u64 {
        self.packets.last().map_or(0, |last| last.number + 1)
    }

    /// When it must be asked again although nothing arrives.
    pub(crate) fn deadline(&self) -> Time {
        match &self.stage {
            LookStage::Detection(_) => self.gives_up(),
            LookStage::Trains => self.ends.min(self.light_due().unwrap_or(Time::NEVER)),
            LookStage::Pairs(..) | LookStage::Settling(_) if self.all_left() => self.missing(),
            LookStage::Pairs(..) | LookStage::Settling(_) => Time::NEVER,
            LookStage::Over => Time::NEVER,
        }
    }

    fn gives_up(&self) -> Time {
        self.began.map_or(Time::NEVER, |began| began + self.config.detection).min(self.exhausted)
    }

    /// What a connection has carried both ways so far, with headers, what was counted of its
    /// packets, and the data that was given out.
    pub(crate) fn account(&mut self, connection: usize, carried: u64, counts: Counts, given: u64) {
        let place = connection.min(1);
        (self.spending.carried[place], self.spending.counts[place]) = (carried, counts);
        self.spending.given = given;
    }

    /// True if no more may be spent than this share of all.
    fn spends(&self, share: f64) -> bool {
        self.spending.is_spent(share, (self.packet, self.headers), &self.config)
    }

    /// How long what was sent is waited for when all is over.
    pub(crate) fn grace(&self) -> Span {
        self.config.grace.max(self.largest().mul_f64(self.config.grace_rtts))
    }

    /// True once no more data may follow.
    pub(crate) fn is_spent(&self) -> bool {
        self.spends(1.0)
    }

    /// True once all that it needs was sent and delivered or waited for.
    pub(crate) fn is_over(&mut self, now: Time) -> bool {
        self.light_misses(now);
        match &self.stage {
            LookStage::Detection(_) if now >= self.gives_up() => {
                let (isolation, smallest) = (Isolation::Unknown, self.smallest);
                self.decision =
                    Some(Decision { now, isolation, ratio: 0.0, rate: Rate::ZERO, confidence: None, smallest });
                self.plan_trains(now);
            }
            LookStage::Trains if now >= self.ends => self.plan_next(now),
            LookStage::Pairs(count, _) if now >= self.missing() && self.all_left() => {
                let count = *count;
                self.pair_over(now, count);
            }
            LookStage::Settling(first) if now >= self.missing() && self.all_left() => {
                let first = *first;
                self.settled(first, now);
            }
            _ => {}
        }
        matches!(self.stage, LookStage::Over)
    }

    /// The answer of the detector, if there is one.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// What was seen. `ecn` if packets still say at the end that marks reach the other end.
    pub(crate) fn findings(&self, ecn: bool) -> Looked {
        findings::findings(self, ecn)
    }
}

/// The detector counts its packets from 0.
fn shifted(connection: usize, offset: u64, sent: &Sent) -> Sent {
    let number = if connection == 0 { sent.number.saturating_sub(offset) } else { sent.number };
    Sent { number, ..*sent }
}
