//! What all stages of the detection know and use.

use alloc::vec::Vec;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::Acked;
use crate::answer::{Decision, Isolation};
use crate::random::Random;

use super::bulk::Bulk;
use super::config::TrainProbeConfig;
use super::crowd::Crowd;
use super::dispersion::Dispersion;
use super::evidence::Evidence;
use super::meeting::Meeting;
use super::persistence::Persistence;
use super::policing::Lone;
use super::scale::{Calm, Scale};
use super::side::{Side, round_trip};

/// What all stages of the detection know and use.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) config: TrainProbeConfig,
    pub(super) random: Random,
    /// Connection 0 sends trains, connection 1 lone packets.
    pub(super) sides: [Side; 2],
    /// When the first packet could leave.
    pub(super) began: Option<Time>,
    /// A packet of connection 0 is due, and the application has not written it.
    pub(super) exhausted: bool,
    /// It was waited for for too long.
    pub(super) starved: bool,
    /// Time the bottleneck takes for a packet.
    pub(super) service: Option<Span>,
    /// ... at least, as is known of it from elsewhere; zero if nothing is.
    pub(super) known: Span,
    /// RTTs while nothing of ours was queued.
    pub(super) calm: Calm,
    /// By how much gaps of the first train differed at most from their mean, if a batch followed it
    /// at once.
    pub(super) uneven: Span,
    /// Batches and chirps so far.
    pub(super) attempts: u32,
    pub(super) dispersion: Dispersion,
    /// Of packets that may have been served on a new flow's credit.
    pub(super) with_credit: Dispersion,
    pub(super) evidence: Evidence,
    pub(super) meeting: Meeting,
    pub(super) bulk: Bulk,
    /// It was known already that they meet.
    pub(super) met: bool,
    /// The rate was proven, but not yet that both connections meet.
    pub(super) proven: bool,
    /// The jitter before trains were compared, whose pauses look like ACKs that are held back.
    pub(super) noise: Option<Span>,
    pub(super) persistence: Persistence,
    /// What became of the lone packets of this batch.
    pub(super) lone: Vec<Lone>,
    /// Whether others keep a queue where the trains pass.
    pub(super) crowd: Crowd,
    /// Packets of either connection to be sent again before trains are compared.
    pub(super) to_repair: [u32; 2],
    /// Trains of more packets that were compared did not fit the buffer.
    pub(super) fits: Option<u32>,
    /// The rate fell from one that may have been that of a burst.
    pub(super) fell: bool,
    /// ACKs of lone packets were held back by the receiver, it seems.
    pub(super) held: bool,
    /// When the last lone packets left whose fate is known.
    pub(super) lone_left: Option<Time>,
}

impl Context {
    pub(super) fn new(config: &TrainProbeConfig, seed: u64) -> Self {
        Self {
            config: *config,
            random: Random::new(seed),
            sides: [Side::new(config), Side::new(config)],
            began: None,
            exhausted: false,
            starved: false,
            service: None,
            known: Span::ZERO,
            calm: Calm::default(),
            uneven: Span::ZERO,
            attempts: 0,
            dispersion: Dispersion::default(),
            with_credit: Dispersion::default(),
            evidence: Evidence::new(config.evidence),
            meeting: Meeting::new(config.meeting),
            bulk: Bulk::default(),
            met: false,
            proven: false,
            noise: None,
            persistence: Persistence::default(),
            lone: Vec::new(),
            crowd: Crowd::default(),
            to_repair: [0; 2],
            fits: None,
            fell: false,
            held: false,
            lone_left: None,
        }
    }

    /// Nothing more leaves, unless it is planned anew.
    pub(super) fn clear_plans(&mut self) {
        self.sides.iter_mut().for_each(|side| side.plan.clear());
    }

    /// The smallest RTT of both connections.
    pub(super) fn smallest(&self) -> Span {
        let [one, other] = &self.sides;
        let least = |one: Option<Span>, other: Option<Span>| one.into_iter().chain(other).min();
        least(one.smallest, other.smallest).or(least(one.of_repairs, other.of_repairs)).unwrap_or(Span::MAX)
    }

    /// Largest difference between RTTs in a row without a queue of ours. Their range would not do:
    /// it has the queue of other flows in it, which train and lone packet meet alike.
    pub(super) fn jitter(&self) -> Span {
        self.calm.jitter().max(self.uneven).max(self.held_back())
    }

    /// For how long the path itself holds packets or ACKs back.
    pub(super) fn held_back(&self) -> Span {
        let [one, other] = &self.sides;
        let of_side = |side: &Side| side.reordering.max(side.merging());
        of_side(one).max(of_side(other))
    }

    /// The same as it was before trains were compared, if they are.
    pub(super) fn noise(&self) -> Span {
        self.noise.unwrap_or_else(|| self.jitter())
    }

    /// A packet is lost if one that left later by this has arrived.
    pub(super) fn patience(&self, in_bursts: bool) -> Span {
        let jitter = self.jitter().mul_f64(self.config.patience_jitters);
        // Bursts come without a measurement of jitter.
        if in_bursts { jitter.max(self.smallest().mul_f64(self.config.follow_rtts)) } else { jitter }
    }

    pub(super) fn scale(&self) -> Scale {
        Scale { smallest: self.smallest(), service: self.service.unwrap_or(Span::ZERO), jitter: self.jitter() }
    }

    /// A packet of connection 0 was delivered: others may be in its way.
    pub(super) fn hear_of_others(&mut self, acked: &Acked) {
        let Scale { service, jitter, .. } = self.scale();
        let least = service.mul_f64(self.config.crowd).max(jitter.mul_f64(self.config.counted_jitters));
        let queued = !acked.retransmitted && self.scale().excess(round_trip(acked)) >= least;
        self.crowd.add(acked.number, queued && !least.is_zero());
    }

    /// What the evidence says, if it is enough.
    pub(super) fn answer(&self) -> Option<Isolation> {
        self.answer_by(&self.scale())
    }

    /// The same with delays measured by this scale.
    pub(super) fn answer_by(&self, scale: &Scale) -> Option<Isolation> {
        let error = self.evidence.error_if_isolated();
        if error <= self.config.isolated_error {
            (self.may_be_isolated() && self.meet(scale) == Some(true)).then_some(Isolation::Isolated)
        } else {
            (1.0 - error <= self.config.shared_error).then_some(Isolation::Shared)
        }
    }

    /// True if nothing but the evidence matters. Where ACKs are held back those that are not are
    /// chosen for being quick. And losses alone tell nothing where packets pass in bursts (a
    /// policer has no queue, and those that overtook others before it find the bucket full) or
    /// where ACKs come so seldom that packets seem to be lost.
    fn may_be_isolated(&self) -> bool {
        let service = self.service.unwrap_or(Span::ZERO);
        let in_bursts = self.sides[0].quickest.is_some_and(|quickest| quickest < service / 2);
        let unclear = in_bursts || self.sides[0].stretched;
        !(self.ways_differ() || self.held || self.evidence.is_of_losses() && unclear)
    }

    /// True if the connections meet in one queue, false if they have ways of their own; `None` as
    /// long as it is not known.
    fn meet(&self, scale: &Scale) -> Option<bool> {
        let error = self.config.meeting.error;
        let enough = libm::log((1.0 - error) / error);
        let packets = self.meeting.log_odds(scale.service, scale.jitter);
        // In a buffer without a queue lone packets are seldom between two of a train.
        if packets >= 0.0 && self.evidence.is_of_losses() {
            return Some(true);
        }
        let log_odds = self.bulk.log_odds(&self.config.meeting) + packets;
        if log_odds.abs() >= enough { Some(log_odds > 0.0) } else { self.met.then_some(true) }
    }

    /// True if there is no time left for more than to compare trains, the shortest ones.
    pub(super) fn in_hurry(&self, now: Time) -> bool {
        let shortest = self.told() * u64::from(2 * self.config.train_at_once);
        let trains = shortest.mul_f64(self.config.meeting.bulk_trains) + self.smallest() * 2;
        self.deadline().is_some_and(|deadline| now + trains >= deadline)
    }

    /// True if packets of the trains wait for longer than a round trip.
    pub(super) fn is_behind(&self) -> bool {
        let flying = self.sides[0].flying.iter().filter(|packet| !packet.is_settled()).count() as u64;
        self.told() * flying > self.smallest() + self.told() * u64::from(self.config.followers)
    }

    /// True if nothing else is missing for "isolated" than that the connections meet, and whole
    /// trains are to tell: noise hides the time of single packets, two batches were not enough, or
    /// there is no time for more of them.
    pub(super) fn must_compare_trains(&self, now: Time) -> bool {
        let scale = self.scale();
        let hidden = self.meeting.is_hidden(scale.service, scale.jitter);
        let sure = self.evidence.error_if_isolated() <= self.config.isolated_error;
        (hidden || self.attempts > 1 || self.in_hurry(now))
            && sure
            && self.may_be_isolated()
            && self.meet(&scale).is_none()
    }

    /// True if lone packets do not wait behind trains, and these not for lone packets: both
    /// connections have ways of their own, and either may be shared.
    pub(super) fn are_apart(&self) -> bool {
        self.evidence.error_if_isolated() <= self.config.isolated_error && self.meet(&self.scale()) == Some(false)
    }

    /// True if lone packets were quicker than any packet of the trains: then they took another way,
    /// and met another queue.
    fn ways_differ(&self) -> bool {
        let [Some(trains), Some(lone)] = [&self.sides[0], &self.sides[1]].map(|side| side.smallest) else {
            return false;
        };
        let service = self.service.unwrap_or(Span::ZERO);
        lone + service.mul_f64(self.config.delayed_ack_packets) + self.jitter() < trains
    }

    /// True if the rate that trains were measured at is that of a path, not of a burst or of the
    /// sender's own card: it is lower than such rates are, or many packets arrived at it.
    pub(super) fn is_proven(&self) -> bool {
        // With an ACK for many packets only long trains tell a rate.
        let lowest = self.persistence.service().filter(|_| !self.sides[0].stretched);
        let Some(service) = lowest.or(self.service) else { return false };
        // Trains that were faster than what persists may have queued elsewhere.
        let faster = self.service.is_some_and(|used| used.mul_f64(self.config.fall) < service);
        let seen = self.persistence.packets() >= self.config.proof && !faster;
        self.proven || service >= self.config.proof_service || seen
    }

    /// The rate fell to that of the time `service` per packet: nothing that was seen before counts.
    pub(super) fn fall(&mut self, service: Span) {
        (self.service, self.fell) = (Some(service), true);
        self.crowd = Crowd::default();
        self.evidence = Evidence::new(self.config.evidence);
        self.meeting.forget();
        (self.bulk, self.proven, self.noise) = (Bulk::default(), false, None);
        (self.dispersion, self.with_credit) = (Dispersion::default(), Dispersion::default());
        self.sides[1].flying.clear();
    }

    /// When the answer is unknown if it is not there yet; `None` before the first packet.
    pub(super) fn deadline(&self) -> Option<Time> {
        let smallest = self.smallest();
        let trips = if smallest == Span::MAX { Span::ZERO } else { smallest.mul_f64(self.config.give_up_rtts) };
        self.began.map(|began| began + self.config.give_up.max(trips))
    }

    /// An ACK of a first train came. Some of that may wait for the application yet: then what
    /// arrived was as far apart as it was written.
    pub(super) fn note_rest(&mut self) {
        self.starved |= self.exhausted && self.sides[0].sent < u64::from(self.config.train);
    }

    /// A packet of connection 0 leaves now: notes if the application was waited for.
    pub(super) fn note_wait(&mut self, now: Time) {
        let exhausted = core::mem::take(&mut self.exhausted);
        let Some((planned, _)) = self.sides[0].plan.front() else { return };
        let most = self.smallest().mul_f64(self.config.starved_rtts).max(self.config.starved);
        self.starved |= exhausted && now.since(*planned) > most;
    }

    /// True if the rate to go on with is known. In a queue of one's own that is a share if others
    /// are there, which the first train does not tell.
    pub(super) fn knows_rate(&self) -> bool {
        if self.answer() != Some(Isolation::Isolated) {
            return true;
        }
        let service = self.service.unwrap_or(Span::ZERO);
        let lone = service * u64::from(self.config.lone);
        // What the first train took, if nobody else is served.
        let alone = service.mul_f64(self.config.alone_gaps);
        self.dispersion.per_packet(self.config.least_gaps, lone).is_some()
            || self.with_credit.per_packet(1, lone).is_some_and(|per_packet| per_packet <= alone)
    }

    /// Time per packet of connection 0 as its trains arrived, or what the bottleneck seems to take
    /// if that is more.
    pub(super) fn told(&self) -> Span {
        let service = self.service.unwrap_or(Span::from_micros(1));
        self.dispersion.of_all().map_or(service, |told| told.max(service))
    }

    /// The answer with all that was measured, for packets of this size.
    pub(super) fn decision(&self, now: Time, isolation: Isolation, packet: Bytes) -> Decision {
        // Without any measurement as much as was sent in a round trip at first.
        let service = self.service.unwrap_or(self.smallest() / u64::from(self.config.train));
        // A new flow's credit, or luck, may have let the first train pass others.
        let overtaking = if isolation == Isolation::Isolated { self.config.lone } else { 0 };
        let overtaking = service * u64::from(overtaking);
        // Where packets overtake, two may arrive as close together as if the path were many times
        // as fast: without whole trains the rate is what persisted.
        let persisted = self.persistence.service().unwrap_or(service).max(service);
        let told = self.dispersion.per_packet(self.config.least_gaps, overtaking);
        let per_packet = told.unwrap_or(persisted).max(service);
        Decision {
            now,
            isolation,
            ratio: self.evidence.mean_ratio(),
            rate: Rate::of(packet, per_packet),
            confidence: Some(self.evidence.confidence(isolation)),
            smallest: self.smallest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_the_error_that_it_allows() {
        let config = TrainProbeConfig { isolated_error: 0.011, shared_error: 0.1, ..TrainProbeConfig::default() };
        let mut context = Context::new(&config, 1);
        context.met = true;
        assert_eq!(context.answer(), None);
        // 1 to 10 is not yet an error of 0.1 but one of 0.0909.
        context.evidence.lone_lost();
        assert_eq!(context.answer(), Some(Isolation::Shared));
        context.config.shared_error = 0.09;
        assert_eq!(context.answer(), None);
        context.evidence.ratio(0.2, 0.0);
        // 500 to 1.
        assert_eq!(context.answer(), Some(Isolation::Isolated));
        context.config.isolated_error = 0.001;
        assert_eq!(context.answer(), None);
    }

    #[test]
    fn without_an_answer_it_gives_up_after_ten_round_trips_or_a_second() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        assert_eq!(context.deadline(), None, "nothing has left");
        context.began = Some(Time::ZERO);
        let deadline = |context: &Context| context.deadline().unwrap().since(Time::ZERO);
        assert_eq!(deadline(&context), Span::from_secs(1));
        context.sides[0].smallest = Some(Span::from_millis(99));
        assert_eq!(deadline(&context), Span::from_secs(1));
        context.sides[0].smallest = Some(Span::from_millis(300));
        assert_eq!(deadline(&context), Span::from_secs(3));
    }

    #[test]
    fn a_rate_of_more_than_60_mbits_is_proven_by_200_packets_in_a_row() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        assert!(!context.is_proven(), "none is known");
        context.service = Some(Span::from_micros(200));
        assert!(context.is_proven());
        context.service = Some(Span::from_micros(199));
        (0..199).for_each(|_| context.persistence.count());
        assert!(!context.is_proven());
        context.persistence.count();
        assert!(context.is_proven());
        context.persistence.begin_batch(Span::from_micros(199));
        assert!(!context.is_proven(), "a pause fills a bucket");
    }

    /// Seen at a bucket of 128 kB and 200 Mbit/s beside CUBIC: 240 packets had arrived at no less
    /// than that, but trains had become as fast as the line, as they had met no queue.
    #[test]
    fn a_rate_faster_than_what_persists_is_not_proven_by_it() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        context.persistence.begin_batch(Span::from_micros(60));
        (0..200).for_each(|_| context.persistence.count());
        for (micros, proven) in [(60, true), (40, true), (39, false), (12, false)] {
            context.service = Some(Span::from_micros(micros));
            assert_eq!(context.is_proven(), proven, "{micros}");
        }
    }

    #[test]
    fn isolated_is_not_said_of_other_ways_held_acks_or_by_losses_where_packets_come_in_bursts() {
        let sure = || {
            let mut context = Context::new(&TrainProbeConfig::default(), 1);
            (context.sides[0].smallest, context.sides[1].smallest) =
                (Some(Span::from_millis(20)), Some(Span::from_millis(20)));
            context.service = Some(Span::from_millis(1));
            (0..6).for_each(|_| context.evidence.burst(true, false, true));
            context
        };
        assert_eq!(sure().answer(), Some(Isolation::Isolated));
        let with = |change: fn(&mut Context)| {
            let mut context = sure();
            change(&mut context);
            context.answer()
        };
        assert_eq!(with(|context| context.held = true), None);
        assert_eq!(with(|context| context.sides[0].stretched = true), None);
        assert_eq!(with(|context| context.sides[0].quickest = Some(Span::from_micros(400))), None);
        assert_eq!(with(|context| context.sides[0].quickest = Some(Span::from_micros(600))), Some(Isolation::Isolated));
        // Four packets and the jitter quicker.
        assert_eq!(with(|context| context.sides[1].smallest = Some(Span::from_micros(15_900))), None);
        // With delays compared it may have come in bursts.
        let compared = |met: bool| {
            let mut context = sure();
            (context.sides[0].stretched, context.met) = (true, met);
            context.evidence.ratio(0.2, 0.0);
            context.answer()
        };
        assert_eq!([true, false].map(compared), [Some(Isolation::Isolated), None]);
    }

    #[test]
    fn patience_is_twice_the_jitter_and_in_bursts_half_a_round_trip() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        context.sides[0].smallest = Some(Span::from_millis(20));
        context.sides[1].smallest = Some(Span::from_millis(18));
        context.uneven = Span::from_millis(3);
        assert_eq!(context.smallest(), Span::from_millis(18));
        assert_eq!(context.jitter(), Span::from_millis(3));
        assert_eq!([false, true].map(|bursts| context.patience(bursts)), [6, 9].map(Span::from_millis));
        context.uneven = Span::from_millis(6);
        assert_eq!([false, true].map(|bursts| context.patience(bursts)), [12, 12].map(Span::from_millis));
    }

    /// Seen with 3 ms of reordering at 20 Mbit/s: 2816 packets were handed over where 52 fill the
    /// path, and 8688 lost.
    #[test]
    fn without_whole_trains_the_rate_is_what_persisted_not_that_of_the_two_closest_packets() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        context.service = Some(Span::from_micros(17));
        let rate = |context: &Context| context.decision(Time::ZERO, Isolation::Isolated, Bytes::new(1500)).rate;
        assert_eq!(rate(&context), Rate::of(Bytes::new(1500), Span::from_micros(17)));
        context.persistence.fall_to(Span::from_micros(421));
        assert_eq!(rate(&context), Rate::of(Bytes::new(1500), Span::from_micros(421)));
    }

    #[test]
    fn without_any_measurement_the_rate_is_a_train_in_a_round_trip() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        context.sides[0].smallest = Some(Span::from_millis(8));
        let rate = |context: &Context, isolation| context.decision(Time::ZERO, isolation, Bytes::new(1500)).rate;
        assert_eq!(rate(&context, Isolation::Unknown), Rate::from_mbps(12));
        context.service = Some(Span::from_millis(2));
        assert_eq!(rate(&context, Isolation::Unknown), Rate::from_mbps(6));
        // A train of eight in 28 ms, of which the lone packets took 4 in a queue of one's own.
        (0..8).for_each(|place| context.dispersion.add(Time::ZERO + Span::from_millis(4 * place), 0, place == 7));
        assert_eq!(rate(&context, Isolation::Shared), Rate::from_mbps(3));
        assert_eq!(rate(&context, Isolation::Isolated), Rate::from_bps(3_500_000));
    }

    #[test]
    fn in_a_queue_of_ones_own_the_rate_takes_a_whole_train_or_one_as_fast_as_the_first() {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        context.met = true;
        assert!(context.knows_rate(), "in a shared queue that of the first train is enough");
        (0..2).for_each(|_| context.evidence.ratio(0.2, 0.0));
        assert!(!context.knows_rate());
        context.service = Some(Span::from_millis(1));
        let train = |gap: u64| {
            let mut dispersion = Dispersion::default();
            (0..8).for_each(|place| dispersion.add(Time::ZERO + Span::from_micros(gap * place), 0, place == 7));
            dispersion
        };
        // Seven gaps, of which two lone packets took two milliseconds: 5 % more is the most.
        context.with_credit = train(1_340);
        assert!(!context.knows_rate());
        context.with_credit = train(1_330);
        assert!(context.knows_rate());
        context.with_credit = Dispersion::default();
        context.dispersion = train(3_000);
        assert!(context.knows_rate());
        context.config.least_gaps = 8;
        assert!(!context.knows_rate());
    }
}
