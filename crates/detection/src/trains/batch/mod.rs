//! Batches of trains with lone packets behind them, and what the delays of the latter say.

mod compare;
mod growth;
mod pace;
mod plan;
mod policed;

use flowstart_units::{Span, Time};

use crate::Acked;
use crate::answer::Isolation;
use crate::trains::arrivals::Arrivals;
use crate::trains::bulk::Passage;
use crate::trains::context::Context;
use crate::trains::dispersion::Dispersion;
use crate::trains::next::{Arrangement, Next};
use crate::trains::side::{Flying, round_trip};
use growth::Growth;
use policed::Policing;

/// Packets of a burst around a lone one.
pub(in crate::trains) const FLANKS: u32 = 2;

/// A batch of trains: where it is, and what was seen of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::trains) struct Batch {
    arrangement: Arrangement,
    /// Packets of a train.
    length: u32,
    /// How many trains.
    trains: u32,
    /// Numbers of the first packet of its trains and of the last packet that follows them.
    from: u64,
    ends: u64,
    /// Numbers of its first packet of connection 1, and of the first that only follows.
    lone_from: u64,
    lone_ends: u64,
    /// Packets of its trains that were sent again.
    repairs: u32,
    /// How far apart its packets arrive.
    dispersion: Dispersion,
    /// How far apart those of its trains leave.
    gap: Span,
    /// Mean time between packets of its trains when they left.
    left: Span,
    /// How its trains arrive.
    arrivals: Arrivals,
    /// Largest delay beyond the smallest.
    highest: Span,
    /// Packets of its trains that met no queue.
    before_queue: u32,
    /// Packets of connection 0 were lost.
    losses: bool,
    /// A lone packet told something.
    weighed: bool,
    /// Packets around a lone one were lost.
    overflowed: bool,
    /// What trains that were compared told is half of what an answer takes, or more.
    is_clear: bool,
    /// Its trains, if the second is compared with the first.
    passages: [Option<Passage>; 2],
    /// How it goes on while it arrives.
    growth: Growth,
}

impl Batch {
    /// The same batch, with what is known of losses.
    pub(in crate::trains) fn with_losses(self, losses: bool) -> Self {
        Self { losses, ..self }
    }

    /// True if it follows the first train at once.
    pub(in crate::trains) fn is_at_once(&self) -> bool {
        self.arrangement == Arrangement::AtOnce
    }

    /// True if its trains are bursts.
    pub(in crate::trains) fn is_of_bursts(&self) -> bool {
        self.arrangement == Arrangement::Bursts
    }

    /// A packet that is sent again leaves.
    pub(in crate::trains) fn on_repair(&mut self, connection: usize, number: u64) {
        let from = if connection == 0 { self.from } else { self.lone_from };
        self.repairs = self.repairs.saturating_add(u32::from(number >= from));
    }

    /// A packet of a connection was delivered.
    pub(in crate::trains) fn on_acked(&mut self, context: &mut Context, connection: usize, acked: &Acked) -> Next {
        if connection == 0 {
            self.losses |= self.lost(context, 0) > 0;
            if self.measure(context, acked) {
                return self.after_fall(context);
            }
            self.grow(context, acked.now);
        } else {
            context.meeting.lone_arrives(acked.now);
            context.persistence.lone_arrives();
        }
        if self.arrangement != Arrangement::Together {
            self.weigh(context);
        }
        // What follows is not compared.
        let behind = if self.arrangement == Arrangement::Together { context.config.followers } else { 0 };
        let over = connection == 0 && acked.number + u64::from(behind) >= self.ends || self.has_arrived(context);
        if over {
            self.weigh_trains(context);
        }
        if context.are_apart() {
            return Next::Answer(Isolation::Unknown);
        }
        let stretched = context.sides[0].stretched;
        if over && stretched && self.take_long_rate(context) {
            return self.after_fall(context);
        }
        if (over || context.knows_rate())
            && let Some(isolation) = context.answer()
        {
            let policing = if isolation == Isolation::Isolated { self.policing(context) } else { Policing::None };
            if policing == Policing::Seen {
                return Next::Answer(Isolation::Unknown);
            }
            let all = over || !stretched && !self.may_tell_more(context, policing);
            let proven = context.is_proven() && policing.allows() && all;
            if isolation != Isolation::Isolated || proven {
                return Next::Answer(isolation);
            }
            if over {
                return self.prove(context);
            }
        }
        if over {
            return self.next(context, acked.now);
        }
        let may_compare = self.arrangement != Arrangement::Together && context.is_proven();
        let hurry = may_compare && context.in_hurry(acked.now) && !context.is_behind();
        if hurry && context.must_compare_trains(acked.now) {
            return self.compare(context, acked.now, false);
        }
        Next::Stay
    }

    /// True if all of its trains and of the packets among them have arrived, so that there are no
    /// losses to be found by what follows, and that would take long.
    fn has_arrived(&self, context: &Context) -> bool {
        let lone = &context.sides[1];
        self.arrangement != Arrangement::Together
            && self.missing() == 0
            && lone.sent >= self.lone_ends
            && !lone.flying.iter().any(|packet| packet.number < self.lone_ends && packet.number >= self.lone_from)
            && context.held_back() >= context.smallest().mul_f64(context.config.long_wait)
    }

    /// With an ACK for many packets a long train tells the rate; true if it is lower than it
    /// seemed.
    fn take_long_rate(&self, context: &mut Context) -> bool {
        let long = self.arrivals.gap_of_many(context.sides[0].merging() * 2);
        let Some(mut gap) = long.filter(|_| self.arrangement == Arrangement::Sustained) else { return false };
        // A train that arrived as it left, and made no queue, was too slow.
        if !self.weighed && !self.losses && gap <= self.left.mul_f64(context.config.slowed) {
            gap = gap / 2;
        }
        let service = context.service.replace(gap.max(Span::from_micros(1))).unwrap_or(Span::ZERO);
        let fell = gap > service.mul_f64(context.config.fall);
        if fell {
            context.persistence.fall_to(gap);
        }
        fell
    }

    /// The rate that trains were measured at turned out to be that of a burst. Those that are under
    /// way may have queued where it did not matter; the next ones are of the rate that persists.
    fn after_fall(&self, context: &mut Context) -> Next {
        if self.is_policed(context) {
            return Next::Answer(Isolation::Unknown);
        }
        let service = context.persistence.service().or(context.service).unwrap_or(Span::from_micros(1));
        context.fall(service);
        Next::Batch { arrangement: Arrangement::Sustained, length: self.grown(context) }
    }

    /// "Isolated" so far, of a rate at which not enough has arrived yet.
    fn prove(&self, context: &mut Context) -> Next {
        if self.is_policed(context) {
            return Next::Answer(Isolation::Unknown);
        }
        Next::Batch { arrangement: Arrangement::Sustained, length: self.grown(context) }
    }

    /// Packets of the next long train: as many as slow start would send in the next round trip, two
    /// for each that arrived, as long as no more were lost than are at random.
    fn grown(&self, context: &Context) -> u32 {
        let config = &context.config;
        // With more losses the buffer is full.
        let times: u32 = if self.lost_share(context) > config.full_loss { 1 } else { 2 };
        let most = (config.proof + config.proof_lone).max(config.longest_train);
        // Slow start has sent that for all that has arrived so far.
        let so_far = u32::try_from(context.sides[0].sent).unwrap_or(u32::MAX);
        let all = if times > 1 { so_far } else { 0 };
        times
            .saturating_mul(self.arrivals.count().saturating_add(config.followers))
            .max(all)
            .clamp(config.shortest_train, most)
            .next_multiple_of(2)
    }

    /// True if so many packets of a batch were lost that was to prove a rate that only a policer
    /// explains it.
    fn is_policed(&self, context: &Context) -> bool {
        self.lost_share(context) > context.config.policed || self.meets_policer(context)
    }

    /// Share of the batch's packets that were lost.
    fn lost_share(&self, context: &Context) -> f64 {
        let mine = context.sides[0].flying.iter().filter(|packet| packet.number >= self.from).count();
        f64::from(self.lost(context, 0)) / f64::from(u32::try_from(mine).unwrap_or(u32::MAX).max(1))
    }

    /// Packets of a connection that left since the batch began and were lost.
    fn lost(&self, context: &Context, connection: usize) -> u32 {
        let from = if connection == 0 { self.from } else { self.lone_from };
        let lost = context.sides[connection].flying.iter().filter(|packet| packet.number >= from && packet.lost);
        u32::try_from(lost.count()).unwrap_or(u32::MAX)
    }

    /// What a packet of connection 0 tells about the queue and the rate; true if the rate fell.
    fn measure(&mut self, context: &mut Context, acked: &Acked) -> bool {
        let excess = round_trip(acked).checked_sub(context.smallest()).unwrap_or(Span::ZERO);
        self.highest = self.highest.max(excess);
        context.hear_of_others(acked);
        let length = u64::from(self.length);
        if let Some(place) = acked.number.checked_sub(self.from)
            && place < u64::from(self.trains) * length
        {
            self.arrivals.add(acked.now, acked.number);
            let service = context.service.unwrap_or(Span::ZERO);
            let queued = excess >= service.mul_f64(context.config.least_queue);
            // What a bucket lets pass meets nobody.
            let in_burst = !queued && context.fell;
            self.before_queue += u32::from(!queued);
            if in_burst && self.arrangement == Arrangement::Together {
                return false;
            }
            if self.arrangement == Arrangement::Together {
                let passage = &mut self.passages[usize::from(place >= length)];
                *passage = Some(Passage::add(*passage, acked.now));
                return false;
            }
            let left = acked.sent_at;
            let (train, last) = self.train_of(context, u32::try_from(place).unwrap_or(u32::MAX), left);
            // The first train of a batch that follows at once may have had credit.
            let credit = self.is_at_once() && place < length;
            let sums = if credit { &mut context.with_credit } else { &mut context.dispersion };
            sums.add(acked.now, train, last);
            if in_burst {
                context.meeting.interrupt();
            } else {
                context.meeting.train_arrives(acked.now, acked.number, train);
            }
            self.dispersion.add(acked.now, train, last);
            if context.sides[0].stretched {
                context.persistence.count();
                return false;
            }
            let fast = context.persistence.service().or(context.service).unwrap_or(Span::ZERO);
            let config = &context.config;
            let group = if self.losses { config.fall_packets_behind_loss } else { config.fall_packets };
            let fell = context.persistence.add(acked.now, left, train, group, config.fall);
            // Slower ones are taken as they are: others come and go.
            return fell && fast < context.config.proof_service;
        }
        false
    }

    /// Takes the lone packets whose neighbour's delay is known as evidence.
    fn weigh(&mut self, context: &mut Context) {
        while let Some(first) = context.sides[1].flying.front().copied() {
            let twin = context.sides[1].flying.get(1).copied().filter(|twin| twin.sent == first.sent);
            // Behind it no other is known as long as its own fate is open.
            if !first.is_settled() || twin.is_some_and(|twin| !twin.is_settled()) {
                break;
            }
            let all_known = match context.sides[0].find(first.neighbour).copied() {
                // It is too long ago.
                None => true,
                Some(neighbour) if !neighbour.is_settled() => false,
                Some(neighbour) if self.arrangement == Arrangement::Bursts => {
                    self.weigh_burst(context, neighbour, first)
                }
                Some(neighbour) => {
                    self.weigh_delay(context, neighbour, first, twin);
                    true
                }
            };
            if !all_known {
                break;
            }
            context.lone_left = Some(first.sent);
            self.note_lone(context, &[Some(first), twin]);
            context.sides[1].flying.drain(..1 + usize::from(twin.is_some()));
        }
    }

    /// Takes what became of the packets around a lone one as evidence; false as long as the fate of
    /// the one behind it is open.
    fn weigh_burst(&mut self, context: &mut Context, neighbour: Flying, lone: Flying) -> bool {
        let behind = context.sides[0].find(neighbour.number + 1).filter(|behind| behind.is_settled());
        let Some(behind) = behind else { return false };
        if behind.sent.since(neighbour.sent) <= context.scale().service {
            self.overflowed |= neighbour.lost || behind.lost;
            context.evidence.burst(neighbour.lost, lone.lost, behind.lost);
        }
        true
    }

    /// Takes the delay of lone packets beside that of their neighbour as evidence.
    fn weigh_delay(&mut self, context: &mut Context, neighbour: Flying, first: Flying, twin: Option<Flying>) {
        let scale = context.scale();
        // The neighbour may be lost: then the last packet of the train that arrived counts.
        let delay = context.sides[0].delay_before(neighbour.number, self.length, scale.service);
        let delay = delay.map_or(Span::ZERO, |rtt| scale.excess(rtt));
        // A lone packet that was held up, for instance because its connection was not open yet, met
        // another queue.
        let together = first.sent.since(neighbour.sent) <= scale.service;
        if !(together && scale.is_queue(delay, &context.config)) {
            return;
        }
        // Others may have left at once with it, if all were held up, and then it waits behind
        // those.
        let at_once = scale.service.mul_f64(context.config.at_once);
        let behind_others = context.lone_left.is_some_and(|left| first.sent.since(left) < at_once);
        // The ACK may be that of a later one, which tells nothing of this one's delay.
        if behind_others || first.newest.max(twin.map_or(Span::ZERO, |twin| twin.newest)) > scale.service {
            return;
        }
        // How long a receiver holds ACKs back that come for so many is not known yet.
        if context.sides[0].stretched && context.sides[0].merging().is_zero() {
            return;
        }
        self.weighed = true;
        let held = context.config.held_ack;
        let one_ack = twin.is_some_and(|twin| twin.rtt == first.rtt);
        let waited = scale.waited([first.rtt, twin.and_then(|twin| twin.rtt)]);
        if context.sides[0].stretched && one_ack && waited.is_some_and(|waited| waited >= held) {
            // The receiver may have held back the ACK of both: two packets are few for it.
            context.held = true;
            return;
        }
        match scale.waited([first.rtt, twin.and_then(|twin| twin.rtt)]) {
            None => context.evidence.lone_lost(),
            Some(waited) => {
                if let Some((ratio, noise)) = scale.ratio(waited, delay, &context.config) {
                    context.evidence.ratio(ratio, noise);
                }
            }
        }
    }

    /// The batch is over without an answer: longer trains if jitter hides them, bursts if the
    /// buffer is too small, or none.
    fn next(&self, context: &mut Context, now: Time) -> Next {
        let Context { config, sides, .. } = &*context;
        let config_batch = config.batch;
        let service = context.service.unwrap_or(Span::ZERO);
        if context.attempts >= config.most_batches {
            return Next::Answer(Isolation::Unknown);
        }
        if self.meets_policer(context) {
            return Next::Answer(Isolation::Unknown);
        }
        let in_bursts = self.arrangement == Arrangement::Bursts;
        if context.must_compare_trains(now) {
            if !context.is_proven() || !self.policing(context).allows() {
                return self.prove(context);
            }
            return self.compare(context, now, true);
        }
        if !sides[1].open {
            // Nothing could be compared yet. Its SYN may have been lost.
            if now.since(context.began.unwrap_or(now)) > config.open_wait {
                return Next::Answer(Isolation::Unknown);
            }
            context.attempts -= 1;
            let arrangement = if in_bursts { Arrangement::Bursts } else { Arrangement::Spaced };
            return Next::Batch { arrangement, length: self.growth.first };
        }
        if in_bursts && self.overflowed {
            // The next ones do so by more.
            return Next::Batch { arrangement: Arrangement::Bursts, length: self.growth.first + FLANKS };
        }
        if in_bursts {
            return Next::Again { length: self.growth.first.max(config.shortest_train) };
        }
        let queued = self.highest >= service.mul_f64(config.least_queue);
        // Those that came late were not lost.
        let losses = self.losses && self.lost(context, 0) > 0;
        if losses && !(queued && self.weighed) {
            // Half as many again as were queued, or arrived, overflow it, too.
            let held = self.highest.whole(service.max(Span::from_nanos(1)));
            let held = u32::try_from(held).unwrap_or(u32::MAX).min(self.arrivals.count());
            let enough = held.saturating_add(held / 2 + FLANKS).max(config.shortest_train * 2);
            let length = self.length.min(enough);
            return Next::Batch { arrangement: Arrangement::Bursts, length };
        }
        let wanted = context.jitter().mul_f64(config.least_jitters);
        let short = !queued || self.highest < wanted;
        let measured = self.dispersion.per_packet(1, Span::ZERO);
        if context.fell || context.sides[0].stretched {
            if self.is_policed(context) {
                return Next::Answer(Isolation::Unknown);
            }
            return Next::Batch { arrangement: Arrangement::Sustained, length: self.grown(context) };
        }
        if !short && !context.is_proven() {
            // Isolation cannot be said at this rate without long trains, and more of the same kind
            // would only take time.
            return self.prove(context);
        }
        let length = if !queued {
            self.growth.first.saturating_mul(2)
        } else if self.highest < wanted {
            let reckoned = Self::reckoned(context, service);
            // If that was not enough the rate was misjudged.
            if reckoned > self.growth.first { reckoned } else { self.growth.first.saturating_mul(2) }
        } else {
            self.growth.first
        };
        // Even, so that a receiver that acknowledges every second packet does not delay the ACK of
        // the last.
        let length = length.min(config.longest_train).next_multiple_of(2);
        if short && let Some(measured) = measured {
            // Trains that arrive as they left were not too fast for the bottleneck.
            let faster = if measured <= self.gap.mul_f64(config.slowed) { service / 2 } else { measured };
            context.service = Some(faster.min(service).max(Span::from_micros(1)));
        }
        // Where jitter asks for long trains one is enough at a time.
        let grown = self.grown(context);
        if queued && self.arrangement != Arrangement::AtOnce && length * config_batch > grown {
            return Next::Batch { arrangement: Arrangement::Sustained, length: grown.max(length) };
        }
        Next::Batch { arrangement: Arrangement::Spaced, length }
    }
}

#[cfg(test)]
mod tests;
