//! When a low rate is given up.

use super::*;

/// Rounds on a path whose RTTs differ by 3 ms, at 5 Mbit/s, until the control gives up.
fn rounds_until_it_gives_up(measured: Option<Rate>, since: Span) -> Option<u32> {
    let mut control = control(Span::ZERO);
    control.on_takeover(Time::ZERO, &Window::new(10), measured);
    let slow = Rate::from_mbps(5);
    (control.rate, control.ranges) = (Some(slow), [Span::from_millis(3); MOST_ROUNDS]);
    (1..50).find(|_| {
        control.note_delivery(Time::ZERO + since, slow);
        control.watch_rate(Time::ZERO + since);
        control.gives_up()
    })
}

#[test]
fn a_noisy_path_on_which_nothing_is_delivered_at_the_rate_that_was_measured_is_given_up() {
    assert_eq!(rounds_until_it_gives_up(Some(RATE), ms(40)), Some(8));
    assert_eq!(rounds_until_it_gives_up(Some(RATE), Span::from_secs(10)), None, "that was long ago");
    assert_eq!(rounds_until_it_gives_up(None, ms(40)), None, "nothing was measured");
}

/// A control at 2 Mbit/s on a path that was seen to deliver this before, delivers all that is sent
/// and whose RTTs differ by so much: after how many rounds it gives up.
fn rounds_until_trials_end(before: Rate, differ: Span) -> Option<u32> {
    rounds_with_losses_until_trials_end(before, differ, u32::MAX)
}

/// The same where in one of so many rounds more is lost than at random, but in none of a trial.
fn rounds_with_losses_until_trials_end(before: Rate, differ: Span, every: u32) -> Option<u32> {
    let mut control = control(Span::ZERO);
    control.path.delivery = Some(before);
    // Another avoidance is in charge.
    control.on_round(Time::ZERO);
    let low = Rate::from_mbps(2);
    (control.rate, control.before) = (Some(low), low);
    (1..60).find(|round| {
        control.path.delivery = Some(control.before);
        control.ranges = [differ; MOST_ROUNDS];
        let lost = if round % every == every - 1 { 12 } else { 0 };
        (control.delivered, control.congested, control.starved) = (400, lost, 0);
        control.on_round(Time::ZERO + ms(50));
        // Noise brings every rate down again that is not a trial's.
        if control.rate.is_none_or(|rate| rate != low.mul_f64(2.0).min(before)) {
            control.rate = Some(low);
        }
        control.gives_up()
    })
}

#[test]
fn a_rate_below_what_was_delivered_before_is_given_up_if_more_is_delivered_whenever_it_is_tried() {
    assert_eq!(rounds_until_trials_end(Rate::from_mbps(40), ms(1)), Some(20));
    // Where it stands at two thirds of that, too.
    assert_eq!(rounds_until_trials_end(Rate::from_mbps(3), ms(1)), Some(21));
    assert_eq!(rounds_until_trials_end(Rate::from_bps(2_400_000), ms(1)), None, "it is not that low");
    assert_eq!(rounds_until_trials_end(Rate::from_mbps(40), Span::from_micros(900)), None, "a smooth path");
    // Behind a policer trials kept a flow from giving up, and CUBIC had a tenth of its share.
    assert_eq!(rounds_with_losses_until_trials_end(Rate::from_mbps(40), ms(1), 4), None);
    assert_eq!(rounds_with_losses_until_trials_end(Rate::from_mbps(40), ms(1), 40), Some(20));
}

#[test]
fn the_rate_of_a_trial_is_not_taken_for_one_that_is_not_low() {
    let (peak, low) = (Rate::from_mbps(3), Rate::from_mbps(2));
    let mut control = control(Span::ZERO);
    control.path.delivery = Some(peak);
    control.on_round(Time::ZERO);
    (control.rate, control.before) = (Some(low), low);
    let round = |control: &mut DelayTarget, differ| {
        (control.path.delivery, control.ranges) = (Some(control.before), [differ; MOST_ROUNDS]);
        control.on_round(Time::ZERO + ms(50));
    };
    while control.rate != Some(peak) {
        control.rate = Some(low);
        round(&mut control, ms(1));
    }
    // RTTs that differ by more than the time of five packets.
    control.starved = 5;
    round(&mut control, ms(30));
    assert_eq!(control.starved, 5);
    round(&mut control, ms(30));
    assert_eq!(control.starved, 6);
}

/// A control at 5 Mbit/s where 100 were measured, on a path that loses 3 % in every so many rounds,
/// with this much queue: after how many of them it gives up.
fn rounds_of_losses(every: u32, queue: Span) -> Option<u32> {
    let mut control = control(queue);
    control.on_takeover(Time::ZERO, &Window::new(10), Some(RATE));
    let slow = Rate::from_mbps(5);
    (control.rate, control.path.delivery) = (Some(slow), Some(slow));
    (1..50).find(|round| {
        control.congested = if round % every == 0 { 13 } else { 0 };
        control.watch_rate(Time::ZERO + ms(40));
        control.gives_up()
    })
}

#[test]
fn a_rate_that_losses_without_a_queue_keep_low_is_given_up() {
    assert_eq!(rounds_of_losses(1, Span::ZERO), Some(8));
    assert_eq!(rounds_of_losses(7, Span::ZERO), Some(14));
    assert_eq!(rounds_of_losses(8, Span::ZERO), None, "too seldom");
    assert_eq!(rounds_of_losses(1, ms(3)), None, "its own queue");
}
