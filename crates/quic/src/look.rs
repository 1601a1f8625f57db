//! A look at a path: what its sender sends, and when. First a pair of packets, whose distance on
//! arrival says how much the path bears; a short train, for a token bucket lets a pair pass much
//! faster than what follows; then a detector of fair queuing by trains that build no
//! long queue; then trains that tell the capacity, and lone packets that meet no queue.
//!
//! What was seen is made of it in `findings`.

use std::collections::VecDeque;

use flowstart_congestion::detection::{Decision, PairDetector, TrainProbeConfig, Trains};
use flowstart_congestion::{Acked, Departure, Sent};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::ledger::HEADER_BYTES;
use crate::message::Looked;

mod findings;

/// Constants of a look. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookConfig {
    /// Pairs of packets until two of one arrive apart, 1 ..= 10; default 3.
    pub pairs: u32,
    /// A pair further apart than this is followed by another, for jitter may have parted them;
    /// default 5 ms.
    pub slow: Span,
    /// Packets of the train that follows a pair, 8 or more; default 16. Whoever lets fewer pass at
    /// a higher rate is found out before longer trains build a long queue.
    pub settling: u32,
    /// Queue that a train of the detector may build; default 45 ms.
    pub detection_queue: Span,
    /// Time for detection; default 1.2 s.
    pub detection: Span,
    /// Packets of the detector's longest train; default 96. What a look may send is little: there
    /// is none left for long trains, nor for the proof that a fast rate persists, which is not
    /// asked for. A burst of a token bucket is looked for by the trains behind.
    pub detection_train: u32,
    /// Batches of the detector's trains without an answer until it is unknown; default 6.
    pub detection_batches: u32,
    /// Queue that a train for the capacity may build; default 25 ms.
    pub queue: Span,
    /// Packets of these trains, 2 or more; default 24.
    pub longest: u32,
    /// Least number of these trains; default 8. The median of a rate lies between the least and the
    /// largest of eight in 99 of 100 looks.
    pub trains: u32,
    /// ... or as many as begin within this time, but three; default 450 ms. If it is not over, more
    /// follow as long as there is data, to empty a token bucket.
    pub time: Span,
    /// Behind a token bucket a path may be so many times slower than trains say, 1 or more; default
    /// 10. What is in flight at a time must not queue for long there.
    pub slowdown: f64,
    /// Queue that trains in flight build if the path is that much slower; default 40 ms. A train
    /// has `settling` packets all the same.
    pub flight_queue: Span,
    /// Trains are so many times the time apart that the bottleneck takes for one; default 2.
    pub apart: f64,
}

impl Default for LookConfig {
    fn default() -> Self {
        Self {
            pairs: 3,
            slow: Span::from_millis(5),
            settling: 16,
            detection_queue: Span::from_millis(45),
            detection: Span::from_millis(1200),
            detection_train: 96,
            detection_batches: 6,
            queue: Span::from_millis(25),
            longest: 24,
            trains: 8,
            time: Span::from_millis(450),
            slowdown: 10.0,
            flight_queue: Span::from_millis(40),
            apart: 2.0,
        }
    }
}

/// What a packet was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// One of a pair, of what follows it, or of the detector.
    Before,
    /// A train, by its number.
    Train(u32),
    /// It met no queue of ours.
    Calm,
    /// What was not delivered at first.
    After,
}

/// A packet of the first connection.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    at: Time,
    bytes: u32,
    part: Part,
    /// When its ACK came.
    acked: Option<Time>,
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
    /// What arrived over both connections, in the order of its ACKs: when, and bytes on the wire.
    arrivals: Vec<(Time, u64)>,
    smallest: Span,
    /// Bytes of the packet with the smallest RTT, with its headers.
    quickest: u32,
    largest: Span,
    last: Time,
    ends: Time,
    decision: Option<Decision>,
    /// Of every train planned, whether it is the first of its group, and its packets.
    trains: Vec<(bool, u32)>,
    /// When the first train was planned.
    tried: Time,
    /// Number of the lone packet behind the trains sent last, until the next are planned.
    lone: Option<u64>,
}

/// Two packets of a pair.
const PAIR: u64 = 2;
/// A shorter train tells nothing.
const LEAST_SETTLING: u64 = 8;
/// A path is taken for slower from a train's end that arrives this much slower on.
const SLOWER: f64 = 1.5;
/// So many trains there are however long they take.
const LEAST_TRAINS: usize = 3;

impl Look {
    pub(crate) fn new(config: LookConfig, mtu: u32, seed: u64) -> Self {
        Self {
            config,
            packet: mtu.saturating_add(HEADER_BYTES),
            seed,
            stage: LookStage::Pairs(1, 0),
            began: None,
            packets: Vec::new(),
            plan: VecDeque::new(),
            offset: 0,
            service: Span::ZERO,
            fast: None,
            arrivals: Vec::new(),
            smallest: Span::MAX,
            quickest: 0,
            largest: Span::ZERO,
            last: Time::ZERO,
            ends: Time::NEVER,
            decision: None,
            trains: Vec::new(),
            tried: Time::ZERO,
            lone: None,
        }
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
            LookStage::Detection(detector) => detector.departure(connection, now),
            LookStage::Trains => match self.plan.front() {
                Some((at, ..)) if connection == 0 => Departure::At(*at),
                _ => Departure::Hold,
            },
            // One after another, as the path bears them.
            LookStage::Over => Departure::At(self.last + self.service.mul_f64(1.25)),
        };
        match departure {
            Departure::At(at) if at <= now => Departure::Now,
            other => other,
        }
    }

    /// A packet of a connection left.
    pub(crate) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        self.last = self.last.max(sent.now);
        let mut part = Part::Before;
        match &mut self.stage {
            LookStage::Detection(detector) => detector.on_sent(connection, &shifted(connection, self.offset, sent)),
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
                    self.ends = sent.now + self.largest + self.largest / 2 + self.service * 4;
                }
            }
            LookStage::Over => part = Part::After,
            LookStage::Pairs(..) | LookStage::Settling(_) | LookStage::Trains => {}
        }
        if connection == 0 {
            let Sent { number, now, bytes, .. } = *sent;
            if part == Part::Calm {
                self.lone.get_or_insert(number);
            }
            self.packets.push(Packet { number, at: now, bytes, part, acked: None });
        }
    }

    /// A packet of a connection was delivered.
    pub(crate) fn on_acked(&mut self, connection: usize, acked: &Acked) {
        let rtt = acked.now.since(acked.sent_at);
        // Full ones: others cross the path faster.
        if u64::from(acked.bytes + HEADER_BYTES) * 10 >= u64::from(self.packet) * 9 {
            if rtt < self.smallest {
                (self.smallest, self.quickest) = (rtt, acked.bytes + HEADER_BYTES);
            }
            self.largest = self.largest.max(rtt);
        }
        self.arrivals.push((acked.now, u64::from(acked.bytes + HEADER_BYTES)));
        if connection == 0
            && let Ok(at) = self.packets.binary_search_by_key(&acked.number, |packet| packet.number)
        {
            self.packets[at].acked.get_or_insert(acked.now);
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
                    self.settle(first, acked.number + 1);
                    self.detect(acked.now);
                }
            }
            LookStage::Detection(detector) => {
                if connection > 0 || acked.number >= self.offset {
                    let number = if connection == 0 { acked.number - self.offset } else { acked.number };
                    detector.on_acked(connection, &Acked { number, ..*acked });
                }
                self.decision = detector.decision().copied();
                if self.decision.is_some() {
                    self.plan_trains(acked.now);
                }
            }
            LookStage::Trains if self.lone.is_some_and(|lone| connection == 0 && acked.number >= lone) => {
                self.plan_next(acked.now);
            }
            _ => {}
        }
    }

    /// A packet of a pair, or one sent in its place, was delivered.
    fn on_pair(&mut self, acked: &Acked, count: u32, first: u64) {
        if acked.number + 1 < first + PAIR {
            return;
        }
        let arrived = |number: u64| self.packets.iter().find(|it| it.number == number).and_then(|it| it.acked);
        if let (Some(one), Some(other)) = (arrived(first), arrived(first + 1))
            && other > one
        {
            let apart = other.since(one);
            self.service = if self.service.is_zero() { apart } else { self.service.min(apart) };
        }
        let known = !self.service.is_zero() && self.service <= self.config.slow;
        if !known && count < self.config.pairs {
            self.stage = LookStage::Pairs(count + 1, self.next());
            return;
        }
        match known && self.settling() >= LEAST_SETTLING {
            true => self.stage = LookStage::Settling(self.next()),
            false => self.detect(acked.now),
        }
    }

    /// Packets of the train that follows a pair.
    fn settling(&self) -> u64 {
        let fits = self.config.queue.as_nanos() / self.service.as_nanos().max(1);
        fits.min(u64::from(self.config.settling))
    }

    /// Packets of a train, from one number to another, may have arrived slower at its end than the
    /// path was taken for. The middle one of their distances says how much: some hosts stand still
    /// for a moment, and some merge ACKs.
    fn settle(&mut self, first: u64, end: u64) {
        let packets = self.packets.iter().filter(|packet| (first..end).contains(&packet.number));
        let mut arrived: Vec<Time> = packets.filter_map(|packet| packet.acked).collect();
        arrived.sort_unstable();
        let late = &arrived[arrived.len() / 2..];
        let mut apart: Vec<Span> = late.windows(2).map(|two| two[1].since(two[0])).collect();
        apart.sort_unstable();
        if let Some(middle) = apart.get(apart.len() / 2)
            && *middle > self.service.mul_f64(SLOWER)
        {
            self.fast.get_or_insert(self.service);
            self.service = *middle;
        }
    }

    fn detect(&mut self, now: Time) {
        self.offset = self.next();
        match detector(&self.config, self.service) {
            Some(config) => {
                let trains = Trains::new(&config, self.packet, self.seed);
                self.stage = LookStage::Detection(Box::new(PairDetector::Trains(Box::new(trains))));
            }
            None => self.plan_trains(now),
        }
    }

    fn next(&self) -> u64 {
        self.packets.last().map_or(0, |last| last.number + 1)
    }

    /// Trains that tell the capacity, each with a lone packet before it and one behind it that
    /// meet no queue: the first of them.
    fn plan_trains(&mut self, now: Time) {
        if let Some(decision) = &self.decision
            && decision.rate > Rate::ZERO
        {
            let service = decision.rate.transmission_time(Bytes::new(u64::from(self.packet)));
            self.service = self.service.max(service);
        }
        self.tried = now;
        self.plan_group(now, 1);
        self.stage = LookStage::Trains;
    }

    /// ... and more of them, when it is known how fast the last arrived.
    fn plan_next(&mut self, now: Time) {
        self.lone = None;
        self.ends = Time::NEVER;
        let group = self.trains.iter().rposition(|(first, _)| *first).unwrap_or(0);
        for train in group..self.trains.len() {
            let numbers = self.packets.iter().filter(|packet| packet.part == Part::Train(train as u32));
            let numbers: Vec<u64> = numbers.map(|packet| packet.number).collect();
            if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
                self.settle(*first, last + 1);
            }
        }
        if self.trains.len() >= LEAST_TRAINS && now.since(self.tried) >= self.config.time {
            self.stage = LookStage::Over;
            return;
        }
        // What has come into the bucket since the last packet passes at once.
        let full = u64::from(self.packet);
        let rate = Rate::of(Bytes::new(full), self.service).as_bps();
        let tokens = match self.fast {
            Some(_) => drained(&self.arrivals, rate).min(now.since(self.last).as_nanos() / 1000 * rate / 8_000_000),
            None => 0,
        };
        let length = u64::from(self.length());
        let trains = (self.flight() / length).max((tokens / full).div_ceil(length) + 1);
        let trains = trains.min(u64::from(self.config.trains.max(1)));
        self.plan_group(now, trains as u32);
    }

    /// Packets that may be in flight although the path may be much slower than it seems.
    fn flight(&self) -> u64 {
        let flight = self.config.flight_queue.as_nanos() / self.service.as_nanos().max(1);
        (flight as f64 / self.config.slowdown.max(1.0)) as u64
    }

    /// Packets of a train. Behind an empty bucket up to two of them wait.
    fn length(&self) -> u32 {
        let share = if self.fast.is_some() { 2 } else { 1 };
        let fits = self.config.queue.as_nanos() / share / self.service.as_nanos().max(1);
        let flight = self.flight().max(u64::from(self.config.settling));
        let fits = fits.min(flight).max(if self.fast.is_some() { LEAST_SETTLING } else { 2 });
        u32::try_from(fits).unwrap_or(u32::MAX).min(self.config.longest.max(2))
    }

    /// Plans so many trains, one behind the other, and a lone packet.
    fn plan_group(&mut self, now: Time, trains: u32) {
        let length = self.length();
        let gap = self.fast.unwrap_or(self.service) * u64::from(length);
        let drained = (self.service * u64::from(length + 1)).mul_f64(self.config.apart / 2.0);
        // What the detector or the trains before sent is gone by then.
        let mut at = now.max(self.last + drained);
        for place in 0..trains {
            self.plan.push_back((at, length, Part::Train(self.trains.len() as u32)));
            self.trains.push((place == 0, length));
            at += gap;
        }
        // Where a packet takes microseconds, processors do not.
        let alone = at + drained + drained / 2 + Span::from_micros(500);
        self.plan.push_back((alone, 1, Part::Calm));
    }

    /// When it must be asked again although nothing arrives.
    pub(crate) fn deadline(&self) -> Time {
        match &self.stage {
            LookStage::Detection(_) => self.gives_up(),
            LookStage::Trains => self.ends,
            LookStage::Pairs(..) | LookStage::Settling(_) | LookStage::Over => Time::NEVER,
        }
    }

    fn gives_up(&self) -> Time {
        self.began.map_or(Time::NEVER, |began| began + self.config.detection)
    }

    /// True once all that it needs was sent and delivered or waited for.
    pub(crate) fn is_over(&mut self, now: Time) -> bool {
        match &self.stage {
            LookStage::Detection(_) if now >= self.gives_up() => self.plan_trains(now),
            LookStage::Trains if now >= self.ends => self.plan_next(now),
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

/// The largest token bucket, in bytes, that arrivals would have emptied if it was filled at this
/// rate in bit/s: what came at most within any time, less what the rate brings in it.
fn drained(arrivals: &[(Time, u64)], rate: u64) -> u64 {
    levels(arrivals, rate).max().unwrap_or(0)
}

/// What such a bucket lacked after the last of the arrivals.
fn lacking(arrivals: &[(Time, u64)], rate: u64) -> u64 {
    levels(arrivals, rate).last().unwrap_or(0)
}

/// ... and after each.
fn levels(arrivals: &[(Time, u64)], rate: u64) -> impl Iterator<Item = u64> {
    let mut sorted = arrivals.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().scan((0.0_f64, Time::ZERO), move |(level, before), (at, bytes)| {
        let filled = at.since(*before).as_nanos() as f64 * rate as f64 / 8e9;
        *level = (*level - filled).max(0.0) + bytes as f64;
        *before = at;
        Some(*level as u64)
    })
}

/// The detector counts its packets from 0.
fn shifted(connection: usize, offset: u64, sent: &Sent) -> Sent {
    let number = if connection == 0 { sent.number.saturating_sub(offset) } else { sent.number };
    Sent { number, ..*sent }
}

/// A detector whose trains build no longer queue than they may, if there can be one. `service` is
/// zero if it is not known.
fn detector(config: &LookConfig, service: Span) -> Option<TrainProbeConfig> {
    let usual = TrainProbeConfig {
        longest_train: config.detection_train,
        most_batches: config.detection_batches,
        proof_service: Span::ZERO,
        ..TrainProbeConfig::default()
    };
    // Packets that may wait; without knowledge as many as the detector likes. Where they are few, a
    // single lone packet joins them: this receiver acknowledges every packet.
    let fits = config.detection_queue.as_nanos() as f64 / service.as_nanos().max(1) as f64;
    let lone = if fits < 16.0 { 1 } else { usual.lone };
    let fits = fits - f64::from(lone);
    // Of a train that leaves faster than it arrives this share queues.
    let share = 1.0 - 1.0 / usual.train_load;
    let longest = ((fits / share) as u32).min(usual.longest_train);
    // One of the first train is in transmission.
    let train = (fits as u32).saturating_add(1).min(usual.train);
    let shortest = longest.min(usual.shortest_train);
    let fitting =
        TrainProbeConfig { train, shortest_train: shortest, longest_train: longest.max(shortest), lone, ..usual };
    // Less than three packets of queue say nothing.
    (fits >= 3.0 && shortest >= 6 && fitting.validate().is_ok()).then_some(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_as_large_as_what_came_beyond_what_filled_it() {
        // 8 Mbit/s are a byte each microsecond; ten packets of 1000 bytes 100 us apart, twice.
        let at = |micros: u64| (Time::ZERO + Span::from_micros(micros), 1000);
        let train = |from: u64| (0..10).map(move |n| at(from + n * 100));
        let one: Vec<(Time, u64)> = train(0).collect();
        assert_eq!((drained(&one, 8_000_000), lacking(&one, 8_000_000)), (9_100, 9_100));
        // Between two trains it fills, or it does not.
        let far: Vec<(Time, u64)> = train(50_000).chain(train(0)).collect();
        assert_eq!((drained(&far, 8_000_000), lacking(&far, 8_000_000)), (9_100, 9_100));
        let near: Vec<(Time, u64)> = train(0).chain(train(2_000)).collect();
        assert_eq!((drained(&near, 8_000_000), lacking(&near, 8_000_000)), (17_100, 17_100));
        let then: Vec<(Time, u64)> = one.iter().copied().chain([at(5_900)]).collect();
        assert_eq!((drained(&then, 8_000_000), lacking(&then, 8_000_000)), (9_100, 5_100));
        assert_eq!((drained(&[], 8_000_000), lacking(&[], 0)), (0, 0));
    }

    #[test]
    fn detectors_build_no_longer_queue_than_a_path_bears() {
        let fits = |service| detector(&LookConfig::default(), service);
        let usual = TrainProbeConfig {
            longest_train: 96,
            most_batches: 6,
            proof_service: Span::ZERO,
            ..TrainProbeConfig::default()
        };
        assert_eq!((fits(Span::ZERO), fits(Span::from_micros(120))), (Some(usual), Some(usual)));
        // 1.5 Mbit/s: four in the queue and a lone packet are 40 ms.
        let slow = fits(Span::from_millis(8)).unwrap();
        assert_eq!((slow.train, slow.shortest_train, slow.longest_train, slow.lone), (5, 8, 8, 1));
        assert_eq!(fits(Span::from_millis(12)), None);
    }
}
