//! Paced Chirping from the first packet to its exit, over one FIFO.

use crate::common::{Loop, MSS, Path};
use flowstart_congestion::start::{AdaptationConfig, EndRule, PacedChirping, PacedChirpingConfig, Start};
use flowstart_congestion::{
    Ack, Acked, AvoidanceConfig, Controller, ControllerConfig, Departure, ExitReason, Next, Repair, Sent, Signal,
    StartConfig, StartExit,
};
use flowstart_units::{Span, Time};

fn controller(config: PacedChirpingConfig) -> Controller {
    Controller::new(&ControllerConfig::new(StartConfig::PacedChirping(config), AvoidanceConfig::Reno))
}

fn chirping() -> Controller {
    controller(PacedChirpingConfig::default())
}

fn state(controller: &Controller) -> &PacedChirping {
    match controller.start() {
        Start::PacedChirping(start) => start,
        other => panic!("{other:?}"),
    }
}

/// Runs a greedy flow until its start has ended, at most `rounds` round trips.
fn until_exit(path: Path, controller: Controller, rounds: u64) -> (Loop, Option<StartExit>) {
    let mut flow = Loop::new(path, controller, u64::MAX);
    let mut queue_at_exit = None;
    flow.run(Time::ZERO + path.rtt0() * rounds, |flow| {
        if !flow.controller.is_starting() {
            queue_at_exit.get_or_insert(flow.max_queue);
        }
    });
    flow.max_queue = queue_at_exit.unwrap_or(flow.max_queue);
    let exit = flow.controller.start_exit().copied();
    (flow, exit)
}

#[test]
fn the_first_six_chirps_over_100_mbit_per_second_and_20_ms_are_the_published_trace() {
    let mut flow = Loop::new(Path::new(100, Span::from_millis(20)), chirping(), u64::MAX);
    let mut seen = Vec::new();
    flow.run(Time::ZERO + Span::from_millis(75), |flow| {
        let state = state(&flow.controller);
        if state.chirps_analysed() as usize > seen.len() {
            seen.push((flow.now, state.last_estimate().unwrap(), state.average_gap()));
        }
    });
    // analysed at (ms), estimate (µs), average gap after it (µs)
    let trace = [
        (21.24, 160.0, 180.0),
        (31.30, 160.0, 170.0),
        (42.97, 135.0, 152.5),
        (53.02, 135.0, 143.75),
        (64.53, 127.5, 135.6),
        (74.33, 133.4, 134.5),
    ];
    assert_eq!(seen.len(), trace.len());
    for ((at, estimate, average), (at_ms, estimate_us, average_us)) in seen.into_iter().zip(trace) {
        // Both traces are rounded to the digits shown.
        assert!((at.as_secs_f64() * 1e3 - at_ms).abs() <= 0.011, "{at:?} against {at_ms} ms");
        assert!((estimate.as_nanos() as f64 / 1e3 - estimate_us).abs() <= 0.051, "{estimate:?}");
        assert!((average.as_nanos() as f64 / 1e3 - average_us).abs() <= 0.051, "{average:?}");
    }
}

#[test]
fn the_queue_stays_within_0_29_ms_over_the_whole_start() {
    let (flow, exit) = until_exit(Path::new(100, Span::from_millis(20)), chirping(), 10);
    assert_eq!(exit.unwrap().reason, ExitReason::PipeFull);
    assert!(flow.max_queue <= Span::from_micros(290), "{:?}", flow.max_queue);
}

#[test]
fn the_start_ends_after_the_round_trips_of_the_reference_model() {
    for (mbps, rtt, rounds) in [(100, 20, 5.2), (150, 15, 6.1), (200, 20, 6.1), (100, 50, 7.0), (100, 100, 7.9)] {
        let path = Path::new(mbps, Span::from_millis(rtt));
        let (_, exit) = until_exit(path, chirping(), 20);
        let exit = exit.unwrap();
        let ended = exit.now.since(Time::ZERO).ratio(path.rtt0());
        assert_eq!(exit.reason, ExitReason::PipeFull);
        assert!((ended - rounds).abs() <= 0.05, "{mbps} Mbit/s {rtt} ms: {ended} against {rounds}");
        let of_bdp = f64::from(exit.cwnd) * path.service().ratio(path.rtt0());
        assert!((0.85..=1.0).contains(&of_bdp), "window {of_bdp} BDP");
    }
}

#[test]
fn it_ends_on_every_path() {
    for mbps in [1, 3, 10, 50, 1000, 10_000] {
        for rtt in [1, 5, 20, 100, 500] {
            let path = Path::new(mbps, Span::from_millis(rtt));
            let (_, exit) = until_exit(path, chirping(), 40);
            assert!(exit.is_some(), "{mbps} Mbit/s, {rtt} ms");
        }
    }
}

#[test]
fn a_loss_ends_it_with_half_of_what_was_in_flight() {
    let path = Path { lose_every: 40, ..Path::new(100, Span::from_millis(20)) };
    let (_, exit) = until_exit(path, chirping(), 20);
    let exit = exit.unwrap();
    assert_eq!(exit.reason, ExitReason::Loss);
    assert_eq!(exit.cwnd, exit.in_flight.max(2));
    assert_eq!(exit.ssthresh, (exit.in_flight / 2).max(2));
}

#[test]
fn marks_are_not_obeyed_until_it_has_ended() {
    let path = Path { mark_above: Span::ZERO, ..Path::new(100, Span::from_millis(20)) };
    let (_, exit) = until_exit(path, chirping(), 20);
    assert_eq!(exit.unwrap().reason, ExitReason::PipeFull);
    let mut controller = chirping();
    assert_eq!(controller.on_signal(Time::ZERO, Signal::Marks), None);
    assert!(controller.is_starting());
}

#[test]
fn rounds_of_chirps_back_to_back_are_bounded() {
    // Back to back, chirps send at 0.895 of the estimated rate, so a full pipe is out of reach.
    let path = Path::new(1000, Span::from_millis(20));
    let config = PacedChirpingConfig { full: 1.0, ..PacedChirpingConfig::default() };
    let (flow, exit) = until_exit(path, controller(config), 60);
    assert_eq!(exit.unwrap().reason, ExitReason::Limit);
    assert!(state(&flow.controller).round() < 20);
}

/// The first paper's rule adds up the chirps of a round. A model of it ends after 6.1 and 7.1 round
/// trips at 100 and 200 Mbit/s and 20 ms.
#[test]
fn the_first_papers_rule_ends_when_the_chirps_of_a_round_take_a_round_trip() {
    for rate in [100, 200] {
        let path = Path::new(rate, Span::from_millis(20));
        let config = PacedChirpingConfig { ends: EndRule::RoundLength, ..PacedChirpingConfig::default() };
        let (flow, exit) = until_exit(path, controller(config), 60);
        let exit = exit.unwrap();
        assert_eq!(exit.reason, ExitReason::PipeFull);
        let bdp = rate as f64 * 20_000.0 / 12_000.0;
        let share = f64::from(exit.cwnd) / bdp;
        assert!((0.8..=1.1).contains(&share), "{rate} Mbit/s: {share}");
        assert!((5..=9).contains(&state(&flow.controller).round()), "{}", state(&flow.controller).round());
    }
}

#[test]
fn adapted_to_quiet_estimates_rounds_grow_faster_and_a_noisy_one_slows_them_down() {
    let path = Path::new(100, Span::from_millis(100));
    let rounds = |adaptation: Option<AdaptationConfig>| {
        let config = PacedChirpingConfig { adaptation, ..PacedChirpingConfig::default() };
        let (flow, exit) = until_exit(path, controller(config), 60);
        assert_eq!(exit.unwrap().reason, ExitReason::PipeFull);
        state(&flow.controller).round()
    };
    let never_quiet = AdaptationConfig { noisy_above: Span::ZERO, ..AdaptationConfig::default() };
    let always_quiet = AdaptationConfig { noisy_above: Span::from_secs(1), ..AdaptationConfig::default() };
    let (plain, quiet, noisy) = (rounds(None), rounds(Some(always_quiet)), rounds(Some(never_quiet)));
    assert!(quiet < plain && plain < noisy, "{quiet} {plain} {noisy}");
}

/// A hand-driven sender.
struct Hand {
    controller: Controller,
    number: u64,
}

impl Hand {
    fn next(&self, queued: u64) -> Next {
        let srtt = Span::from_millis(20);
        let (number, in_flight) = (self.number, self.number as u32);
        Next {
            number,
            bytes: MSS,
            wire_bytes: 1500,
            in_flight,
            packets_out: in_flight,
            queued,
            retransmission: false,
            srtt,
            min_rtt: srtt,
        }
    }

    fn send(&mut self, now: Time) {
        let (number, in_flight) = (self.number, self.number as u32 + 1);
        self.controller.on_sent(&Sent {
            now,
            number,
            seq: number * 1448,
            bytes: MSS,
            in_flight,
            retransmission: false,
        });
        self.number += 1;
    }
}

fn ack(now: Time, packets_out: u32) -> Ack {
    let srtt = Span::from_millis(20);
    Ack {
        now,
        acked: 1,
        acked_bytes: 1448,
        marked: 0,
        lost: 0,
        lost_meanwhile: 0,
        rtt: Some(srtt),
        srtt,
        min_rtt: srtt,
        una: 1448,
        next: 1448 * u64::from(packets_out),
        advanced: true,
        in_flight: packets_out,
        packets_out,
        cwnd_limited: true,
        max_packets_out: packets_out,
        app_limited: false,
        delivered: 1,
        rate: None,
        total_lost: 0,
        repair: Repair::Nothing,
    }
}

#[test]
fn with_too_little_data_for_a_chirp_packets_leave_at_once_and_grow_the_window_as_slow_start_does() {
    let mut hand = Hand { controller: chirping(), number: 0 };
    let now = Time::from_nanos(1);
    for queued in (1..=4).rev() {
        assert_eq!(hand.controller.departure(now, &hand.next(queued)), Departure::Now);
        hand.send(now);
    }
    let later = now + Span::from_millis(20);
    hand.controller.on_ack(&ack(later, 3));
    let before = hand.controller.cwnd();
    for number in 0..4 {
        let (rtt, sent_at) = (Some(Span::from_millis(20)), now);
        hand.controller.on_acked(&Acked { now: later, number, bytes: MSS, sent_at, rtt, retransmitted: false });
        hand.controller.grow(&ack(later, 3));
    }
    assert_eq!(hand.controller.cwnd(), before + 4);
    assert!(hand.controller.is_starting());
}

#[test]
fn gaps_shrink_within_a_chirp_and_the_second_chirp_waits_half_a_round_trip() {
    let mut hand = Hand { controller: chirping(), number: 0 };
    let start = Time::from_nanos(1);
    let mut now = start;
    let mut left = Vec::new();
    for _ in 0..10 {
        if let Departure::At(at) = hand.controller.departure(now, &hand.next(1000)) {
            now = at;
        }
        assert_eq!(hand.controller.departure(now, &hand.next(1000)), Departure::Now);
        left.push(now.since(start).as_micros());
        hand.send(now);
    }
    assert_eq!(left, [0, 400, 720, 960, 1120, 10_000, 10_400, 10_720, 10_960, 11_120]);
    assert_eq!(hand.controller.departure(now, &hand.next(1000)), Departure::Hold, "the round is used up");
}

#[test]
fn a_late_packet_gets_back_half_a_gap_at_most_and_a_stall_makes_the_chirp_say_nothing() {
    for (lateness_us, estimate) in [(0, true), (100, true), (700, false)] {
        let mut hand = Hand { controller: chirping(), number: 0 };
        let mut sent_at = Vec::new();
        let mut now = Time::from_nanos(1);
        for k in 0..5 {
            if let Departure::At(at) = hand.controller.departure(now, &hand.next(1000)) {
                now = at + Span::from_micros(if k == 2 { lateness_us } else { 0 });
            }
            sent_at.push(now);
            hand.send(now);
        }
        if lateness_us == 700 {
            // 240 µs after a packet that was 700 µs late: half of the gap is given back.
            assert_eq!(sent_at[3].since(sent_at[2]), Span::from_micros(120));
        }
        let later = now + Span::from_millis(20);
        for (number, sent_at) in (0..).zip(sent_at) {
            let rtt = Some(Span::from_millis(20));
            hand.controller.on_acked(&Acked { now: later, number, bytes: MSS, sent_at, rtt, retransmitted: false });
        }
        assert_eq!(state(&hand.controller).last_estimate().is_some(), estimate, "{lateness_us} µs late");
        assert_eq!(state(&hand.controller).chirps_analysed(), 1);
    }
}

#[test]
fn a_chirp_with_a_packet_missing_is_given_up_when_a_later_one_is_complete() {
    let mut hand = Hand { controller: chirping(), number: 0 };
    let mut now = Time::from_nanos(1);
    for _ in 0..10 {
        if let Departure::At(at) = hand.controller.departure(now, &hand.next(1000)) {
            now = at;
        }
        hand.send(now);
    }
    let rtt = Some(Span::from_millis(20));
    for number in [0, 1, 3, 4, 5, 6, 7, 8, 9] {
        hand.controller.on_acked(&Acked { now, number, bytes: MSS, sent_at: now, rtt, retransmitted: false });
    }
    assert_eq!(state(&hand.controller).chirps_analysed(), 2);
    assert_eq!(state(&hand.controller).average_gap(), Span::from_micros(180), "only the second chirp counted");
    assert_eq!(state(&hand.controller).round(), 2);
}

#[test]
fn a_transfer_of_any_size_is_delivered() {
    for packets in [1, 4, 5, 6, 9, 10, 11, 25, 26, 27, 57, 58, 59, 200] {
        let mut flow = Loop::new(Path::new(100, Span::from_millis(20)), chirping(), packets);
        flow.run(Time::ZERO + Span::from_secs(1), |_| {});
        assert_eq!(flow.delivered, packets);
    }
}
