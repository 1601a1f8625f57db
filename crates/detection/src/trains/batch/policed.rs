//! Whether a train that is to prove a rate met a policer.

use alloc::vec::Vec;

use flowstart_units::Time;

use super::{Arrangement, Batch, Context, Flying};
use crate::trains::policing::{Lone, Passed};

/// What its losses say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policing {
    /// None that a policer must explain.
    None,
    /// They are rather those of a full buffer.
    Buffer,
    /// They may be those of a policer.
    Doubtful,
    /// They are those of a policer.
    Seen,
}

impl Policing {
    /// True if "isolated" may be said of a train with such losses.
    pub(super) fn allows(self) -> bool {
        matches!(self, Self::None | Self::Buffer)
    }
}

impl Batch {
    /// Keeps what became of these lone packets.
    pub(super) fn note_lone(&self, context: &mut Context, packets: &[Option<Flying>]) {
        let smallest = context.smallest();
        let mine = packets.iter().flatten().filter(|packet| packet.number >= self.lone_from);
        context.lone.extend(mine.map(|packet| {
            let at = packet.arrived.unwrap_or(packet.sent + smallest);
            Lone { at, lost: packet.arrived.is_none() }
        }));
    }

    /// True if what is still under way of a long train may meet the end of a bucket, and that of a
    /// buffer was not seen yet.
    pub(super) fn may_tell_more(&self, context: &Context, policing: Policing) -> bool {
        let fast = context.service.is_some_and(|service| service < context.config.proof_service);
        fast && self.arrangement == Arrangement::Sustained && policing != Policing::Buffer
    }

    /// True if "isolated" would be said but for losses that are a policer's.
    pub(super) fn meets_policer(&self, context: &Context) -> bool {
        let isolated = context.evidence.error_if_isolated() <= context.config.isolated_error;
        isolated && self.policing(context) == Policing::Seen
    }

    /// What the losses of a long train say so far.
    pub(super) fn policing(&self, context: &Context) -> Policing {
        if self.arrangement != Arrangement::Sustained {
            return Policing::None;
        }
        let ends = self.from + u64::from(self.length);
        // Not what left before a pause: the link was not busy then.
        let from = self.from + u64::from(self.growth.part);
        let mine = context.sides[0].flying.iter().filter(|packet| (from..ends).contains(&packet.number));
        let settled = mine.take_while(|packet| packet.is_settled());
        let train: Vec<Option<Time>> = settled.map(|packet| packet.arrived).collect();
        let config = &context.config.policing;
        let lone_lost = context.config.evidence.lone_lost_isolated;
        let (jitter, group) = (context.jitter(), context.config.lone);
        let passed = Passed { train: &train, lone: &context.lone, jitter, queued: false, group, lone_lost };
        let Some(onset) = passed.onset().filter(|onset| onset.error <= config.doubt) else { return Policing::None };
        let scale = context.scale();
        let before = (from + onset.from as u64).checked_sub(1);
        let rtt = before.and_then(|before| context.sides[0].delay_before(before, self.length, scale.service));
        let queued = rtt.is_some_and(|rtt| scale.is_queue(scale.excess(rtt), &context.config));
        let passed = Passed { queued, ..passed };
        let (log_odds, enough) = (passed.log_odds(onset.from, config), libm::log(config.odds));
        if log_odds <= -enough {
            return Policing::Buffer;
        }
        let seen = onset.error <= config.error && log_odds >= enough;
        if seen { Policing::Seen } else { Policing::Doubtful }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Span;

    use super::*;
    use crate::TrainProbeConfig;
    use crate::trains::evidence::Evidence;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// A train of 268 packets of 12 us, of which 180 are settled and two in five were lost from
    /// packet 143 on, with evidence for a queue of its own or without.
    fn policed(arrangement: Arrangement, own: bool) -> (Context, Batch) {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        (context.began, context.service) = (Some(at(0)), Some(Span::from_micros(12)));
        context.sides[0].smallest = Some(Span::from_millis(30));
        let batch = Batch::plan(&mut context, arrangement, 268, at(0), 0);
        let packet = |number: u64| {
            let lost = number >= 143 && matches!((number - 143) % 5, 0 | 2);
            let arrived = (number < 180 && !lost).then(|| at(30_000 + number * 12));
            let rtt = arrived.map(|_| Span::from_millis(30));
            Flying {
                number,
                sent: at(number * 11),
                neighbour: 0,
                rtt,
                lost: lost && number < 180,
                arrived,
                newest: Span::ZERO,
            }
        };
        context.sides[0].flying.extend((0..270).map(packet));
        context.evidence = Evidence::new(context.config.evidence);
        (0..3).filter(|_| own).for_each(|_| context.evidence.ratio(0.1, 0.0));
        (context, batch)
    }

    #[test]
    fn what_a_policer_lost_of_a_long_train_is_no_queue_of_its_own() {
        let (context, batch) = policed(Arrangement::Sustained, true);
        assert_eq!(batch.policing(&context), Policing::Seen);
        assert!(batch.meets_policer(&context) && batch.is_policed(&context));
        // Trains with pauses between them begin with a full bucket again.
        let (context, batch) = policed(Arrangement::Spaced, true);
        assert_eq!(batch.policing(&context), Policing::None);
        // Nobody would say "isolated".
        let (context, batch) = policed(Arrangement::Sustained, false);
        assert!(!batch.meets_policer(&context) && !batch.is_policed(&context));
    }

    #[test]
    fn as_long_as_losses_may_be_a_policers_more_is_waited_for() {
        let (mut context, batch) = policed(Arrangement::Sustained, true);
        // Two lost packets, 143 and 145, of 146.
        context.sides[0].flying.truncate(147);
        assert_eq!(batch.policing(&context), Policing::Doubtful);
        assert!(!batch.policing(&context).allows(), "\"isolated\" waits");
        assert!(!batch.meets_policer(&context) && batch.may_tell_more(&context, Policing::None));
        context.service = Some(context.config.proof_service);
        assert!(!batch.may_tell_more(&context, Policing::None));
    }

    /// Its first packet behind the pause is the 111th: with what came before it the link would seem
    /// to take far longer for each, and what was lost to leave no hole.
    #[test]
    fn what_arrived_before_a_pause_does_not_tell_of_losses_behind_it() {
        let (mut context, batch) = policed(Arrangement::Sustained, true);
        let later = context.sides[0].flying.iter_mut().skip(110).filter_map(|packet| packet.arrived.as_mut());
        later.for_each(|arrived| *arrived += Span::from_millis(20));
        let from = |part| {
            let mut growth = batch.growth;
            growth.part = part;
            Batch { growth, ..batch }.policing(&context)
        };
        assert_eq!([110, 0].map(from), [Policing::Seen, Policing::Buffer]);
    }
}
