//! Round trips that are shorter than the target.

use super::*;

#[test]
fn where_a_round_trip_is_shorter_than_the_target_a_full_path_is_known_by_what_it_delivers() {
    let sent = Rate::from_mbps(10_000);
    let delivery = sent.mul_f64(0.8);
    let share = |rtt| full(rtt).next_rate(sent, delivery, 0.0).as_bps() as f64 / delivery.as_bps() as f64;
    // A quarter more than what is delivered, at most; a path of 600 us would show a queue.
    assert!((share(100) - 1.25).abs() < 1e-6, "{}", share(100));
    assert!(share(600) > 1.25, "{}", share(600));
    let mut not_full = full(100);
    not_full.full = false;
    assert!(not_full.next_rate(sent, delivery, 0.0) > sent);
}

/// The rate after so many round trips of so many microseconds without a queue, each of which
/// delivers a tenth less than is sent, over the one at their begin.
fn after_rounds_that_deliver_less(rtt: u64, rounds: u32) -> f64 {
    let mut control = full(rtt);
    let first = Rate::from_mbps(1000);
    (control.rate, control.before) = (Some(first), first);
    for round in 1..=rounds {
        control.path.delivery = Some(control.before.mul_f64(0.9));
        control.delivered = 400;
        control.on_round(Time::ZERO + Span::from_micros(rtt * u64::from(round)));
    }
    control.rate.unwrap().as_bps() as f64 / first.as_bps() as f64
}

/// A flow of few packets in bursts stood at a sixteenth of what its path carried.
#[test]
fn a_rate_does_not_shrink_for_queues_that_never_come() {
    let after = [1, 3, 4, 40].map(|rounds| after_rounds_that_deliver_less(50_000, rounds));
    assert!(after[1] < after[0] && after[0] < 1.0, "believed twice: {after:?}");
    assert!(after[2] > after[1] && after[3] > 1.0, "and not again: {after:?}");
}

#[test]
fn where_a_round_trip_is_shorter_than_the_target_what_is_foreseen_may_come_later() {
    let in_vain = |rtt| {
        let mut control = full(rtt);
        [(); 4].map(|()| control.is_in_vain(Rate::from_mbps(1000), 0.0004))
    };
    assert_eq!(in_vain(600), [false, false, true, true]);
    assert_eq!(in_vain(400), [false; 4]);
}

#[test]
fn what_did_not_come_is_forgotten_on_a_short_path_and_with_a_dismissal() {
    let delivery = Rate::from_mbps(1000);
    let again = |meanwhile: fn(&mut DelayTarget)| {
        let mut control = full(600);
        let before = [(); 3].map(|()| control.is_in_vain(delivery, 0.0004));
        meanwhile(&mut control);
        control.smallest.reset(Span::from_micros(600));
        (before[2], control.is_in_vain(delivery, 0.0004))
    };
    assert_eq!(again(|_| {}), (true, true));
    assert_eq!(again(DelayTarget::on_dismissal), (true, false));
    let short = |control: &mut DelayTarget| {
        control.smallest.reset(Span::from_micros(400));
        control.is_in_vain(Rate::from_mbps(1000), 0.0004);
    };
    assert_eq!(again(short), (true, false));
}
