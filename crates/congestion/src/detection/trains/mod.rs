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

mod config;
mod dispersion;
mod evidence;
mod side;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::random::Random;
use crate::{Acked, Departure, Sent};

use super::pair::{Decision, Isolation};
pub use config::TrainProbeConfig;
use dispersion::Dispersion;
use evidence::Evidence;
use side::{Side, round_trip};

/// An ACK that is later than that of the packet before by more than so many packet times and jitter, and ...
const DELAYED_ACK_PACKETS: u64 = 4;
/// ... by more than this factor, was delayed by the receiver.
const DELAYED_ACK_GROWTH: f64 = 1.5;
/// Packets that follow a batch or a comparison, so that its last losses are found, ...
const FOLLOWERS: u32 = 2;
/// ... and their distance after a comparison, in gaps of the stream.
const FOLLOWER_GAPS: u64 = 8;
/// Lone packets leave in pairs, so that a receiver that acknowledges every second packet does so at once.
const LONE: u32 = 2;
/// A packet is lost if one that left later by more than so many times the jitter has arrived.
const PATIENCE_JITTERS: u64 = 2;

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

/// The detector in operation.
#[derive(Clone, Debug)]
pub struct Trains {
    config: TrainProbeConfig,
    packet: Bytes,
    random: Random,
    stage: Stage,
    sides: [Side; 2],
    /// When the first packet could leave.
    began: Option<Time>,
    /// Numbers of the packets whose arrivals tell the rate.
    first_from: u64,
    first_until: u64,
    /// They are a chirp, as a train did not get through.
    chirp: bool,
    /// The first ACK of that train: its time, packets acknowledged with it and since, and the time of the last.
    first_ack: Option<Time>,
    with_first: u32,
    after_first: u32,
    last_ack: Time,
    /// Shortest time between two of its arrivals.
    quickest: Option<Span>,
    /// The spread packets have begun to leave: what is planned stays.
    spread_begun: bool,
    /// Number of the last spread packet.
    spread_ends: u64,
    /// Time the bottleneck takes for a packet.
    service: Option<Span>,
    /// Packets of a train now.
    length: u32,
    batches: u32,
    /// Numbers of the first packet of the batch's trains and of the last packet that follows them.
    batch_from: u64,
    batch_ends: u64,
    dispersion: Dispersion,
    /// Largest delay beyond the smallest in this batch.
    highest: Span,
    losses: bool,
    /// A lone packet told something in this batch.
    weighed: bool,
    /// The last RTT while nothing of ours was queued, and the largest difference between two in a row.
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
            began: None,
            first_from: 0,
            first_until: u64::from(config.train),
            chirp: false,
            first_ack: None,
            with_first: 0,
            after_first: 0,
            last_ack: Time::ZERO,
            quickest: None,
            spread_begun: false,
            spread_ends: u64::MAX,
            service: None,
            length: config.shortest_train,
            batches: 0,
            batch_from: u64::MAX,
            batch_ends: u64::MAX,
            dispersion: Dispersion::default(),
            highest: Span::ZERO,
            losses: false,
            weighed: false,
            calm: None,
            evidence: Evidence::default(),
            decision: None,
        }
    }

    pub(super) fn departure(&mut self, connection: usize, now: Time) -> Departure {
        let Some(side) = self.sides.get_mut(connection) else { return Departure::Hold };
        if !std::mem::replace(&mut side.open, true) && connection == 0 {
            side.plan.push_front((now, self.config.train));
            self.began = Some(now);
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
        let patience = self.patience();
        let Some(side) = self.sides.get_mut(connection) else { return };
        if self.decision.is_some() {
            return;
        }
        side.arrive(acked, patience);
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
        let jitter = |(before, most): (Span, Span)| most.max(rtt.max(before) - rtt.min(before));
        self.calm = Some((rtt, self.calm.map_or(Span::ZERO, jitter)));
    }

    /// Jitter as the largest difference between RTTs in a row, seen without a queue of ours. (Their range would be the other flows' queue, which train
    /// and lone packet meet alike.)
    fn jitter(&self) -> Span {
        self.calm.map_or(Span::ZERO, |(_, jitter)| jitter)
    }

    /// Packets that arrive so late are not lost.
    fn patience(&self) -> Span {
        self.jitter() * PATIENCE_JITTERS
    }

    /// The first train comes in: how fast the bottleneck is.
    fn on_first(&mut self, acked: &Acked) {
        let of_train = (self.first_from..self.first_until).contains(&acked.number);
        match self.first_ack {
            _ if !of_train => {}
            Some(first) if acked.now > first => {
                self.after_first += 1;
                let gap = acked.now.since(self.last_ack);
                if !gap.is_zero() {
                    self.quickest = Some(self.quickest.map_or(gap, |quickest| quickest.min(gap)));
                }
                self.last_ack = acked.now;
            }
            first => {
                self.first_ack = Some(first.unwrap_or(acked.now));
                self.with_first += 1;
                self.last_ack = acked.now;
                if self.with_first == 1 && !self.chirp {
                    // If no other arrives this one tells so.
                    self.sides[0].plan.push_back((acked.now + round_trip(acked) / 2, 1));
                }
            }
        }
        let over = acked.number >= self.first_until;
        if self.chirp {
            if over {
                self.read_chirp(acked.now);
            }
            return;
        }
        if self.after_first == 0 && self.with_first < self.config.train {
            if over {
                self.send_chirp(acked.now);
            }
            return;
        }
        let Some(first) = self.first_ack else { return };
        // Of a train with losses, the time that those take that arrived next to each other; a train that arrived at once is faster than can be measured.
        let mean = self.last_ack.since(first) / u64::from(self.after_first.max(1));
        let service = self.quickest.filter(|_| self.losses).unwrap_or(mean).max(Span::from_micros(1));
        if of_train {
            self.service = Some(service);
            // Planned anew with every ACK, as the estimate improves, until the first of them has left.
            self.plan_first(first + service * u64::from(self.config.train + 1), service);
        } else {
            // The spread packets met no queue of ours.
            self.note_calm(acked);
        }
        if acked.number >= self.spread_ends {
            self.stage = Stage::Trains;
        }
    }

    /// Too little of the first train arrived to tell a rate: packets follow whose gaps shrink, so that some are as far apart as the bottleneck needs.
    fn send_chirp(&mut self, now: Time) {
        self.batches += 1;
        if self.batches >= self.config.most_batches {
            return self.conclude(now, Isolation::Unknown);
        }
        let rtt = self.smallest();
        let count = self.config.train * 2;
        let train = &mut self.sides[0];
        train.plan.clear();
        let (mut at, mut gap) = (now, rtt / u64::from(self.config.train));
        for _ in 0..count {
            train.plan.push_back((at, 1));
            at += gap;
            gap = gap.mul_f64(self.config.chirp_shrink);
        }
        for index in 1..=FOLLOWERS {
            train.plan.push_back((at + rtt.mul_f64(0.5) * u64::from(index), 1));
        }
        (self.first_from, self.first_until) = (train.sent, train.sent + u64::from(count));
        (self.first_ack, self.with_first, self.after_first, self.quickest) = (None, 0, 0, None);
        self.chirp = true;
    }

    /// What arrived of a chirp tells how fast packets may follow each other; so small a buffer shows no delays.
    fn read_chirp(&mut self, now: Time) {
        match self.quickest {
            Some(quickest) => {
                self.service = Some(quickest.max(Span::from_micros(1)));
                self.begin_contrast(now);
            }
            None => self.send_chirp(now),
        }
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
            lone.plan.push_back((begin + service * u64::from(self.config.spread) + service, LONE));
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
        self.weighed = false;
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
        let patience = self.patience();
        let [trains, lone] = &mut self.sides;
        for index in 0..self.config.batch {
            let at = begin + apart * u64::from(index);
            for place in 0..self.length {
                trains.plan.push_back((at + gap * u64::from(place), 1));
            }
            lone.plan.push_back((at + gap * u64::from(self.length - 1), LONE));
        }
        // What follows finds the last losses.
        let after = begin + apart * u64::from(self.config.batch);
        for index in 0..FOLLOWERS {
            trains.plan.push_back((after + (service * 2 + patience) * u64::from(index), 1));
        }
        lone.plan.push_back((after + patience, LONE));
        self.batch_from = before;
        self.dispersion.begin_batch();
        self.batch_ends = before + u64::from(self.config.batch * self.length + FOLLOWERS) - 1;
    }

    fn on_train(&mut self, connection: usize, acked: &Acked) {
        if connection == 0 {
            let smallest = self.smallest();
            let excess = round_trip(acked).checked_sub(smallest).unwrap_or(Span::ZERO);
            self.highest = self.highest.max(excess);
            if let Some(place) = acked.number.checked_sub(self.batch_from)
                && place < u64::from(self.config.batch * self.length)
            {
                self.dispersion.add(acked.now, place, u64::from(self.length));
            }
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
        let jitter = self.jitter();
        let excess = |rtt: Span| rtt.checked_sub(smallest).unwrap_or(Span::ZERO);
        let [trains, lone] = &mut self.sides;
        while let Some(first) = lone.flying.front().copied() {
            let twin = lone.flying.get(1).copied().filter(|twin| twin.sent == first.sent);
            let pair = std::iter::once(first).chain(twin);
            // Behind it no other is known as long as its own fate is open.
            if !pair.clone().all(|packet| packet.is_settled()) {
                break;
            }
            if let Some(neighbour) = trains.find(first.neighbour) {
                // The neighbour may be lost: then the last packet of the train that arrived counts.
                if !neighbour.is_settled() {
                    break;
                }
                let delay = trains.delay_before(first.neighbour, self.length, service).map_or(Span::ZERO, excess);
                // A lone packet that was held up, for instance because its connection was not open yet, met another queue.
                let together = first.sent.since(neighbour.sent) <= service;
                if delay >= least && !delay.is_zero() && together {
                    self.weighed = true;
                    // Of two in one ACK the second is known, which waited for the first.
                    let both = twin.and_then(|twin| twin.rtt.filter(|rtt| first.rtt == Some(*rtt)));
                    let quickest = both.map(|rtt| rtt.checked_sub(service).unwrap_or(Span::ZERO));
                    match quickest.or_else(|| pair.filter_map(|packet| packet.rtt).min()).map(excess) {
                        None => self.evidence.lone_lost(),
                        Some(waited) if waited <= (delay + tolerance).max(delay.mul_f64(DELAYED_ACK_GROWTH)) => {
                            self.evidence.ratio(waited.ratio(delay), jitter.ratio(delay));
                        }
                        // The receiver held the ACK back.
                        Some(_) => {}
                    }
                }
            }
            lone.flying.drain(..1 + usize::from(twin.is_some()));
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
        // Without any measurement as much as was sent in a round trip at first.
        let service = self.service.unwrap_or(self.smallest() / u64::from(self.config.train));
        // A new flow's credit, or luck, may have let the first train pass others.
        let overtaking = if isolation == Isolation::Isolated { LONE } else { 0 };
        let per_packet = self.dispersion.per_packet(overtaking).unwrap_or(service).max(service);
        let error = self.evidence.error_if_isolated();
        let confidence = match isolation {
            Isolation::Isolated => 1.0 - error,
            Isolation::Shared => error,
            Isolation::Unknown => error.max(1.0 - error),
        };
        let rate = Rate::of(self.packet, per_packet);
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
        if !self.sides[1].open {
            // Nothing could be compared yet. Its SYN may have been lost.
            let began = self.began.unwrap_or(now);
            return if now.since(began) > self.config.open_wait {
                self.conclude(now, Isolation::Unknown)
            } else {
                self.batches -= 1;
                self.begin_batch(now)
            };
        }
        if self.losses && !(queued && self.weighed) {
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
        let patience = self.patience();
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
                side.plan.push_back((at + (gap * FOLLOWER_GAPS + patience) * u64::from(index), 1));
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
        let lost = f64::from(of_stream.0) / f64::from(of_stream.1.max(1));
        // A stream that lost hardly anything was too slow; of one that was far too fast, what arrived is the rate.
        let correction = if lost < self.config.least_contrast {
            0.5
        } else if lost > self.config.most_contrast {
            1.0 / (self.config.overload * (1.0 - lost).max(0.01))
        } else {
            1.0
        };
        self.service = self.service.map(|service| service.mul_f64(correction).max(Span::from_micros(1)));
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
