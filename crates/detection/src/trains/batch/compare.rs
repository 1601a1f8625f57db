//! A train alone and one beside a train of the other connection: whether both meet.

use flowstart_units::{Span, Time};

use super::{Arrangement, Batch, Context, Next};

impl Batch {
    /// What the second train took longer than the first as evidence.
    pub(super) fn weigh_trains(&mut self, context: &mut Context) {
        let [Some(alone), Some(beside)] = self.passages else { return };
        let (jitter, config, before) = (context.noise(), context.config.meeting, context.bulk);
        context.bulk.add(alone, beside, jitter, &config);
        // Packets that are sent again take the time of others, and of those that were lost none is
        // seen: neither speaks for one queue.
        let few = f64::from(self.length) * context.config.full_loss;
        let repaired = f64::from(self.repairs.max(self.missing())) > few;
        if repaired && context.bulk.log_odds(&config) > before.log_odds(&config) {
            context.bulk = before;
        }
        let told = context.bulk.log_odds(&config) - before.log_odds(&config);
        self.is_clear = told.abs() * 2.0 >= libm::log((1.0 - config.error) / config.error);
    }

    /// Packets of its trains that have not arrived.
    pub(super) fn missing(&self) -> u32 {
        (self.length * self.trains).saturating_sub(self.arrivals.count())
    }

    /// A train alone and one beside another, long enough to stand out from the noise.
    pub(super) fn compare(&self, context: &mut Context, now: Time, over: bool) -> Next {
        let config = context.config;
        let service = context.service.unwrap_or(Span::ZERO);
        // If others are served in turn, it is longer by less.
        let (told, noise) = (context.told(), context.jitter());
        let times = if told > service.mul_f64(config.fall) { 2 } else { 1 };
        let mut length = Self::reckoned(context, told).max(config.train_at_once * 2).saturating_mul(times);
        if context.fell {
            // So many a bucket let pass.
            length += self.before_queue / self.trains;
        }
        // Of those that did not arrive with the last ones it is not known yet that they were lost.
        let missing = if over {
            (self.length * self.trains).saturating_sub(self.arrivals.count())
        } else {
            self.lost(context, 0)
        };
        if missing > 0 {
            // The buffer holds no more than what was queued, and of a train beside another more is.
            let held = (self.highest - context.noise()).whole(told.max(Span::from_nanos(1)));
            let held = u32::try_from(held).unwrap_or(u32::MAX);
            let fits = (f64::from(held) / (1.0 - 0.5 / config.train_load)) as u32;
            let shorter =
                if self.arrangement == Arrangement::Together { self.length - self.length / 4 } else { u32::MAX };
            let fits = fits.min(shorter).max(config.train_at_once * 2);
            context.fits = Some(context.fits.map_or(fits, |known| known.min(fits)));
        }
        if self.arrangement == Arrangement::Together {
            let times = if self.is_clear { 1 } else { 2 };
            length = length.max(self.length.saturating_mul(times));
        }
        length = length.min(context.fits.unwrap_or(u32::MAX));
        let left = context.deadline().map_or(Span::ZERO, |deadline| deadline.since(now)) - context.smallest();
        let fits = left.whole(told.mul_f64(config.meeting.bulk_trains).max(Span::from_nanos(1)));
        length = length.min(u32::try_from(fits).unwrap_or(u32::MAX).max(config.train_at_once));
        let length = length.min(config.longest_train);
        context.proven = true;
        context.noise.get_or_insert(noise);
        context.to_repair = [missing, if self.arrangement == Arrangement::Together { missing } else { 0 }];
        if self.arrangement == Arrangement::Together {
            context.sides[1].flying.clear();
        }
        Next::Batch { arrangement: Arrangement::Together, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrainProbeConfig;
    use crate::trains::bulk::Passage;
    use alloc::collections::VecDeque;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Two trains of forty packets that take a millisecond each, of which so many arrived and
    /// waited for twenty milliseconds at most.
    fn compared(arrived: u64) -> (Context, Batch) {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        context.began = Some(at(0));
        context.service = Some(Span::from_millis(1));
        context.sides[0].smallest = Some(Span::from_millis(10));
        let mut batch = Batch::plan(&mut context, Arrangement::Together, 40, at(20), 0);
        (0..arrived).for_each(|number| _ = batch.arrivals.add(at(40 + number), number));
        batch.highest = Span::from_millis(20);
        (context, batch)
    }

    /// Seen over two ways with token buckets beside CUBIC: of the second train a quarter arrived.
    #[test]
    fn trains_that_lost_much_do_not_speak_for_one_queue() {
        for (arrived, speaks) in [(80, true), (76, true), (75, false)] {
            let (mut context, mut batch) = compared(arrived);
            let passage = |gap: u64| (0..40).fold(None, |passage, nth| Some(Passage::add(passage, at(nth * gap))));
            batch.passages = [passage(1), passage(2)];
            batch.weigh_trains(&mut context);
            assert_eq!(context.bulk.log_odds(&context.config.meeting) > 1.0, speaks, "{arrived}");
        }
    }

    #[test]
    fn trains_that_told_too_little_are_followed_by_longer_ones_and_others_by_the_same() {
        for (is_clear, length) in [(false, 80), (true, 40)] {
            let (mut context, batch) = compared(80);
            let batch = Batch { is_clear, ..batch };
            let next = batch.compare(&mut context, at(200), true);
            assert_eq!(next, Next::Batch { arrangement: Arrangement::Together, length });
            assert_eq!((context.to_repair, context.fits), ([0, 0], None));
        }
    }

    #[test]
    fn after_losses_trains_are_as_long_as_fits_and_what_was_lost_goes_before_them() {
        let (mut context, batch) = compared(70);
        // Twenty were queued, and 0.77 of a train at 2.2 times the rate beside another are.
        let next = batch.compare(&mut context, at(200), true);
        assert_eq!(next, Next::Batch { arrangement: Arrangement::Together, length: 25 });
        assert_eq!((context.to_repair, context.fits), ([10, 10], Some(25)));
        context.clear_plans();
        let mut batch = Batch::plan(&mut context, Arrangement::Together, 25, at(200), 82);
        let [train, lone] = &context.sides;
        let before = |side: &VecDeque<(Time, u32)>| side.iter().take(11).map(|(at, _)| *at).collect::<Vec<_>>();
        let apart = Span::from_millis(1);
        assert_eq!(before(&train.plan)[..10], core::array::from_fn::<_, 10, _>(|nth| at(200) + apart * nth as u64));
        assert_eq!(before(&train.plan)[10], at(220), "behind those of both");
        assert_eq!(before(&lone.plan)[9], at(219));
        assert_eq!((train.plan.len(), lone.plan.len()), (10 + 50 + 2, 10 + 25 + 1));
        // What is sent again before the trains does not disturb them.
        for (connection, number, repairs) in [(0, 91, 0), (1, 9, 0), (0, 92, 1), (1, 10, 2)] {
            batch.on_repair(connection, number);
            assert_eq!(batch.repairs, repairs, "{connection} {number}");
        }
        assert_eq!(context.to_repair, [0, 0]);
    }
}
