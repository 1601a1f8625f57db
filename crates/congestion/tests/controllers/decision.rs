//! What a connection does with the answer of a detector of fair queuing.

use flowstart_congestion::detection::{Decision, Isolation, TrainProbeConfig};
use flowstart_congestion::{
    Ack, AvoidanceConfig, Controller, ControllerConfig, Departure, INFINITE_SSTHRESH, Next, Repair, StartConfig,
};
use flowstart_units::{Rate, Span, Time};

/// The next full packet of a flow that has this many in flight.
fn next(in_flight: u32) -> Next {
    Next {
        number: 100,
        bytes: 1448,
        wire_bytes: 1500,
        in_flight,
        packets_out: in_flight,
        queued: 1000,
        retransmission: false,
        srtt: Span::from_millis(100),
        min_rtt: Span::from_millis(100),
    }
}

/// A controller that was told one second in that the rate is 12 Mbit/s, when so many packets had
/// been delivered; its round trip is 100 ms.
fn told_of_a_rate_after(delivered: u64) -> Controller {
    told(Isolation::Shared, delivered)
}

fn told(isolation: Isolation, delivered: u64) -> Controller {
    let start = StartConfig::FairQueuingProbe(TrainProbeConfig::default());
    let mut controller = Controller::new(&ControllerConfig::new(start, AvoidanceConfig::from_name("cubic").unwrap()));
    let now = Time::ZERO + Span::from_secs(1);
    controller.on_ack(&Ack {
        now,
        acked: 1,
        acked_bytes: 1448,
        marked: 0,
        lost: 0,
        rtt: Some(Span::from_millis(100)),
        srtt: Span::from_millis(100),
        min_rtt: Span::from_millis(100),
        una: 1448,
        next: 1448,
        advanced: true,
        in_flight: 0,
        packets_out: 0,
        cwnd_limited: true,
        max_packets_out: 1,
        app_limited: false,
        delivered,
        rate: None,
        total_lost: 0,
        repair: Repair::Nothing,
    });
    let (rate, smallest) = (Rate::from_mbps(12), Span::from_millis(100));
    let decision = Decision { now, isolation, ratio: 1.1, rate, confidence: Some(0.99), smallest };
    controller.steering().on_decision(&decision, 1448, 1500);
    controller
}

fn told_of_a_rate() -> Controller {
    told_of_a_rate_after(45)
}

#[test]
fn in_a_shared_queue_the_window_is_at_most_the_initial_one_and_two_packets_for_each_delivered() {
    assert_eq!([0, 1, 44, 45, 46].map(|delivered| told_of_a_rate_after(delivered).cwnd()), [10, 12, 98, 100, 100]);
}

#[test]
fn without_an_answer_the_rate_is_a_beginning_and_slow_start_goes_on_from_it() {
    let after = |isolation| {
        let controller = told(isolation, 20);
        (controller.cwnd(), controller.ssthresh())
    };
    // 12 Mbit/s and 100 ms are a hundred packets; 20 delivered ones make a window of 50.
    assert_eq!(after(Isolation::Isolated), (100, 100));
    assert_eq!(after(Isolation::Shared), (50, 100));
    assert_eq!(after(Isolation::Unknown), (50, INFINITE_SSTHRESH));
}

#[test]
fn where_others_keep_a_queue_slow_start_ends_with_the_answer() {
    let thresholds = |isolation, delivered, share| {
        let mut controller = told(isolation, delivered);
        controller.steering().on_crowd(share);
        (controller.cwnd(), controller.ssthresh())
    };
    assert_eq!(thresholds(Isolation::Shared, 20, 0.25), (50, 50));
    assert_eq!(thresholds(Isolation::Unknown, 20, 0.25), (50, 50));
    // 100 packets fit the path: a smaller window grows to a quarter of that.
    assert_eq!(thresholds(Isolation::Shared, 2, 0.25), (14, 25));
    assert_eq!(thresholds(Isolation::Shared, 2, 0.0), (14, 14));
    assert_eq!(thresholds(Isolation::Unknown, 2, 0.25), (14, 14));
    // Before the answer the window is not what holds packets back.
    let start = StartConfig::FairQueuingProbe(TrainProbeConfig::default());
    let mut controller = Controller::new(&ControllerConfig::new(start, AvoidanceConfig::from_name("cubic").unwrap()));
    controller.steering().on_crowd(0.25);
    assert_eq!(controller.ssthresh(), INFINITE_SSTHRESH);
}

#[test]
fn the_rate_of_a_decision_fills_the_window_for_two_round_trips_at_most() {
    let at = |ms: u64| Time::ZERO + Span::from_millis(1000 + ms);
    let mut controller = told_of_a_rate();
    // 12 Mbit/s for 100 ms are a hundred packets of 1500 bytes; paced is their payload.
    assert_eq!(controller.cwnd(), 100);
    let payload = Some(Rate::from_bps(11_584_000));
    assert_eq!(controller.departure(at(199), &next(10)), Departure::Now);
    assert_eq!(controller.pacing_rate(), payload);
    controller.departure(at(200), &next(10));
    assert_eq!(controller.pacing_rate(), None);
    // Or until the window is full.
    let mut controller = told_of_a_rate();
    controller.departure(at(50), &next(98));
    assert_eq!(controller.pacing_rate(), payload);
    controller.departure(at(50), &next(99));
    assert_eq!(controller.pacing_rate(), None);
}
