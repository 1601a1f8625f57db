//! Windows that are not used, and idle times.

use super::*;

#[test]
fn an_idle_window_halves_once_per_rto_down_to_the_initial_one_and_the_threshold_remembers() {
    let mut controller = slow_start();
    controller.set_cwnd(100);
    controller.on_signal(ms(1), Signal::Loss);
    let rto = Span::from_millis(200);
    controller.restart_after_idle(ms(700), Span::from_millis(500), rto);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (25, 75));
    controller.restart_after_idle(ms(99_000), Span::from_secs(90), rto);
    assert_eq!(controller.cwnd(), 10);
}

#[test]
fn an_unused_window_shrinks_halfway_to_what_was_used() {
    let mut controller = slow_start();
    controller.set_cwnd(100);
    controller.validate_window(40);
    assert_eq!(controller.cwnd(), 70);
    controller.validate_window(2);
    assert_eq!(controller.cwnd(), 40, "at least the initial window counts as used");
    controller.validate_window(50);
    assert_eq!(controller.cwnd(), 40);
}

#[test]
fn an_unused_window_grows_only_below_twice_of_what_was_used() {
    for (max_packets_out, after) in [(10, 20), (11, 21)] {
        let mut config = config(StartConfig::SlowStart);
        config.initial_window = 20;
        let mut controller = Controller::new(&config);
        controller.grow(&Ack { cwnd_limited: false, max_packets_out, ..ack(1) });
        assert_eq!(controller.cwnd(), after, "max packets out {max_packets_out}");
    }
}

#[test]
fn a_window_that_shrinks_unused_is_remembered_as_the_largest_since_congestion() {
    let mut controller = slow_start();
    assert_eq!(controller.largest_window(), None, "congestion never reduced it");
    controller.set_cwnd(200);
    controller.on_signal(ms(1), Signal::Loss);
    controller.set_cwnd(100);
    controller.validate_window(40);
    assert_eq!((controller.cwnd(), controller.largest_window()), (70, Some(100)));
    controller.restart_after_idle(ms(99_000), Span::from_secs(90), Span::from_millis(200));
    assert_eq!((controller.cwnd(), controller.largest_window()), (10, Some(100)));
    controller.on_signal(ms(100_000), Signal::Loss);
    assert_eq!(controller.largest_window(), Some(10), "counted anew from the reduction on");
}

#[test]
fn a_window_that_was_used_to_the_last_packet_does_not_touch_the_threshold() {
    let mut controller = slow_start();
    controller.set_cwnd(40);
    controller.on_signal(ms(1), Signal::Loss);
    controller.validate_window(40);
    // Three quarters of 40 would be more than the half that the loss left.
    assert_eq!((controller.cwnd(), controller.ssthresh()), (40, 20));
}

/// Linux `tcp_slow_start_after_idle_check` leaves who has `cong_control` alone.
#[test]
fn an_avoidance_that_controls_recovery_keeps_its_window_through_an_idle_time() {
    let rto = Span::from_millis(200);
    for name in AvoidanceConfig::NAMES {
        let avoidance = AvoidanceConfig::from_name(name).unwrap();
        let mut controller = Controller::new(&ControllerConfig::new(StartConfig::SlowStart, avoidance));
        controller.on_signal(ms(1), Signal::Loss);
        controller.set_cwnd(200);
        let (controls, ssthresh) = (controller.controls_recovery(), controller.ssthresh());
        assert_eq!(controller.restart_after_idle(ms(900), rto * 7 / 2, rto), !controls, "{name}");
        let after = (controller.cwnd(), controller.ssthresh());
        assert_eq!(after, if controls { (200, ssthresh) } else { (25, 150) }, "{name}");
    }
}

/// Linux `tcp_cwnd_restart` takes one RTO off before it asks whether time is left.
#[test]
fn an_idle_time_of_exactly_two_rtos_halves_the_window_once() {
    let rto = Span::from_millis(200);
    for (idle, after) in [(rto, 100), (rto * 2, 50), (rto * 2 + Span::from_nanos(1), 25)] {
        let mut controller = slow_start();
        controller.set_cwnd(100);
        controller.restart_after_idle(ms(900), idle, rto);
        assert_eq!(controller.cwnd(), after, "{idle}");
    }
}
