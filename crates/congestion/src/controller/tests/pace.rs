//! When packets leave, and at which rate.

use super::*;

/// Of every avoidance, after every start.
#[test]
fn where_the_window_is_said_to_decide_asking_for_a_departure_changes_nothing() {
    let mut decides = Vec::new();
    for avoidance in AvoidanceConfig::NAMES {
        for start in StartConfig::NAMES {
            for pacing in [Pacing::Off, Pacing::LINUX] {
                let parts = (StartConfig::from_name(start).unwrap(), AvoidanceConfig::from_name(avoidance).unwrap());
                let mut config = ControllerConfig::new(parts.0, parts.1);
                config.pacing = pacing;
                let mut controller = Controller::new(&config);
                let mut now = ms(0);
                for number in 0..60 {
                    now += Span::from_millis(20);
                    if controller.window_decides() {
                        let before = format!("{controller:?}");
                        assert_eq!(controller.departure(now, &next(number)), Departure::Now, "{start}+{avoidance}");
                        assert_eq!(format!("{controller:?}"), before, "{start}+{avoidance}");
                        assert!(pacing == Pacing::Off && !controller.is_starting(), "{start}+{avoidance}");
                        decides.push(*avoidance);
                    }
                    let _ = controller.departure(now, &next(number));
                    controller.on_sent(&sent(now, number));
                    let rtt = Span::from_millis(20);
                    let ack = Ack { now, in_flight: 5, srtt: rtt, min_rtt: rtt, ..ack(1) };
                    controller.on_ack(&ack);
                    controller.grow(&ack);
                    if number == 30 {
                        let _ = controller.on_signal(now, Signal::Loss);
                    }
                }
            }
        }
    }
    decides.sort_unstable();
    decides.dedup();
    assert_eq!(decides, ["bic", "cubic", "dctcp", "delay_or_cubic", "reno", "scalable"]);
}

#[test]
fn after_chirping_packets_keep_the_measured_pace_until_the_window_is_full() {
    let mut controller = slow_start();
    let exit =
        Exit { reason: ExitReason::PipeFull, cwnd: 30, ssthresh: 30, rate: Some(Rate::from_bps(1448 * 8 * 1000)) };
    controller.on_ack(&Ack { srtt: Span::from_millis(30), ..ack(1) });
    controller.hand_over(ms(1), exit);
    let ask = |controller: &mut Controller, in_flight| {
        controller.departure(ms(1), &Next { in_flight, srtt: Span::from_millis(30), ..next(99) })
    };
    assert_eq!(ask(&mut controller, 20), Departure::Now);
    let sent = Sent { now: ms(1), number: 99, seq: 0, bytes: 1448, in_flight: 21, retransmission: false };
    controller.on_sent(&sent);
    assert_eq!(controller.pacing_rate(), Some(Rate::from_bps(1448 * 8 * 1000)));
    assert_eq!(ask(&mut controller, 21), Departure::At(ms(2)));
    assert_eq!(ask(&mut controller, 29), Departure::Now);
    assert_eq!(controller.pacing_rate(), None);
}

#[test]
fn the_pace_a_start_left_behind_holds_for_two_round_trips_at_most() {
    let srtt = Span::from_millis(30);
    let rate = Rate::from_bps(1448 * 8 * 1000);
    let end = |rtts: u32| ms(1) + srtt * u64::from(rtts);
    let cases =
        [2, 5].into_iter().flat_map(|rtts| [(rtts, end(rtts) - Span::from_nanos(1), true), (rtts, end(rtts), false)]);
    for (left_behind_rtts, asked, paced) in cases {
        let config = ControllerConfig { left_behind_rtts, ..config(StartConfig::SlowStart) };
        let mut controller = Controller::new(&config);
        controller.on_ack(&Ack { srtt, ..ack(1) });
        let exit = Exit { reason: ExitReason::PipeFull, cwnd: 30, ssthresh: 30, rate: Some(rate) };
        controller.hand_over(ms(1), exit);
        controller.departure(asked, &Next { in_flight: 5, srtt, ..next(99) });
        assert_eq!(controller.pacing_rate().is_some(), paced, "asked at {asked:?}");
    }
}

#[test]
fn without_a_paced_rate_the_assumed_one_is_what_linux_would_pace_at() {
    let srtt = Span::from_millis(100);
    let assumed = |controller: &Controller, out| controller.assumed_rate(out, srtt, 1448);
    let bytes = |packets: u64| Some(Rate::from_bps(packets * 1448 * 8 * 10));
    let mut controller = slow_start();
    assert_eq!(controller.assumed_rate(0, Span::ZERO, 1448), None, "no round-trip time is known");
    // Twice the window per round trip while it starts, 1.2 times afterwards; what is out counts if
    // that is more.
    assert_eq!(assumed(&controller, 0), bytes(20));
    assert_eq!(assumed(&controller, 15), bytes(30));
    controller.on_signal(ms(1), Signal::Loss);
    controller.set_cwnd(10);
    assert_eq!(assumed(&controller, 0), bytes(12));
    // A rate that packets are paced at comes before that.
    let rate = Rate::from_mbps(7);
    controller.pacer.set_rate(rate, ms(100));
    assert_eq!(assumed(&controller, 0), Some(rate));
}

#[test]
fn a_directed_start_sends_when_it_is_told_whatever_the_window() {
    let mut controller = Controller::new(&config(StartConfig::from_name("fair_queuing_probe").unwrap()));
    assert_eq!(controller.departure(ms(1), &next(0)), Departure::Now, "slow start until then");
    controller.steering().direct(Departure::At(ms(7)));
    assert_eq!(controller.cwnd(), INFINITE_SSTHRESH);
    assert_eq!(controller.departure(ms(1), &next(0)), Departure::At(ms(7)));
    assert_eq!(controller.departure(ms(7), &next(0)), Departure::Now);
    let mut other = slow_start();
    other.steering().direct(Departure::At(ms(7)));
    assert_eq!((other.cwnd(), other.departure(ms(1), &next(0))), (10, Departure::Now));
}

/// A start that says itself when packets leave: all at once, until it hands over.
#[derive(Clone)]
struct AllAtOnce;

impl FlowStart for AllAtOnce {
    fn grow(&mut self, _ack: &Ack, _window: &mut Window) -> u32 {
        0
    }

    fn departure(&mut self, _now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        (next.number >= 20).then_some(Departure::Now)
    }

    fn departure_rate(&self) -> Option<Rate> {
        Some(Rate::from_mbps(7))
    }
}

#[test]
fn what_a_start_sends_at_times_of_its_own_is_not_paced_afterwards() {
    let config = ControllerConfig { pacing: Pacing::LINUX, ..config(StartConfig::SlowStart) };
    let mut controller = Controller::join(Start::External(Box::new(AllAtOnce)), Avoidance::new(&config), &config);
    let srtt = Span::from_millis(100);
    let mut depart = |number: u64, by_rate: bool| {
        let question = Next { srtt, ..next(number) };
        let departure =
            if by_rate { controller.departure_by(ms(1), &question).0 } else { controller.departure(ms(1), &question) };
        controller.on_sent(&Sent { bytes: 1448, ..sent(ms(1), number) });
        departure
    };
    // The pacing books ten milliseconds at most for these.
    for number in 0..20 {
        let _ = depart(number, false);
    }
    for number in 20..1000 {
        assert_eq!(depart(number, number % 2 == 0), Departure::Now);
    }
    assert_eq!(controller.departure_rate(), Some(Rate::from_mbps(7)));
    controller.on_signal(ms(1), Signal::Loss);
    match controller.departure(ms(1), &Next { srtt, ..next(1000) }) {
        Departure::At(at) => assert!(at < ms(200), "{at:?}"),
        other => assert_eq!(other, Departure::Now),
    }
    assert_ne!(controller.departure_rate(), Some(Rate::from_mbps(7)), "the start is over");
}
