use std::sync::{Arc, Mutex};

use flowstart_congestion::{
    Ack, AvoidanceConfig, CongestionAvoidance, ControllerConfig, Own, OwnAvoidance, Repair, Signal, StartConfig, Window,
};

use super::*;

fn ledger(window: u32) -> Ledger {
    ledger_of(window, "reno")
}

fn ledger_of(window: u32, avoidance: &str) -> Ledger {
    let avoidance = AvoidanceConfig::from_name(avoidance).unwrap();
    let mut config = ControllerConfig::new(StartConfig::SlowStart, avoidance);
    config.initial_window = window;
    Ledger::new(Controller::new(&config), 1452, Span::from_millis(20))
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn send(ledger: &mut Ledger, now: Time, first: u64, count: u64) {
    for number in first..first + count {
        ledger.note(now, Told::Sent { number, bytes: 1452 });
    }
    ledger.end_burst(now, false);
}

fn acknowledge(ledger: &mut Ledger, now: Time, number: u64) {
    ledger.note(now, Told::Acked { number });
    ledger.settle(now, Span::ZERO);
}

#[test]
fn a_window_of_packets_may_leave_and_every_ack_lets_two_follow_in_slow_start() {
    let mut ledger = ledger(10);
    assert_eq!(ledger.departure(at(0), 99), Departure::Now);
    // The stack's numbers need not begin at 0, and may have holes.
    send(&mut ledger, at(0), 5, 10);
    assert_eq!(ledger.departure(at(0), 99), Departure::Hold);
    acknowledge(&mut ledger, at(20), 5);
    assert_eq!((ledger.in_flight(), ledger.controller().cwnd()), (9, 11));
    acknowledge(&mut ledger, at(20), 5);
    assert_eq!(ledger.controller().cwnd(), 11, "an ACK of what was acknowledged counts for nothing");
    acknowledge(&mut ledger, at(20), 4);
    assert_eq!(ledger.counts().delivered, 1, "of what was sent before the beginning neither");
    assert_eq!(ledger.min_rtt(), Span::from_millis(20));
}

#[test]
fn losses_of_one_window_are_one_reduction_and_the_window_ends_at_the_threshold() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    for number in [3, 4, 5] {
        acknowledge(&mut ledger, at(20), number);
    }
    for number in [0, 1] {
        ledger.note(at(20), Told::Lost { number });
    }
    ledger.settle(at(20), Span::ZERO);
    let threshold = ledger.controller().ssthresh();
    assert!(threshold <= 12, "half of the window: {threshold}");
    ledger.note(at(21), Told::Lost { number: 2 });
    ledger.settle(at(21), Span::ZERO);
    assert_eq!(ledger.controller().ssthresh(), threshold, "the same window");
    for number in 6..20 {
        acknowledge(&mut ledger, at(22), number);
    }
    assert_eq!((ledger.in_flight(), ledger.counts().lost), (0, 3));
    assert_eq!(ledger.controller().cwnd(), threshold);
}

/// RFC 9002 section 7.3.2: what left before a recovery began calls for no other reduction, however
/// late its loss is noticed.
#[test]
fn the_last_losses_of_a_window_are_noticed_as_its_reduction_ends_and_call_for_no_other() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    for number in 1..4 {
        acknowledge(&mut ledger, at(20), number);
    }
    ledger.note(at(20), Told::Lost { number: 0 });
    ledger.settle(at(20), Span::ZERO);
    let threshold = ledger.controller().ssthresh();
    for number in 4..18 {
        acknowledge(&mut ledger, at(21), number);
    }
    send(&mut ledger, at(21), 20, 6);
    for number in [18, 19] {
        ledger.note(at(41), Told::Lost { number });
    }
    ledger.note(at(41), Told::Acked { number: 22 });
    ledger.settle(at(41), Span::ZERO);
    assert_eq!((ledger.counts().lost, ledger.controller().ssthresh()), (3, threshold));
    // What left in the recovery calls for another one.
    ledger.note(at(42), Told::Lost { number: 20 });
    ledger.settle(at(42), Span::ZERO);
    assert!(ledger.controller().ssthresh() < threshold, "{}", ledger.controller().ssthresh());
}

/// The same of marks: they are of the newest packet that is acknowledged.
#[test]
fn marks_of_what_left_before_a_reduction_call_for_no_other_when_it_ends() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    ledger.note(at(20), Told::Acked { number: 0 });
    ledger.note(at(20), Told::Marked);
    ledger.settle(at(20), Span::ZERO);
    let threshold = ledger.controller().ssthresh();
    for number in 1..20 {
        ledger.note(at(21), Told::Acked { number });
    }
    ledger.note(at(21), Told::Marked);
    ledger.settle(at(21), Span::ZERO);
    assert_eq!(ledger.controller().ssthresh(), threshold);
    send(&mut ledger, at(21), 20, 2);
    ledger.note(at(41), Told::Acked { number: 20 });
    ledger.note(at(41), Told::Marked);
    ledger.settle(at(41), Span::ZERO);
    assert!(ledger.controller().ssthresh() < threshold);
}

/// As the first packet of a reduction leaves when the queue is full, a second one would be lost.
#[test]
fn an_ack_or_a_timer_that_finds_a_loss_lets_one_packet_go() {
    for by_ack in [true, false] {
        let mut ledger = ledger_of(20, "cubic");
        send(&mut ledger, at(0), 0, 20);
        acknowledge(&mut ledger, at(20), 1);
        acknowledge(&mut ledger, at(20), 2);
        if by_ack {
            ledger.note(at(21), Told::Acked { number: 3 });
        }
        ledger.note(at(21), Told::Lost { number: 0 });
        ledger.settle(at(21), Span::ZERO);
        assert!(ledger.controller().ssthresh() < 20, "a reduction");
        assert_eq!(ledger.controller().cwnd(), ledger.in_flight() + 1, "found by an ACK: {by_ack}");
    }
}

#[test]
fn what_was_deemed_lost_and_arrived_gives_the_window_back() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    ledger.note(at(20), Told::Acked { number: 5 });
    ledger.note(at(20), Told::Lost { number: 0 });
    ledger.settle(at(20), Span::ZERO);
    assert!(ledger.controller().ssthresh() < 20);
    ledger.note(at(21), Told::Spurious);
    ledger.settle(at(21), Span::ZERO);
    assert!(ledger.controller().cwnd() >= 20, "{}", ledger.controller().cwnd());
}

/// A recovery with a window of 20 before it.
fn in_recovery() -> Ledger {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    ledger.note(at(20), Told::Acked { number: 5 });
    ledger.note(at(20), Told::Lost { number: 0 });
    ledger.settle(at(20), Span::ZERO);
    ledger
}

/// Marks confirm a reduction, whatever becomes of the loss that began it (Linux
/// `tcp_fastretrans_alert`).
#[test]
fn a_mark_in_a_recovery_keeps_the_window_reduced_although_the_loss_was_spurious() {
    for together in [false, true] {
        let mut ledger = in_recovery();
        let threshold = ledger.controller().ssthresh();
        ledger.note(at(21), Told::Acked { number: 6 });
        ledger.note(at(21), Told::Marked);
        if !together {
            ledger.settle(at(21), Span::ZERO);
        }
        ledger.note(at(21), Told::Spurious);
        ledger.settle(at(21), Span::ZERO);
        let windows = |ledger: &Ledger| (ledger.controller().cwnd(), ledger.controller().ssthresh());
        assert_eq!(windows(&ledger), (threshold, threshold), "told together: {together}");
        // What left before it is answered as ever.
        ledger.note(at(22), Told::Acked { number: 7 });
        ledger.note(at(22), Told::Marked);
        ledger.settle(at(22), Span::ZERO);
        assert_eq!(ledger.controller().ssthresh(), threshold);
    }
}

/// Linux `tcp_current_ssthresh`.
#[test]
fn the_threshold_that_comes_back_is_three_quarters_of_the_window_unless_a_reduction_was_under_way() {
    // Congestion avoidance.
    let mut ledger = ended("reno");
    ledger.controller.set_cwnd(100);
    let before = ledger.controller().ssthresh();
    send(&mut ledger, at(40), 20, 40);
    ledger.note(at(60), Told::Acked { number: 25 });
    ledger.note(at(60), Told::Lost { number: 20 });
    ledger.settle(at(60), Span::ZERO);
    assert_eq!(ledger.controller().ssthresh(), 50);
    ledger.note(at(61), Told::Spurious);
    ledger.settle(at(61), Span::ZERO);
    assert_eq!((before, ledger.controller().cwnd(), ledger.controller().ssthresh()), (10, 100, 75));

    // Marks have the window on its way from 100 to 50 when something is lost that left after them.
    ledger.controller.set_cwnd(100);
    ledger.note(at(62), Told::Acked { number: 26 });
    ledger.note(at(62), Told::Marked);
    ledger.settle(at(62), Span::ZERO);
    assert_eq!(ledger.controller().ssthresh(), 50);
    send(&mut ledger, at(62), 60, 10);
    ledger.controller.set_cwnd(90);
    ledger.note(at(82), Told::Lost { number: 60 });
    ledger.settle(at(82), Span::ZERO);
    assert_eq!(ledger.controller().ssthresh(), 45);
    ledger.note(at(83), Told::Spurious);
    ledger.settle(at(83), Span::ZERO);
    assert_eq!(ledger.controller().ssthresh(), 50);
}

#[test]
fn marks_reduce_once_a_window_and_are_counted() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    for number in 0..3 {
        ledger.note(at(20), Told::Acked { number });
        ledger.note(at(20), Told::Marked);
        ledger.settle(at(20), Span::ZERO);
    }
    assert_eq!(ledger.counts().marked, 3);
    assert!(ledger.controller().ssthresh() >= 10, "{}", ledger.controller().ssthresh());
}

#[test]
fn after_long_silence_the_window_is_the_smallest() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    for number in 0..20 {
        ledger.note(at(900), Told::Lost { number });
    }
    ledger.note(at(900), Told::Persistent);
    ledger.settle(at(900), Span::ZERO);
    assert_eq!((ledger.controller().cwnd(), ledger.in_flight()), (2, 0));
}

#[test]
fn where_the_path_takes_smaller_packets_only_windows_stay_what_they_are_in_bytes() {
    let mut ledger = ledger(20);
    send(&mut ledger, at(0), 0, 20);
    ledger.note(at(10), Told::Mtu(1200));
    // 20 packets of 1452 bytes are 24.2 of 1200.
    assert_eq!((ledger.mtu(), ledger.controller().mss(), ledger.controller().cwnd()), (1200, 1200, 24));
    // In a reduction, what may come back is bytes too.
    ledger.note(at(20), Told::Acked { number: 5 });
    ledger.note(at(20), Told::Lost { number: 0 });
    ledger.settle(at(20), Span::ZERO);
    ledger.note(at(21), Told::Mtu(600));
    ledger.note(at(21), Told::Spurious);
    ledger.settle(at(21), Span::ZERO);
    assert!(ledger.controller().cwnd() >= 48, "{}", ledger.controller().cwnd());
}

/// Slow start that a loss has ended, with a window of 200 after 19 packets of 20 have arrived.
fn ended(avoidance: &str) -> Ledger {
    let mut ledger = ledger_of(20, avoidance);
    send(&mut ledger, at(0), 0, 20);
    ledger.note(at(20), Told::Lost { number: 0 });
    (1..20).for_each(|number| acknowledge(&mut ledger, at(20), number));
    ledger.controller.set_cwnd(200);
    ledger
}

#[test]
fn after_a_silence_who_controls_recovery_keeps_the_window_and_others_begin_again() {
    for avoidance in ["bbr3", "reno"] {
        let mut ledger = ended(avoidance);
        let (controls, before) = (ledger.controller().controls_recovery(), ledger.controller().ssthresh());
        assert_eq!(controls, avoidance == "bbr3");
        assert_ne!(ledger.departure(at(60_000), 9), Departure::Hold);
        let windows = (ledger.controller().cwnd(), ledger.controller().ssthresh());
        assert_eq!(windows, if controls { (200, before) } else { (20, 150) }, "{avoidance}");
    }
}

/// An avoidance that notes the idle times that it is told of.
#[derive(Clone)]
struct Idler(Arc<Mutex<Vec<Span>>>);

impl CongestionAvoidance for Idler {
    fn grow(&mut self, _: &Ack, _: u32, _: &mut Window) {}

    fn reduce(&mut self, _: Time, _: Signal, window: &Window) -> u32 {
        window.cwnd / 2
    }

    fn on_idle(&mut self, idle: Span, _window: &mut Window) {
        self.0.lock().unwrap().push(idle);
    }
}

#[test]
fn an_idle_time_is_told_once() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let idler = Idler(Arc::clone(&told));
    let make = move |_| -> Box<dyn OwnAvoidance> { Box::new(idler.clone()) };
    let own = Own::new("idler", "notes idle times", make).unwrap();
    let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Own(own));
    let mut ledger = Ledger::new(Controller::new(&config), 1452, Span::from_millis(20));
    let mut told_at = |ms: u64, number: u64| {
        let _ = ledger.departure(at(ms), 9);
        send(&mut ledger, at(ms), number, 1);
        acknowledge(&mut ledger, at(ms + 20), number);
        std::mem::take(&mut *told.lock().unwrap())
    };
    assert_eq!(told_at(0, 0), []);
    // Shorter than a retransmission timeout, and longer.
    assert_eq!(told_at(30, 1), [Span::from_millis(30)]);
    assert_eq!(told_at(5_030, 2), [Span::from_millis(5_000)]);
}

fn bbr() -> Ledger {
    let mut config = ControllerConfig::new(StartConfig::BuiltIn, AvoidanceConfig::from_name("bbr").unwrap());
    config.initial_window = 20;
    Ledger::new(Controller::new(&config), 1452, Span::from_millis(20))
}

#[test]
fn a_recovery_of_bbr_lasts_until_what_was_lost_is_delivered() {
    let mut ledger = bbr();
    send(&mut ledger, at(0), 0, 20);
    for number in 2..6 {
        acknowledge(&mut ledger, at(20), number);
    }
    assert_eq!(ledger.reduction.repair, Repair::Nothing);
    ledger.note(at(21), Told::Lost { number: 0 });
    acknowledge(&mut ledger, at(21), 6);
    // What replaces it leaves; another loss is noticed, and what replaces that leaves, too.
    send(&mut ledger, at(21), 20, 2);
    ledger.note(at(22), Told::Lost { number: 1 });
    acknowledge(&mut ledger, at(22), 7);
    send(&mut ledger, at(22), 22, 1);
    for number in 8..22 {
        acknowledge(&mut ledger, at(41), number);
        assert_eq!(ledger.reduction.repair, Repair::Losses, "after {number}");
    }
    acknowledge(&mut ledger, at(42), 22);
    assert_eq!(ledger.reduction.repair, Repair::Nothing, "all that left before the recovery is there");
}

/// A BBR in recovery: packet 0 is lost, 1 to 18 have arrived. Of 20 to 23 the first stands for 0.
fn bbr_in_recovery() -> Ledger {
    let mut ledger = bbr();
    send(&mut ledger, at(0), 0, 20);
    acknowledge(&mut ledger, at(20), 1);
    ledger.note(at(21), Told::Lost { number: 0 });
    acknowledge(&mut ledger, at(21), 2);
    send(&mut ledger, at(21), 20, 4);
    for number in 3..19 {
        acknowledge(&mut ledger, at(30), number);
    }
    ledger
}

#[test]
fn what_is_lost_again_prolongs_a_recovery_of_bbr() {
    let mut ledger = bbr_in_recovery();
    acknowledge(&mut ledger, at(30), 19);
    ledger.note(at(41), Told::Lost { number: 20 });
    acknowledge(&mut ledger, at(41), 23);
    send(&mut ledger, at(41), 24, 1);
    for number in [21, 22] {
        acknowledge(&mut ledger, at(42), number);
        assert_eq!(ledger.reduction.repair, Repair::Losses, "after {number}");
    }
    acknowledge(&mut ledger, at(61), 24);
    assert_eq!(ledger.reduction.repair, Repair::Nothing);
}

/// As in Linux: the control does not see an end in between, and its window does not come back.
#[test]
fn what_leaves_in_a_recovery_of_bbr_and_is_lost_makes_the_next_one_follow_at_once() {
    let mut ledger = bbr_in_recovery();
    let first = ledger.reduction.ends;
    acknowledge(&mut ledger, at(41), 20);
    ledger.note(at(41), Told::Lost { number: 21 });
    send(&mut ledger, at(41), 24, 2);
    acknowledge(&mut ledger, at(41), 23);
    assert_eq!(ledger.reduction.ends, first, "19 is open");
    acknowledge(&mut ledger, at(42), 19);
    assert_eq!(ledger.reduction.repair, Repair::Losses);
    assert!(ledger.reduction.ends > first, "another one");
    for number in [22, 24] {
        acknowledge(&mut ledger, at(61), number);
        assert_eq!(ledger.reduction.repair, Repair::Losses, "after {number}");
    }
    acknowledge(&mut ledger, at(61), 25);
    assert_eq!(ledger.reduction.repair, Repair::Nothing, "all that left before it is there");
}

#[test]
fn a_recovery_of_bbr_does_not_wait_for_what_is_not_sent_again() {
    let mut ledger = bbr_in_recovery();
    acknowledge(&mut ledger, at(30), 19);
    // What it carried is of no use any more, and the application has no more.
    ledger.note(at(41), Told::Lost { number: 20 });
    ledger.settle(at(41), Span::ZERO);
    ledger.end_burst(at(41), true);
    acknowledge(&mut ledger, at(42), 21);
    assert_eq!(ledger.reduction.repair, Repair::Nothing);
    // Losses that were none are nothing that is to be repaired either.
    let mut ledger = bbr_in_recovery();
    ledger.note(at(41), Told::Spurious);
    ledger.settle(at(41), Span::ZERO);
    acknowledge(&mut ledger, at(42), 19);
    assert_eq!(ledger.reduction.repair, Repair::Nothing);
}

#[test]
fn what_is_logged_as_in_flight_are_the_bytes_that_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = ledger(10);
    ledger.keep(at(0), Log::create(crate::Qlog::new(folder.path()), at(0), 0, false, ""));
    for (number, bytes) in [(1, 87), (2, 75), (3, 1452)] {
        ledger.note(at(number), Told::Sent { number, bytes });
    }
    acknowledge(&mut ledger, at(20), 2);
    ledger.note(at(21), Told::Lost { number: 1 });
    ledger.settle(at(21), Span::ZERO);
    drop(ledger);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    let events = text.split('\u{1e}').skip(1).map(|record| serde_json::from_str::<serde_json::Value>(record).unwrap());
    let logged: Vec<u64> = events.filter_map(|event| event["data"]["bytes_in_flight"].as_u64()).collect();
    assert_eq!(logged, [87, 162, 1614, 1539, 1452]);
}
