use super::*;
use crate::testing::sent;

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn acked(now: u64, number: u64, rtt: u64) -> Acked {
    let now = Time::ZERO + ms(now);
    Acked { now, number, bytes: 1448, sent_at: now, rtt: Some(ms(rtt)), retransmitted: false }
}

/// A path of 10 ms and a packet per millisecond, on which packets of connection 0 have begun to
/// wait for 10 ms.
fn queued() -> (Watch, Evidence) {
    let config = TrainProbeConfig::default();
    let scale = Scale { smallest: ms(10), service: ms(1), jitter: Span::ZERO };
    let mut watch = Watch::new(&config, Time::ZERO, scale);
    let mut evidence = Evidence::new(config.evidence);
    assert!(!watch.on_acked(0, &acked(40, 0, 19), &mut evidence));
    assert!(!watch.on_acked(0, &acked(41, 1, 20), &mut evidence));
    (watch, evidence)
}

/// A look behind packet 21, and the error of "isolated" before and after it if the lone packets
/// take this long.
fn look(lone: u64) -> (f64, f64) {
    let (mut watch, mut evidence) = queued();
    let (now, before) = (Time::ZERO + ms(50), evidence.error_if_isolated());
    assert_eq!(watch.departure(1), Departure::Hold);
    watch.on_sent(0, &sent(now, 21));
    assert_eq!(watch.departure(1), Departure::At(now));
    watch.on_sent(1, &sent(now, 7));
    watch.on_sent(1, &sent(now, 8));
    assert_eq!(watch.departure(1), Departure::Hold, "two packets, no more");
    assert!(!watch.on_acked(1, &acked(50 + lone, 7, lone), &mut evidence));
    assert!(!watch.on_acked(1, &acked(51 + lone, 8, lone + 1), &mut evidence));
    assert!(watch.on_acked(0, &acked(70, 21, 20), &mut evidence) && !watch.is_looking());
    (before, evidence.error_if_isolated())
}

#[test]
fn a_lone_packet_that_waits_as_long_as_its_neighbour_speaks_for_a_shared_queue_and_one_that_does_not_wait_for_its_own()
{
    let (before, after) = look(20);
    assert!(after > before, "{before} {after}");
    let (before, after) = look(10);
    assert!(after < before, "{before} {after}");
}

#[test]
fn without_a_queue_there_is_no_look_and_after_one_none_before_the_interval_is_over() {
    let (mut watch, mut evidence) = queued();
    watch.on_acked(0, &acked(42, 2, 10), &mut evidence);
    watch.on_sent(0, &sent(Time::ZERO + ms(43), 20));
    assert!(!watch.is_looking(), "nothing waits");
    watch.on_acked(0, &acked(44, 3, 20), &mut evidence);
    let begun = Time::ZERO + ms(50);
    watch.on_sent(0, &sent(begun, 21));
    assert!(watch.is_looking());
    // It left later than a packet's time after its neighbour, and may have met another queue.
    watch.on_sent(1, &sent(begun + ms(2), 7));
    assert!(!watch.is_looking());
    let next = begun + ms(2) + TrainProbeConfig::default().watch.interval;
    watch.on_sent(0, &sent(next - ms(1), 22));
    assert!(!watch.is_looking());
    watch.on_sent(0, &sent(next, 23));
    assert!(watch.is_looking());
}

/// A look behind packet 21 is under way, with lone packets 7 and 8.
fn looking() -> (Watch, Evidence) {
    let (mut watch, evidence) = queued();
    let now = Time::ZERO + ms(50);
    watch.on_sent(0, &sent(now, 21));
    watch.on_sent(1, &sent(now, 7));
    watch.on_sent(1, &sent(now, 8));
    (watch, evidence)
}

#[test]
fn a_look_adds_the_ratio_of_the_delays_to_the_evidence() {
    // The neighbour waits for 10 ms; the first of the lone ones for 10, 8 and 0.
    for (lone, ratio, odds) in [(20, 1.0, 0.005_253_125), (18, 0.8, 0.580_783_911), (10, 0.0, 5000.0)] {
        let (mut watch, mut evidence) = looking();
        assert!(!watch.on_acked(1, &acked(50 + lone, 7, lone), &mut evidence));
        assert!(!watch.on_acked(1, &acked(51 + lone, 8, lone + 1), &mut evidence));
        assert!(watch.on_acked(0, &acked(71, 21, 20), &mut evidence));
        let error = evidence.error_if_isolated();
        assert!(((1.0 - error) / error / odds - 1.0).abs() < 1e-6, "{lone}: {error}");
        assert!((evidence.mean_ratio() - ratio).abs() < 1e-9);
    }
}

#[test]
fn evidence_of_before_counts_half_after_twenty_looks() {
    let (mut watch, mut evidence) = looking();
    evidence.lone_lost();
    watch.on_acked(1, &acked(60, 7, 18), &mut evidence);
    watch.on_acked(1, &acked(60, 8, 19), &mut evidence);
    assert!(watch.on_acked(0, &acked(70, 21, 20), &mut evidence));
    let error = evidence.error_if_isolated();
    // 0.1 to the power of 2^(-1/20) = 0.965 936, times the odds of 0.8.
    assert!(((1.0 - error) / error / (0.108_159 * 0.580_784) - 1.0).abs() < 1e-5, "{}", (1.0 - error) / error);
}

#[test]
fn a_look_is_over_when_an_ack_comes_too_late_or_is_of_a_repair() {
    let (mut watch, mut evidence) = looking();
    assert!(!watch.on_acked(0, &acked(90, 20, 20), &mut evidence));
    assert!(watch.is_looking(), "two round trips");
    assert!(!watch.on_acked(0, &acked(91, 20, 20), &mut evidence));
    assert!(!watch.is_looking(), "more than two");
    let (mut watch, mut evidence) = looking();
    watch.on_acked(0, &Acked { retransmitted: true, ..acked(60, 20, 20) }, &mut evidence);
    assert!(!watch.is_looking());
    let (mut watch, _) = queued();
    watch.on_sent(0, &Sent { retransmission: true, ..sent(Time::ZERO + ms(50), 21) });
    assert!(!watch.is_looking(), "none begins behind a repair");
    watch.on_sent(0, &sent(Time::ZERO + ms(50), 22));
    watch.on_sent(1, &Sent { retransmission: true, ..sent(Time::ZERO + ms(50), 7) });
    assert!(!watch.is_looking(), "a repair is none of its lone packets");
}

#[test]
fn in_a_queue_of_ones_own_the_next_look_may_follow_at_once() {
    let (mut watch, mut evidence) = looking();
    watch.take_for(Isolation::Isolated);
    let now = Time::ZERO + ms(91);
    watch.on_acked(0, &acked(91, 20, 20), &mut evidence);
    watch.on_sent(0, &sent(now, 30));
    assert!(watch.is_looking());
}

/// A second connection had packets in the queue all the time, and with them a share of its own.
#[test]
fn who_gave_up_looks_as_seldom_as_in_a_shared_queue() {
    let (mut watch, mut evidence) = looking();
    watch.take_for(Isolation::Isolated);
    watch.on_given_up();
    watch.take_for(Isolation::Isolated);
    watch.on_acked(0, &acked(91, 20, 20), &mut evidence);
    let interval = TrainProbeConfig::default().watch.interval;
    watch.on_sent(0, &sent(Time::ZERO + ms(90) + interval, 30));
    assert!(!watch.is_looking());
    watch.on_sent(0, &sent(Time::ZERO + ms(91) + interval, 31));
    assert!(watch.is_looking());
}

#[test]
fn a_look_waits_for_its_neighbour_and_both_lone_packets() {
    let (mut watch, mut evidence) = looking();
    assert!(!watch.on_acked(0, &acked(68, 20, 20), &mut evidence));
    assert!(!watch.on_acked(0, &acked(69, 21, 20), &mut evidence));
    // Packets behind the neighbour do not count for its delay.
    assert!(!watch.on_acked(0, &acked(70, 22, 40), &mut evidence));
    assert!(!watch.on_acked(1, &acked(71, 7, 15), &mut evidence));
    assert!(!watch.on_acked(1, &acked(71, 6, 15), &mut evidence), "of another look");
    assert!(watch.on_acked(1, &acked(72, 8, 16), &mut evidence));
    assert!((evidence.mean_ratio() - 0.5).abs() < 1e-9);
}

#[test]
fn one_packet_is_a_look_if_the_detector_sends_them_one_by_one() {
    let config = TrainProbeConfig { lone: 1, ..TrainProbeConfig::default() };
    let scale = Scale { smallest: ms(10), service: ms(1), jitter: Span::ZERO };
    let (mut watch, mut evidence) = (Watch::new(&config, Time::ZERO, scale), Evidence::new(config.evidence));
    watch.on_acked(0, &acked(40, 0, 19), &mut evidence);
    watch.on_acked(0, &acked(41, 1, 20), &mut evidence);
    let now = Time::ZERO + ms(50);
    watch.on_sent(0, &sent(now, 21));
    watch.on_sent(1, &sent(now, 7));
    assert_eq!(watch.departure(1), Departure::Hold);
    assert!(!watch.on_acked(1, &acked(70, 7, 20), &mut evidence));
    assert!(watch.on_acked(0, &acked(70, 21, 20), &mut evidence));
}

#[test]
fn an_ack_that_was_held_back_counts_as_the_one_before_and_the_packets_between_them() {
    let (mut watch, _) = queued();
    assert_eq!(watch.delay_before(0), None, "one alone");
    assert_eq!(watch.delay_before(1), Some(ms(20)));
    // Packets 2 to 4 came with one ACK 30 ms later than packet 1.
    [2, 3, 4].into_iter().for_each(|number| watch.remember(number, ms(50)));
    assert_eq!(watch.delay_before(4), Some(ms(23)));
    assert_eq!(watch.recent.len(), 3);
    (5..20).for_each(|number| watch.remember(number, ms(number)));
    assert_eq!(watch.recent.len(), REMEMBERED);
    assert_eq!(watch.recent.front(), Some(&(12, ms(12))));
    assert_eq!(watch.delay_before(11), None);
}

#[test]
fn thirty_two_acks_tell_anew_how_long_a_packet_takes() {
    let (mut watch, mut evidence) = queued();
    (2..31).for_each(|number| _ = watch.on_acked(0, &acked(40 + 2 * number, number, 20), &mut evidence));
    assert_eq!(watch.service, ms(1));
    watch.on_acked(0, &acked(128, 31, 20), &mut evidence);
    assert_eq!(watch.service, ms(4), "128 ms since the beginning");
    (32..64).for_each(|number| _ = watch.on_acked(0, &acked(128, number, 20), &mut evidence));
    assert_eq!(watch.service, Span::from_micros(1), "at once");
    assert_eq!(watch.counted, (0, Time::ZERO + ms(128)));
}

/// The jitter once packet 9 came `later` after packet 10, which had left 1 ms after it and took
/// 10 ms.
fn overtaken(watch: &mut Watch, evidence: &mut Evidence, later: u64) -> Span {
    let packet = |now, number, sent_at| {
        let (now, sent_at) = (Time::ZERO + ms(now), Time::ZERO + ms(sent_at));
        Acked { now, sent_at, rtt: Some(now.since(sent_at)), ..acked(0, number, 0) }
    };
    watch.on_acked(0, &packet(110, 10, 100), evidence);
    watch.on_acked(0, &packet(110 + later, 9, 99), evidence);
    watch.scale().jitter
}

#[test]
fn reordering_is_forgotten_with_the_smallest_rtt_and_what_the_detector_measured_is_not() {
    let (mut watch, mut evidence) = queued();
    watch.jitter = ms(1);
    assert_eq!(overtaken(&mut watch, &mut evidence, 200), ms(201));
    let mut looks = |now| {
        watch.on_acked(0, &acked(now, 29, 10), &mut evidence);
        watch.on_acked(0, &acked(now, 30, 20), &mut evidence);
        watch.on_sent(0, &sent(Time::ZERO + ms(now), 31));
        (watch.is_looking(), watch.scale().jitter)
    };
    assert_eq!(looks(4_999), (false, ms(201)));
    assert_eq!(looks(5_000), (false, ms(201)), "of the half before");
    assert_eq!(looks(10_000), (true, ms(1)));
}

/// As in the trains: what waited before a pause in which the queue drained was not overtaken.
#[test]
fn a_queue_that_drained_in_a_pause_is_no_reordering() {
    let (mut watch, mut evidence) = queued();
    let at = |ms_after| Time::ZERO + ms(ms_after);
    let newest = Acked { sent_at: at(100), rtt: Some(ms(20)), ..acked(120, 10, 0) };
    watch.on_acked(0, &newest, &mut evidence);
    // 46 ms instead of 20, 1 ms later, one packet before it.
    let late = Acked { sent_at: at(75), rtt: Some(ms(46)), ..acked(121, 9, 0) };
    watch.on_acked(0, &late, &mut evidence);
    let most = ms(1) + ms(1) * u64::from(TrainProbeConfig::default().most_space);
    assert_eq!(watch.scale().jitter, most);
}

#[test]
fn the_smallest_rtt_is_forgotten_after_ten_seconds() {
    let (mut watch, mut evidence) = queued();
    let mut smallest = |now, retransmitted| {
        watch.on_acked(0, &Acked { retransmitted, ..acked(now, 2, 15) }, &mut evidence);
        watch.smallest()
    };
    assert_eq!(smallest(5_000, true), ms(10));
    assert_eq!(smallest(5_000, false), ms(10));
    assert_eq!(smallest(9_999, false), ms(10));
    assert_eq!(smallest(10_000, false), ms(15));
}
