//! Links that are not plain: conservation, order, rates and bursts, through the whole simulation.

use crate::common::{flow, link, simulation, tcp_flow};
use flowstart_network::packet::Body;
use flowstart_network::{
    Detour, GrantsConfig, HandoverConfig, JitterConfig, LinkConfig, MediumConfig, Packet, PolicerConfig, ShaperConfig,
    SlotsConfig, WifiConfig,
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
