use super::*;
use flowstart_control::Moment;
use flowstart_control::testing::{ack, next, sent};
use flowstart_quick_start::RateCode;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn saved(bytes: u64, rtt: Span) -> CarefulResumeConfig {
    CarefulResumeConfig { saved_cwnd: Some(Bytes::new(bytes)), saved_rtt: Some(rtt), ..CarefulResumeConfig::default() }
}

/// The ACK that completes an initial window of ten packets of 1500 bytes.
fn iw_acked(rtt: Span) -> Ack {
    Ack { una: 15_000, delivered: 10, next: 40_000, in_flight: 10, rtt: Some(rtt), srtt: rtt, min_rtt: rtt, ..ack(1) }
}

fn resumed(config: CarefulResumeConfig, rtt: Span) -> (CarefulResume, Window) {
    let mut start = CarefulResume::new(&config, 10, 1500, 1);
    let mut window = Window::new(20);
    start.on_ack(&iw_acked(rtt), &mut window);
    (start, window)
}

#[test]
fn a_saved_megabyte_is_a_jump_to_half_of_it_with_a_packet_every_1_8_ms() {
    let (mut start, window) = resumed(saved(1_000_000, ms(600)), ms(600));
    assert!(matches!(start.phase(), ResumePhase::Unvalidated { .. }));
    assert_eq!(window.cwnd, 333);
    assert_eq!(start.departure(Time::ZERO, &next(20), &window), Some(Departure::Now));
    start.on_sent(&Sent { bytes: 1500, ..sent(Time::ZERO, 20) });
    let at = Time::ZERO + Span::from_micros(1800);
    assert_eq!(start.departure(Time::ZERO, &next(21), &window), Some(Departure::At(at)));
}

/// A flow that validates a jump and knows that `pipe` packets fit.
fn validating(pipe: u32) -> (CarefulResume, Window) {
    let (mut start, mut window) = resumed(saved(3_000_000, ms(100)), ms(100));
    start.on_sent(&Sent { in_flight: window.cwnd, ..sent(Time::ZERO, 1020) });
    start.on_ack(&Ack { acked: pipe - 10, una: 20_000, next: 1_540_000, ..iw_acked(ms(100)) }, &mut window);
    assert_eq!((start.phase(), window.cwnd), (ResumePhase::Validating(1_540_000), 1000));
    (start, window)
}

#[test]
fn a_loss_leaves_at_most_half_of_the_known_pipe() {
    // 300 kB are 200 packets.
    let (mut start, mut window) = validating(200);
    assert_eq!(start.pipe_size(), 200);
    assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Ignore);
    assert_eq!(window.cwnd, 100);
    // No growth, but the pipe turns out to be larger.
    let more = Ack { acked: 100, una: 800_000, ..iw_acked(ms(100)) };
    assert_eq!(start.on_ack(&more, &mut window), AfterAck::Continue);
    assert_eq!((start.grow(&more, &mut window), window.cwnd), (0, 100));
    let last = Ack { acked: 100, una: 1_540_000, ..iw_acked(ms(100)) };
    let exit = Exit { reason: ExitReason::Loss, cwnd: 100, ssthresh: 200, rate: None };
    assert_eq!(start.on_ack(&last, &mut window), AfterAck::Done(exit));
}

#[test]
fn a_path_of_half_the_saved_rtt_is_another_one() {
    for (rtt, jumps) in [(50, false), (51, true), (1000, true), (1001, false)] {
        let (start, window) = resumed(saved(1_000_000, ms(100)), ms(rtt));
        assert_eq!(window.cwnd > 20, jumps, "{rtt} ms");
        assert_eq!(start.phase() == ResumePhase::Normal, !jumps);
    }
}

#[test]
fn a_jump_that_arrives_goes_on_as_slow_start() {
    let (mut start, mut window) = validating(200);
    let more = Ack { acked: 50, una: 800_000, ..iw_acked(ms(100)) };
    start.on_ack(&more, &mut window);
    start.grow(&more, &mut window);
    assert_eq!((start.phase(), window.cwnd), (ResumePhase::Validating(1_540_000), 1050));
    start.on_ack(&Ack { una: 1_540_000, ..iw_acked(ms(100)) }, &mut window);
    assert_eq!(start.phase(), ResumePhase::Normal);
    assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Leave);
}

#[test]
fn a_flow_that_sends_less_than_the_jump_keeps_what_is_known_to_fit() {
    let (mut start, mut window) = resumed(saved(3_000_000, ms(100)), ms(100));
    let late = Ack { now: Time::ZERO + ms(100), acked: 8, in_flight: 15, ..iw_acked(ms(100)) };
    start.on_ack(&late, &mut window);
    assert_eq!((start.phase(), window.cwnd), (ResumePhase::Normal, 18));
}

#[test]
fn without_enough_saved_it_is_slow_start() {
    for config in [CarefulResumeConfig::default(), saved(59_999, ms(100))] {
        let (start, window) = resumed(config, ms(100));
        assert_eq!((start.phase(), window.cwnd), (ResumePhase::Normal, 20));
    }
    let bounded = CarefulResumeConfig { max_jump: Some(Bytes::new(150_000)), ..saved(1_000_000, ms(100)) };
    assert_eq!(resumed(bounded, ms(100)).1.cwnd, 100, "the jump is bounded");
}

#[test]
fn a_loss_before_the_jump_forbids_it() {
    let mut start = CarefulResume::new(&saved(1_000_000, ms(100)), 10, 1500, 1);
    let mut window = Window::new(10);
    assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Leave);
    start.on_ack(&iw_acked(ms(100)), &mut window);
    assert_eq!((start.phase(), window.cwnd), (ResumePhase::Normal, 10));
}

/// What the window is after the routers granted code `n` to a flow that asked as it opened,
/// with an RTT of 100 ms.
fn after_grant(config: CarefulResumeConfig, n: u8) -> (CarefulResume, Window) {
    let config = CarefulResumeConfig { request: Some(Rate::from_mbps(100)), ..config };
    let mut start = CarefulResume::new(&config, 10, 1460, 1);
    let mut window = Window::new(10);
    let occasion = Occasion {
        now: Time::ZERO,
        moment: Moment::Opening,
        rto: Span::from_secs(1),
        srtt: Span::ZERO,
        packet: 1500,
        backlog: u64::MAX,
        una: 0,
        next: 0,
        cwnd: 10,
        largest_window: None,
    };
    let mut request = start.rate_request(&occasion);
    assert_eq!(request.asked().get(), 11);
    request.pass_aware(RateCode::new(n).unwrap(), 12345);
    let response = request.answer();
    start.on_answer(
        &Answer { now: Time::ZERO + ms(100), response, share: None, lost: false, rtt: ms(100), una: 0, next: 0 },
        &mut window,
    );
    (start, window)
}

#[test]
fn with_a_grant_the_jump_is_half_of_what_was_saved_or_what_was_granted_and_leaves_at_once() {
    let saved = saved(1460 * 100, ms(100));
    // 2.56 Mbit/s are 21 packets in 100 ms, 10.24 Mbit/s are 85.
    for (code, packets) in [(6, 21), (8, 50)] {
        let (start, window) = after_grant(saved, code);
        assert_eq!(window.cwnd, packets);
        let until = Time::ZERO + ms(200);
        assert_eq!(start.phase(), ResumePhase::Unvalidated { first: 0, until });
    }
    let (start, window) = after_grant(saved, 3);
    assert_eq!((start.phase(), window.cwnd), (ResumePhase::Normal, 10), "the routers have no more");
    let elsewhere = CarefulResumeConfig { saved_rtt: Some(ms(500)), ..saved };
    let (start, window) = after_grant(elsewhere, 8);
    assert_eq!((start.phase(), window.cwnd), (ResumePhase::Reconnaissance, 10), "nothing saved fits");
}

#[test]
fn constants_out_of_range_are_refused_and_harmless() {
    assert_eq!(CarefulResumeConfig::default().validate(), Ok(()));
    let config =
        CarefulResumeConfig { jump_share: f64::NAN, rtt_share: 9.0, rtt_multiple: 0, ..saved(u64::MAX, Span::MAX) };
    assert!(config.validate().is_err());
    resumed(config, Span::MAX);
}
