use super::*;
use flowstart_control::DeliveryRate;
use flowstart_control::testing::{ack, next};

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn with_rtt(rtt: Span) -> Ack {
    Ack { rtt: Some(rtt), srtt: rtt, min_rtt: ms(20), in_flight: 100, next: u64::MAX, ..ack(1) }
}

/// HyStart has taken over from chirps that were read, with a window of 101 packets.
fn late() -> (ChirpingOrHystart, Window) {
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    let mut window = Window::new(10);
    start.take_over_late(&with_rtt(ms(30)), &mut window);
    assert_eq!(window.cwnd, 101);
    (start, window)
}

/// 20 packets in a quarter of the RTT of now, not of one from before: the first leaves at once.
#[test]
fn what_takes_over_leaves_by_the_rtt_of_now() {
    for (rtt, srtt) in [(ms(40), ms(40)), (ms(40), ms(3000)), (ms(60), ms(40))] {
        let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
        let mut window = Window::new(10);
        let ack = Ack { srtt, in_flight: 0, delivered: 10, ..with_rtt(rtt) };
        start.take_over(&ack, (0, Time::ZERO), 0, &mut window);
        assert_eq!((window.cwnd, start.pace), (20, Some((ms(40) / 80, ack.now))), "{rtt} {srtt}");
    }
}

/// Packets left by an RTT of 220 ms; that of now is 20. One that is longer changes nothing.
#[test]
fn what_was_taken_over_after_a_silence_leaves_by_the_rtt_of_every_ack() {
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    let mut window = Window::new(10);
    let ack = Ack { in_flight: 0, delivered: 10, ..with_rtt(ms(220)) };
    start.take_over(&ack, (0, Time::ZERO), 0, &mut window);
    assert_eq!(start.pace, Some((ms(220) / 80, ack.now)));
    let at = ack.now + ms(220) / 80;
    start.pace = Some((ms(220) / 80, at));
    for (rtt, gap) in [(300, ms(220) / 80), (20, ms(20) / 80), (40, ms(20) / 80)] {
        start.on_ack(&Ack { ..with_rtt(ms(rtt)) }, &mut window);
        assert_eq!(start.pace, Some((gap, ack.now + gap)), "{rtt}");
    }
}

#[test]
fn hystart_that_takes_over_has_the_constants_that_are_given() {
    for (threshold, late) in [(4, [false, true]), (8, [false, false])] {
        let mut config = AdaptiveChirpingConfig::default();
        config.hystart.min_delay_threshold = ms(threshold);
        let mut start = ChirpingOrHystart::new(&config, 10, false, 1448);
        start.take_over(&with_rtt(ms(20)), (0, Time::ZERO), 0, &mut Window::new(10));
        assert_eq!([24, 25].map(|rtt| start.hystart.is_late(ms(rtt))), late, "{threshold} ms");
    }
}

/// HyStart forgets the RTTs from before a timeout: the route may be another one.
#[test]
fn a_timeout_that_is_taken_back_leaves_the_start_to_a_hystart_that_knows_no_rtt() {
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    let mut window = Window { ssthresh: 39, ..Window::new(1) };
    start.on_restart(Time::ZERO, Restart::Timeout, &window, LastRtt { srtt: ms(20), min_rtt: ms(20) });
    start.on_ack(&Ack { in_flight: 56, ..with_rtt(ms(1000)) }, &mut window);
    assert!(!start.gave_up(), "it was not taken back yet");
    window = Window::new(57);
    start.on_ack(&Ack { in_flight: 56, ..with_rtt(ms(1000)) }, &mut window);
    assert!(start.gave_up() && !start.hystart.is_late(ms(2000)));
    assert_eq!(window.cwnd, 57);
}

/// 20 packets were on their way; the rate of what a silence held up is a packet per 5 ms.
#[test]
fn a_rate_that_was_measured_over_a_silence_leaves_hystarts_least_window() {
    let (mut start, mut window) = late();
    let rate = DeliveryRate { delivered: 10, interval: ms(50), prior_delivered: 0, app_limited: false };
    let exit = (0..8).find_map(|_| match start.on_ack(&Ack { rate: Some(rate), ..with_rtt(ms(30)) }, &mut window) {
        AfterAck::Done(exit) => Some(exit.cwnd),
        _ => None,
    });
    assert_eq!(exit, Some(16));
}

/// 40 packets are less than what chirps are for.
#[test]
fn a_short_transfer_is_chirped_only_where_packets_are_marked() {
    let window = Window::new(10);
    let next = Next { queued: 40, srtt: ms(20), min_rtt: ms(20), ..next(0) };
    for marked in [false, true] {
        let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
        let mut grown = window;
        if marked {
            assert_eq!(start.on_signal(Time::ZERO, Signal::Marks, &mut grown), Response::Ignore);
        }
        let first = start.departure(Time::ZERO, &next, &window);
        assert_eq!((first.is_some(), start.chirping.is_waiting(), grown), (marked, !marked, window));
    }
    // HyStart that is in charge for good leaves.
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    start.gave_up = true;
    assert_ne!(start.on_signal(Time::ZERO, Signal::Marks, &mut window.clone()), Response::Ignore);
    // Fewer packets than a window are no chirp, and HyStart goes on.
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    start.on_signal(Time::ZERO, Signal::Marks, &mut window.clone());
    assert_eq!(start.departure(Time::ZERO, &Next { queued: 9, ..next }, &window), None);
}

/// All of its own ACKs wait behind what chirps queued.
#[test]
fn what_takes_over_late_compares_with_the_smallest_rtt_of_the_chirps() {
    for (rtt, ends) in [(ms(30), true), (ms(23), false)] {
        let (mut start, mut window) = late();
        let after = (0..8).map(|_| start.on_ack(&with_rtt(rtt), &mut window)).last();
        let reason = match after {
            Some(AfterAck::Done(exit)) => Some(exit.reason),
            _ => None,
        };
        assert_eq!(reason, ends.then_some(ExitReason::DelayIncrease), "{rtt}");
    }
}

#[test]
fn what_takes_over_late_grows_by_half_until_a_timeout() {
    let (mut start, mut window) = late();
    let grown = |start: &mut ChirpingOrHystart, window: &mut Window| {
        let before = window.cwnd;
        for _ in 0..30 {
            start.grow(&with_rtt(ms(20)), window);
        }
        window.cwnd - before
    };
    assert_eq!(grown(&mut start, &mut window), 15);
    start.on_restart(Time::ZERO, Restart::Timeout, &window, LastRtt { srtt: ms(20), min_rtt: ms(20) });
    assert_eq!(grown(&mut start, &mut window), 30);
}

/// A path of a packet per ms: 20 packets fill 20 ms.
#[test]
fn a_window_that_fills_the_path_grows_by_a_quarter_until_a_timeout() {
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    (start.gave_up, start.credit) = (true, 0);
    start.saturation.as_mut().unwrap().suggest(1_000_000);
    let grown = |start: &mut ChirpingOrHystart, cwnd| {
        let mut window = Window::new(cwnd);
        (0..12).for_each(|_| {
            start.grow(&with_rtt(ms(20)), &mut window);
        });
        window.cwnd - cwnd
    };
    assert_eq!((grown(&mut start, 6), grown(&mut start, 20)), (12, 3));
    let last = LastRtt { srtt: ms(20), min_rtt: ms(20) };
    start.on_restart(Time::ZERO, Restart::Timeout, &Window::new(20), last);
    assert_eq!(grown(&mut start, 20), 12);
}

/// When a start that HyStart took over, of packets that were spread, ended, and how: bursts of 60
/// packets every 30 ms, twice as slow at the other end as they left, at one per 400 us.
fn end_of_bursts(start: &mut ChirpingOrHystart, window: &mut Window) -> Option<(u64, u64, ExitReason, u32)> {
    start.gave_up = true;
    start.hystart.has_been_spread(ms(20));
    (0..300_u64).find_map(|n| {
        let (round, place) = (n / 60, n % 60);
        let now = Time::ZERO + ms(30) * round + Span::from_micros(400) * place;
        let rtt = ms(20) + Span::from_micros(200) * place;
        let ack = Ack { now, una: n + 1, next: (round + 1) * 60, ..with_rtt(rtt) };
        match start.on_ack(&ack, window) {
            AfterAck::Done(exit) => Some((round, place, exit.reason, exit.cwnd)),
            _ => None,
        }
    })
}

/// They come for 24 ms of every 30. Those that HyStart takes for spread over 20 ms do not end it,
/// nor do RTTs that are short again.
#[test]
fn a_train_of_half_a_round_trip_that_the_path_makes_ends_the_start() {
    for (cwnd, ends) in [(40, true), (15, false)] {
        let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
        // 27 times 400 us are more than 10 ms and half of what bursts may add.
        let expected = ends.then_some((1, 27, ExitReason::AckTrain, cwnd));
        assert_eq!(end_of_bursts(&mut start, &mut Window::new(cwnd)), expected);
    }
}

/// At that rate 50 packets fill 20 ms.
#[test]
fn what_rises_in_two_round_trips_ends_the_start_for_good() {
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    let mut window = Window::new(63);
    let exit = end_of_bursts(&mut start, &mut window).map(|(round, _, reason, cwnd)| (round, reason, cwnd));
    assert_eq!(exit, Some((1, ExitReason::RatePlateau, 63)));
    let last = LastRtt { srtt: ms(20), min_rtt: ms(20) };
    assert!(!start.on_restart(Time::ZERO, Restart::Undo, &window, last));
}

/// The first ACKs come 1, 0.2 and 0.5 ms apart; those of a start that begins again count anew.
#[test]
fn the_longest_time_between_acks_is_of_those_since_the_flow_began_or_began_again() {
    let us = Span::from_micros;
    let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
    let mut window = Window::new(10);
    let mut at = |start: &mut ChirpingOrHystart, times: &[u64]| {
        for time in times {
            start.on_ack(&Ack { now: Time::ZERO + us(*time), ..with_rtt(ms(20)) }, &mut window);
        }
        start.apart.1
    };
    assert_eq!(at(&mut start, &[50_000, 51_000, 51_200, 51_700]), ms(1));
    start.on_restart(Time::ZERO, Restart::Idle, &Window::new(10), LastRtt { srtt: ms(20), min_rtt: ms(20) });
    assert_eq!(at(&mut start, &[400_000, 400_300]), us(300));
    // One that tells of a packet that came before earlier ones.
    let early = Ack { now: Time::ZERO + us(400_400), advanced: false, ..with_rtt(ms(20)) };
    start.on_ack(&early, &mut Window::new(10));
    assert_eq!((start.apart.1, at(&mut start, &[400_500])), (Span::MAX, Span::MAX));
}

/// 10 packets arrived within 6 ms, 10 are to leave within 2.5 ms. With ACKs 1 ms apart a train of
/// more than 10.5 ms is the path's; with 0.7 ms HyStart's limit of 10 ms is longer. Where they came
/// 3 ms apart 8.5 ms are added to that.
#[test]
fn a_train_that_is_longer_than_packets_were_spread_is_the_paths() {
    let us = Span::from_micros;
    let spread = us(10_000 + 8500);
    for (apart, limit) in [(ms(1), us(10_500)), (us(700), us(10_000)), (ms(3), spread), (Span::MAX, spread)] {
        let mut start = ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, 1448);
        start.apart.1 = apart;
        let mut window = Window::new(10);
        let now = Time::ZERO + ms(46);
        let ack = Ack { now, in_flight: 10, delivered: 10, ..with_rtt(ms(20)) };
        start.take_over(&ack, (0, Time::ZERO + ms(40)), 0, &mut window);
        assert_eq!(start.hystart.train_limit(&window), limit, "{apart}");
    }
}
