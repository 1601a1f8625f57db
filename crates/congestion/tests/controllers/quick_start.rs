//! A flow with Quick-Start, without transport: what is asked, granted, sent and left.

use flowstart_congestion::start::{GrantCheckConfig, QuickStartConfig};
use flowstart_congestion::{
    Ack, Acked, Answer, AvoidanceConfig, Controller, ControllerConfig, Departure, Moment, Next, Occasion, Signal,
    StartConfig,
};
use flowstart_control::testing::{ack, next, sent};
use flowstart_quick_start::wire::{IpOption, TcpResponse};
use flowstart_quick_start::{Carried, RateCode};
use flowstart_units::{Rate, Span, Time};

const RTT: Span = Span::from_millis(100);
const MSS: u64 = 1448;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn occasion(now: Time, backlog: u64) -> Occasion {
    let (rto, srtt) = (Span::from_secs(1), Span::ZERO);
    let (moment, largest_window) = (Moment::Opening, None);
    Occasion { now, moment, rto, srtt, packet: 1500, backlog, una: 0, next: 0, cwnd: 10, largest_window }
}

/// What comes back if a router allows code `n` of what was asked for.
fn grant(now: Time, mut request: Carried, n: u8) -> Answer {
    request.pass_aware(RateCode::new(n).unwrap(), 0x1234_5678);
    Answer { now, response: request.answer(), share: None, lost: false, rtt: RTT, una: 0, next: 0 }
}

fn controller(quick: QuickStartConfig) -> Controller {
    Controller::new(&ControllerConfig::new(StartConfig::QuickStart(quick), AvoidanceConfig::Reno))
}

/// A controller that was granted code 7 at 100 ms.
fn granted(quick: QuickStartConfig) -> Controller {
    let mut controller = controller(quick);
    let request = controller.rate_request(&occasion(at(0), u64::MAX));
    assert_eq!(request.asked(), RateCode::MAX);
    controller.on_answer(&grant(at(100), request, 7));
    controller
}

/// Sends as window and departures allow, up to `most` packets; when each left.
fn send(controller: &mut Controller, mut now: Time, first: u64, most: u32) -> Vec<Time> {
    let mut left = Vec::new();
    while (left.len() as u32) < most.min(controller.cwnd()) {
        let number = first + left.len() as u64;
        match controller.departure(now, &Next { in_flight: left.len() as u32, ..next(number) }) {
            Departure::Now => {
                controller.on_sent(&sent(now, number));
                left.push(now);
            }
            Departure::At(time) => now = time,
            Departure::Hold => break,
        }
    }
    left
}

#[test]
fn it_asks_for_what_the_application_needs_within_the_limit() {
    let asks = |backlog, request| {
        controller(QuickStartConfig { request, ..QuickStartConfig::default() })
            .rate_request(&occasion(at(0), backlog))
            .asked()
            .get()
    };
    let largest = QuickStartConfig::default().request;
    assert_eq!(asks(u64::MAX, largest), 15);
    assert_eq!(asks(42 * MSS, largest), 7, "63,000 bytes in 100 ms");
    assert_eq!(asks(43 * MSS, largest), 8);
    assert_eq!(asks(u64::MAX, Rate::from_bps(5_120_000)), 7);
    assert_eq!(asks(0, largest), 0);
}

#[test]
fn a_grant_opens_the_window_and_paces_it_for_a_round_trip() {
    let mut controller = granted(QuickStartConfig::default());
    assert_eq!(controller.cwnd(), 42);
    let left = send(&mut controller, at(100), 0, 100);
    assert_eq!(left.len(), 42);
    assert!(left.windows(2).all(|two| two[1].since(two[0]) == Span::from_nanos(2_343_750)));
    let timers = QuickStartConfig { timers: true, ..QuickStartConfig::default() };
    let left = send(&mut granted(timers), at(100), 0, 100);
    assert_eq!((left.len(), left[2], left[3]), (42, at(100), at(107)));
}

#[test]
fn without_a_grant_it_is_slow_start() {
    let mut controller = controller(QuickStartConfig::default());
    controller.rate_request(&occasion(at(0), u64::MAX));
    assert_eq!(send(&mut controller, at(100), 0, 100), [at(100); 10]);
    for n in 1..=10 {
        let ack = Ack { now: at(200), una: n * MSS, next: 10 * MSS, in_flight: 10 - n as u32, ..ack(1) };
        controller.on_ack(&ack);
        controller.grow(&ack);
    }
    assert_eq!(controller.cwnd(), 20);
}

#[test]
fn after_the_first_ack_the_window_is_what_was_used_and_grows_by_limited_slow_start() {
    let ended = |quick, packets: u32| {
        let mut controller = granted(quick);
        send(&mut controller, at(100), 0, packets);
        let first = Ack { now: at(200), una: MSS, next: u64::from(packets) * MSS, in_flight: packets - 1, ..ack(1) };
        controller.on_ack(&first);
        let before = controller.cwnd();
        controller.grow(&first);
        (before, controller.cwnd(), controller.is_starting())
    };
    assert_eq!(ended(QuickStartConfig::default(), 42), (42, 43, true));
    assert_eq!(ended(QuickStartConfig::default(), 30), (30, 31, true));
    assert_eq!(ended(QuickStartConfig::default(), 3), (10, 11, true), "never below the initial window");
    let adapted = QuickStartConfig { adapt_threshold: true, ..QuickStartConfig::default() };
    assert!(!ended(adapted, 42).2, "at the threshold: the avoidance is in charge");
    let limit = QuickStartConfig { max_ssthresh: 2, ..QuickStartConfig::default() };
    assert_eq!(ended(limit, 42), (42, 42, true), "1/42 of a packet");
}

#[test]
fn a_loss_in_the_phase_leads_back_to_the_initial_window_and_slow_start_up_to_half_of_what_was_delivered() {
    let mut controller = granted(QuickStartConfig::default());
    send(&mut controller, at(100), 0, 42);
    for n in 1..=30_u64 {
        let ack = Ack { now: at(200 + n), una: n * MSS, next: 42 * MSS, in_flight: 42 - n as u32, ..ack(1) };
        controller.on_ack(&ack);
        controller.grow(&ack);
    }
    assert_eq!(controller.cwnd(), 72);
    assert_eq!(controller.on_signal(at(250), Signal::Loss), Some(15));
    assert_eq!((controller.cwnd(), controller.fell_from(), controller.largest_window()), (10, Some(72), Some(10)));
    assert!(!controller.is_starting());
    for n in 31..=42_u64 {
        let ack = Ack { now: at(250 + n), una: n * MSS, next: 42 * MSS, in_flight: 42 - n as u32, ..ack(1) };
        controller.on_ack(&ack);
        controller.grow(&ack);
    }
    assert_eq!(controller.cwnd(), 15, "as fast as slow start, up to the threshold");
    let later = Occasion {
        moment: Moment::AfterIdle(Span::from_secs(9)),
        srtt: RTT,
        una: 42 * MSS,
        next: 42 * MSS,
        ..occasion(at(9000), 1 << 20)
    };
    assert_eq!(controller.rate_request(&later), Carried::NONE, "never again");
}

#[test]
fn a_phase_whose_first_packet_is_lost_counts_what_was_delivered_behind_it() {
    let mut controller = granted(QuickStartConfig::default());
    send(&mut controller, at(100), 0, 42);
    let ack = |n: u32, lost| Ack { now: at(200), una: 0, next: 42 * MSS, in_flight: 42 - n, lost, ..ack(1) };
    for n in 1..=29 {
        controller.on_ack(&ack(n, 0));
    }
    controller.on_ack(&ack(31, 1));
    assert_eq!(controller.on_signal(at(250), Signal::Loss), Some(15), "half of 30");
    assert_eq!(controller.cwnd(), 10);
}

/// A controller that sends object after object, has 3 packets of an earlier one under way, and
/// asked for what 1 MiB needs in mid-connection.
fn asked_in_middle(largest_window: Option<u32>) -> (Controller, Occasion, Carried) {
    let quick = QuickStartConfig { in_middle: true, ..QuickStartConfig::default() };
    let mut controller = controller(quick);
    controller.rate_request(&occasion(at(0), 5 * MSS));
    send(&mut controller, at(100), 0, 5);
    let middle = Occasion {
        moment: Moment::Middle,
        srtt: RTT,
        una: 2 * MSS,
        next: 5 * MSS,
        largest_window,
        ..occasion(at(300), 1 << 20)
    };
    let request = controller.rate_request(&middle);
    (controller, middle, request)
}

#[test]
fn in_mid_connection_it_asks_for_what_the_application_needs_if_told_so_and_the_window_opens_beyond_what_is_under_way() {
    let (mut controller, middle, request) = asked_in_middle(None);
    assert_eq!(request.asked().get(), 12, "1 MiB in 100 ms are 87 Mbit/s with headers");
    controller.on_answer(&Answer { una: 6 * MSS, next: 8 * MSS, ..grant(at(400), request, 7) });
    assert_eq!(controller.cwnd(), 42);
    let departure = controller.departure(at(400), &Next { in_flight: 2, ..next(8) });
    assert_eq!(departure, Departure::Now);
    controller.on_sent(&sent(at(400), 8));
    let departure = controller.departure(at(400), &Next { in_flight: 3, ..next(9) });
    assert_eq!(departure, Departure::At(at(400) + Span::from_nanos(2_343_750)), "paced, though 3 are far from 42");
    // What fits into the window, and what the configuration does not want, is not asked for.
    assert!(controller.rate_request(&Occasion { now: at(900), backlog: 10 * MSS, ..middle }).is_none());
    let mut silent = self::controller(QuickStartConfig::default());
    assert!(silent.rate_request(&middle).is_none());
}

#[test]
fn after_congestion_it_asks_for_no_more_than_the_largest_window_since() {
    assert_eq!(asked_in_middle(Some(42)).2.asked().get(), 6, "42 packets in 100 ms are 5.04 Mbit/s");
    let (_, _, request) = asked_in_middle(Some(9));
    assert!(request.is_none(), "which would not be more than the window");
}

#[test]
fn congestion_of_what_was_sent_before_the_phase_gives_the_grant_up() {
    for begun in [false, true] {
        let (mut controller, _, request) = asked_in_middle(None);
        controller.on_answer(&Answer { una: 6 * MSS, next: 8 * MSS, ..grant(at(400), request, 7) });
        if begun {
            assert_eq!(controller.departure(at(400), &Next { in_flight: 2, ..next(8) }), Departure::Now);
            controller.on_sent(&sent(at(400), 8));
        }
        assert_eq!(controller.on_signal(at(410), Signal::Loss), Some(5), "half of the window without Quick-Start");
        assert_eq!((controller.cwnd(), controller.fell_from()), (10, None));
    }
}

#[test]
fn congestion_in_a_later_phase_leads_to_the_window_without_it() {
    let (mut controller, middle, request) = asked_in_middle(None);
    controller.on_answer(&Answer { una: 8 * MSS, next: 8 * MSS, ..grant(at(400), request, 7) });
    assert_eq!(controller.departure(at(400), &Next { in_flight: 0, ..next(8) }), Departure::Now);
    controller.on_sent(&sent(at(400), 8));
    assert_eq!(controller.on_signal(at(510), Signal::Marks), Some(10));
    assert_eq!((controller.cwnd(), controller.fell_from()), (10, Some(42)));
    assert!(controller.rate_request(&Occasion { now: at(9000), ..middle }).is_none(), "never again");
}

#[test]
fn a_connection_that_was_idle_asks_again_and_takes_the_larger_window() {
    let mut controller = controller(QuickStartConfig::default());
    controller.rate_request(&occasion(at(0), 5 * MSS));
    let idle = Span::from_secs(7);
    let moment = Moment::AfterIdle(idle);
    let again = Occasion { moment, srtt: RTT, una: 5 * MSS, next: 5 * MSS, ..occasion(at(7000), 1 << 20) };
    let early = Moment::AfterIdle(Span::from_millis(999));
    assert!(controller.rate_request(&Occasion { moment: early, ..again }).is_none());
    controller.restart_after_idle(at(7000), idle, Span::from_secs(1));
    let request = controller.rate_request(&again);
    assert_eq!(request.asked().get(), 12, "1 MiB in 100 ms are 87 Mbit/s with headers");
    controller.on_answer(&Answer { una: 6 * MSS, next: 15 * MSS, ..grant(at(7100), request, 7) });
    assert_eq!(controller.cwnd(), 42);
    let never = QuickStartConfig { after_idle: false, ..QuickStartConfig::default() };
    assert!(self::controller(never).rate_request(&again).is_none());
}

#[test]
fn a_grant_that_nothing_was_sent_with_is_gone_after_a_round_trip() {
    let mut controller = granted(QuickStartConfig::default());
    let left = send(&mut controller, at(200), 0, 100);
    assert_eq!(left, [at(200); 10], "the initial window, at once");
    controller.on_ack(&Ack { now: at(300), una: MSS, next: 10 * MSS, in_flight: 9, ..ack(1) });
    assert_eq!(controller.cwnd(), 10);
}

#[test]
fn a_small_grant_is_not_used() {
    let mut controller = controller(QuickStartConfig::default());
    let request = controller.rate_request(&occasion(at(0), u64::MAX));
    controller.on_answer(&grant(at(100), request, 4));
    assert_eq!(controller.cwnd(), 10);
    assert_eq!(send(&mut controller, at(100), 0, 100), [at(100); 10]);
}

#[test]
fn what_fits_into_the_initial_window_asks_for_nothing_if_it_is_told_so() {
    let asks = |skip_small, packets: u64| {
        let quick = QuickStartConfig { skip_small, ..QuickStartConfig::default() };
        controller(quick).rate_request(&occasion(at(0), packets * MSS)).asked().get()
    };
    assert_eq!([asks(false, 10), asks(true, 10), asks(true, 11)], [5, 0, 6]);
}

#[test]
fn the_initial_window_may_leave_at_once_and_the_rest_at_the_granted_rate() {
    let quick = QuickStartConfig { at_once: true, ..QuickStartConfig::default() };
    let left = send(&mut granted(quick), at(100), 0, 100);
    assert_eq!((left.len(), left[9]), (42, at(100)));
    assert_eq!(left[10].since(at(100)), Span::from_nanos(23_437_500), "as without it");
}

/// The window after each of the 42 ACKs of a phase whose check sees a path that carries a packet
/// every `micros`, and whether the start is over.
fn checked(micros: u64) -> (Vec<u32>, bool) {
    let quick =
        QuickStartConfig { check: Some(GrantCheckConfig::default()), max_ssthresh: 0, ..QuickStartConfig::default() };
    let mut controller = granted(quick);
    let left = send(&mut controller, at(100), 0, 42);
    assert_eq!(left.len(), 42);
    let (service, mut free) = (Span::from_micros(micros), Time::ZERO);
    let mut windows = Vec::new();
    for (n, sent_at) in left.into_iter().enumerate() {
        free = free.max(sent_at) + service;
        let (now, n) = (free + RTT, n as u64);
        let rtt = now.since(sent_at);
        let acked = Acked { now, number: n, bytes: MSS as u32, sent_at, rtt: Some(rtt), retransmitted: false };
        controller.on_acked(&acked);
        let (una, in_flight) = ((n + 1) * MSS, 41 - n as u32);
        let ack = Ack { now, una, next: 42 * MSS, in_flight, rtt: Some(rtt), srtt: rtt, min_rtt: RTT, ..ack(1) };
        controller.on_ack(&ack);
        controller.grow(&ack);
        windows.push(controller.cwnd());
    }
    (windows, controller.is_starting())
}

#[test]
fn a_checked_grant_goes_on_if_the_path_has_it_and_falls_back_to_what_the_path_has_if_not() {
    let (windows, starting) = checked(1000);
    assert_eq!((windows[0], windows[41], starting), (43, 84, true));
    // 2.56 Mbit/s of what was granted are 21 packets in 100 ms.
    let (windows, starting) = checked(4687);
    assert!(windows[30] < 50, "growth stops when delays rise: {}", windows[30]);
    assert!((18..=22).contains(&windows[41]) && !starting, "{}", windows[41]);
}

/// Asks after every pause of a minute until it asks no more, and hears what `answer` makes of it;
/// how often it asked.
fn asks(mut answer: impl FnMut(Carried) -> Option<TcpResponse>) -> u32 {
    let mut controller = controller(QuickStartConfig::default());
    for number in 0..10 {
        let moment = if number > 0 { Moment::AfterIdle(Span::from_secs(60)) } else { Moment::Opening };
        let now = at(u64::from(number) * 60_000);
        let request = controller.rate_request(&Occasion { moment, srtt: RTT, ..occasion(now, u64::MAX) });
        if request.is_none() {
            return number;
        }
        let report = controller.on_answer(&Answer {
            now: now + RTT,
            response: answer(request),
            share: None,
            lost: false,
            rtt: RTT,
            una: 1,
            next: 1,
        });
        let Some(IpOption::Request { nonce, .. }) = request.option() else { panic!("{request:?}") };
        assert_eq!(report.option(), Some(IpOption::Report { rate: RateCode::ZERO, nonce }), "a denial is reported");
        assert_eq!(controller.cwnd(), 10, "nothing was granted");
    }
    10
}

#[test]
fn after_three_wrong_ttl_differences_or_one_wrong_nonce_a_connection_asks_no_more() {
    assert_eq!(asks(|_| None), 10, "a denial may be of the moment");
    let unaware = |mut request: Carried| {
        request.pass_unaware();
        request.answer()
    };
    assert_eq!(asks(unaware), 3);
    // A router lowered the rate; a receiver claims that it did not.
    let claims_more = |request: Carried| {
        let Some(IpOption::Request { nonce, .. }) = request.option() else { panic!("{request:?}") };
        let mut lowered = request;
        lowered.pass_aware(RateCode::new(7).unwrap(), !nonce.get());
        let response = lowered.answer()?;
        Some(TcpResponse { rate: RateCode::new(8).unwrap(), ..response })
    };
    assert_eq!(asks(claims_more), 1);
}

#[test]
fn a_path_that_loses_a_packet_with_a_request_is_not_asked_and_told_nothing_again() {
    let mut controller = controller(QuickStartConfig::default());
    let request = controller.rate_request(&occasion(at(0), u64::MAX));
    let report = controller.on_answer(&Answer { lost: true, ..grant(at(3100), request, 7) });
    assert_eq!((report, controller.cwnd()), (Carried::NONE, 10));
    let moment = Moment::AfterIdle(Span::from_secs(60));
    let later = Occasion { moment, srtt: RTT, ..occasion(at(60_000), u64::MAX) };
    assert_eq!(controller.rate_request(&later), Carried::NONE);
}

#[test]
fn a_grant_is_reported_once_with_the_nonce_as_it_was_sent() {
    let mut controller = controller(QuickStartConfig::default());
    let request = controller.rate_request(&occasion(at(0), u64::MAX));
    let Some(IpOption::Request { nonce, .. }) = request.option() else { panic!("{request:?}") };
    let rate = RateCode::new(7).unwrap();
    let report = controller.on_answer(&grant(at(100), request, 7));
    assert_eq!(report.option(), Some(IpOption::Report { rate, nonce }));
    let again = Answer { now: at(101), response: None, share: None, lost: false, rtt: RTT, una: 0, next: 0 };
    assert!(controller.on_answer(&again).is_none());
}
