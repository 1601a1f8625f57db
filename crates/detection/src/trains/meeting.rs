//! Whether the two connections meet in one queue at all. Routers may send them over different ways:
//! then a lone packet waits behind no train either, although both queues are shared with others.
//!
//! One link serves one packet after the other. So between the arrivals of a packet of the train, of
//! a lone packet and of the train's next one there is always the time that the link takes for one,
//! and the two of the train are apart by the lone one more. On ways of their own a lone packet
//! arrives at any time between two of the train, and these are no further apart because of it.

use alloc::collections::VecDeque;
use core::cell::Cell;

use flowstart_units::{Span, Time};

use super::config::MeetingConfig;

/// Gaps between arrivals that are remembered, and those with lone packets in them.
const REMEMBERED: usize = 256;

/// The time between two ACKs of connection 0.
#[derive(Clone, Copy, Debug)]
struct Gap {
    length: Span,
    /// Packets of the later ACK.
    packets: u32,
    lone: Option<Lone>,
}

/// Lone packets that arrived in a gap.
#[derive(Clone, Copy, Debug)]
struct Lone {
    packets: u32,
    /// Of the first of their ACKs.
    with_first: u32,
    /// Time from the ACK of connection 0 before to the first of theirs, and from the last of theirs
    /// to the ACK behind.
    before: Span,
    behind: Span,
}

/// ACKs of lone packets since the last one of connection 0.
#[derive(Clone, Copy, Debug)]
struct Pending {
    first: Time,
    last: Time,
    packets: u32,
    with_first: u32,
}

/// The last ACK of connection 0.
#[derive(Clone, Copy, Debug)]
struct Latest {
    at: Time,
    /// Its last packet, and the train that it is of.
    number: u64,
    train: u64,
    /// The gap before it, if it is known.
    gap: Option<Gap>,
}

/// Arrivals of both connections in order.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    config: MeetingConfig,
    latest: Option<Latest>,
    pending: Option<Pending>,
    /// The last ones, whatever is in them.
    gaps: VecDeque<Gap>,
    /// The last ones with lone packets.
    met: VecDeque<Gap>,
    /// The last answer of [`Meeting::log_odds`] and what it was asked with, until a gap is added:
    /// it is asked several times for every ACK.
    known: Cell<Option<(Span, Span, f64)>>,
}

impl Meeting {
    pub(super) fn new(config: MeetingConfig) -> Self {
        Self {
            config,
            latest: None,
            pending: None,
            gaps: VecDeque::new(),
            met: VecDeque::new(),
            known: Cell::new(None),
        }
    }

    /// Nothing that was seen counts.
    pub(super) fn forget(&mut self) {
        self.gaps.clear();
        self.met.clear();
        self.known.set(None);
        self.interrupt();
    }

    /// What comes next does not follow what came before at once.
    pub(super) fn interrupt(&mut self) {
        let gap = self.latest.take().and_then(|latest| latest.gap);
        self.keep(gap);
        (self.latest, self.pending) = (None, None);
    }

    /// A lone packet was delivered.
    pub(super) fn lone_arrives(&mut self, now: Time) {
        let pending = self.pending.get_or_insert(Pending { first: now, last: now, packets: 0, with_first: 0 });
        pending.last = now;
        pending.packets += 1;
        pending.with_first += u32::from(now == pending.first);
    }

    /// A packet of connection 0 was delivered, which is of this train.
    pub(super) fn train_arrives(&mut self, now: Time, number: u64, train: u64) {
        let next = match self.latest.take() {
            Some(Latest { at, number: before, train: same, mut gap }) if same == train && number > before => {
                if now == at {
                    if let Some(gap) = &mut gap {
                        gap.packets += 1;
                    }
                    Latest { at, number, train, gap }
                } else {
                    self.keep(gap);
                    let lone = self.pending.take().map(|pending| Lone {
                        packets: pending.packets,
                        with_first: pending.with_first,
                        before: pending.first.since(at),
                        behind: now.since(pending.last),
                    });
                    Latest { at: now, number, train, gap: Some(Gap { length: now.since(at), packets: 1, lone }) }
                }
            }
            latest => {
                self.keep(latest.and_then(|latest| latest.gap));
                self.pending = None;
                Latest { at: now, number, train, gap: None }
            }
        };
        self.latest = Some(next);
    }

    /// A gap is complete: no more packets come with its ACK.
    fn keep(&mut self, gap: Option<Gap>) {
        let push = |known: &mut VecDeque<Gap>, gap| {
            if known.len() >= REMEMBERED {
                known.pop_front();
            }
            known.push_back(gap);
        };
        if let Some(gap) = gap {
            self.known.set(None);
            push(&mut self.gaps, gap);
            if gap.lone.is_some() {
                push(&mut self.met, gap);
            }
        }
    }

    /// True if arrivals that are uncertain by `jitter` hide the time that the link takes for a
    /// packet.
    pub(super) fn is_hidden(&self, service: Span, jitter: Span) -> bool {
        self.noise(jitter).mul_f64(2.0) >= service
    }

    fn noise(&self, jitter: Span) -> Span {
        jitter.mul_f64(self.config.jitters)
    }

    /// How many times likelier what was seen is if both meet in one queue whose link seems to take
    /// `service` for a packet, as a logarithm, with arrivals that are uncertain by `jitter`. What
    /// hides it may be no noise of arrivals but the time for which others are served: then it may
    /// speak for one queue, but hardly against it.
    pub(super) fn log_odds(&self, service: Span, jitter: Span) -> f64 {
        if let Some((_, _, known)) = self.known.get().filter(|known| (known.0, known.1) == (service, jitter)) {
            return known;
        }
        let log_odds = libm::log(if self.is_hidden(service, jitter) {
            (1.0 - self.config.quiet) + self.config.quiet * self.odds(service, Span::ZERO)
        } else {
            self.odds(service, self.noise(jitter))
        });
        self.known.set(Some((service, jitter, log_odds)));
        log_odds
    }

    /// The same if arrivals are uncertain by `noise`, as a factor.
    fn odds(&self, service: Span, noise: Span) -> f64 {
        let MeetingConfig { least, most_others, .. } = self.config;
        // No gap is shorter than the packets in it take: if one is, `service` has others in it.
        let shortest = self.gaps.iter().map(|gap| gap.length / u64::from(gap.packets)).min();
        let service = shortest.map_or(service, |shortest| shortest.min(service));
        // Half of the belief is that nobody else is served between two packets, a quarter that one
        // is, and so on; what is left of it is with the last.
        let (mut mean, mut belief) = (0.0, 1.0);
        for others in 0..=most_others {
            let rule = Rule::new(service, service / u64::from(others + 1), noise, least);
            belief *= if others < most_others { 0.5 } else { 1.0 };
            mean += belief * libm::exp(self.of_rule(&rule));
        }
        mean
    }

    fn of_rule(&self, rule: &Rule) -> f64 {
        let all = self.gaps.iter().fold(Span::ZERO, |sum, gap| sum + gap.length) + rule.service;
        let some = rule.service.mul_f64(self.config.doubt);
        let outlier = self.config.outlier;
        // Of this many together, one by one: what it tells if they were served as by one link, and
        // if not.
        let told = [1, 2].map(|packets| {
            let room = self.gaps.iter().fold(some, |sum, gap| sum + rule.room(gap, packets));
            let chance = room.ratio(all).min(1.0);
            let (kept, broken) = ((1.0 - outlier) / chance, outlier / (1.0 - chance).max(outlier));
            [libm::log(broken), libm::log(kept)]
        });
        let lone = self.met.iter().filter_map(|gap| Some((gap, gap.lone?)));
        lone.map(|(gap, lone)| told[usize::from(lone.packets > 1)][usize::from(rule.is_kept(gap, &lone))]).sum()
    }
}

/// What a link that serves one packet after the other takes for each.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// For a packet of the train and for others that are served in turn with it.
    turn: Span,
    service: Span,
    /// By how much arrivals are uncertain.
    noise: Span,
    /// Share of the times that is enough.
    least: f64,
    /// [`Rule::least`] of few turns and packets, which is what is asked for most.
    few: [[Span; FEW]; FEW],
}

/// Turns and packets for which the time is kept: none, one and two.
const FEW: usize = 3;

impl Rule {
    fn new(turn: Span, service: Span, noise: Span, least: f64) -> Self {
        let mut rule = Self { turn, service, noise, least, few: [[Span::ZERO; FEW]; FEW] };
        for (turns, packets) in (0..FEW).flat_map(|turns| (0..FEW).map(move |packets| (turns, packets))) {
            rule.few[turns][packets] = rule.time(turns as u32, packets as u32);
        }
        rule
    }

    /// The least time that all these take.
    fn least(&self, turns: u32, packets: u32) -> Span {
        let known = self.few.get(turns as usize).and_then(|of_turns| of_turns.get(packets as usize));
        known.copied().unwrap_or_else(|| self.time(turns, packets))
    }

    fn time(&self, turns: u32, packets: u32) -> Span {
        (self.turn * u64::from(turns) + self.service * u64::from(packets)).mul_f64(self.least) - self.noise
    }

    /// True if one link may have served these.
    fn is_kept(&self, gap: &Gap, lone: &Lone) -> bool {
        gap.length >= self.least(gap.packets, lone.packets)
            && lone.before >= self.least(0, lone.with_first)
            && lone.behind >= self.least(0, 1)
    }

    /// The part of a gap in which the last of so many lone packets may arrive.
    fn room(&self, gap: &Gap, packets: u32) -> Span {
        if gap.length < self.least(gap.packets, packets) {
            return Span::ZERO;
        }
        gap.length - self.least(0, packets) - self.least(0, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrainProbeConfig;
    use crate::random::Random;

    /// Arrivals in tenths of a millisecond, the lone ones by themselves; a train packet counts as
    /// one, as several that come with one ACK are listed at the same time. A packet takes 1 ms.
    fn log_odds(train: &[u64], lone: &[u64]) -> f64 {
        seen(train, lone).log_odds(Span::from_millis(1), Span::ZERO)
    }

    fn seen(train: &[u64], lone: &[u64]) -> Meeting {
        let at = |tenths: u64| Time::ZERO + Span::from_micros(tenths * 100);
        let mut meeting = Meeting::new(TrainProbeConfig::default().meeting);
        let mut lone = lone.iter().peekable();
        for (number, time) in (0..).zip(train) {
            while let Some(time) = lone.next_if(|lone| *lone < time) {
                meeting.lone_arrives(at(*time));
            }
            meeting.train_arrives(at(*time), number, 0);
        }
        meeting.interrupt();
        meeting
    }

    /// The plain sum, gap by gap and packet by packet, as `log_odds` says it in words.
    fn plain(meeting: &Meeting, service: Span, jitter: Span) -> f64 {
        let MeetingConfig { least, doubt, outlier, quiet, jitters, .. } = meeting.config;
        let hidden = meeting.is_hidden(service, jitter);
        let noise = if hidden { Span::ZERO } else { jitter.mul_f64(jitters) };
        let shortest = meeting.gaps.iter().map(|gap| gap.length / u64::from(gap.packets)).min();
        let turn = shortest.map_or(service, |shortest| shortest.min(service));
        let all = meeting.gaps.iter().fold(Span::ZERO, |sum, gap| sum + gap.length);
        let odds = (0..=5_u32).map(|others| {
            let service = turn / u64::from(others + 1);
            let time = |turns: u32, packets: u32| {
                (turn * u64::from(turns) + service * u64::from(packets)).mul_f64(least) - noise
            };
            let told = meeting.met.iter().map(|gap| {
                let lone = gap.lone.unwrap();
                let together = if lone.packets > 1 { 2 } else { 1 };
                let room = |gap: &Gap| match gap.length < time(gap.packets, together) {
                    true => Span::ZERO,
                    false => gap.length - time(0, together) - time(0, 1),
                };
                let room = meeting.gaps.iter().fold(service.mul_f64(doubt), |sum, gap| sum + room(gap));
                let chance = room.ratio(all + service).min(1.0);
                let kept = gap.length >= time(gap.packets, lone.packets)
                    && lone.before >= time(0, lone.with_first)
                    && lone.behind >= time(0, 1);
                libm::log(if kept { (1.0 - outlier) / chance } else { outlier / (1.0 - chance).max(outlier) })
            });
            0.5_f64.powi(others.min(4) as i32 + 1) * libm::exp(told.sum())
        });
        let odds = odds.fold(0.0, |sum, one| sum + one);
        libm::log(if hidden { (1.0 - quiet) + quiet * odds } else { odds })
    }

    #[test]
    fn what_is_kept_between_two_questions_is_the_plain_sum_to_the_last_bit() {
        let mut random = Random::new(11);
        let mut below = |most: u64| (random.unit() * most as f64) as u64;
        for _ in 0..8 {
            let mut meeting = Meeting::new(TrainProbeConfig::default().meeting);
            let (mut now, turn) = (Time::ZERO, 8 + below(200));
            for number in 0..320 {
                // Now and then two come with one ACK, or lone ones before it, by up to four.
                now += Span::from_micros(if below(5) == 0 { 0 } else { turn / 2 + below(turn) });
                let lone = if below(6) == 0 { below(5) } else { 0 };
                (0..lone).for_each(|_| {
                    meeting.lone_arrives(now);
                    now += Span::from_micros(below(2) * below(turn));
                });
                meeting.train_arrives(now, number, number / 100);
                if number % 16 == 0 {
                    // The last question of before is the first again.
                    for jitter in [0, below(3), turn, 0, 0] {
                        let (service, jitter) = (Span::from_micros(turn), Span::from_micros(jitter));
                        let expected = plain(&meeting, service, jitter);
                        assert_eq!(meeting.log_odds(service, jitter).to_bits(), expected.to_bits());
                    }
                }
            }
            assert!(meeting.gaps.len() > 150 && meeting.met.len() > 20);
        }
    }

    /// ln((1 - 0.002) / 0.002).
    const ENOUGH: f64 = 6.212;

    #[test]
    fn two_lone_packets_between_two_of_the_train_that_are_later_by_them_met_it() {
        let both = log_odds(&[0, 10, 20, 30, 50, 70, 80, 90, 100, 110], &[40, 60]);
        assert!(both > ENOUGH, "{both}");
        let one = log_odds(&[0, 10, 20, 30, 50, 60, 70, 80, 90, 100], &[40]);
        assert!(one > 0.0 && one < ENOUGH, "{one}");
    }

    #[test]
    fn lone_packets_that_do_not_delay_the_train_have_a_way_of_their_own() {
        let train = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90];
        for lone in [[35, 55], [37, 52], [31, 58], [30, 50]] {
            assert!(log_odds(&train, &lone) < -1.0, "{lone:?}");
        }
        // With four it is certain.
        assert!(log_odds(&train, &[35, 47, 55, 73]) < -ENOUGH);
    }

    #[test]
    fn what_comes_closer_to_the_train_than_it_can_be_served_did_not_meet_it() {
        let train = [0, 10, 20, 30, 50, 60, 70, 80, 90, 100];
        for (lone, met) in [(31, false), (40, true), (49, false)] {
            assert_eq!(log_odds(&train, &[lone]) > 0.0, met, "{lone}");
        }
    }

    /// Packets that leave every millisecond, but take half of one.
    #[test]
    fn the_shortest_gap_is_the_most_that_a_packet_takes() {
        let met = log_odds(&[0, 5, 10, 15, 25, 30, 35, 40, 45, 50], &[20]);
        assert!(met > 0.0, "{met}");
    }

    #[test]
    fn with_others_served_in_turn_the_train_is_later_by_less_than_it_seems_to_take() {
        // The link takes half a millisecond and serves another flow between two of the train.
        let train = [0, 10, 20, 35, 50, 60, 70, 80, 95, 110, 120, 130];
        let met = log_odds(&train, &[25, 40, 85, 100]);
        assert!(met > 6.0, "{met}");
        // Ways of their own, whatever the phase.
        let even = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110];
        for phase in 1..10 {
            let lone = [20 + phase, 50 + phase, 80 + phase, 100 + phase];
            assert!(log_odds(&even, &lone) < -1.0, "{phase}");
        }
    }

    #[test]
    fn where_the_train_is_late_anyway_a_lone_packet_in_between_tells_little() {
        let train = [0, 30, 60, 90, 120, 150, 180];
        let little = log_odds(&train, &[45, 135]);
        assert!(little.abs() < 2.0, "{little}");
    }

    #[test]
    fn an_ack_for_two_packets_takes_the_time_of_both() {
        let own = log_odds(&[0, 20, 20, 40, 40, 60, 60, 80, 80, 100, 100], &[30, 70]);
        assert!(own < -1.0, "{own}");
        let met = log_odds(&[0, 20, 20, 50, 50, 70, 70, 100, 100, 120, 120], &[30, 80]);
        assert!(met > 3.0, "{met}");
    }

    #[test]
    fn noise_of_half_a_packets_time_hides_it() {
        let meeting = seen(&[0, 10, 20, 30, 40], &[35]);
        let hidden = |jitter| meeting.is_hidden(Span::from_millis(1), Span::from_micros(jitter));
        assert_eq!([0, 249, 250].map(hidden), [false, false, true]);
    }

    #[test]
    fn what_seems_to_hide_it_may_be_others_and_then_it_speaks_for_one_queue_but_hardly_against_it() {
        let hidden = |train: &[u64], lone: &[u64]| {
            let told = |jitter| seen(train, lone).log_odds(Span::from_millis(1), Span::from_micros(jitter));
            (told(0), told(250))
        };
        let (plain, met) = hidden(&[0, 10, 20, 30, 50, 70, 80, 90, 100, 110], &[40, 60]);
        // Half as likely as without noise, and one half.
        assert!((libm::exp(met) - 0.5 - 0.5 * libm::exp(plain)).abs() < 1e-6 * libm::exp(plain), "{plain} {met}");
        let (plain, apart) = hidden(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90], &[35, 47, 55, 73]);
        assert!(plain < -ENOUGH && apart < 0.0 && apart > libm::log(0.5), "{plain} {apart}");
    }

    #[test]
    fn what_does_not_follow_at_once_is_no_gap() {
        let config = TrainProbeConfig::default().meeting;
        let at = |millis: u64| Time::ZERO + Span::from_millis(millis);
        let count = |train: u64, number: u64| {
            let mut meeting = Meeting::new(config);
            meeting.train_arrives(at(1), 5, 0);
            meeting.lone_arrives(at(2));
            meeting.train_arrives(at(3), number, train);
            meeting.interrupt();
            (meeting.gaps.len(), meeting.met.len())
        };
        assert_eq!(count(0, 6), (1, 1));
        // Lost ones took no time.
        assert_eq!(count(0, 8), (1, 1));
        assert_eq!(count(0, 4), (0, 0), "overtaken");
        assert_eq!(count(1, 6), (0, 0), "another train");
        let mut meeting = seen(&[0, 10, 30, 40], &[20]);
        assert_eq!((meeting.gaps.len(), meeting.met.len()), (3, 1));
        meeting.forget();
        assert_eq!(meeting.log_odds(Span::from_millis(1), Span::ZERO), 0.0);
    }
}
