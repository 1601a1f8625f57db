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

/// An avoidance that counts what it is asked, and always doubts that it has a queue of its own.
#[derive(Clone, Default)]
struct Doubter {
    /// It sets the window in recovery too.
    own_recovery: bool,
    /// Packets acknowledged with which it was asked to grow.
    grown: std::sync::Arc<std::sync::Mutex<Vec<u32>>>,
}

impl CongestionAvoidance for Doubter {
    fn grow(&mut self, _ack: &Ack, acked: u32, _window: &mut Window) {
        self.grown.lock().unwrap().push(acked);
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        window.cwnd / 2
    }

    fn isolation_aware(&mut self) -> Option<&mut dyn flowstart_control::IsolationAware> {
        Some(self)
    }

    fn controls_recovery(&self) -> bool {
        self.own_recovery
    }
}

impl flowstart_control::IsolationAware for Doubter {
    fn doubts_isolation(&self) -> bool {
        true
    }
}

fn join(avoidance: Doubter) -> Controller {
    let config = config(StartConfig::SlowStart);
    Controller::join(Start::new(&config), Avoidance::External(Box::new(avoidance)), &config)
}

#[test]
fn an_avoidance_grows_by_what_slow_start_left_and_by_nothing_only_if_it_controls_recovery() {
    for own_recovery in [false, true] {
        let grown = std::sync::Arc::default();
        let mut controller = join(Doubter { own_recovery, grown: std::sync::Arc::clone(&grown) });
        controller.on_signal(ms(1), Signal::Loss);
        // Below the threshold of 5 the whole ACK is slow start's.
        controller.set_cwnd(1);
        controller.grow(&ack(2));
        controller.grow(&ack(3));
        let expected: &[u32] = if own_recovery { &[2, 3] } else { &[1] };
        assert_eq!(*grown.lock().unwrap(), expected);
        // An ACK of nothing.
        controller.grow(&ack(0));
        assert_eq!(grown.lock().unwrap().len(), expected.len() + usize::from(own_recovery));
    }
}

#[test]
fn doubts_about_isolation_count_only_while_an_avoidance_that_controls_recovery_is_in_charge() {
    for own_recovery in [false, true] {
        let mut controller = join(Doubter { own_recovery, ..Doubter::default() });
        controller.on_ack(&Ack { now: ms(1), ..ack(1) });
        assert_eq!(controller.isolation_revoked(), None, "the start is in charge");
        controller.on_signal(ms(2), Signal::Loss);
        controller.on_ack(&Ack { now: ms(3), ..ack(1) });
        assert_eq!(controller.isolation_revoked(), own_recovery.then(|| ms(3)));
    }
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

/// A start that ends with the first ACK and finds out later that its window was too large, once.
#[derive(Clone, Default)]
struct Hasty {
    corrected: bool,
    answered: bool,
}

impl FlowStart for Hasty {
    fn on_ack(&mut self, _ack: &Ack, _window: &mut Window) -> AfterAck {
        AfterAck::Done(Exit { reason: ExitReason::PipeFull, cwnd: 400, ssthresh: 400, rate: None })
    }

    fn on_ack_after(&mut self, ack: &Ack, _window: &Window) -> Afterwards {
        if ack.now < ms(30) {
            return Afterwards::Open;
        }
        if core::mem::replace(&mut self.corrected, true) {
            return Afterwards::Settled;
        }
        Afterwards::Corrected(Exit { reason: ExitReason::RatePlateau, cwnd: 100, ssthresh: 100, rate: None })
    }

    fn on_signal_after(&mut self, signal: Signal, window: &Window) -> Option<u32> {
        let answers = signal == Signal::Loss && !core::mem::replace(&mut self.answered, true);
        answers.then_some(window.cwnd - 1)
    }

    fn grow(&mut self, _ack: &Ack, _window: &mut Window) -> u32 {
        0
    }
}

/// The answer of Reno is half.
#[test]
fn a_start_that_has_more_to_say_answers_the_first_signal_after_it() {
    for (signal, settled, threshold) in
        [(Signal::Loss, false, 399), (Signal::Marks, false, 200), (Signal::Loss, true, 200)]
    {
        let config = config(StartConfig::SlowStart);
        let mut controller =
            Controller::join(Start::External(Box::new(Hasty::default())), Avoidance::new(&config), &config);
        controller.on_ack(&Ack { now: ms(1), ..ack(1) });
        if settled {
            controller.on_ack(&Ack { now: ms(30), ..ack(1) });
            controller.on_ack(&Ack { now: ms(31), ..ack(1) });
            controller.window.cwnd = 400;
        }
        assert_eq!(controller.on_signal(ms(31), signal), Some(threshold), "{signal:?} {settled}");
        controller.window.cwnd = 400;
        assert_eq!(controller.on_signal(ms(32), Signal::Loss), Some(200), "the next one is the avoidance's");
    }
}

#[test]
fn a_start_corrects_its_window_unless_it_left_a_signal_to_the_avoidance_and_its_end_is_the_first() {
    for (signal, cwnd) in [(None, 100), (Some(Signal::Loss), 100), (Some(Signal::Marks), 400)] {
        let config = config(StartConfig::SlowStart);
        let mut controller =
            Controller::join(Start::External(Box::new(Hasty::default())), Avoidance::new(&config), &config);
        controller.on_ack(&Ack { now: ms(1), ..ack(1) });
        controller.on_ack(&Ack { now: ms(20), ..ack(1) });
        assert_eq!((controller.cwnd(), controller.ssthresh()), (400, 400));
        if let Some(signal) = signal {
            controller.on_signal(ms(25), signal);
        }
        controller.on_ack(&Ack { now: ms(30), ..ack(1) });
        assert_eq!(controller.cwnd(), cwnd, "{signal:?}");
        assert_eq!(controller.start_exit().map(|exit| (exit.now, exit.cwnd)), Some((ms(1), 400)));
        controller.window.cwnd = 250;
        controller.on_ack(&Ack { now: ms(40), ..ack(1) });
        assert_eq!(controller.cwnd(), 250, "settled");
    }
}
