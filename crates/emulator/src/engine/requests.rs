//! What becomes of Quick-Start options on the way to a link: the rules of the simulator's network,
//! by `flowstart-quick-start` on the packets themselves.

use flowstart_network::QuickStartHop;
use flowstart_quick_start::Router;
use flowstart_quick_start::path::Hop;
use flowstart_quick_start::router::{RouterConfig, forward_plain};
use flowstart_quick_start::wire::{Ipv4, Ipv6};
use flowstart_random::{Stream, stream};
use flowstart_units::Time;

/// A hop in operation.
#[derive(Debug)]
pub(super) enum Requests {
    /// A router that does not know them. Only the TTL of packets with options is lowered: that of
    /// others tells nobody anything.
    Unaware,
    /// Drops packets with the option, on arrival.
    Drops,
    /// Takes the option away.
    Strips,
    /// Anything else.
    Hop(Box<Hop<Stream>>),
}

impl Requests {
    pub(super) fn new(config: &QuickStartHop, seed: u64) -> Self {
        match config {
            QuickStartHop::Unaware => Self::Unaware,
            QuickStartHop::DropsOptions => Self::Drops,
            QuickStartHop::StripsOptions => Self::Strips,
            QuickStartHop::Tunnel => Self::Hop(Box::new(Hop::Tunnel)),
            QuickStartHop::AwareTunnel => Self::Hop(Box::new(Hop::AwareTunnel)),
            QuickStartHop::Aware(admission) => {
                // A simulated router looks at every request; nobody floods this one either.
                let config = RouterConfig { requests_per_second: u32::MAX, ..RouterConfig::new(*admission) };
                let random = stream(seed);
                Self::Hop(Box::new(Hop::Aware(Box::new(Router::new(&config, random)))))
            }
        }
    }

    /// True if packets must be shown to [`arrives`](Self::arrives).
    pub(super) fn drops(&self) -> bool {
        matches!(self, Self::Drops)
    }

    /// A packet of IP arrives. False if it is dropped.
    pub(super) fn arrives(&self, packet: &mut [u8]) -> bool {
        !(self.drops() && carries_option(packet))
    }

    /// A packet of IP leaves. Its length stays.
    #[inline]
    pub(super) fn leaves(&mut self, now: Time, packet: &mut [u8]) {
        match self {
            Self::Unaware | Self::Drops => {
                if has_options(packet) {
                    forward_plain(packet, 1);
                }
            }
            Self::Strips => {
                if has_options(packet) {
                    forward_plain(packet, 1);
                    strip(packet);
                }
            }
            Self::Hop(hop) => {
                // It is delivered whatever became of its TTL: routes here are shorter than 64 hops.
                let _ = hop.pass(now, packet);
            }
        }
    }
}

/// True if there is anything between the headers of IP and transport.
#[inline]
fn has_options(packet: &[u8]) -> bool {
    match packet.first() {
        Some(first) if first >> 4 == 4 => *first != 0x45,
        Some(first) if first >> 4 == 6 => packet.get(6) == Some(&0),
        _ => false,
    }
}

fn carries_option(packet: &mut [u8]) -> bool {
    has_options(packet)
        && (Ipv4::new(packet).is_ok_and(|packet| matches!(packet.option(), Ok(Some(_))))
            || Ipv6::new(packet).is_ok_and(|packet| matches!(packet.option(), Ok(Some(_)))))
}

fn strip(packet: &mut [u8]) {
    // Headers with impossible options have none that could be taken away.
    if let Ok(mut packet) = Ipv4::new(packet) {
        let _ = packet.remove_option();
    } else if let Ok(mut packet) = Ipv6::new(packet) {
        let _ = packet.remove_option();
    }
}

#[cfg(test)]
mod tests {
    use flowstart_quick_start::router::AdmissionConfig;
    use flowstart_quick_start::wire::{IpOption, checksum};
    use flowstart_quick_start::{Nonce, RateCode, ttl_difference};
    use flowstart_units::Rate;

    use super::*;

    fn request() -> Vec<u8> {
        let mut plain = vec![0x45, 0, 0, 40, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2];
        plain.resize(40, 0);
        let check = checksum(&plain[..20]);
        plain[10..12].copy_from_slice(&check.to_be_bytes());
        let option = IpOption::Request { rate: RateCode::new(9).unwrap(), ttl: 91, nonce: Nonce::new(0x2aaa_aaaa) };
        Ipv4::with_option(&plain, option).unwrap()
    }

    /// What arrives behind a hop: the option, and whether the TTL difference is what was sent.
    fn behind(hop: &QuickStartHop) -> Option<(Option<IpOption>, bool)> {
        let mut packet = request();
        let mut requests = Requests::new(hop, 1);
        if !requests.arrives(&mut packet) {
            return None;
        }
        requests.leaves(Time::ZERO, &mut packet);
        let view = Ipv4::new(&mut packet).unwrap();
        assert_eq!(checksum(view.header()), 0);
        let option = view.option().unwrap();
        let same = match option {
            Some(IpOption::Request { ttl, .. }) => ttl_difference(view.ttl(), ttl) == ttl_difference(64, 91),
            _ => false,
        };
        Some((option, same))
    }

    fn rate(hop: &QuickStartHop) -> Option<(Option<u8>, bool)> {
        behind(hop).map(|(option, same)| {
            let rate = option.map(|option| match option {
                IpOption::Request { rate, .. } | IpOption::Report { rate, .. } => rate.get(),
            });
            (rate, same)
        })
    }

    #[test]
    fn every_kind_of_hop_does_to_a_packet_what_the_simulated_one_does_to_a_request() {
        let aware = QuickStartHop::Aware(AdmissionConfig::paper(Rate::from_mbps(10)));
        assert_eq!(rate(&aware), Some((Some(7), true)), "5.12 of 10 Mbit/s");
        assert_eq!(rate(&QuickStartHop::Unaware), Some((Some(9), false)), "the TTL difference tells");
        assert_eq!(rate(&QuickStartHop::Tunnel), Some((Some(9), true)), "a false grant");
        assert_eq!(rate(&QuickStartHop::AwareTunnel), Some((Some(0), false)));
        assert_eq!(rate(&QuickStartHop::StripsOptions), Some((None, false)));
        assert_eq!(rate(&QuickStartHop::DropsOptions), None);
    }

    #[test]
    fn a_packet_without_options_passes_what_is_no_router_as_it_is() {
        for hop in [QuickStartHop::Unaware, QuickStartHop::DropsOptions, QuickStartHop::StripsOptions] {
            let mut packet = request();
            packet.drain(20..28);
            packet[0] = 0x45;
            let before = packet.clone();
            let mut requests = Requests::new(&hop, 1);
            assert!(requests.arrives(&mut packet));
            requests.leaves(Time::ZERO, &mut packet);
            assert_eq!(packet, before);
        }
    }
}
