//! Is the queue one's own? Answered within a few round trips by the order of packets instead of by overload: a *train* of a few packets faster than the
//! bottleneck queues there, and a single packet of another connection right behind it either waits behind the train (a shared queue) or is served
//! before most of it (fair queuing). A first train leaves at once; its spacing on arrival is the bottleneck's rate, so the same packets measure capacity.
//!
//! Every lone packet gives a ratio: its own queueing delay over that of the last train packet before it. Ratios are weighed as evidence, each for no
//! more than one in a thousand, and widened by the jitter seen while nothing was queued. Where buffers are too small or too full for a queue to be seen,
//! trains are *bursts* that overflow them, each with a lone packet between its last two: if both of these are lost, so is a lone packet in a shared
//! queue, and hardly ever one in a queue of its own.
//!
//! Connection 0 sends the trains and goes on afterwards; connection 1 sends the lone packets. A first train runs without comparison: fair
//! queuing serves the first ten frames of a new flow at once (the initial credit of Linux's sch_fq), which would look like a shared queue.

mod batch;
mod config;
mod dispersion;
mod evidence;
mod first;
mod scale;
mod side;
mod watch;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::random::Random;
use crate::{Acked, Departure, Sent};

use super::pair::{Decision, Isolation};
pub use config::{EvidenceConfig, TrainProbeConfig, WatchConfig};
use dispersion::Dispersion;
use evidence::Evidence;
use scale::Scale;
use side::Side;
use watch::Watch;

/// What the detector does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first train is out; its arrivals tell the rate.
    First,
    /// Trains with lone packets behind them.
    Trains,
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
    /// Longest time between two of its arrivals.
    slowest: Span,
    /// It arrived so evenly that a batch follows at once, with lone packets one by one.
    at_once: bool,
    /// By how much its gaps differed at most from what they should be, if so.
    uneven: Span,
    /// Trains are bursts.
    bursts: bool,
    /// What follows the first train has begun to leave: what is planned stays.
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
    /// Of packets that may have been served on a new flow's credit.
    with_credit: Dispersion,
    /// Largest delay beyond the smallest in this batch.
    highest: Span,
    losses: bool,
    /// A lone packet told something in this batch.
    weighed: bool,
    /// Packets around a lone one were lost in this batch.
    overflowed: bool,
    /// The last RTT while nothing of ours was queued, and the largest difference between two in a row.
    calm: Option<(Span, Span)>,
    evidence: Evidence,
    decision: Option<Decision>,
    /// When a look last found the queue to be the flow's own.
    confirmed: Time,
    /// Looks after the decision.
    watch: Option<Box<Watch>>,
}

impl Trains {
    /// A detector over connections of packets of `packet` bytes. `seed` is that of the gaps between bursts.
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
            slowest: Span::ZERO,
            at_once: false,
            uneven: Span::ZERO,
            bursts: false,
            spread_begun: false,
            spread_ends: u64::MAX,
            service: None,
            length: config.shortest_train,
            batches: 0,
            batch_from: u64::MAX,
            batch_ends: u64::MAX,
            dispersion: Dispersion::default(),
            with_credit: Dispersion::default(),
            highest: Span::ZERO,
            losses: false,
            weighed: false,
            overflowed: false,
            calm: None,
            evidence: Evidence::new(config.evidence),
            decision: None,
            confirmed: Time::ZERO,
            watch: None,
        }
    }

    pub(super) fn departure(&mut self, connection: usize, now: Time) -> Departure {
        if let Some(watch) = &self.watch {
            return watch.departure(connection);
        }
        let Some(side) = self.sides.get_mut(connection) else { return Departure::Hold };
        if !std::mem::replace(&mut side.open, true) && connection == 0 {
            side.plan.push_front((now, self.config.train));
            self.began = Some(now);
        }
        side.departure()
    }

    pub(super) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        if let Some(watch) = &mut self.watch {
            return watch.on_sent(connection, sent);
        }
        let neighbour = self.sides[0].sent.saturating_sub(1);
        // Not a repair that a timer called for.
        let planned = self.sides[0].plan.front().is_some_and(|(at, _)| *at <= sent.now);
        self.spread_begun |= connection == 0 && planned && self.service.is_some();
        if let Some(side) = self.sides.get_mut(connection) {
            side.leave(sent, neighbour);
        }
    }

    pub(super) fn on_acked(&mut self, connection: usize, acked: &Acked) {
        if self.watch.is_some() {
            return self.look_again(connection, acked);
        }
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
            Stage::First if !self.at_once => self.note_calm(acked),
            Stage::First => {}
            Stage::Trains => self.on_train(connection, acked),
        }
    }

    fn note_calm(&mut self, acked: &Acked) {
        // That of a packet sent twice is not known.
        let Some(rtt) = acked.rtt else { return };
        let jitter = |(before, most): (Span, Span)| most.max(rtt.max(before) - rtt.min(before));
        self.calm = Some((rtt, self.calm.map_or(Span::ZERO, jitter)));
    }

    /// Jitter as the largest difference between RTTs in a row, seen without a queue of ours. (Their range would be the other flows' queue, which train
    /// and lone packet meet alike.)
    fn jitter(&self) -> Span {
        let calm = self.calm.map_or(Span::ZERO, |(_, jitter)| jitter);
        calm.max(self.uneven)
    }

    /// Packets that arrive so late are not lost.
    fn patience(&self) -> Span {
        let jitter = self.jitter().mul_f64(self.config.patience_jitters);
        // Bursts come without a measurement of jitter.
        if self.bursts { jitter.max(self.smallest().mul_f64(self.config.follow_rtts)) } else { jitter }
    }

    fn smallest(&self) -> Span {
        let of = |side: &Side| side.smallest.unwrap_or(Span::MAX);
        of(&self.sides[0]).min(of(&self.sides[1]))
    }

    fn scale(&self) -> Scale {
        Scale { smallest: self.smallest(), service: self.service.unwrap_or(Span::ZERO), jitter: self.jitter() }
    }

    /// After the answer: another one if looks contradict it.
    fn look_again(&mut self, connection: usize, acked: &Acked) {
        let Some(watch) = &mut self.watch else { return };
        if !watch.on_acked(connection, acked, &mut self.evidence) {
            return;
        }
        let smallest = watch.smallest();
        let Some(isolation) = self.answer() else { return };
        if isolation == Isolation::Isolated {
            self.confirmed = acked.now;
        }
        if let Some(decision) = self.decision
            && decision.isolation != isolation
        {
            let (ratio, rate) = (self.evidence.mean_ratio(), decision.rate);
            self.revise(Decision { now: acked.now, isolation, ratio, rate, confidence: None, smallest });
        }
    }

    fn revise(&mut self, decision: Decision) {
        let confidence = Some(self.evidence.confidence(decision.isolation));
        self.decision = Some(Decision { confidence, ..decision });
        if let Some(watch) = &mut self.watch {
            watch.take_for(decision.isolation);
        }
    }

    /// The avoidance found out by itself that the queue is shared.
    pub(super) fn on_revoked(&mut self, now: Time) {
        self.evidence.contradict(self.config.shared_error);
        if let Some(decision) = self.decision {
            self.revise(Decision { now, isolation: Isolation::Shared, ..decision });
        }
    }

    /// When a look last found the queue to be the flow's own; [`Time::ZERO`] if none did.
    pub(super) fn confirmed(&self) -> Time {
        self.confirmed
    }

    /// True while lone packets of a look are on their way.
    pub(super) fn is_looking(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.is_looking())
    }

    /// True if it goes on to look at the queue after the decision.
    pub(super) fn watches(&self) -> bool {
        self.watch.is_some()
    }

    /// True if an answer is given.
    fn decide(&mut self, now: Time) -> bool {
        let Some(isolation) = self.answer() else { return false };
        self.conclude(now, isolation);
        true
    }

    /// What the evidence says, if it is enough.
    fn answer(&self) -> Option<Isolation> {
        let error = self.evidence.error_if_isolated();
        if error <= self.config.isolated_error {
            Some(Isolation::Isolated)
        } else {
            (1.0 - error <= self.config.shared_error).then_some(Isolation::Shared)
        }
    }

    fn conclude(&mut self, now: Time, isolation: Isolation) {
        // Without any measurement as much as was sent in a round trip at first.
        let service = self.service.unwrap_or(self.smallest() / u64::from(self.config.train));
        // A new flow's credit, or luck, may have let the first train pass others.
        let overtaking = if isolation == Isolation::Isolated { self.config.lone } else { 0 };
        let overtaking = service * u64::from(overtaking);
        let per_packet = self.dispersion.per_packet(self.config.least_gaps, overtaking).unwrap_or(service).max(service);
        let (ratio, confidence) = (self.evidence.mean_ratio(), Some(self.evidence.confidence(isolation)));
        let rate = Rate::of(self.packet, per_packet);
        let scale = self.scale();
        self.decision = Some(Decision { now, isolation, ratio, rate, confidence, smallest: scale.smallest });
        if !self.config.watch.interval.is_zero() && self.sides[1].open {
            let mut watch = Watch::new(&self.config, now, scale);
            watch.take_for(isolation);
            self.watch = Some(Box::new(watch));
        }
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }
}
