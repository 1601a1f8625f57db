//! Queues that are not the flow's own, and paths that are no queue.

use super::*;

#[test]
fn a_queue_that_stays_for_twelve_rounds_is_somebody_elses_and_the_rate_before_it_is_remembered() {
    let mut control = control(ms(30));
    control.rate = Some(RATE);
    let mut rate = RATE;
    for round in 0..12 {
        assert!(!control.doubts_isolation(), "after {round}");
        rate = control.next_rate(rate, rate, 0.0);
    }
    assert!(control.doubts_isolation() && rate < RATE.mul_ratio(1, 2));
    control.rate = Some(rate);
    let packets = control.reduce(Time::ZERO, Signal::Loss, &Window::new(10));
    assert_eq!(packets, control.path.window(RATE, 1, 2));
}

/// The smallest RTT after rounds in which so many Mbit/s were delivered, at the RTT of the control
/// on a path of 50 ms.
fn after_rounds(control: &mut DelayTarget, rounds: &[u64]) -> Span {
    rounds.iter().for_each(|&mbps| control.watch_length(Rate::from_mbps(mbps), control.rtt));
    control.min_rtt()
}

/// Behind a change of route by 3 ms at 40 Mbit/s and 6 ms a flow stood at 7 Mbit/s for six seconds.
#[test]
fn a_path_that_became_longer_has_no_queue_for_that_and_carries_what_it_carried() {
    let mut longer = control(ms(2));
    assert_eq!(after_rounds(&mut longer, &[40, 36, 32, 27]), ms(52));
    assert_eq!((longer.known, longer.queueing()), (Rate::from_mbps(40), Span::ZERO));
    let mut losing = DelayTarget { congested: 1, ..control(ms(2)) };
    assert_eq!(after_rounds(&mut losing, &[40, 36, 32, 27]), ms(50), "a full buffer");
    let mut short = control(Span::from_micros(500));
    assert_eq!(after_rounds(&mut short, &[40, 36, 32, 27]), ms(50), "what is aimed at");
}

#[test]
fn a_long_delay_that_stays_is_the_paths_only_if_a_look_found_no_others() {
    let mut control = DelayTarget { foreign: 1, ..control(ms(20)) };
    assert_eq!(after_rounds(&mut control, &[40, 36, 32, 27]), ms(50));
    control.on_isolation_confirmed();
    assert_eq!(control.min_rtt(), ms(70));
}

#[test]
fn a_queue_that_goes_away_in_between_is_the_flows_own() {
    let mut control = control(ms(30));
    for round in 0..40 {
        control.rtt = ms(50) + if round % 10 == 9 { ms(2) } else { ms(30) };
        control.next_rate(RATE, RATE, 0.0);
        assert!(!control.doubts_isolation());
    }
}

#[test]
fn at_the_floor_a_short_delay_is_taken_for_jitter_and_not_for_a_foreign_queue() {
    let mut control = control(ms(2));
    let least = control.path.least_rate(2);
    control.known = least;
    for _ in 0..3 {
        control.next_rate(least, least.mul_f64(0.1), 0.01);
    }
    assert!(!control.doubts_isolation());
}

#[test]
fn at_the_floor_the_rtt_is_taken_for_the_path() {
    let mut control = control(ms(100));
    let least = control.path.least_rate(2);
    control.next_rate(least, least, 0.0);
    assert_eq!(control.min_rtt(), ms(150));
    assert!(control.doubts_isolation());
}
