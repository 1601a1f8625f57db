mod afterwards;
mod isolation;
mod pace;
mod timeouts;
mod unused;

use super::*;
use flowstart_avoidances::AvoidanceConfig;
use flowstart_control::testing::{ack, next, sent};
use flowstart_control::{INFINITE_SSTHRESH, Pacing};
use flowstart_starts::{HystartConfig, StartConfig};

/// A controller with this start in front of NewReno.
fn config(start: StartConfig) -> ControllerConfig {
    ControllerConfig::new(start, AvoidanceConfig::Reno)
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

fn hystart() -> Controller {
    Controller::new(&config(StartConfig::Hystart(HystartConfig::default())))
}

fn slow_start() -> Controller {
    Controller::new(&config(StartConfig::SlowStart))
}

/// Grows by ACKs of one packet until the window is `cwnd`.
fn grow_to(controller: &mut Controller, cwnd: u32) {
    while controller.cwnd() < cwnd {
        controller.grow(&ack(1));
    }
}

#[test]
fn the_threshold_ends_a_start_and_the_rest_of_the_ack_goes_to_avoidance() {
    let mut config = config(StartConfig::SlowStart);
    config.initial_ssthresh = Some(14);
    let mut controller = Controller::new(&config);
    controller.grow(&ack(18));
    // Four packets reach the threshold, fourteen are a window's worth.
    assert_eq!(controller.cwnd(), 15);
    let exit = controller.start_exit().unwrap();
    assert_eq!((exit.reason, exit.cwnd, exit.ssthresh), (ExitReason::Threshold, 14, 14));
    assert!(!controller.is_starting());
}

#[test]
fn a_threshold_below_the_initial_window_ends_the_start_with_the_first_ack() {
    let mut config = config(StartConfig::SlowStart);
    config.initial_ssthresh = Some(5);
    let mut controller = Controller::new(&config);
    controller.grow(&ack(1));
    assert_eq!(controller.cwnd(), 10);
    assert_eq!(controller.start_exit().unwrap().reason, ExitReason::Threshold);
}

#[test]
fn the_exit_is_recorded_once_and_as_it_was_before_the_reduction() {
    let mut controller = slow_start();
    grow_to(&mut controller, 40);
    controller.on_ack(&Ack { in_flight: 38, srtt: Span::from_millis(30), min_rtt: Span::from_millis(20), ..ack(1) });
    assert_eq!(controller.on_signal(ms(5), Signal::Loss), Some(20));
    let first = *controller.start_exit().unwrap();
    let expected = StartExit {
        now: ms(5),
        reason: ExitReason::Loss,
        cwnd: 40,
        ssthresh: 20,
        in_flight: 38,
        srtt: Span::from_millis(30),
        min_rtt: Span::from_millis(20),
    };
    assert_eq!(first, expected);
    controller.set_cwnd(20);
    controller.on_signal(ms(9), Signal::Timeout);
    assert_eq!(controller.start_exit(), Some(&first));
}

#[test]
fn undo_restores_window_and_threshold() {
    let mut controller = slow_start();
    grow_to(&mut controller, 40);
    controller.on_signal(ms(1), Signal::Loss);
    controller.set_cwnd(20);
    controller.undo(40, INFINITE_SSTHRESH);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (40, INFINITE_SSTHRESH));
    controller.grow(&ack(1));
    assert_eq!(controller.cwnd(), 41, "slow start goes on");
}

#[test]
fn marks_reach_dctcp_while_a_start_ignores_them() {
    let start = StartConfig::from_name("paced_chirping").unwrap();
    let avoidance = AvoidanceConfig::Dctcp(crate::avoidance::DctcpConfig { initial_alpha: 0, ..Default::default() });
    let mut controller = Controller::new(&ControllerConfig::new(start, avoidance));
    controller.on_ack(&Ack { marked: 10, una: 1, next: 2, ..ack(10) });
    assert_eq!(controller.on_signal(ms(1), Signal::Marks), None);
    let Avoidance::Dctcp(dctcp) = controller.avoidance() else { panic!() };
    assert_eq!(dctcp.alpha(), 64);
}

#[test]
fn values_out_of_range_are_named() {
    let good = config(StartConfig::SlowStart);
    assert_eq!(good.validate(), Ok(()));
    let invalid = |config: ControllerConfig| config.validate().unwrap_err().to_string();
    assert_eq!(
        invalid(ControllerConfig { initial_window: 0, ..good.clone() }),
        "initial_window must be between 1 and 1000000"
    );
    assert_eq!(invalid(ControllerConfig { mss: 0, ..good.clone() }), "mss must be at least 1 byte");
    assert_eq!(invalid(ControllerConfig { initial_ssthresh: Some(1), ..good }), "initial_ssthresh must be at least 2");
}

#[test]
fn an_avoidance_that_controls_recovery_does_so_only_once_the_start_is_over() {
    let controls = |name: &str| {
        let avoidance = AvoidanceConfig::from_name(name).unwrap();
        let mut controller = Controller::new(&ControllerConfig::new(StartConfig::SlowStart, avoidance));
        let during = controller.controls_recovery();
        controller.on_signal(ms(1), Signal::Loss);
        assert!(!controller.start_is_in_charge());
        (during, controller.controls_recovery())
    };
    assert_eq!(controls("vivace"), (false, true));
    assert_eq!(controls("reno"), (false, false));
}

#[test]
fn of_the_avoidances_only_cubic_counts_packets_alone_or_as_one_of_a_pair() {
    for name in AvoidanceConfig::NAMES {
        let avoidance = AvoidanceConfig::from_name(name).unwrap();
        let mut controller = Controller::new(&ControllerConfig::new(StartConfig::SlowStart, avoidance));
        assert_eq!(controller.counts_packets(), ["cubic", "delay_or_cubic"].contains(name), "{name}");
        if *name == "delay_or_cubic" {
            controller.tell_isolation(ms(0), Isolation::Isolated);
            assert!(!controller.counts_packets(), "another one is in charge");
        }
    }
}

#[test]
fn a_start_that_nobody_directs_hears_of_packets_only_while_it_is_in_charge() {
    let mut controller = slow_start();
    controller.steering().overhear(true);
    assert!(controller.steering().directed().is_none(), "slow start is not directed");
    controller.on_signal(ms(1), Signal::Loss);
    assert!(!controller.wants_packets());

    let mut waiting = Controller::new(&config(StartConfig::from_name("fair_queuing_probe").unwrap()));
    assert!(waiting.steering().directed().is_some(), "it is in charge");
    waiting.on_signal(ms(1), Signal::Loss);
    assert!(waiting.steering().directed().is_none(), "a loss came before anybody directed it");
    waiting.steering().overhear(true);
    assert!(waiting.steering().directed().is_some() && waiting.wants_packets());
    waiting.steering().overhear(false);
    assert!(waiting.steering().directed().is_none() && !waiting.wants_packets());
}

#[test]
fn who_brings_its_own_start_has_one_name_and_all_others_two() {
    let avoidance = |name| AvoidanceConfig::from_name(name).unwrap();
    let start = |name| StartConfig::from_name(name).unwrap();
    assert_eq!(joint_name(&start("hystart"), &avoidance("cubic")), "hystart+cubic");
    assert_eq!(joint_name(&start("slow_start"), &avoidance("bbr")), "slow_start+bbr");
    assert_eq!(joint_name(&start("built_in"), &avoidance("bbr")), "bbr");
    assert_eq!(joint_name(&start("built_in"), &avoidance("cubic")), "built_in+cubic");
    assert_eq!(start_of(&avoidance("bbr")), StartConfig::BuiltIn);
    assert_eq!(start_of(&avoidance("cubic")), StartConfig::SlowStart);
}
