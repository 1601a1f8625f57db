//! Rounds with losses, and those in which they are repaired.

use super::*;
use flowstart_units::Bytes;

/// Seen at 426 Mbit/s with merged ACKs: 1067 packets were delivered in a round of which 1623 were
/// lost, the last sample was 1.3 Mbit/s, and so was the rate, for 15 s.
#[test]
fn losses_bring_the_rate_down_to_what_a_round_delivered_not_to_a_sample_of_it() {
    let mut control = control(Span::ZERO);
    control.congested = 100;
    control.counted = Rate::from_mbps(60);
    assert_eq!(control.next_rate(RATE, Rate::from_mbps(1), 0.0), Rate::from_mbps(60));
    assert_eq!(control.next_rate(RATE, Rate::from_mbps(70), 0.0), Rate::from_mbps(70));
    control.counted = Rate::from_mbps(200);
    assert_eq!(control.next_rate(RATE, Rate::from_mbps(1), 0.0), RATE);
}

#[test]
fn what_a_round_delivered_is_counted_from_its_beginning() {
    let mut control = control(Span::ZERO);
    let rate = |prior, delivered, ack_now| {
        let sample = DeliveryRate { delivered: 1, interval: ms(10), prior_delivered: prior, app_limited: false };
        Ack { now: ack_now, delivered, rate: Some(sample), ..ack(100) }
    };
    let at = |n| Time::ZERO + ms(n);
    control.on_ack(&rate(0, 100, at(50)), &Window::new(100));
    control.on_ack(&rate(50, 200, at(75)), &Window::new(100));
    assert_eq!(control.arrived, 100);
    control.on_ack(&rate(100, 300, at(100)), &Window::new(100));
    assert_eq!((control.arrived, control.counted), (0, Rate::of(Bytes::new(200 * 1448), ms(50))));
}

/// What is sent again although it had arrived is never delivered: with half of it the rate stayed
/// at its least.
#[test]
fn while_losses_are_repaired_and_there_is_no_queue_the_rate_grows_whatever_is_delivered() {
    let grown = |repairs, queue| {
        let mut control = control(queue);
        (control.repairs, control.known) = (repairs, Rate::from_mbps(400));
        control.next_rate(RATE, Rate::from_mbps(50), 0.0)
    };
    assert_eq!(grown(false, Span::ZERO), Rate::from_mbps(100));
    assert_eq!(grown(true, Span::ZERO), Rate::from_mbps(125));
    assert!(grown(true, ms(5)) < Rate::from_mbps(50));
    let mut control = control(Span::ZERO);
    for repair in [Repair::Losses, Repair::Nothing, Repair::Timeout] {
        control.grow(&Ack { repair, ..ack(1) }, 1, &mut Window::new(10));
        assert_eq!(control.repairs, repair != Repair::Nothing);
    }
}
