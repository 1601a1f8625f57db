//! The scoreboard against a model that keeps no counters, lists or ranges, only the segments.

use flowstart_congestion::Acked;
use flowstart_units::{Span, Time};
use proptest::prelude::*;

use super::{AckContext, Departing, Scoreboard};
use crate::sender::delivery::Delivery;

const MSS: u64 = 1000;

#[derive(Clone, Debug)]
struct Segment {
    seq: u64,
    end: u64,
    push: bool,
    /// The last transmission.
    number: u64,
    sent_at: Time,
    delivered: u64,
    app_limited: bool,
    sacked: bool,
    lost: bool,
    /// A retransmission is in flight.
    resent: bool,
    ever_resent: bool,
}

impl Segment {
    fn in_flight(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }

    fn waits_for_repair(&self) -> bool {
        self.lost && !self.resent
    }

    fn lose(&mut self) -> u32 {
        if self.sacked || self.waits_for_repair() {
            return 0;
        }
        (self.lost, self.resent) = (true, false);
        1
    }
}

#[derive(Debug, Default)]
struct Model {
    segments: Vec<Segment>,
    /// RACK's point: transmissions before this one left earlier than the newest delivered one.
    newest_after: u64,
    rtt: Span,
    total_lost: u64,
    /// A retransmission was lost.
    lost_again: bool,
    delivered: u64,
    sent: u64,
    next: u64,
    una: u64,
}

/// What one ACK delivered, in order.
#[derive(Debug, Default)]
struct Delivered {
    acked: Vec<Segment>,
    sacked: Vec<Segment>,
    cumulative: u32,
    /// RACK's round trip is that of a segment acknowledged cumulatively.
    aged_by_ack: bool,
}

impl Model {
    fn deliver(&mut self, segment: &Segment, by_sack: bool, context: &AckContext, delivered: &mut Delivered) {
        let age = context.now.since(segment.sent_at);
        // RFC 8985 section 6.2, step 2: an ACK that may be of the original tells nothing about
        // time.
        let too_soon = age < context.min_rtt || (!by_sack && context.echo < segment.sent_at);
        if !(segment.ever_resent && too_soon) {
            // Linux takes SACKs first, and what was taken last counts.
            if !by_sack || !delivered.aged_by_ack {
                self.rtt = age;
            }
            delivered.aged_by_ack |= !by_sack;
            self.newest_after = self.newest_after.max(segment.number + 1);
        }
    }

    fn acknowledge(&mut self, ack: u64, context: &AckContext, delivered: &mut Delivered) {
        while self.segments.first().is_some_and(|first| first.end <= ack) {
            let segment = self.segments.remove(0);
            delivered.cumulative += 1;
            if !segment.sacked {
                self.deliver(&segment, false, context, delivered);
                delivered.acked.push(segment);
            }
        }
        self.una = ack;
    }

    fn sack(&mut self, start: u64, end: u64, context: &AckContext, delivered: &mut Delivered) {
        for at in 0..self.segments.len() {
            let segment = self.segments[at].clone();
            if start <= segment.seq && segment.end <= end && !segment.sacked {
                self.deliver(&segment, true, context, delivered);
                delivered.sacked.push(segment);
                (self.segments[at].sacked, self.segments[at].lost, self.segments[at].resent) = (true, false, false);
            }
        }
    }

    /// Lost by RACK, and how long the last of those that are only late is waited for.
    fn detect(&mut self, now: Time, window: Span) -> (u32, Option<Span>) {
        let limit = self.rtt + window;
        let mut lost = 0;
        let mut wait = None;
        let again = &mut self.lost_again;
        for segment in self.segments.iter_mut().filter(|segment| segment.in_flight()) {
            if segment.number + 1 < self.newest_after {
                let age = now.since(segment.sent_at);
                if age >= limit {
                    *again |= segment.resent;
                    lost += segment.lose();
                } else {
                    wait = wait.max(Some(limit - age));
                }
            }
        }
        self.total_lost += u64::from(lost);
        (lost, wait)
    }

    fn time_out(&mut self, now: Time) -> u32 {
        let reneged = self.segments.first().is_some_and(|first| first.sacked);
        let (rtt, again) = (self.rtt, &mut self.lost_again);
        let lose = |(at, segment): (usize, &mut Segment)| {
            segment.sacked &= !reneged;
            if at > 0 && !reneged && now.since(segment.sent_at) < rtt {
                return 0;
            }
            *again |= segment.resent && !segment.sacked;
            segment.lose()
        };
        let lost: u32 = self.segments.iter_mut().enumerate().map(lose).sum();
        self.total_lost += u64::from(lost);
        lost
    }

    /// NewReno: the first segment, unless it was lost before.
    fn lose_first(&mut self) -> u32 {
        let Some(first) = self.segments.first_mut().filter(|first| !first.lost) else { return 0 };
        self.lost_again |= first.resent && !first.sacked;
        let lost = first.lose();
        self.total_lost += u64::from(lost);
        lost
    }

    fn departing(&mut self, now: Time, app_limited: bool) -> Departing {
        self.sent += 1;
        Departing {
            now,
            number: self.sent - 1,
            first_sent_at: Time::ZERO,
            delivered_at: Time::ZERO,
            delivered: self.delivered,
            app_limited,
        }
    }

    fn resend(&mut self, seq: u64, departing: &Departing, probe: bool) {
        let segment = self.segments.iter_mut().find(|segment| segment.seq == seq).expect("a segment that is known");
        (segment.number, segment.sent_at, segment.delivered) = (departing.number, departing.now, departing.delivered);
        segment.app_limited = departing.app_limited;
        (segment.resent, segment.ever_resent) = (segment.resent || segment.lost || !probe, true);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { payload: u64, push: bool, app_limited: bool },
    Ack { up_to: u64, echo_ms: u64, min_rtt_ms: u64, blocks: Vec<(u64, u64)> },
    Detect { window_ms: u64 },
    Repair,
    Probe,
    Timeout,
    LoseFirst,
    Unmark,
}

/// Bytes in units that mostly are whole segments.
fn bytes(segments: std::ops::Range<u64>) -> impl Strategy<Value = u64> {
    (segments, prop_oneof![9 => Just(0), 1 => 0..MSS]).prop_map(|(segments, rest)| segments * MSS + rest)
}

fn step() -> impl Strategy<Value = Step> {
    let block = (bytes(0..20), bytes(1..6)).prop_map(|(start, length)| (start, start + length));
    prop_oneof![
        8 => (prop_oneof![7 => Just(MSS), 1 => 1..MSS], any::<bool>(), any::<bool>())
            .prop_map(|(payload, push, app_limited)| Step::Push { payload, push, app_limited }),
        6 => (bytes(0..4), 0_u64..300, 0_u64..60, proptest::collection::vec(block, 0..4))
            .prop_map(|(up_to, echo_ms, min_rtt_ms, blocks)| Step::Ack { up_to, echo_ms, min_rtt_ms, blocks }),
        3 => (0_u64..60).prop_map(|window_ms| Step::Detect { window_ms }),
        4 => Just(Step::Repair),
        1 => Just(Step::Probe),
        1 => Just(Step::Timeout),
        1 => Just(Step::LoseFirst),
        1 => Just(Step::Unmark),
    ]
}

/// An ACK reaches both; what it says of times and order must be what the segments say.
fn take_ack(board: &mut Scoreboard, model: &mut Model, context: &AckContext, ack: u64, blocks: &[(u64, u64)]) {
    let (mut delivery, mut packets, mut expected) = (Delivery::new(), Vec::new(), Delivered::default());
    if ack > model.una {
        board.acknowledge(ack, context, &mut delivery, &mut packets);
        model.acknowledge(ack, context, &mut expected);
    }
    for &(start, end) in blocks {
        board.sack(start, end, context, &mut delivery, &mut packets);
        model.sack(start, end, context, &mut expected);
    }
    let all: Vec<&Segment> = expected.acked.iter().chain(&expected.sacked).collect();
    model.delivered += all.len() as u64;
    assert_eq!(delivery.packets as usize, all.len());
    assert_eq!(delivery.bytes, all.iter().map(|segment| segment.end - segment.seq).sum::<u64>());
    assert_eq!(delivery.sacked as usize, expected.sacked.len());
    assert_eq!(delivery.cumulative, expected.cumulative);
    assert_eq!(delivery.retransmitted_acked, expected.acked.iter().any(|segment| segment.ever_resent));
    let told = |acked: &Acked| (acked.number, u64::from(acked.bytes), acked.sent_at, acked.retransmitted, acked.now);
    let of = |s: &&Segment| (s.number, s.end - s.seq, s.sent_at, s.ever_resent, context.now);
    assert_eq!(packets.iter().map(told).collect::<Vec<_>>(), all.iter().map(of).collect::<Vec<_>>());

    // Packets sent once tell of order and time.
    let once = |segments: &[Segment]| -> Vec<Segment> {
        segments.iter().filter(|segment| !segment.ever_resent).cloned().collect()
    };
    let (acked, sacked) = (once(&expected.acked), once(&expected.sacked));
    let both = || acked.iter().chain(&sacked);
    assert_eq!(delivery.original_below_high, both().any(|segment| segment.end <= context.high_seq));
    let late = both().map(|segment| segment.seq).filter(|seq| *seq < context.highest_sacked).min();
    assert_eq!(delivery.reordered_from, late.unwrap_or(u64::MAX));
    let age = |segment: Option<&Segment>| segment.map(|segment| context.now.since(segment.sent_at));
    assert_eq!(delivery.sack_rtt(context.now), age(sacked.first()));
    let acked = if delivery.retransmitted_acked { Vec::new() } else { acked };
    let echoed = if expected.cumulative > 0 { context.now.checked_since(context.echo) } else { None };
    let timed = !acked.is_empty() || !sacked.is_empty();
    let samples = delivery.samples(context.now, context.echo);
    assert_eq!(samples.smoothed, if timed { age(acked.first().or(sacked.first())) } else { echoed });
    assert_eq!(samples.latest, if timed { age(sacked.last().or(acked.last())) } else { echoed });

    let newest = all.iter().max_by_key(|segment| segment.number);
    assert_eq!(delivery.newest_after, newest.map_or(0, |newest| newest.number + 1));
    if let Some(newest) = newest {
        assert_eq!(delivery.newest_retransmitted, newest.ever_resent);
        assert_eq!(delivery.newest.sent_at, newest.sent_at);
        assert_eq!(delivery.newest.prior_delivered, newest.delivered);
        assert_eq!(delivery.newest.app_limited, newest.app_limited);
        // To the microsecond where it is long.
        let elapsed = newest.sent_at.since(Time::ZERO).as_nanos();
        let kept = Some(Span::from_nanos(if elapsed < 1 << 31 { elapsed } else { elapsed / 1000 * 1000 }));
        assert_eq!((delivery.newest.send_elapsed, delivery.newest.delivered_elapsed), (kept, kept));
    }
}

fn compare(board: &mut Scoreboard, model: &mut Model) {
    assert_eq!(board.take_lost_retransmission(), std::mem::take(&mut model.lost_again));
    board.check(model.una, model.next, model.sent, true);
    let count = |test: fn(&Segment) -> bool| model.segments.iter().filter(|segment| test(segment)).count() as u32;
    assert_eq!(board.packets_out(), count(|_| true));
    assert_eq!(board.sacked(), count(|segment| segment.sacked));
    assert_eq!(board.lost(), count(|segment| segment.lost));
    assert_eq!(board.retransmitted(), count(|segment| segment.resent));
    assert_eq!(board.in_flight(), count(|s| !s.sacked && !s.lost) + count(|segment| segment.resent));
    assert_eq!(board.is_plain(), count(|s| s.sacked || s.lost || s.ever_resent) == 0);
    assert_eq!(board.has_repairs(), count(|segment| segment.lost) > 0);
    assert_eq!(board.total_lost(), model.total_lost);
    assert_eq!(board.newest().rtt, model.rtt);
    let sacked = model.segments.iter().filter(|segment| segment.sacked);
    assert_eq!(board.highest_sacked(), sacked.map(|segment| segment.end).max().unwrap_or(0));
    assert_eq!(board.head_sent_at(), model.segments.first().map(|segment| segment.sent_at));
    let first = model.segments.first().is_some_and(|segment| segment.ever_resent);
    assert_eq!(board.any_retransmission(), first || count(|segment| segment.resent) > 0);
    let fields = |repair: super::Repair| (repair.seq, repair.seq + u64::from(repair.payload), repair.push);
    let of = |segment: &Segment| (segment.seq, segment.end, segment.push);
    let repair = model.segments.iter().find(|segment| segment.waits_for_repair());
    // Never false while something waits.
    assert!(board.may_await_repair() || repair.is_none());
    assert_eq!(board.next_repair().map(fields), repair.map(of));
    let last = model.segments.iter().rev().find(|segment| !segment.sacked);
    assert_eq!(board.last().map(fields), last.map(of));
}

/// The short way for ordinary ACKs says what the long one does.
#[test]
fn an_ordinary_ack_counts_the_packets_and_bytes_that_it_covers() {
    let payloads = [1000_u64, 1000, 300, 1000];
    let filled = || {
        let (mut board, mut model) = (Scoreboard::new(MSS as u32), Model::default());
        for (n, payload) in payloads.into_iter().enumerate() {
            let departing = model.departing(Time::ZERO + Span::from_millis(n as u64), false);
            board.push(&departing, model.next, payload as u16, false);
            model.next += payload;
        }
        board
    };
    let now = Time::ZERO + Span::from_millis(50);
    for (ack, packets, bytes) in [(1000, 1, 1000), (2299, 2, 2000), (2300, 3, 2300), (3300, 4, 3300)] {
        let (mut board, mut long) = (filled(), filled());
        let plain = board.acknowledge_plain(now, ack, 4, 0).unwrap();
        assert_eq!((plain.packets, plain.bytes, plain.earliest), (packets, bytes, Time::ZERO));
        let context = AckContext {
            now,
            sent: 4,
            delivered: 0,
            min_rtt: Span::ZERO,
            echo: Time::ZERO,
            collect: false,
            high_seq: 0,
            highest_sacked: 0,
        };
        let mut delivery = Delivery::new();
        long.acknowledge(ack, &context, &mut delivery, &mut Vec::new());
        assert_eq!((delivery.packets, delivery.bytes), (packets, bytes));
        assert_eq!((board.in_flight(), board.head_sent_at()), (long.in_flight(), long.head_sent_at()));
    }
    assert!(filled().acknowledge_plain(now, 999, 4, 0).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_scoreboard_says_what_its_segments_say(
        steps in proptest::collection::vec((step(), prop_oneof![9 => 0_u64..30, 1 => 0_u64..5_000]), 1..120),
    ) {
        let (mut board, mut model) = (Scoreboard::new(MSS as u32), Model::default());
        let mut now = Time::ZERO;
        for (step, wait) in steps {
            now += Span::from_millis(wait);
            match step {
                Step::Push { payload, push, app_limited } => {
                    let departing = model.departing(now, app_limited);
                    board.push(&departing, model.next, payload as u16, push);
                    let (seq, end) = (model.next, model.next + payload);
                    model.next = end;
                    model.segments.push(Segment {
                        seq, end, push, number: departing.number, sent_at: now, delivered: departing.delivered,
                        app_limited, sacked: false, lost: false, resent: false, ever_resent: false,
                    });
                }
                Step::Ack { up_to, echo_ms, min_rtt_ms, mut blocks } => {
                    let ack = (model.una + up_to).min(model.next);
                    let (highest_sacked, next) = (board.highest_sacked(), model.next);
                    blocks.iter_mut().for_each(|(start, end)| (*start, *end) = (ack + *start, next.min(ack + *end)));
                    blocks.retain(|(start, end)| start < end);
                    blocks.sort_unstable();
                    let context = AckContext {
                        now,
                        sent: model.sent,
                        delivered: model.delivered,
                        min_rtt: Span::from_millis(min_rtt_ms),
                        echo: Time::from_nanos(now.as_nanos().saturating_sub(echo_ms * 1_000_000)),
                        collect: true,
                        high_seq: next / 2,
                        highest_sacked,
                    };
                    take_ack(&mut board, &mut model, &context, ack, &blocks);
                }
                Step::Detect { window_ms } => {
                    let losses = board.detect(now, Span::from_millis(window_ms));
                    prop_assert_eq!((losses.packets, losses.wait), model.detect(now, Span::from_millis(window_ms)));
                }
                Step::Repair => if let Some(repair) = board.next_repair() {
                    let departing = model.departing(now, false);
                    prop_assert_eq!(board.is_first(repair.id), model.segments[0].seq == repair.seq);
                    board.resend(&departing, repair.id, false);
                    model.resend(repair.seq, &departing, false);
                },
                Step::Probe => if let Some(last) = board.last() {
                    let departing = model.departing(now, true);
                    board.resend(&departing, last.id, true);
                    model.resend(last.seq, &departing, true);
                },
                Step::Timeout => prop_assert_eq!(board.lose_on_timeout(now), model.time_out(now)),
                Step::LoseFirst => prop_assert_eq!(board.lose_first(), model.lose_first()),
                Step::Unmark => {
                    board.unmark_lost();
                    model.segments.iter_mut().for_each(|segment| segment.lost = false);
                }
            }
            compare(&mut board, &mut model);
        }
    }
}
