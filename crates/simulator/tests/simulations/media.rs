//! Links that are not plain: conservation, order, rates and bursts, through the whole simulation.

use crate::common::{flow, link, simulation, tcp_flow};
use flowstart_network::packet::Body;
use flowstart_network::{
    Detour, GrantsConfig, HandoverConfig, JitterConfig, LinkConfig, MediumConfig, Packet, PolicerConfig, RateSchedule,
    RateStep, ShaperConfig, SlotsConfig, WifiConfig,
};
use flowstart_simulator::{LinkId, Observer, Simulation, Spacing, Stop, Traffic, UdpConfig, Workload};
use flowstart_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

/// Media of every kind, with strengths from the numbers given.
fn medium(kind: u8, strength: u64) -> MediumConfig {
    let plain = MediumConfig::default();
    let ms = Span::from_millis;
    match kind {
        0 => MediumConfig {
            shaper: Some(ShaperConfig {
                line: Some(Rate::from_mbps(200)),
                ..ShaperConfig::new(Bytes::new(1_514 + strength * 1_000))
            }),
            ..plain
        },
        1 => MediumConfig {
            policer: Some(PolicerConfig { rate: Rate::from_mbps(10), burst: Bytes::new(1_514 + strength * 1_000) }),
            ..plain
        },
        2 => MediumConfig {
            wifi: Some(WifiConfig {
                errors: strength as f64 / 200.0,
                others: (strength % 3) as u32,
                ..Default::default()
            }),
            ..plain
        },
        3 => MediumConfig {
            grants: Some(GrantsConfig { every: ms(1 + strength % 5), delay: ms(strength % 9) }),
            ..plain
        },
        4 => MediumConfig {
            slots: Some(SlotsConfig {
                errors: strength as f64 / 200.0,
                again_after: ms(8),
                ..SlotsConfig::new(ms(1 + strength % 20))
            }),
            ..plain
        },
        5 => MediumConfig {
            handover: Some(HandoverConfig { every: ms(300), spread: ms(strength % 20), outage: ms(strength % 30) }),
            ..plain
        },
        _ => MediumConfig {
            detours: vec![Detour { at: ms(200), extra: ms(strength) }, Detour { at: ms(500), extra: Span::ZERO }],
            ..plain
        },
    }
}

/// Counts what arrives at the first link and what becomes of it, and looks at the order of data.
#[derive(Default)]
struct Watch {
    arrived: u64,
    transmitted: u64,
    dropped: u64,
    last: Option<u64>,
    in_order: bool,
    bytes: u64,
    first: Option<Time>,
    until: Time,
}

impl Observer for Watch {
    fn arrived(&mut self, _now: Time, link: LinkId, _packet: &Packet, _packets: u64, _bytes: u64) {
        self.arrived += u64::from(link == 0);
    }

    fn transmitted(&mut self, _now: Time, link: LinkId, packet: &Packet, _arrived: Time, done: Time) {
        if link != 0 {
            return;
        }
        self.transmitted += 1;
        self.bytes += u64::from(packet.bytes);
        self.first.get_or_insert(done);
        self.until = done;
        if let Body::Datagram(datagram) = packet.body {
            self.in_order &= self.last.is_none_or(|last| datagram.number > last);
            self.last = Some(datagram.number);
        }
    }

    fn dropped(&mut self, _now: Time, link: LinkId, _packet: &Packet, _reason: Option<flowstart_network::DropReason>) {
        self.dropped += u64::from(link == 0);
    }
}

fn datagrams(mbps: u64) -> Traffic {
    let udp = UdpConfig {
        rate: Rate::from_mbps(mbps),
        packet: 1500,
        spacing: Spacing::Poisson,
        lasting: Span::MAX,
        ecn: false,
    };
    Traffic::Udp(udp)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever arrives is sent, dropped, lost or still there; a link keeps the order of what it
    /// sends; a transfer gets through. A policer whose bucket holds less than an initial window
    /// drops the end of every burst: a transfer lives from time-out to time-out, and no time is
    /// asked of it.
    #[test]
    fn every_medium_conserves_packets_keeps_their_order_and_lets_transfers_through(
        kind in 0_u8..7, strength in 0_u64..60, jitter: bool, seed: u64,
    ) {
        let mut bottleneck = LinkConfig { medium: medium(kind, strength), ..link(20, Span::from_millis(10), Some(100)) };
        if jitter {
            bottleneck.jitter = Some(JitterConfig { spread: Span::from_millis(2), reorder: false });
        }
        prop_assert_eq!(bottleneck.validate(), Ok(()));
        let rtt = Span::from_millis(20);
        let transfer = tcp_flow(Workload::Sized(Bytes::new(500_000)), rtt);
        let mut config = simulation(vec![bottleneck.clone()], vec![transfer, flow(datagrams(4), rtt)], Stop::At(Time::from_nanos(20_000_000_000)));
        config.seed = seed;
        let watch = Watch { in_order: true, ..Watch::default() };
        let mut simulation = Simulation::new(&config, watch).unwrap();
        simulation.run_until(Time::from_nanos(20_000_000_000));
        let (outcome, watch) = simulation.finish();
        let link = &outcome.links[0];
        prop_assert_eq!(watch.arrived, link.packets + link.dropped + link.lost + link.stored);
        prop_assert_eq!((watch.transmitted, watch.dropped), (link.packets, link.dropped + link.lost));
        prop_assert!(watch.in_order);
        if bottleneck.medium.grants.is_some() {
            // Waiting for a turn is no sending.
            let sending = Rate::from_mbps(20).transmission_time(link.bytes + Bytes::new(1500));
            prop_assert!(link.busy <= sending + Span::from_nanos(link.packets), "{} {sending}", link.busy);
        }
        let transfer = &outcome.flows[0];
        let shallow = bottleneck.medium.policer.is_some_and(|policer| policer.burst < Bytes::new(15_140));
        prop_assert!(transfer.completed.is_some() || shallow, "{transfer:?}");
    }
}

/// What data packets waited at the first link: from their arrival to the beginning of their
/// transmission.
#[derive(Default)]
struct Waits(Vec<Span>);

impl Observer for Waits {
    fn transmitted_later(&mut self, now: Time, _: LinkId, _: &Packet, begun: Time, arrived: Time, done: Time) {
        assert!(arrived <= now && now <= begun && begun <= done);
        self.0.push(begun.since(arrived));
    }
}

/// Datagrams of 1500 B at `mbps` in these times (start and length in microseconds) over a link;
/// what they waited in microseconds, and for how many the link was busy. That is what the link says
/// too.
fn waits(link: LinkConfig, mbps: u64, times: &[(u64, u64)]) -> (Vec<u64>, u64) {
    let at = |micros: u64| Time::ZERO + Span::from_micros(micros);
    let flows = times.iter().map(|(start, lasting)| {
        let udp = UdpConfig {
            rate: Rate::from_mbps(mbps),
            packet: 1500,
            spacing: Spacing::Constant,
            lasting: Span::from_micros(*lasting),
            ecn: false,
        };
        flowstart_simulator::FlowConfig { start: at(*start), ..flow(Traffic::Udp(udp), Span::from_millis(20)) }
    });
    let config = simulation(vec![link], flows.collect(), Stop::At(at(5_000_000)));
    let (outcome, Waits(waits)) = Simulation::new(&config, Waits::default()).unwrap().run();
    let link = &outcome.links[0];
    assert_eq!(link.total_sojourn, waits.iter().copied().sum());
    assert_eq!(link.max_sojourn, waits.iter().copied().max().unwrap());
    (waits.iter().map(|wait| wait.as_nanos() / 1_000).collect(), link.busy.as_nanos() / 1_000)
}

/// A packet that the link takes at once and keeps until its turn has come waits like others.
#[test]
fn what_waits_for_a_turn_for_tokens_or_for_the_end_of_an_outage_waits() {
    let at_50 = link(50, Span::from_millis(10), None);
    // Arrivals every 12 ms; 3 ms later is an odd millisecond, and turns come in even ones.
    let grants = Some(GrantsConfig { every: Span::from_millis(2), delay: Span::from_millis(3) });
    let granted = LinkConfig { medium: MediumConfig { grants, ..Default::default() }, ..at_50.clone() };
    assert_eq!(waits(granted, 1, &[(0, 36_000)]), (vec![4_000; 3], 3 * 240));

    // 100 us apart. The second lacks 1400 B, which come in 1120 us; the third 1500 B more.
    let shaper = Some(ShaperConfig { line: Some(Rate::from_mbps(100)), ..ShaperConfig::new(Bytes::new(1_600)) });
    let shaped =
        LinkConfig { medium: MediumConfig { shaper, ..Default::default() }, ..link(10, Span::from_millis(10), None) };
    assert_eq!(waits(shaped, 120, &[(0, 300)]), (vec![0, 1_020, 2_120], 3 * 120));

    // Nothing is sent from 35 to 135 ms. The first is amid its transmission then.
    let step = |millis, mbps| RateStep { at: Time::ZERO + Span::from_millis(millis), rate: Rate::from_mbps(mbps) };
    let rate = RateSchedule::Steps { steps: vec![step(0, 50), step(35, 0), step(135, 50)], period: None };
    let dead = LinkConfig { rate, ..at_50 };
    assert_eq!(waits(dead.clone(), 50, &[(34_900, 1), (40_000, 1)]), (vec![0, 95_140], 2 * 240));
    assert_eq!(waits(dead.clone(), 50, &[(40_000, 1)]), (vec![95_000], 240));
    // With a medium that has nothing to do with it.
    let detours = vec![Detour { at: Span::ZERO, extra: Span::ZERO }];
    let dead = LinkConfig { medium: MediumConfig { detours, ..Default::default() }, ..dead };
    assert_eq!(waits(dead, 50, &[(40_000, 1)]), (vec![95_000], 240));
}
