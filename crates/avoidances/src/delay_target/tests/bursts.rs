//! What packets wait for those of their own burst.

use super::*;

/// What counts as queue after rounds over a path of 50 ms that carries `carries` and delays every
/// packet by `waits`, some by `more`, first at 20 and then at 30 Mbit/s.
fn queue_after_rounds(carries: Rate, waits: Span, more: Span) -> Span {
    let mut control = control(waits);
    for (round, sent) in [20, 30].into_iter().enumerate() {
        control.rate = Some(Rate::from_mbps(30));
        control.take_sample(Time::ZERO + ms(40), ms(50) + waits + more);
        control.take_sample(Time::ZERO + ms(40), ms(50) + waits);
        (control.before, control.path.delivery) = (Rate::from_mbps(sent), Some(Rate::from_mbps(sent).min(carries)));
        control.on_round(Time::ZERO + ms(50) * (1 + round as u64));
    }
    control.queueing()
}

fn queue_after_growth(carries: Rate, waits: Span) -> Span {
    queue_after_rounds(carries, waits, Span::ZERO)
}

/// RTTs that differ by more than half of the target tell of a queue that comes or goes.
#[test]
fn where_rtts_of_a_round_differ_their_wait_is_not_that_of_bursts() {
    let waits = Span::from_micros(600);
    let queue = |more| queue_after_rounds(Rate::from_mbps(50), waits, Span::from_micros(more));
    assert_eq!(queue(250), Span::ZERO);
    // But for the noise that they tell of.
    assert!(queue(251) > Span::from_micros(500) && queue(251) < waits, "{:?}", queue(251));
}

#[test]
fn packets_of_a_burst_wait_for_each_other_and_are_no_queue_if_more_is_delivered_as_more_is_sent() {
    let waits = Span::from_micros(600);
    assert_eq!(queue_after_growth(Rate::from_mbps(50), waits), Span::ZERO);
    // Here it stands.
    assert_eq!(queue_after_growth(Rate::from_mbps(20), waits), waits);
    assert_eq!(queue_after_growth(Rate::from_mbps(29), waits), waits);
    // A burst is not that long.
    assert_eq!(queue_after_growth(Rate::from_mbps(50), Span::from_micros(1800)), Span::from_micros(800));
}

#[test]
fn bursts_of_two_packets_may_last_longer_on_a_slow_path() {
    let mut control = control(ms(3));
    control.in_bursts = ms(53);
    for (delivery, queue) in [(40, 2000), (5, 3000 - 2317), (2, 0)] {
        control.path.delivery = Some(Rate::from_mbps(delivery));
        assert!(control.queueing().as_micros().abs_diff(queue) <= 1, "{delivery} Mbit/s: {:?}", control.queueing());
    }
}
