//! Routers: admission against its vectors, and what may never happen.

mod common;

use common::{arrived, at, code, plain, random, router, travel, with};
use flowstart_quick_start::path::Hop;
use flowstart_quick_start::router::{
    Admission, AdmissionConfig, Denial, FlowKey, FlowsConfig, Forwarding, MemoryConfig, MeterConfig, Router,
    RouterConfig, ShareConfig,
};
use flowstart_quick_start::wire::{IpOption, Ipv6, checksum, hop_by_hop};
use flowstart_quick_start::{Nonce, RateCode, ttl_difference};
use flowstart_units::{Rate, Span, Time};
use proptest::prelude::*;

const TEN: Rate = Rate::from_mbps(10);

fn request(rate: RateCode) -> IpOption {
    IpOption::Request { rate, ttl: 91, nonce: Nonce::new(0x2aaa_aaaa) }
}

/// What repeated requests for 5.12 Mbit/s get within the memory of a link of 10 Mbit/s, in kbit/s,
/// down to the first denial.
fn grants(threshold_percent: u32, load_percent: u64) -> Vec<u64> {
    let mut admission = Admission::new(&AdmissionConfig { threshold_percent, ..AdmissionConfig::paper(TEN) });
    for ms in 0..1000 {
        // 10 Mbit/s are 1250 bytes per millisecond.
        admission.forwarded(at(ms), (1250 * load_percent / 100) as u32);
    }
    let mut grants = Vec::new();
    loop {
        let granted = admission.admit(at(1001), code(7), Nonce::new(0), &FlowKey::default()).rate().as_bps() / 1000;
        grants.push(granted);
        if granted == 0 {
            return grants;
        }
    }
}

#[test]
fn repeated_requests_get_what_the_vectors_say() {
    assert_eq!(grants(100, 0), [5120, 2560, 1280, 640, 320, 80, 0]);
    assert_eq!(grants(95, 0), [5120, 2560, 1280, 320, 160, 0]);
    assert_eq!(grants(90, 0), [5120, 2560, 1280, 0]);
    assert_eq!(grants(75, 0), [5120, 1280, 640, 320, 80, 0]);
    assert_eq!(grants(50, 0), [2560, 1280, 640, 320, 160, 0]);
    assert_eq!(grants(25, 0), [1280, 640, 320, 160, 80, 0]);
    assert_eq!(grants(100, 30), [5120, 1280, 320, 160, 80, 0]);
    assert_eq!(grants(50, 30), [1280, 640, 80, 0]);
    assert_eq!(grants(25, 30), [0]);
}

#[test]
fn a_grant_is_remembered_for_one_to_two_intervals() {
    let ask = |first: u64, second: u64| {
        let mut admission = Admission::new(&AdmissionConfig { threshold_percent: 52, ..AdmissionConfig::paper(TEN) });
        assert_eq!(admission.admit(at(first), code(7), Nonce::new(0), &FlowKey::default()), code(7));
        admission.admit(at(second), code(7), Nonce::new(0), &FlowKey::default())
    };
    assert_eq!(ask(10, 1999), code(1));
    assert_eq!(ask(10, 2000), code(7));
    assert_eq!(ask(990, 1999), code(1));
    assert_eq!(ask(990, 2000), code(7));
}

#[test]
fn the_measured_peak_holds_grants_back_longer_than_the_mean() {
    let after_a_burst = |meter| {
        let mut admission = Admission::new(&AdmissionConfig { meter, ..AdmissionConfig::rfc(TEN) });
        admission.forwarded(at(10), 187_500); // 10 Mbit/s over 150 ms
        [150, 300, 450].map(|ms| admission.admit(at(ms + 1), code(15), Nonce::new(0), &FlowKey::default()).get())
    };
    let sample = Span::from_millis(150);
    assert_eq!(after_a_burst(MeterConfig::Peak { sample, samples: 3 }), [0, 0, 0]);
    assert_eq!(after_a_burst(MeterConfig::Mean { interval: sample }), [0, 7, 6]);
}

#[test]
fn a_router_forwards_and_mends_whatever_passes() {
    let mut router = router(AdmissionConfig::paper(TEN));
    let mut packet = plain(1, 10);
    assert_eq!(router.forward(at(0), &mut packet), Forwarding::Forwarded);
    assert_eq!(arrived(&mut packet), (63, None));
    packet[8] = 1;
    assert_eq!(router.forward(at(0), &mut packet), Forwarding::Expired);
    assert_eq!(router.forward(at(0), &mut []), Forwarding::Malformed);
    assert_eq!(router.forward(at(0), &mut [0x45; 19]), Forwarding::Malformed);
}

#[test]
fn the_three_ways_to_deny() {
    let denied = |denial| {
        let config = RouterConfig { denial, ..RouterConfig::new(AdmissionConfig::paper(Rate::from_bps(79_999))) };
        let mut packet = with(request(code(7)), 1, 0);
        assert_eq!(Router::new(&config, random(1)).forward(at(0), &mut packet), Forwarding::Decided(RateCode::ZERO));
        arrived(&mut packet)
    };
    let zeroed = IpOption::Request { rate: code(0), ttl: 0, nonce: Nonce::new(0) };
    assert_eq!(denied(Denial::Zero), (63, Some(zeroed)));
    assert_eq!(denied(Denial::Leave), (63, Some(request(code(7)))));
    assert_eq!(denied(Denial::Remove), (63, None));
}

#[test]
fn nothing_is_approved_over_several_links() {
    let config = RouterConfig { per_packet_multipath: true, ..RouterConfig::new(AdmissionConfig::paper(TEN)) };
    let mut packet = with(request(code(1)), 1, 0);
    assert_eq!(Router::new(&config, random(1)).forward(at(0), &mut packet), Forwarding::Decided(RateCode::ZERO));
}

#[test]
fn the_requests_looked_at_are_limited_and_the_others_pass_unchanged() {
    let config = RouterConfig { requests_per_second: 100, burst: 10, ..RouterConfig::new(AdmissionConfig::paper(TEN)) };
    let mut router = Router::new(&config, random(1));
    for ms in 0..1000 {
        let mut packet = with(request(code(7)), 1, 0);
        let ignored = router.counts().ignored;
        assert!(matches!(router.forward(at(ms), &mut packet), Forwarding::Forwarded | Forwarding::Decided(_)));
        if router.counts().ignored > ignored {
            assert_eq!(arrived(&mut packet), (63, Some(request(code(7)))));
        }
    }
    let counts = router.counts();
    assert_eq!((counts.approved + counts.denied, counts.ignored), (109, 891));
}

/// A TCP packet of IPv6 from source port `flow`.
fn of_ipv6(option: Option<IpOption>, flow: u16, payload: u8) -> Vec<u8> {
    let extension = option.map_or(Vec::new(), |option| hop_by_hop(6, option).to_vec());
    let next = if extension.is_empty() { 6 } else { 0 };
    let mut packet = vec![0x60, 0, 0, 0, 0, 20 + payload + extension.len() as u8, next, 64];
    packet.extend([1; 32]);
    packet.extend(extension);
    packet.extend(flow.to_be_bytes());
    packet.extend([0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
    packet.resize(packet.len() + usize::from(payload), 0);
    packet
}

#[test]
fn the_data_of_a_flow_is_its_request_s_with_and_without_options_in_ipv4_and_ipv6() {
    let asks = |six, flow| if six { of_ipv6(Some(request(code(5))), flow, 0) } else { with(request(code(5)), flow, 0) };
    let sends = |six, flow, payload| if six { of_ipv6(None, flow, payload) } else { plain(flow, u16::from(payload)) };
    // Nothing, somebody else's data, an ACK of its own, data of its own.
    for (data, faults) in [(None, 1), (Some((2, 100)), 1), (Some((1, 0)), 1), (Some((1, 1)), 0)] {
        for six in [false, true] {
            let mut router = extreme(FlowsConfig { expect_reports: false, ..FlowsConfig::default() });
            assert_eq!(router.forward(at(0), &mut asks(six, 1)), Forwarding::Decided(code(5)));
            if let Some((flow, payload)) = data {
                assert_eq!(router.forward(at(100), &mut sends(six, flow, payload)), Forwarding::Forwarded);
            }
            assert_eq!(router.forward(at(5000), &mut asks(six, 3)), Forwarding::Decided(code(5)));
            assert_eq!(router.counts().faults, faults, "{data:?}, IPv6: {six}");
        }
    }
}

/// What is in the middle of a packet of IPv4 has no ports (RFC 791 section 3.2), whatever it looks
/// like.
#[test]
fn a_fragment_without_a_header_of_tcp_is_data_of_no_flow_that_asked() {
    // The first fragment, the second, and the last.
    for (field, faults) in [(0x2000_u16, 0), (0x2001, 1), (0x1fff, 1)] {
        let mut router = extreme(FlowsConfig { expect_reports: false, ..FlowsConfig::default() });
        assert_eq!(router.forward(at(0), &mut with(request(code(5)), 1, 0)), Forwarding::Decided(code(5)));
        let mut fragment = plain(1, 100);
        fragment[6..8].copy_from_slice(&field.to_be_bytes());
        fragment[10..12].fill(0);
        let check = checksum(&fragment[..20]);
        fragment[10..12].copy_from_slice(&check.to_be_bytes());
        assert_eq!(router.forward(at(100), &mut fragment), Forwarding::Forwarded);
        assert_eq!(router.forward(at(5000), &mut with(request(code(5)), 3, 0)), Forwarding::Decided(code(5)));
        assert_eq!(router.counts().faults, faults, "{field:#x}");
    }
}

#[test]
fn ipv6_requests_are_decided_like_those_of_ipv4() {
    let mut packet = of_ipv6(Some(request(code(15))), 1, 0);
    let mut router = router(AdmissionConfig::paper(TEN));
    assert_eq!(router.forward(at(0), &mut packet), Forwarding::Decided(code(7)));
    let view = Ipv6::new(&mut packet).unwrap();
    let Ok(Some(IpOption::Request { rate, ttl, .. })) = view.option() else { panic!() };
    assert_eq!((rate, ttl_difference(view.hop_limit(), ttl)), (code(7), ttl_difference(64, 91)));
}

fn extreme(flows: FlowsConfig) -> Router<rand_pcg::Pcg64Mcg> {
    router(AdmissionConfig { memory: MemoryConfig::Flows(flows), ..AdmissionConfig::paper(TEN) })
}

/// What a router of 10 Mbit/s decides on a request of this flow.
fn ask(router: &mut Router<rand_pcg::Pcg64Mcg>, ms: u64, n: u8, flow: u16) -> u8 {
    match router.forward(at(ms), &mut with(request(code(n)), flow, 0)) {
        Forwarding::Decided(granted) => granted.get(),
        _ => panic!(),
    }
}

fn report(rate: RateCode) -> IpOption {
    IpOption::Report { rate, nonce: Nonce::new(0x2aaa_aaaa) }
}

#[test]
fn extreme_quick_start_gives_back_what_others_did_not_grant_or_nobody_used() {
    let mut router = extreme(FlowsConfig::default());
    assert_eq!((ask(&mut router, 0, 7, 1), ask(&mut router, 1, 7, 2)), (7, 6));
    // Somebody further on granted the first flow only 320 kbit/s.
    router.forward(at(100), &mut with(report(code(3)), 1, 100));
    assert_eq!(router.admission().granted(), Rate::from_bps(2_880_000));
    // The second flow sends nothing for a second.
    assert_eq!(ask(&mut router, 1002, 7, 3), 7);
    assert_eq!(
        router.admission().granted(),
        Rate::from_bps(5_440_000 - 8 * 148),
        "but for the report, 148 bytes metered"
    );
    // A denial elsewhere.
    router.forward(at(1100), &mut with(report(code(0)), 3, 0));
    assert_eq!(router.admission().granted(), Rate::from_bps(320_000 - 8 * 148));
}

#[test]
fn a_source_that_does_not_use_or_report_its_grants_is_refused_for_a_while() {
    let flows = FlowsConfig { faults: 2, ..FlowsConfig::default() };
    let mut router = extreme(flows);
    assert_eq!([0, 2000, 4000, 6000].map(|ms| ask(&mut router, ms, 7, 1)), [7, 7, 0, 0]);
    assert_eq!(ask(&mut router, 63_001, 7, 1), 7, "forgiven after a minute");
}

#[test]
fn a_report_of_more_than_was_granted_counts_against_its_source_until_it_is_refused() {
    let mut router = extreme(FlowsConfig { faults: 2, ..FlowsConfig::default() });
    // 10.24 Mbit/s are more than the link has: 5.12 are granted. The report that claims them
    // counts, whatever it gives back later.
    for (ms, flow, faults) in [(0, 1, 1), (10, 2, 2)] {
        let granted = ask(&mut router, ms, 8, flow);
        assert!(granted > 0 && granted < 8);
        router.forward(at(ms + 5), &mut with(report(code(8)), flow, 100));
        assert_eq!((router.counts().faults, router.counts().strays), (faults, 0));
    }
    assert_eq!(ask(&mut router, 200, 1, 3), 0, "the same source");
    let mut other = with(request(code(1)), 3, 0);
    other[15] = 9;
    assert_eq!(router.forward(at(200), &mut other), Forwarding::Decided(code(1)), "another one");
}

#[test]
fn after_a_denial_only_a_report_of_zero_is_right() {
    for (claimed, faults) in [(0, 0), (1, 1), (7, 1)] {
        let mut router = router(AdmissionConfig { threshold_percent: 0, ..AdmissionConfig::extreme(TEN) });
        assert_eq!(ask(&mut router, 0, 7, 1), 0);
        router.forward(at(100), &mut with(report(code(claimed)), 1, 100));
        let counts = router.counts();
        assert_eq!((counts.reports, counts.faults, counts.strays), (1, faults, 0), "{claimed}");
    }
}

#[test]
fn a_report_with_another_nonce_or_without_a_request_changes_nothing() {
    let mut router = extreme(FlowsConfig { faults: 1, expect_reports: false, ..FlowsConfig::default() });
    assert_eq!(ask(&mut router, 0, 7, 1), 7);
    let forged = |n, nonce| IpOption::Report { rate: code(n), nonce: Nonce::new(nonce) };
    // Neither is the grant given back, nor does it count as a claim of too much; the sixteen bits
    // above code 7 are not looked at.
    router.forward(at(10), &mut with(forged(0, 0x2aaa_aaab), 1, 0));
    router.forward(at(11), &mut with(forged(9, 0x2aaa_8aaa), 1, 0));
    router.forward(at(12), &mut with(forged(9, 0x2aaa_aaaa), 2, 0));
    assert_eq!((router.counts().reports, router.counts().faults, router.counts().strays), (3, 0, 3));
    assert_eq!(router.admission().granted(), code(7).rate());
    assert_eq!(ask(&mut router, 20, 5, 3), 5, "the source is not refused");
    router.forward(at(30), &mut with(forged(3, 0x1555_6aaa), 1, 0));
    assert_eq!((router.counts().strays, router.counts().faults), (3, 0), "right as far as it matters");
    assert_eq!(router.admission().granted(), Rate::from_bps(320_000 + 1_280_000));
}

#[test]
fn a_second_request_that_is_denied_and_reported_so_leaves_the_first_grant() {
    let mut router = extreme(FlowsConfig::default());
    assert_eq!(ask(&mut router, 0, 6, 1), 6);
    let again = IpOption::Request { rate: code(6), ttl: 1, nonce: Nonce::new(0x1555_5555) };
    assert_eq!(router.forward(at(10), &mut with(again, 1, 0)), Forwarding::Decided(RateCode::ZERO), "one at a time");
    let denied = IpOption::Report { rate: code(0), nonce: Nonce::new(0x1555_5555) };
    router.forward(at(20), &mut with(denied, 1, 0));
    assert_eq!(router.admission().granted(), code(6).rate());
    assert_eq!((router.counts().faults, router.counts().strays), (0, 0));
}

#[test]
fn a_used_grant_is_forgotten_when_the_load_has_a_whole_interval_of_it() {
    let granted = |first: u64, checks: [u64; 2]| {
        let flows = FlowsConfig { count_once: false, ..FlowsConfig::default() };
        let memory = MemoryConfig::Flows(flows);
        let mut admission = Admission::new(&AdmissionConfig { memory, ..AdmissionConfig::paper(TEN) });
        let key = FlowKey { flow: 1, source: 1 };
        admission.admit(at(first - 10), code(7), Nonce::new(0), &key);
        admission.reported(at(first), code(7), Nonce::new(0), &key);
        let mut now = first;
        checks.map(|check| {
            (now..check).for_each(|ms| admission.forwarded_of(at(ms), 640, &key, true));
            now = check;
            assert_eq!(admission.counts().faults, 0);
            admission.granted().as_bps()
        })
    };
    // The interval from 1 to 2 s is the first to have all of it, whether it began early or late in
    // the one before.
    assert_eq!(granted(10, [2000, 2001]), [5_120_000, 0]);
    assert_eq!(granted(990, [2000, 2001]), [5_120_000, 0]);
}

#[test]
fn a_grant_that_is_used_counts_once_with_flows_and_twice_without() {
    let after = |memory| {
        let mut admission = Admission::new(&AdmissionConfig { memory, ..AdmissionConfig::paper(TEN) });
        let key = FlowKey { flow: 1, source: 1 };
        assert_eq!(admission.admit(at(0), code(7), Nonce::new(0), &key), code(7));
        for ms in 0..1000 {
            admission.forwarded_of(at(ms), 640, &key, true); // 5.12 Mbit/s
        }
        let other = FlowKey { flow: 2, source: 2 };
        (admission.admit(at(1001), code(7), Nonce::new(0), &other).get(), admission.load().as_bps())
    };
    assert_eq!(after(MemoryConfig::Sums), (0, 5_120_000));
    assert_eq!(after(MemoryConfig::Flows(FlowsConfig::default())), (6, 5_120_000));
    let twice = FlowsConfig { count_once: false, ..FlowsConfig::default() };
    assert_eq!(after(MemoryConfig::Flows(twice)), (0, 5_120_000));
}

#[test]
fn the_table_of_flows_is_bounded() {
    let mut router = extreme(FlowsConfig { flows: 2, ..FlowsConfig::default() });
    let decided = [1, 2, 3].map(|flow| router.forward(at(0), &mut with(request(code(1)), flow, 0)));
    assert_eq!(decided, [code(1), code(1), RateCode::ZERO].map(Forwarding::Decided));
}

fn admission() -> impl Strategy<Value = AdmissionConfig> {
    let meter = prop_oneof![
        (1_u64..2000).prop_map(|ms| MeterConfig::Mean { interval: Span::from_millis(ms) }),
        (1_u64..500, 1_u32..=20).prop_map(|(ms, samples)| MeterConfig::Peak { sample: Span::from_millis(ms), samples }),
    ];
    let memory = prop_oneof![
        Just(MemoryConfig::Sums),
        (1_u32..20, any::<bool>()).prop_map(|(flows, count_once)| MemoryConfig::Flows(FlowsConfig {
            flows,
            count_once,
            ..FlowsConfig::default()
        })),
    ];
    let share = prop_oneof![Just(None), Just(Some(ShareConfig::default()))];
    (meter, memory, share, 0_u32..=100, 1_u64..5000).prop_map(|(meter, memory, share, threshold_percent, mbps)| {
        AdmissionConfig { capacity: Rate::from_mbps(mbps), threshold_percent, meter, memory, share }
    })
}

/// What may happen at a router's output, and how much later than the last.
#[derive(Clone, Copy, Debug)]
enum Event {
    Request(u8, u64, Nonce),
    Report(u8, u64, Nonce),
    Data(u32, u64),
}

fn option() -> impl Strategy<Value = IpOption> {
    (any::<bool>(), 0_u8..=15, any::<u8>(), any::<u32>()).prop_map(|(asks, n, ttl, nonce)| {
        let (rate, nonce) = (code(n), Nonce::new(nonce));
        if asks { IpOption::Request { rate, ttl, nonce } } else { IpOption::Report { rate, nonce } }
    })
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let event = prop_oneof![
        (0_u8..=15, 0_u64..30, 0_u32..3).prop_map(|(n, flow, nonce)| Event::Request(n, flow, Nonce::new(nonce))),
        (0_u8..=15, 0_u64..30, 0_u32..3).prop_map(|(n, flow, nonce)| Event::Report(n, flow, Nonce::new(nonce))),
        (0_u32..100_000, 0_u64..30).prop_map(|(bytes, flow)| Event::Data(bytes, flow)),
    ];
    proptest::collection::vec(
        (prop_oneof![4 => 0_u64..2_000, 1 => 0_u64..3_000_000].prop_map(|us| us * 1000), event),
        1..400,
    )
}

proptest! {
    #[test]
    fn grants_and_load_never_exceed_the_threshold_when_something_is_granted(config in admission(), events in events()) {
        let mut admission = Admission::new(&config);
        let limit = config.capacity.mul_ratio(u64::from(config.threshold_percent), 100).as_bps();
        let mut now = Time::ZERO;
        // Grants given in the present interval, summed here without any algorithm.
        let (mut given, mut interval) = (0_u64, 0);
        for (gap, event) in events {
            now += Span::from_nanos(gap);
            let key = |flow| FlowKey { flow, source: flow % 3 };
            match event {
                Event::Request(n, flow, nonce) => {
                    let granted = admission.admit(now, code(n), nonce, &key(flow));
                    prop_assert!(granted <= code(n), "never more than asked for");
                    let total = admission.granted().as_bps().saturating_add(admission.load().as_bps());
                    prop_assert!(granted.is_zero() || total <= limit, "{total} > {limit}");
                    if config.memory == MemoryConfig::Sums {
                        let number = now.since(Time::ZERO).whole(config.meter.interval());
                        given = granted.rate().as_bps() + if number == interval { given } else { 0 };
                        interval = number;
                        prop_assert!(given <= limit);
                        prop_assert!(admission.granted().as_bps() >= given, "nothing is forgotten early");
                    }
                }
                Event::Report(n, flow, nonce) => admission.reported(now, code(n), nonce, &key(flow)),
                Event::Data(bytes, flow) => admission.forwarded_of(now, bytes, &key(flow), bytes > 0),
            }
        }
    }

    #[test]
    fn the_ttl_difference_survives_any_chain_of_routers_that_approve_and_no_other_chain(
        hops in proptest::collection::vec(any::<bool>(), 1..60), ttl: u8, nonce: u32,
    ) {
        let option = IpOption::Request { rate: code(7), ttl, nonce: Nonce::new(nonce) };
        let mut packet = with(option, 1, 0);
        let mut path: Vec<Hop<_>> = hops.iter().map(|aware| if *aware { common::generous() } else { Hop::Unaware }).collect();
        prop_assert!(travel(&mut path, at(0), &mut packet));
        let (ip_ttl, Some(IpOption::Request { rate, ttl: left, nonce: unchanged })) = arrived(&mut packet) else { panic!() };
        let same = ttl_difference(ip_ttl, left) == ttl_difference(64, ttl);
        prop_assert_eq!(same, hops.iter().all(|aware| *aware));
        prop_assert_eq!((rate, unchanged), (code(7), Nonce::new(nonce)));
    }

    #[test]
    fn a_router_never_touches_reports_and_never_the_low_bits_of_a_nonce(n in 0_u8..=15, nonce: u32, mbps in 0_u64..2000) {
        let mut router = router(AdmissionConfig::paper(Rate::from_mbps(mbps)));
        let option = IpOption::Report { rate: code(n), nonce: Nonce::new(nonce) };
        let mut packet = with(option, 1, 10);
        router.forward(at(0), &mut packet);
        prop_assert_eq!(arrived(&mut packet), (63, Some(option)));
        let mut packet = with(IpOption::Request { rate: code(n), ttl: 5, nonce: Nonce::new(nonce) }, 1, 0);
        router.forward(at(0), &mut packet);
        let (_, Some(IpOption::Request { rate, nonce: passed, .. })) = arrived(&mut packet) else { panic!() };
        prop_assert!(rate <= code(n));
        prop_assert!(passed.agrees_with(Nonce::new(nonce), rate));
    }

    #[test]
    fn the_same_packets_and_seed_give_the_same_bytes_and_decisions(
        config in admission(), seed: u64, packets in proptest::collection::vec((0_u64..5_000, option(), 0_u16..9), 1..60),
    ) {
        let mut routers = [seed, seed].map(|seed| Router::new(&RouterConfig::new(config), random(seed)));
        let mut now = at(0);
        for (gap, option, flow) in packets {
            now += Span::from_micros(gap);
            let [one, other] = routers.each_mut().map(|router| {
                let mut packet = with(option, flow, 100);
                (router.forward(now, &mut packet), packet)
            });
            prop_assert_eq!(one, other);
        }
        let [one, other] = routers.map(|router| router.counts());
        prop_assert_eq!(one, other);
    }
}
