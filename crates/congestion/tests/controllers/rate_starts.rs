//! What starts that set a rate do to a path: one flow, a FIFO, an ACK per packet.

use crate::common::{Loop, Path};
use flowstart_congestion::start::{BbrStartConfig, CarefulResumeConfig, JumpStartConfig, RapidStartConfig, Start};
use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, ExitReason, StartConfig};
use flowstart_units::{Bytes, Span, Time};

/// Mbit/s and ms, with the bandwidth-delay product in packets.
const PATHS: [(u64, u64, f64); 4] = [(100, 20, 167.0), (100, 50, 417.0), (50, 100, 417.0), (1000, 50, 4167.0)];

fn flow(path: Path, start: StartConfig) -> Loop {
    let config = ControllerConfig::new(start, AvoidanceConfig::Reno);
    Loop::new(path, Controller::new(&config), u64::MAX)
}

fn deep(mbps: u64, ms: u64) -> Path {
    Path::new(mbps, Span::from_millis(ms))
}

/// How long the queue grew, in round trips.
fn queue(flow: &Loop) -> f64 {
    flow.max_queue.ratio(flow.path.rtt0())
}

#[test]
fn the_start_of_bbr_queues_its_window_gain_less_one_and_hands_the_bdp_over() {
    for (config, standing) in
        [(BbrStartConfig::v1(), 1.89), (BbrStartConfig::v3(), 1.0), (BbrStartConfig::default(), 1.0)]
    {
        for (mbps, ms, bdp) in PATHS {
            let mut flow = flow(deep(mbps, ms), StartConfig::BbrStart(config));
            flow.run(Time::ZERO + flow.path.rtt0() * 30, |_| {});
            let exit = *flow.controller.start_exit().unwrap();
            assert_eq!(exit.reason, ExitReason::RatePlateau);
            let extra = f64::from(config.extra_packets);
            let window = f64::from(exit.cwnd) - extra;
            assert!((window / bdp - 1.0).abs() < 0.02, "{mbps} {ms}: {window} against {bdp}");
            assert!((queue(&flow) - standing).abs() < 0.05, "{mbps} {ms}: {} BDP of queue", queue(&flow));
        }
    }
}

#[test]
fn in_a_small_buffer_bbr_leaves_for_its_losses_and_its_first_version_for_the_plateau() {
    for (config, reason) in
        [(BbrStartConfig::default(), ExitReason::Loss), (BbrStartConfig::v1(), ExitReason::RatePlateau)]
    {
        let mut flow = flow(Path { buffer: 40, ..deep(100, 50) }, StartConfig::BbrStart(config));
        flow.run(Time::ZERO + flow.path.rtt0() * 30, |_| {});
        let exit = flow.controller.start_exit().unwrap();
        assert_eq!(exit.reason, reason);
    }
}

/// Completion time in milliseconds of `packets` over 100 Mbit/s and 50 ms with an unlimited buffer.
fn completion(start: StartConfig, packets: u64) -> f64 {
    let config = ControllerConfig::new(start, AvoidanceConfig::Reno);
    let mut flow = Loop::new(deep(100, 50), Controller::new(&config), packets);
    flow.run(Time::ZERO + Span::from_secs(60), |_| {});
    assert_eq!(flow.delivered, packets);
    flow.now.since(Time::ZERO).as_millis_f64()
}

/// An independent model of unpaced senders has 333 ms for doubling and 260 ms for tripling, until
/// the data is at the receiver, 25 ms before the last ACK. That Rapid Start paces costs nothing
/// here: the first packets of the flights are the clock, and in the end the link is.
#[test]
fn a_megabyte_takes_rapid_start_a_round_trip_less_than_slow_start() {
    let slow = completion(StartConfig::SlowStart, 691);
    assert!((slow - 25.0 - 333.0).abs() < 2.0, "{slow}");
    for config in [RapidStartConfig::default(), RapidStartConfig::quicly()] {
        let rapid = completion(StartConfig::RapidStart(config), 691);
        assert!((rapid - 25.0 - 260.4).abs() < 2.0, "{rapid}");
    }
}

#[test]
fn after_the_first_losses_rapid_start_keeps_beta_times_what_got_through_and_loses_no_more() {
    let path = Path { buffer: 417, ..deep(100, 50) };
    let mut flow = flow(path, StartConfig::RapidStart(RapidStartConfig::default()));
    let mut lost_at_exit = None;
    flow.run(Time::ZERO + flow.path.rtt0() * 25, |flow| {
        if !flow.controller.is_starting() {
            lost_at_exit.get_or_insert(flow.lost);
        }
    });
    let exit = flow.controller.start_exit().unwrap();
    assert_eq!(exit.reason, ExitReason::Loss);
    assert_eq!(lost_at_exit, Some(flow.lost));
    // Pipe and buffer hold 834 packets, and a flight overlaps with the one before.
    let kept = f64::from(exit.cwnd) / 834.0;
    assert!((0.55..=0.8).contains(&kept), "{kept} of pipe and buffer");
}

#[test]
fn jump_start_needs_one_round_trip_for_what_fits_into_the_pipe() {
    let expected = 50.12 + 50.0 * 300.0 / 301.0;
    let found = completion(StartConfig::JumpStart(JumpStartConfig::default()), 301);
    assert!((found - expected).abs() < 1.0, "{found} against {expected}");
}

#[test]
fn a_jump_into_a_small_buffer_keeps_half_of_what_was_not_lost() {
    let mut flow = flow(Path { buffer: 40, ..deep(100, 50) }, StartConfig::JumpStart(JumpStartConfig::default()));
    let mut lost_at_exit = None;
    flow.run(Time::ZERO + flow.path.rtt0() * 10, |flow| {
        if !flow.controller.is_starting() {
            lost_at_exit.get_or_insert(flow.lost);
        }
    });
    let exit = flow.controller.start_exit().unwrap();
    let Start::JumpStart(start) = flow.controller.start() else { panic!("another start") };
    assert_eq!((exit.reason, start.jumped()), (ExitReason::Loss, 724));
    let lost = lost_at_exit.unwrap() as u32;
    assert_eq!(exit.cwnd, (724 - lost) / 2);
}

/// A flow that remembers `packets` per round trip of 50 ms.
fn remembering(packets: u64) -> StartConfig {
    let saved_cwnd = Some(Bytes::new(packets * u64::from(crate::common::MSS)));
    let saved_rtt = Some(Span::from_millis(50));
    StartConfig::CarefulResume(CarefulResumeConfig { saved_cwnd, saved_rtt, ..CarefulResumeConfig::default() })
}

#[test]
fn a_flow_that_remembers_the_path_is_done_round_trips_earlier() {
    let slow = completion(StartConfig::SlowStart, 2000);
    assert_eq!(completion(StartConfig::CarefulResume(CarefulResumeConfig::default()), 2000), slow);
    let resumed = completion(remembering(417), 2000);
    assert!(resumed < slow - 75.0, "{resumed} against {slow}");
}

#[test]
fn a_flow_that_remembers_ten_times_too_much_retreats_below_the_pipe() {
    let mut flow = flow(Path { buffer: 100, ..deep(20, 50) }, remembering(834));
    flow.run(Time::ZERO + flow.path.rtt0() * 20, |_| {});
    let exit = flow.controller.start_exit().unwrap();
    assert_eq!(exit.reason, ExitReason::Loss);
    assert!(exit.cwnd <= 84, "{} packets", exit.cwnd);
}

/// 5 MB over 50 Mbit/s and 100 ms with a buffer of one bandwidth-delay product: the authors' test
/// bed has 1.11 s with SUSS and 1.29 s with HyStart.
#[test]
fn suss_brings_five_megabytes_home_0_18_s_before_hystart() {
    let fct = |start| {
        let config =
            ControllerConfig::new(StartConfig::from_name(start).unwrap(), AvoidanceConfig::from_name("cubic").unwrap());
        let path = Path { buffer: 413, ..deep(50, 100) };
        let mut flow = Loop::new(path, Controller::new(&config), 5_000_000 / u64::from(crate::common::MSS));
        flow.run(Time::ZERO + Span::from_secs(60), |_| {});
        flow.now.since(Time::ZERO).as_secs_f64()
    };
    let (suss, hystart) = (fct("suss"), fct("hystart"));
    // Published is the time at the receiver, 50 ms before the last ACK.
    assert!((hystart - suss - 0.18).abs() < 0.02, "{suss} against {hystart}");
    assert!((suss - 0.05 - 1.11).abs() < 0.05 && (hystart - 0.05 - 1.29).abs() < 0.05);
}
