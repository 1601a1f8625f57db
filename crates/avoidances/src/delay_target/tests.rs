mod bursts;
mod limited;
mod others;
mod overwhelmed;
mod repairs;
mod short_paths;
mod trials;

use super::*;
use crate::AvoidanceConstants as _;
use flowstart_control::DeliveryRate;
use flowstart_control::testing::ack;

const RATE: Rate = Rate::from_mbps(100);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A control at 100 Mbit/s over a path of 50 ms with this much queue.
fn control(queue: Span) -> DelayTarget {
    let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
    control.smallest.reset(ms(50));
    control.rtt = ms(50) + queue;
    control.path.srtt = control.rtt;
    control.delivered = 400;
    control
}

fn factor(control: &mut DelayTarget) -> f64 {
    control.next_rate(RATE, RATE, 0.0).as_bps() as f64 / RATE.as_bps() as f64
}

#[test]
fn the_rate_follows_the_distance_from_the_target() {
    assert!((factor(&mut control(Span::from_micros(500))) - 1.0).abs() < 1e-6, "at the target");
    assert!((factor(&mut control(Span::from_micros(10_500))) - (1.0 - 0.5 * 10.0 / 60.5)).abs() < 1e-6);
    assert!((factor(&mut control(Span::ZERO)) - (1.0 + 0.5 * 0.5 / 50.0)).abs() < 1e-6);
}

#[test]
fn packets_that_waited_for_a_turn_of_others_are_no_queue_while_one_of_four_did_not() {
    let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
    let mut take = |rtt| {
        control.take_sample(Time::ZERO + ms(1), ms(rtt));
        control.queueing()
    };
    assert_eq!([50, 53, 53, 53].map(&mut take), [Span::ZERO; 4]);
    assert_eq!([53, 52, 53].map(&mut take), [ms(3), ms(2), ms(2)], "the one of 50 ms was five packets ago");
}

#[test]
fn what_was_sent_too_much_is_foreseen() {
    let mut control = control(Span::from_micros(500));
    let next = control.next_rate(RATE, RATE, 0.004);
    assert!((next.as_bps() as f64 / RATE.as_bps() as f64 - (1.0 - 0.5 * 4.0 / 50.5)).abs() < 1e-6);
}

#[test]
fn growth_doubles_after_eight_quiet_rounds_up_to_a_quarter() {
    let mut control = control(Span::ZERO);
    let growth: Vec<f64> = (0..15).map(|_| (factor(&mut control) - 1.0) * 100.0).collect();
    assert!(growth[..8].iter().all(|g| (g - 0.5).abs() < 1e-4), "{growth:?}");
    for (growth, expected) in growth[8..].iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 25.0, 25.0]) {
        assert!((growth - expected).abs() < 1e-4);
    }
}

#[test]
fn more_than_two_percent_of_losses_bring_the_rate_down_to_what_is_delivered() {
    for (congested, delivery) in [(9, 80), (8, 100)] {
        let mut control = control(Span::ZERO);
        control.congested = congested;
        let next = control.next_rate(RATE, Rate::from_mbps(80), 0.0);
        assert_eq!(next.as_bps() >= RATE.as_bps(), delivery == 100, "{congested} of {}", 400 + congested);
    }
}

/// Behind a token bucket that was spent the link's rate was known for one round trip, until most of
/// the next was lost; then the rate grew fast beyond it again.
#[test]
fn what_is_delivered_of_a_round_most_of_which_was_lost_is_not_what_the_path_carries() {
    // Of 400 and those.
    for (congested, queue, known) in [(1000, ms(5), 80), (40, ms(5), 10), (1000, Span::ZERO, 10)] {
        let mut control = control(queue);
        control.next_rate(RATE, Rate::from_mbps(80), 0.0);
        control.known = Rate::from_mbps(80);
        control.congested = congested;
        control.next_rate(RATE, Rate::from_mbps(10), 0.0);
        assert_eq!(control.known, Rate::from_mbps(known), "{congested} lost, {queue} of queue before");
    }
}

#[test]
fn the_rate_stays_between_its_floor_and_twice_what_is_delivered() {
    let mut low = control(ms(100_000));
    let rates: Vec<Rate> =
        (0..60).scan(RATE, |rate, _| Some(std::mem::replace(rate, low.next_rate(*rate, *rate, 0.0)))).collect();
    assert_eq!(rates.into_iter().min(), Some(low.path.least_rate(2)));
    let mut high = control(Span::ZERO);
    assert_eq!(high.next_rate(RATE, Rate::from_mbps(10), 0.0), Rate::from_mbps(20));
}

#[test]
fn a_measured_rate_is_taken_over_but_for_five_percent_and_the_round_before_it_is_not_judged() {
    let mut control = control(Span::ZERO);
    control.path.delivery = Some(Rate::from_mbps(5));
    control.on_takeover(Time::ZERO, &Window::new(10), Some(RATE));
    assert_eq!(control.rate(), Some(Rate::from_mbps(95)));
    control.on_round(Time::ZERO);
    assert_eq!(control.rate(), Some(Rate::from_mbps(95)));
}

/// With 0 the flow stood still for ever.
#[test]
fn however_little_of_a_measured_rate_is_taken_over_the_flow_goes_on() {
    for known_share in [0.0, 1e-9, 1e-300] {
        let mut control = DelayTarget::new(&DelayTargetConfig { known_share, ..DelayTargetConfig::default() }, 1448);
        control.path.srtt = ms(50);
        control.measured = Some(RATE);
        control.take_over(Time::ZERO, RATE);
        assert_eq!(control.rate, Some(control.path.least_rate(2)), "{known_share}");
    }
}

#[test]
fn the_target_is_no_less_than_rtts_differ_within_a_round() {
    let mut control = control(Span::from_millis(2));
    let change = |control: &mut DelayTarget| factor(control) - 1.0;
    assert!(change(&mut control) < -0.01, "2 ms of queue are too many");
    // Eight rounds of 3 ms of jitter.
    control.ranges = [Span::from_millis(3); MOST_ROUNDS];
    assert!(change(&mut control) > 0.0, "they cannot be told from jitter");
    // Nobody takes a long queue for noise.
    control.ranges = [ms(500); MOST_ROUNDS];
    control.rtt = ms(60);
    assert!(change(&mut control).abs() < 1e-6, "at most 5 ms count");
}

#[test]
fn a_round_with_the_least_delay_is_without_queue_but_no_further_above_the_smallest_than_rtts_differ() {
    let mut control = control(ms(4));
    control.calm.reset(ms(52));
    assert_eq!(control.queueing(), ms(4), "no RTT differed: the base is the smallest");
    control.ranges = [ms(1); MOST_ROUNDS];
    assert_eq!(control.queueing(), ms(3));
    control.ranges = [ms(3); MOST_ROUNDS];
    assert_eq!(control.queueing(), ms(2));
}

#[test]
fn the_smallest_rtt_is_forgotten_after_its_window_and_drained_for_in_between() {
    let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
    control.take_sample(Time::ZERO + ms(1), ms(20));
    control.drain = false;
    control.take_sample(Time::ZERO + ms(3000), ms(30));
    assert!(!control.drain);
    control.take_sample(Time::ZERO + ms(5002), ms(30));
    assert!(control.drain, "half of the window is over");
    assert_eq!(control.min_rtt(), ms(20));
    control.take_sample(Time::ZERO + ms(10_003), ms(30));
    assert_eq!(control.min_rtt(), ms(30));
}

#[test]
fn constants_out_of_range_are_refused_and_moved_to_the_nearest_in_range() {
    let default = DelayTargetConfig { target: ms(3), ..DelayTargetConfig::default() };
    assert_eq!(default.validate(), Ok(()));
    let mut number = 0;
    let mut moved = |change: fn(&mut DelayTargetConfig), right: fn(&mut DelayTargetConfig)| {
        let [mut given, mut nearest] = [default; 2];
        change(&mut given);
        right(&mut nearest);
        assert!(given.validate().is_err() && nearest.validate().is_ok(), "{number}");
        assert_eq!(DelayTarget::new(&given, 0).config, nearest, "{number}");
        number += 1;
    };
    moved(|config| config.buffer_share = 1.1, |config| config.buffer_share = 1.0);
    moved(|config| config.overflow = -0.1, |config| config.overflow = 0.0);
    moved(|config| config.overflow = f64::NAN, |config| config.overflow = 0.0);
    moved(|config| config.brake_rtts = -0.1, |config| config.brake_rtts = 0.0);
    moved(|config| config.brake_rtts = f64::INFINITY, |config| config.brake_rtts = f64::MAX);
    moved(|config| config.brake_excess = 0.9, |config| config.brake_excess = 1.0);
    moved(|config| config.brake_factor = 1.1, |config| config.brake_factor = 1.0);
    moved(|config| config.window_rtts = 0, |config| config.window_rtts = 1);
    moved(|config| config.window_rtts = 101, |config| config.window_rtts = 100);
    moved(|config| config.trial_patience = 0, |config| config.trial_patience = 1);
    moved(|config| config.delay_samples = 17, |config| config.delay_samples = 16);
    moved(|config| config.min_growth = 0.3, |config| (config.min_growth, config.max_growth) = (0.3, 0.3));
    // The end that is no part of the range is avoided.
    for gain in [0.0, -1.0, f64::NAN] {
        let DelayTarget { config, .. } = DelayTarget::new(&DelayTargetConfig { gain, ..default }, 0);
        assert!(config.gain > 0.0 && config.gain < 1e-300, "{gain}");
        assert_eq!(DelayTargetConfig { gain: default.gain, ..config }, default);
    }
}

#[test]
fn a_timeout_halves_the_rate_and_what_its_round_and_the_next_one_deliver_is_not_judged() {
    let mut control = control(Span::ZERO);
    (control.rate, control.before, control.known) = (Some(RATE), RATE, RATE);
    control.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
    assert_eq!(control.rate(), Some(RATE.mul_f64(0.5)));
    // A few packets in all of a silence, and many that it cost.
    let before = control.noise();
    (control.path.delivery, control.delivered, control.congested) = (Some(Rate::from_bps(10_000)), 3, 50);
    (control.round_least, control.round_most) = (ms(50), ms(1050));
    control.on_round(Time::ZERO + ms(1000));
    assert_eq!((control.rate(), control.known, control.noise()), (Some(RATE.mul_f64(0.5)), RATE, before));
    // A sample that reaches back to what was sent in the silence, and losses that were found late.
    assert_eq!(control.brake, Brake::Off);
    (control.path.delivery, control.delivered, control.congested) = (Some(Rate::from_bps(10_000)), 30, 50);
    control.on_round(Time::ZERO + ms(1050));
    assert_eq!((control.rate(), control.known, control.noise()), (Some(RATE.mul_f64(0.5)), RATE, before));
    // The next one is.
    assert_eq!(control.brake, Brake::Ready);
    (control.path.delivery, control.delivered) = (Some(RATE.mul_f64(0.5)), 100);
    control.on_round(Time::ZERO + ms(1100));
    assert!(control.rate() > Some(RATE.mul_f64(0.6)), "up to what is known: {:?}", control.rate());
    assert_eq!(control.brake, Brake::Ready);
}

#[test]
fn what_is_switched_off_is_off() {
    let mut control = control(ms(200));
    control.config.brake_rtts = 0.0;
    (control.rate, control.path.delivery, control.brake) = (Some(RATE), Some(RATE.mul_f64(0.1)), Brake::Ready);
    control.brake();
    assert_eq!(control.rate(), Some(RATE));
}

/// A control on a path of so many microseconds without a queue, after a round that was full.
fn full(rtt: u64) -> DelayTarget {
    let rtt = Span::from_micros(rtt);
    let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
    control.smallest.reset(rtt);
    (control.rtt, control.path.srtt) = (rtt, rtt);
    (control.delivered, control.full) = (400, true);
    control
}

/// In a silence or a pause a queue that was foreseen empties unseen.
#[test]
fn the_target_is_half_of_what_fits_into_a_buffer_that_overflowed() {
    let target_after = |lost: u64, longest: f64| {
        let mut control = control(Span::ZERO);
        (control.congested, control.longest) = (lost, longest);
        control.next_rate(RATE, RATE, 0.0);
        control.target_at(RATE)
    };
    // 400 packets were delivered.
    assert!((target_after(100, 0.0003) - 0.000_15).abs() < 1e-9);
    // No longer than ever, no shorter than half a packet, and not for losses that are few.
    assert!((target_after(100, 0.1) - 0.000_5).abs() < 1e-9);
    assert!((target_after(100, 0.0) - target_after(100, 0.000_001)).abs() < 1e-9 && target_after(100, 0.0) > 5e-5);
    assert!((target_after(40, 0.0003) - 0.000_5).abs() < 1e-9);
}

#[test]
fn what_fits_into_a_buffer_is_forgotten_with_the_smallest_rtt() {
    let mut control = control(Span::ZERO);
    (control.congested, control.longest) = (100, 0.0003);
    control.next_rate(RATE, RATE, 0.0);
    // The window is of 10 s; its halves turn.
    let shallow = |control: &DelayTarget| control.target_at(RATE) < 0.000_4;
    let seconds: Vec<bool> = (0..16)
        .map(|second| {
            control.note_delivery(Time::ZERO + Span::from_secs(second), RATE);
            shallow(&control)
        })
        .collect();
    assert!(seconds[..5].iter().all(|short| *short), "{seconds:?}");
    assert!(!seconds[11], "{seconds:?}");
}
