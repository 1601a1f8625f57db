//! Who is in charge after a timeout.

use super::*;

#[test]
fn after_a_timeout_hystart_watches_the_next_slow_start_as_in_linux() {
    let mut controller = hystart();
    grow_to(&mut controller, 100);
    controller.on_signal(ms(1), Signal::Loss);
    controller.set_cwnd(50);
    assert!(!controller.in_charge);
    controller.on_signal(ms(2), Signal::Timeout);
    controller.set_cwnd(1);
    assert!(controller.in_charge && !controller.is_starting());
    // It hands over at the threshold like any start.
    grow_to(&mut controller, 25);
    assert_eq!(controller.ssthresh(), 25);
    assert!(!controller.in_charge);
}

#[test]
fn hystart_watches_the_slow_start_after_a_timer_that_expired_in_a_recovery() {
    // Linux tcp_enter_loss does not reduce again, but enters TCP_CA_Loss.
    let mut controller = hystart();
    grow_to(&mut controller, 100);
    controller.on_signal(ms(1), Signal::Loss);
    controller.set_cwnd(50);
    controller.on_expiry(ms(400), 100);
    controller.set_cwnd(1);
    assert!(controller.in_charge && controller.ssthresh() == 50);
}

#[test]
fn a_start_is_asked_once_whether_it_is_in_charge_after_a_timeout() {
    let mut controller = Controller::new(&config(StartConfig::from_name("slow_start").unwrap()));
    controller.on_signal(ms(1), Signal::Timeout);
    assert!(controller.timed_out);
    controller.on_expiry(ms(1), 3);
    assert!(!controller.timed_out && !controller.in_charge);
}

#[test]
fn after_a_timeout_in_the_first_start_hystart_is_in_charge_again_at_once() {
    let mut controller = hystart();
    grow_to(&mut controller, 40);
    assert_eq!(controller.on_signal(ms(1), Signal::Timeout), Some(20));
    assert_eq!(controller.start_exit().unwrap().reason, ExitReason::Timeout);
    assert!(controller.in_charge);
}

#[test]
fn other_starts_leave_later_slow_starts_to_the_standard() {
    for name in ["slow_start", "hystart_plus_plus", "paced_chirping"] {
        let mut controller = Controller::new(&config(StartConfig::from_name(name).unwrap()));
        controller.on_signal(ms(1), Signal::Timeout);
        controller.set_cwnd(1);
        assert!(!controller.in_charge, "{name}");
        controller.grow(&ack(1));
        assert_eq!(controller.cwnd(), 2, "{name}");
    }
}
