//! Sender and receiver, rule by rule of RFC 4782 section 4.

use flowstart_quick_start::receiver::Receiver;
use flowstart_quick_start::sender::{
    AckSeen, Allowance, Change, Denial, Departing, OffReason, PacingConfig, Reaction, Refused, RequestPhase, Sender,
    SenderConfig, Trigger,
};
use flowstart_quick_start::wire::{IpOption, TcpResponse};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_units::{Bytes, Span, Time};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const RTT: Span = Span::from_millis(100);
const MSS: u64 = 1460;

fn code(n: u8) -> RateCode {
    RateCode::new(n).unwrap()
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn random() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(1)
}

fn opening() -> Departing {
    Departing { elicits_ack: true, retransmission: false, end: 1, ip_ttl: 64 }
}

fn ack(una: u64, response: Option<TcpResponse>) -> AckSeen {
    AckSeen { una, delivered_end: una, delivered: 1, response, rtt: RTT, cwnd: 10, in_flight: 0, next: 1 }
}

/// A sender that has asked for code 7 on a SYN, and what the receiver behind a path of two routers
/// that lower it to `granted` answers.
fn asked(config: SenderConfig, granted: u8) -> (Sender, TcpResponse, Nonce) {
    let mut sender = Sender::new(config);
    sender.request(at(0), Trigger::Start, code(7), None).unwrap();
    let Some(IpOption::Request { rate, ttl, nonce }) = sender.attach(at(0), &opening(), &mut random()) else {
        panic!()
    };
    let passed = nonce.lowered(rate, code(granted), 0x5555_5555);
    let mut receiver = Receiver::new(None);
    receiver
        .on_packet(62, &IpOption::Request { rate: code(granted).min(rate), ttl: ttl.wrapping_sub(2), nonce: passed });
    (sender, receiver.response().unwrap_or(TcpResponse { rate: code(0), ttl_difference: 0, nonce }), nonce)
}

fn granted(config: SenderConfig) -> Sender {
    let (mut sender, response, _) = asked(config, 7);
    assert_eq!(sender.on_ack(at(100), &ack(1, Some(response))), Change::Granted(code(7), 42));
    sender
}

/// Sends full packets as the phase allows until it is closed or `most` are out; when each left.
fn pace(sender: &mut Sender, mut now: Time, most: u32) -> Vec<Time> {
    let mut left = Vec::new();
    while (left.len() as u32) < most {
        match sender.allowance(now, left.len() as u32, 1 + MSS * left.len() as u64) {
            Some(Allowance::Now) => {
                sender.on_sent(now, 1500);
                left.push(now);
            }
            Some(Allowance::At(time)) => now = time,
            Some(Allowance::Closed) | None => break,
        }
    }
    left
}

#[test]
fn only_packets_that_are_acknowledged_and_new_carry_a_request() {
    let mut sender = Sender::new(SenderConfig::default());
    assert_eq!(sender.attach(at(0), &opening(), &mut random()), None, "nothing is wanted");
    sender.request(at(0), Trigger::Middle, code(7), Some(RTT)).unwrap();
    assert_eq!(sender.attach(at(0), &Departing { elicits_ack: false, ..opening() }, &mut random()), None);
    assert_eq!(sender.attach(at(0), &Departing { retransmission: true, ..opening() }, &mut random()), None);
    assert!(matches!(sender.attach(at(0), &opening(), &mut random()), Some(IpOption::Request { .. })));
    assert_eq!(sender.attach(at(0), &opening(), &mut random()), None, "one packet only");
    assert_eq!(sender.phase(), RequestPhase::Requested);
}

#[test]
fn requests_are_an_rtt_apart_and_one_at_a_time() {
    let mut sender = Sender::new(SenderConfig::default());
    assert_eq!(sender.request(at(0), Trigger::Start, code(0), None), Err(Refused::Nothing));
    sender.request(at(0), Trigger::Start, code(7), None).unwrap();
    sender.attach(at(0), &opening(), &mut random());
    assert_eq!(sender.request(at(10), Trigger::Middle, code(7), None), Err(Refused::Busy));
    sender.on_ack(at(99), &ack(1, None));
    assert_eq!(sender.request(at(99), Trigger::Middle, code(7), Some(RTT)), Err(Refused::TooSoon));
    let idle = |ms| Trigger::AfterIdle { idle: Span::from_millis(ms), rto: Span::from_millis(300) };
    assert_eq!(sender.request(at(500), idle(299), code(7), Some(RTT)), Err(Refused::NotIdle));
    assert_eq!(sender.request(at(500), idle(300), code(7), Some(RTT)), Ok(()));
}

#[test]
fn a_wish_is_what_the_next_rtt_can_use_rounded_up_and_after_congestion_what_the_window_was() {
    let config = SenderConfig::default();
    assert_eq!(config.wish(Bytes::new(64_000), Some(RTT), None), code(7), "exactly 5.12 Mbit/s");
    assert_eq!(config.wish(Bytes::new(64_001), Some(RTT), None), code(8));
    assert_eq!(config.wish(Bytes::new(64_000), None, None), code(7), "100 ms if the RTT is unknown");
    assert_eq!(config.wish(Bytes::new(640_000), Some(RTT), Some(42)), code(6), "42 packets per RTT are 5.04 Mbit/s");
    assert_eq!(config.wish(Bytes::ZERO, Some(RTT), None), code(0));
}

#[test]
fn an_answer_is_checked_in_the_order_of_the_rfc_and_always_reported() {
    let wrong = |change: fn(&mut TcpResponse)| {
        let (mut sender, mut response, nonce) = asked(SenderConfig::default(), 6);
        change(&mut response);
        let result = sender.on_ack(at(100), &ack(1, Some(response)));
        let report = sender.attach(at(100), &Departing { elicits_ack: false, ..opening() }, &mut random());
        let Some(IpOption::Report { rate, nonce: reported }) = report else { panic!("a report is due") };
        assert_eq!(reported, nonce, "the nonce as it was sent");
        (result, rate.get(), sender.phase())
    };
    assert_eq!(wrong(|_| {}), (Change::Granted(code(6), 21), 6, RequestPhase::Granted));
    assert_eq!(wrong(|r| r.rate = code(0)), (Change::Denied(Denial::Rate), 0, RequestPhase::Idle));
    // More than was asked for, and everything else wrong too: the rate is checked first.
    let everything =
        |r: &mut TcpResponse| (r.rate, r.ttl_difference, r.nonce) = (code(8), r.ttl_difference ^ 1, Nonce::new(0));
    assert_eq!(wrong(everything), (Change::Denied(Denial::Rate), 0, RequestPhase::Idle));
    let hop_and_nonce = |r: &mut TcpResponse| (r.rate, r.ttl_difference) = (code(7), r.ttl_difference.wrapping_sub(1));
    assert_eq!(wrong(hop_and_nonce), (Change::Denied(Denial::TtlDifference), 0, RequestPhase::Idle));
    let (mut sender, response, nonce) = asked(SenderConfig::default(), 6);
    let flipped = Nonce::new(nonce.get() ^ 0x800);
    assert_eq!(
        sender.on_ack(at(100), &ack(1, Some(TcpResponse { nonce: flipped, ..response }))),
        Change::Denied(Denial::Nonce)
    );
    let (mut sender, _, _) = asked(SenderConfig::default(), 6);
    assert_eq!(sender.on_ack(at(100), &ack(1, None)), Change::Denied(Denial::NoResponse));
}

#[test]
fn after_a_wrong_nonce_the_connection_never_asks_again() {
    let (mut sender, response, _) = asked(SenderConfig::default(), 7);
    let nonce = Nonce::new(response.nonce.get() ^ 1);
    sender.on_ack(at(100), &ack(1, Some(TcpResponse { nonce, ..response })));
    for trigger in [Trigger::Start, Trigger::Middle] {
        assert_eq!(sender.request(at(100_000), trigger, code(7), None), Err(Refused::Off(OffReason::Nonce)));
    }
    assert!(sender.attach(at(100_000), &opening(), &mut random()).is_some(), "the report");
    assert!(sender.attach(at(100_000), &opening(), &mut random()).is_none());
}

#[test]
fn an_ack_that_does_not_cover_the_request_changes_nothing() {
    let mut sender = Sender::new(SenderConfig::default());
    sender.request(at(0), Trigger::Middle, code(7), Some(RTT)).unwrap();
    sender.attach(at(0), &Departing { end: 10_000, ..opening() }, &mut random());
    assert_eq!(sender.on_ack(at(50), &ack(9_999, None)), Change::None);
    assert_eq!(sender.on_ack(at(51), &ack(10_000, None)), Change::Denied(Denial::NoResponse));
}

#[test]
fn a_grant_that_does_not_exceed_the_window_is_not_used() {
    let (mut sender, response, _) = asked(SenderConfig::default(), 4);
    assert_eq!(
        sender.on_ack(at(100), &ack(1, Some(response))),
        Change::TooSmall(code(4)),
        "5 packets, the window is 10"
    );
    assert_eq!(sender.allowance(at(100), 0, 1), None);
    let config = SenderConfig { least_window_percent: 500, ..SenderConfig::default() };
    let (mut sender, response, _) = asked(config, 7);
    assert_eq!(
        sender.on_ack(at(100), &ack(1, Some(response))),
        Change::TooSmall(code(7)),
        "42 are not more than 5 * 10"
    );
}

#[test]
fn a_lost_request_goes_out_again_plain_and_no_other_option_follows() {
    let (mut sender, _, _) = asked(SenderConfig::default(), 7);
    assert_eq!(sender.opening_timeout(), Some(Span::from_secs(3)));
    assert_eq!(sender.on_timeout(0), None);
    assert_eq!(sender.attach(at(3000), &Departing { retransmission: true, ..opening() }, &mut random()), None);
    assert_eq!((sender.phase(), sender.opening_timeout()), (RequestPhase::Off(OffReason::Path), None));
    assert_eq!(sender.on_ack(at(3100), &ack(1, None)), Change::None);
    assert_eq!(sender.take_report(), None, "what lost the request would lose the report too");
    assert_eq!(sender.request(at(9000), Trigger::Middle, code(7), Some(RTT)), Err(Refused::Off(OffReason::Path)));
}

#[test]
fn a_grant_expires_after_an_rtt_without_data() {
    let mut sender = granted(SenderConfig::default());
    assert_eq!(sender.allowance(at(200), 0, 1), None);
    assert_eq!(sender.phase(), RequestPhase::Idle);
    let mut sender = granted(SenderConfig::default());
    assert_eq!(sender.allowance(at(199), 0, 1), Some(Allowance::Now));
    assert_eq!(sender.phase(), RequestPhase::Pacing);
}

#[test]
fn packets_leave_at_the_granted_rate_until_the_window_is_used() {
    let mut sender = granted(SenderConfig::default());
    let left = pace(&mut sender, at(100), 100);
    assert_eq!(left.len(), 42);
    let gap = Span::from_nanos(2_343_750); // 12,000 bits at 5.12 Mbit/s
    assert!(left.iter().enumerate().all(|(i, time)| *time == at(100) + gap * i as u64));
    let mut sender = granted(SenderConfig { pacing: PacingConfig::PAPER, ..SenderConfig::default() });
    let left = pace(&mut sender, at(100), 100);
    assert_eq!(left.len(), 42);
    assert!(left.chunks(3).enumerate().all(|(i, three)| three == [at(100 + 100 * i as u64 / 14); 3]));
}

#[test]
fn the_phase_ends_with_the_first_ack_of_its_packets_and_the_window_is_what_was_used() {
    let mut sender = granted(SenderConfig::default());
    assert_eq!(pace(&mut sender, at(100), 30).len(), 30);
    let next = 1 + 30 * MSS;
    let old = AckSeen { in_flight: 30, next, ..ack(1, None) };
    assert_eq!(sender.on_ack(at(190), &old), Change::None, "an ACK of older data");
    let first = AckSeen { una: 1 + MSS, delivered_end: 1 + MSS, ..old };
    assert_eq!(sender.on_ack(at(200), &first), Change::Ended { cwnd: 30, ssthresh: None });
    assert_eq!(sender.request(at(250), Trigger::Middle, code(7), Some(RTT)), Err(Refused::Busy));
    assert_eq!(sender.on_ack(at(290), &AckSeen { una: next - 1, ..first }), Change::None);
    assert_eq!(sender.on_ack(at(300), &AckSeen { una: next, ..first }), Change::Validated);
    assert_eq!(sender.request(at(300), Trigger::Middle, code(7), Some(RTT)), Ok(()));
}

#[test]
fn the_window_after_the_phase_is_never_below_the_window_without_quick_start_nor_above_the_grant() {
    let ended = |sent: u32, in_flight: u32| {
        let mut sender = granted(SenderConfig { adapt_threshold: true, ..SenderConfig::default() });
        pace(&mut sender, at(100), sent);
        let first = AckSeen { in_flight, next: 1 + MSS * u64::from(sent), ..ack(1 + MSS, None) };
        sender.on_ack(at(200), &first)
    };
    assert_eq!(ended(3, 3), Change::Ended { cwnd: 10, ssthresh: Some(10) });
    assert_eq!(ended(42, 99), Change::Ended { cwnd: 42, ssthresh: Some(42) });
}

#[test]
fn a_loss_in_the_first_phase_leads_back_to_the_initial_window_and_to_no_more_requests() {
    let mut sender = granted(SenderConfig::default());
    pace(&mut sender, at(100), 42);
    let next = 1 + 42 * MSS;
    for n in 1..=20 {
        sender.on_ack(at(200 + n), &AckSeen { in_flight: 42, next, ..ack(1 + n * MSS, None) });
    }
    assert_eq!(sender.on_congestion(next), None, "a packet sent after the phase");
    assert_eq!(sender.on_congestion(next - MSS), Some(Reaction { cwnd: 10, ssthresh: 10 }), "half of 20 delivered");
    assert_eq!(sender.on_congestion(next - MSS), None, "once");
    assert_eq!(sender.request(at(9000), Trigger::Middle, code(7), None), Err(Refused::Off(OffReason::Congestion)));
}

#[test]
fn a_loss_in_a_later_phase_leads_to_the_window_without_quick_start_or_half_of_the_phase() {
    let later = |cwnd: u32| {
        let mut sender = Sender::new(SenderConfig::default());
        sender.request(at(0), Trigger::Middle, code(7), Some(RTT)).unwrap();
        let Some(IpOption::Request { rate, ttl, nonce }) = sender.attach(at(0), &opening(), &mut random()) else {
            panic!()
        };
        let response = TcpResponse { rate, ttl_difference: 64_u8.wrapping_sub(ttl), nonce };
        sender.on_ack(at(100), &AckSeen { cwnd, ..ack(1, Some(response)) });
        pace(&mut sender, at(100), 42);
        sender.on_timeout(1)
    };
    assert_eq!(later(10), Some(Reaction { cwnd: 10, ssthresh: 10 }));
    assert_eq!(later(30), Some(Reaction { cwnd: 21, ssthresh: 21 }));
}

#[test]
fn a_denied_request_leaves_no_trace_but_the_report() {
    let (mut sender, _, _) = asked(SenderConfig::default(), 0);
    assert_eq!(sender.on_ack(at(100), &ack(1, None)), Change::Denied(Denial::NoResponse));
    assert_eq!(sender.allowance(at(100), 0, 1), None);
    assert_eq!(sender.on_congestion(1), None);
    assert_eq!(sender.on_timeout(1), None);
    assert!(matches!(
        sender.attach(at(101), &opening(), &mut random()),
        Some(IpOption::Report { rate: RateCode::ZERO, .. })
    ));
    assert_eq!(sender.attach(at(102), &opening(), &mut random()), None);
}

#[test]
fn an_rtt_sample_twice_too_long_is_repaired_by_what_was_used() {
    // The phase is paced for 100 ms, but the first ACK comes after 50 ms: only half has left by
    // then.
    let mut sender = granted(SenderConfig::default());
    let left = pace(&mut sender, at(100), 42);
    let out = left.iter().filter(|time| **time < at(150)).count() as u32;
    let first = AckSeen { in_flight: out, next: 1 + MSS * u64::from(out), ..ack(1 + MSS, None) };
    assert_eq!(sender.on_ack(at(150), &first), Change::Ended { cwnd: 22, ssthresh: None });
}

/// How often in 20,000 connections a receiver that claims code `claimed` is believed, if the sender
/// asks for one of `asked` and a router allows code 6.
fn believed(asked: &[u8], claimed: u8) -> f64 {
    let random = &mut random();
    let tries = 20_000;
    let mut successes = 0;
    for _ in 0..tries {
        let wish = code(asked[random.next_u32() as usize % asked.len()]);
        let mut sender = Sender::new(SenderConfig::default());
        sender.request(at(0), Trigger::Start, wish, None).unwrap();
        let Some(IpOption::Request { rate, ttl, nonce }) = sender.attach(at(0), &opening(), random) else { panic!() };
        let nonce = nonce.lowered(rate, code(6), random.next_u32());
        let lie = TcpResponse { rate: code(claimed), ttl_difference: 64_u8.wrapping_sub(ttl), nonce };
        successes += u32::from(matches!(sender.on_ack(at(100), &ack(1, Some(lie))), Change::Granted(..)));
    }
    f64::from(successes) / f64::from(tries)
}

#[test]
fn a_sender_that_always_asks_for_the_same_helps_the_receiver_to_guess_and_random_wishes_help_only_a_little() {
    // A receiver that knows the wish claims all of it; one that does not may claim more than was
    // asked for, which is refused. The tolerances are six standard deviations.
    let near = |measured: f64, expected: f64, tolerance: f64| {
        assert!((measured - expected).abs() < tolerance, "{measured} instead of {expected}");
    };
    near(believed(&[8], 8), 1.0 / 16.0, 0.0103);
    near(believed(&[7, 8, 9], 8), 2.0 / 3.0 / 16.0, 0.0085);
    near(believed(&[8], 7), 1.0 / 4.0, 0.0184);
    near(believed(&[7, 8, 9], 7), 1.0 / 4.0, 0.0184);
    assert_eq!(believed(&[8], 9), 0.0, "more than was asked for");
    assert_eq!(believed(&[7, 8, 9], 6), 1.0, "the truth");
}

#[test]
fn every_request_has_a_ttl_of_its_own_so_that_no_receiver_can_try_one_difference_after_the_other() {
    let random = &mut random();
    let mut seen = [0_u32; 256];
    for _ in 0..25_600 {
        let mut sender = Sender::new(SenderConfig::default());
        sender.request(at(0), Trigger::Start, code(7), None).unwrap();
        let Some(IpOption::Request { ttl, .. }) = sender.attach(at(0), &opening(), random) else { panic!() };
        seen[usize::from(ttl)] += 1;
    }
    // A hundred of each; six standard deviations.
    assert!(seen.iter().all(|count| (40..160).contains(count)), "{seen:?}");
    let mut tries = 0;
    let mut sender = Sender::new(SenderConfig::default());
    for second in 0..300_u64 {
        if sender.request(at(second * 1000), Trigger::Middle, code(7), Some(RTT)).is_err() {
            break;
        }
        let Some(IpOption::Request { rate, ttl, nonce }) = sender.attach(at(second * 1000), &opening(), random) else {
            sender.take_report();
            continue;
        };
        // One hop did not take part, and the receiver claims another difference each time.
        let ttl_difference = 64_u8.wrapping_sub(ttl).wrapping_add(1 + tries);
        let lie = TcpResponse { rate, ttl_difference, nonce };
        assert_eq!(sender.on_ack(at(second * 1000 + 100), &ack(1, Some(lie))), Change::Denied(Denial::TtlDifference));
        sender.take_report();
        tries += 1;
    }
    assert_eq!((tries, sender.phase()), (3, RequestPhase::Off(OffReason::Path)));
}

#[test]
fn a_loss_before_the_phase_gives_the_grant_up_and_other_requests_may_follow() {
    let mut sender = granted(SenderConfig::default());
    assert_eq!(sender.allowance(at(100), 3, 5000), Some(Allowance::Now));
    assert_eq!(sender.on_congestion(4999), None, "sent before the phase");
    assert_eq!((sender.give_up(), sender.phase()), (Some(10), RequestPhase::Idle));
    assert_eq!((sender.give_up(), sender.allowance(at(101), 3, 5000)), (None, None));
    assert_eq!(sender.request(at(200), Trigger::Middle, code(7), Some(RTT)), Ok(()));
}
