use super::*;
use crate::AvoidanceConstants as _;
use flowstart_control::DeliveryRate;
use flowstart_control::testing::ack;

mod limited;
mod repairs;

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
fn a_queue_that_stays_for_twelve_rounds_is_somebody_elses_and_the_rate_before_it_is_remembered() {
    let mut control = control(ms(30));
    control.rate = Some(RATE);
    let mut rate = RATE;
    for round in 0..12 {
        assert!(!control.doubts_isolation(), "after {round}");
        rate = control.next_rate(rate, rate, 0.0);
    }
    assert!(control.doubts_isolation() && rate < RATE.mul_ratio(1, 2));
    control.rate = Some(rate);
    let packets = control.reduce(Time::ZERO, Signal::Loss, &Window::new(10));
    assert_eq!(packets, control.path.window(RATE, 1, 2));
}

/// The smallest RTT after rounds in which so many Mbit/s were delivered, at the RTT of the control
/// on a path of 50 ms.
fn after_rounds(control: &mut DelayTarget, rounds: &[u64]) -> Span {
    rounds.iter().for_each(|&mbps| control.watch_length(Rate::from_mbps(mbps), control.rtt));
    control.min_rtt()
}

/// Behind a change of route by 3 ms at 40 Mbit/s and 6 ms a flow stood at 7 Mbit/s for six seconds.
#[test]
fn a_path_that_became_longer_has_no_queue_for_that_and_carries_what_it_carried() {
    let mut longer = control(ms(2));
    assert_eq!(after_rounds(&mut longer, &[40, 36, 32, 27]), ms(52));
    assert_eq!((longer.known, longer.queueing()), (Rate::from_mbps(40), Span::ZERO));
    let mut losing = DelayTarget { congested: 1, ..control(ms(2)) };
    assert_eq!(after_rounds(&mut losing, &[40, 36, 32, 27]), ms(50), "a full buffer");
    let mut short = control(Span::from_micros(500));
    assert_eq!(after_rounds(&mut short, &[40, 36, 32, 27]), ms(50), "what is aimed at");
}

#[test]
fn a_long_delay_that_stays_is_the_paths_only_if_a_look_found_no_others() {
    let mut control = DelayTarget { foreign: 1, ..control(ms(20)) };
    assert_eq!(after_rounds(&mut control, &[40, 36, 32, 27]), ms(50));
    control.on_isolation_confirmed();
    assert_eq!(control.min_rtt(), ms(70));
}

#[test]
fn a_queue_that_goes_away_in_between_is_the_flows_own() {
    let mut control = control(ms(30));
    for round in 0..40 {
        control.rtt = ms(50) + if round % 10 == 9 { ms(2) } else { ms(30) };
        control.next_rate(RATE, RATE, 0.0);
        assert!(!control.doubts_isolation());
    }
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
fn at_the_floor_a_short_delay_is_taken_for_jitter_and_not_for_a_foreign_queue() {
    let mut control = control(ms(2));
    let least = control.path.least_rate(2);
    control.known = least;
    for _ in 0..3 {
        control.next_rate(least, least.mul_f64(0.1), 0.01);
    }
    assert!(!control.doubts_isolation());
}

#[test]
fn at_the_floor_the_rtt_is_taken_for_the_path() {
    let mut control = control(ms(100));
    let least = control.path.least_rate(2);
    control.next_rate(least, least, 0.0);
    assert_eq!(control.min_rtt(), ms(150));
    assert!(control.doubts_isolation());
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

/// Rounds on a path whose RTTs differ by 3 ms, at 5 Mbit/s, until the control gives up.
fn rounds_until_it_gives_up(measured: Option<Rate>, since: Span) -> Option<u32> {
    let mut control = control(Span::ZERO);
    control.on_takeover(Time::ZERO, &Window::new(10), measured);
    let slow = Rate::from_mbps(5);
    (control.rate, control.ranges) = (Some(slow), [Span::from_millis(3); MOST_ROUNDS]);
    (1..50).find(|_| {
        control.note_delivery(Time::ZERO + since, slow);
        control.watch_rate(Time::ZERO + since);
        control.gives_up()
    })
}

#[test]
fn a_noisy_path_on_which_nothing_is_delivered_at_the_rate_that_was_measured_is_given_up() {
    assert_eq!(rounds_until_it_gives_up(Some(RATE), ms(40)), Some(8));
    assert_eq!(rounds_until_it_gives_up(Some(RATE), Span::from_secs(10)), None, "that was long ago");
    assert_eq!(rounds_until_it_gives_up(None, ms(40)), None, "nothing was measured");
}

/// A control at 2 Mbit/s on a path that was seen to deliver this before, delivers all that is sent
/// and whose RTTs differ by so much: after how many rounds it gives up.
fn rounds_until_trials_end(before: Rate, differ: Span) -> Option<u32> {
    rounds_with_losses_until_trials_end(before, differ, u32::MAX)
}

/// The same where in one of so many rounds more is lost than at random, but in none of a trial.
fn rounds_with_losses_until_trials_end(before: Rate, differ: Span, every: u32) -> Option<u32> {
    let mut control = control(Span::ZERO);
    control.path.delivery = Some(before);
    // Another avoidance is in charge.
    control.on_round(Time::ZERO);
    let low = Rate::from_mbps(2);
    (control.rate, control.before) = (Some(low), low);
    (1..60).find(|round| {
        control.path.delivery = Some(control.before);
        control.ranges = [differ; MOST_ROUNDS];
        let lost = if round % every == every - 1 { 12 } else { 0 };
        (control.delivered, control.congested, control.starved) = (400, lost, 0);
        control.on_round(Time::ZERO + ms(50));
        // Noise brings every rate down again that is not a trial's.
        if control.rate.is_none_or(|rate| rate != low.mul_f64(2.0).min(before)) {
            control.rate = Some(low);
        }
        control.gives_up()
    })
}

#[test]
fn a_rate_below_what_was_delivered_before_is_given_up_if_more_is_delivered_whenever_it_is_tried() {
    assert_eq!(rounds_until_trials_end(Rate::from_mbps(40), ms(1)), Some(20));
    // Where it stands at two thirds of that, too.
    assert_eq!(rounds_until_trials_end(Rate::from_mbps(3), ms(1)), Some(21));
    assert_eq!(rounds_until_trials_end(Rate::from_bps(2_400_000), ms(1)), None, "it is not that low");
    assert_eq!(rounds_until_trials_end(Rate::from_mbps(40), Span::from_micros(900)), None, "a smooth path");
    // Behind a policer trials kept a flow from giving up, and CUBIC had a tenth of its share.
    assert_eq!(rounds_with_losses_until_trials_end(Rate::from_mbps(40), ms(1), 4), None);
    assert_eq!(rounds_with_losses_until_trials_end(Rate::from_mbps(40), ms(1), 40), Some(20));
}

#[test]
fn the_rate_of_a_trial_is_not_taken_for_one_that_is_not_low() {
    let (peak, low) = (Rate::from_mbps(3), Rate::from_mbps(2));
    let mut control = control(Span::ZERO);
    control.path.delivery = Some(peak);
    control.on_round(Time::ZERO);
    (control.rate, control.before) = (Some(low), low);
    let round = |control: &mut DelayTarget, differ| {
        (control.path.delivery, control.ranges) = (Some(control.before), [differ; MOST_ROUNDS]);
        control.on_round(Time::ZERO + ms(50));
    };
    while control.rate != Some(peak) {
        control.rate = Some(low);
        round(&mut control, ms(1));
    }
    // RTTs that differ by more than the time of five packets.
    control.starved = 5;
    round(&mut control, ms(30));
    assert_eq!(control.starved, 5);
    round(&mut control, ms(30));
    assert_eq!(control.starved, 6);
}

#[test]
fn a_round_with_a_timeout_halves_the_rate_and_what_it_delivered_is_not_judged() {
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
    // The next one is.
    assert_eq!(control.brake, Brake::Off);
    (control.path.delivery, control.delivered) = (Some(RATE.mul_f64(0.5)), 100);
    control.on_round(Time::ZERO + ms(1050));
    assert!(control.rate() > Some(RATE.mul_f64(0.6)), "up to what is known: {:?}", control.rate());
    assert_eq!(control.brake, Brake::Ready);
}

/// What counts as queue after rounds over a path of 50 ms that carries `carries` and delays every
/// packet by `waits`, some by `more`, first at 20 and then at 30 Mbit/s.
fn queue_after_rounds(carries: Rate, waits: Span, more: Span) -> Span {
    let mut control = control(waits);
    for (round, sent) in [20, 30].into_iter().enumerate() {
        control.rate = Some(Rate::from_mbps(30));
        control.take_sample(Time::ZERO + ms(40), ms(50) + waits + more);
        control.take_sample(Time::ZERO + ms(40), ms(50) + waits);
        (control.before, control.path.delivery) = (Rate::from_mbps(sent), Some(Rate::from_mbps(sent).min(carries)));
        control.on_round(Time::ZERO + ms(50) * (1 + round as u64));
    }
    control.queueing()
}

fn queue_after_growth(carries: Rate, waits: Span) -> Span {
    queue_after_rounds(carries, waits, Span::ZERO)
}

/// RTTs that differ by more than half of the target tell of a queue that comes or goes.
#[test]
fn where_rtts_of_a_round_differ_their_wait_is_not_that_of_bursts() {
    let waits = Span::from_micros(600);
    let queue = |more| queue_after_rounds(Rate::from_mbps(50), waits, Span::from_micros(more));
    assert_eq!(queue(250), Span::ZERO);
    // But for the noise that they tell of.
    assert!(queue(251) > Span::from_micros(500) && queue(251) < waits, "{:?}", queue(251));
}

#[test]
fn packets_of_a_burst_wait_for_each_other_and_are_no_queue_if_more_is_delivered_as_more_is_sent() {
    let waits = Span::from_micros(600);
    assert_eq!(queue_after_growth(Rate::from_mbps(50), waits), Span::ZERO);
    // Here it stands.
    assert_eq!(queue_after_growth(Rate::from_mbps(20), waits), waits);
    assert_eq!(queue_after_growth(Rate::from_mbps(29), waits), waits);
    // A burst is not that long.
    assert_eq!(queue_after_growth(Rate::from_mbps(50), Span::from_micros(1800)), Span::from_micros(800));
}

#[test]
fn bursts_of_two_packets_may_last_longer_on_a_slow_path() {
    let mut control = control(ms(3));
    control.in_bursts = ms(53);
    for (delivery, queue) in [(40, 2000), (5, 3000 - 2317), (2, 0)] {
        control.path.delivery = Some(Rate::from_mbps(delivery));
        assert!(control.queueing().as_micros().abs_diff(queue) <= 1, "{delivery} Mbit/s: {:?}", control.queueing());
    }
}

/// A control at 5 Mbit/s where 100 were measured, on a path that loses 3 % in every so many rounds,
/// with this much queue: after how many of them it gives up.
fn rounds_of_losses(every: u32, queue: Span) -> Option<u32> {
    let mut control = control(queue);
    control.on_takeover(Time::ZERO, &Window::new(10), Some(RATE));
    let slow = Rate::from_mbps(5);
    (control.rate, control.path.delivery) = (Some(slow), Some(slow));
    (1..50).find(|round| {
        control.congested = if round % every == 0 { 13 } else { 0 };
        control.watch_rate(Time::ZERO + ms(40));
        control.gives_up()
    })
}

#[test]
fn a_rate_that_losses_without_a_queue_keep_low_is_given_up() {
    assert_eq!(rounds_of_losses(1, Span::ZERO), Some(8));
    assert_eq!(rounds_of_losses(7, Span::ZERO), Some(14));
    assert_eq!(rounds_of_losses(8, Span::ZERO), None, "too seldom");
    assert_eq!(rounds_of_losses(1, ms(3)), None, "its own queue");
}

/// A control at 100 Mbit/s over a path of 50 ms that has begun to deliver this share of it.
fn overwhelmed_by(queue: Span, share: f64) -> DelayTarget {
    let mut control = control(queue);
    (control.rate, control.before, control.brake) = (Some(RATE), RATE, Brake::Ready);
    control.path.delivery = Some(RATE.mul_f64(share));
    control.brake();
    control
}

fn overwhelmed(queue: Span) -> DelayTarget {
    overwhelmed_by(queue, 0.1)
}

#[test]
fn a_rate_that_fades_to_a_third_can_wait_for_the_end_of_the_round() {
    assert_eq!(overwhelmed_by(ms(200), 0.26).rate(), Some(RATE));
    assert_eq!(overwhelmed_by(ms(200), 0.24).rate(), Some(RATE.mul_f64(0.12)));
}

#[test]
fn a_queue_of_more_than_two_round_trips_brings_the_rate_down_before_the_round_is_over() {
    assert_eq!(overwhelmed(ms(99)).rate(), Some(RATE));
    let mut control = overwhelmed(ms(101));
    assert_eq!(control.rate(), Some(RATE.mul_f64(0.05)));
    control.rate = Some(RATE);
    control.brake();
    assert_eq!(control.rate(), Some(RATE), "once per round");
    control.on_round(Time::ZERO + ms(150));
    control.rate = Some(RATE);
    control.brake();
    assert_eq!(control.rate(), Some(RATE.mul_f64(0.05)), "and again in the next one");
}

#[test]
fn a_queue_of_few_packets_or_no_longer_than_noise_on_a_short_path_can_wait() {
    // Six targets of half a packet at 10 Mbit/s, and 3 ms of noise in the RTT without a queue and
    // above it.
    for (noise, queue, is_long) in [(0, 3400, false), (0, 3600, true), (3, 9400, false), (3, 9600, true)] {
        let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
        control.smallest.reset(Span::from_micros(100));
        (control.rate, control.path.delivery) = (Some(RATE), Some(RATE.mul_f64(0.1)));
        (control.brake, control.ranges) = (Brake::Ready, [ms(noise); MOST_ROUNDS]);
        control.rtt = Span::from_micros(100 + queue);
        control.path.srtt = control.rtt;
        control.brake();
        assert_eq!(control.rate() != Some(RATE), is_long, "{noise} {queue}");
    }
}

#[test]
fn the_rate_does_not_come_down_below_two_packets_per_round_trip() {
    let control = overwhelmed_by(ms(400), 0.00094);
    assert_eq!(control.rate(), Some(control.path.least_rate(2)));
}

#[test]
fn what_is_switched_off_is_off() {
    let mut control = control(ms(200));
    control.config.brake_rtts = 0.0;
    (control.rate, control.path.delivery, control.brake) = (Some(RATE), Some(RATE.mul_f64(0.1)), Brake::Ready);
    control.brake();
    assert_eq!(control.rate(), Some(RATE));
}

/// An ACK of a path that has begun to deliver a tenth and has a queue of 150 ms.
fn late(delivered: u64, prior_delivered: u64, app_limited: bool) -> Ack {
    let rate = DeliveryRate { delivered: 432, interval: ms(500), prior_delivered, app_limited };
    Ack { now: Time::ZERO + ms(delivered), rtt: Some(ms(200)), srtt: ms(200), delivered, rate: Some(rate), ..ack(1) }
}

#[test]
fn it_comes_down_with_an_ack_in_mid_round_and_again_in_the_next_round() {
    for app_limited in [false, true] {
        let mut control = control(ms(150));
        (control.rate, control.brake, control.round_end) = (Some(RATE), Brake::Ready, 1000);
        let came_down = |control: &mut DelayTarget, delivered, prior| {
            control.rate = Some(RATE);
            control.on_ack(&late(delivered, prior, false), &Window::new(10));
            control.rate() < Some(RATE.mul_f64(0.06))
        };
        assert!(came_down(&mut control, 1001, 900));
        assert!(!came_down(&mut control, 1002, 901), "once per round");
        control.on_ack(&late(1003, 1000, app_limited), &Window::new(10));
        assert!(came_down(&mut control, 1004, 902), "{app_limited}");
    }
}

#[test]
fn what_was_delivered_before_it_took_over_and_around_a_silence_does_not_bring_it_down() {
    let comes_down = |control: &mut DelayTarget| {
        control.rate = Some(RATE);
        control.brake();
        control.rate() != Some(RATE)
    };
    let mut control = control(ms(200));
    control.path.delivery = Some(RATE.mul_f64(0.1));
    control.on_takeover(Time::ZERO, &Window::new(10), Some(RATE));
    assert!(!comes_down(&mut control));
    control.on_ack(&late(1, 0, true), &Window::new(10));
    assert!(!comes_down(&mut control), "that was not the round");
    control.on_round(Time::ZERO);
    assert!(comes_down(&mut control), "the round after that");
    control.on_round(Time::ZERO);
    control.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
    assert!(!comes_down(&mut control), "a silence");
    control.on_round(Time::ZERO + ms(1));
    assert!(!comes_down(&mut control), "what began in it");
    control.on_round(Time::ZERO + ms(2));
    assert!(comes_down(&mut control));
    // Whoever is dismissed and takes over again begins anew.
    control.on_dismissal();
    control.on_takeover(Time::ZERO + ms(3), &Window::new(10), None);
    assert!(comes_down(&mut control));
}

#[test]
fn after_a_round_in_which_the_rate_came_down_nothing_is_foreseen() {
    let mut control = overwhelmed(ms(150));
    control.on_round(Time::ZERO + ms(200));
    // Of what is delivered, less by half of the queue.
    let rate = control.rate().unwrap().as_bps() as f64;
    let expected = RATE.as_bps() as f64 * 0.1 * (1.0 - 0.5 * 149.5 / 200.0);
    assert!((rate / expected - 1.0).abs() < 0.01, "{rate} {expected}");
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

#[test]
fn where_a_round_trip_is_shorter_than_the_target_a_full_path_is_known_by_what_it_delivers() {
    let sent = Rate::from_mbps(10_000);
    let delivery = sent.mul_f64(0.8);
    let share = |rtt| full(rtt).next_rate(sent, delivery, 0.0).as_bps() as f64 / delivery.as_bps() as f64;
    // A quarter more than what is delivered, at most; a path of 600 us would show a queue.
    assert!((share(100) - 1.25).abs() < 1e-6, "{}", share(100));
    assert!(share(600) > 1.25, "{}", share(600));
    let mut not_full = full(100);
    not_full.full = false;
    assert!(not_full.next_rate(sent, delivery, 0.0) > sent);
}

/// The rate after so many round trips of so many microseconds without a queue, each of which
/// delivers a tenth less than is sent, over the one at their begin.
fn after_rounds_that_deliver_less(rtt: u64, rounds: u32) -> f64 {
    let mut control = full(rtt);
    let first = Rate::from_mbps(1000);
    (control.rate, control.before) = (Some(first), first);
    for round in 1..=rounds {
        control.path.delivery = Some(control.before.mul_f64(0.9));
        control.delivered = 400;
        control.on_round(Time::ZERO + Span::from_micros(rtt * u64::from(round)));
    }
    control.rate.unwrap().as_bps() as f64 / first.as_bps() as f64
}

/// A flow of few packets in bursts stood at a sixteenth of what its path carried.
#[test]
fn a_rate_does_not_shrink_for_queues_that_never_come() {
    let after = [1, 3, 4, 40].map(|rounds| after_rounds_that_deliver_less(50_000, rounds));
    assert!(after[1] < after[0] && after[0] < 1.0, "believed twice: {after:?}");
    assert!(after[2] > after[1] && after[3] > 1.0, "and not again: {after:?}");
}

#[test]
fn where_a_round_trip_is_shorter_than_the_target_what_is_foreseen_may_come_later() {
    let in_vain = |rtt| {
        let mut control = full(rtt);
        [(); 4].map(|()| control.is_in_vain(Rate::from_mbps(1000), 0.0004))
    };
    assert_eq!(in_vain(600), [false, false, true, true]);
    assert_eq!(in_vain(400), [false; 4]);
}

#[test]
fn what_did_not_come_is_forgotten_on_a_short_path_and_with_a_dismissal() {
    let delivery = Rate::from_mbps(1000);
    let again = |meanwhile: fn(&mut DelayTarget)| {
        let mut control = full(600);
        let before = [(); 3].map(|()| control.is_in_vain(delivery, 0.0004));
        meanwhile(&mut control);
        control.smallest.reset(Span::from_micros(600));
        (before[2], control.is_in_vain(delivery, 0.0004))
    };
    assert_eq!(again(|_| {}), (true, true));
    assert_eq!(again(DelayTarget::on_dismissal), (true, false));
    let short = |control: &mut DelayTarget| {
        control.smallest.reset(Span::from_micros(400));
        control.is_in_vain(Rate::from_mbps(1000), 0.0004);
    };
    assert_eq!(again(short), (true, false));
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
