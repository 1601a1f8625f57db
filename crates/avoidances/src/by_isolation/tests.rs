use super::*;
use crate::{Cubic, DelayTarget};
use flowstart_control::DeliveryRate;
use flowstart_control::testing::ack;

fn pair() -> ByIsolation<DelayTarget, Cubic> {
    ByIsolation::new(DelayTarget::new(&DelayTargetConfig::default(), 1448), Cubic::new(&CubicConfig::default()))
}

fn at_20ms() -> Ack {
    let rtt = Span::from_millis(20);
    Ack { rtt: Some(rtt), srtt: rtt, min_rtt: rtt, ..ack(1) }
}

/// RTTs of 30 to 46 ms on a path of 20, and eight packets arrive per round trip.
fn starving(now: Time, part: u64, delivered: u64) -> Ack {
    let rtt = Span::from_millis(30 + (part * 5) % 17);
    let (interval, prior_delivered) = (Span::from_millis(20), delivered.saturating_sub(8));
    let sample = DeliveryRate { delivered: 8, interval, prior_delivered, app_limited: false };
    Ack { now, rtt: Some(rtt), srtt: rtt, delivered, rate: Some(sample), ..at_20ms() }
}

fn assumed() -> ByIsolation<DelayTarget, Cubic> {
    let (isolated, shared) = (DelayTargetConfig::default(), CubicConfig::default());
    ByIsolation::assumed(DelayTarget::unasked(&isolated, 1448), Cubic::new(&shared))
}

/// Goes on until the second is in charge; after how many round trips of 20 ms with ten ACKs.
fn rounds_until_cubic(pair: &mut ByIsolation<DelayTarget, Cubic>, rtt: impl Fn(u64, u64) -> Span) -> Option<u64> {
    let mut window = Window::new(100);
    pair.on_ack(&at_20ms(), &window);
    pair.on_takeover(Time::ZERO, &window, None);
    let (mut now, mut bytes) = (Time::ZERO, 0);
    for round in 0..300 {
        for part in 0..10 {
            let Some(rate) = pair.pacing_rate() else { return Some(round) };
            now += Span::from_millis(2);
            let of_a_round = rate.bytes_in(Span::from_millis(20)).get() / 1448;
            let sample = DeliveryRate {
                delivered: of_a_round as u32,
                interval: Span::from_millis(20),
                prior_delivered: (bytes / 1448_u64).saturating_sub(of_a_round),
                app_limited: false,
            };
            bytes += rate.bytes_in(Span::from_millis(2)).get();
            let delivered = bytes / 1448;
            let rtt = rtt(round, part);
            let ack = Ack { now, rtt: Some(rtt), srtt: rtt, delivered, rate: Some(sample), ..at_20ms() };
            pair.on_ack(&ack, &window);
            pair.grow(&ack, 1, &mut window);
        }
    }
    None
}

#[test]
fn a_queue_that_is_assumed_to_be_its_own_is_the_firsts_from_the_beginning_whatever_is_answered() {
    let mut pair = assumed();
    let mut window = Window::new(100);
    for answer in [Isolation::Shared, Isolation::Unknown, Isolation::Isolated] {
        pair.on_isolation(Time::ZERO, answer, &mut window);
        assert!(pair.controls_recovery() && pair.isolation() == Isolation::Isolated, "{answer:?}");
    }
    // Without noise and without a queue it stays so.
    assert_eq!(rounds_until_cubic(&mut pair, |_, _| Span::from_millis(20)), None);
    assert!(pair.pacing_rate().is_some());
}

#[test]
fn where_nobody_looked_noise_hands_over_to_the_second() {
    // RTTs of 30 to 46 ms on a path of 20, whatever is sent.
    let noisy = |round: u64, part: u64| Span::from_millis(30 + (round * 7 + part * 5) % 17);
    let rounds = rounds_until_cubic(&mut assumed(), noisy).expect("CUBIC's");
    assert!((8..40).contains(&rounds), "{rounds}");
}

/// HyStart leaves a queue as long as the path: while it goes away RTTs of a round trip differ
/// by more than any target.
#[test]
fn where_nobody_looked_the_end_of_a_long_queue_is_no_noise() {
    // From 60 ms down to 20 in 8 round trips, each of which has RTTs that differ by 10 ms.
    let falling = |round: u64, part: u64| {
        if round < 8 { Span::from_millis(60 - round * 5 + part) } else { Span::from_millis(20) }
    };
    assert_eq!(rounds_until_cubic(&mut assumed(), falling), None);
}

#[test]
fn where_nobody_looked_a_queue_that_does_not_go_away_hands_over_to_the_second() {
    // A queue of 40 ms that somebody else keeps, behind a path of 20.
    let rounds = rounds_until_cubic(&mut assumed(), |_, _| Span::from_millis(60)).expect("CUBIC's");
    assert!((6..30).contains(&rounds), "{rounds}");
    // Where somebody can be asked, that one is told of the doubt, and decides.
    let mut asked = pair();
    asked.on_isolation(Time::ZERO, Isolation::Isolated, &mut Window::new(100));
    assert_eq!(rounds_until_cubic(&mut asked, |_, _| Span::from_millis(60)), None);
    assert!(asked.doubts_isolation());
}

#[test]
fn a_queue_of_ones_own_gets_the_first_and_any_other_the_second() {
    let mut pair = pair();
    let mut window = Window::new(100);
    assert!(!pair.controls_recovery() && pair.pacing_rate().is_none());
    pair.on_ack(&at_20ms(), &window);
    pair.on_isolation(Time::ZERO, Isolation::Isolated, &mut window);
    assert!(pair.controls_recovery());
    pair.on_takeover(Time::ZERO, &window, None);
    // 100 packets in 20 ms.
    assert_eq!(pair.pacing_rate(), Some(Rate::from_bps(100 * 1448 * 8 * 50)));
    assert_eq!(window.cwnd, 100);
}

/// RTTs of 30 to 46 ms on a path of 20, whatever is sent.
#[test]
fn on_a_noisy_path_the_second_goes_on_for_good_from_what_was_delivered_before_the_rate_fell() {
    let mut pair = pair();
    let mut window = Window::new(100);
    pair.on_isolation(Time::ZERO, Isolation::Isolated, &mut window);
    pair.on_ack(&at_20ms(), &window);
    pair.on_takeover(Time::ZERO, &window, None);
    let (mut now, mut delivered) = (Time::ZERO, 0);
    for round in 0..200_u64 {
        // Ten ACKs per round trip.
        let Some(rate) = pair.pacing_rate() else { break };
        for part in 0..10 {
            now += Span::from_millis(2);
            let before = delivered;
            delivered += rate.bytes_in(Span::from_millis(2)).get() / 1448;
            let rtt = Span::from_millis(30 + (round * 7 + part * 5) % 17);
            let of_a_round = rate.bytes_in(Span::from_millis(20)).get() / 1448;
            let sample = DeliveryRate {
                delivered: of_a_round as u32,
                interval: Span::from_millis(20),
                prior_delivered: before.saturating_sub(of_a_round),
                app_limited: false,
            };
            let ack = Ack { now, rtt: Some(rtt), srtt: rtt, delivered, rate: Some(sample), ..at_20ms() };
            pair.on_ack(&ack, &window);
            pair.grow(&ack, 1, &mut window);
        }
    }
    assert!(pair.pacing_rate().is_none() && !pair.controls_recovery(), "CUBIC is in charge");
    assert!(window.cwnd >= 80, "{} of the 100 packets that it had", window.cwnd);
    assert!(window.ssthresh >= 2 * window.cwnd.min(80), "and it may grow fast from there");
    pair.on_isolation(now, Isolation::Shared, &mut window);
    pair.on_isolation(now, Isolation::Isolated, &mut window);
    assert!(!pair.controls_recovery(), "for good");
}

/// The transport would not walk to the window that is handed over.
#[test]
fn nobody_gives_up_within_a_recovery() {
    let mut pair = pair();
    let mut window = Window::new(100);
    pair.on_isolation(Time::ZERO, Isolation::Isolated, &mut window);
    pair.on_ack(&at_20ms(), &window);
    pair.on_takeover(Time::ZERO, &window, None);
    let (mut now, mut delivered) = (Time::ZERO, 0);
    for part in 0..4000_u64 {
        now += Span::from_micros(2500);
        delivered += 1;
        let repair = if part < 3999 { Repair::Losses } else { Repair::Nothing };
        let ack = Ack { repair, ..starving(now, part, delivered) };
        pair.on_ack(&ack, &window);
        pair.grow(&ack, 1, &mut window);
        assert_eq!(pair.controls_recovery(), part < 3999, "ACK {part}");
    }
}

#[test]
fn who_gives_up_may_grow_fast_up_to_the_window_that_the_start_handed_over() {
    let mut pair = pair();
    let mut window = Window::new(300);
    pair.on_isolation(Time::ZERO, Isolation::Isolated, &mut window);
    pair.on_ack(&at_20ms(), &window);
    pair.on_takeover(Time::ZERO, &window, Some(Rate::from_mbps(100)));
    assert_eq!(pair.handed_over, 300);
    let (mut now, mut delivered) = (Time::ZERO, 0);
    for part in 0..2000_u64 {
        if !pair.controls_recovery() {
            break;
        }
        now += Span::from_micros(2500);
        delivered += 1;
        let ack = starving(now, part, delivered);
        pair.on_ack(&ack, &window);
        pair.grow(&ack, 1, &mut window);
    }
    assert!(!pair.controls_recovery(), "it gave up");
    assert_eq!(window.ssthresh, 300);
    assert!(window.cwnd < 20, "no more than was delivered: {}", window.cwnd);
}

#[test]
fn a_queue_that_turns_out_to_be_shared_gets_the_second_with_the_window_in_use() {
    let mut pair = pair();
    let mut window = Window::new(100);
    pair.on_ack(&at_20ms(), &window);
    pair.on_isolation(Time::ZERO, Isolation::Isolated, &mut window);
    pair.on_takeover(Time::ZERO, &window, None);
    pair.grow(&at_20ms(), 1, &mut window);
    assert_eq!(window.cwnd, 200, "a permission");
    pair.on_isolation(Time::ZERO, Isolation::Shared, &mut window);
    assert_eq!((window.cwnd, window.ssthresh), (100, 100));
    assert!(!pair.controls_recovery());
}

/// A control that counts how often it may set the window.
struct Counting(bool, u32);

impl CongestionAvoidance for Counting {
    fn controls_recovery(&self) -> bool {
        self.0
    }

    fn grow(&mut self, _: &Ack, _: u32, _: &mut Window) {
        self.1 += 1;
    }

    fn reduce(&mut self, _: Time, _: Signal, _: &Window) -> u32 {
        2
    }
}

#[test]
fn who_controls_recovery_is_told_of_acks_that_acknowledge_nothing_new() {
    for (in_recovery, told) in [(true, 2), (false, 1)] {
        let isolated = DelayTarget::new(&DelayTargetConfig::default(), 1448);
        let mut pair = ByIsolation::new(isolated, Counting(in_recovery, 0));
        for acked in [0, 1] {
            pair.grow(&ack(acked), acked, &mut Window::new(10));
        }
        assert_eq!(pair.shared.1, told);
    }
}
