//! The first train, whose arrivals tell how fast the bottleneck is, and what follows it: packets
//! spread in time with a batch behind them, a batch at once, or a few packets that find losses.

use flowstart_units::{Span, Time};

use crate::Acked;

use super::arrivals::Arrivals;
use super::batch::{Batch, FLANKS};
use super::context::Context;
use super::next::{Arrangement, Next};
use super::side::round_trip;

/// The first train is out, or packets spread in time are.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) arrivals: Arrivals,
    /// Packets of the trains that follow.
    length: u32,
    /// Packets of connection 0 were lost.
    losses: bool,
    following: Option<Following>,
}

/// What follows the first train.
#[derive(Clone, Copy, Debug)]
struct Following {
    /// Number of the last packet before the batch, or of the last at all without one.
    ends: u64,
    /// The first of it has left: what is planned stays.
    begun: bool,
    /// The batch behind it. Without one only a few packets follow.
    batch: Option<Batch>,
}

impl First {
    /// The first train is about to leave.
    pub(super) fn new(context: &Context) -> Self {
        let arrivals = Arrivals::new(0, context.config.train);
        Self { arrivals, length: context.config.shortest_train, losses: false, following: None }
    }

    /// The rate is known as these arrivals told it: packets spread in time, which tell the jitter,
    /// and a batch behind them.
    pub(super) fn again(context: &mut Context, now: Time, arrivals: Arrivals, length: u32) -> Self {
        context.attempts += 1;
        let mut first = Self { arrivals, length, losses: false, following: None };
        let service = context.service.unwrap_or(Span::from_micros(1));
        first.following = Some(first.plan_spread(context, now, service));
        first
    }

    /// A packet of connection 0 leaves, as planned or as a repair that a timer called for.
    pub(super) fn on_sent(&mut self, as_planned: bool) {
        if let Some(following) = &mut self.following {
            following.begun |= as_planned;
        }
    }

    /// The batch that was planned behind the first train, with what was lost so far.
    pub(super) fn planned(&self) -> Option<Batch> {
        let batch = self.following?.batch?;
        Some(batch.with_losses(self.losses))
    }

    /// A lone packet was delivered.
    pub(super) fn on_lone_acked(&self, context: &mut Context, acked: &Acked) {
        let at_once = self.following.and_then(|following| following.batch).is_some_and(|batch| batch.is_at_once());
        if !at_once {
            // It met no queue of ours.
            context.calm.add(acked);
        }
    }

    /// A packet of connection 0 was delivered.
    pub(super) fn on_acked(&mut self, context: &mut Context, acked: &Acked) -> Next {
        let (now, number) = (acked.now, acked.number);
        self.losses = context.sides[0].has_losses();
        let of_train = self.arrivals.add(now, number);
        context.note_rest();
        if of_train && self.arrivals.count() == 1 {
            // If no other arrives a packet after this time tells so.
            let after = round_trip(acked).mul_f64(context.config.follow_rtts);
            context.sides[0].plan.push_back((now + after, 1));
        }
        let Some(first) = self.arrivals.tell_a_rate_since(context.config.train) else {
            return if self.arrivals.are_over(number) { Next::Chirp } else { Next::Stay };
        };
        // Of a train with losses, the time that those take that arrived next to each other; a train
        // that arrived at once is faster than can be measured. With jitter two may arrive as close
        // together as if the bottleneck were many times as fast: trains at that rate would queue at
        // the sender's own card, where lone packets overtake them.
        let mean = self.arrivals.mean_gap();
        let quickest = self.arrivals.quickest().filter(|_| self.losses);
        let gap = quickest.map_or(mean, |quickest| quickest.max(mean.mul_f64(context.config.quickest_share)));
        let service = gap.max(Span::from_micros(1)).max(context.known);
        if of_train {
            context.service = Some(service);
            // Planned anew with every ACK, as the estimate improves.
            if !self.following.is_some_and(|following| following.begun) {
                self.following = Some(self.plan(context, acked, first, service));
            }
        }
        let Some(following) = &self.following else { return Next::Stay };
        let Some(batch) = &following.batch else {
            return if number >= following.ends { self.after_followers(context, service) } else { Next::Stay };
        };
        if !of_train && number <= following.ends {
            // The spread packets met no queue of ours.
            context.calm.add(acked);
        }
        if number < following.ends {
            return Next::Stay;
        }
        if batch.is_at_once() {
            context.uneven = self.arrivals.unevenness(service);
        }
        Next::Planned
    }

    /// True if a packet with this number, which was delivered, is of the planned batch.
    pub(super) fn is_of_batch(&self, number: u64) -> bool {
        self.following.is_some_and(|following| number > following.ends)
    }

    /// Plans what follows the first train, whose first ACK came at the time `first`.
    fn plan(&self, context: &mut Context, acked: &Acked, first: Time, service: Span) -> Following {
        let config = &context.config;
        let through = first + service * u64::from(config.train + 1);
        if self.tells_all(context, acked, service) {
            self.plan_at_once(context, acked.now, service)
        } else if f64::from(self.arrivals.count()) <= config.least_queue {
            // Jitter may hold back the rest.
            let patient = acked.now + context.smallest().mul_f64(config.follow_rtts);
            Self::plan_followers(context, through.max(patient))
        } else {
            // Not in the past: then all would leave at once.
            self.plan_spread(context, through.max(acked.now), service)
        }
    }

    /// True if the first train arrives packet by packet and evenly: then nothing is to be learnt of
    /// packets spread in time.
    fn tells_all(&self, context: &Context, acked: &Acked, service: Span) -> bool {
        let even = self.arrivals.unevenness(service) <= service.mul_f64(context.config.even_gaps);
        let enough = self.arrivals.after_first() >= context.config.enough_gaps;
        self.arrivals.are_in_order_up_to(acked.number) && even && enough && context.sides[1].open
    }

    /// A batch as soon as the first train has left the bottleneck's queue; the first packets of its
    /// first train use up a new flow's credit.
    fn plan_at_once(&self, context: &mut Context, now: Time, service: Span) -> Following {
        let through = context.began.unwrap_or(now) + service * u64::from(context.config.train);
        context.clear_plans();
        context.attempts = context.attempts.max(1);
        let before = context.sides[0].sent;
        let length = context.config.train_at_once;
        let batch = Batch::plan(context, Arrangement::AtOnce, length, now.max(through), before);
        Following { ends: before - 1, begun: false, batch: Some(batch) }
    }

    /// As long as no more of the first train has arrived than a buffer holds that shows no delays,
    /// only a few packets follow, which find out whether the rest was lost.
    fn plan_followers(context: &mut Context, begin: Time) -> Following {
        let apart = context.smallest().mul_f64(context.config.follow_rtts);
        context.clear_plans();
        let followers = context.config.followers;
        let trains = &mut context.sides[0];
        for index in 0..followers {
            trains.plan.push_back((begin + apart * u64::from(index), 1));
        }
        Following { ends: trains.sent + u64::from(followers) - 1, begun: false, batch: None }
    }

    /// The spread packets and a batch behind them.
    fn plan_spread(&self, context: &mut Context, begin: Time, service: Span) -> Following {
        let Context { config, sides: [trains, lone], .. } = context;
        let (apart, spread) = (config.spread_apart, config.spread);
        trains.plan.clear();
        for index in 0..spread {
            trains.plan.push_back((begin + service * u64::from(apart * index), 1));
        }
        if lone.sent == 0 {
            // Between two of them: it tells the delay of its own path.
            lone.plan.clear();
            lone.plan.push_back((begin + service * u64::from(spread) + service, config.lone));
        }
        let before = trains.sent + u64::from(spread);
        context.attempts = context.attempts.max(1);
        let begin = begin + service * u64::from(apart * spread);
        let batch = Batch::plan(context, Arrangement::Spaced, self.length, begin, before);
        Following { ends: before - 1, begun: false, batch: Some(batch) }
    }

    /// What was missing of the first train has arrived late, or the path holds no more than what
    /// arrived.
    fn after_followers(&self, context: &mut Context, service: Span) -> Next {
        context.service = Some(service);
        let arrived = self.arrivals.count();
        let last = context.sides[0].find(self.arrivals.last_number());
        if arrived >= context.config.train || last.is_some_and(|packet| packet.rtt.is_some()) {
            // What is missing was not lost because the buffer was full.
            return Next::Again { length: self.length };
        }
        let length = (arrived + FLANKS).max(FLANKS * 2).min(self.length);
        Next::Batch { arrangement: Arrangement::Bursts, length }
    }
}
