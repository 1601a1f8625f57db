//! Rounds in which the application, or a silence, was the limit.

use super::*;

#[test]
fn what_was_foreseen_before_a_silence_or_a_pause_is_not_missed_after_it() {
    let delivery = Rate::from_mbps(1000);
    let doubted = |meanwhile: fn(&mut DelayTarget)| {
        let mut control = full(600);
        control.rate = Some(delivery);
        [(); 3].map(|()| {
            let doubted = control.is_in_vain(delivery, 0.0004);
            meanwhile(&mut control);
            doubted
        })
    };
    assert_eq!(doubted(|_| {}), [false, false, true]);
    let silence = |control: &mut DelayTarget| {
        control.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
        control.on_round(Time::ZERO);
    };
    assert_eq!(doubted(silence), [false; 3]);
    let pause = |control: &mut DelayTarget| {
        let rate = DeliveryRate { delivered: 1, interval: ms(1), prior_delivered: 0, app_limited: true };
        control.on_ack(&Ack { rate: Some(rate), ..ack(1) }, &Window::new(10));
    };
    assert_eq!(doubted(pause), [false; 3]);
}

#[test]
fn rounds_that_the_application_limits_leave_no_samples_to_the_round_after_them() {
    let mut control = control(Span::ZERO);
    control.rate = Some(RATE);
    let rounds = |control: &mut DelayTarget, rtt: u64, delivered: u64, app_limited: bool| {
        let prior_delivered = control.round_end;
        let rate = DeliveryRate { delivered: 10, interval: ms(50), prior_delivered, app_limited };
        let ack = Ack { rtt: Some(ms(rtt)), delivered, rate: Some(rate), ..ack(1) };
        control.on_ack(&ack, &Window::new(10));
    };
    let noise = control.noise();
    for (delivered, rtt) in [(10, 50), (20, 90), (30, 50)] {
        rounds(&mut control, rtt, delivered, true);
    }
    rounds(&mut control, 50, 40, false);
    assert_eq!(control.noise(), noise, "a range of 40 ms of rounds of which nothing can be learnt");
}
