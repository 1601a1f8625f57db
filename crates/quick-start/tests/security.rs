//! What cheating gains (RFC 4782 sections 3.4, 4.4 and 9): the rates of success of many attempts
//! against the probabilities.
//!
//! In this order: a receiver claims more than was granted; one makes up an answer to a denial; one
//! is caught; one claims more than was asked; one probes a path with a router that knows nothing;
//! options are sent in floods; requests are sent in vain; what is asked for is always the same.
//! Reports that are wrong or forged are in `routers.rs`.

mod common;

use common::{arrived, at, code, generous, plain, random, router, travel, with};
use flowstart_quick_start::path::Hop;
use flowstart_quick_start::router::{Admission, AdmissionConfig, FlowKey, Forwarding, RouterConfig};
use flowstart_quick_start::sender::{
    AckSeen, Change, Denial, Departing, OffReason, Refused, RequestPhase, Sender, SenderConfig, Trigger,
};
use flowstart_quick_start::wire::{IpOption, TcpResponse};
use flowstart_quick_start::{Nonce, RateCode, Receiver, Router, ttl_difference};
use flowstart_units::{Rate, Span};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

const MBPS: u64 = 1_000_000;

/// A sender that has sent a request for `asked` with TTL 64, and the packet.
fn request(asked: u8, random: &mut Pcg64Mcg) -> (Sender, Vec<u8>) {
    let mut sender = Sender::new(SenderConfig::default());
    sender.request(at(0), Trigger::Start, code(asked), None).unwrap();
    let departing = Departing { elicits_ack: true, retransmission: false, end: 1, ip_ttl: 64 };
    let option = sender.attach(at(0), &departing, random).unwrap();
    (sender, with(option, 1, 0))
}

fn answer(sender: &mut Sender, response: Option<TcpResponse>) -> Change {
    let rtt = Span::from_millis(500);
    sender.on_ack(
        at(500),
        &AckSeen { una: 1, delivered_end: 1, delivered: 1, response, rtt, cwnd: 1, in_flight: 0, next: 1 },
    )
}

/// How many of `attempts` succeed if the receiver makes of what arrived what `cheat` says.
fn successes(
    attempts: u32,
    asked: u8,
    capacity: Rate,
    cheat: impl Fn(u8, RateCode, u8, Nonce, &mut Pcg64Mcg) -> TcpResponse,
) -> u32 {
    let mut random = random(3);
    let mut won = 0;
    for _ in 0..attempts {
        let (mut sender, mut packet) = request(asked, &mut random);
        let mut path = [Hop::Aware(Box::new(router_with(capacity, &mut random))), generous()];
        assert!(travel(&mut path, at(0), &mut packet));
        let (ip_ttl, Some(IpOption::Request { rate, ttl, nonce })) = arrived(&mut packet) else { panic!() };
        let response = cheat(ip_ttl, rate, ttl, nonce, &mut random);
        won += u32::from(matches!(answer(&mut sender, Some(response)), Change::Granted(..)));
    }
    won
}

fn router_with(capacity: Rate, random: &mut Pcg64Mcg) -> Router<Pcg64Mcg> {
    Router::new(&RouterConfig::new(AdmissionConfig::paper(capacity)), common::random(random.next_u64()))
}

/// Within four standard deviations of the binomial distribution.
fn agrees(won: u32, attempts: u32, probability: f64) {
    let expected = f64::from(attempts) * probability;
    let deviation = (expected * (1.0 - probability)).sqrt();
    assert!((f64::from(won) - expected).abs() <= 4.0 * deviation, "{won} of {attempts}, expected {expected:.0}");
}

#[test]
fn claiming_a_step_more_than_granted_succeeds_once_in_four_and_two_steps_once_in_sixteen() {
    for (more, probability) in [(1, 0.25), (2, 0.0625), (3, 0.015_625)] {
        let won = successes(40_000, 9, Rate::from_bps(3 * MBPS), |ip_ttl, rate, ttl, nonce, _| {
            assert_eq!(rate, code(6));
            TcpResponse { rate: code(6 + more), ttl_difference: ttl_difference(ip_ttl, ttl), nonce }
        });
        agrees(won, 40_000, probability);
    }
}

#[test]
fn making_up_an_answer_to_a_denial_needs_the_ttl_difference_and_all_bits_of_the_nonce() {
    // The denied option shows neither: 1/256 times 4^-K.
    let made_up = |k: u8| {
        move |_: u8, rate: RateCode, _: u8, _: Nonce, random: &mut Pcg64Mcg| {
            assert!(rate.is_zero());
            TcpResponse { rate: code(k), ttl_difference: random.next_u32() as u8, nonce: Nonce::random(random) }
        }
    };
    let won = successes(200_000, 1, Rate::ZERO, made_up(1));
    agrees(won, 200_000, 1.0 / 1024.0);
    assert!(successes(20_000, 7, Rate::ZERO, made_up(7)) == 0, "2^-22 each");
}

#[test]
fn a_receiver_that_knows_the_path_still_has_to_guess_the_nonce() {
    let won = successes(40_000, 2, Rate::ZERO, |_, _, _, _, random| {
        // It cannot: the Quick-Start TTL of the request was random, and it is zeroed now.
        TcpResponse { rate: code(2), ttl_difference: 62, nonce: Nonce::random(random) }
    });
    agrees(won, 40_000, 1.0 / 256.0 / 16.0);
}

#[test]
fn a_caught_receiver_never_sees_a_request_again() {
    let mut random = random(1);
    let (mut sender, mut packet) = request(5, &mut random);
    travel(&mut [generous()], at(0), &mut packet);
    let (ip_ttl, Some(IpOption::Request { rate, ttl, nonce })) = arrived(&mut packet) else { panic!() };
    let nonce = Nonce::new(nonce.get() ^ 1);
    answer(&mut sender, Some(TcpResponse { rate, ttl_difference: ttl_difference(ip_ttl, ttl), nonce }));
    assert_eq!(sender.phase(), RequestPhase::Off(OffReason::Nonce));
    for later in [1_000, 1_000_000, 1_000_000_000] {
        let asked = sender.request(at(later), Trigger::Middle, code(7), Some(Span::from_millis(100)));
        assert_eq!(asked, Err(Refused::Off(OffReason::Nonce)));
    }
}

#[test]
fn a_claim_above_the_request_is_refused_whatever_the_nonce() {
    let mut random = random(1);
    let (mut sender, mut packet) = request(5, &mut random);
    travel(&mut [generous()], at(0), &mut packet);
    let (ip_ttl, Some(IpOption::Request { ttl, nonce, .. })) = arrived(&mut packet) else { panic!() };
    let response = TcpResponse { rate: code(6), ttl_difference: ttl_difference(ip_ttl, ttl), nonce };
    assert_eq!(answer(&mut sender, Some(response)), Change::Denied(Denial::Rate));
}

#[test]
fn a_receiver_that_tries_one_ttl_difference_after_the_other_gets_three_attempts() {
    let mut random = random(5);
    let mut sender = Sender::new(SenderConfig::default());
    let departing = Departing { elicits_ack: true, retransmission: false, end: 1, ip_ttl: 64 };
    for attempt in 0..10 {
        let now = at(1000 * attempt);
        let asked = sender.request(now, Trigger::Middle, code(7), Some(Span::from_millis(100)));
        if attempt >= 3 {
            assert_eq!(asked, Err(Refused::Off(OffReason::Path)));
            continue;
        }
        let Some(IpOption::Request { rate, ttl, nonce }) = sender.attach(now, &departing, &mut random) else {
            panic!()
        };
        let guess = ttl_difference(64, ttl).wrapping_sub(1 + attempt as u8);
        let change = answer(&mut sender, Some(TcpResponse { rate, ttl_difference: guess, nonce }));
        assert_eq!(change, Change::Denied(Denial::TtlDifference));
        assert!(matches!(sender.attach(now, &departing, &mut random), Some(IpOption::Report { .. })));
    }
}

#[test]
fn a_router_that_knows_nothing_denies_wherever_it_is_and_so_does_one_that_drops_options() {
    let mut random = random(1);
    for position in 0..3 {
        let mut path = vec![generous(), generous()];
        path.insert(position, Hop::Unaware);
        let (mut sender, mut packet) = request(7, &mut random);
        assert!(travel(&mut path, at(0), &mut packet));
        let (ip_ttl, option) = arrived(&mut packet);
        let mut receiver = Receiver::default();
        receiver.on_packet(ip_ttl, &option.unwrap());
        assert_eq!(answer(&mut sender, receiver.response()), Change::Denied(Denial::TtlDifference));
    }
    let (mut sender, mut packet) = request(7, &mut random);
    let mut path = [generous(), Hop::DropsOptions];
    assert!(!travel(&mut path, at(0), &mut packet));
    sender.on_timeout(0);
    let mut again = plain(1, 0);
    assert!(travel(&mut path, at(3000), &mut again), "the packet without the option arrives");
    assert_eq!(sender.phase(), RequestPhase::Off(OffReason::Path), "and no other option follows");
}

#[test]
fn a_simple_tunnel_is_a_false_positive_and_an_aware_one_is_not() {
    let through = |hop: Hop<Pcg64Mcg>| {
        let (mut sender, mut packet) = request(7, &mut random(1));
        assert!(travel(&mut [generous(), hop, generous()], at(0), &mut packet));
        let (ip_ttl, option) = arrived(&mut packet);
        let mut receiver = Receiver::default();
        receiver.on_packet(ip_ttl, &option.unwrap());
        let change = answer(&mut sender, receiver.response());
        (change, sender)
    };
    assert_eq!(through(Hop::AwareTunnel).0, Change::Denied(Denial::NoResponse));
    let (change, mut sender) = through(Hop::Tunnel);
    assert_eq!(change, Change::Granted(code(7), 213));
    // The damage is one window: the first loss leads back to the initial one, and there is no
    // further request.
    sender.allowance(at(500), 0, 1);
    assert_eq!(sender.on_congestion(1).unwrap().cwnd, 10);
    assert_eq!(sender.request(at(9000), Trigger::Middle, code(7), None), Err(Refused::Off(OffReason::Congestion)));
}

#[test]
fn bogus_requests_take_grants_away_and_nothing_else() {
    let mut router = router(AdmissionConfig::paper(Rate::from_mbps(10)));
    let option = |random: &mut Pcg64Mcg| IpOption::Request { rate: code(15), ttl: 9, nonce: Nonce::random(random) };
    let mut random = random(2);
    for flow in 0..100 {
        router.forward(at(1), &mut with(option(&mut random), flow, 0));
    }
    assert_eq!(router.forward(at(2), &mut with(option(&mut random), 999, 0)), Forwarding::Decided(RateCode::ZERO));
    for _ in 0..100 {
        assert_eq!(router.forward(at(3), &mut plain(7, 1460)), Forwarding::Forwarded, "plain packets pass as ever");
    }
    // Two intervals later everything can be had again but for what is really sent.
    assert_eq!(router.forward(at(2000), &mut with(option(&mut random), 999, 0)), Forwarding::Decided(code(7)));
}

#[test]
fn a_flood_of_requests_costs_a_bounded_number_of_decisions() {
    let config = RouterConfig {
        requests_per_second: 1000,
        burst: 1,
        ..RouterConfig::new(AdmissionConfig::paper(Rate::from_mbps(10)))
    };
    let mut router = Router::new(&config, random(1));
    let option = IpOption::Request { rate: code(1), ttl: 9, nonce: Nonce::new(0) };
    for us in 0..100_000_u64 {
        let now = at(0) + Span::from_micros(us);
        let outcome = router.forward(now, &mut with(option, us as u16, 0));
        assert!(matches!(outcome, Forwarding::Forwarded | Forwarding::Decided(_)), "every one is forwarded");
    }
    assert_eq!(router.counts().approved + router.counts().denied, 100);
}

#[test]
fn the_worst_case_of_admission_is_a_network_without_quick_start() {
    let mut admission =
        Admission::new(&AdmissionConfig { threshold_percent: 0, ..AdmissionConfig::paper(Rate::UNLIMITED) });
    assert_eq!(admission.admit(at(0), RateCode::MAX, Nonce::new(0), &FlowKey::default()), RateCode::ZERO);
}

#[test]
fn asking_for_different_rates_helps_a_little_against_a_receiver_that_claims_a_step_more() {
    // The router leaves code 6. Who always asks for 9 is cheated once in four times; who asks for
    // 6, 7, 8 or 9 in turn is asked for more than that each fourth time.
    let cheat = |ip_ttl: u8, rate: RateCode, ttl: u8, nonce: Nonce, _: &mut Pcg64Mcg| {
        assert_eq!(rate, code(6));
        TcpResponse { rate: code(7), ttl_difference: ttl_difference(ip_ttl, ttl), nonce }
    };
    let won = |asked| successes(10_000, asked, Rate::from_bps(3 * MBPS), cheat);
    let by_rate = [6, 7, 8, 9].map(won);
    assert_eq!(by_rate[0], 0, "a claim above the request");
    agrees(by_rate[3], 10_000, 0.25);
    agrees(by_rate.iter().sum(), 40_000, 0.1875);
}
