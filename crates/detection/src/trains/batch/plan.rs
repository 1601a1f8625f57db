//! What leaves in a batch, and when.

use flowstart_units::{Span, Time};

use super::growth::Growth;
use super::pace::{Pace, follow};
use super::{Arrangement, Arrivals, Batch, Context, Dispersion};

/// Packets of both connections leave in this order.
const NEXT: Span = Span::from_nanos(1);

impl Batch {
    /// Another batch, instead of all that was planned.
    pub(in crate::trains) fn begin(context: &mut Context, now: Time, arrangement: Arrangement, length: u32) -> Self {
        context.attempts += 1;
        context.clear_plans();
        let sent = context.sides[0].sent;
        Self::plan(context, arrangement, length, now, sent)
    }

    /// Plans trains of `length` packets from the time `begin` on, with lone packets; `before`
    /// packets of connection 0 leave before.
    pub(in crate::trains) fn plan(
        context: &mut Context,
        arrangement: Arrangement,
        length: u32,
        begin: Time,
        before: u64,
    ) -> Self {
        let bursts = arrangement == Arrangement::Bursts;
        // Trains that are compared must not begin before those before them have passed.
        let together = arrangement == Arrangement::Together;
        context.lone.clear();
        let service = if together { context.told() } else { context.service.unwrap_or(Span::from_micros(1)) };
        let patience = context.patience(bursts);
        let build = Self::build(context, service);
        let Context {
            config, random, sides: [trains, lone], dispersion, persistence, meeting, crowd, to_repair, ..
        } = context;
        let apart = (service * u64::from(length + 1)).mul_f64(config.apart);
        let gap = service.mul_f64(1.0 / config.train_load);
        let mut at = begin;
        // What was lost is sent again before trains that are compared, one packet after the other.
        let repairs = if together { core::mem::take(to_repair) } else { [0, 0] };
        for (side, repairs) in [&mut *trains, &mut *lone].into_iter().zip(repairs) {
            for _ in 0..repairs {
                side.plan.push_back((at, 1));
                at += service;
            }
        }
        let before = before + u64::from(repairs[0]);
        let lone_from = lone.sent + u64::from(repairs[1]);
        let mut taken = Span::ZERO;
        let count = match arrangement {
            Arrangement::Sustained => 1,
            Arrangement::Together => 2,
            _ => config.batch,
        };
        for nth in 0..count {
            let leaves = |place: u32| at + gap * u64::from(place);
            match arrangement {
                Arrangement::Bursts => {
                    // Like trains: what leaves at once queues at the sender's own card, and where
                    // that serves flows in turn the lone packet overtakes the burst there.
                    trains.plan.extend((0..length - 1).map(|place| (leaves(place), 1)));
                    let last = leaves(length.saturating_sub(2));
                    lone.plan.push_back((last + NEXT, 1));
                    trains.plan.push_back((last + NEXT * 2, 1));
                }
                Arrangement::Spaced => {
                    trains.plan.extend((0..length).map(|place| (leaves(place), 1)));
                    lone.plan.push_back((leaves(length - 1), config.lone));
                }
                Arrangement::Sustained => {
                    // Where bursts pass they must be spent before anything queues.
                    let fallen = persistence.has_fallen();
                    let steady = if fallen { gap } else { service.mul_f64(1.0 / config.proof_load) };
                    let pace = Pace { build, gap, steady };
                    let left = pace.plan([&mut *trains, &mut *lone], config, at, 0..length);
                    if !pace.has_lone(config, length - 1) {
                        // Behind its last packet.
                        lone.plan.extend(trains.plan.back().map(|(last, _)| (*last, config.lone)));
                    }
                    taken = left.since(at);
                    at = left;
                }
                Arrangement::Together => {
                    trains.plan.extend((0..length).map(|place| (leaves(place), 1)));
                    if nth > 0 {
                        lone.plan.extend((0..length).map(|place| (leaves(place), 1)));
                    }
                }
                Arrangement::AtOnce => {
                    trains.plan.extend((0..length).map(|place| (leaves(place), 1)));
                    let behind = |nth: u32| length.saturating_sub(1 + nth * config.lone_apart);
                    lone.plan.extend((0..config.lone).rev().map(|nth| (leaves(behind(nth)), 1)));
                }
            }
            // Nothing locks in phase with bursts.
            let uneven = |random: f64| apart.mul_f64(1.0 + config.burst_jitter * (2.0 * random - 1.0));
            at += match arrangement {
                Arrangement::Bursts => uneven(random.unit()),
                Arrangement::Sustained => service * u64::from(build),
                Arrangement::Spaced | Arrangement::AtOnce => apart,
                Arrangement::Together => apart.mul_f64(config.together_apart),
            };
        }
        // What follows finds the last losses; where bursts are called for the buffer may be full
        // for a while.
        let lone_ends = follow([trains, lone], config, at, service * 2 + patience, patience, bursts);
        let apart_enough = matches!(arrangement, Arrangement::AtOnce | Arrangement::Spaced);
        crowd.begin(before, length, if apart_enough { count } else { 0 });
        dispersion.begin_batch();
        meeting.interrupt();
        persistence.begin_batch(service);
        Self {
            arrangement,
            length,
            trains: count,
            from: before,
            lone_from,
            lone_ends,
            repairs: 0,
            ends: before + u64::from(count * length + config.followers) - 1,
            dispersion: Dispersion::default(),
            gap,
            left: if taken.is_zero() { gap } else { taken / u64::from(length.max(1)) },
            arrivals: Arrivals::new(before, count * length),
            highest: Span::ZERO,
            before_queue: 0,
            losses: false,
            weighed: false,
            overflowed: false,
            is_clear: false,
            passages: [None; 2],
            growth: Growth::new(length, begin + taken),
        }
    }

    /// Packets of a long train that leave faster than the others, so that there is a queue.
    pub(super) fn build(context: &Context, service: Span) -> u32 {
        Self::reckoned(context, service).max(context.config.shortest_train)
    }

    /// Packets of a train whose last one is to wait for long enough to stand out from jitter.
    /// `service` is the time that the bottleneck takes for each.
    pub(super) fn reckoned(context: &Context, service: Span) -> u32 {
        let config = &context.config;
        let wanted = context.noise().mul_f64(config.least_jitters);
        let needed = if service.is_zero() { 0 } else { wanted.whole(service) };
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        // Of a train at twice the rate half is queued, and so on.
        let share = 1.0 - 1.0 / config.train_load;
        ((f64::from(needed) / share) as u32).saturating_add(1).min(config.longest_train)
    }
}
