//! What the way to a link and its router make of Quick-Start requests.

use flowstart_network::packet::Body;
use flowstart_network::{Packet, QuickStartHop};
use flowstart_quick_start::Carried;
use flowstart_quick_start::router::{Admission, FlowKey, RouterCounts};
use flowstart_quick_start::wire::{IPV4_LENGTH, IpOption};
use flowstart_random::{Rng, Stream};
use flowstart_units::Time;

/// What becomes of Quick-Start requests on the way to a link (see [`QuickStartHop`]).
#[derive(Debug)]
pub(crate) enum Requests {
    Unaware,
    /// The router's admission, and what it makes nonces from.
    Aware(Box<(Admission, Stream)>),
    Tunnel,
    AwareTunnel,
    Stripped,
}

impl Requests {
    pub(crate) fn new(config: &QuickStartHop, random: impl FnOnce() -> Stream) -> Self {
        match config {
            // What drops options lets nothing pass that could be looked at.
            QuickStartHop::Unaware | QuickStartHop::DropsOptions => Self::Unaware,
            QuickStartHop::Aware(admission) => Self::Aware(Box::new((Admission::new(admission), random()))),
            QuickStartHop::Tunnel => Self::Tunnel,
            QuickStartHop::AwareTunnel => Self::AwareTunnel,
            QuickStartHop::StripsOptions => Self::Stripped,
        }
    }

    /// A packet leaves: it is metered, and what it asks for is decided on.
    pub(crate) fn look(&mut self, now: Time, packet: &mut Packet) {
        let (bytes, flow) = (u32::from(packet.bytes), u64::from(packet.flow));
        // Every sender is a host of its own.
        let key = FlowKey { flow, source: flow };
        let mut none = Carried::NONE;
        let (option, data) = match &mut packet.body {
            Body::Segment(segment) => (&mut segment.quick_start, segment.payload > 0),
            Body::Datagram(_) => (&mut none, true),
            Body::Ack(_) => (&mut none, false),
        };
        match self {
            Self::Aware(router) => {
                let (admission, random) = &mut **router;
                let asked = option.asked();
                // What asks is not sent at what it is granted.
                admission.forwarded_of(now, bytes, &key, data && asked.is_zero());
                match option.option() {
                    None => option.pass_unaware(),
                    Some(IpOption::Request { nonce, .. }) => {
                        let granted = admission.admit(now, asked, nonce, &key);
                        option.pass_aware(granted, random.next_u32());
                    }
                    Some(IpOption::Report { rate, nonce }) => {
                        admission.reported(now, rate, nonce, &key);
                        option.pass_unaware();
                    }
                }
            }
            Self::Unaware => option.pass_unaware(),
            Self::Tunnel => {}
            Self::AwareTunnel => option.deny(),
            Self::Stripped if !option.is_none() => {
                *option = Carried::NONE;
                packet.bytes = packet.bytes.saturating_sub(IPV4_LENGTH as u16);
            }
            Self::Stripped => {}
        }
    }

    pub(crate) fn counts(&self) -> RouterCounts {
        match self {
            Self::Aware(router) => router.0.counts(),
            Self::Unaware | Self::Tunnel | Self::AwareTunnel | Self::Stripped => RouterCounts::default(),
        }
    }
}
