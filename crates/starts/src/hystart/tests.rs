use super::*;
use flowstart_control::testing::ack;

const MSS: u32 = 1448;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A start whose first round began at time zero with the given smallest RTT.
fn started(config: HystartConfig, paced: bool, delay_min: Span) -> Hystart {
    let mut start = Hystart::new(&config, paced, MSS);
    start.delay_min = delay_min;
    start.prior_srtt = delay_min;
    start.begin_round(Time::ZERO, u64::MAX);
    start
}

fn sample(start: &mut Hystart, now: Time, rtt: Span, cwnd: u32) -> Option<ExitReason> {
    let mut window = Window::new(cwnd);
    let ack = Ack { now, rtt: Some(rtt), srtt: rtt, una: 1, next: u64::MAX, ..ack(1) };
    match start.on_ack(&ack, &mut window) {
        AfterAck::Continue => None,
        AfterAck::Done(exit) => {
            assert_eq!((exit.cwnd, exit.ssthresh), (cwnd, cwnd));
            Some(exit.reason)
        }
    }
}

#[test]
fn the_delay_limit_is_an_eighth_above_the_smallest_rtt_within_4_and_16_ms() {
    let config = HystartConfig::default();
    let limits: [(u64, u64); 7] =
        [(5, 9_000), (20, 24_000), (32, 36_000), (50, 56_250), (100, 112_500), (128, 144_000), (200, 216_000)];
    for (min, limit) in limits {
        assert_eq!(ms(min) + config.delay_threshold(ms(min)), Span::from_micros(limit), "min {min} ms");
    }
}

#[test]
fn the_train_limit_is_halved_unless_the_flow_is_paced() {
    let window = Window::new(20);
    let unpaced = started(HystartConfig::default(), false, ms(50));
    assert_eq!(unpaced.train_limit(&window), Span::from_micros(25_500));
    let paced = started(HystartConfig::default(), true, ms(50));
    assert_eq!(paced.train_limit(&window), Span::from_micros(51_000));
    // 5.8 GB/s
    assert_eq!(HystartConfig::default().cushion(Some(Rate::from_bps(46_400_000_000))).as_micros(), 45);
    assert_eq!(HystartConfig::default().cushion(None), Span::ZERO);
}

#[test]
fn the_config_can_say_that_the_flow_counts_as_paced() {
    let config = HystartConfig { paced: Some(true), ..HystartConfig::default() };
    let start = started(config, false, ms(50));
    assert_eq!(start.train_limit(&Window::new(20)), Span::from_micros(51_000));
}

#[test]
fn as_in_ns3_the_ack_after_a_round_of_19_ms_completes_a_train_of_a_round_trip_of_20() {
    // 160 ACKs 120 us apart, then the first of the next round, a round trip after the first.
    let ends_with = |config: HystartConfig| {
        let mut start = started(config, false, ms(20));
        start.round_end = 160;
        let rtt = Span::from_micros(20_130);
        let sample = |start: &mut Hystart, number: u64, at: Span| {
            let now = Time::ZERO + ms(100) + at;
            let ack = Ack { now, rtt: Some(rtt), srtt: rtt, una: number, next: 320, ..ack(1) };
            start.on_ack(&ack, &mut Window::new(160 + number as u32)) != AfterAck::Continue
        };
        start.begin_round(Time::ZERO + ms(100), 160);
        assert!(!(1..=160).any(|n| sample(&mut start, n, Span::from_micros(120) * (n - 1))));
        sample(&mut start, 161, rtt)
    };
    assert!(ends_with(HystartConfig::ns3()));
    assert!(!ends_with(HystartConfig { round_ends_late: false, ..HystartConfig::ns3() }));
    assert!(!ends_with(HystartConfig { ack_delta: Span::from_micros(900), ..HystartConfig::ns3() }));
}

#[test]
fn rtts_are_as_coarse_as_the_clock_of_timestamps() {
    let config = HystartConfig { rtt_tick: ms(1), ..HystartConfig::default() };
    let at = |micros| Time::ZERO + Span::from_micros(micros);
    assert_eq!(config.measured(at(120_300), Span::from_micros(20_200)), ms(20));
    assert_eq!(config.measured(at(120_100), Span::from_micros(20_200)), ms(21));
    let exact = Span::from_micros(20_200);
    assert_eq!(HystartConfig::default().measured(at(120_100), exact), exact);
}

#[test]
fn one_gap_ends_train_detection_for_the_round() {
    for (gap, exits) in [(Span::from_micros(1_000), true), (Span::from_micros(2_100), false)] {
        let mut start = started(HystartConfig::default(), false, ms(50));
        let mut now = Time::ZERO;
        let mut reason = None;
        while now < Time::ZERO + ms(48) && reason.is_none() {
            now += if now == Time::ZERO + ms(20) { gap } else { ms(1) };
            reason = sample(&mut start, now, ms(50), 20);
        }
        assert_eq!(reason, exits.then_some(ExitReason::AckTrain), "gap {} us", gap.as_micros());
        if exits {
            assert_eq!(now, Time::ZERO + ms(26), "first ACK beyond 25.5 ms");
        }
    }
}

#[test]
fn the_ninth_sample_of_a_round_is_the_first_to_be_judged() {
    let mut start = started(HystartConfig::default(), false, ms(20));
    let far = Time::ZERO + ms(100);
    for _ in 0..8 {
        assert_eq!(sample(&mut start, far, ms(30), 20), None);
    }
    assert_eq!(sample(&mut start, far, ms(30), 20), Some(ExitReason::DelayIncrease));
}

#[test]
fn one_sample_at_the_limit_keeps_the_round_quiet() {
    for quiet in 0..9 {
        let mut start = started(HystartConfig::default(), false, ms(20));
        for i in 0..40 {
            let rtt = if i == quiet { ms(24) } else { ms(30) };
            assert_eq!(sample(&mut start, Time::ZERO + ms(100), rtt, 20), None, "sample {i}, quiet {quiet}");
        }
    }
}

/// Packets leave in bursts of 30, the last 20 of which are later by 24 ms. Others are in charge
/// for the first 15 ACKs: a round that begins with the 16th, or the one after it, judges nine
/// of the late ones first. On a short way it ends the start, as 16 ms are an eighth of 128.
#[test]
fn rounds_of_a_long_way_are_those_that_began_under_others() {
    for (least, ends) in [(ms(600), None), (ms(129), None), (ms(127), Some(ExitReason::DelayIncrease))] {
        let mut start = Hystart::new(&HystartConfig::default(), false, MSS);
        start.has_seen(least);
        let mut window = Window::new(20);
        let end = (1..=120_u64).find_map(|una| {
            let (burst, place) = ((una - 1) / 30, (una - 1) % 30);
            let rtt = if place < 10 { least } else { least + ms(24) };
            let now = Time::ZERO + least * burst + ms(3) * place;
            let ack = Ack { now, rtt: Some(rtt), srtt: rtt, min_rtt: least, una, next: una + 29, ..ack(1) };
            if una <= 15 {
                start.has_passed(&ack);
                return None;
            }
            match start.on_ack(&ack, &mut window) {
                AfterAck::Continue => None,
                AfterAck::Done(exit) => Some(exit.reason),
            }
        });
        assert_eq!(end, ends, "{least}");
    }
}

#[test]
fn nothing_is_detected_below_the_low_window_but_rounds_still_begin() {
    let mut start = Hystart::new(&HystartConfig::default(), false, MSS);
    let mut window = Window::new(15);
    for i in 1..100 {
        let now = Time::ZERO + ms(10 * i);
        let ack = Ack { now, rtt: Some(ms(10 * i)), srtt: ms(10), una: i * 100, next: i * 100 + 50, ..ack(1) };
        assert_eq!(start.on_ack(&ack, &mut window), AfterAck::Continue);
        assert_eq!(start.round_start, now);
    }
}

#[test]
fn the_low_window_itself_is_watched() {
    // hystart_low_window is 16: cwnd >= 16 is watched.
    for (cwnd, found) in [(15, None), (16, Some(ExitReason::AckTrain))] {
        let mut start = started(HystartConfig::default(), false, ms(20));
        let mut reason = None;
        for i in 1..30 {
            reason = reason.or(sample(&mut start, Time::ZERO + ms(i), ms(20), cwnd));
        }
        assert_eq!(reason, found, "window {cwnd}");
    }
}

#[test]
fn each_detector_can_be_switched_off() {
    let without_delay = HystartConfig { delay_detector: false, ..HystartConfig::default() };
    let mut start = started(without_delay, false, ms(20));
    assert!((0..50).all(|_| sample(&mut start, Time::ZERO + ms(100), ms(90), 20).is_none()));
    let without_train = HystartConfig { train_detector: false, ..HystartConfig::default() };
    let mut start = started(without_train, false, ms(20));
    assert!((1..200).all(|i| sample(&mut start, Time::ZERO + ms(i), ms(20), 20).is_none()));
}

#[test]
fn after_a_detection_only_a_timeout_arms_it_again() {
    let mut start = started(HystartConfig::default(), false, ms(20));
    let last = LastRtt { srtt: ms(20), min_rtt: ms(20) };
    let restart = |start: &mut Hystart, why| start.on_restart(Time::ZERO, why, &Window::new(10), last);
    assert!(restart(&mut start, Restart::Idle), "nothing found yet");
    start.found = true;
    assert!(!restart(&mut start, Restart::Idle));
    assert!(!restart(&mut start, Restart::Undo));
    assert!(restart(&mut start, Restart::Timeout));
    assert_eq!(start.delay_min, Span::MAX);
}

/// How many of 60 ACKs, 400 us apart, behind a pause of `pause` us, come until a train ends what
/// took over in the middle of a burst that had been spread over `spread` us, ACKs `apart` us apart.
fn train_after(spread: u64, apart: u64, pause: u64) -> Option<u64> {
    let us = Span::from_micros;
    let mut start = started(HystartConfig::default(), false, ms(10));
    let mut now = Time::ZERO + us(1000);
    start.has_taken_over(now, us(spread), us(apart));
    // The rest of that burst.
    for _ in 0..5 {
        now += us(apart.min(2000));
        assert_eq!(sample(&mut start, now, ms(10), 40), None);
    }
    now += us(pause);
    (0..60_u64).find_map(|n| sample(&mut start, now + us(400) * n, ms(10), 40).map(|_| n))
}

/// Half of 10 ms, and what bursts may add: 13 ACKs.
#[test]
fn what_takes_over_in_a_burst_begins_rounds_with_the_next_one() {
    assert_eq!(train_after(3000, 400, 2001), train_after(0, 400, 2001));
    assert_eq!(train_after(3000, 400, 2001), Some(14));
    assert_eq!(train_after(3000, 400, 2000), Some(2), "no pause: the train began a round before");
    assert_eq!(train_after(3000, 2001, 4000), None, "too far apart for a train: the round is the old one");
}

#[test]
fn a_train_is_the_paths_if_it_is_longer_than_packets_were_spread() {
    // 7 ms and 0.4 at either end are 7.8.
    assert_eq!([4000, 4600, 7000].map(|spread| train_after(spread, 400, 2001)), [Some(14), Some(14), Some(20)]);
}

/// On a way longer than 128 ms rounds have been counted from the first ACK on.
#[test]
fn on_a_long_way_the_rounds_that_were_counted_stay() {
    for (rtt, begins) in [(127, true), (129, false)] {
        let mut start = started(HystartConfig::default(), false, ms(rtt));
        start.has_taken_over(Time::ZERO, ms(1), ms(1));
        sample(&mut start, Time::ZERO + ms(3), ms(rtt), 40);
        assert_eq!(start.round_start > Time::ZERO, begins, "{rtt}");
    }
}

/// An eighth of 4 ms is less than HyStart's 4 ms. Those end it on a way of 8.
#[test]
fn where_jitter_is_known_an_eighth_of_a_short_rtt_is_late_if_it_is_more_than_that() {
    for (rtt, jitter, least) in [(4, 100, 500), (4, 2500, 2500), (4, 9000, 4000), (8, 0, 4000), (40, 0, 5000)] {
        let start = started(HystartConfig::default(), false, ms(rtt)).behind_others(ms(8));
        let us = Span::from_micros;
        let late = |rise: u64| start.is_late_beyond(ms(rtt) + us(rise), us(jitter));
        assert_eq!([least, least + 1].map(late), [false, true], "{rtt} ms, {jitter} us");
    }
}

/// Nor does a pause begin one on a way shorter than was said: bursts may come without any.
#[test]
fn on_a_short_way_rounds_are_counted_under_others() {
    for (rtt, counted) in [(7, true), (8, false)] {
        let mut start = Hystart::new(&HystartConfig::default(), false, MSS).behind_others(ms(8));
        let first = Ack { now: Time::ZERO + ms(20), rtt: Some(ms(rtt)), min_rtt: ms(rtt), una: 1, next: 11, ..ack(1) };
        start.has_passed(&first);
        assert_eq!((start.round_start, start.round_end), if counted { (first.now, 11) } else { (Time::ZERO, 0) });
        start.has_seen(ms(rtt));
        start.has_taken_over(first.now, ms(1), ms(1));
        assert_eq!(start.mid_burst.is_some(), !counted, "{rtt} ms");
    }
}

#[test]
fn only_the_first_pause_begins_a_round_and_a_timeout_forgets_how_packets_were_spread() {
    let mut start = started(HystartConfig::default(), false, ms(10));
    start.has_taken_over(Time::ZERO, ms(9), ms(1));
    sample(&mut start, Time::ZERO + ms(3), ms(10), 40);
    sample(&mut start, Time::ZERO + ms(6), ms(10), 40);
    assert_eq!(start.round_start, Time::ZERO + ms(3));
    let (window, last) = (Window::new(40), LastRtt { srtt: ms(10), min_rtt: ms(10) });
    assert_eq!(start.train_limit(&window), ms(11));
    start.has_taken_over(Time::ZERO, ms(9), ms(1));
    start.on_restart(Time::ZERO, Restart::Timeout, &window, last);
    assert_eq!((start.short_train, start.mid_burst), (Span::ZERO, None));
}
