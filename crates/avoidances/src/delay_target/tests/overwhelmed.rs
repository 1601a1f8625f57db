//! Queues that cannot wait for the end of a round.

use super::*;

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
