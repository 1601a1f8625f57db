//! A long train that goes on while it arrives.

use flowstart_units::{Span, Time};

use super::pace::{Pace, follow};
use super::{Arrangement, Batch, Context};

/// Packets that leave two for each that arrives, as slow start's do, instead of waiting for the
/// train's last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Packets that the train had at first.
    pub(super) first: u32,
    /// Place of the first packet behind the pause in which nothing was left to leave, if there was
    /// one.
    resumed: Option<u32>,
    /// Pauses that packets which have arrived made when they left, that one or where a window held
    /// them back, and the place of the first behind the last of them: what a bucket lets pass
    /// begins anew there.
    pauses: u64,
    pub(super) part: u32,
    /// When the last packet left that has arrived.
    left: Option<Time>,
    /// When the packet behind the last one would leave.
    next: Time,
}

impl Growth {
    /// A train of `first` packets that could go on at the time `next`.
    pub(super) fn new(first: u32, next: Time) -> Self {
        Self { first, resumed: None, pauses: 0, part: 0, left: None, next }
    }
}

impl Batch {
    /// The train of the packet at this place, which left at the time `left` and has arrived, and
    /// whether it is the last one. What left behind a pause is another train.
    pub(super) fn train_of(&mut self, context: &mut Context, place: u32, left: Time) -> (u64, bool) {
        let before = self.growth.left.replace(self.growth.left.map_or(left, |before| before.max(left)));
        if self.arrangement == Arrangement::Sustained
            && before.is_some_and(|before| left.since(before) > Self::pause(context))
        {
            self.growth.pauses += 1;
            self.growth.part = place;
            context.persistence.begin_batch(context.service.unwrap_or(Span::from_micros(1)));
        }
        let train = place / self.length.max(1);
        let last = (place + 1).is_multiple_of(self.length.max(1)) || self.growth.resumed == Some(place + 1);
        (u64::from(train) + self.growth.pauses, last)
    }

    /// What is a pause in a long train if it is longer: the time of the packets between lone ones.
    fn pause(context: &Context) -> Span {
        context.service.unwrap_or(Span::from_micros(1)) * u64::from(context.config.proof_lone)
    }

    /// True if a train may go on: its rate is one that must be proven, single ACKs tell it, and
    /// nothing was lost.
    fn may_grow(&self, context: &Context) -> bool {
        let fast = context.service.is_some_and(|service| service < context.config.proof_service);
        let steady = !context.sides[0].stretched && !context.fell && !self.losses;
        fast && steady && self.arrangement == Arrangement::Sustained
    }

    /// Two packets more for each that arrived, up to as many as prove a rate.
    pub(super) fn grow(&mut self, context: &mut Context, now: Time) {
        if !self.may_grow(context) {
            return;
        }
        let config = context.config;
        let proof = self.growth.resumed.unwrap_or(0).saturating_add(config.proof + config.proof_lone);
        let wanted = self.growth.first.saturating_add(2 * self.arrivals.count()).min(proof);
        let service = context.service.unwrap_or(Span::from_micros(1));
        let pauses = now > self.growth.next + Self::pause(context);
        if wanted <= self.length || pauses && self.growth.resumed.is_some() {
            return;
        }
        self.take_back_followers(context);
        if pauses {
            self.growth.resumed = Some(self.length);
        }
        let (patience, build) = (context.patience(false), Self::build(context, service));
        let pace = Pace { build, gap: self.gap, steady: service.mul_f64(1.0 / config.proof_load) };
        let (at, resumed) = (self.growth.next.max(now), self.growth.resumed.unwrap_or(0));
        let places = self.length - resumed..wanted.max(self.length) - resumed;
        let [trains, lone] = &mut context.sides;
        self.growth.next = pace.plan([trains, lone], &config, at, places);
        self.length = self.length.max(wanted);
        self.arrivals.extend_to(self.from + u64::from(self.length));
        self.ends = self.from + u64::from(self.length + config.followers) - 1;
        let behind = self.growth.next + service * u64::from(build);
        self.lone_ends = follow([trains, lone], &config, behind, service * 2 + patience, patience, false);
    }

    /// What was to follow the train does not, as it goes on. What of it has left is of the train.
    fn take_back_followers(&mut self, context: &mut Context) {
        let followers = context.config.followers;
        let [trains, lone] = &mut context.sides;
        lone.plan.pop_back();
        let planned: u32 = trains.plan.iter().map(|(_, count)| *count).sum();
        let back = planned.min(followers);
        trains.plan.truncate(trains.plan.len().saturating_sub(back as usize));
        self.length += followers - back;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::ops::Range;

    use super::*;
    use crate::TrainProbeConfig;
    use crate::testing::sent;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// A long train of so many packets on a path that takes 50 us for each and ten milliseconds
    /// more.
    fn train_of(length: u32) -> (Context, Batch) {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        (context.began, context.service) = (Some(at(0)), Some(Span::from_micros(50)));
        context.sides[0].smallest = Some(Span::from_millis(10));
        let batch = Batch::plan(&mut context, Arrangement::Sustained, length, at(0), 0);
        (context, batch)
    }

    fn train() -> (Context, Batch) {
        train_of(20)
    }

    /// All that is planned up to a time leaves then.
    fn leave(context: &mut Context, until: Time) {
        for side in &mut context.sides {
            while let Some((due, _)) = side.plan.front().copied().filter(|(due, _)| *due <= until) {
                let number = side.sent;
                side.leave(&sent(due, number), 0);
            }
        }
    }

    /// When the train's packet with this place left.
    fn left(context: &Context, place: u64) -> Time {
        context.sides[0].find(place).unwrap().sent
    }

    /// The train's packets with these places arrive 50 us apart.
    fn arrive(context: &mut Context, batch: &mut Batch, places: Range<u64>, begin: Time) {
        for (place, nth) in places.zip(0..) {
            let now = begin + Span::from_micros(50) * nth;
            leave(context, now);
            batch.arrivals.add(now, place);
            let left = left(context, place);
            let (train, _) = batch.train_of(context, place as u32, left);
            context.persistence.add(now, left, train, 8, 1.5);
            batch.grow(context, now);
        }
    }

    #[test]
    fn two_packets_leave_for_each_that_arrives_and_what_was_to_follow_has_become_part_of_it() {
        let (mut context, mut batch) = train();
        leave(&mut context, at(9_000));
        assert_eq!((context.sides[0].sent, batch.length, batch.ends), (22, 20, 21), "with two that follow");
        arrive(&mut context, &mut batch, 0..1, at(11_000));
        assert_eq!((batch.length, batch.growth.resumed), (22, Some(22)));
        arrive(&mut context, &mut batch, 1..5, at(11_050));
        assert_eq!((batch.length, batch.ends), (20 + 2 * 5, 31));
        // It makes a queue again, as the first one is gone: the rate times 2.2 up to the eighth,
        // but no more than two for an ACK.
        let [trains, lone] = &context.sides;
        let planned: Vec<_> = trains.plan.iter().map(|(due, _)| due.since(at(11_000)).as_nanos()).collect();
        assert_eq!(trains.sent + trains.plan.len() as u64, 32, "two follow again");
        assert_eq!(planned[..2], [200_000, 222_727]);
        assert_eq!(lone.plan.front().map(|(due, _)| due.since(at(11_000)).as_nanos()), Some(222_727));
        assert_eq!(batch.lone_ends, lone.sent + 2);
    }

    #[test]
    fn what_is_still_to_leave_is_followed_without_a_pause() {
        let (mut context, mut batch) = train();
        leave(&mut context, at(500));
        let planned = context.sides[0].plan.len();
        arrive(&mut context, &mut batch, 0..2, at(600));
        assert_eq!((batch.length, batch.growth.resumed, batch.ends), (24, None, 25));
        let plan: Vec<Time> = context.sides[0].plan.iter().map(|(due, _)| *due).collect();
        assert!(context.sides[0].plan.len() > planned - 4 && plan.is_sorted());
        // Steadily, as it stands in a queue.
        let steady = Span::from_micros(50).mul_f64(1.0 / 1.05);
        let last = plan.len() - 3;
        assert_eq!(plan[last].since(plan[last - 1]), steady);
        let (_, is_last) = batch.train_of(&mut context, 23, plan[last]);
        assert!(is_last);
    }

    #[test]
    fn it_ends_with_what_proves_a_rate_behind_the_pause() {
        let (mut context, mut batch) = train_of(120);
        leave(&mut context, at(9_000));
        arrive(&mut context, &mut batch, 0..120, at(11_000));
        let most = 122 + context.config.proof + context.config.proof_lone;
        assert_eq!((batch.length, batch.growth.resumed), (most, Some(122)));
        arrive(&mut context, &mut batch, 122..321, at(21_200));
        assert_eq!((context.persistence.packets(), context.is_proven()), (199, false), "from the pause on");
        arrive(&mut context, &mut batch, 321..322, at(31_150));
        assert_eq!((batch.length, context.is_proven()), (most, true));
    }

    #[test]
    fn another_pause_ends_it() {
        let (mut context, mut batch) = train();
        leave(&mut context, at(9_000));
        arrive(&mut context, &mut batch, 0..3, at(11_000));
        let (length, ends) = (batch.length, batch.ends);
        arrive(&mut context, &mut batch, 3..6, at(16_000));
        assert_eq!((batch.length, batch.ends), (length, ends));
    }

    #[test]
    fn only_a_long_train_at_a_rate_to_be_proven_without_losses_or_merged_acks_goes_on() {
        type Change = fn(&mut Context, &mut Batch);
        let changes: [(Change, u32); 6] = [
            (|_, _| (), 22),
            (|context, _| context.service = Some(context.config.proof_service), 20),
            (|context, _| context.sides[0].stretched = true, 20),
            (|context, _| context.fell = true, 20),
            (|_, batch| batch.losses = true, 20),
            (|_, batch| batch.arrangement = Arrangement::Spaced, 20),
        ];
        for (nth, (change, length)) in changes.into_iter().enumerate() {
            let (mut context, mut batch) = train();
            leave(&mut context, at(9_000));
            change(&mut context, &mut batch);
            arrive(&mut context, &mut batch, 0..1, at(11_000));
            assert_eq!(batch.length, length, "{nth}");
        }
    }

    #[test]
    fn what_left_behind_a_pause_is_another_train_and_tells_the_rate_anew() {
        let (mut context, mut batch) = train();
        leave(&mut context, at(9_000));
        arrive(&mut context, &mut batch, 0..5, at(11_000));
        leave(&mut context, at(12_000));
        let mut next = |context: &mut Context, place: u64| {
            context.persistence.count();
            let train = batch.train_of(context, place as u32, left(context, place));
            (train, context.persistence.packets(), batch.growth.part)
        };
        (5..20).for_each(|place| assert_eq!(next(&mut context, place), ((0, false), place as u32 + 1, 0)));
        assert_eq!(next(&mut context, 20), ((0, false), 21, 0));
        assert_eq!(next(&mut context, 21), ((0, true), 22, 0));
        assert_eq!(next(&mut context, 22), ((1, false), 0, 22));
        assert_eq!(next(&mut context, 29), ((1, true), 1, 22));
    }

    /// Seen with the receive window of Linux above 60 Mbit/s: the second half of the train waited
    /// for it, and the rate seemed to fall to a tenth.
    #[test]
    fn what_a_window_held_back_is_another_train_however_often() {
        let (mut context, mut batch) = train();
        let mut train = |place, micros| batch.train_of(&mut context, place, at(micros)).0;
        assert_eq!([train(0, 0), train(1, 800), train(2, 1_600)], [0; 3], "sixteen packets take 800 us");
        assert_eq!([train(3, 2_401), train(4, 2_450), train(5, 9_000)], [1, 1, 2]);
        // One that was overtaken makes no other.
        assert_eq!([train(6, 100), train(7, 9_050)], [2, 2]);
        batch.arrangement = Arrangement::Spaced;
        assert_eq!(batch.train_of(&mut context, 19, at(20_000)).0, 2);
    }
}
