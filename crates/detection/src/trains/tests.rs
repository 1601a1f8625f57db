//! The detector over a bottleneck that takes a millisecond for a packet, on a path of ten more. All
//! times follow from that by hand: a packet that meets no queue comes back after eleven.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::testing::sent;
use flowstart_units::{Rate, Span};

/// Half of the path: to the bottleneck, and back from it.
const HALF: Span = Span::from_millis(5);
/// Time that the bottleneck takes for a packet.
const SERVICE: Span = Span::from_millis(1);
/// A packet of this many bytes in a millisecond is 12 Mbit/s.
const PACKET: u32 = 1500;

fn at(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}

/// A bottleneck and a receiver.
#[derive(Clone, Copy)]
struct Path {
    /// Each connection has a queue of its own, served in turn.
    fair: bool,
    /// Each has a bottleneck of its own.
    ways: bool,
    /// Packets that a queue holds beside the one in transmission.
    buffer: usize,
    /// The receiver acknowledges packets of connection 0 by so many.
    ack_every: usize,
    /// Every second packet takes so much longer on its way back.
    jitter: Span,
    /// Connection 1 opens at this time.
    opens: Time,
}

const PATH: Path = Path { fair: false, ways: false, buffer: 1000, ack_every: 1, jitter: Span::ZERO, opens: Time::ZERO };
const FAIR: Path = Path { fair: true, ..PATH };

enum Event {
    Ask(usize),
    Arrive(usize, u64),
    Free,
    Ack(usize, Vec<u64>),
}

/// What the detector did until its answer: departures in microseconds, and the answer.
struct Run {
    left: [Vec<u64>; 2],
    detector: Trains,
}

impl Run {
    fn decision(&self) -> Decision {
        *self.detector.decision().unwrap()
    }

    /// The answer and when it came in microseconds.
    fn answer(&self) -> (Isolation, u64) {
        let Decision { isolation, now, .. } = self.decision();
        (isolation, now.since(Time::ZERO).as_micros())
    }
}

fn run(path: Path, config: &TrainProbeConfig) -> Run {
    let mut detector = Trains::new(config, PACKET, 1);
    let mut events: BTreeMap<(Time, u64), Event> = BTreeMap::new();
    let mut order = 0;
    let mut after = |events: &mut BTreeMap<_, _>, at: Time, event: Event| {
        order += 1;
        events.insert((at, order), event);
    };
    let mut times: [Vec<Time>; 2] = Default::default();
    let mut queues: [VecDeque<(usize, u64)>; 2] = Default::default();
    let (mut busy, mut turn, mut unacknowledged) = (false, 0, Vec::new());
    let mut other_is_free = Time::ZERO;
    after(&mut events, Time::ZERO, Event::Ask(0));
    after(&mut events, path.opens, Event::Ask(1));
    while let Some(((now, _), event)) = events.pop_first() {
        if detector.decision().is_some() {
            break;
        }
        match event {
            Event::Ask(connection) if connection == 1 && now < path.opens => {}
            Event::Ask(connection) => match detector.departure(connection, now) {
                Departure::At(time) if time > now => after(&mut events, time, Event::Ask(connection)),
                Departure::Hold => {}
                _ => {
                    let number = times[connection].len() as u64;
                    times[connection].push(now);
                    detector.on_sent(connection, &sent(now, number));
                    after(&mut events, now + HALF, Event::Arrive(connection, number));
                    after(&mut events, now, Event::Ask(connection));
                }
            },
            Event::Arrive(1, number) if path.ways => {
                other_is_free = now.max(other_is_free) + SERVICE;
                after(&mut events, other_is_free + HALF, Event::Ack(1, vec![number]));
            }
            Event::Arrive(connection, number) => {
                let queue = &mut queues[if path.fair { connection } else { 0 }];
                if queue.len() < path.buffer || !busy {
                    queue.push_back((connection, number));
                }
                if !busy {
                    busy = true;
                    // Before anything else arrives.
                    events.insert((now, 0), Event::Free);
                }
            }
            Event::Free => {
                turn = if queues[1 - turn].is_empty() { turn } else { 1 - turn };
                let Some((connection, number)) = queues[turn].pop_front() else {
                    busy = false;
                    continue;
                };
                after(&mut events, now + SERVICE, Event::Free);
                let late = if number % 2 == 1 { path.jitter } else { Span::ZERO };
                let back = now + SERVICE + HALF + late;
                if connection == 1 {
                    after(&mut events, back, Event::Ack(1, vec![number]));
                } else {
                    unacknowledged.push(number);
                    if unacknowledged.len() >= path.ack_every {
                        after(&mut events, back, Event::Ack(0, std::mem::take(&mut unacknowledged)));
                    }
                }
            }
            Event::Ack(connection, numbers) => {
                let newest = times[connection][*numbers.last().unwrap() as usize];
                for number in numbers {
                    let (sent_at, rtt) = (times[connection][number as usize], Some(now.since(newest)));
                    let acked = Acked { now, number, bytes: 1448, sent_at, rtt, retransmitted: false };
                    detector.on_acked(connection, &acked);
                }
                after(&mut events, now, Event::Ask(0));
                after(&mut events, now, Event::Ask(1));
            }
        }
    }
    Run { left: times.map(|times| times.iter().map(|time| time.since(Time::ZERO).as_micros()).collect()), detector }
}

fn default_run(path: Path) -> Run {
    run(path, &TrainProbeConfig::default())
}

/// Departures of a train at 2.2 times the bottleneck's rate, in microseconds.
fn train(begin: u64) -> Vec<u64> {
    [0, 454, 909, 1363, 1818, 2272, 2727, 3181].map(|place| begin + place).to_vec()
}

/// The same of those that follow the first at once.
fn train_at_once(begin: u64) -> Vec<u64> {
    [train(begin), vec![begin + 3_636, begin + 4_090]].concat()
}

#[test]
fn after_three_even_acks_a_train_follows_at_once_with_lone_packets_beside_its_seventh_and_its_tenth() {
    let run = default_run(PATH);
    let mut expected = vec![0; 8];
    // ACKs come after 11, 12 and 13 ms; trains are twice the time of eleven packets apart.
    expected.extend(train_at_once(13_000));
    assert_eq!(run.left[0], expected);
    assert_eq!(run.left[1], [15_727, 17_090]);
    // The last packet of the train is the eleventh of 13 ms + 5 + 11 = 29 ms at the bottleneck, as
    // the first lone one is before it; its ACK comes after 34 ms.
    assert_eq!(run.answer(), (Isolation::Shared, 34_000));
}

#[test]
fn alone_nobody_elses_queue_is_seen() {
    for path in [PATH, FAIR, Path { ack_every: 2, ..PATH }, Path { jitter: Span::from_micros(1500), ..PATH }] {
        assert_eq!(default_run(path).detector.crowd(), None);
    }
    // A packet of the train waits, but its first one did not.
    let rule = default_run(Path { buffer: 1, ..PATH }).detector.crowd();
    let default = CrowdRule { share: 0.5, unhurried: 0.25, growth: 0.5 };
    assert_eq!(rule, Some(default), "more than a tenth was lost");
}

#[test]
fn in_a_shared_queue_a_lone_packet_waits_a_little_longer_than_its_neighbour() {
    let run = run(PATH, &TrainProbeConfig { lone: 1, ..TrainProbeConfig::default() });
    // Packet 16 waits from 21.636 to 26 ms, the lone one that left 0.4545 ms later to 27 ms.
    let ratio = (27.0 - 18.0 - 45.0 / 11.0) / (26.0 - 18.0 - 40.0 / 11.0);
    assert!((run.decision().ratio - ratio).abs() < 1e-5, "{}", run.decision().ratio);
    assert_eq!(run.answer(), (Isolation::Shared, 33_000));
}

#[test]
fn the_decision_tells_the_rate_the_smallest_rtt_and_how_sure_it_is() {
    let Decision { rate, smallest, confidence, ratio, .. } = default_run(FAIR).decision();
    assert_eq!((rate, smallest), (Rate::from_mbps(12), Span::from_millis(11)));
    // Two ratios at or below the mean of a queue of one's own: each 5000 to 1.
    assert!((confidence.unwrap() - (1.0 - 1.0 / 25_000_001.0)).abs() < 1e-12);
    assert!((ratio - 0.100_275).abs() < 1e-6);
}

/// A path, constants, the answer and when it is given in microseconds, and of both connections the
/// packets sent until then and the sum of their departures in microseconds.
type Course = (&'static str, Path, TrainProbeConfig, (Isolation, u64), [usize; 2], [u64; 2]);

#[test]
fn the_whole_course_on_paths_of_all_kinds() {
    use Isolation::{Isolated, Shared, Unknown};
    let config = TrainProbeConfig::default();
    let fussy = TrainProbeConfig { isolated_error: 1e-30, shared_error: 1e-30, ..config };
    let shared = |change: fn(&mut Path)| changed(PATH, change);
    let fair = |change: fn(&mut Path)| changed(FAIR, change);
    let courses: &[Course] = &[
        ("shared", PATH, config, (Shared, 34_000), [18, 2], [150_450, 32_817]),
        ("fair", FAIR, config, (Isolated, 35_000), [19, 2], [185_450, 32_817]),
        (
            "shared, delayed ACKs",
            shared(|p| p.ack_every = 2),
            config,
            (Shared, 117_000),
            [51, 12],
            [2_798_440, 719_448],
        ),
        ("fair, delayed ACKs", fair(|p| p.ack_every = 2), config, (Isolated, 117_000), [51, 12], [2_798_440, 719_448]),
        ("shared, buffer of 1", shared(|p| p.buffer = 1), config, (Shared, 90_833), [24, 5], [796_635, 305_681]),
        ("fair, buffer of 1", fair(|p| p.buffer = 1), config, (Isolated, 170_454), [44, 10], [3_171_099, 951_704]),
        ("shared, no buffer", shared(|p| p.buffer = 0), config, (Shared, 113_876), [41, 5], [1_557_088, 396_262]),
        ("shared, buffer of 3", shared(|p| p.buffer = 3), config, (Shared, 192_733), [72, 13], [5_239_660, 1_116_160]),
        ("fair, buffer of 3", fair(|p| p.buffer = 3), config, (Isolated, 32_000), [18, 2], [150_450, 32_817]),
        (
            "shared, jitter",
            shared(|p| p.jitter = Span::from_micros(1500)),
            config,
            (Shared, 391_235),
            [188, 26],
            [34_933_672, 3_246_506],
        ),
        (
            "fair, jitter",
            fair(|p| p.jitter = Span::from_micros(1500)),
            config,
            (Isolated, 166_461),
            [79, 30],
            [4_968_449, 2_756_628],
        ),
        (
            "shared, much jitter",
            shared(|p| p.jitter = Span::from_millis(4)),
            config,
            (Shared, 262_285),
            [190, 26],
            [31_875_752, 4_152_270],
        ),
        (
            "fair, much jitter",
            fair(|p| p.jitter = Span::from_millis(4)),
            config,
            (Unknown, 1_000_000),
            [821, 108],
            [416_840_626, 54_185_072],
        ),
        (
            "fair, little jitter",
            fair(|p| p.jitter = Span::from_micros(100)),
            config,
            (Isolated, 53_100),
            [28, 4],
            [520_900, 109_634],
        ),
        (
            "fair, second late",
            fair(|p| p.opens = at(90_000)),
            config,
            (Isolated, 150_000),
            [63, 18],
            [4_299_344, 1_895_086],
        ),
        ("fair, to be very sure", FAIR, fussy, (Isolated, 158_000), [70, 14], [4_782_700, 1_102_991]),
        (
            "fair, buffer of 3, to be very sure",
            fair(|p| p.buffer = 3),
            fussy,
            (Isolated, 157_000),
            [70, 14],
            [4_782_700, 1_102_991],
        ),
    ];
    for (name, path, config, answer, packets, sums) in courses {
        let run = run(*path, config);
        assert_eq!(run.answer(), *answer, "{name}");
        assert_eq!(run.left.each_ref().map(Vec::len), *packets, "{name}");
        assert_eq!(run.left.each_ref().map(|times| times.iter().sum::<u64>()), *sums, "{name}");
    }
}

/// Seen with reordering at 300 Mbit/s, where a rate fell by chance: the next packet was to leave
/// half a second after the deadline, and no answer came before.
#[test]
fn a_packet_that_is_to_leave_later_does_not_keep_the_answer_from_coming_in_time() {
    let mut detector = Trains::new(&TrainProbeConfig::default(), PACKET, 1);
    assert_eq!(detector.departure(0, Time::ZERO), Departure::At(Time::ZERO));
    detector.context.sides[0].plan = VecDeque::from([(at(1_500_000), 1)]);
    assert_eq!(detector.departure(0, at(900_000)), Departure::At(at(1_000_000)));
    assert_eq!(detector.departure(0, at(1_000_000)), Departure::Hold);
    assert_eq!(detector.decision().map(|decision| decision.isolation), Some(Isolation::Unknown));
}

/// A time to leave at would keep the timer from sending again what was lost at a train's end.
#[test]
fn while_an_ack_is_missing_a_timer_may_send_and_the_other_connection_asks_in_time() {
    let mut detector = Trains::new(&TrainProbeConfig::default(), PACKET, 1);
    let end = Departure::At(at(1_000_000));
    assert_eq!(detector.departure(0, Time::ZERO), Departure::At(Time::ZERO));
    assert_eq!(detector.departure(1, Time::ZERO), Departure::Hold, "the first one asks");
    (0..8).for_each(|number| detector.on_sent(0, &sent(Time::ZERO, number)));
    assert_eq!([0, 1].map(|connection| detector.departure(connection, at(1000))), [Departure::Hold, end]);
    let mut ack = |number| {
        let (now, sent_at) = (at(11_000), Time::ZERO);
        detector.on_acked(0, &Acked { now, number, bytes: 1448, sent_at, rtt: None, retransmitted: true });
        detector.context.sides[0].plan.clear();
        [0, 1].map(|connection| detector.departure(connection, now))
    };
    assert_eq!(ack(6), [Departure::Hold, end]);
    assert_eq!(ack(7), [end, Departure::Hold], "nothing is missing behind it");
    assert_eq!(detector.departure(1, at(1_000_000)), Departure::Hold);
    assert_eq!(detector.decision().map(|decision| decision.isolation), Some(Isolation::Unknown));
}

/// Seen with 1448 B every 8 ms on an idle path of 7 ms: what was written waited for 0.75 s.
#[test]
fn an_application_that_writes_too_little_for_a_train_is_let_go_of() {
    let known = |starved| TrainProbeConfig { starved, ..TrainProbeConfig::default() };
    let usual = TrainProbeConfig::default();
    // Of the first train three of eight packets have left when its first ACK comes.
    let first = |config: &TrainProbeConfig| {
        let mut detector = Trains::new(config, PACKET, 1);
        for number in 0..3 {
            detector.departure(0, at(4000 * number));
            detector.on_sent(0, &sent(at(4000 * number), number));
            detector.on_exhausted(at(4000 * number));
        }
        detector.on_acked(0, &acked(at(11_000), 0, 11));
        detector.departure(0, at(11_000));
        detector.decision().map(|decision| (decision.isolation, decision.now))
    };
    assert_eq!(first(&usual), Some((Isolation::Unknown, at(11_000))));
    assert_eq!(first(&known(Span::ZERO)), None);
    // All of it left, and one packet of what follows that late: at 11 ms the next are planned.
    let hosts_late = |late: u64, config: &TrainProbeConfig, asked: bool| {
        let mut detector = Trains::new(config, PACKET, 1);
        for number in 0..8 {
            detector.departure(0, at(0));
            detector.on_sent(0, &sent(at(0), number));
        }
        (0..8).for_each(|number| detector.on_acked(0, &acked(at(11_000 + 1000 * number), number, 11 + number)));
        let Departure::At(planned) = detector.departure(0, at(18_000)) else { panic!("something is planned") };
        // Before it is due nothing is missing.
        detector.on_exhausted(if asked { planned } else { planned - Span::from_nanos(1) });
        let sent_at = planned + Span::from_micros(late);
        detector.on_sent(0, &sent(sent_at, 8));
        detector.departure(0, sent_at);
        detector.decision().map(|decision| decision.isolation)
    };
    let later = |late, config: &TrainProbeConfig| hosts_late(late, config, true);
    assert_eq!([10_000, 10_001].map(|late| later(late, &usual)), [None, Some(Isolation::Unknown)]);
    assert_eq!(hosts_late(50_000, &usual, false), None);
    assert_eq!(hosts_late(900_000, &known(Span::ZERO), true), None);
    // Half of a round trip, if that is more.
    let short = known(Span::from_millis(1));
    assert_eq!([5_400, 5_600].map(|late| later(late, &short)), [None, Some(Isolation::Unknown)]);
}

#[test]
fn over_two_ways_the_answer_is_unknown_although_lone_packets_do_not_wait() {
    let config = TrainProbeConfig::default();
    let path = Path { ways: true, ..PATH };
    // As soon as enough has arrived: the third train is on its way.
    assert_eq!(run(path, &config).answer(), (Isolation::Unknown, 54_000));
    let jitter = Span::from_micros(1500);
    for path in [Path { ack_every: 2, ..path }, Path { jitter, ..path }, Path { buffer: 3, ..path }] {
        assert_eq!(run(path, &config).answer().0, Isolation::Unknown);
    }
}

fn changed(mut path: Path, change: fn(&mut Path)) -> Path {
    change(&mut path);
    path
}

#[test]
fn a_receiver_that_acknowledges_every_second_packet_gets_spread_packets_before_the_trains() {
    let run = default_run(Path { ack_every: 2, ..FAIR });
    let mut expected = vec![0; 8];
    // Two come back after 12 ms, the last after 18: 6 gaps of a millisecond. Nine of them after 12
    // ms the queue is gone.
    expected.extend([21_000, 23_000, 25_000, 27_000]);
    expected.extend(train(29_000));
    assert_eq!(run.left[0][..20], expected);
    assert_eq!(run.left[1][..4], [26_000, 26_000, 32_181, 32_181]);
}

#[test]
fn where_only_one_packet_gets_through_a_chirp_tells_the_rate() {
    let run = default_run(Path { buffer: 0, ..FAIR });
    let left = &run.left[0];
    // Half a round trip after the ACK a packet finds the others lost, a round trip later the chirp
    // begins; its first gap is an eighth of a round trip, each other 0.6 of the one before.
    assert_eq!(left[7..14], [0, 16_500, 27_500, 28_875, 29_700, 30_195, 30_492]);
    // Sixteen packets, and behind them two that are half a round trip apart.
    assert_eq!(left[24..27], [30_935, 36_436, 41_936]);
    // Then bursts of four at 2.2 times the rate that the chirp told, a lone packet between the last
    // two.
    assert_eq!(left[27..31], [47_436, 48_036, 48_636, 48_636]);
    assert_eq!(run.left[1][0], 48_636);
}

#[test]
fn without_a_second_connection_the_answer_is_unknown_after_a_second() {
    let config = TrainProbeConfig::default();
    let path = Path { opens: Time::NEVER, ..FAIR };
    let (isolation, micros) = run(path, &config).answer();
    assert_eq!(isolation, Isolation::Unknown);
    assert_eq!(micros, 1_000_000);
    let hasty = TrainProbeConfig { open_wait: Span::from_millis(50), ..config };
    assert_eq!(run(path, &hasty).answer(), (Isolation::Unknown, 95_000));
}

#[test]
fn after_the_most_batches_without_an_answer_it_is_unknown() {
    let sure = TrainProbeConfig { isolated_error: 1e-300, shared_error: 1e-300, ..TrainProbeConfig::default() };
    let packets = |most_batches| {
        let run = run(FAIR, &TrainProbeConfig { most_batches, ..sure });
        assert_eq!(run.decision().isolation, Isolation::Unknown);
        run.left[0].len()
    };
    // Eight of the first train; a batch is three trains of ten and two that follow.
    assert_eq!([1, 2, 5].map(packets), [8 + 32, 8 + 2 * 32, 8 + 5 * 32]);
}

#[test]
fn constants_out_of_range_are_moved_to_the_nearest_in_range_and_the_others_stay() {
    let given = |train, shortest_train| TrainProbeConfig { train, shortest_train, batch: 2, ..Default::default() };
    for (train, shortest, moved) in [(0, 8, given(4, 8)), (100, 8, given(64, 8)), (8, 0, given(8, 4))] {
        let given = given(train, shortest);
        assert!(given.validate().is_err() && moved.validate().is_ok());
        assert_eq!(Trains::new(&given, 1500, 1).context.config, moved);
    }
    // The first train has so many packets.
    let first = |train| run(FAIR, &TrainProbeConfig { train, spread: 1, ..Default::default() }).left[0].len();
    assert_eq!(first(0), first(4));
}

/// An ACK of a packet that took so many milliseconds.
fn acked(now: Time, number: u64, millis: u64) -> Acked {
    let rtt = Span::from_millis(millis);
    let sent_at = Time::ZERO + now.since(Time::ZERO + rtt);
    Acked { now, number, bytes: 1448, sent_at, rtt: Some(rtt), retransmitted: false }
}

#[test]
fn after_the_answer_looks_may_give_another_one() {
    let mut detector = default_run(FAIR).detector;
    assert!(detector.watches() && !detector.is_looking());
    assert_eq!(detector.confirmed(), Time::ZERO);
    let first = *detector.decision().unwrap();
    assert_eq!(first.isolation, Isolation::Isolated);
    // The queue is ten packets long and lone packets wait for all of them.
    let mut revised = None;
    for look in 0..10 {
        let now = at(100_000 + look * 100_000);
        detector.on_acked(0, &acked(now, 100 + look * 10, 20));
        detector.on_acked(0, &acked(now, 101 + look * 10, 21));
        detector.on_sent(0, &sent(now, 102 + look * 10));
        assert!(detector.is_looking());
        let lone = 10 + look * 2;
        assert_eq!(detector.departure(1, now), Departure::At(now));
        assert_eq!(detector.departure(0, now), Departure::Hold);
        detector.on_sent(1, &sent(now, lone));
        detector.on_sent(1, &sent(now, lone + 1));
        let back = now + Span::from_millis(22);
        detector.on_acked(1, &acked(back, lone, 22));
        detector.on_acked(1, &acked(back, lone + 1, 23));
        detector.on_acked(0, &acked(back, 102 + look * 10, 21));
        assert!(!detector.is_looking());
        let decision = *detector.decision().unwrap();
        if decision != first {
            revised = Some((look, decision));
            break;
        }
        assert_eq!(detector.confirmed(), Time::ZERO);
    }
    let (look, decision) = revised.unwrap();
    assert_eq!(decision.isolation, Isolation::Shared);
    assert_eq!(decision.now, at(100_000 + look * 100_000 + 22_000));
    assert_eq!((decision.rate, decision.smallest), (first.rate, Span::from_millis(11)));
    assert!(decision.confidence.unwrap() >= 0.99 && decision.ratio > first.ratio);
}

#[test]
fn a_look_at_a_queue_of_ones_own_confirms_the_answer() {
    let mut detector = default_run(FAIR).detector;
    let before = *detector.decision().unwrap();
    let now = at(100_000);
    detector.on_acked(0, &acked(now, 100, 20));
    detector.on_acked(0, &acked(now, 101, 21));
    detector.on_sent(0, &sent(now, 102));
    detector.on_sent(1, &sent(now, 10));
    detector.on_sent(1, &sent(now, 11));
    let back = now + Span::from_millis(22);
    detector.on_acked(0, &acked(back, 102, 21));
    detector.on_acked(1, &acked(back, 10, 12));
    assert_eq!(detector.confirmed(), Time::ZERO);
    detector.on_acked(1, &acked(back, 11, 13));
    assert_eq!((detector.confirmed(), *detector.decision().unwrap()), (back, before));
}

#[test]
fn what_the_avoidance_finds_out_itself_revises_the_answer_at_once() {
    let mut detector = default_run(FAIR).detector;
    let first = *detector.decision().unwrap();
    detector.on_revoked(at(50_000));
    let revised = detector.decision().unwrap();
    assert_eq!((revised.now, revised.isolation), (at(50_000), Isolation::Shared));
    assert!((revised.confidence.unwrap() - 0.99).abs() < 1e-9);
    assert_eq!((revised.rate, revised.smallest, revised.ratio), (first.rate, first.smallest, first.ratio));
    // In a shared queue there is half a second between looks.
    let look = |detector: &mut Trains, micros: u64| {
        let now = at(micros);
        detector.on_acked(0, &acked(now, 100, 20));
        detector.on_sent(0, &sent(now, 101));
        let begun = detector.is_looking();
        // Too late: the look ends.
        detector.on_sent(1, &sent(now + Span::from_millis(100), 10));
        begun
    };
    assert!(look(&mut detector, 100_000));
    assert!(!look(&mut detector, 699_000) && look(&mut detector, 700_000));
}

#[test]
fn without_looks_nothing_is_done_after_the_answer() {
    let mut config = TrainProbeConfig::default();
    config.watch.interval = Span::ZERO;
    let mut detector = run(FAIR, &config).detector;
    let before = *detector.decision().unwrap();
    assert!(!detector.watches());
    detector.on_acked(0, &acked(at(60_000), 16, 15));
    detector.on_sent(0, &sent(at(60_000), 17));
    assert!(!detector.is_looking() && detector.decision() == Some(&before));
}
