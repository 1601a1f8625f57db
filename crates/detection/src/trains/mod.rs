//! Is the queue one's own? Answered within a few round trips by the order of packets instead of by
//! overload: a *train* of a few packets faster than the bottleneck queues there, and a single
//! packet of another connection right behind it either waits behind the train (a shared queue) or
//! is served before most of it (fair queuing). A first train leaves at once; its spacing on arrival
//! is the bottleneck's rate, so the same packets measure capacity.
//!
//! Every lone packet gives a ratio: its own queueing delay over that of the last train packet
//! before it. Ratios are weighed as evidence, each for no more than one in a thousand, and widened
//! by the jitter seen while nothing was queued. Where buffers are too small or too full for a queue
//! to be seen, trains are *bursts* that overflow them, each with a lone packet between its last
//! two: if both of these are lost, so is a lone packet in a shared queue, and hardly ever one in a
//! queue of its own.
//!
//! If routers send the connections over different ways, a lone packet does not wait behind a train
//! either. So "isolated" takes more: lone packets must be seen to delay the train's next ones by
//! the time that they take, or, where noise hides that, a train beside one of the other connection
//! must take longer than alone. If they do not, the answer is "unknown".
//!
//! Connection 0 sends the trains and goes on afterwards; connection 1 sends the lone packets. A
//! first train runs without comparison: fair queuing serves the first ten frames of a new flow at
//! once (the initial credit of Linux's sch_fq), which would look like a shared queue.

use alloc::boxed::Box;

mod arrivals;
mod batch;
mod bulk;
mod chirp;
mod config;
mod context;
mod crowd;
mod dispersion;
mod evidence;
mod first;
mod meeting;
mod next;
mod persistence;
mod policing;
mod scale;
mod side;
#[cfg(test)]
mod tests;
mod watch;

use flowstart_control::InRange as _;
use flowstart_units::{Bytes, Span, Time};

use crate::{Acked, CrowdRule, Departure, Sent};

use super::answer::{Decision, Isolation};
use arrivals::Arrivals;
use batch::Batch;
use chirp::Chirp;
pub use config::{EvidenceConfig, MeetingConfig, PolicingConfig, TrainProbeConfig, WatchConfig};
use context::Context;
use first::First;
use next::Next;
use watch::Watch;

/// What the detector does, with what it needs for that.
#[derive(Clone, Debug)]
enum TrainStage {
    /// The first train is out, or packets spread in time are.
    First(First),
    /// A chirp is out.
    Chirp(Chirp),
    /// Trains with lone packets are out. How the first train arrived is kept for another one.
    Batch(Batch, Arrivals),
    /// The answer is given.
    Answered(Answered),
}

/// What there is once the answer is given.
#[derive(Clone, Debug)]
struct Answered {
    decision: Decision,
    /// When a look last found the queue to be the flow's own.
    confirmed: Time,
    /// Looks at the queue, if there are any.
    watch: Option<Box<Watch>>,
}

/// The detector in operation.
#[derive(Clone, Debug)]
pub struct Trains {
    /// Size of a packet.
    packet: Bytes,
    context: Context,
    stage: TrainStage,
}

impl Trains {
    /// A detector over connections of packets of `packet` bytes. `seed` is that of the gaps between
    /// bursts. Constants out of range are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &TrainProbeConfig, packet: u32, seed: u64) -> Self {
        let config = config.in_range();
        let context = Context::new(&config, seed);
        let stage = TrainStage::First(First::new(&context));
        Self { packet: Bytes::new(u64::from(packet)), context, stage }
    }

    /// The bottleneck is known to take so much time for a packet at least: what a token bucket lets
    /// pass says that it takes less.
    #[must_use]
    pub fn knowing(mut self, service: Span) -> Self {
        self.context.known = service;
        self
    }

    pub(super) fn departure(&mut self, connection: usize, now: Time) -> Departure {
        if let Some(watch) = self.watch() {
            return watch.departure(connection);
        }
        let Some(side) = self.context.sides.get_mut(connection) else { return Departure::Hold };
        if !core::mem::replace(&mut side.open, true) && connection == 0 {
            side.plan.push_front((now, self.context.config.train));
            self.context.began = Some(now);
        }
        let (departure, waiting) = (side.departure(), side.is_waiting());
        // A timer of the first connection may ask too late.
        let asks = connection == 0 || self.context.sides[0].is_waiting();
        match self.context.deadline() {
            Some(deadline) if now >= deadline || self.context.starved => {
                self.conclude(now, Isolation::Unknown);
                Departure::Hold
            }
            // Whoever waits for nothing else asks again then. But while an ACK is missing that may
            // be a timer, and a time to leave at would keep the timer from sending what was lost.
            Some(deadline) if asks => match departure {
                Departure::At(time) if time < deadline => departure,
                Departure::Hold if waiting => departure,
                _ => Departure::At(deadline),
            },
            _ => departure,
        }
    }

    pub(super) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        if connection == 0 && !sent.retransmission && self.answered().is_none() {
            self.context.note_wait(sent.now);
        }
        let sides = &mut self.context.sides;
        match &mut self.stage {
            TrainStage::Answered(Answered { watch: Some(watch), .. }) => return watch.on_sent(connection, sent),
            TrainStage::First(first) if connection == 0 => first.on_sent(sides[0].is_due(sent.now)),
            TrainStage::Batch(batch, _) if sent.retransmission => batch.on_repair(connection, sent.number),
            _ => {}
        }
        let neighbour = sides[0].sent.saturating_sub(1);
        if let Some(side) = sides.get_mut(connection) {
            side.leave(sent, neighbour);
        }
    }

    /// Connection 0 has nothing to send, as the application has not written it yet.
    pub(super) fn on_exhausted(&mut self, now: Time) {
        let context = &mut self.context;
        context.exhausted |= !context.config.starved.is_zero() && context.sides[0].is_due(now);
    }

    pub(super) fn on_acked(&mut self, connection: usize, acked: &Acked) {
        let context = &mut self.context;
        if let TrainStage::Answered(answered) = &mut self.stage {
            return answered.look_again(context, connection, acked);
        }
        if context.deadline().is_some_and(|deadline| acked.now >= deadline) {
            return self.conclude(acked.now, Isolation::Unknown);
        }
        let in_bursts = matches!(&self.stage, TrainStage::Batch(batch, _) if batch.is_of_bursts());
        let patience = context.patience(in_bursts);
        let Some(side) = context.sides.get_mut(connection) else { return };
        side.arrive(acked, patience, context.service);
        let next = match &mut self.stage {
            TrainStage::First(first) if connection == 0 => first.on_acked(context, acked),
            TrainStage::Chirp(chirp) if connection == 0 => chirp.on_acked(context, acked),
            TrainStage::First(first) => {
                first.on_lone_acked(context, acked);
                Next::Stay
            }
            TrainStage::Chirp(_) => {
                // It met no queue of ours.
                context.calm.add(acked);
                Next::Stay
            }
            TrainStage::Batch(batch, _) => batch.on_acked(context, connection, acked),
            TrainStage::Answered(_) => Next::Stay,
        };
        self.enter(next, acked);
    }

    /// Does what a stage asked for.
    fn enter(&mut self, next: Next, acked: &Acked) {
        let (context, now) = (&mut self.context, acked.now);
        let arrivals = match &self.stage {
            TrainStage::First(first) => first.arrivals,
            TrainStage::Chirp(chirp) => chirp.arrivals,
            TrainStage::Batch(_, arrivals) => *arrivals,
            TrainStage::Answered(_) => return,
        };
        self.stage = match next {
            Next::Stay => return,
            Next::Chirp => {
                context.attempts += 1;
                if context.attempts >= context.config.most_batches {
                    return self.conclude(now, Isolation::Unknown);
                }
                TrainStage::Chirp(Chirp::plan(context, now))
            }
            Next::Planned => return self.enter_planned(acked),
            Next::Batch { arrangement, length } => {
                TrainStage::Batch(Batch::begin(context, now, arrangement, length), arrivals)
            }
            Next::Again { length } => TrainStage::First(First::again(context, now, arrivals, length)),
            Next::Answer(isolation) => return self.conclude(now, isolation),
        };
    }

    /// The batch that was planned behind the first train is on its way; the packet that was
    /// delivered may be of it.
    fn enter_planned(&mut self, acked: &Acked) {
        let TrainStage::First(first) = &self.stage else { return };
        let Some(mut batch) = first.planned() else { return };
        let next = match first.is_of_batch(acked.number) {
            true => batch.on_acked(&mut self.context, 0, acked),
            false => Next::Stay,
        };
        self.stage = TrainStage::Batch(batch, first.arrivals);
        self.enter(next, acked);
    }

    /// Gives the answer.
    fn conclude(&mut self, now: Time, isolation: Isolation) {
        self.context.met = isolation == Isolation::Isolated;
        let Context { config, sides, .. } = &self.context;
        let watches = !config.watch.interval.is_zero() && sides[1].open;
        let watch = watches.then(|| {
            let mut watch = Watch::new(config, now, self.context.scale());
            watch.take_for(isolation);
            Box::new(watch)
        });
        let decision = self.context.decision(now, isolation, self.packet);
        let Context { crowd, config, sides: [trains, _], .. } = &mut self.context;
        crowd.end(trains.sent, trains.flying.iter(), config.full_loss);
        self.stage = TrainStage::Answered(Answered { decision, confirmed: Time::ZERO, watch });
    }

    /// The avoidance found out by itself that the queue is shared.
    pub(super) fn on_revoked(&mut self, now: Time) {
        self.context.evidence.contradict(self.context.config.shared_error);
        if let TrainStage::Answered(answered) = &mut self.stage {
            answered.revise(&self.context, Decision { now, isolation: Isolation::Shared, ..answered.decision });
        }
    }

    /// The avoidance keeps a queue again, whosever that is: one look at a time would have packets
    /// in it all the time.
    pub(super) fn on_given_up(&mut self) {
        if let TrainStage::Answered(Answered { watch: Some(watch), .. }) = &mut self.stage {
            watch.on_given_up();
        }
    }

    /// When a look last found the queue to be the flow's own; [`Time::ZERO`] if none did.
    pub(super) fn confirmed(&self) -> Time {
        self.answered().map_or(Time::ZERO, |answered| answered.confirmed)
    }

    /// How far slow start may go if it has answered and others keep a queue where its trains
    /// passed.
    pub(super) fn crowd(&self) -> Option<CrowdRule> {
        let TrainProbeConfig { crowd_share: share, crowd_unhurried: unhurried, crowd_growth: growth, .. } =
            self.context.config;
        let seen = self.answered().is_some() && self.context.crowd.is_seen();
        seen.then_some(CrowdRule { share, unhurried, growth })
    }

    /// True while lone packets of a look are on their way.
    pub(super) fn is_looking(&self) -> bool {
        self.watch().is_some_and(Watch::is_looking)
    }

    /// True if it goes on to look at the queue after the decision.
    pub(super) fn watches(&self) -> bool {
        self.watch().is_some()
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.answered().map(|answered| &answered.decision)
    }

    fn answered(&self) -> Option<&Answered> {
        if let TrainStage::Answered(answered) = &self.stage { Some(answered) } else { None }
    }

    fn watch(&self) -> Option<&Watch> {
        self.answered()?.watch.as_deref()
    }
}

impl Answered {
    /// A packet was delivered after the answer: another answer if looks contradict it.
    fn look_again(&mut self, context: &mut Context, connection: usize, acked: &Acked) {
        if connection == 0 {
            context.hear_of_others(acked);
        }
        let Some(watch) = &mut self.watch else { return };
        match connection {
            _ if !watch.is_looking() || acked.retransmitted => context.meeting.interrupt(),
            0 => context.meeting.train_arrives(acked.now, acked.number, 0),
            _ => context.meeting.lone_arrives(acked.now),
        }
        if !watch.on_acked(connection, acked, &mut context.evidence) {
            return;
        }
        let smallest = watch.smallest();
        let Some(isolation) = context.answer_by(&watch.scale()) else { return };
        if isolation == Isolation::Isolated {
            (self.confirmed, context.met) = (acked.now, true);
        }
        if self.decision.isolation != isolation {
            let ratio = context.evidence.mean_ratio();
            self.revise(context, Decision { now: acked.now, isolation, ratio, smallest, ..self.decision });
        }
    }

    /// Another answer than before.
    fn revise(&mut self, context: &Context, decision: Decision) {
        let confidence = Some(context.evidence.confidence(decision.isolation));
        self.decision = Decision { confidence, ..decision };
        if let Some(watch) = &mut self.watch {
            watch.take_for(decision.isolation);
        }
    }
}
