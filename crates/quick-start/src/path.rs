//! Hops of a path, those that know Quick-Start and those that do not.

use alloc::boxed::Box;

use flowstart_units::Time;
use rand_core::Rng;

use crate::router::{Forwarding, Router, forward_plain};
use crate::wire::{Function, Ipv4, Ipv6, OptionMut};

/// One hop.
#[derive(Clone, Debug)]
pub enum Hop<R> {
    /// A router that knows Quick-Start.
    Aware(Box<Router<R>>),
    /// A router that lowers the TTL and leaves unknown options alone: requests are denied by the
    /// TTL difference.
    Unaware,
    /// A router that takes packets with IP options for attacks.
    DropsOptions,
    /// A tunnel whose inner packets keep their TTL, over routers that see the outer header only: a
    /// request that passes looks approved though nobody was asked (RFC 4782 section 6).
    Tunnel,
    /// A tunnel whose entry knows that, and denies.
    AwareTunnel,
}

impl<R: Rng> Hop<R> {
    /// A packet of IP passes. `None` if it is dropped.
    pub fn pass(&mut self, now: Time, packet: &mut [u8]) -> Option<Forwarding> {
        let forwarding = match self {
            Self::Aware(router) => router.forward(now, packet),
            Self::Unaware => forward_plain(packet, 1),
            Self::DropsOptions if has_options(packet) => return None,
            Self::DropsOptions => forward_plain(packet, 1),
            Self::Tunnel => Forwarding::Forwarded,
            Self::AwareTunnel => {
                zero(packet);
                Forwarding::Forwarded
            }
        };
        matches!(forwarding, Forwarding::Forwarded | Forwarding::Decided(_)).then_some(forwarding)
    }
}

fn has_options(packet: &mut [u8]) -> bool {
    Ipv4::new(packet).is_ok_and(|packet| packet.has_options())
        || Ipv6::new(packet).is_ok_and(|packet| packet.has_options())
}

fn zero(packet: &mut [u8]) {
    let change = |mut option: OptionMut<'_>| {
        if option.function() == Function::Request {
            option.zero();
        }
    };
    // A header with impossible options has none that could be denied.
    if let Ok(mut packet) = Ipv4::new(packet) {
        let _ = packet.change_option(change);
    } else if let Ok(mut packet) = Ipv6::new(packet) {
        let _ = packet.change_option(change);
    }
}
