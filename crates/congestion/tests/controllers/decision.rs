//! What a connection does with the answer of a detector of fair queuing.

use flowstart_congestion::detection::{Decision, Isolation, TrainProbeConfig};
use flowstart_congestion::start::Directed;
use flowstart_congestion::{
    Ack, AvoidanceConfig, Controller, ControllerConfig, CrowdRule, DeliveryRate, Departure, INFINITE_SSTHRESH, Next,
    Repair, Sent, Signal, StartConfig,
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
    told_with("cubic", isolation, delivered)
}

fn told_with(avoidance: &str, isolation: Isolation, delivered: u64) -> Controller {
    let start = StartConfig::FairQueuingProbe(TrainProbeConfig::default());
    let mut controller = Controller::new(&ControllerConfig::new(start, AvoidanceConfig::from_name(avoidance).unwrap()));
    controller.steering().direct(Departure::Hold);
    let now = Time::ZERO + Span::from_secs(1);
    controller.on_ack(&ack(now, Span::from_millis(100), 1448, delivered));
    answer(&mut controller, now, isolation);
    controller
}

/// An ACK of everything up to byte `una`.
fn ack(now: Time, rtt: Span, una: u64, delivered: u64) -> Ack {
    Ack {
        now,
        acked: 1,
        acked_bytes: 1448,
        marked: 0,
        lost: 0,
        lost_meanwhile: 0,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: Span::from_millis(100),
        una,
        next: una,
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
    }
}

fn answer(controller: &mut Controller, now: Time, isolation: Isolation) {
    answer_with(controller, now, isolation, Rate::from_mbps(12));
}

fn answer_with(controller: &mut Controller, now: Time, isolation: Isolation, rate: Rate) {
    let smallest = Span::from_millis(100);
    let decision = Decision { now, isolation, ratio: 1.1, rate, confidence: Some(0.99), smallest };
    controller.steering().on_decision(&decision, 1448, 1500);
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

/// Of an application that writes little trains tell how fast it writes.
#[test]
fn without_an_answer_the_window_is_no_less_than_the_initial_one() {
    let window = |isolation| {
        let start = StartConfig::FairQueuingProbe(TrainProbeConfig::default());
        let mut controller =
            Controller::new(&ControllerConfig::new(start, AvoidanceConfig::from_name("cubic").unwrap()));
        let now = Time::ZERO + Span::from_secs(1);
        controller.steering().direct(Departure::Hold);
        controller.on_ack(&ack(now, Span::from_millis(100), 1448, 20));
        // Three packets in 100 ms.
        answer_with(&mut controller, now, isolation, Rate::from_bps(360_000));
        controller.cwnd()
    };
    assert_eq!([Isolation::Isolated, Isolation::Shared, Isolation::Unknown].map(window), [3, 3, 10]);
}

/// Slow start alone filled a queue of 1000 packets at 6 Mbit/s, 2 s, and lost as many.
#[test]
fn without_an_answer_hystart_looks_when_the_window_is_enough() {
    let mut controller = told(Isolation::Unknown, 20);
    assert!(controller.start_is_in_charge());
    let exit = *controller.start_exit().expect("the detector's part is over");
    // An ACK of what left after the answer begins a round trip; eight RTTs of it are seen before
    // it is judged.
    let round = |controller: &mut Controller, number: u64, rtt| {
        let rtt = Span::from_millis(rtt);
        let now = Time::ZERO + Span::from_millis(1200 + number);
        let ack = Ack { una: 2 * 1448, next: 200 * 1448, ..ack(now, rtt, 0, 20 + number) };
        controller.on_ack(&ack);
        controller.grow(&ack);
        controller.ssthresh()
    };
    let thresholds: Vec<u32> = (0..9).map(|number| round(&mut controller, 12 * number, 113)).collect();
    assert_eq!(thresholds[..8], [INFINITE_SSTHRESH; 8]);
    assert_eq!((thresholds[8], controller.cwnd()), (58, 58), "grown by one for each before");
    assert!(!controller.start_is_in_charge());
    assert_eq!(controller.start_exit(), Some(&exit), "the record keeps the detector's answer");
    // 12 ms more than the smallest are no queue.
    let mut controller = told(Isolation::Unknown, 20);
    assert!((0..30).all(|number| round(&mut controller, 12 * number, 112) == INFINITE_SSTHRESH));
    // As in Linux it looks again after a timeout.
    for (isolation, looks) in [(Isolation::Unknown, true), (Isolation::Shared, false)] {
        let mut controller = told(isolation, 20);
        controller.on_signal(Time::ZERO + Span::from_secs(3), Signal::Timeout);
        assert_eq!(controller.start_is_in_charge(), looks, "{isolation:?}");
    }
    // An avoidance that sets its window itself knows by itself.
    assert!(!told_with("bbr", Isolation::Unknown, 20).start_is_in_charge());
    // With an answer there is nothing to look for.
    assert!(!told(Isolation::Shared, 20).start_is_in_charge() && !told(Isolation::Isolated, 20).start_is_in_charge());
}

#[test]
fn an_answer_that_comes_later_ends_hystart_only_if_the_avoidance_goes_on_by_itself() {
    for (isolation, ends) in [(Isolation::Isolated, true), (Isolation::Shared, false), (Isolation::Unknown, false)] {
        let mut controller = told_with("delay_or_cubic", Isolation::Unknown, 20);
        let cwnd = controller.cwnd();
        answer(&mut controller, Time::ZERO + Span::from_secs(2), isolation);
        assert_eq!((controller.start_is_in_charge(), controller.controls_recovery()), (!ends, ends), "{isolation:?}");
        assert_eq!(controller.cwnd(), cwnd, "the rate that comes with it is not for a flow that has begun");
    }
}

/// Up to the window that the start had found it grew fast, into a queue where that was twice the
/// share: 0.86 of CUBIC's goodput in slots of 4 ms beside CUBIC.
#[test]
fn where_the_avoidance_gives_up_hystart_looks_too_and_losses_count() {
    // A delay target that has 8 packets per round trip of 110 to 126 ms gives up.
    let starved = || {
        let mut controller = told_with("delay_or_cubic", Isolation::Isolated, 20);
        let mut number = 0;
        while controller.controls_recovery() {
            number += 1;
            assert!(number < 2000, "it does not give up");
            let now = Time::ZERO + Span::from_micros(1_000_000 + 12_500 * number);
            let rtt = Span::from_millis(110 + (number * 5) % 17);
            let sample = DeliveryRate {
                delivered: 8,
                interval: Span::from_millis(100),
                prior_delivered: 12 + number,
                app_limited: false,
            };
            let ack = Ack { rate: Some(sample), ..ack(now, rtt, (1 + number) * 1448, 20 + number) };
            controller.on_ack(&ack);
            controller.grow(&ack);
        }
        assert!(controller.start_is_in_charge() && controller.ssthresh() > controller.cwnd());
        (controller, number)
    };
    for (rtt, ends) in [(100, false), (113, true)] {
        let (mut controller, before) = starved();
        let most = controller.ssthresh();
        for number in 0..30 {
            let now = Time::ZERO + Span::from_micros(1_000_000 + 12_500 * (before + number));
            let una = (2 + before + number) * 1448;
            let ack = Ack { next: una + 200 * 1448, ..ack(now, Span::from_millis(rtt), una, 20 + before + number) };
            controller.on_ack(&ack);
            controller.grow(&ack);
        }
        assert_eq!(controller.ssthresh() < most, ends, "{rtt} ms");
    }
    let (mut controller, before) = starved();
    let now = Time::ZERO + Span::from_micros(1_000_000 + 12_500 * before);
    assert!(controller.on_signal(now, Signal::Loss).is_some());
}

/// Packets of what the detector looks at afterwards are still told of.
#[test]
fn with_hystart_in_charge_a_detector_that_watches_hears_of_packets() {
    let mut controller = told(Isolation::Unknown, 20);
    assert!(!controller.wants_packets());
    controller.steering().overhear(true);
    assert!(controller.wants_packets());
    let now = Time::ZERO + Span::from_secs(2);
    controller.on_sent(&Sent { now, number: 7, seq: 0, bytes: 1448, in_flight: 1, retransmission: false });
    let told = controller.steering().directed().and_then(Directed::take_sent);
    assert_eq!(told.map(|sent| sent.number), Some(7));
    controller.steering().direct(Departure::Hold);
    assert_eq!(controller.cwnd(), 50, "nobody directs it any more");
    assert_eq!(controller.departure(now, &next(10)), Departure::Now);
}

#[test]
fn where_others_keep_a_queue_slow_start_ends_with_the_answer() {
    let rule = |share| CrowdRule { share, unhurried: 0.25, growth: 0.5 };
    let thresholds = |isolation, delivered, share| {
        let mut controller = told(isolation, delivered);
        controller.steering().on_crowd(rule(share));
        assert!(!controller.start_is_in_charge(), "HyStart has nothing more to look for");
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
    controller.steering().on_crowd(rule(0.25));
    assert_eq!(controller.ssthresh(), INFINITE_SSTHRESH);
}

#[test]
fn beside_others_slow_start_is_slower_from_a_share_of_the_path_on() {
    // 100 packets fit the path, and the window is 14.
    let mut controller = told(Isolation::Shared, 2);
    controller.steering().on_crowd(CrowdRule { share: 0.5, unhurried: 0.25, growth: 0.5 });
    let came = |acked| Ack { acked, ..ack(Time::ZERO + Span::from_secs(2), Span::from_millis(100), 1448, 2) };
    let mut windows = Vec::new();
    for acked in [11, 5, 5, 1, 1, 30, 20] {
        controller.grow(&came(acked));
        windows.push(controller.cwnd());
    }
    // Half of what is acknowledged; what makes no packet counts the next time.
    assert_eq!(windows, [25, 27, 30, 30, 31, 46, 50]);
    // After that, after an idle time and after a loss it is that of everybody.
    controller.set_cwnd(26);
    controller.grow(&came(4));
    assert_eq!(controller.cwnd(), 30);
    let mut controller = told(Isolation::Shared, 2);
    controller.steering().on_crowd(CrowdRule { share: 0.5, unhurried: 0.0, growth: 0.0 });
    controller.restart_after_idle(Time::ZERO + Span::from_secs(2), Span::from_secs(1), Span::from_secs(2));
    controller.grow(&came(2));
    assert_eq!(controller.cwnd(), 16);
    let mut controller = told(Isolation::Shared, 2);
    controller.steering().on_crowd(CrowdRule { share: 0.5, unhurried: 0.0, growth: 0.0 });
    controller.on_signal(Time::ZERO + Span::from_secs(2), Signal::Timeout);
    controller.set_cwnd(1);
    controller.grow(&came(2));
    assert_eq!(controller.cwnd(), 3);
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
