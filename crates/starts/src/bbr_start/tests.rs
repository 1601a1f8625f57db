use super::*;
use crate::StartConstants as _;
use flowstart_control::DeliveryRate;
use flowstart_control::testing::{ack, next, sent};

fn bps(n: u64) -> Rate {
    Rate::from_bps(n)
}

/// The round, counted from 1, at whose beginning the plateau is found.
fn plateau_at(bandwidths: &[u64]) -> Option<usize> {
    let mut plateau = Plateau::default();
    bandwidths.iter().position(|b| plateau.on_round(bps(*b), millionths(1.25), 3)).map(|round| round + 1)
}

#[test]
fn three_rounds_below_a_quarter_more_are_a_plateau() {
    assert_eq!(plateau_at(&[10, 20, 40, 80, 95, 96, 96]), Some(7));
    assert_eq!(plateau_at(&[10, 20, 40, 80, 95, 96]), None);
}

#[test]
fn growth_by_exactly_a_quarter_begins_the_count_anew() {
    assert_eq!(plateau_at(&[80, 100, 110, 120, 126, 127, 127, 127]), Some(8));
    assert_eq!(plateau_at(&[80, 100, 110, 120, 124]), Some(5), "124 is less than a quarter more than 100");
}

#[test]
fn the_first_packets_are_paced_at_the_initial_window_per_rtt_times_the_gain() {
    let bytes_per_second = |config: BbrStartConfig| {
        let rate = BbrStart::new(&config, 10, 1448).initial_rate(Span::from_millis(50));
        (rate.as_bps() as f64 / 8.0).round()
    };
    assert_eq!(bytes_per_second(BbrStartConfig::v1()), 827_634.0);
    assert_eq!(bytes_per_second(BbrStartConfig::default()), 802_192.0);
}

#[test]
fn without_a_round_trip_time_one_millisecond_is_assumed() {
    let start = BbrStart::new(&BbrStartConfig::default(), 10, 1000);
    assert_eq!(start.initial_rate(Span::ZERO), bps(10_000 * 8 * 2770));
}

#[test]
fn the_window_is_capped_at_the_gain_times_the_bdp() {
    for (config, cap) in [(BbrStartConfig::v1(), 1203), (BbrStartConfig::v3(), 834)] {
        let mut start = BbrStart::new(&config, 10, 1500);
        start.min_rtt = Span::from_millis(50);
        start.bandwidth = Some(Rate::from_mbps(100));
        let found = start.inflight(millionths(config.cwnd_gain)).unwrap() - config.extra_packets;
        // 416.67 packets; the vectors begin with 417.
        assert!(found.abs_diff(cap) <= 1, "{found} against {cap}");
    }
}

/// A sample of `delivered` packets in 10 ms, for a packet sent when `prior` were delivered.
fn delivery(total: u64, delivered: u32, prior: u64, in_flight: u32) -> Ack {
    let interval = Span::from_millis(10);
    let rate = DeliveryRate { delivered, interval, prior_delivered: prior, app_limited: false };
    Ack { delivered: total, rate: Some(rate), min_rtt: interval, in_flight, ..ack(1) }
}

/// A start that found a plateau of 100 packets per 10 ms.
fn draining() -> (BbrStart, Window) {
    let mut start = BbrStart::new(&BbrStartConfig::default(), 10, 1448);
    let mut window = Window::new(10);
    for round in 0..4 {
        assert_eq!(start.phase(), BbrPhase::Startup);
        let verdict = start.on_ack(&delivery(100 * (round + 1), 100, 100 * round, 150), &mut window);
        assert_eq!(verdict, AfterAck::Continue);
    }
    (start, window)
}

#[test]
fn on_a_plateau_it_drains_to_the_bdp_and_hands_over_with_it() {
    let (mut start, mut window) = draining();
    assert_eq!(start.phase(), BbrPhase::Drain);
    let half = start.bandwidth().unwrap().mul_ratio(495, 1000);
    assert!(start.pacing_rate.unwrap().as_bps().abs_diff(half.as_bps()) <= 1);
    assert_eq!(start.on_ack(&delivery(401, 100, 350, 101), &mut window), AfterAck::Continue);
    let exit = Exit { reason: ExitReason::RatePlateau, cwnd: 100, ssthresh: 100, rate: start.bandwidth() };
    assert_eq!(start.on_ack(&delivery(402, 100, 350, 100), &mut window), AfterAck::Done(exit));
}

#[test]
fn a_queue_that_does_not_drain_ends_the_start_after_three_rounds() {
    let (mut start, mut window) = draining();
    let verdicts: Vec<bool> = (4..7)
        .map(|round| start.on_ack(&delivery(100 * (round + 1), 100, 100 * round, 150), &mut window))
        .map(|verdict| verdict != AfterAck::Continue)
        .collect();
    assert_eq!(verdicts, [false, false, true]);
}

#[test]
fn a_round_of_recovery_with_many_losses_ends_start_up_and_one_with_few_does_not() {
    for (lost, ends) in [(2, true), (0, false)] {
        let mut start = BbrStart::new(&BbrStartConfig::default(), 10, 1448);
        let mut window = Window::new(10);
        start.on_ack(&delivery(1, 10, 0, 500), &mut window);
        assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Ignore);
        // Bandwidth doubles: only losses can end it. The first round is the one in which recovery
        // began.
        for round in 1..4_u64 {
            for i in 0..20 {
                let total = 1 + 20 * (round - 1) + i;
                let prior = if i == 0 { total } else { 0 };
                let ack = Ack { lost: if i < 10 { lost } else { 0 }, ..delivery(total, 10 << round, prior, 500) };
                start.on_ack(&ack, &mut window);
            }
        }
        assert_eq!(start.phase() == BbrPhase::Drain, ends, "{lost} lost in each of ten ACKs");
        assert_eq!(start.reason == ExitReason::Loss, ends);
    }
}

#[test]
fn does_not_care_about_losses() {
    let config = BbrStartConfig::v1();
    let mut start = BbrStart::new(&config, 10, 1448);
    let mut window = Window::new(10);
    start.on_signal(Time::ZERO, Signal::Loss, &mut window);
    for round in 0..5_u64 {
        let ack = Ack { lost: 50, ..delivery(round + 1, 10 << round, round, 500) };
        start.on_ack(&ack, &mut window);
    }
    assert_eq!(start.phase(), BbrPhase::Startup);
}

#[test]
fn the_pacing_rate_of_start_up_never_falls() {
    let mut start = BbrStart::new(&BbrStartConfig::default(), 10, 1448);
    let mut window = Window::new(10);
    let first = Next { srtt: Span::from_millis(1), ..next(0) };
    assert_eq!(start.departure(Time::ZERO, &first, &window), Some(Departure::Now));
    let before = start.pacing_rate.unwrap();
    start.on_ack(&delivery(10, 10, 0, 10), &mut window);
    assert_eq!(start.pacing_rate, Some(before), "10 packets in 10 ms are slower than 10 in 1 ms");
    start.on_sent(&sent(Time::ZERO, 0));
    let gap = before.transmission_time(Bytes::new(1448));
    assert_eq!(start.departure(Time::ZERO, &next(1), &window), Some(Departure::At(Time::ZERO + gap)));
}

#[test]
fn constants_out_of_range_are_refused_and_harmless() {
    for config in [BbrStartConfig::default(), BbrStartConfig::v1(), BbrStartConfig::v3()] {
        assert_eq!(config.validate(), Ok(()));
    }
    let config = BbrStartConfig {
        pacing_gain: f64::NAN,
        cwnd_gain: -1.0,
        drain_gain: 7.0,
        plateau_growth: f64::INFINITY,
        margin: 5.0,
        loss_share: -2.0,
        ..BbrStartConfig::default()
    };
    assert!(config.validate().is_err());
    let mut start = BbrStart::new(&config, 0, 0);
    start.departure(Time::ZERO, &next(0), &Window::new(1));
    start.on_ack(&delivery(u64::MAX, u32::MAX, 0, 0), &mut Window::new(u32::MAX));
}

#[test]
fn what_is_no_number_is_replaced_by_the_least_of_its_range() {
    let nan = f64::NAN;
    let config = BbrStartConfig { pacing_gain: nan, cwnd_gain: nan, drain_gain: nan, ..BbrStartConfig::default() };
    assert!(config.validate().is_err());
    let used = config.in_range();
    assert_eq!((used.pacing_gain, used.cwnd_gain, millionths(used.drain_gain)), (1.0, 1.0, 1));
    assert_eq!(used.validate(), Ok(()));
    let start = BbrStart::new(&config, 10, 1448);
    assert!(start.initial_rate(Span::from_millis(50)) > Rate::ZERO, "it would never send again");
}

#[test]
fn a_margin_that_leaves_no_millionth_is_refused_and_moved_to_one_that_does() {
    let config = |margin| BbrStartConfig { margin, initial_margin: true, ..BbrStartConfig::default() };
    let almost_all = 1.0 - 1e-9;
    assert_eq!(config(almost_all).validate().map_err(|error| error.field), Err("margin"));
    assert_eq!(config(0.999).validate(), Ok(()));
    for margin in [almost_all, 1.0, f64::INFINITY] {
        let start = BbrStart::new(&config(margin), 10, 1448);
        assert!(start.initial_rate(Span::from_millis(1)) > Rate::ZERO, "{margin}");
    }
}

#[test]
fn constants_in_range_stay_as_they_are() {
    for config in [
        BbrStartConfig::v3(),
        BbrStartConfig { margin: 0.995, drain_gain: 0.999, ..BbrStartConfig::default() },
        BbrStartConfig { drain_gain: 0.001, ..BbrStartConfig::default() },
    ] {
        assert_eq!((config.validate(), config.in_range()), (Ok(()), config));
    }
}
