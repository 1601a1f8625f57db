//! Is the queue one's own? Answered within a few round trips by the order of packets instead of by overload: a *train* of a few packets faster than the
//! bottleneck queues there, and a single packet of another connection right behind it either waits behind the train (a shared queue) or is served
//! before most of it (fair queuing). A first train leaves at once; its spacing on arrival is the bottleneck's rate, so the same packets measure capacity.
//!
//! Every lone packet gives a ratio: its own queueing delay over that of the last train packet before it. Ratios are weighed as evidence, each for no
//! more than one in a thousand, and widened by the jitter seen while nothing was queued. Where buffers are too small for a queue to be seen, losses are compared
//! instead: a stream above the bottleneck's rate and a sparse one, which loses alike in a shared queue and hardly at all in a queue of its own.
//!
//! Connection 0 sends the trains and goes on afterwards; connection 1 sends the lone packets. A first train runs without comparison: fair
//! queuing serves the first ten frames of a new flow at once (the initial credit of Linux's sch_fq), which would look like a shared queue.

use std::collections::VecDeque;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::names::InvalidConfig;
use crate::random::Random;
use crate::{Acked, Departure, Sent};

use super::evidence::Evidence;
use super::pair::{Decision, Isolation};

/// Constants of the detector. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct TrainProbeConfig {
    /// Packets of the first train, which leave at once, 4 ..= 64; default 8, which with one in transmission fits a buffer of eight.
    pub train: u32,
    /// Packets of the other trains at first, 4 ..= 1000; default 10.
    pub shortest_train: u32,
    /// These leave at so many times the rate that the first train told, above 1; default 2.5: ten packets then queue six. Not all at once, so
    /// that they do not queue where the path is wider before its bottleneck.
    pub train_load: f64,
    /// Packets of the longest train, if jitter hides the delay of shorter ones; default 106, of which 64 queue.
    pub longest_train: u32,
    /// Packets spread in time between the first train and the others, so that a new flow's credit is used up (sch_fq: ten frames), 1 ..= 1000;
    /// default 4.
    pub spread: u32,
    /// Trains sent before answers are awaited, at least 1; default 3.
    pub batch: u32,
    /// Trains are this many times the time apart that the bottleneck takes for one, at least 1; default 2.
    pub apart: f64,
    /// Least delay of the train's last packet in packet times for its ratio to count, at least 1; default 3.
    pub least_queue: f64,
    /// ... and in times of the jitter; a train that does not reach it is followed by longer ones; default 4.
    pub least_jitters: f64,
    /// Probability of error at which "isolated" is said, above 0 and below 0.5; default 0.0001: who takes a shared queue for his own starves in it.
    pub isolated_error: f64,
    /// Probability of error at which "shared" is said; default 0.01: who takes his own queue for a shared one only waits longer.
    pub shared_error: f64,
    /// Batches of trains without an answer until it is unknown, at least 1; default 6.
    pub most_batches: u32,
    /// Load of the stream whose losses are compared, in times of the bottleneck's rate, above 1; default 1.5.
    pub overload: f64,
    /// Packets of that stream; default 96.
    pub contrast_packets: u32,
    /// Packets of the sparse stream beside it; default 12.
    pub contrast_lone: u32,
}

impl Default for TrainProbeConfig {
    fn default() -> Self {
        Self {
            train: 8,
            shortest_train: 10,
            train_load: 2.5,
            longest_train: 106,
            spread: 4,
            batch: 3,
            apart: 2.0,
            least_queue: 3.0,
            least_jitters: 4.0,
            isolated_error: 1e-4,
            shared_error: 0.01,
            most_batches: 6,
            overload: 1.5,
            contrast_packets: 96,
            contrast_lone: 12,
        }
    }
}

impl TrainProbeConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let error = |p: f64| p > 0.0 && p < 0.5;
        check((4..=64).contains(&self.train), "train", "between 4 and 64 packets")?;
        check((4..=1000).contains(&self.shortest_train), "shortest_train", "between 4 and 1000 packets")?;
        check(self.train_load > 1.0 && self.train_load <= 100.0, "train_load", "above 1 and at most 100")?;
        let longest = self.shortest_train..=1000;
        check(longest.contains(&self.longest_train), "longest_train", "at least shortest_train, at most 1000")?;
        check((1..=1000).contains(&self.spread), "spread", "between 1 and 1000")?;
        check((1..=100).contains(&self.batch), "batch", "between 1 and 100")?;
        check(self.apart >= 1.0 && self.apart <= 100.0, "apart", "between 1 and 100")?;
        check(self.least_queue >= 1.0 && self.least_queue.is_finite(), "least_queue", "at least 1")?;
        check(self.least_jitters >= 0.0 && self.least_jitters.is_finite(), "least_jitters", "at least 0")?;
        check(error(self.isolated_error), "isolated_error", "above 0 and below 0.5")?;
        check(error(self.shared_error), "shared_error", "above 0 and below 0.5")?;
        check((1..=1000).contains(&self.most_batches), "most_batches", "between 1 and 1000")?;
        check(self.overload > 1.0 && self.overload <= 100.0, "overload", "above 1 and at most 100")?;
        check((1..=10_000).contains(&self.contrast_packets), "contrast_packets", "between 1 and 10 000")?;
        check((1..=10_000).contains(&self.contrast_lone), "contrast_lone", "between 1 and 10 000")
    }
}

/// What the detector does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first train is out; its arrivals tell the rate.
    First,
    /// Trains with lone packets behind them.
    Trains,
    /// Losses are compared.
    Contrast,
}

/// A packet that left.
#[derive(Clone, Copy, Debug)]
struct Flying {
    number: u64,
    /// For a lone packet, the train packet that left last before it.
    neighbour: u64,
    rtt: Option<Span>,
    lost: bool,
}

/// One of the two connections.
#[derive(Clone, Debug, Default)]
struct Side {
    /// Departures to come: when, and how many packets.
    plan: VecDeque<(Time, u32)>,
    /// Packets whose fate still matters, by number.
    flying: VecDeque<Flying>,
    sent: u64,
    open: bool,
    smallest: Option<Span>,
    /// Packets sent and lost since the comparison of losses began, of those whose fate is known.
    known: u32,
    lost: u32,
    /// Packets from this number on are compared.
    compared_from: u64,
    compared_until: u64,
}

/// Packets whose fate is remembered; more than a batch of the longest trains.
const REMEMBERED: usize = 512;
/// An ACK that is later than that of the packet before by more than so many packet times and jitter, and ...
const DELAYED_ACK_PACKETS: u64 = 4;
/// ... by more than this factor, was delayed by the receiver.
const DELAYED_ACK_GROWTH: f64 = 1.5;
/// Packets that follow a batch or a comparison, so that its last losses are found.
const FOLLOWERS: u32 = 2;

/// The RTT of the newest packet of an ACK counts for all of them, so that a delayed ACK does not look like a queue.
fn round_trip(acked: &Acked) -> Span {
    acked.rtt.unwrap_or(acked.now.since(acked.sent_at))
}

impl Side {
    fn departure(&self) -> Departure {
        self.plan.front().map_or(Departure::Hold, |(at, _)| Departure::At(*at))
    }

    fn leave(&mut self, sent: &Sent, neighbour: u64) {
        if let Some((_, count)) = self.plan.front_mut() {
            *count -= 1;
            if *count == 0 {
                self.plan.pop_front();
            }
        }
        if self.flying.len() >= REMEMBERED {
            self.flying.pop_front();
        }
        self.flying.push_back(Flying { number: sent.number, neighbour, rtt: None, lost: false });
        self.sent = sent.number + 1;
    }

    /// Packets sent earlier whose ACK did not come are lost: within a connection nothing overtakes.
    fn arrive(&mut self, acked: &Acked) {
        let rtt = round_trip(acked);
        self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        let compared = self.compared_from..self.compared_until;
        for packet in &mut self.flying {
            if packet.number > acked.number || packet.rtt.is_some() || packet.lost {
                continue;
            }
            if packet.number == acked.number {
                packet.rtt = Some(rtt);
            } else {
                packet.lost = true;
            }
            if compared.contains(&packet.number) {
                self.known += 1;
                self.lost += u32::from(packet.lost);
            }
        }
    }

    fn find(&self, number: u64) -> Option<&Flying> {
        let first = self.flying.front()?.number;
        self.flying.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }
}

/// The detector in operation.
#[derive(Clone, Debug)]
pub struct Trains {
    config: TrainProbeConfig,
    packet: Bytes,
    random: Random,
    stage: Stage,
    sides: [Side; 2],
    /// Number of the first packet of the train whose arrivals tell the rate.
    first_from: u64,
    /// The first ACK of that train: its time, packets acknowledged with it and since, and the time of the last.
    first_ack: Option<Time>,
    with_first: u32,
    after_first: u32,
    last_ack: Time,
    /// The spread packets have begun to leave: what is planned stays.
    spread_begun: bool,
    /// Number of the last spread packet.
    spread_ends: u64,
    /// Time the bottleneck takes for a packet.
    service: Option<Span>,
    /// Packets of a train now.
    length: u32,
    batches: u32,
    /// The last lone packet of the batch.
    batch_ends: u64,
    /// Largest delay beyond the smallest in this batch.
    highest: Span,
    losses: bool,
    /// Range of RTTs while nothing of ours was queued.
    calm: Option<(Span, Span)>,
    evidence: Evidence,
    decision: Option<Decision>,
}

impl Trains {
    /// A detector over connections of packets of `packet` bytes. `seed` is that of the gaps when losses are compared.
    #[must_use]
    pub fn new(config: &TrainProbeConfig, packet: u32, seed: u64) -> Self {
        let config = if config.validate().is_ok() { *config } else { TrainProbeConfig::default() };
        Self {
            config,
            packet: Bytes::new(u64::from(packet)),
            random: Random::new(seed),
            stage: Stage::First,
            sides: [Side::default(), Side::default()],
            first_from: 0,
            first_ack: None,
            with_first: 0,
            after_first: 0,
            last_ack: Time::ZERO,
            spread_begun: false,
            spread_ends: u64::MAX,
            service: None,
            length: config.shortest_train,
            batches: 0,
            batch_ends: u64::MAX,
            highest: Span::ZERO,
            losses: false,
            calm: None,
            evidence: Evidence::default(),
            decision: None,
        }
    }

    pub(super) fn departure(&mut self, connection: usize, now: Time) -> Departure {
        let Some(side) = self.sides.get_mut(connection) else { return Departure::Hold };
        if !std::mem::replace(&mut side.open, true) && connection == 0 {
            side.plan.push_front((now, self.config.train));
        }
        side.departure()
    }

    pub(super) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        let neighbour = self.sides[0].sent.saturating_sub(1);
        // Not a repair that a timer called for.
        let planned = self.sides[0].plan.front().is_some_and(|(at, _)| *at <= sent.now);
        self.spread_begun |= connection == 0 && planned && self.service.is_some();
        if let Some(side) = self.sides.get_mut(connection) {
            side.leave(sent, neighbour);
        }
    }

    pub(super) fn on_acked(&mut self, connection: usize, acked: &Acked) {
        let Some(side) = self.sides.get_mut(connection) else { return };
        if self.decision.is_some() {
            return;
        }
        side.arrive(acked);
        if connection == 0 {
            self.losses |= side.flying.iter().any(|packet| packet.lost);
        }
        match self.stage {
            Stage::First if connection == 0 => self.on_first(acked),
            // It met no queue of ours.
            Stage::First => self.note_calm(acked),
            Stage::Trains => self.on_train(connection, acked),
            Stage::Contrast => self.compare(acked.now),
        }
    }

    fn note_calm(&mut self, acked: &Acked) {
        let rtt = round_trip(acked);
        self.calm = Some(self.calm.map_or((rtt, rtt), |(low, high)| (low.min(rtt), high.max(rtt))));
    }

    /// Jitter as the range of RTTs seen without a queue of ours.
    fn jitter(&self) -> Span {
        self.calm.map_or(Span::ZERO, |(low, high)| high - low)
    }

    /// The first train comes in: how fast the bottleneck is.
    fn on_first(&mut self, acked: &Acked) {
        let train = u64::from(self.config.train);
        let of_train = (self.first_from..self.first_from + train).contains(&acked.number);
        match self.first_ack {
            _ if !of_train => {}
            Some(first) if acked.now > first => {
                self.after_first += 1;
                self.last_ack = acked.now;
            }
            first => {
                self.first_ack = Some(first.unwrap_or(acked.now));
                self.with_first += 1;
            }
        }
        if self.after_first == 0 {
            if self.with_first == self.config.train {
                // All at once: faster than can be measured.
                self.last_ack = self.first_ack.unwrap_or(acked.now);
            } else if acked.number + 1 < self.first_from + train {
                return;
            } else {
                return self.repeat_first(acked.now);
            }
        }
        let Some(first) = self.first_ack else { return };
        let service = (self.last_ack.since(first) / u64::from(self.after_first.max(1))).max(Span::from_micros(1));
        if of_train {
            self.service = Some(service);
            // Planned anew with every ACK, as the estimate improves, until the first of them has left.
            self.plan_first(first + service * (train + 1), service);
        } else {
            // The spread packets met no queue of ours.
            self.note_calm(acked);
        }
        if acked.number >= self.spread_ends {
            self.stage = Stage::Trains;
        }
    }

    /// Too little of the first train arrived to tell a rate.
    fn repeat_first(&mut self, now: Time) {
        self.batches += 1;
        if self.batches >= self.config.most_batches {
            return self.conclude(now, Isolation::Unknown);
        }
        let train = &mut self.sides[0];
        self.first_from = train.sent;
        train.plan.clear();
        train.plan.push_back((now, self.config.train));
        (self.first_ack, self.with_first, self.after_first) = (None, 0, 0);
    }

    /// The spread packets and the first batch behind them.
    fn plan_first(&mut self, begin: Time, service: Span) {
        let [trains, lone] = &mut self.sides;
        if self.spread_begun {
            return;
        }
        trains.plan.clear();
        for index in 0..self.config.spread {
            trains.plan.push_back((begin + service * u64::from(2 * index), 1));
        }
        if lone.sent == 0 {
            // Between two of them: it tells the delay of its own path.
            lone.plan.clear();
            lone.plan.push_back((begin + service * u64::from(self.config.spread) + service, 1));
        }
        self.batches = self.batches.max(1);
        let before = trains.sent + u64::from(self.config.spread);
        self.spread_ends = before - 1;
        self.plan_batch(begin + service * u64::from(2 * self.config.spread), before);
    }

    /// Another batch.
    fn begin_batch(&mut self, now: Time) {
        self.batches += 1;
        self.highest = Span::ZERO;
        self.losses = false;
        for side in &mut self.sides {
            side.plan.clear();
        }
        let sent = self.sides[0].sent;
        self.plan_batch(now, sent);
    }

    /// Trains from the time `begin` on, each with a lone packet behind it; `before` packets of connection 0 leave before.
    fn plan_batch(&mut self, begin: Time, before: u64) {
        let service = self.service.unwrap_or(Span::from_micros(1));
        let apart = (service * u64::from(self.length + 1)).mul_f64(self.config.apart);
        let gap = service.mul_f64(1.0 / self.config.train_load);
        let [trains, lone] = &mut self.sides;
        for index in 0..self.config.batch {
            let at = begin + apart * u64::from(index);
            for place in 0..self.length {
                trains.plan.push_back((at + gap * u64::from(place), 1));
            }
            lone.plan.push_back((at + gap * u64::from(self.length - 1), 1));
        }
        // What follows finds the last losses.
        let after = begin + apart * u64::from(self.config.batch);
        for index in 0..FOLLOWERS {
            trains.plan.push_back((after + service * u64::from(2 * index), 1));
        }
        lone.plan.push_back((after, 1));
        self.batch_ends = before + u64::from(self.config.batch * self.length + FOLLOWERS) - 1;
    }

    fn on_train(&mut self, connection: usize, acked: &Acked) {
        if connection == 0 {
            let smallest = self.smallest();
            let excess = round_trip(acked).checked_sub(smallest).unwrap_or(Span::ZERO);
            self.highest = self.highest.max(excess);
        }
        self.weigh();
        if self.decide(acked.now) {
            return;
        }
        if connection == 0 && acked.number >= self.batch_ends {
            self.next_batch(acked.now);
        }
    }

    fn smallest(&self) -> Span {
        let of = |side: &Side| side.smallest.unwrap_or(Span::MAX);
        of(&self.sides[0]).min(of(&self.sides[1]))
    }

    /// Takes the lone packets whose neighbour's delay is known as evidence.
    fn weigh(&mut self) {
        let smallest = self.smallest();
        let service = self.service.unwrap_or(Span::ZERO);
        let least = service.mul_f64(self.config.least_queue).max(self.jitter());
        let tolerance = service * DELAYED_ACK_PACKETS + self.jitter();
        let excess = |rtt: Span| rtt.checked_sub(smallest).unwrap_or(Span::ZERO);
        let [trains, lone] = &mut self.sides;
        while let Some(packet) = lone.flying.front() {
            // Behind it no other is known as long as its own fate is open.
            let Some(rtt) = packet.rtt.or(packet.lost.then_some(Span::MAX)) else { break };
            let Some(neighbour) = trains.find(packet.neighbour) else {
                lone.flying.pop_front();
                continue;
            };
            // The neighbour may be lost: then the last packet of the train that arrived counts.
            let settled = neighbour.rtt.is_some() || neighbour.lost;
            if !settled {
                break;
            }
            let before =
                (0..u64::from(self.length)).filter_map(|back| trains.find(packet.neighbour.checked_sub(back)?));
            let last = before.into_iter().find_map(|train| train.rtt);
            let delay = last.map_or(Span::ZERO, excess);
            if delay >= least && !delay.is_zero() {
                if packet.lost {
                    self.evidence.lone_lost();
                } else if excess(rtt) <= (delay + tolerance).max(delay.mul_f64(DELAYED_ACK_GROWTH)) {
                    let noise = self.calm.map_or(0.0, |(low, high)| (high - low).ratio(delay));
                    self.evidence.ratio(excess(rtt).ratio(delay), noise);
                }
            }
            lone.flying.pop_front();
        }
    }

    /// True if an answer is given.
    fn decide(&mut self, now: Time) -> bool {
        let error = self.evidence.error_if_isolated();
        let isolation = if error <= self.config.isolated_error {
            Isolation::Isolated
        } else if 1.0 - error <= self.config.shared_error {
            Isolation::Shared
        } else {
            return false;
        };
        self.conclude(now, isolation);
        true
    }

    fn conclude(&mut self, now: Time, isolation: Isolation) {
        let service = self.service.unwrap_or(Span::from_micros(1));
        let error = self.evidence.error_if_isolated();
        let confidence = match isolation {
            Isolation::Isolated => 1.0 - error,
            Isolation::Shared => error,
            Isolation::Unknown => error.max(1.0 - error),
        };
        let rate = Rate::of(self.packet, service);
        self.decision =
            Some(Decision { now, isolation, ratio: self.evidence.mean_ratio(), rate, confidence: Some(confidence) });
    }

    /// A batch is over without an answer: longer trains if jitter hides them, a comparison of losses if the buffer is too small, or none.
    fn next_batch(&mut self, now: Time) {
        let service = self.service.unwrap_or(Span::ZERO);
        if self.batches >= self.config.most_batches {
            return self.conclude(now, Isolation::Unknown);
        }
        let queued = self.highest >= service.mul_f64(self.config.least_queue);
        if self.losses && !queued {
            return self.begin_contrast(now);
        }
        let wanted = self.jitter().mul_f64(self.config.least_jitters);
        let needed = if service.is_zero() { 0 } else { u32::try_from(wanted.whole(service)).unwrap_or(u32::MAX) };
        if !queued {
            self.length = self.length.saturating_mul(2);
        } else if self.highest < wanted {
            // Of a train at twice the rate half is queued, and so on.
            let queued = 1.0 - 1.0 / self.config.train_load;
            self.length = ((f64::from(needed) / queued) as u32).saturating_add(1).max(self.length);
        }
        // Even, so that a receiver that acknowledges every second packet does not delay the ACK of the last.
        self.length = self.length.min(self.config.longest_train).next_multiple_of(2);
        self.begin_batch(now);
    }

    fn begin_contrast(&mut self, now: Time) {
        self.stage = Stage::Contrast;
        self.batches += 1;
        let gap = self.service.unwrap_or(Span::from_micros(1)).mul_f64(1.0 / self.config.overload);
        let mut at = now;
        let [stream, lone] = &mut self.sides;
        stream.plan.clear();
        lone.plan.clear();
        for _ in 0..self.config.contrast_packets {
            stream.plan.push_back((at, 1));
            // Random gaps, so that nothing locks in phase.
            at += gap.mul_f64(0.3 + 1.4 * self.random.unit());
        }
        let lasting = at.since(now);
        let mut times: Vec<f64> = (0..self.config.contrast_lone).map(|_| self.random.unit()).collect();
        times.sort_by(f64::total_cmp);
        for share in times {
            lone.plan.push_back((now + lasting.mul_f64(share), 1));
        }
        for (side, count) in [(&mut *stream, self.config.contrast_packets), (&mut *lone, self.config.contrast_lone)] {
            (side.compared_from, side.compared_until) = (side.sent, side.sent + u64::from(count));
            // Until the losses of the last ones are known.
            for index in 1..=FOLLOWERS {
                side.plan.push_back((at + gap * u64::from(8 * index), 1));
            }
        }
    }

    fn compare(&mut self, now: Time) {
        let [stream, lone] = &self.sides;
        let all = [(stream, self.config.contrast_packets), (lone, self.config.contrast_lone)];
        if all.iter().any(|(side, _)| side.sent < side.compared_until || side.open_compared()) {
            return;
        }
        let (of_stream, of_lone) = ((stream.lost, stream.known), (lone.lost, lone.known));
        self.evidence.contrast(of_stream, of_lone);
        for side in &mut self.sides {
            (side.known, side.lost) = (0, 0);
            (side.compared_from, side.compared_until) = (0, 0);
        }
        if !self.decide(now) {
            if self.batches >= self.config.most_batches {
                self.conclude(now, Isolation::Unknown);
            } else {
                self.begin_contrast(now);
            }
        }
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }
}

impl Side {
    /// True while the fate of a compared packet is open.
    fn open_compared(&self) -> bool {
        let compared = self.compared_from..self.compared_until;
        self.flying.iter().any(|packet| compared.contains(&packet.number) && packet.rtt.is_none() && !packet.lost)
    }
}
